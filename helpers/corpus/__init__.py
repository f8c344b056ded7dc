"""From the parts of a source to one posts table and its data card.

Posts are collected; names are masked, copies dropped and signatures cut; then posts can be selected
and joined into documents. Every dropped row is counted by its reason. No module here uses splits,
tokens or models.
"""
