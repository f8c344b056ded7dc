"""The posts table: in come the parts of a source, out goes one table of posts, and its data card.

Posts are collected, rid of copies, names and signatures, selected, and joined into documents. Every
row that is dropped is counted by its reason. Nothing here knows a split, a token or a model.
"""
