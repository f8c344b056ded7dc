"""The index against a plain product, and what it refuses."""

import importlib.util
import sys

import numpy as np
import pytest

from helpers.accounts import index as module
from helpers.accounts.index import VectorIndex
from helpers.evaluation.scores import round_scores

DIM = 48
needs_faiss = pytest.mark.skipif(not importlib.util.find_spec("faiss"), reason="needs faiss-cpu")
each_kind = pytest.mark.parametrize("coded", [False, pytest.param(True, marks=needs_faiss)])


def unit(count, seed=0, dim=DIM):
    """Accounts of ten communities, the spread of their dimensions falling."""
    rng = np.random.default_rng(seed)
    spread = np.arange(1, dim + 1) ** -0.45
    rows = np.random.default_rng(9).standard_normal((10, dim))[rng.integers(0, 10, count)]
    rows = (rows * 0.4 + rng.standard_normal((count, dim))) * spread
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def product(vectors, queries, k):
    """Scores and rows of the k best, of the vectors as they are kept; ties in order of the rows."""
    scores = round_scores(
        queries.astype(np.float64) @ vectors.astype(np.float16).astype(np.float64).T
    )
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, rows, 1), rows


def recall(rows, expected):
    return np.mean(
        [
            len(set(found_rows) & set(true_rows)) / len(true_rows)
            for found_rows, true_rows in zip(rows, expected)
        ]
    )


def same(result, wanted):
    for left, right in zip(result, wanted):
        np.testing.assert_array_equal(left, right)


class TestSearch:
    @pytest.mark.parametrize(
        "count, k", [(1, 1), (3, 2), (3, 9), (2000, 1), (2000, 100), (20_000, 100)]
    )
    def test_exact_is_the_product(self, count, k):
        vectors, queries = unit(count), unit(8, 1)
        scores, rows = VectorIndex(vectors, False).search(queries, k)
        assert scores.shape == rows.shape == (8, min(k, count))
        assert (scores.dtype, rows.dtype) == (np.float32, np.int64)
        same((scores, rows), product(vectors, queries, k))
        np.testing.assert_allclose(
            scores, np.sort(queries @ vectors.T)[:, ::-1][:, :k], atol=2**-11
        )  # before float16

    def test_exact_where_scores_differ_by_less_than_float16_can_tell(self):
        query = unit(1)
        noise = np.random.default_rng(0).standard_normal((3000, DIM))
        vectors = query + 3e-3 * noise
        vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        expected = product(vectors, query, 100)
        assert np.ptp(expected[0]) < 2**-11
        same(VectorIndex(vectors, False).search(query, 100), expected)

    @each_kind
    def test_of_equal_scores_the_first_row_comes_first(self, coded):
        vectors = np.repeat(unit(5), 30, 0)
        scores, rows = VectorIndex(vectors, coded).search(vectors[90:91], 40)
        assert rows[0, :30].tolist() == [*range(90, 120)]
        assert np.ptp(scores[0, :30]) == 0 and scores[0, 30] < scores[0, 29]

    @each_kind
    def test_an_account_is_its_own_nearest_and_scores_do_not_depend_on_the_kind(self, coded):
        vectors = unit(5000)
        index = VectorIndex(vectors, coded)
        scores, rows = index.search(vectors[:50], 20)
        assert rows[:, 0].tolist() == [*range(50)]
        np.testing.assert_allclose(scores[:, 0], 1, atol=1e-3)
        every = product(vectors, vectors[:50], 5000)
        true = np.take_along_axis(every[0], np.argsort(every[1], axis=1), 1)
        np.testing.assert_array_equal(scores, np.take_along_axis(true, rows, 1))

    @needs_faiss
    @pytest.mark.parametrize("dim", [3, 37, 256])
    def test_codes_find_what_the_product_finds(self, dim):
        vectors, queries = unit(30_000, dim=dim), unit(20, 1, dim)
        best = product(vectors, queries, 100)[1]
        rows = VectorIndex(vectors, True).search(queries, 100)[1]
        assert recall(rows, best) >= 0.99

    @needs_faiss
    def test_large_ones_are_coded(self, monkeypatch):
        monkeypatch.setattr(module, "EXACT_ROWS", 100)
        assert VectorIndex(unit(100)).codes is None
        assert VectorIndex(unit(101)).codes is not None
        assert VectorIndex(unit(101), False).codes is None

    def test_without_faiss_it_warns_and_compares_with_all(self, monkeypatch):
        monkeypatch.setattr(module, "EXACT_ROWS", 100)
        monkeypatch.setitem(sys.modules, "faiss", None)  # as if it were not installed
        with pytest.warns(UserWarning, match="101 accounts .* pip install faiss-cpu"):
            index = VectorIndex(unit(101))
        assert index.codes is None and index.search(unit(101)[:3], 1)[1].ravel().tolist() == [
            0,
            1,
            2,
        ]
        with pytest.raises(ValueError, match="need FAISS"):
            VectorIndex(unit(101), True)

    @each_kind
    def test_no_query_has_no_answer(self, coded):
        scores, rows = VectorIndex(unit(9), coded).search(np.empty((0, DIM)), 4)
        assert scores.shape == rows.shape == (0, 4)


class TestRefused:
    @pytest.mark.parametrize(
        "spoil, message",
        [
            (lambda rows: rows[:0], "empty"),
            (lambda rows: rows[0], "shape"),
            (lambda rows: rows * 2, "unit length"),
            (lambda rows: rows * 0, "unit length"),
            (lambda rows: np.where(rows == rows.max(), np.nan, rows), "must be finite"),
            (lambda rows: np.where(rows == rows.max(), np.inf, rows), "must be finite"),
        ],
    )
    def test_vectors(self, spoil, message):
        rows = spoil(unit(9))
        with pytest.raises(ValueError, match=message):
            VectorIndex(rows)

    @each_kind
    def test_queries(self, coded):
        index, query = VectorIndex(unit(9), coded), unit(2)
        for bad in (query[:, :5], query[0], query * 3, query * np.nan):
            with pytest.raises(ValueError):
                index.search(bad)
        for k in (0, -1):
            with pytest.raises(ValueError, match="at least one"):
                index.search(query, k)
