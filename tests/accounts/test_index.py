"""The index against a plain product, and what it refuses."""

import sys

import numpy as np
import pytest

from helpers.accounts import index as module
from helpers.accounts.index import VectorIndex
from helpers.evaluation.scores import rounded

DIM = 48
KINDS = ["exact", pytest.param("coded", marks=pytest.mark.skipif(not module._faiss(), reason="needs faiss-cpu"))]
each_kind = pytest.mark.parametrize("kind", KINDS)
needs_faiss = pytest.mark.skipif(not module._faiss(), reason="needs faiss-cpu")


def unit(count, seed=0, dim=DIM):
    """Accounts of ten communities, the spread of their dimensions falling."""
    rng = np.random.default_rng(seed)
    spread = np.arange(1, dim + 1) ** -0.45
    rows = np.random.default_rng(9).standard_normal((10, dim))[rng.integers(0, 10, count)]
    rows = (rows * 0.4 + rng.standard_normal((count, dim))) * spread
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def names(count, first=0):
    return [f"account {number}" for number in range(first, first + count)]


def product(vectors, queries, k):
    """Scores and rows of the k best, of the vectors as they are kept; of equal scores the first row first."""
    scores = rounded(queries.astype(np.float64) @ vectors.astype(np.float16).astype(np.float64).T)
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, rows, 1), rows


def found(rows, expected):
    return np.mean([len(set(one) & set(other)) / len(other) for one, other in zip(rows, expected)])


def same(one, other):
    for left, right in zip(one, other):
        np.testing.assert_array_equal(left, right)


class TestSearch:
    @pytest.mark.parametrize("count, k", [(1, 1), (3, 2), (3, 9), (2000, 1), (2000, 100), (20_000, 100)])
    def test_exact_is_the_product(self, count, k):
        vectors, queries = unit(count), unit(8, 1)
        scores, rows = VectorIndex(vectors, names(count), "exact").search(queries, k)
        assert scores.shape == rows.shape == (8, min(k, count))
        assert (scores.dtype, rows.dtype) == (np.float32, np.int64)
        same((scores, rows), product(vectors, queries, k))
        np.testing.assert_allclose(scores, np.sort(queries @ vectors.T)[:, ::-1][:, :k], atol=2**-11)  # before float16

    def test_exact_where_scores_differ_by_less_than_float16_can_tell(self):
        query = unit(1)
        noise = np.random.default_rng(0).standard_normal((3000, DIM))
        vectors = query + 3e-3 * noise
        vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        expected = product(vectors, query, 100)
        assert np.ptp(expected[0]) < 2**-11
        same(VectorIndex(vectors, names(3000), "exact").search(query, 100), expected)

    @each_kind
    def test_of_equal_scores_the_first_row_comes_first(self, kind):
        vectors = np.repeat(unit(5), 30, 0)
        scores, rows = VectorIndex(vectors, names(150), kind).search(vectors[90:91], 40)
        assert rows[0, :30].tolist() == [*range(90, 120)]
        assert np.ptp(scores[0, :30]) == 0 and scores[0, 30] < scores[0, 29]

    @each_kind
    def test_an_account_is_its_own_nearest_and_scores_do_not_depend_on_the_kind(self, kind):
        vectors = unit(5000)
        index = VectorIndex(vectors, names(5000), kind)
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
        rows = VectorIndex(vectors, names(30_000), "coded").search(queries, 100)[1]
        assert found(rows, best) >= 0.99

    @needs_faiss
    def test_large_ones_are_coded(self, monkeypatch):
        monkeypatch.setattr(module, "EXACT", 100)
        assert VectorIndex(unit(100), names(100)).codes is None
        assert VectorIndex(unit(101), names(101)).codes is not None
        assert VectorIndex(unit(101), names(101), "exact").codes is None

    def test_without_faiss_it_warns_and_compares_with_all(self, monkeypatch):
        monkeypatch.setattr(module, "EXACT", 100)
        monkeypatch.setitem(sys.modules, "faiss", None)  # as if it were not installed
        with pytest.warns(UserWarning, match="101 accounts .* pip install faiss-cpu"):
            index = VectorIndex(unit(101), names(101))
        assert index.codes is None and index.search(unit(101)[:3], 1)[1].ravel().tolist() == [0, 1, 2]
        with pytest.raises(ValueError, match="needs FAISS"):
            VectorIndex(unit(101), names(101), "coded")

    @each_kind
    def test_no_query_has_no_answer(self, kind):
        scores, rows = VectorIndex(unit(9), names(9), kind).search(np.empty((0, DIM)), 4)
        assert scores.shape == rows.shape == (0, 4)


