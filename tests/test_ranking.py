"""Ranks against plain counting and hand-made scores: ties, own targets, sparse and dense, blocks of any size."""

import math

import numpy as np
import pytest
from scipy import sparse, stats

from helpers.evaluation import ranking
from helpers.evaluation.ranking import query_target_windows, ranks, summarise

E1, E2 = [1.0, 0.0], [0.0, 1.0]


def unit(*shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)


def count(queries, targets, own, ties):
    """One comparison at a time, in double precision."""
    result = []
    for query, mine in zip(queries.astype(np.float64), own):
        score = query @ targets[mine].astype(np.float64)
        others = [query @ target.astype(np.float64) for number, target in enumerate(targets) if number != mine]
        better = sum(other > score + 1e-6 for other in others)
        equal = sum(abs(other - score) <= 1e-6 for other in others)
        result.append(1 + better + (equal if ties == "pessimistic" else equal / 2))
    return result


class TestRanks:
    def test_by_hand(self):
        def at(*degrees):
            return np.array([[math.cos(math.radians(d)), math.sin(math.radians(d))] for d in degrees], np.float32)

        # from 0 degrees the targets are 50 (own), 20, 90 and 10 away: 3rd; from 90: 40, 70, 0 and 80 (own): 4th
        assert ranks(at(0, 30, 80, 90), at(50, 20, 90, 10)).tolist() == [3, 1, 1, 4]

    @pytest.mark.parametrize("ties", ["pessimistic", "average"])
    @pytest.mark.parametrize("dim", [3, 64, 1024])
    def test_it_counts(self, ties, dim):
        queries, targets = unit(30, dim), unit(50, dim, seed=1)
        targets[10:20] = targets[3]  # ten equal targets
        targets[:30] = np.where(np.arange(30)[:, None] % 2, targets[:30], queries)  # half of the queries are found
        own = np.random.default_rng(2).permutation(50)[:30]
        assert ranks(queries, targets, own, ties).tolist() == count(queries, targets, own, ties)

    @pytest.mark.parametrize("queries", [np.ones((7, 4)) / 2, np.zeros((7, 4))], ids=["all equal", "all zero"])
    def test_constant_scores_are_no_success(self, queries):
        targets = np.tile(queries[:1], (11, 1))
        assert ranks(queries, targets).tolist() == [11] * 7
        assert ranks(queries, targets, ties="average").tolist() == [6] * 7
        for matrix in (sparse.csr_matrix, sparse.csr_array):
            assert ranks(matrix(queries), matrix(targets)).tolist() == [11] * 7

    def test_ties_are_never_broken_by_position(self):
        """The own target first or last among its equals."""
        queries, targets = np.array([E1, E1]), np.array([E1, E2, E1, E1])
        assert ranks(queries, targets, np.array([0, 3])).tolist() == [3, 3]
        assert ranks(queries, targets, np.array([0, 3]), "average").tolist() == [2, 2]

    def test_noise_of_float32_is_a_tie(self):
        """Scores that only the order of summation tells apart."""
        query = unit(1, 1024)
        targets = np.repeat(unit(1, 1024, seed=1), 3000, 0)
        assert ranks(query, targets, np.array([1234])).tolist() == [3000]
        assert ranks(query, targets, np.array([1234]), "average").tolist() == [1500.5]

    @pytest.mark.parametrize("rows, columns", [(1, 1), (3, 7), (7, 3), (40, 90), (1000, 1000)])
    @pytest.mark.parametrize("ties", ["pessimistic", "average"])
    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    def test_blocks_of_any_size_agree(self, kind, ties, rows, columns):
        queries, targets = unit(40, 5), unit(90, 5, seed=1)
        targets[50:] = targets[:40]
        wanted = ranks(queries, targets, ties=ties)
        if kind == "sparse":
            queries, targets = sparse.csr_matrix(queries), sparse.csr_matrix(targets)
        assert (ranks(queries, targets, ties=ties, rows=rows, columns=columns) == wanted).all()

    def test_permuting_the_gallery_changes_nothing(self):
        queries, targets = unit(40, 5), unit(90, 5, seed=1)
        order = np.random.default_rng(3).permutation(90)
        place = np.argsort(order)[:40]
        assert (ranks(queries, targets[order], place) == ranks(queries, targets)).all()

    def test_several_queries_may_share_a_target(self):
        queries, targets = unit(6, 5), unit(9, 5, seed=1)
        own = np.array([3, 3, 0, 8, 8, 8])
        assert ranks(queries, targets, own).tolist() == count(queries, targets, own, "pessimistic")

    def test_inputs_stay_as_they_are(self):
        queries, targets = unit(6, 5), unit(9, 5, seed=1)
        kept = queries.copy(), targets.copy()
        ranks(queries, targets)
        assert (queries == kept[0]).all() and (targets == kept[1]).all()

    def test_half_precision_and_double(self):
        queries, targets = unit(6, 5), unit(9, 5, seed=1)
        for dtype in (np.float16, np.float64):
            assert (ranks(queries.astype(dtype), targets.astype(dtype)) == ranks(queries, targets)).all()

    def test_the_reciprocal_rank_of_pytorch_metric_learning(self):
        pytest.importorskip("faiss")
        calculator = pytest.importorskip("pytorch_metric_learning.utils.accuracy_calculator")
        import torch

        queries, targets = unit(60, 8), unit(60, 8, seed=1)
        targets[:30] += 2 * queries[:30]
        targets /= np.linalg.norm(targets, axis=1, keepdims=True)
        rank = ranks(queries, targets)
        wanted = calculator.AccuracyCalculator(include=("mean_reciprocal_rank", "precision_at_1"), k=60).get_accuracy(
            torch.from_numpy(queries), torch.arange(60), torch.from_numpy(targets), torch.arange(60)
        )
        metrics = summarise(rank, 60)
        assert metrics["MRR"] == pytest.approx(wanted["mean_reciprocal_rank"], rel=1e-6)
        assert metrics["R@1"] == pytest.approx(wanted["precision_at_1"])

    def test_recall_of_scikit_learn(self):
        from sklearn.metrics import top_k_accuracy_score

        queries, targets = unit(60, 8), unit(60, 8, seed=1)
        targets[:30] = queries[:30] + targets[:30]
        targets /= np.linalg.norm(targets, axis=1, keepdims=True)
        metrics = summarise(ranks(queries, targets), 60)
        for k in (1, 4, 8):
            wanted = top_k_accuracy_score(np.arange(60), queries @ targets.T, k=k, labels=np.arange(60))
            assert metrics[f"R@{k}"] == pytest.approx(wanted)

    def test_errors(self):
        queries, targets = unit(6, 5), unit(9, 5)
        for bad in (np.nan, np.inf):
            for broken in ((0, queries), (1, targets)):
                pair = [queries.copy(), targets.copy()]
                pair[broken[0]][2, 1] = bad
                with pytest.raises(ValueError, match="not finite"):
                    ranks(*pair)
                with pytest.raises(ValueError, match="not finite"):
                    ranks(*map(sparse.csr_matrix, pair))
        for own in (np.arange(5), np.full(6, 9), np.full(6, -1)):
            with pytest.raises(ValueError, match="do not fit together"):
                ranks(queries, targets, own)
        for pair in ((queries[:, :4], targets), (targets, queries)):
            with pytest.raises(ValueError, match="do not fit together"):
                ranks(*pair)
        with pytest.raises(ValueError, match="ties 'best': one of pessimistic, average"):
            ranks(queries, targets, ties="best")


