"""Triplet losses against loops of their rules, by hand and against another library."""

import itertools
import math

import pytest
import torch

from helpers.losses.triplets import batch_hard_triplet, semihard_triplet
from tests.factories import labelled_vectors, uneven_vectors
from tests.oracles import same_value_and_gradient, slow_distance


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
        for seed in range(4):
            for vectors, labels in (labelled_vectors(seed), uneven_vectors(seed)):
                slow, seen = slow_semihard(vectors, labels, margin, distance)
                cases |= seen
                assert semihard_triplet(vectors, labels, margin, distance).item() == pytest.approx(
                    slow, abs=1e-7
                )
        assert cases == {True, False}, "a case of the rule did not occur"

    def test_by_hand(self):
        """Directions in the plane, a and b of one author: the nearer stranger is skipped for the
        one behind b.
        """
        angle = torch.tensor([0.0, 0.5, 0.3, 0.9], dtype=torch.float64)
        points, labels = torch.stack([angle.cos(), angle.sin()], 1), torch.tensor([0, 0, 1, 2])

        def chord(between):
            return 2 * math.sin(between / 2)

        # from a at 0.0: b at 0.5, strangers at 0.3 (nearer) and 0.9. From b: a 0.5 away, both
        # strangers nearer
        by_hand = (max(chord(0.5) - chord(0.9) + 0.2, 0) + chord(0.5) - chord(0.4) + 0.2) / 2
        assert semihard_triplet(points, labels).item() == pytest.approx(by_hand)

    def test_distance_is_not_squared_and_length_does_not_matter(self):
        points = torch.tensor([[1.0, 0], [0, 5], [-2, 0]])
        # a-b: root of 2; stranger c is 2 from a, root of 2 from b (not strictly farther: the
        # farthest is taken)
        by_hand = (max(math.sqrt(2) - 2 + 0.9, 0) + 0.9) / 2
        assert semihard_triplet(points, torch.tensor([0, 0, 1]), 0.9).item() == pytest.approx(
            by_hand, abs=1e-6
        )

    def test_a_negative_as_near_as_the_positive_is_not_semihard(self):
        points = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0]])
        # from a: b and c are a root of 2 away, so d (2 away) it is; from b: all are a root of 2
        # away
        by_hand = (math.sqrt(2) - 2 + 0.9 + 0.9) / 2
        assert semihard_triplet(points, torch.tensor([0, 0, 1, 2]), 0.9).item() == pytest.approx(
            by_hand, abs=1e-6
        )


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
class TestBatchHard:
    @pytest.mark.parametrize("margin", [0.0, 0.2, 5.0])
    def test_it_is_its_rule_written_as_loops(self, margin, distance):
        for seed in range(3):
            for vectors, labels in (
                labelled_vectors(seed),
                uneven_vectors(seed),
                uneven_vectors(seed, (0, 0, 1, 2)),
            ):
                slow = slow_batch_hard(vectors, labels.tolist(), margin, distance)
                assert batch_hard_triplet(
                    vectors, labels, margin, distance
                ).item() == pytest.approx(slow)

    def test_it_is_that_of_pytorch_metric_learning(self, distance):
        pytest.importorskip("pytorch_metric_learning")
        from pytorch_metric_learning import distances, losses, miners, reducers

        between = (
            distances.CosineSimilarity() if distance == "cosine" else distances.LpDistance(power=1)
        )
        theirs = losses.TripletMarginLoss(0.2, distance=between, reducer=reducers.MeanReducer())
        miner = miners.BatchHardMiner(distance=between)
        for vectors, labels in (labelled_vectors(0), uneven_vectors(1, (0, 0, 0, 1, 1, 2))):
            same_value_and_gradient(
                lambda e: batch_hard_triplet(e, labels, 0.2, distance),
                lambda e: theirs(e, labels, miner(e, labels)),
                vectors,
            )
