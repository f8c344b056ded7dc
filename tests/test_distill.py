"""ARR against its equations written as loops, at the limits of B, and as the loss of a training."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sklearn.feature_extraction.text import TfidfVectorizer
from test_training import RECIPE, Killed, Setting, dies_at, equal, same_history
from torch import nn

from helpers.encoders.tfidf import sample_texts
from helpers.training.checkpoints import weights
from helpers.topic.arr import (
    ARR,
    TopicBias,
    arr_loss,
    bias,
    log_probabilities,
    released_targets,
    soft_targets,
)
from helpers.losses.registry import cosines
from helpers.tokens.batch import gather
from helpers.tokens.samplers import draw_batch

TEMPERATURES = (0.5, 0.1, 0.05, 0.01)  # sawatphol2022 A.4
LABELS = [0, 0, 1, 1, 1, 2, 3, 3]


def vectors(seed, size=8, dim=5):
    return torch.randn(size, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def square(seed, size=8):
    return cosines(vectors(seed, size))


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
        for matrix, tau in ((student, temperature), (teacher, temperature), (topic, bias_temperature))
    )
    pairs = [(i, j) for i in range(size) for j in range(size) if i != j and labels[i] == labels[j]]
    B = sum(p_h[pair] for pair in pairs) / len(pairs) if pairs else 0.0
    if targets == "released":
        S = {pair: p ** (1 - B) for pair, p in slow_probabilities(teacher, temperature, itself=True).items()}
    else:
        total = [sum(p_g[i, k] ** (1 - B) for k in range(size) if k != i) for i in range(size)]
        S = {(i, j): p ** (1 - B) / total[i] for (i, j), p in p_g.items()}
    return sum(-S[pair] * math.log(p_f[pair]) for pair in S) / size, B, S


class Given(nn.Module):
    """An "encoder" that gives fixed vectors, with dropout."""

    def __init__(self, embeddings, dropout=0.0):
        super().__init__()
        self.embeddings, self.dropout = nn.Parameter(embeddings), nn.Dropout(dropout)

    def forward(self, batch):
        return self.dropout(self.embeddings)


class TestEquations:
    @pytest.mark.parametrize("temperature", TEMPERATURES)
    def test_probabilities(self, temperature):
        similarity = square(0)
        p = log_probabilities(similarity, temperature).exp()
        assert not p.diagonal().any() and torch.allclose(p.sum(1), torch.ones(8, dtype=torch.float64))
        wanted = slow_probabilities(similarity.tolist(), temperature)
        assert {pair: p[pair].item() for pair in wanted} == pytest.approx(wanted)

    @pytest.mark.parametrize("temperature", TEMPERATURES)
    @pytest.mark.parametrize("targets", ["paper", "released"])
    @pytest.mark.parametrize("bias_temperature", [None, 0.2])
    def test_the_loss_is_its_equations_written_as_loops(self, temperature, bias_temperature, targets):
        for seed in range(3):
            student, teacher, topic = (vectors(3 * seed + n) for n in range(3))
            loss = ARR(Given(teacher), lambda _: cosines(topic), temperature, bias_temperature, targets)
            value = loss(student, torch.tensor(LABELS), None)
            matrices = [cosines(v).tolist() for v in (student, teacher, topic)]
            wanted, B, _ = slow_loss(*matrices, LABELS, temperature, bias_temperature or temperature, targets)
            assert value.dtype == torch.float64
            assert value.item() == pytest.approx(wanted) and loss.last_bias.item() == pytest.approx(B)

    @pytest.mark.parametrize("B", [0.0, 0.37, 0.9, 1.0])
    def test_targets_sum_to_one_and_those_released_do_not(self, B):
        log_p = log_probabilities(square(1), 0.1)
        S = soft_targets(log_p, B)
        assert torch.allclose(S.sum(1), torch.ones(8, dtype=torch.float64)) and not S.diagonal().any()
        released = released_targets(square(1), 0.1, B)
        assert not released.diagonal().any() and (released.sum(1) - 1).abs().min() > 0.01
        ratio = (S / released)[~torch.eye(8, dtype=torch.bool)].view(8, 7)
        assert torch.allclose(ratio, ratio[:, :1].expand(8, 7)), "they differ by a factor a row"

    def test_released_targets_shrink_with_the_temperature(self):
        sums = [released_targets(square(1), temperature, 0.2).sum().item() for temperature in TEMPERATURES]
        assert sums == sorted(sums, reverse=True) and sums[-1] < 0.01 * sums[0]

    def test_the_limits_of_the_bias(self):
        log_p = log_probabilities(square(2), 0.05)
        assert torch.allclose(soft_targets(log_p, 0.0), log_p.exp())
        assert torch.allclose(soft_targets(log_p, 1.0), (1 - torch.eye(8, dtype=torch.float64)) / 7)
        entropy = [-(S * S.clamp(min=1e-300).log()).sum() for S in (soft_targets(log_p, B / 10) for B in range(11))]
        assert entropy == sorted(entropy), "the more bias the flatter"

    def test_bias_without_pairs_and_of_a_model_that_knows_all(self):
        log_p = log_probabilities(square(3), 0.1)
        assert bias(log_p, torch.arange(8)) == 0
        labels = torch.arange(4).repeat_interleave(2)
        knows = (labels[:, None] == labels).double()
        assert bias(log_probabilities(knows, 0.01), labels).item() == pytest.approx(1)
        alike = log_probabilities(torch.zeros(8, 8), 0.1)
        assert bias(alike, labels).item() == pytest.approx(1 / 7)

    def test_a_student_like_an_unbiased_teacher_is_at_the_minimum(self):
        similarity = square(4).requires_grad_()
        S = soft_targets(log_probabilities(similarity.detach(), 0.1), 0.0)
        (gradient,) = torch.autograd.grad(arr_loss(log_probabilities(similarity, 0.1), S), similarity)
        assert gradient.abs().max() < 1e-12

    @pytest.mark.parametrize("targets", ["paper", "released"])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_it_is_finite_where_probabilities_underflow(self, targets, dtype):
        """At 0.01 opposite vectors are e^200 apart, more than float32 holds; some are equal, and nothing is a pair."""
        student = torch.cat([torch.eye(3), -torch.eye(3)[:2], torch.eye(3)[:1]]).to(dtype).requires_grad_()
        teacher = -student.detach().float().roll(1, 0)
        for labels in (torch.tensor([0, 0, 1, 1, 2, 2]), torch.arange(6)):
            for topic in (torch.zeros(6, 6), torch.ones(6, 6)):
                loss = ARR(Given(teacher), lambda _: topic, 0.01, targets=targets)(student, labels, None)
                (gradient,) = torch.autograd.grad(loss, student)
                assert loss.dtype == torch.float32 and torch.isfinite(loss) and torch.isfinite(gradient).all()

    def test_gradients_by_finite_differences(self):
        loss = ARR(Given(vectors(1)), lambda _: square(2), 0.2)
        assert torch.autograd.gradcheck(lambda e: loss(e, torch.tensor(LABELS), None), vectors(0).requires_grad_())

    def test_errors(self):
        with pytest.raises(ValueError, match="1 samples in a batch: need at least 2"):
            log_probabilities(torch.ones(1, 1), 0.1)
        with pytest.raises(ValueError, match="targets 'code': one of paper, released"):
            ARR(Given(vectors(0)), None, targets="code")
        for temperatures in ((0, None), (0.1, -1), (math.nan, None)):
            with pytest.raises(ValueError, match="both must be above 0"):
                ARR(Given(vectors(0)), None, *temperatures)


class TestTeacher:
    def test_it_is_no_part_of_the_loss(self):
        loss = ARR(Given(vectors(0), 0.5), lambda _: square(2))
        assert not list(loss.parameters()) and list(loss.modules()) == [loss]
        assert not loss.state_dict() and not weights(loss=loss)

    def test_it_stays_in_eval_mode_whatever_holds_it(self):
        teacher = Given(vectors(1), dropout=0.5).train()
        loss = ARR(teacher, lambda _: square(2))
        values = []
        for holder in (loss.eval(), loss.train(), nn.ModuleList([loss]).train(), nn.ModuleList([loss.teacher]).train()):
            values.append(loss(vectors(0), torch.tensor(LABELS), None).item())
            assert not loss.teacher.training, holder
        assert len(set(values)) == 1
        assert teacher.training and teacher.embeddings.requires_grad, "the one given is left as it was"

    def test_gradients_reach_the_student_only_though_it_was_the_teacher(self):
        encoder = Given(vectors(1))
        loss = ARR(encoder, lambda _: square(2))
        labels = torch.tensor(LABELS)
        before = loss(vectors(0), labels, None).item()
        loss(encoder(None), labels, None).backward()
        assert encoder.embeddings.grad.any() and loss.teacher.embeddings.grad is None
        with torch.no_grad():
            encoder.embeddings.mul_(-1).add_(vectors(5))
        assert loss(vectors(0), labels, None).item() == before, "it does not learn with its student"

    def test_it_moves_with_the_loss(self):
        loss = ARR(Given(vectors(1).float()), lambda _: square(2))
        assert loss.to("meta").teacher.embeddings.device.type == "meta"


class Words:
    """A tokenizer: token 7 is the word "w7"."""

    def decode(self, ids):
        return " ".join(f"w{int(number)}" for number in ids)


class TestTopicBias:
    @pytest.fixture
    def store(self, make_store):
        return make_store([9, 5, 12, 7], longest=7, vocabulary=15)

    @pytest.mark.parametrize("kind", ["tfidf", "bow"])
    def test_it_is_the_cosine_of_what_the_batch_holds(self, store, kind):
        """Posts of 0 to 7 tokens, cut to 4, samples of 1 to 5 posts."""
        model = TopicBias.fit(store, Words(), kind, length=4)
        first, count = np.array([0, 9, 11, 14, 30]), np.array([5, 1, 3, 2, 3])
        batch = gather(store, np.array([0, 1, 1, 2, 3]), first, count, 4)
        texts = sample_texts(store, Words(), first, count, 4)
        assert model.texts(batch) == texts
        single = sample_texts(store, Words(), np.arange(store.posts), np.ones(store.posts, int), 4)
        words = sorted(set(" ".join(single).split()))
        counted = np.array([[text.split().count(word) for word in words] for text in texts], float)
        if kind == "bow":
            rows = np.minimum(counted, 1)
        else:
            holding = np.array([sum(word in text.split() for text in single) for word in words])
            rows = counted * (np.log((1 + len(single)) / (1 + holding)) + 1)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        similarity = model(batch)
        assert similarity.dtype == torch.float32 and similarity.shape == (5, 5)
        np.testing.assert_allclose(similarity, rows @ rows.T, atol=1e-6)

    def test_a_sample_without_a_known_word(self, store):
        model = TopicBias(TfidfVectorizer().fit(["w1 w2"]), Words())
        similarity = model(gather(store, np.array([0, 1]), np.array([0, 9]), np.array([1, 1]), 4))
        assert not similarity.isnan().any()

    def test_a_sample_of_the_posts(self, store):
        fitted = [TopicBias.fit(store, Words(), posts=6, seed=seed).vectorizer.idf_ for seed in (0, 0, 1)]
        assert np.array_equal(fitted[0], fitted[1]) and not np.array_equal(fitted[0], fitted[2])

    def test_errors(self, store):
        with pytest.raises(ValueError, match="kind 'lda': one of tfidf, bow"):
            TopicBias.fit(store, Words(), "lda")


class Taught(Setting):
    """A tiny training under a trained teacher."""

    def __init__(self, make_store, folder):
        super().__init__(make_store)
        self.teacher, _ = self.train(folder / "teacher", replace(RECIPE, steps=40, lr=0.01, eval_every=40))
        self.topics = TopicBias.fit(self.store, Words(), length=8)

    def loss(self, temperature=0.1, **settings):
        return ARR(self.teacher, self.topics, temperature, **settings)


@pytest.fixture
def taught(make_store, tmp_path):
    return Taught(make_store, tmp_path)


class TestTraining:
    def test_a_student_learns_from_embeddings_it_never_saw_labels_for(self, taught, tmp_path):
        student, before = taught.encoder(seed=8), taught.score(taught.encoder(seed=8))["MRR"]
        kept = [weight.clone() for weight in taught.teacher.parameters()]
        loss = taught.loss()
        recipe = replace(RECIPE, steps=80, lr=0.01, eval_every=40)
        _, history = taught.train(tmp_path / "student", recipe, encoder=student, loss=loss)
        assert history.MRR.iloc[-1] > before + 0.2 and history.loss.iloc[-1] < history.loss.iloc[0]
        assert 0 < loss.last_bias < 1
        assert all(torch.equal(a, b) for a, b in zip(kept, loss.teacher.parameters()))
        assert all(name.split(".")[0] in ("encoder", "optimizer")
                   for name in load_file(tmp_path / "student" / "last.safetensors"))  # fmt: skip

    def test_killed_and_continued_it_ends_the_same(self, taught, tmp_path):
        """With dropout: what the teacher does leaves the student's random numbers as they are."""
        taught.train(tmp_path / "whole", encoder=taught.encoder(seed=8, dropout=0.3), loss=taught.loss())
        for step in (4, 17):
            with pytest.raises(Killed):
                encoder, draw = taught.encoder(seed=8, dropout=0.3), dies_at(step, taught.draw)
                taught.train(tmp_path / "killed", encoder=encoder, loss=taught.loss(), draw=draw)
        taught.train(tmp_path / "killed", encoder=taught.encoder(seed=9, dropout=0.3), loss=taught.loss())
        assert taught.drawn == list(range(10, 30))
        for name in ("best.safetensors", "last.safetensors"):
            assert equal(tmp_path / "whole" / name, tmp_path / "killed" / name), name
        assert same_history(tmp_path / "whole", tmp_path / "killed")

    def test_a_teacher_with_a_count_branch(self, taught):
        """In eval mode it joins counts to the stream; the student in training is the stream alone."""
        teacher = taught.encoder(seed=8, counts=32)
        teacher.counts.fit(taught.store, posts=4, length=8)
        batch = draw_batch(taught.store, 3, 0, authors=6, samples=2, length=8)
        student = taught.encoder(seed=1)(batch)
        loss = ARR(teacher, taught.topics)
        value = loss(student, batch.authors, batch).item()
        joined = teacher.eval()(batch)
        assert joined.shape[1] > student.shape[1]
        matrices = [cosines(v.detach()).tolist() for v in (student, joined)] + [taught.topics(batch).tolist()]
        wanted, B, _ = slow_loss(*matrices, batch.authors.tolist(), 0.1, 0.1, "paper")
        assert value == pytest.approx(wanted, rel=1e-5) and loss.last_bias.item() == pytest.approx(B, rel=1e-5)
