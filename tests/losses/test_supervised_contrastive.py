"""The supervised contrastive loss against a loop of its equation and against another library."""

import math

import pytest

from helpers.losses import RELEASED
from helpers.losses.distances import pairwise_cosines
from helpers.losses.supervised_contrastive import supervised_contrastive
from tests.factories import labelled_vectors, uneven_vectors
from tests.oracles import same_value_and_gradient


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_it_is_that_of_pytorch_metric_learning(temperature):
    losses = pytest.importorskip("pytorch_metric_learning.losses")
    for seed in range(3):
        for vectors, labels in (
            labelled_vectors(seed),
            uneven_vectors(seed, (0, 0, 0, 0, 0, 1, 1, 3, 3, 3)),
        ):
            same_value_and_gradient(
                lambda e: supervised_contrastive(e, labels, temperature),
                lambda e: losses.SupConLoss(temperature=temperature)(e, labels),
                vectors,
            )


def test_it_is_its_equation_written_as_loops():
    vectors, labels = uneven_vectors(3)
    scores, terms = pairwise_cosines(vectors).tolist(), []
    for a in range(len(labels)):
        candidates = [i for i in range(len(labels)) if i != a]
        positives = [i for i in candidates if labels[i] == labels[a]]
        total = sum(math.exp(scores[a][i] / 0.1) for i in candidates)
        if positives:
            terms.append(
                -sum(math.log(math.exp(scores[a][p] / 0.1) / total) for p in positives)
                / len(positives)
            )
    assert supervised_contrastive(vectors, labels).item() == pytest.approx(sum(terms) / len(terms))


def test_as_released_for_sawatphol2022():
    """Scaled by temperature / base, and divided by all anchors; three of the twelve are alone."""
    vectors, labels = uneven_vectors(2, (0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 5, 5))
    plain = supervised_contrastive(vectors, labels, 0.2)
    released = supervised_contrastive(vectors, labels, 0.2, **RELEASED["supcon"])
    assert released.item() == pytest.approx(plain.item() * 9 / 12 * 0.2 / 0.07)
