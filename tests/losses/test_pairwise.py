"""Losses of pairs, and distances, against slow oracles, one pair or triplet at a time."""

import itertools
import math

import pytest
import torch

from helpers.losses import RELEASED
from helpers.losses.pairwise import (
    batch_hard_triplet,
    contrastive,
    pairwise_cosines,
    pairwise_distances,
    semihard_triplet,
    supervised_contrastive,
    top_k,
)
from tests.factories import labelled_vectors, uneven_vectors
from tests.oracles import same_value_and_gradient, slow_distance

DISTANCES = ("euclidean", "cosine", "raw")


@pytest.mark.parametrize("distance", DISTANCES)
def test_they_are_their_definitions_written_as_loops(distance):
    vectors, _ = labelled_vectors(0)
    found = pairwise_distances(vectors, distance)
    for row, left in enumerate(vectors):
        expected = [slow_distance(left, right, distance) for right in vectors]
        assert found[row].tolist() == pytest.approx(expected, rel=1e-6, abs=1e-6)


def slow_contrastive(
    vectors, labels, negative_margin, positive_margin, distance, squared_hinge, paired=False
):
    """tyo2021 eq. 1 and 2, a pair at a time: the cost of a pair of either kind alike."""
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
@pytest.mark.parametrize("distance", ["cosine", "raw"])
@pytest.mark.parametrize("squared_hinge", [False, True])
@pytest.mark.parametrize("negative_margin, positive_margin", [(1.0, 0.25), (5.0, 0.1)])
def test_it_is_its_equation_written_as_loops(
    negative_margin, positive_margin, squared_hinge, distance, paired
):
    for seed in range(2):
        for vectors, labels in (labelled_vectors(seed), uneven_vectors(seed)):
            settings = (negative_margin, positive_margin, distance, squared_hinge, paired)
            slow = slow_contrastive(vectors, labels, *settings)
            assert contrastive(vectors, labels, *settings).item() == pytest.approx(slow)


def slow_semihard(vectors, labels, margin, distance):
    """The rule of tensorflow-addons, one triplet at a time. Says which cases occurred too."""
    size, terms, cases = len(labels), [], set()
    for a, p in itertools.permutations(range(size), 2):
        if labels[a] != labels[p]:
            continue
        distances = [slow_distance(vectors[a], vector, distance) for vector in vectors]
        near, away = distances[p], [distances[n] for n in range(size) if labels[n] != labels[a]]
        farther = [distance for distance in away if distance > near]
        cases.add(bool(farther))
        terms.append(max(0, near - (min(farther) if farther else max(away)) + margin))
    return sum(terms) / len(terms), cases


def slow_batch_hard(vectors, labels, margin, distance):
    terms = []
    for a, label in enumerate(labels):
        distances = [slow_distance(vectors[a], other, distance) for other in vectors]
        positives = [distances[i] for i, other in enumerate(labels) if other == label and i != a]
        negatives = [distances[i] for i, other in enumerate(labels) if other != label]
        if positives and negatives:
            terms.append(max(0, max(positives) - min(negatives) + margin))
    return sum(terms) / len(terms)


class TestSemihard:
    @pytest.mark.parametrize("distance", ["euclidean", "cosine"])
    @pytest.mark.parametrize("margin", [0.0, 0.8])
    def test_it_is_its_rule_written_as_loops(self, margin, distance):
        cases = set()
        for seed in range(2):
            for vectors, labels in (labelled_vectors(seed), uneven_vectors(seed)):
                slow, seen = slow_semihard(vectors, labels, margin, distance)
                cases |= seen
                value = semihard_triplet(vectors, labels, margin, distance).item()
                assert value == pytest.approx(slow, abs=1e-7)
        assert cases == {True, False}, "a case of the rule did not occur"

    def test_a_negative_as_near_as_the_positive_is_not_semihard(self):
        points = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0]])
        # from a: b and c are a root of 2 away, so d (2 away) it is; from b: all are as far away
        by_hand = (math.sqrt(2) - 2 + 0.9 + 0.9) / 2
        value = semihard_triplet(points, torch.tensor([0, 0, 1, 2]), 0.9).item()
        assert value == pytest.approx(by_hand, abs=1e-6)


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
class TestBatchHard:
    @pytest.mark.parametrize("margin", [0.0, 5.0])
    def test_it_is_its_rule_written_as_loops(self, margin, distance):
        for labels in ((0, 0, 0, 0, 1, 1, 2, 3, 3, 3), (0, 0, 1, 2)):
            vectors, labels = uneven_vectors(1, labels)
            slow = slow_batch_hard(vectors, labels.tolist(), margin, distance)
            value = batch_hard_triplet(vectors, labels, margin, distance).item()
            assert value == pytest.approx(slow)


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
@pytest.mark.parametrize("margin", [0.25])
def test_it_is_its_description_written_as_loops(k, margin, per_row):
    cases, equal = set(), set()
    for seed in range(6):
        batches = [labelled_vectors(seed), labelled_vectors(seed, 2, 10), uneven_vectors(seed)]
        for vectors, labels in batches:
            scores = pairwise_cosines(vectors).tolist()
            slow, seen = slow_top_k(scores, labels.tolist(), k, margin, per_row)
            cases |= seen
            value = top_k(vectors, labels, k, margin, per_row).item()
            assert value == pytest.approx(slow, abs=1e-9)
            equal.add(value == top_k(vectors, labels, k, margin).item())
    if not per_row:
        assert equal == ({True, False} if k in (2, 4) else {True}), (
            "the case of the batch made no difference"
        )
        return
    assert (True, True) in cases and (k == 1 or (False, True) in cases), "a case did not occur"


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


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_it_is_that_of_pytorch_metric_learning(temperature):
    losses = pytest.importorskip("pytorch_metric_learning.losses")
    for seed in range(2):
        uneven = uneven_vectors(seed, (0, 0, 0, 0, 0, 1, 1, 3, 3, 3))
        for vectors, labels in (labelled_vectors(seed), uneven):
            same_value_and_gradient(
                lambda e: supervised_contrastive(e, labels, temperature),
                lambda e: losses.SupConLoss(temperature=temperature)(e, labels),
                vectors,
            )


def test_as_released_for_sawatphol2022():
    """Scaled by temperature / base, and divided by all anchors; three of the twelve are alone."""
    vectors, labels = uneven_vectors(2, (0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 5, 5))
    plain = supervised_contrastive(vectors, labels, 0.2)
    released = supervised_contrastive(vectors, labels, 0.2, **RELEASED["supcon"])
    assert released.item() == pytest.approx(plain.item() * 9 / 12 * 0.2 / 0.07)