class TestChange:
    @each_kind
    def test_accounts_come_and_go(self, kind):
        vectors, queries = unit(3000), unit(10, 1)
        index = VectorIndex(vectors[:2000], names(2000), kind)
        index.add(vectors[2000:], names(1000, 2000))
        same(index.search(queries, 50), VectorIndex(vectors, names(3000), kind).search(queries, 50))
        gone = [*range(0, 3000, 7), 2999]
        index.remove([f"account {number}" for number in gone])
        left = np.delete(vectors, gone, 0)
        assert len(index) == len(left) and index.names[0] == "account 1"
        same(index.search(queries, 50), product(left, queries, 50))

    @needs_faiss
    def test_codes_are_made_anew_when_most_accounts_are_new(self, monkeypatch):
        monkeypatch.setattr(module, "EXACT", 100)
        index = VectorIndex(unit(90), names(90))
        index.add(unit(20, 1), names(20, 90))
        assert index.codes.ntotal == index.centred == 110
        index.add(unit(50, 2), names(50, 110))
        assert (index.codes.ntotal, index.centred) == (160, 110)
        index.add(unit(100, 3), names(100, 160))
        assert index.codes.ntotal == index.centred == 260

    def test_what_does_not_fit_changes_nothing(self):
        index = VectorIndex(unit(9), names(9))
        for vectors, new in ((unit(1, 1), ["account 3"]), (unit(2, 1), ["x"]), (unit(1, 1, 5), ["x"])):
            with pytest.raises(ValueError):
                index.add(vectors, new)
        with pytest.raises(ValueError, match="no account 'x' in the index"):
            index.remove(["account 2", "x"])
        with pytest.raises(ValueError, match="nobody would be left"):
            index.remove(names(9))
        assert len(index) == len(index.vectors) == 9 and index.search(unit(9), 1)[1].ravel().tolist() == [*range(9)]

    @each_kind
    def test_nothing_may_come_and_go(self, kind):
        index = VectorIndex(unit(9), names(9), kind)
        index.add(np.empty((0, DIM)), [])
        index.remove([])
        assert len(index) == 9 and index.search(unit(9), 1)[1].ravel().tolist() == [*range(9)]


class TestFolder:
    @each_kind
    def test_it_is_the_same_after_it_was_saved(self, kind, tmp_path):
        index = VectorIndex(unit(3000), names(3000), kind)
        index.save(tmp_path / "index")
        index.save(tmp_path / "index")  # in place of the old one
        loaded = VectorIndex.load(tmp_path / "index")
        assert [path.name for path in tmp_path.iterdir()] == ["index"]
        assert loaded.names.tolist() == names(3000) and loaded.kind == kind
        assert (loaded.codes is None) == (kind == "exact")
        same(loaded.search(unit(9, 1), 30), index.search(unit(9, 1), 30))
        loaded.add(unit(5, 2), names(5, 3000))
        loaded.remove(["account 0"])
        loaded.save(tmp_path / "index")
        same(VectorIndex.load(tmp_path / "index").search(unit(9, 1), 30), loaded.search(unit(9, 1), 30))

    @pytest.mark.parametrize("file", ["vectors.npy", "index.json", pytest.param("codes.faiss", marks=needs_faiss)])
    @pytest.mark.parametrize("damage", ["byte", "short", "empty", "gone"])
    def test_damage_is_seen_and_says_what_to_delete(self, file, damage, tmp_path):
        VectorIndex(unit(300), names(300), "coded" if module._faiss() else "exact").save(tmp_path / "index")
        path = tmp_path / "index" / file
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes({"byte": content, "short": content[:-9], "empty": b"", "gone": b""}[damage])
        if damage == "gone":
            path.unlink()
        with pytest.raises(ValueError, match=r"damaged: delete .*index and make the index anew"):
            VectorIndex.load(tmp_path / "index")

    def test_there_is_none(self, tmp_path):
        with pytest.raises(ValueError, match="missing"):
            VectorIndex.load(tmp_path)

    @needs_faiss
    def test_codes_of_another_faiss_are_made_anew_or_done_without(self, tmp_path, monkeypatch):
        index = VectorIndex(unit(300), names(300), "coded")
        index.save(tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(module._faiss(), "read_index", lambda path: (_ for _ in ()).throw(RuntimeError("unknown")))
            same(VectorIndex.load(tmp_path).search(unit(9), 5), index.search(unit(9), 5))
        index.kind = "auto"
        index.save(tmp_path)
        monkeypatch.setitem(sys.modules, "faiss", None)
        same(VectorIndex.load(tmp_path).search(unit(9), 5), index.search(unit(9), 5))


class TestRefused:
    @pytest.mark.parametrize("spoil, message", [
        (lambda rows: rows[:0], "empty"), (lambda rows: rows[0], "shape"), (lambda rows: rows * 2, "unit length"),
        (lambda rows: rows * 0, "unit length"), (lambda rows: np.where(rows == rows.max(), np.nan, rows), "not finite"),
        (lambda rows: np.where(rows == rows.max(), np.inf, rows), "not finite")])  # fmt: skip
    def test_vectors(self, spoil, message):
        rows = spoil(unit(9))
        with pytest.raises(ValueError, match=message):
            VectorIndex(rows, names(len(rows)))

    @each_kind
    def test_queries(self, kind):
        index, query = VectorIndex(unit(9), names(9), kind), unit(2)
        for bad in (query[:, :5], query[0], query * 3, query * np.nan):
            with pytest.raises(ValueError):
                index.search(bad)
        for k in (0, -1):
            with pytest.raises(ValueError, match="at least one"):
                index.search(query, k)

    def test_names_and_kinds(self):
        for given in (names(8), names(8) + ["account 0"]):
            with pytest.raises(ValueError, match="9 accounts have"):
                VectorIndex(unit(9), given)
        with pytest.raises(ValueError, match="one of auto, exact, coded"):
            VectorIndex(unit(9), names(9), "flat")
