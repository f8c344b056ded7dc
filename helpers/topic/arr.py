"""Authorship representation regularization, ARR (sawatphol2022 section 2): a student unlearns what topic explains.

A teacher G, trained and frozen, says how likely each sample of a batch belongs to each other one. A bias model H that
knows topics only says the same. The more of the true pairs H finds, the flatter the teacher's answers become before
the student F learns them, from the pretrained weights that the teacher began with, or the teacher's own. Nothing but F
is needed afterwards.

Letters: N samples of a batch, D dimensions, M posts, L tokens; p(i, j) and B as in the paper.
"""

import copy
from collections.abc import Callable

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity
from torch import Tensor, nn

from helpers.encoders.tfidf import sample_texts
from helpers.losses.registry import cosines
from helpers.tokens.batch import Batch
from helpers.tokens.store import TokenStore
from helpers.tokens.batch import PAD

VECTORIZERS = {"tfidf": TfidfVectorizer, "bow": lambda: CountVectorizer(binary=True)}
TARGETS = ("paper", "released")


def log_probabilities(similarity: Tensor, temperature: float) -> Tensor:
    """Eq. 1: (N, N) similarities -> log p(i, j), the softmax of ``similarity / temperature`` over all j but i.

    The diagonal is -inf. In float32 at least and never through p itself, which underflows at a temperature of 0.01.
    Raises ValueError for fewer than two samples.
    """
    if len(similarity) < 2:
        raise ValueError(f"{len(similarity)} samples in a batch: need at least 2")
    logits = similarity.to(torch.promote_types(similarity.dtype, torch.float32)) / temperature
    return logits.masked_fill(_itself(logits), float("-inf")).log_softmax(1)


def bias(log_p_h: Tensor, labels: Tensor) -> Tensor:
    """Eq. 2: B, the mean of p_h over the pairs i != j of one author; 0 where there are none. A scalar in 0..1.

    log_p_h: (N, N) of eq. 1. labels: (N,).
    """
    same = (labels[:, None] == labels) & ~_itself(log_p_h)
    return (log_p_h.exp() * same).sum() / same.sum().clamp(min=1)


def soft_targets(log_p_g: Tensor, B: Tensor | float) -> Tensor:
    """Eq. 3: S(i, j), p_g(i, j)^(1 - B) divided by its sum over j != i. Rows add up to 1, the diagonal is 0.

    log_p_g: (N, N) of eq. 1. B = 0 leaves p_g as it is, B = 1 makes all j != i alike.
    """
    return ((1 - B) * log_p_g).masked_fill(_itself(log_p_g), float("-inf")).softmax(1)


def released_targets(similarity: Tensor, temperature: float, B: Tensor | float) -> Tensor:
    """S of the released code: p_g(i, j)^(1 - B) divided by (sum of p_g(i, k) over all k)^(1 - B), k = i as well.

    similarity: (N, N) of the teacher, with its diagonal. Rows do not add up to 1: a sample is nearest to itself, so
    they shrink as the temperature falls, and the loss with them; at B = 1 each entry is 1. The diagonal is 0.
    """
    logits = similarity.to(torch.promote_types(similarity.dtype, torch.float32)) / temperature
    return ((1 - B) * logits.log_softmax(1)).exp().masked_fill(_itself(logits), 0.0)


def arr_loss(log_p_f: Tensor, S: Tensor) -> Tensor:
    """Eq. 4 with the sign of the released code: the cross-entropy -sum over j of S(i, j) log p_f(i, j), mean over i."""
    return -(S * log_p_f.masked_fill(_itself(S), 0.0)).sum(1).mean()


def _itself(square: Tensor) -> Tensor:
    return torch.eye(len(square), dtype=torch.bool, device=square.device)


