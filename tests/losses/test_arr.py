"""ARR against its equations written as loops, at the limits of the bias, and as a loss."""

import math

import pytest
import torch
from scipy import sparse
from torch import nn

from helpers.encoders.base import Encoder
from helpers.losses.arr import ARR, bias_of_batch, log_probabilities, released_targets, soft_targets
from helpers.losses.pairwise import pairwise_cosines
from helpers.tokens.batch import Batch

TEMPERATURES = (0.5, 0.01)  # the ends of sawatphol2022 A.4
LABELS = [0, 0, 1, 1, 1, 2, 3, 3]


def vectors(seed):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(8, 5, generator=rng, dtype=torch.float64)


def square(seed):
    return pairwise_cosines(vectors(seed))


def slow_probabilities(similarity, temperature, itself=False):
    """Eq. 1, a pair at a time. itself: the sum is over k = i as well."""
    size, p = len(similarity), {}
    for i in range(size):
        power = [math.exp(similarity[i][k] / temperature) for k in range(size)]
        total = sum(power[k] for k in range(size) if itself or k != i)
        p.update({(i, j): power[j] / total for j in range(size) if j != i})
    return p


def slow_loss(student, teacher, topic, labels, temperature, bias_temperature, targets):
    """Eq. 1 to 4 from three matrices of cosines."""
    size = len(labels)
    p_f = slow_probabilities(student, temperature)
    p_g = slow_probabilities(teacher, temperature)
    p_h = slow_probabilities(topic, bias_temperature)
    pairs = [(i, j) for i in range(size) for j in range(size) if i != j and labels[i] == labels[j]]
    B = sum(p_h[pair] for pair in pairs) / len(pairs) if pairs else 0.0
    if targets == "released":
        of_all = slow_probabilities(teacher, temperature, itself=True)
        S = {pair: p ** (1 - B) for pair, p in of_all.items()}
    else:
        total = [sum(p_g[i, k] ** (1 - B) for k in range(size) if k != i) for i in range(size)]
        S = {(i, j): p ** (1 - B) / total[i] for (i, j), p in p_g.items()}
    return sum(-S[pair] * math.log(p_f[pair]) for pair in S) / size


class Fixed(Encoder):
    """An encoder that gives fixed vectors, with dropout."""

    def __init__(self, embeddings, dropout=0.0):
        super().__init__()
        self.embeddings, self.dropout = nn.Parameter(embeddings), nn.Dropout(dropout)

    def forward(self, batch):
        return self.dropout(self.embeddings)


class Sparse(Encoder):
    """An encoder that gives fixed sparse unit rows."""

    def __init__(self, embeddings):
        super().__init__()
        self.rows = sparse.csr_matrix(nn.functional.normalize(embeddings, dim=1).numpy())

    def forward(self, batch):
        return self.rows


TOPIC = Fixed(vectors(2))
BATCH = Batch(*(torch.zeros(8, 1) for _ in range(6)))  # the encoders above do not read it


