"""Retrieval against one comparison at a time, hand-made cases, ties, blocks, and scikit-learn."""

import numpy as np
import pytest
from scipy import sparse

from helpers.evaluation import retrieval
from helpers.evaluation.retrieval import error_by_topic, gain, queries_and_targets, ranks, retrieve


def unit(*shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)


def texts(seed=0, size=60, authors=12, dim=4):
    """Vectors with many equal ones, authors, topics."""
    rng = np.random.default_rng(seed)
    vectors = unit(size, dim, seed=seed)
    vectors[size // 2 :] = vectors[rng.integers(0, size // 2, size - size // 2)]
    return vectors, np.array([f"a{n}" for n in rng.integers(0, authors, size)]), rng.integers(0, 3, size)


def slowly(vectors, labels, queries, targets, topics=None):
    """(rank, own targets found among the k nearest, kind of the nearest) of each query, in double precision."""
    vectors = vectors.astype(np.float64)
    rows = []
    for query in queries:
        score = {target: vectors[query] @ vectors[target] for target in targets}
        own = sorted((s for t, s in score.items() if labels[t] == labels[query]), reverse=True)
        other = {t: s for t, s in score.items() if labels[t] != labels[query]}
        rank = 1 + sum(s >= own[0] - 1e-6 for s in other.values())
        places = [number + 1 + sum(s >= mine - 1e-6 for s in other.values()) for number, mine in enumerate(own)]
        kind = "right"
        if topics is not None and max(other.values()) >= own[0] - 1e-6:
            nearest = [t for t, s in other.items() if s >= max(other.values()) - 1e-6]
            kind = "same" if any(topics[t] == topics[query] for t in nearest) else "other"
        rows.append((rank, places, kind))
    return rows


class TestHalves:
    @pytest.mark.parametrize("order", ["random", "file"])
    def test_half_of_each_author_asks(self, order):
        labels = np.random.default_rng(1).integers(0, 30, 100)
        queries, targets = queries_and_targets(labels, order=order)
        assert sorted([*queries, *targets]) == list(range(100)) and (np.diff(queries) > 0).all()
        for author in np.unique(labels):
            assert (labels[queries] == author).sum() == (labels == author).sum() // 2

    def test_by_hand_in_file_order(self):
        queries, targets = queries_and_targets(["b", "a", "b", "a", "b", "c", "a", "a"], order="file")
        assert queries.tolist() == [0, 1, 3] and targets.tolist() == [2, 4, 5, 6, 7]

    def test_the_seed_draws(self):
        labels = ["a"] * 4
        drawn = [tuple(queries_and_targets(labels, seed)[0]) for seed in range(300)]
        assert drawn[0] == tuple(queries_and_targets(labels, 0)[0])
        counts = [drawn.count(pair) for pair in set(drawn)]
        assert len(counts) == 6 and min(counts) > 25  # of 50 expected

    def test_nobody_has_two(self):
        with pytest.raises(ValueError, match="two texts, found 2 authors of 2 texts"):
            queries_and_targets(["a", "b"])
        with pytest.raises(ValueError, match="order 'time'"):
            queries_and_targets(["a", "a"], order="time")


class TestRetrieve:
    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    @pytest.mark.parametrize("scores", [1, 300, 1 << 24])
    def test_it_counts(self, monkeypatch, seed, kind, scores):
        monkeypatch.setattr(retrieval, "SCORES", scores)
        vectors, labels, topics = texts(seed)
        queries, targets = queries_and_targets(labels, seed)
        wanted = slowly(vectors, labels, queries, targets, topics)
        given = vectors if kind == "dense" else sparse.csr_array(vectors)
        found = retrieve(given, labels, queries, targets, (1, 3, 8), recall="true", resamples=10)
        rank = np.array([row[0] for row in wanted])
        assert found["MRR"] == pytest.approx((1 / rank).mean())
        assert found["MRR@10"] == pytest.approx(sum(1 / r for r in rank if r <= 10) / len(rank))
        for k in (1, 3, 8):
            assert found[f"R@{k}"] == pytest.approx((rank <= k).mean())
            recall = [sum(place <= k for place in places) / len(places) for _, places, _ in wanted]
            assert found[f"recall@{k}"] == pytest.approx(np.mean(recall))
        errors = error_by_topic(given, labels, topics, queries, targets)
        kinds = [row[2] for row in wanted]
        names = {"right": "right", "same_topic_error": "same", "other_topic_error": "other"}
        for name, value in names.items():
            assert errors[name] == pytest.approx(kinds.count(value) / len(kinds))
        assert errors["right"] == pytest.approx(found["R@1"])

    def test_by_hand(self):
        angle = np.radians([0, 10, 20, 30, 5, 180])
        vectors = np.column_stack([np.cos(angle), np.sin(angle)])
        labels = ["a", "b", "b", "a", "c", "a"]
        # a at 0 degrees: c at 5 and b at 20 are nearer than its own at 30; of its two targets one is among three
        found = retrieve(vectors, labels, [0], [2, 3, 4, 5], (1, 3), recall="true")
        assert {name: found[name] for name in ("R@1", "R@3", "recall@3", "queries", "targets", "distractors")} == {
            "R@1": 0, "R@3": 1, "recall@3": 0.5, "queries": 1, "targets": 4, "distractors": 2,
        }  # fmt: skip
        assert found["MRR"] == pytest.approx(1 / 3) and found["MRR_low"] == found["MRR_high"] == pytest.approx(1 / 3)

    def test_constant_scores_are_no_success(self):
        labels = np.repeat(np.arange(10), 4)
        queries, targets = queries_and_targets(labels)
        for vectors in (np.zeros((40, 3)), np.tile(unit(1, 3), (40, 1))):
            found = retrieve(vectors, labels, queries, targets, recall="true")
            assert found["MRR"] == pytest.approx(1 / 19)  # 18 targets of others, then the best own
            assert found["R@8"] == found["recall@8"] == 0
            assert error_by_topic(vectors, labels, labels, queries, targets)["right"] == 0

    def test_an_authors_own_equal_targets_do_not_stand_in_the_way(self):
        vectors, labels = np.tile([[1.0, 0.0]], (5, 1)), ["a"] * 5
        assert retrieve(vectors, labels, [0, 1], [2, 3, 4])["MRR"] == 1

    def test_the_nearest_neighbours_of_scikit_learn(self):
        neighbors = pytest.importorskip("sklearn.neighbors")
        vectors, labels = unit(200, 6), np.random.default_rng(5).integers(0, 20, 200)
        queries, targets = queries_and_targets(labels, 5)
        near = neighbors.NearestNeighbors(n_neighbors=8, metric="cosine").fit(vectors[targets]).kneighbors(
            vectors[queries], return_distance=False)  # fmt: skip
        hit = labels[targets][near] == labels[queries][:, None]
        found = retrieve(vectors, labels, queries, targets)
        assert found["R@8"] == pytest.approx(hit.any(1).mean()) and found["R@1"] == pytest.approx(hit[:, 0].mean())

    def test_intervals_are_over_authors(self):
        """One prolific author that is always found, many that never are: queries are no independent sample."""
        vectors = np.concatenate([np.tile([[1.0, 0, 0]], (200, 1)), np.tile([[0, 1.0, 0]], (40, 1))])
        labels = np.concatenate([np.zeros(200, int), np.repeat(np.arange(1, 21), 2)])
        queries, targets = queries_and_targets(labels)
        found = retrieve(vectors, labels, queries, targets)
        assert found["R@1"] == pytest.approx(100 / 120) and found["R@1_low"] == 0  # drawn without that author
        assert found["authors"] == 21 and found["R@1_high"] > 0.9
        rng, means = np.random.default_rng(9), []
        for _ in range(1000):
            drawn = rng.integers(0, 21, 21)
            means.append(100 * (drawn == 0).sum() / (100 * (drawn == 0).sum() + (drawn > 0).sum()))
        assert found["R@1_high"] == pytest.approx(np.percentile(means, 97.5), abs=0.02)

    def test_what_does_not_fit_is_refused(self):
        vectors, labels = unit(4, 3), ["a", "a", "b", "b"]
        fit = "do not fit"
        for queries, targets, message in (([0], [2, 3], "1 of 1 queries have no target"), ([0], [0, 1], "twice"),
                                          ([], [1], fit), ([0], [4], fit), ([-1], [0], fit)):  # fmt: skip
            with pytest.raises(ValueError, match=message):
                retrieve(vectors, labels, queries, targets)
        with pytest.raises(ValueError, match="do not fit"):
            retrieve(vectors, labels[:3], [0], [1])
        with pytest.raises(ValueError, match="recall 'all'"):
            retrieve(vectors, labels, [0], [1], recall="all")
        with pytest.raises(ValueError, match="needs a label"):
            retrieve(vectors, ["a", None, "b", "b"], [2], [1, 3])
        with pytest.raises(ValueError, match="3 topics of 4 texts"):
            error_by_topic(vectors, labels, ["x"] * 3, [0], [1])
        vectors[1] = np.nan
        with pytest.raises(ValueError, match="not finite"):
            retrieve(vectors, labels, [0], [1])


class TestGain:
    def test_ranks_are_those_that_are_counted(self):
        vectors, labels, _ = texts(3)
        rows = queries_and_targets(labels)
        found = ranks(vectors, labels, *rows)
        assert found.tolist() == [rank for rank, _, _ in slowly(vectors, labels, *rows)]
        assert (found <= 8).mean() == retrieve(vectors, labels, *rows)["R@8"]

    def test_by_hand(self):
        """Two seeds; author a gains nothing, b gains a hit in one of two seeds, at two of its four queries."""
        base = np.array([[1, 9, 9, 9, 9, 9], [1, 9, 9, 9, 9, 9]])
        one = np.array([[1, 9, 8, 1, 9, 9], [1, 9, 9, 9, 9, 9]])
        found = gain(one, base, ["a", "a", "b", "b", "b", "b"])
        assert found["gain"] == pytest.approx(1 / 6)
        assert (found["low"], found["high"]) == pytest.approx((0, 0.25)), "drawn: aa, ab, ba or bb"
        assert gain(base, one, ["a", "a", "b", "b", "b", "b"])["gain"] == pytest.approx(-1 / 6)

    def test_what_is_hard_for_both_does_not_widen_it(self):
        rng = np.random.default_rng(0)
        authors = np.repeat(np.arange(60), 5)
        easy = np.repeat(rng.random(60), 5)
        base = np.where(rng.random(300) < easy, 1, 9)
        one = np.where(rng.random(300) < 0.05, 1, base)
        paired = gain(one, base, authors)
        alone = gain(one, np.full(300, 9), authors)
        assert paired["low"] > 0 and paired["high"] - paired["low"] < 0.5 * (alone["high"] - alone["low"])

    def test_other_queries_are_refused(self):
        for one, base, authors in (([1, 2], [1], ["a"]), ([1, 2], [1, 2], ["a"])):
            with pytest.raises(ValueError, match="queries do not fit together"):
                gain(one, base, authors)
