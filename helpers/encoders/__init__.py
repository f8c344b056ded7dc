"""Samples of posts become vectors.

Batches come in, unit rows of one vector a sample go out, dense or, for counts of words, sparse.
Encoders are networks, pretrained models, or fitted in closed form. No encoder here reads a file of
posts, draws samples, trains itself, or knows what its vectors are compared for.
"""