class TestEquations:
    @pytest.mark.parametrize("temperature", TEMPERATURES)
    @pytest.mark.parametrize("targets", ["paper", "released"])
    @pytest.mark.parametrize("bias_temperature", [None, 0.2])
    def test_the_loss_is_its_equations_written_as_loops(
        self, temperature, bias_temperature, targets
    ):
        for seed in range(3):
            student, teacher, topic = (vectors(3 * seed + n) for n in range(3))
            about = {"temperature": temperature, "bias_temperature": bias_temperature}
            loss = ARR(Fixed(teacher), Fixed(topic), targets=targets, **about)
            value = loss(student, torch.tensor(LABELS), BATCH)
            matrices = [pairwise_cosines(v).tolist() for v in (student, teacher, topic)]
            both = temperature, bias_temperature or temperature
            expected = slow_loss(*matrices, LABELS, *both, targets)
            assert value.item() == pytest.approx(expected)

    @pytest.mark.parametrize("B", [0.0, 0.37, 1.0])
    def test_targets_sum_to_one_and_those_released_do_not(self, B):
        log_p = log_probabilities(square(1), 0.1)
        S = soft_targets(log_p, B)
        assert not S.diagonal().any() and S.sum(1).tolist() == pytest.approx([1] * 8)
        released = released_targets(square(1), 0.1, B)
        assert not released.diagonal().any() and (released.sum(1) - 1).abs().min() > 0.01
        ratio = (S / released)[~torch.eye(8, dtype=torch.bool)].view(8, 7)
        assert torch.allclose(ratio, ratio[:, :1].expand(8, 7)), "they differ by a factor a row"

    def test_bias_without_pairs_and_of_a_model_that_knows_all(self):
        log_p = log_probabilities(square(3), 0.1)
        assert bias_of_batch(log_p, torch.arange(8)) == 0
        labels = torch.arange(4).repeat_interleave(2)
        knows = (labels[:, None] == labels).double()
        assert bias_of_batch(log_probabilities(knows, 0.01), labels).item() == pytest.approx(1)
        alike = log_probabilities(torch.zeros(8, 8), 0.1)
        assert bias_of_batch(alike, labels).item() == pytest.approx(1 / 7)

    @pytest.mark.parametrize("targets", ["paper", "released"])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_it_is_finite_where_probabilities_underflow(self, targets, dtype):
        """At 0.01 opposite vectors are e^200 apart, more than float32 holds; some are equal."""
        axes = torch.eye(3, dtype=dtype)
        student = torch.cat([axes, -axes[:2], axes[:1]]).requires_grad_()
        teacher = -student.detach().float().roll(1, 0)
        for labels in (torch.tensor([0, 0, 1, 1, 2, 2]), torch.arange(6)):
            for topic in (torch.zeros(6, 2), torch.ones(6, 2)):
                arr = ARR(Fixed(teacher), Fixed(topic), temperature=0.01, targets=targets)
                loss = arr(student, labels, BATCH)
                (gradient,) = torch.autograd.grad(loss, student)
                assert loss.dtype == torch.float32
                assert torch.isfinite(loss) and torch.isfinite(gradient).all()


class TestTeacher:
    def test_it_stays_in_eval_mode_whatever_holds_it(self):
        teacher = Fixed(vectors(1), dropout=0.5).train()
        loss = ARR(teacher, TOPIC)
        assert not list(loss.parameters()) and not loss.state_dict(), "it is no part of the loss"
        values = set()
        for _ in (loss.eval(), nn.ModuleList([loss]).train(), loss.frozen[0].train()):
            values.add(loss(vectors(0), torch.tensor(LABELS), BATCH).item())
            assert not loss.frozen[0].training
        assert len(values) == 1
        assert teacher.training and teacher.embeddings.requires_grad, "the given one is as it was"

    def test_gradients_reach_the_student_only_though_it_was_the_teacher(self):
        encoder = Fixed(vectors(1))
        loss = ARR(encoder, TOPIC)
        labels = torch.tensor(LABELS)
        before = loss(vectors(0), labels, BATCH).item()
        loss(encoder(BATCH), labels, BATCH).backward()
        assert encoder.embeddings.grad.any() and loss.frozen[0].embeddings.grad is None
        with torch.no_grad():
            encoder.embeddings.mul_(-1).add_(vectors(5))
        assert loss(vectors(0), labels, BATCH).item() == before, "it learns with nobody"


def test_sparse_topics_and_dense_ones_are_one_bias():
    """One sample has no known word: a zero row, with a cosine of 0 to all others."""
    rows = vectors(3).clamp(min=0)
    rows[2] = 0
    values = []
    for topic in (Fixed(rows), Sparse(rows)):
        loss = ARR(Fixed(vectors(1)), topic)
        values.append(loss(vectors(0), torch.tensor(LABELS), BATCH).item())
    assert values[0] == pytest.approx(values[1], rel=1e-6)
