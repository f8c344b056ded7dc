"""Encoders that count read what every encoder reads, and are scikit-learn's own TF-IDF."""

from collections import Counter
from itertools import groupby

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

from helpers.encoders import tfidf
from helpers.encoders.base import embed
from helpers.encoders.tfidf import TEXT_KINDS, fit_tfidf, shapes
from helpers.evaluation.models import GalleryTfidf, as_model
from helpers.tokens.batch import Samples
from helpers.tokens.store import build_store
from helpers.tokens.tokenizer import Bytes

WORDS = "Alpha beta the gamma of Delta epsilon zeta ETA is theta".split()


@pytest.fixture
def store(write_posts, tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        (f"a{n % 9}", n, "x", " ".join(rng.choice(WORDS, rng.integers(0, 12)))) for n in range(180)
    ]
    store = build_store(write_posts(sorted(rows)), tmp_path / "store", Bytes().encode, [], "v1")
    object.__setattr__(store, "rows", [text for *_, text in sorted(rows)])
    return store


def windows(store, first, count):
    return Samples(store, np.array(first), np.array(count), np.zeros(len(first), int))


def by_letters(text):
    """The shape of a text of ASCII, letter by letter."""
    named = ("A", str.isupper), ("a", str.isalpha), ("0", str.isdigit)
    kinds = [next((kind for kind, has in named if has(letter)), letter) for letter in text.strip()]
    return "".join(kind if kind in "a0" else kind * len(list(run)) for kind, run in groupby(kinds))


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Re: 3 QUESTIONS!", "Aa: 0 AAAAAAAAA!"),
        ("\ndon't use_this\n\n(v1.25) ", "a'a a_a\n\n(a0.0)"),
        ("naïve Straße, \u4f60\u597d \U0001f642", "a Aa, a \U0001f642"),
    ],
)
def test_shapes_by_hand(text, expected):
    assert shapes(text) == expected


@pytest.mark.parametrize("name", ["tfidf_word", "tfidf_char", "tfidf_shape"])
def test_texts_go_through_a_plain_pipeline(store, name):
    of_letters = {"sublinear_tf": True, "min_df": 3}
    settings = {
        "tfidf_word": {"stop_words": "english", "max_df": 0.9, "max_features": 20_000},
        "tfidf_char": of_letters | {"analyzer": "char_wb", "ngram_range": (2, 5)},
        "tfidf_shape": of_letters | {"analyzer": "char", "ngram_range": (1, 6)},
    }[name]
    shown = by_letters if name == "tfidf_shape" else str
    plain = TfidfVectorizer(lowercase=False, **settings).fit(
        [shown(text[:20]) for text in store.rows]
    )
    first, count = np.arange(0, 160, 16), np.full(10, 16)
    expected = plain.transform(
        [shown("\n".join(text[:20] for text in store.rows[b : b + 16])) for b in first]
    )
    vectors = embed(fit_tfidf(name, store, Bytes(), 20), windows(store, first, count), 20)
    assert sparse.issparse(vectors) and expected.nnz
    np.testing.assert_allclose(vectors.toarray(), expected.toarray(), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors.toarray(), axis=1), 1, rtol=1e-5)


def counts(posts):
    terms = Counter()
    for text in posts:
        cut = text[:20]
        terms.update(cut)
        terms.update(zip(cut, cut[1:]))
    return {str(key): number for key, number in terms.items()}


