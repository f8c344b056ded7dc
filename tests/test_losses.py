"""Losses against plain loops of their definitions, against another library, and against finite differences."""

import itertools
import math
import subprocess
import sys

import pytest
import torch
from torch.nn.functional import normalize

from helpers.losses import LOSSES, cosines, make_loss, semihard_triplet, supervised_contrastive, top_k


def batch(seed, authors=5, samples=4, dim=6, dtype=torch.float64):
    """Authors overlap, so that every case of every rule occurs; labels in no order."""
    rng = torch.Generator().manual_seed(seed)
    centre = torch.randn(authors, dim, generator=rng, dtype=dtype).repeat_interleave(samples, 0)
    embeddings = 0.7 * centre + torch.randn(authors * samples, dim, generator=rng, dtype=dtype)
    order = torch.randperm(authors * samples, generator=rng)
    return embeddings[order], torch.arange(authors).repeat_interleave(samples)[order]


def uneven(seed, labels=(0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 3, 3)):
    rng = torch.Generator().manual_seed(seed)
    labels = torch.tensor(labels)
    centre = torch.randn(int(labels.max()) + 1, 6, generator=rng, dtype=torch.float64)
    return 0.8 * centre[labels] + torch.randn(len(labels), 6, generator=rng, dtype=torch.float64), labels


def slow_triplet(embeddings, labels, margin=0.2):
    """The rule of tensorflow-addons, one triplet at a time. Says which cases occurred too."""
    unit, size, terms, cases = normalize(embeddings, dim=1), len(labels), [], set()
    for a, p in itertools.permutations(range(size), 2):
        if labels[a] != labels[p]:
            continue
        near = (unit[a] - unit[p]).norm().item()
        away = [(unit[a] - unit[n]).norm().item() for n in range(size) if labels[n] != labels[a]]
        farther = [distance for distance in away if distance > near]
        cases.add(bool(farther))
        terms.append(max(0, near - (min(farther) if farther else max(away)) + margin))
    return sum(terms) / len(terms), cases


def slow_top_k(scores, labels, k, margin):
    """The docstring of top_k, one query at a time, on cosines. Says which cases occurred too."""
    total, cases, size = 0, set(), len(labels)
    for query in range(size):
        others = [i for i in range(size) if i != query]
        value = {i: scores[query][i] + margin * (labels[i] != labels[query]) for i in others}
        best = sorted(others, key=lambda i: -value[i])[:k]
        positives = [i for i in others if labels[i] == labels[query]]
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


class TestTriplet:
    @pytest.mark.parametrize("margin", [0.0, 0.2, 0.8])
    def test_it_is_the_rule_written_as_loops(self, margin):
        cases = set()
        for seed in range(6):
            for embeddings, labels in (batch(seed), uneven(seed)):
                wanted, seen = slow_triplet(embeddings, labels, margin)
                cases |= seen
                assert semihard_triplet(embeddings, labels, margin).item() == pytest.approx(wanted, abs=1e-7)
        assert cases == {True, False}, "a case of the rule did not occur"

    def test_by_hand(self):
        """Directions in the plane, a and b of one author: the nearer stranger is skipped for the one behind b."""
        angle = torch.tensor([0.0, 0.5, 0.3, 0.9], dtype=torch.float64)
        points, labels = torch.stack([angle.cos(), angle.sin()], 1), torch.tensor([0, 0, 1, 2])

        def chord(between):
            return 2 * math.sin(between / 2)

        # from a at 0.0: b at 0.5, strangers at 0.3 (nearer) and 0.9. From b: a 0.5 away, both strangers nearer
        wanted = (max(chord(0.5) - chord(0.9) + 0.2, 0) + chord(0.5) - chord(0.4) + 0.2) / 2
        assert semihard_triplet(points, labels).item() == pytest.approx(wanted)

    def test_distance_is_not_squared_and_length_does_not_matter(self):
        points = torch.tensor([[1.0, 0], [0, 5], [-2, 0]])
        # a-b: root of 2; stranger c is 2 from a, root of 2 from b (not strictly farther: the farthest is taken)
        wanted = (max(math.sqrt(2) - 2 + 0.9, 0) + 0.9) / 2
        assert semihard_triplet(points, torch.tensor([0, 0, 1]), 0.9).item() == pytest.approx(wanted, abs=1e-6)

    def test_a_negative_as_near_as_the_positive_is_not_semihard(self):
        points = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0]])
        # from a: b and c are a root of 2 away, so d (2 away) it is; from b: all are a root of 2 away
        wanted = (math.sqrt(2) - 2 + 0.9 + 0.9) / 2
        assert semihard_triplet(points, torch.tensor([0, 0, 1, 2]), 0.9).item() == pytest.approx(wanted, abs=1e-6)

    def test_one_author_alone_gives_nothing(self):
        embeddings = torch.randn(4, 3, requires_grad=True)
        loss = semihard_triplet(embeddings, torch.zeros(4))
        loss.backward()
        assert loss.item() == 0 and not embeddings.grad.any()


