"""Baselines that read the same text as the encoders: the first L tokens of each post of a sample, as text again.

A table that gives a baseline the whole posts and the encoder 32 tokens of each is not a fair table.
"""

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from helpers.store import TokenStore

BASELINES = ("tfidf_word", "tfidf_char")


def sample_texts(store: TokenStore, tokenizer, first: np.ndarray, count: np.ndarray, length: int = 32) -> list[str]:
    """One text per sample: each post cut to ``length`` tokens, decoded, joined by newlines."""
    texts = []
    for begin, posts in zip(first, count):
        offsets = store.post_offsets[begin : begin + posts + 1]
        cut = np.minimum(offsets[:-1] + length, offsets[1:])
        texts.append("\n".join(tokenizer.decode(store.tokens[a:b]) for a, b in zip(offsets[:-1], cut)))
    return texts


def make_vectorizer(name: str) -> TfidfVectorizer:
    """An unfitted vectorizer of unit rows.

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


def fit_tfidf(name: str, store: TokenStore, tokenizer, posts: int = 500_000, length: int = 32, seed: int = 0):
    """Fit on single posts of the training store, at most ``posts`` of them, each cut to ``length`` tokens."""
    chosen = np.sort(np.random.default_rng(seed).permutation(store.posts)[:posts])
    return make_vectorizer(name).fit(sample_texts(store, tokenizer, chosen, np.ones(len(chosen), np.int64), length))


def tfidf_vectors(vectorizer: TfidfVectorizer, texts: list[str]) -> sparse.csr_matrix:
    """Unit rows (a text without any known term stays a zero row: its cosine is 0, not NaN)."""
    return vectorizer.transform(texts)