class TestSummary:
    def test_by_hand(self):
        metrics = summarise(np.array([1, 2, 4, 5, 8, 9, 100, 1]), 120)
        assert metrics["MRR"] == pytest.approx((1 + 1 / 2 + 1 / 4 + 1 / 5 + 1 / 8 + 1 / 9 + 1 / 100 + 1) / 8)
        assert (metrics["R@1"], metrics["R@4"], metrics["R@8"]) == (2 / 8, 4 / 8, 6 / 8)
        assert metrics["mean_rank"] == 130 / 8
        assert (metrics["queries"], metrics["targets"]) == (8, 120)

    def test_chance(self):
        """Random embeddings rank uniformly."""
        metrics = summarise(ranks(unit(500, 16), unit(500, 16, seed=1)), 500)
        assert metrics["mean_rank"] == pytest.approx(250.5, rel=0.1)
        assert metrics["R@8"] == pytest.approx(8 / 500, abs=0.02)

    def test_the_interval_holds_the_mean_and_shrinks(self):
        rng = np.random.default_rng(0)
        widths = {"MRR": [], "R@8": []}
        for size in (50, 500, 5000):
            metrics = summarise(rng.integers(1, 30, size), 100)
            for name, width in widths.items():
                low, high = metrics[f"{name}_low"], metrics[f"{name}_high"]
                assert 0 <= low < metrics[name] < high <= 1
                width.append(high - low)
        for width in widths.values():
            assert width[0] > 2 * width[1] > 4 * width[2], "ten times the accounts: about a third of the width"

    def test_the_interval_is_that_of_the_normal_law_where_that_holds(self):
        rank = np.random.default_rng(0).integers(1, 30, 2000)
        metrics = summarise(rank, 100)
        wanted = 1.96 * (1 / rank).std() / math.sqrt(2000)
        assert (metrics["MRR_high"] - metrics["MRR_low"]) / 2 == pytest.approx(wanted, rel=0.08)

    def test_it_repeats_itself(self):
        rank = np.random.default_rng(0).integers(1, 30, 200)
        assert summarise(rank, 100, seed=4) == summarise(rank, 100, seed=4)
        assert summarise(rank, 100, seed=4)["MRR_low"] != summarise(rank, 100, seed=5)["MRR_low"]