class TestTopK:
    @pytest.mark.parametrize("k", [1, 2, 4, 8])
    @pytest.mark.parametrize("margin", [0.0, 0.25])
    def test_it_is_its_description_written_as_loops(self, k, margin):
        cases = set()
        for seed in range(6):
            for embeddings, labels in (batch(seed), batch(seed, 2, 10), uneven(seed)):
                wanted, seen = slow_top_k(cosines(embeddings).tolist(), labels.tolist(), k, margin)
                cases |= seen
                assert top_k(embeddings, labels, k, margin).item() == pytest.approx(wanted, abs=1e-9)
        assert {(True, True), *([(False, True)] if k > 1 else [])} <= cases, "a case of the rule did not occur"

    def test_a_right_ranking_costs_nothing(self):
        embeddings, labels = torch.eye(4).repeat_interleave(5, 0), torch.arange(4).repeat_interleave(5)
        assert top_k(embeddings, labels, 4, 0.25).item() == 0
        assert top_k(embeddings, labels, 8, 0.25).item() == 0, "fewer positives than k"

    def test_ties(self):
        """Equal scores: whatever the order, one negative too much has the same price as the positive it displaces."""
        embeddings = torch.ones(6, 3)
        labels = torch.tensor([0, 0, 0, 1, 1, 1])
        # with the margin the 3 negatives are the best: 2 of them are in the top 2, both positives outside
        assert top_k(embeddings, labels, 2, 0.25).item() == pytest.approx(2 * 0.25, abs=1e-6)
        assert top_k(embeddings, labels, 2, 0.0).item() == pytest.approx(0, abs=1e-6)
        # k = 3: both positives would fit, so two of the three negatives inside are too much
        assert top_k(embeddings, labels, 3, 0.25).item() == pytest.approx(2 * 0.25, abs=1e-6)

    def test_k_beyond_the_batch(self):
        embeddings, labels = batch(0)
        assert top_k(embeddings, labels, 500).item() == pytest.approx(top_k(embeddings, labels, 19).item())


class TestSupervisedContrastive:
    @pytest.mark.parametrize("temperature", [0.05, 0.1, 1.0])
    def test_it_is_that_of_pytorch_metric_learning(self, temperature):
        losses = pytest.importorskip("pytorch_metric_learning.losses")
        for seed in range(4):
            for embeddings, labels in (batch(seed), uneven(seed, labels=(0, 0, 0, 0, 0, 1, 1, 3, 3, 3))):
                mine, theirs = (embeddings.clone().requires_grad_() for _ in range(2))
                loss = supervised_contrastive(mine, labels, temperature)
                wanted = losses.SupConLoss(temperature=temperature)(theirs, labels)
                assert loss.item() == pytest.approx(wanted.item(), rel=1e-6)
                loss.backward(), wanted.backward()
                torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-5, atol=1e-8)

    def test_it_is_its_equation_written_as_loops(self):
        embeddings, labels = uneven(3)
        scores, terms = cosines(embeddings).tolist(), []
        for a in range(len(labels)):
            others = [i for i in range(len(labels)) if i != a]
            positives = [i for i in others if labels[i] == labels[a]]
            total = sum(math.exp(scores[a][i] / 0.1) for i in others)
            if positives:
                terms.append(-sum(math.log(math.exp(scores[a][p] / 0.1) / total) for p in positives) / len(positives))
        assert supervised_contrastive(embeddings, labels).item() == pytest.approx(sum(terms) / len(terms))


