"""Cosines and distances between all samples of a batch, and which of its pairs share an author."""

from typing import Literal, get_args

import torch
import torch.nn.functional as nnf
from torch import Tensor

Distance = Literal["euclidean", "cosine", "raw"]
DISTANCES = get_args(Distance)


def pair_masks(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Tell pairs of one author from pairs of two.

    Parameters
    ----------
    labels : (B,), the author of each sample

    Returns
    -------
    positives : (B, B) bool, pairs of one author, the diagonal left out
    negatives : (B, B) bool, pairs of two authors
    """
    same_author = labels[:, None] == labels
    diagonal = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    return same_author & ~diagonal, ~same_author


def pairwise_cosines(embeddings: Tensor) -> Tensor:
    """Return the (B, B) cosines of (B, D) vectors of any length, in float32 at least."""
    precision = torch.promote_types(embeddings.dtype, torch.float32)
    unit = nnf.normalize(embeddings.to(precision), dim=1)
    return unit @ unit.T


def pairwise_distances(embeddings: Tensor, distance: Distance = "euclidean") -> Tensor:
    """Return the (B, B) distances of all pairs of samples.

    Parameters
    ----------
    embeddings : (B, D)
    distance : "euclidean" of the unit vectors, not squared, 0..2; "cosine", which is 1 - cosine,
        0..2, half of the square of the former; "raw", Euclidean of the vectors as they are, for
        encoders that do not normalise: the margins above 2 of tyo2021 Table 2

    Raises
    ------
    ValueError
        the distance is unknown

    References
    ----------
    tyo2021 equations 4 and 5.
    """
    if distance not in DISTANCES:  # a loss that is called without a config comes in here
        raise ValueError(f"distance {distance!r}: one of {', '.join(DISTANCES)}")
    if distance == "raw":
        return torch.cdist(embeddings, embeddings, compute_mode="donot_use_mm_for_euclid_dist")
    cosine_distances = (1 - pairwise_cosines(embeddings)).clamp(min=0)
    if distance == "cosine":
        return cosine_distances
    squared = 2 * cosine_distances
    # the root's slope is infinite at 0: below the floor the distance is 0 and carries no gradient
    return torch.where(squared > 1e-12, squared.clamp(min=1e-12).sqrt(), 0.0)
