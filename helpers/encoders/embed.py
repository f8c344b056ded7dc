"""Embed many samples with a trained encoder: any windows of a store, in any order, at bounded memory."""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from helpers.runs.progress import progress_bar
from helpers.tokens.batch import gather
from helpers.tokens.store import TokenStore, ranges


def embed(
    encoder: nn.Module,
    store: TokenStore,
    authors: np.ndarray,
    first: np.ndarray,
    count: np.ndarray,
    length: int = 32,
    batch_size: int = 256,
    progress: bool = False,
) -> np.ndarray:
    """Embeddings (N, D), float32, of N samples: ``count`` posts each, from post ``first`` of the store.

    Samples are batched by size in posts, then in tokens, so that short ones do not pay for long ones; the result is in
    the given order.
    The encoder is put in eval mode and back. Posts are cut to their first ``length`` tokens.
    """
    device = next(encoder.parameters()).device
    was_training = encoder.training
    encoder.eval()
    order = np.lexsort((store.post_offsets[first + count] - store.post_offsets[first], count))
    pieces = []
    with torch.no_grad(), encoder.inference():
        for begin in progress_bar(range(0, len(order), batch_size), progress=progress, desc="embedding"):
            rows = order[begin : begin + batch_size]
            batch = gather(store, authors[rows], first[rows], count[rows], length)
            pieces.append(encoder(batch.to(device)).float().cpu().numpy())
    encoder.train(was_training)
    embedded = np.concatenate(pieces)
    result = np.empty_like(embedded)
    result[order] = embedded
    return result


def embedder(encoder: nn.Module, length: int = 32) -> Callable:
    """A scorer like those of :mod:`helpers.encoders.tfidf`: (store, first post (N,), size (N,)) -> unit rows (N, D)."""
    return lambda store, first, count: embed(encoder, store, np.zeros_like(first), first, count, length)


def average_embedder(encoder: nn.Module, length: int = 32) -> Callable:
    """As :func:`embedder`, each post embedded alone and the vectors averaged: "Avg" of khan2021 Table 3.

    It is made for an encoder that was trained on single posts. Memory: D floats for each post.
    """

    def vectors(store, first, count):
        posts, offsets = ranges(first, count)
        alone = embed(encoder, store, np.zeros_like(posts), posts, np.ones_like(posts), length)
        total = np.add.reduceat(alone, offsets[:-1])
        return total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-12)

    return vectors