@pytest.mark.parametrize("name", LOSSES)
class TestEveryLoss:
    def test_gradients_by_finite_differences(self, name):
        for embeddings, labels in (batch(1, authors=3, samples=3), uneven(2)):
            embeddings.requires_grad_()
            assert torch.autograd.gradcheck(lambda e: LOSSES[name](e, labels), embeddings, fast_mode=False)

    def test_precision_is_kept_or_raised(self, name):
        embeddings, labels = batch(2)
        assert LOSSES[name](embeddings, labels).dtype == torch.float64
        for dtype in (torch.float32, torch.bfloat16):
            loss = LOSSES[name](embeddings.to(dtype), labels)
            assert loss.dtype == torch.float32
            assert loss.item() == pytest.approx(LOSSES[name](embeddings, labels).item(), rel=0.05, abs=0.05)

    def test_nothing_to_learn_from(self, name):
        for labels in (torch.arange(6), torch.zeros(1, dtype=torch.long)):
            embeddings = torch.randn(len(labels), 3, requires_grad=True)
            loss = LOSSES[name](embeddings, labels)
            loss.backward()
            assert loss.item() == 0 and not embeddings.grad.any()

    def test_equal_embeddings_have_finite_gradients(self, name):
        one = torch.randn(1, 6).repeat(4, 1)
        cases = {
            "within an author": (torch.cat([one[:2], torch.randn(2, 6)]), torch.tensor([0, 0, 1, 1])),
            "across authors": (torch.cat([one[:2], torch.randn(2, 6)])[[0, 2, 1, 3]], torch.tensor([0, 0, 1, 1])),
            "everywhere": (one, torch.tensor([0, 0, 1, 1])),
            "zero vectors": (torch.zeros(4, 6), torch.tensor([0, 0, 1, 1])),
        }  # fmt: skip
        for case, (embeddings, labels) in cases.items():
            embeddings = embeddings.clone().requires_grad_()
            loss = LOSSES[name](embeddings, labels)
            loss.backward()
            assert torch.isfinite(loss) and torch.isfinite(embeddings.grad).all(), case

    def test_labels_are_names_only(self, name):
        embeddings, labels = batch(3)
        wanted = LOSSES[name](embeddings, labels)
        for other in (labels * 10**12 - 5, -labels, 7 - labels):
            assert LOSSES[name](embeddings, other) == wanted

    def test_order_and_length_do_not_matter(self, name):
        embeddings, labels = batch(4)
        order = torch.randperm(len(labels))
        scale = torch.rand(len(labels), 1) + 0.5
        wanted = LOSSES[name](embeddings, labels).item()
        assert LOSSES[name]((embeddings * scale)[order], labels[order]).item() == pytest.approx(wanted)

    def test_a_step_along_the_gradient_helps(self, name):
        embeddings, labels = batch(5)
        embeddings.requires_grad_()
        loss = LOSSES[name](embeddings, labels)
        (gradient,) = torch.autograd.grad(loss, embeddings)
        assert gradient.any() and LOSSES[name](embeddings - 1e-4 * gradient, labels) < loss

    def test_memory_of_4096_samples(self, name):
        """In a process of its own; (B, B) of float32 is 64 MB."""
        code = """
import resource, sys, torch
from helpers.losses import LOSSES
embeddings, labels = torch.randn(4096, 64, requires_grad=True), torch.arange(4096) // 8
LOSSES[sys.argv[1]](embeddings[:64], labels[:64]).backward()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
LOSSES[sys.argv[1]](embeddings, labels).backward()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
        done = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True, check=True)
        assert int(done.stdout) < 1.5e6


def test_make_loss():
    embeddings, labels = batch(0)
    assert make_loss("triplet", margin=0.7)(embeddings, labels) == semihard_triplet(embeddings, labels, 0.7)
    assert make_loss("topk")(embeddings, labels) == top_k(embeddings, labels, 4, 0.25)
    with pytest.raises(ValueError, match="loss 'arcface': one of triplet, topk, supcon"):
        make_loss("arcface")
    with pytest.raises(TypeError, match="temperature"):
        make_loss("triplet", temperature=1)(embeddings, labels)
