"""Tokens: posts as token ids on disk, and the batches drawn from them.

A posts table and a tokenizer come in. A token store goes out, from which a batch reads its own
posts only, whatever the size of the store; a batch is a pure function of (store, seed, step). A
sampler never knows a network, and a tokenizer never changes what it was trained on.
"""
