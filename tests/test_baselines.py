"""Baselines read what the encoders read, and are scikit-learn's own TF-IDF."""

from collections import Counter

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

from helpers.encoders.tfidf import fit, make_vectorizer, sample_texts
from helpers.evaluation.ranking import ranks
from helpers.tokens.store import build_store
from helpers.tokens.tokenizer import Bytes

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


@pytest.mark.parametrize("name", ["tfidf_word", "tfidf_char"])
def test_texts_go_through_a_plain_pipeline(store, name):
    settings = {
        "tfidf_word": {"stop_words": "english", "max_df": 0.9, "max_features": 20_000},
        "tfidf_char": {"analyzer": "char_wb", "ngram_range": (2, 5), "sublinear_tf": True, "min_df": 3},
    }[name]
    plain = TfidfVectorizer(lowercase=False, **settings).fit([text[:20] for text in store.rows])
    first, count = np.arange(0, 160, 16), np.full(10, 16)
    wanted = plain.transform(["\n".join(text[:20] for text in store.rows[b : b + 16]) for b in first])
    vectors = fit(name, store, Bytes(), length=20)(store, first, count)
    assert sparse.issparse(vectors) and wanted.nnz
    np.testing.assert_allclose(vectors.toarray(), wanted.toarray(), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors.toarray(), axis=1), 1, rtol=1e-5)


def test_subwords_and_pairs_of_neighbours_counted_by_hand(store):
    """Fitted on samples of up to 16 posts of one author; pairs do not reach from one post into the next."""

    def counts(posts):
        found = Counter()
        for text in posts:
            cut = text[:20]
            found.update(cut)
            found.update(zip(cut, cut[1:]))
        return {str(key): number for key, number in found.items()}

    starts = [begin + 16 * n for begin in range(0, 180, 20) for n in (0, 1)]  # nine authors of 20 posts
    ends = [min(start + 16, start // 20 * 20 + 20) for start in starts]
    matrix = DictVectorizer().fit([counts(store.rows)])
    weigh = TfidfTransformer(sublinear_tf=True)
    weigh.fit(matrix.transform([counts(store.rows[start:end]) for start, end in zip(starts, ends)]))
    first, count = np.arange(0, 160, 8), np.full(20, 8)
    wanted = weigh.transform(matrix.transform([counts(store.rows[b : b + 8]) for b in first]))
    vectors = fit("tfidf_subword", store, Bytes(), length=20)(store, first, count)
    # columns are hashed, so their order tells nothing: all cosines do
    np.testing.assert_allclose((vectors @ vectors.T).toarray(), (wanted @ wanted.T).toarray(), atol=1e-5)
    assert vectors.nnz == wanted.nnz


def test_fitting_reads_no_more_posts_than_told(store):
    class Counting(Bytes):
        read = []

        def decode(self, ids):
            self.read.append(len(ids))
            return super().decode(ids)

    for seed in (0, 0, 1):
        fit("tfidf_word", store, Counting(), posts=60, length=20, seed=seed)
    one, two, other = (Counting.read[begin : begin + 60] for begin in (0, 60, 120))
    assert len(Counting.read) == 180 and max(Counting.read) <= 20
    assert one == two != other, "the same posts for the same seed"


def test_a_text_without_known_terms_ranks_last_and_not_nan():
    vectorizer = make_vectorizer("tfidf_word").fit(["Alpha beta", "gamma zeta", "Delta"])
    vectors = vectorizer.transform(["Alpha beta", "", "unheard", "gamma zeta"])
    assert not np.isnan(vectors.data).any() and vectors[1].nnz == vectors[2].nnz == 0
    targets = vectorizer.transform(["Alpha beta", "gamma", "beta", "zeta gamma", "Delta"])
    assert ranks(vectors, targets).tolist() == [1, 5, 5, 1]


@pytest.mark.parametrize("name", ["tfidf_word", "tfidf_subword"])
def test_an_empty_sample_is_a_zero_row(make_store, name):
    store = make_store([4, 4, 4], lengths=[0] * 4 + [5] * 8, vocabulary=100)
    object.__setattr__(store, "tokens", np.resize(np.frombuffer(b"abc de fgh ", np.uint8), 40).astype("u2"))
    vectors = fit(name, store, Bytes())(store, np.array([0, 4]), np.array([4, 4]))
    assert vectors[0].nnz == 0 < vectors[1].nnz and np.isfinite(vectors.data).all()


def test_unknown_name(store):
    for make in (make_vectorizer, lambda name: fit(name, store, Bytes())):
        with pytest.raises(ValueError, match="baseline 'bow': one of tfidf_word, tfidf_char"):
            make("bow")
