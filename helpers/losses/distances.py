"""Cosines and distances between all samples of a batch, and which of its pairs share an author."""

from typing import Literal, get_args

import torch
import torch.nn.functional as nnf
from torch import Tensor

Distance = Literal["euclidean", "cosine", "raw"]
DISTANCES = get_args(Distance)


def pair_masks(labels: Tensor) -> tuple[Tensor, Tensor]:
    """(B,) authors -> (B, B) positives, pairs of one author without the diagonal, and (B, B) negatives."""
    same = labels[:, None] == labels[None, :]
    return same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device), ~same


def pairwise_cosines(embeddings: Tensor) -> Tensor:
    """(B, D) vectors of any length -> (B, B) cosine similarities, in float32 at least."""
    unit = nnf.normalize(embeddings.to(torch.promote_types(embeddings.dtype, torch.float32)), dim=1)
    return unit @ unit.T


def pairwise_distances(embeddings: Tensor, distance: Distance = "euclidean") -> Tensor:
    """(B, D) -> (B, B) distances, tyo2021 eq. 4 and 5. Raises ValueError for an unknown distance.

    distance : "euclidean", of the unit vectors, not squared; "cosine", 1 - cosine, half of its square; both in 0..2.
    "raw", Euclidean of the vectors as they are, for encoders that do not normalise: the margins above 2 of Table 2.
    """
    if distance not in DISTANCES:
        raise ValueError(f"distance {distance!r}: one of {', '.join(DISTANCES)}")
    if distance == "raw":
        return torch.cdist(embeddings, embeddings, compute_mode="donot_use_mm_for_euclid_dist")
    apart = (1 - pairwise_cosines(embeddings)).clamp(min=0)
    if distance == "cosine":
        return apart
    squared = 2 * apart
    # the root's slope is infinite at 0: below the floor the distance is 0 and carries no gradient
    return torch.where(squared > 1e-12, squared.clamp(min=1e-12).sqrt(), 0.0)
