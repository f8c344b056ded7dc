"""ARR against its equations written as loops, at the limits of the bias, and as a loss."""

import math

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

from helpers.encoders.base import Encoder
from helpers.encoders.tfidf import TfidfEncoder
from helpers.losses.arr import (
    ARR,
    arr_loss,
    bias_of_batch,
    log_probabilities,
    released_targets,
    soft_targets,
)
from helpers.losses.pairwise import pairwise_cosines
from helpers.tokens.batch import Batch, Samples

TEMPERATURES = (0.5, 0.1, 0.05, 0.01)  # sawatphol2022 A.4
LABELS = [0, 0, 1, 1, 1, 2, 3, 3]


def vectors(seed, size=8, dim=5):
    return torch.randn(
        size, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def square(seed, size=8):
    return pairwise_cosines(vectors(seed, size))


def slow_probabilities(similarity, temperature, itself=False):
    """Eq. 1, a pair at a time. itself: the sum is over k = i as well."""
    size, p = len(similarity), {}
    for i in range(size):
        power = [math.exp(similarity[i][k] / temperature) for k in range(size)]
        total = sum(power[k] for k in range(size) if itself or k != i)
        p.update({(i, j): power[j] / total for j in range(size) if j != i})
    return p


def slow_loss(student, teacher, topic, labels, temperature, bias_temperature, targets):
    """Eq. 1 to 4 from three matrices of cosines. Returns the loss, B and S."""
    size = len(labels)
    p_f, p_g, p_h = (
        slow_probabilities(matrix, tau)
        for matrix, tau in (
            (student, temperature),
            (teacher, temperature),
            (topic, bias_temperature),
        )
    )
    pairs = [(i, j) for i in range(size) for j in range(size) if i != j and labels[i] == labels[j]]
    B = sum(p_h[pair] for pair in pairs) / len(pairs) if pairs else 0.0
    if targets == "released":
        S = {
            pair: p ** (1 - B)
            for pair, p in slow_probabilities(teacher, temperature, itself=True).items()
        }
    else:
        total = [sum(p_g[i, k] ** (1 - B) for k in range(size) if k != i) for i in range(size)]
        S = {(i, j): p ** (1 - B) / total[i] for (i, j), p in p_g.items()}
    return sum(-S[pair] * math.log(p_f[pair]) for pair in S) / size, B, S


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
    def test_probabilities(self, temperature):
        similarity = square(0)
        p = log_probabilities(similarity, temperature).exp()
        assert not p.diagonal().any() and torch.allclose(
            p.sum(1), torch.ones(8, dtype=torch.float64)
        )
        expected = slow_probabilities(similarity.tolist(), temperature)
        assert {pair: p[pair].item() for pair in expected} == pytest.approx(expected)

    @pytest.mark.parametrize("temperature", TEMPERATURES)
    @pytest.mark.parametrize("targets", ["paper", "released"])
    @pytest.mark.parametrize("bias_temperature", [None, 0.2])
    def test_the_loss_is_its_equations_written_as_loops(
        self, temperature, bias_temperature, targets
    ):
        for seed in range(3):
            student, teacher, topic = (vectors(3 * seed + n) for n in range(3))
            loss = ARR(
                Fixed(teacher),
                Fixed(topic),
                temperature=temperature,
                bias_temperature=bias_temperature,
                targets=targets,
            )
            value = loss(student, torch.tensor(LABELS), BATCH)
            matrices = [pairwise_cosines(v).tolist() for v in (student, teacher, topic)]
            expected, B, _ = slow_loss(
                *matrices, LABELS, temperature, bias_temperature or temperature, targets
            )
            assert value.dtype == torch.float64
            assert value.item() == pytest.approx(
                expected
            ) and loss.last_bias.item() == pytest.approx(B)

    @pytest.mark.parametrize("B", [0.0, 0.37, 0.9, 1.0])
    def test_targets_sum_to_one_and_those_released_do_not(self, B):
        log_p = log_probabilities(square(1), 0.1)
        S = soft_targets(log_p, B)
        assert (
            torch.allclose(S.sum(1), torch.ones(8, dtype=torch.float64)) and not S.diagonal().any()
        )
        released = released_targets(square(1), 0.1, B)
        assert not released.diagonal().any() and (released.sum(1) - 1).abs().min() > 0.01
        ratio = (S / released)[~torch.eye(8, dtype=torch.bool)].view(8, 7)
        assert torch.allclose(ratio, ratio[:, :1].expand(8, 7)), "they differ by a factor a row"

    def test_released_targets_shrink_with_the_temperature(self):
        sums = [
            released_targets(square(1), temperature, 0.2).sum().item()
            for temperature in TEMPERATURES
        ]
        assert sums == sorted(sums, reverse=True) and sums[-1] < 0.01 * sums[0]

    def test_the_limits_of_the_bias(self):
        log_p = log_probabilities(square(2), 0.05)
        assert torch.allclose(soft_targets(log_p, 0.0), log_p.exp())
        assert torch.allclose(soft_targets(log_p, 1.0), (1 - torch.eye(8, dtype=torch.float64)) / 7)
        entropy = [
            -(S * S.clamp(min=1e-300).log()).sum()
            for S in (soft_targets(log_p, B / 10) for B in range(11))
        ]
        assert entropy == sorted(entropy), "the more bias the flatter"

    def test_bias_without_pairs_and_of_a_model_that_knows_all(self):
        log_p = log_probabilities(square(3), 0.1)
        assert bias_of_batch(log_p, torch.arange(8)) == 0
        labels = torch.arange(4).repeat_interleave(2)
        knows = (labels[:, None] == labels).double()
        assert bias_of_batch(log_probabilities(knows, 0.01), labels).item() == pytest.approx(1)
        alike = log_probabilities(torch.zeros(8, 8), 0.1)
        assert bias_of_batch(alike, labels).item() == pytest.approx(1 / 7)

    def test_a_student_like_an_unbiased_teacher_is_at_the_minimum(self):
        similarity = square(4).requires_grad_()
        S = soft_targets(log_probabilities(similarity.detach(), 0.1), 0.0)
        (gradient,) = torch.autograd.grad(
            arr_loss(log_probabilities(similarity, 0.1), S), similarity
        )
        assert gradient.abs().max() < 1e-12

    @pytest.mark.parametrize("targets", ["paper", "released"])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_it_is_finite_where_probabilities_underflow(self, targets, dtype):
        """At 0.01 opposite vectors are e^200 apart, more than float32 holds; some are equal."""
        student = (
            torch.cat([torch.eye(3), -torch.eye(3)[:2], torch.eye(3)[:1]])
            .to(dtype)
            .requires_grad_()
        )
        teacher = -student.detach().float().roll(1, 0)
        for labels in (torch.tensor([0, 0, 1, 1, 2, 2]), torch.arange(6)):
            for topic in (torch.zeros(6, 2), torch.ones(6, 2)):
                loss = ARR(Fixed(teacher), Fixed(topic), temperature=0.01, targets=targets)(
                    student, labels, BATCH
                )
                (gradient,) = torch.autograd.grad(loss, student)
                assert (
                    loss.dtype == torch.float32
                    and torch.isfinite(loss)
                    and torch.isfinite(gradient).all()
                )

    def test_gradients_by_finite_differences(self):
        loss = ARR(Fixed(vectors(1)), TOPIC, temperature=0.2)
        assert torch.autograd.gradcheck(
            lambda e: loss(e, torch.tensor(LABELS), BATCH), vectors(0).requires_grad_()
        )


class TestTeacher:
    def test_it_is_no_part_of_the_loss(self):
        loss = ARR(Fixed(vectors(0), 0.5), TOPIC)
        assert not list(loss.parameters()) and list(loss.modules()) == [loss]
        assert not loss.state_dict()

    def test_it_stays_in_eval_mode_whatever_holds_it(self):
        teacher = Fixed(vectors(1), dropout=0.5).train()
        loss = ARR(teacher, TOPIC)
        values = []
        for holder in (
            loss.eval(),
            loss.train(),
            nn.ModuleList([loss]).train(),
            nn.ModuleList([loss.frozen[0]]).train(),
        ):
            values.append(loss(vectors(0), torch.tensor(LABELS), BATCH).item())
            assert not loss.frozen[0].training, holder
        assert len(set(values)) == 1
        assert teacher.training and teacher.embeddings.requires_grad, (
            "the one given is left as it was"
        )

    def test_gradients_reach_the_student_only_though_it_was_the_teacher(self):
        encoder = Fixed(vectors(1))
        loss = ARR(encoder, TOPIC)
        labels = torch.tensor(LABELS)
        before = loss(vectors(0), labels, BATCH).item()
        loss(encoder(BATCH), labels, BATCH).backward()
        assert encoder.embeddings.grad.any() and loss.frozen[0].embeddings.grad is None
        with torch.no_grad():
            encoder.embeddings.mul_(-1).add_(vectors(5))
        assert loss(vectors(0), labels, BATCH).item() == before, (
            "it does not learn with its student"
        )

    def test_it_leaves_the_random_numbers_of_the_student_as_they_are(self):
        loss, state = ARR(Fixed(vectors(1), dropout=0.5), TOPIC), torch.get_rng_state()
        loss(vectors(0), torch.tensor(LABELS), BATCH)
        assert torch.equal(torch.get_rng_state(), state)


class Words:
    """A tokenizer: token 7 is the word "w7"."""

    def decode(self, ids):
        return " ".join(f"w{int(number)}" for number in ids)


class TestTopicBias:
    def test_sparse_rows_and_dense_ones_are_one_bias(self):
        """One sample has no known word: a zero row, with a cosine of 0 to all others."""
        rows = vectors(3).clamp(min=0)
        rows[2] = 0
        values = []
        for topic in (Fixed(rows), Sparse(rows)):
            loss = ARR(Fixed(vectors(1)), topic)
            values.append(
                (loss(vectors(0), torch.tensor(LABELS), BATCH).item(), loss.last_bias.item())
            )
        assert values[0] == pytest.approx(values[1], rel=1e-6)

    @pytest.mark.parametrize("kind", ["tfidf", "bow"])
    def test_of_an_encoder_that_counts_words(self, make_store, kind):
        store = make_store([9, 5, 12, 7], longest=7, vocabulary=15)
        topic = TfidfEncoder(kind, Words()).fit(Samples.of_posts(store), max_tokens=4)
        samples = Samples(
            store,
            np.array([0, 9, 11, 14, 30]),
            np.array([5, 1, 3, 2, 3]),
            np.array([0, 1, 1, 2, 3]),
        )
        batch = samples.batch(np.arange(5), 4)
        loss = ARR(Fixed(vectors(1, 5)), topic, temperature=0.2)
        loss(vectors(0, 5), batch.authors, batch)
        rows = topic(batch).toarray().astype(float)
        p_h = slow_probabilities((rows @ rows.T).tolist(), 0.2)
        assert loss.last_bias.item() == pytest.approx((p_h[1, 2] + p_h[2, 1]) / 2, rel=1e-5)


def test_a_student_learns_from_a_teacher_and_no_label():
    """Sixteen samples that the student knows by number only become as near as the teacher's."""
    generator = torch.Generator().manual_seed(0)
    teacher = Fixed(torch.randn(16, 4, generator=generator))
    student = nn.Parameter(torch.randn(16, 8, generator=generator))
    loss = ARR(teacher, Fixed(torch.randn(16, 4, generator=generator)))
    optimizer = torch.optim.SGD([student], lr=5.0)
    before = agreement(student, teacher)
    for _ in range(200):
        optimizer.zero_grad()
        loss(student, torch.zeros(16), BATCH).backward()
        optimizer.step()
    assert before < 0.5 and agreement(student, teacher) > 0.9 and 0 < loss.last_bias < 1


def agreement(student, teacher):
    """The correlation of all cosines of the student with those of the teacher."""
    cosines = [pairwise_cosines(rows.detach()).flatten() for rows in (student, teacher.embeddings)]
    return np.corrcoef(*cosines)[0, 1]
