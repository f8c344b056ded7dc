"""Losses that learn a vector per author, against loops of their equations and torch."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from helpers.losses import make_loss
from tests.factories import uneven_vectors


def slow_arcface(embeddings, weight, labels, margin, scale):
    """The docstring of ArcFace, a sample at a time; and which sides of pi - margin occurred."""
    total, cases = 0, set()
    for row, label in zip(embeddings, labels):
        angle = (weight @ row / weight.norm(dim=1) / row.norm()).acos().tolist()
        cases.add(angle[label] <= math.pi - margin)
        moved = math.cos(angle[label]) - margin * math.sin(margin)
        if angle[label] <= math.pi - margin:
            moved = math.cos(angle[label] + margin)
        logits = [scale * (moved if k == label else math.cos(t)) for k, t in enumerate(angle)]
        total += math.log(sum(map(math.exp, logits))) - logits[label]
    return total / len(labels), cases


class TestArcFace:
    @pytest.mark.parametrize("margin, scale", [(0.5, 64.0), (1.5, 8.0)])
    def test_it_is_its_equation_written_as_loops(self, margin, scale):
        cases = set()
        for seed in range(4):
            embeddings, labels = uneven_vectors(seed)
            loss = make_loss("arcface", 7, 6, margin=margin, scale=scale).double()
            expected, seen = slow_arcface(embeddings, loss.weight, labels.tolist(), margin, scale)
            cases |= seen
            assert loss(embeddings, labels).item() == pytest.approx(expected)
        assert cases == ({True, False} if margin > 1 else {True}), "a case did not occur"


class TestSoftmaxCrossEntropy:
    def test_it_is_its_equation_written_as_loops(self):
        for seed in range(3):
            embeddings, labels = uneven_vectors(seed)
            loss = make_loss("mll", 7, 6).double()
            with torch.no_grad():
                loss.bias.normal_()
            total = 0
            for vector, label in zip(embeddings, labels.tolist()):
                root_mean_square = vector.square().mean().sqrt()  # 1 after it
                logits = (loss.weight @ vector / root_mean_square + loss.bias).tolist()
                total += math.log(sum(map(math.exp, logits))) - logits[label]
            assert loss(embeddings, labels).item() == pytest.approx(total / len(labels))

    def test_centred_it_is_blind_to_what_all_texts_have_in_common(self):
        rng = torch.Generator().manual_seed(0)
        vectors, labels = torch.randn(8, 6, generator=rng, dtype=torch.float64), torch.arange(8) % 5
        loss = make_loss("mll", 5, 6, centred=True).double()
        unit = normalize(vectors, dim=1)
        logits = 6**0.5 * normalize(unit - unit.mean(0), dim=1) @ loss.weight.T + loss.bias
        expected = torch.nn.functional.cross_entropy(logits, labels)
        assert torch.isclose(loss(vectors, labels), expected)
        alike = torch.cat([0.02 * unit, torch.ones(8, 1)], 1).requires_grad_()
        make_loss("mll", 5, 7, centred=True).double()(alike, labels).backward()
        assert alike.grad[:, :6].norm() > 5 * alike.grad[:, 6].norm()