class TopicBias:
    """The bias model H: cosines of word counts, which tell topics and little of style.

    vectorizer: a fitted one of scikit-learn. tokenizer: has ``decode(ids) -> text``.
    """

    def __init__(self, vectorizer, tokenizer):
        self.vectorizer, self.tokenizer = vectorizer, tokenizer

    @classmethod
    def fit(
        cls, store: TokenStore, tokenizer, kind: str = "tfidf", posts: int = 500_000, length: int = 32, seed: int = 0
    ) -> "TopicBias":
        """Fit on at most ``posts`` posts of a training store, each cut to ``length`` tokens as the encoder's are.

        kind: "tfidf", scikit-learn's default settings as released, or "bow", words that occur or do not.
        Raises ValueError for another kind, or where the posts hold no word.
        """
        if kind not in VECTORIZERS:
            raise ValueError(f"kind {kind!r}: one of {', '.join(VECTORIZERS)}")
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.choice(store.posts, min(posts, store.posts), replace=False))
        texts = sample_texts(store, tokenizer, chosen, np.ones(len(chosen), np.int64), length)
        return cls(VECTORIZERS[kind]().fit(texts), tokenizer)

    def __call__(self, batch: Batch) -> Tensor:
        """Batch of N samples -> (N, N) cosines in 0..1, float32; 0 for a sample without any known word."""
        similarity = cosine_similarity(self.vectorizer.transform(self.texts(batch)))
        return torch.from_numpy(similarity).to(batch.tokens.device, torch.float32)

    def texts(self, batch: Batch) -> list[str]:
        """What the batch holds of each sample, its posts joined by newlines."""
        tokens, real = batch.tokens.cpu().numpy(), batch.mask.cpu().numpy()
        return [
            "\n".join(self.tokenizer.decode(post[post != PAD]) for post in sample[posts])
            for sample, posts in zip(tokens, real)
        ]


class ARR(nn.Module):
    """The loss of a student F: eq. 4 against a teacher's probabilities, flattened by B of the batch.

    teacher: G, any encoder of batches; a copy is kept as it is now, without gradients, in eval mode whatever the mode
    of this module, and beside its parameters and state: nothing trains it or saves it. A training that is continued
    must be given the same teacher.
    topic_bias: H, batch -> (N, N) similarities. temperature: tau of G, F and H (Appendix A.4: 0.5, 0.1, 0.05, 0.01).
    bias_temperature: another one for H. targets: "paper" or "released", see :func:`released_targets`.
    ``last_bias``: B of the last batch, a scalar tensor.
    Raises ValueError for a temperature that is not positive or unknown targets.
    """

    needs_batch = True

    def __init__(
        self,
        teacher: nn.Module,
        topic_bias: Callable[[Batch], Tensor],
        temperature: float = 0.1,
        bias_temperature: float | None = None,
        targets: str = "paper",
    ):
        super().__init__()
        if targets not in TARGETS:
            raise ValueError(f"targets {targets!r}: one of {', '.join(TARGETS)}")
        bias_temperature = temperature if bias_temperature is None else bias_temperature
        if not min(temperature, bias_temperature) > 0:
            raise ValueError(f"temperatures {temperature} and {bias_temperature}: both must be above 0")
        # a copy, for the student is often the same object; past nn.Module, which would make it a part of this one
        object.__setattr__(self, "teacher", copy.deepcopy(teacher).requires_grad_(False))
        self.topic_bias, self.temperature, self.bias_temperature = topic_bias, temperature, bias_temperature
        self.targets, self.last_bias = targets, torch.tensor(float("nan"))

    def _apply(self, change, recurse=True):
        self.teacher._apply(change, recurse)  # not a part, so it would not move to a device with the others
        return super()._apply(change, recurse)

    def forward(self, embeddings: Tensor, labels: Tensor, batch: Batch) -> Tensor:
        """The student's embeddings (N, D) and the authors (N,) of a batch, and the batch itself -> scalar."""
        with torch.no_grad():
            B = bias(log_probabilities(self.topic_bias(batch), self.bias_temperature), labels)
            similarity = cosines(self.teacher.eval()(batch))
            if self.targets == "released":
                S = released_targets(similarity, self.temperature, B)
            else:
                S = soft_targets(log_probabilities(similarity, self.temperature), B)
        self.last_bias = B
        return arr_loss(log_probabilities(cosines(embeddings), self.temperature), S)
