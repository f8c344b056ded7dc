"""Baselines that count: they read the same text as the encoders, the first L tokens of each post of a sample.

A table that gives a baseline the whole posts and the encoder 32 tokens of each is not a fair table.
"""

from collections.abc import Callable

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

from helpers.tokens import pretrained
from helpers.encoders.lsa import CountBranch, sample_windows
from helpers.tokens.store import TokenStore

BASELINES = ("tfidf_word", "tfidf_char", "tfidf_subword", "minilm")


def require(names: list[str]) -> None:
    """Raise ValueError where one of these baselines needs a model that is not installed, before long work begins."""
    if "minilm" in names:
        pretrained.locate("minilm")


def sample_texts(store: TokenStore, tokenizer, first: np.ndarray, count: np.ndarray, length: int = 32) -> list[str]:
    """One text per sample: each post cut to ``length`` tokens, decoded, joined by newlines."""
    texts = []
    for begin, posts in zip(first, count):
        offsets = store.post_offsets[begin : begin + posts + 1]
        cut = np.minimum(offsets[:-1] + length, offsets[1:])
        texts.append("\n".join(tokenizer.decode(store.tokens[a:b]) for a, b in zip(offsets[:-1], cut)))
    return texts


def make_vectorizer(name: str) -> TfidfVectorizer:
    """An unfitted vectorizer of unit rows. A text without any known term stays a zero row: cosine 0, not NaN.

    "tfidf_word": as khan2021's authors released it: words, case kept, English stop words removed, words in more
    than 90% of the texts removed, 20,000 words. "tfidf_char": the strong one: character 2-5-grams within word
    boundaries, sublinear counts, 300,000 of them. Raises ValueError for another name.
    """
    if name == "tfidf_word":
        return TfidfVectorizer(lowercase=False, stop_words="english", max_df=0.9, max_features=20_000, dtype=np.float32)
    if name == "tfidf_char":
        return TfidfVectorizer(
            lowercase=False, analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=3,
            max_features=300_000, dtype=np.float32,
        )  # fmt: skip
    raise ValueError(f"baseline {name!r}: one of {', '.join(BASELINES)}")


def fit(name: str, store: TokenStore, tokenizer, posts: int = 500_000, length: int = 32, seed: int = 0) -> Callable:
    """Fit a baseline on a training store; returns (store, first, count) -> unit rows, one a sample, most sparse.

    The first two are fitted on at most ``posts`` single posts, as released. "tfidf_subword" counts the encoder's own
    subwords and pairs of neighbours, sublinear, fitted on samples of 16 posts: what the count branch starts from.
    "minilm" is a pretrained sentence encoder, fitted to nothing here, see :mod:`helpers.tokens.pretrained`.
    """
    if name == "minilm":
        read = pretrained.sentence_vectors
        return lambda some, first, count: read(sample_texts(some, tokenizer, first, count, length))
    if name == "tfidf_subword":
        return _fit_subword(store, tokenizer.vocabulary, length)
    vectorizer = make_vectorizer(name)
    chosen = np.sort(np.random.default_rng(seed).permutation(store.posts)[:posts])
    vectorizer.fit(sample_texts(store, tokenizer, chosen, np.ones(len(chosen), np.int64), length))
    return lambda some, first, count: vectorizer.transform(sample_texts(some, tokenizer, first, count, length))


def _fit_subword(store, vocabulary, length):
    counter = CountBranch(vocabulary, topics=1, dim=1, buckets=2**18)
    weigh = TfidfTransformer(sublinear_tf=True).fit(counter.count_matrix(store, *sample_windows(store)[1:], length))

    def vectors(some, first, count) -> sparse.csr_matrix:
        return weigh.transform(counter.count_matrix(some, first, count, length))

    return vectors
