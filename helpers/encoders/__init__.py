"""Samples of posts become vectors.

Batches come in; one vector for each sample goes out. Vectors are dense, or sparse for counts of
words, and mostly of unit length. Encoders are networks, pretrained models, or fitted in closed
form. No encoder here reads a file of posts, selects samples, trains itself, or knows what its
vectors are compared for.
"""