def test_subwords_and_pairs_of_neighbours_counted_by_hand(store):
    """Fitted on samples of up to 16 posts of an author; pairs do not reach into the next post."""
    # nine authors of 20 posts
    starts = [begin + 16 * n for begin in range(0, 180, 20) for n in (0, 1)]
    ends = [min(start + 16, start // 20 * 20 + 20) for start in starts]
    matrix = DictVectorizer().fit([counts(store.rows)])
    weigh = TfidfTransformer(sublinear_tf=True)
    weigh.fit(matrix.transform([counts(store.rows[start:end]) for start, end in zip(starts, ends)]))
    first, count = np.arange(0, 160, 8), np.full(20, 8)
    expected = weigh.transform(matrix.transform([counts(store.rows[b : b + 8]) for b in first]))
    vectors = embed(
        fit_tfidf("tfidf_subword", store, Bytes(), 20), windows(store, first, count), 20
    )
    # columns are hashed, so their order tells nothing: all cosines do
    np.testing.assert_allclose(
        (vectors @ vectors.T).toarray(), (expected @ expected.T).toarray(), atol=1e-5
    )
    assert vectors.nnz == expected.nnz


def listed_topics(posts):
    return [topic for topic in posts if topic < 3]


def test_topics_are_words_and_what_is_not_listed_is_none(make_store):
    """Against scikit-learn's TF-IDF of the names, fitted on training samples of up to 16 posts."""
    store = make_store([20] * 9, topics=4)  # the last of 0 .. 3 is not listed
    weigh = TfidfVectorizer(analyzer=listed_topics, sublinear_tf=True)
    windows_of_16 = []
    for begin in range(0, 180, 20):
        windows_of_16 += [store.topic[begin : begin + 16], store.topic[begin + 16 : begin + 20]]
    weigh.fit(windows_of_16)
    store.topic[40:48] = 3  # one sample has unknown topics alone
    first, count = np.arange(0, 160, 8), np.full(20, 8)
    expected = weigh.transform([store.topic[b : b + 8] for b in first])
    vectors = embed(
        fit_tfidf("topics", make_store([20] * 9, topics=4), Bytes(), 20),
        windows(store, first, count),
        20,
    )
    np.testing.assert_allclose(
        (vectors @ vectors.T).toarray(), (expected @ expected.T).toarray(), atol=1e-5
    )
    assert vectors[5].nnz == 0 < vectors[4].nnz


@pytest.mark.parametrize(
    "kind, texts",
    [
        ("tfidf_word", ["the of and", "to the in of"]),  # stop words only
        *[(kind, ["", ""]) for kind in TEXT_KINDS],
    ],
)
def test_texts_without_a_term_have_rows_of_zeros(write_posts, tmp_path, kind, texts):
    rows = [(f"a{number % 6}", number, "x", texts[number % 2]) for number in range(24)]
    store = build_store(write_posts(sorted(rows)), tmp_path / "store", Bytes().encode, [], "v1")
    samples = windows(store, store.author_offsets[:-1], [4] * 6)
    for member in (GalleryTfidf(kind, Bytes()), fit_tfidf(kind, store, Bytes())):
        (_, scores), *_ = as_model(member).scores(samples, samples)
        assert scores.shape == (6, 6) and not scores.any()


@pytest.mark.parametrize("max_features", [10**6, 40])
def test_ngrams_of_words_are_those_of_scikit_learn(max_features):
    """To the last bit, whichever of the equally frequent n-grams stay."""
    rng = np.random.default_rng(0)
    words = [*WORDS, "a", "\u4f60\u597d", "don't", "--", "\U0001f642", "e\u0301te"]
    blanks = [" ", "\n", "  ", "\u00a0", "\t\n"]
    texts = []
    for _ in range(60):
        chosen = rng.choice(words, rng.integers(1, 30))
        texts.append("".join(word + rng.choice(blanks) for word in chosen))
    settings = {"ngram_range": (2, 5), "min_df": 3, "max_features": max_features}
    plain = TfidfVectorizer(
        analyzer="char_wb", lowercase=False, sublinear_tf=True, dtype=np.float32, **settings
    )
    ngrams = tfidf.WordNgrams(**settings)
    seen = texts[:40]
    unseen = [*texts[40:], "", " ", "unknown Alphabet", "\u1234"]
    for expected, weights in (
        (plain.fit_transform(seen), ngrams.fit_transform(seen)),
        (plain.transform(unseen), ngrams.transform(unseen)),
    ):
        assert weights.dtype == np.float32
        np.testing.assert_array_equal(weights.toarray(), expected.toarray())
    assert ngrams.ngrams.get_feature_names_out().tolist() == plain.get_feature_names_out().tolist()
    assert ngrams.transform(["", " \n"]).nnz == 0
    with pytest.raises(ValueError, match="0 feature"):
        tfidf.WordNgrams(**settings).fit_transform(["abc", "xyz"])
