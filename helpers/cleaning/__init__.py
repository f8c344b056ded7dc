"""One post in, one clean post out: markup, quotes, signatures and code of a post are taken away.

Names and addresses become placeholders, and authors pseudonyms. Nothing here knows another post or
the corpus.
"""
