"""Encoders that count words: the baselines a user can fit in a minute, and the topic model of ARR.

They read the same text as every encoder, the first L tokens of each post of a sample: a table that gives a baseline
whole posts and an encoder 32 tokens of each is not a fair table.
"""

import re
from collections.abc import Callable

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from helpers.encoders.base import Encoder
from helpers.tokens.batch import PAD, Batch, Samples
from helpers.tokens.samplers.windows import training_windows
from helpers.tokens.store import TokenStore

BUCKETS = 2**18  # for the hashes of pairs of subwords
FIT_POSTS = 500_000  # as released


def _weighting(name="TfidfVectorizer", **settings):
    from sklearn.feature_extraction import (
        text,  # here: it takes a second, and a trained encoder needs none of it
    )

    return getattr(text, name)(
        **settings, **({"dtype": np.float32} if name != "TfidfTransformer" else {})
    )


WEIGHTINGS: dict[str, Callable] = {  # kind -> () -> what fits and transforms
    # as khan2021's authors released it: case kept, stop words and words in more than 90% of the texts removed
    "tfidf_word": lambda: _weighting(lowercase=False, stop_words="english", max_df=0.9, max_features=20_000),
    # the strong one: characters within word boundaries
    "tfidf_char": lambda: _weighting(
        lowercase=False, analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=3, max_features=300_000),
    # no letter is left to tell a topic: case, digits, marks, spaces and line ends, as they follow each other
    "tfidf_shape": lambda: _weighting(
        preprocessor=shapes, analyzer="char", ngram_range=(1, 6), sublinear_tf=True, min_df=3, max_features=300_000),
    # the encoder's own subwords and pairs of neighbours: what LSA starts from
    "tfidf_subword": lambda: _weighting("TfidfTransformer", sublinear_tf=True),
    "topics": lambda: _weighting("TfidfTransformer", sublinear_tf=True),  # no text: each listed topic is a word
    # PAN's baseline (tyo2021 section 3)
    "tfidf_4grams": lambda: _weighting(analyzer="char", ngram_range=(4, 4), max_features=3000),
    "tfidf": _weighting,  # scikit-learn's defaults (sawatphol2022)
    "bow": lambda: _weighting("CountVectorizer", binary=True)}  # words, there or not (sawatphol2022)  # fmt: skip


def shapes(text: str) -> str:
    """A text without its letters: "A" for a capital of A-Z, "a" for a run of others, "0" for digits.

    Text distortion (Stamatatos 2017), which keeps frequent words, taken to its end.
    """
    return re.sub(r"[^\W\d_A-Z]+", "a", re.sub("[A-Z]", "A", re.sub(r"\d+", "0", text.strip())))


def ngram_counts(tokens: Tensor, vocabulary: int, buckets: int) -> tuple[Tensor, Tensor, Tensor]:
    """The features that occur in each sample; pairs within a post are hashed into ``buckets`` beyond the vocabulary.

    tokens : (B, M, L) int64, PAD below 0. Returns sample, feature (0 .. vocabulary + buckets - 1) and count,
    (occurring,) each, sorted by sample, then feature.
    """
    features = vocabulary + buckets
    sample = torch.arange(len(tokens), device=tokens.device)[:, None, None].expand_as(tokens)
    left, right = tokens[:, :, :-1], tokens[:, :, 1:]
    single, pair = tokens >= 0, right >= 0
    hashed = (left[pair] * 1_000_003 + right[pair] * 7_919) % buckets + vocabulary
    key = torch.cat([sample[single], sample[:, :, 1:][pair]]) * features + torch.cat(
        [tokens[single], hashed]
    )
    key, count = key.unique(return_counts=True)
    return key // features, key % features, count


def count_matrix(tokens: Tensor, vocabulary: int, buckets: int) -> sparse.csr_matrix:
    """(B, M, L) -> (B, vocabulary + buckets) counts, float32."""
    sample, feature, count = (
        part.cpu().numpy() for part in ngram_counts(tokens, vocabulary, buckets)
    )
    return sparse.csr_matrix(
        (count.astype("float32"), (sample, feature)), (len(tokens), vocabulary + buckets)
    )


class TfidfEncoder(Encoder):
    """Unit rows of weighted counts, sparse. A sample without any known term is a zero row: score 0, not NaN.

    kind : one of WEIGHTINGS. tokenizer : has ``decode(ids) -> text`` and ``vocabulary``. Raises ValueError otherwise.
    """

    def __init__(self, kind: str, tokenizer):
        super().__init__()
        if kind not in WEIGHTINGS:
            raise ValueError(f"encoder {kind!r}: one of {', '.join(WEIGHTINGS)}")
        self.kind, self.tokenizer, self.weighting = kind, tokenizer, WEIGHTINGS[kind]()

    def fit(self, samples: Samples, max_tokens: int = 32) -> "TfidfEncoder":
        """Fit vocabulary and idf on training samples. Raises ValueError where their texts hold no term."""
        self.topics = len(samples.store.meta["topics"])
        read = [
            self._read(samples.batch(slice(at, at + 1024), max_tokens))
            for at in range(0, len(samples), 1024)
        ]
        whole = (
            sparse.vstack(read).tocsr()
            if sparse.issparse(read[0])
            else [text for part in read for text in part]
        )
        if (
            least := getattr(self.weighting, "min_df", 1)
        ) > 1:  # of a gallery of a few accounts little is in several
            self.weighting.set_params(min_df=min(least, 1 + len(samples) // 10))
        self.dim = self.weighting.fit(whole).transform(whole[:1]).shape[1]
        return self

    def forward(self, batch: Batch) -> sparse.csr_matrix:
        """Batch of B samples -> (B, terms), unit rows."""
        from sklearn.preprocessing import normalize

        return normalize(self.weighting.transform(self._read(batch)).astype(np.float32)).tocsr()

    def _read(self, batch: Batch):
        """What the weighting takes: counts of topics or of subwords, or texts."""
        if (
            self.kind == "topics"
        ):  # one that is not listed is no trait of an author that could have been weighed
            known = batch.mask & (batch.topics < self.topics)
            return count_matrix(
                batch.topics.masked_fill(~known, PAD)[..., None], 2**16, 0
            )  # a store lists no more
        if self.kind == "tfidf_subword":
            return count_matrix(batch.tokens, self.tokenizer.vocabulary, BUCKETS)
        tokens, mask = batch.tokens.cpu().numpy(), batch.mask.cpu().numpy()
        return [
            "\n".join(self.tokenizer.decode(post[post != PAD]) for post in sample[posts])
            for sample, posts in zip(tokens, mask)
        ]


def fit_tfidf(
    kind: str, store: TokenStore, tokenizer, max_tokens: int = 32, seed: int = 0, posts: int = 16
) -> TfidfEncoder:
    """One fitted on windows of ``posts`` posts (subwords, topics), or on single posts, as released at most 500,000."""
    draw = np.random.default_rng(
        seed
    ).permutation  # of all posts of a large store: only where they are drawn
    samples = (training_windows(store, posts) if kind in ("tfidf_subword", "topics") else
               Samples.of_posts(store)[np.sort(draw(store.posts)[:FIT_POSTS])])  # fmt: skip
    return TfidfEncoder(kind, tokenizer).fit(samples, max_tokens)
