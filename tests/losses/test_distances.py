"""Distances and masks of a batch, by hand and against loops."""

import math

import pytest
import torch

from helpers.losses.distances import DISTANCES, pair_masks, pairwise_cosines, pairwise_distances
from tests.factories import labelled_vectors
from tests.oracles import slow_distance


@pytest.mark.parametrize("distance", DISTANCES)
def test_they_are_their_definitions_written_as_loops(distance):
    vectors, _ = labelled_vectors(0)
    slow = torch.tensor(
        [[slow_distance(left, right, distance) for right in vectors] for left in vectors]
    )
    torch.testing.assert_close(
        pairwise_distances(vectors, distance), slow.double(), rtol=1e-6, atol=1e-6
    )


def test_by_hand():
    points = torch.tensor([[3.0, 0], [0, 2], [-1, 0], [5, 0]])
    assert pairwise_cosines(points)[0].tolist() == pytest.approx([1, 0, -1, 1])
    assert pairwise_distances(points)[0].tolist() == pytest.approx([0, math.sqrt(2), 2, 0])
    assert pairwise_distances(points, "cosine")[0].tolist() == pytest.approx([0, 1, 2, 0])
    assert pairwise_distances(points, "raw")[0].tolist() == pytest.approx([0, math.sqrt(13), 4, 2])
    with pytest.raises(ValueError, match="distance 'l2': one of euclidean, cosine, raw"):
        pairwise_distances(points, "l2")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("distance", DISTANCES)
def test_half_precision_is_raised(distance, dtype):
    vectors = labelled_vectors(1)[0].to(dtype).requires_grad_()
    distances = pairwise_distances(vectors, distance)
    assert distances.dtype == torch.float32
    assert torch.equal(distances, pairwise_distances(vectors.float(), distance))
    distances.sum().backward()
    assert vectors.grad.isfinite().all()


def test_masks():
    positive, negative = pair_masks(torch.tensor([7, 3, 7]))
    assert positive.tolist() == [[False, False, True], [False] * 3, [True, False, False]]
    assert negative.tolist() == [[False, True, False], [True, False, True], [False, True, False]]