class TestWindows:
    @pytest.mark.parametrize("posts", [1, 4, 16])
    def test_targets_are_later_and_apart(self, make_store, posts):
        counts = np.random.default_rng(0).integers(1, 60, 40)
        store = make_store(counts)
        author, query, target = query_target_windows(store, posts)
        assert author.tolist() == [number for number, there in enumerate(counts) if there >= 2 * posts]
        begin, end = store.author_offsets[author], store.author_offsets[author + 1]
        assert (query == begin).all(), "the first posts"
        assert (query + posts <= target).all(), "no post is in both"
        assert (target + posts == end).all(), "the last posts, and none of the next author"

    def test_too_few_authors(self, make_store):
        with pytest.raises(ValueError, match="two authors with 32 posts, found 1"):
            query_target_windows(make_store([32, 31, 5]))


def test_models_are_compared_on_the_same_queries():
    """Against SciPy's own resampling, and the tail of its binomial."""
    rng = np.random.default_rng(0)
    other = rng.integers(1, 50, 300).astype(float)
    one = np.maximum(other + rng.integers(-4, 3, 300), 1)
    found = ranking.compare(one, other)
    gain = 1 / one - 1 / other
    drawn = stats.bootstrap((gain,), np.mean, method="percentile", n_resamples=4000, random_state=1)
    wanted = drawn.confidence_interval
    assert found["MRR_difference"] == pytest.approx(gain.mean())
    assert found["low"] == pytest.approx(wanted.low, abs=0.004)
    assert found["high"] == pytest.approx(wanted.high, abs=0.004)
    assert (found["better"], found["worse"]) == ((one < other).sum(), (one > other).sum())
    tail = 2 * stats.binom.cdf(min(found["better"], found["worse"]), found["better"] + found["worse"], 0.5)
    assert found["sign_p"] == pytest.approx(tail)
    swapped = ranking.compare(other, one)
    assert swapped["MRR_difference"] == -found["MRR_difference"] and swapped["sign_p"] == found["sign_p"]
    assert ranking.compare(one, one)["sign_p"] == 1.0
    with pytest.raises(ValueError, match="not of the same queries"):
        ranking.compare(one, one[:-1])


@pytest.mark.parametrize("ties", ranking.TIES)
def test_a_rank_is_at_least_one(ties):
    """Also where noise puts the own score of long vectors out of its own reach."""
    rng = np.random.default_rng(0)
    vectors = (1e4 * rng.normal(size=(300, 40))).astype(np.float32)
    assert ranking.ranks(vectors, vectors, ties=ties).min() >= 1
