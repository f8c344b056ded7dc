"""Tokens: posts as token ids on disk, and the batches sampled from them.

The input is a posts table and a tokenizer. The output is a token store, from which a batch reads
only its own posts, however large the store is. A batch is a pure function of (store, seed, step).
Samplers know nothing of networks.
"""
