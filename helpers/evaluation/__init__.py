"""Protocols: embeddings or scores in, metrics out."""
