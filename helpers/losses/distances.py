"""Cosines and distances between all samples of a batch, and masks of pairs that share an author."""

from typing import Literal, get_args

import torch
from torch import Tensor

SHORTEST_LENGTH = 1e-6  # a shorter vector counts as 0: it is rounding, and has no direction
Distance = Literal["euclidean", "cosine", "raw"]
DISTANCES = get_args(Distance)


def pair_masks(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return masks of the pairs of samples by one author and of the pairs by two authors.

    Parameters
    ----------
    labels : (B,), the author of each of B samples

    Returns
    -------
    positives : (B, B) bool, true for two samples by one author; false on the diagonal
    negatives : (B, B) bool, true for two samples by two authors
    """
    same_author = labels[:, None] == labels
    diagonal = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    return same_author & ~diagonal, ~same_author


def unit_vectors(embeddings: Tensor) -> Tensor:
    """Scale vectors to unit length; those below SHORTEST_LENGTH become 0, with a gradient of 0.

    The gradient of a vector is divided by its length. Without a bound, a vector of length 0 would
    have a gradient of 1e12, beside which clipping leaves nothing of the others.

    Parameters
    ----------
    embeddings : (B, D), B vectors of D values

    Returns
    -------
    (B, D), for other vectors the values and gradients of ``torch.nn.functional.normalize``
    """
    length = embeddings.norm(dim=1, keepdim=True)
    return embeddings / length.masked_fill(length < SHORTEST_LENGTH, torch.inf)


def pairwise_cosines(embeddings: Tensor) -> Tensor:
    """Return the cosines (B, B) of B vectors (B, D) of any length, in float32 or more precisely."""
    unit = unit_vectors(_precise(embeddings))
    return unit @ unit.T


def pairwise_distances(embeddings: Tensor, distance: Distance = "euclidean") -> Tensor:
    """Return the (B, B) distances of all pairs of samples.

    Parameters
    ----------
    embeddings : (B, D), B samples as vectors of D values
    distance : "euclidean" is the Euclidean distance of the unit vectors, not squared, 0..2;
        "cosine" is 1 - cosine, 0..2, half of the square of "euclidean"; "raw" is the Euclidean
        distance of the vectors as they are, for encoders that do not normalise and for margins
        above 2, as in tyo2021 Table 2

    Raises
    ------
    ValueError
        the distance is unknown

    References
    ----------
    tyo2021 equations 4 and 5.
    """
    if distance not in DISTANCES:  # possible where a loss is called without a config
        raise ValueError(f"distance {distance!r}: one of {', '.join(DISTANCES)}")
    if distance == "raw":
        points = _precise(embeddings)
        return torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    cosine_distances = (1 - pairwise_cosines(embeddings)).clamp(min=0)
    if distance == "cosine":
        return cosine_distances
    squared = 2 * cosine_distances
    # The root has an infinite slope at 0. So below 1e-12 the distance is 0, without a gradient, and
    # clamp keeps the slope finite in the branch that where() does not take. NaN stays NaN, so that
    # a training that has diverged says so.
    return torch.where(squared <= 1e-12, 0.0, squared.clamp(min=1e-12).sqrt())


def _precise(embeddings: Tensor) -> Tensor:
    """Return embeddings in float32, or as they are where they are more precise."""
    return embeddings.to(torch.promote_types(embeddings.dtype, torch.float32))
