"""How much of an embedding is topic, and ways to take it out.

Documents split by topic and encoders come in; students, erased encoders, masked texts and measures
of topic go out. Topic is taken out of the training (ARR), of finished vectors (erasure) or of the
text (masking). Nothing here decides which posts are compared: the splits and protocols do.
"""
