"""Contrastive losses against loops of their equations and against another library."""

import itertools

import pytest
import torch

from helpers.losses.pairs import contrastive, modified_contrastive
from tests.factories import labelled_vectors, uneven_vectors
from tests.oracles import same_value_and_gradient, slow_distance


def slow_contrastive(
    vectors, labels, negative_margin, positive_margin, distance, squared_hinge, paired=False
):
    """tyo2021 eq. 1 and 2, a pair at a time; the expected cost of a pair drawn half and half of
    both kinds.
    """
    costs = {True: [], False: []}
    for i, j in itertools.combinations(range(len(labels)), 2):
        if paired and not (i % 2 == 0 and j == i + 1):
            continue
        d = slow_distance(vectors[i], vectors[j], distance)
        if labels[i] != labels[j]:
            costs[False].append(0.5 * max(negative_margin - d, 0) ** 2)
        elif squared_hinge:
            costs[True].append(0.5 * max(d - positive_margin, 0) ** 2)
        else:
            costs[True].append(0.5 * max(d**2 - positive_margin, 0))
    return sum(0.5 * sum(kind) / len(kind) for kind in costs.values() if kind)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("distance", ["euclidean", "cosine", "raw"])
@pytest.mark.parametrize("squared_hinge", [False, True])
@pytest.mark.parametrize("negative_margin, positive_margin", [(0.5, 0.0), (1.0, 0.25), (5.0, 0.1)])
def test_it_is_its_equation_written_as_loops(
    negative_margin, positive_margin, squared_hinge, distance, paired
):
    for seed in range(2):
        for vectors, labels in (labelled_vectors(seed), uneven_vectors(seed)):
            settings = (negative_margin, positive_margin, distance, squared_hinge, paired)
            slow = slow_contrastive(vectors, labels, *settings)
            assert contrastive(vectors, labels, *settings).item() == pytest.approx(slow)


@pytest.mark.parametrize("negative_margin, positive_margin", [(0.5, 0.0), (1.0, 0.25)])
def test_it_is_made_of_that_of_pytorch_metric_learning(negative_margin, positive_margin):
    """There a pair costs a plain hinge of d or d^2, so theirs is squared where ours is; each kind
    has a mean.
    """
    library = pytest.importorskip("pytorch_metric_learning.losses")
    from pytorch_metric_learning.distances import LpDistance
    from pytorch_metric_learning.reducers import DoNothingReducer

    def costs(vectors, labels, kind, power):
        theirs = library.ContrastiveLoss(
            positive_margin,
            negative_margin,
            distance=LpDistance(power=power),
            reducer=DoNothingReducer(),
        )
        return theirs(vectors, labels)[kind]["losses"]

    for vectors, labels in (labelled_vectors(0), uneven_vectors(1)):
        for squared_hinge in (False, True):

            def ours(e):
                margins = (negative_margin, positive_margin)
                return contrastive(e, labels, *margins, "euclidean", squared_hinge)

            def theirs(e):
                push = costs(e, labels, "neg_loss", 1).square()
                if squared_hinge:  # as the text says
                    pull = costs(e, labels, "pos_loss", 1).square()
                else:  # as released
                    pull = costs(e, labels, "pos_loss", 2)
                return (pull.mean() + push.mean()) / 4

            same_value_and_gradient(ours, theirs, vectors)


def test_by_hand():
    """Two authors of two, at right angles: the same author's are 1 apart in cosine, root of 2 in
    Euclidean.
    """
    points, labels = torch.eye(4, dtype=torch.float64), torch.tensor([0, 0, 1, 1])
    assert contrastive(points, labels).item() == pytest.approx(0.5 * (0.5 * 1 + 0))
    assert contrastive(points, labels, negative_margin=1.5).item() == pytest.approx(
        0.5 * (0.5 * 1 + 0.5 * 0.5**2)
    )
    assert modified_contrastive(points, labels).item() == pytest.approx(0.5 * 0.5 * (2 - 0.25))


def test_one_kind_of_pair_alone():
    points = torch.eye(2, dtype=torch.float64)
    assert contrastive(points, torch.tensor([0, 0])).item() == pytest.approx(0.25)
    assert contrastive(points, torch.tensor([0, 1]), negative_margin=2.0).item() == pytest.approx(
        0.25
    )
