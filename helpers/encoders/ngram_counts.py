"""Subwords and pairs of neighbouring subwords of a sample, counted: what TF-IDF and LSA encoders start from."""

import torch
from scipy import sparse
from torch import Tensor


def ngram_counts(tokens: Tensor, vocabulary: int, buckets: int) -> tuple[Tensor, Tensor, Tensor]:
    """The features that occur in each sample; pairs within a post are hashed into ``buckets`` beyond the vocabulary.

    tokens : (B, M, L) int64, PAD below 0.
    Returns sample, feature (0 .. vocabulary + buckets - 1) and count, (occurring,) each, sorted by sample, then
    feature.
    """
    features = vocabulary + buckets
    sample = torch.arange(len(tokens), device=tokens.device)[:, None, None].expand_as(tokens)
    left, right = tokens[:, :, :-1], tokens[:, :, 1:]
    single, pair = tokens >= 0, right >= 0
    hashed = (left[pair] * 1_000_003 + right[pair] * 7_919) % buckets + vocabulary
    key = torch.cat([sample[single], sample[:, :, 1:][pair]]) * features + torch.cat([tokens[single], hashed])
    key, count = key.unique(return_counts=True)
    return key // features, key % features, count


def count_matrix(tokens: Tensor, vocabulary: int, buckets: int) -> sparse.csr_matrix:
    """(B, M, L) -> (B, vocabulary + buckets) counts, float32."""
    sample, feature, count = (part.cpu().numpy() for part in ngram_counts(tokens, vocabulary, buckets))
    return sparse.csr_matrix((count.astype("float32"), (sample, feature)), (len(tokens), vocabulary + buckets))
