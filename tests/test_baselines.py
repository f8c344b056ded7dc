"""Baselines read what the encoders read, and are scikit-learn's own TF-IDF."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from helpers.baselines import BASELINES, fit_tfidf, make_vectorizer, sample_texts, tfidf_vectors
from helpers.evaluation.ranking import ranks
from helpers.store import build_store
from helpers.tokenizer import Bytes

WORDS = "Alpha beta the gamma of Delta epsilon zeta ETA is theta".split()


@pytest.fixture
def store(write_posts, tmp_path):
    rng = np.random.default_rng(0)
    rows = [(f"a{n % 9}", n, "x", " ".join(rng.choice(WORDS, rng.integers(0, 12)))) for n in range(180)]
    store = build_store(write_posts(sorted(rows)), tmp_path / "store", Bytes().encode, [], "v1")
    object.__setattr__(store, "rows", [text for *_, text in sorted(rows)])
    return store


@pytest.mark.parametrize("length", [1, 7, 1000])
def test_texts_are_cut_to_what_the_encoder_sees(store, length):
    first, count = np.array([0, 3, 17, 179]), np.array([1, 5, 16, 1])
    texts = sample_texts(store, Bytes(), first, count, length)
    assert texts == ["\n".join(text[:length] for text in store.rows[b : b + n]) for b, n in zip(first, count)]


def test_words_as_released():
    vectorizer = make_vectorizer("tfidf_word")
    texts = ["The author and the Code", "code of another AUTHOR", "code Code", "code again"]
    vectors = vectorizer.fit_transform(texts)
    assert set(vectorizer.vocabulary_) == {"The", "author", "Code", "code", "AUTHOR"}
    assert vectors.dtype == np.float32
    many = make_vectorizer("tfidf_word").fit([f"w{n} always" for n in range(30_000)])
    assert len(many.vocabulary_) == 20_000 and "always" not in many.vocabulary_


def test_characters_within_words():
    terms = set(make_vectorizer("tfidf_char").fit(["ab Cde"] * 3).vocabulary_)
    assert {" a", "ab", " ab ", "Cd", "Cde", " Cde ", "Cde "} <= terms
    assert not any(" " in term.strip() for term in terms), "no term spans two words"
    assert {len(term) for term in terms} == {2, 3, 4, 5}
    assert not set(make_vectorizer("tfidf_char").fit(["abc"] * 3 + ["xyz"] * 2).vocabulary_) & {"xy", "yz"}, "too rare"


@pytest.mark.parametrize("name", BASELINES)
def test_it_is_a_plain_pipeline(store, name):
    settings = {
        "tfidf_word": {"stop_words": "english", "max_df": 0.9, "max_features": 20_000},
        "tfidf_char": {"analyzer": "char_wb", "ngram_range": (2, 5), "sublinear_tf": True, "min_df": 3, "max_features": 300_000},
    }[name]  # fmt: skip
    plain = TfidfVectorizer(lowercase=False, **settings).fit([text[:20] for text in store.rows])
    first, count = np.arange(0, 160, 16), np.full(10, 16)
    texts = sample_texts(store, Bytes(), first, count, 20)
    wanted = plain.transform(["\n".join(text[:20] for text in store.rows[b : b + 16]) for b in first])
    vectors = tfidf_vectors(fit_tfidf(name, store, Bytes(), length=20), texts)
    assert sparse.issparse(vectors) and wanted.nnz
    np.testing.assert_allclose(vectors.toarray(), wanted.toarray(), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors.toarray(), axis=1), 1, rtol=1e-5)


def test_fitting_reads_no_more_posts_than_told(store):
    class Counting(Bytes):
        read = []

        def decode(self, ids):
            self.read.append(len(ids))
            return super().decode(ids)

    for seed in (0, 0, 1):
        fit_tfidf("tfidf_word", store, Counting(), posts=60, length=20, seed=seed)
    one, two, other = (Counting.read[begin : begin + 60] for begin in (0, 60, 120))
    assert len(Counting.read) == 180 and max(Counting.read) <= 20
    assert one == two != other, "the same posts for the same seed"


def test_a_text_without_known_terms_ranks_last_and_not_nan(store):
    vectorizer = fit_tfidf("tfidf_word", store, Bytes())
    vectors = tfidf_vectors(vectorizer, ["Alpha beta", "", "unheard", "gamma zeta"])
    assert not np.isnan(vectors.data).any() and vectors[1].nnz == vectors[2].nnz == 0
    targets = tfidf_vectors(vectorizer, ["Alpha beta", "gamma", "beta", "zeta gamma", "Delta"])
    assert ranks(vectors, targets).tolist() == [1, 5, 5, 1]


def test_unknown_name():
    with pytest.raises(ValueError, match="baseline 'bow': one of tfidf_word, tfidf_char"):
        make_vectorizer("bow")
