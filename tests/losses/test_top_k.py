"""The top-k loss against a loop of its description, and by hand."""

import pytest
import torch

from helpers.losses import RELEASED
from helpers.losses.distances import pairwise_cosines
from helpers.losses.top_k import top_k
from tests.factories import labelled_vectors, uneven_vectors


def slow_top_k(scores, labels, k, margin, per_row=True):
    """The docstring of top_k, one query at a time, on cosines. Says which cases occurred too."""
    total, cases, size = 0, set(), len(labels)
    fewer = max(labels.count(label) for label in labels) < k  # n+ < k: the case of the whole batch
    for query in range(size):
        candidates = [i for i in range(size) if i != query]
        value = {i: scores[query][i] + margin * (labels[i] != labels[query]) for i in candidates}
        best = sorted(candidates, key=lambda i: -value[i])[:k]
        positives = [i for i in candidates if labels[i] == labels[query]]
        if not per_row and (len(positives) < k) != fewer:
            continue
        missing = min(len(positives), k) - len([i for i in best if i in positives])
        inside = sorted((value[i] for i in best if i not in positives))
        outside = sorted((value[i] for i in positives if i not in best), reverse=True)
        if len(positives) < k:
            assert missing == len(outside), "every positive outside is missing"
        else:
            assert missing == len(inside), "every negative inside is too much"
        total += sum(inside[:missing]) - sum(outside[:missing])
        cases.add((len(positives) >= k, missing > 0))
    return total / size, cases


@pytest.mark.parametrize("per_row", [True, False])
@pytest.mark.parametrize("k", [1, 2, 4, 8])
@pytest.mark.parametrize("margin", [0.0, 0.25])
def test_it_is_its_description_written_as_loops(k, margin, per_row):
    cases, equal = set(), set()
    for seed in range(6):
        for vectors, labels in (
            labelled_vectors(seed),
            labelled_vectors(seed, 2, 10),
            uneven_vectors(seed),
        ):
            slow, seen = slow_top_k(
                pairwise_cosines(vectors).tolist(), labels.tolist(), k, margin, per_row
            )
            cases |= seen
            value = top_k(vectors, labels, k, margin, per_row).item()
            assert value == pytest.approx(slow, abs=1e-9)
            equal.add(value == top_k(vectors, labels, k, margin).item())
    if not per_row:
        assert equal == ({True, False} if k in (2, 4) else {True}), (
            "the case of the batch made no difference"
        )
        return
    assert {(True, True), *([(False, True)] if k > 1 else [])} <= cases, (
        "a case of the rule did not occur"
    )


def test_a_right_ranking_costs_nothing():
    vectors, labels = torch.eye(4).repeat_interleave(5, 0), torch.arange(4).repeat_interleave(5)
    assert top_k(vectors, labels, 4, 0.25).item() == 0
    assert top_k(vectors, labels, 8, 0.25).item() == 0, "fewer positives than k"


def test_ties():
    """Equal scores: whatever the order, one negative too much has the same price as the positive it
    displaces.
    """
    vectors = torch.ones(6, 3)
    labels = torch.tensor([0, 0, 0, 1, 1, 1])
    # with the margin the 3 negatives are the best: 2 of them are in the top 2, both positives
    # outside
    assert top_k(vectors, labels, 2, 0.25).item() == pytest.approx(2 * 0.25, abs=1e-6)
    assert top_k(vectors, labels, 2, 0.0).item() == pytest.approx(0, abs=1e-6)
    # k = 3: both positives would fit, so two of the three negatives inside are too much
    assert top_k(vectors, labels, 3, 0.25).item() == pytest.approx(2 * 0.25, abs=1e-6)


def test_the_released_code_learns_nothing_where_an_author_has_k_samples():
    for k, learns in ((3, True), (4, False), (5, True)):
        vectors, labels = labelled_vectors(1, samples=4)
        vectors.requires_grad_()
        (gradient,) = torch.autograd.grad(top_k(vectors, labels, k, **RELEASED["topk"]), vectors)
        assert bool(gradient.any()) == learns
        assert top_k(vectors, labels, k) > 0


def test_k_beyond_the_batch():
    vectors, labels = labelled_vectors(0)
    assert top_k(vectors, labels, 500).item() == pytest.approx(top_k(vectors, labels, 19).item())
