"""Ranks against plain counting and hand-made scores; summaries and paired differences."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

from helpers.evaluation import scores
from helpers.evaluation.ranking import (
    compare_rankings,
    evaluate_ranking,
    positive_ranks,
    ranking_metrics,
    ranking_trials,
    trials_by_community,
)
from helpers.evaluation.trials import Trials
from tests.factories import HabitCounts, LookUp, one_token_samples, store_in_memory, unit_rows
from tests.oracles import slow_ranks

E1, E2 = [1.0, 0.0], [0.0, 1.0]


def sides(queries, targets, query_authors=None, target_authors=None, **settings):
    """A model and trials of the given rows; author n by default for query n and target n."""
    rows = np.concatenate([queries, targets]).astype(np.float32)
    authors = [
        np.arange(len(side)) if given is None else np.asarray(given)
        for side, given in ((queries, query_authors), (targets, target_authors))
    ]
    samples = one_token_samples(np.concatenate(authors))
    return LookUp(rows, **settings), Trials(samples[: len(queries)], samples[len(queries) :])


def ranked(*arguments, **settings):
    return positive_ranks(*sides(*arguments, **settings)).tolist()


class TestRanks:
    def test_by_hand(self):
        def at(*degrees):
            return np.array(
                [[math.cos(math.radians(d)), math.sin(math.radians(d))] for d in degrees],
                np.float32,
            )

        # from 0 degrees the targets are 50 (own), 20, 90 and 10 away: 3rd;
        # from 90 degrees 40, 70, 0 and 80 (own): 4th
        assert ranked(at(0, 30, 80, 90), at(50, 20, 90, 10)) == [3, 1, 1, 4]

    @pytest.mark.parametrize("dim", [3, 64, 1024])
    @pytest.mark.parametrize("block", [1, 2**24])
    def test_it_counts(self, monkeypatch, dim, block):
        monkeypatch.setattr(scores, "BLOCK", block)
        queries, targets = unit_rows(30, dim), unit_rows(50, dim, seed=1)
        targets[10:20] = targets[3]  # ten equal targets
        targets[:30] = np.where(
            np.arange(30)[:, None] % 2, targets[:30], queries
        )  # half of the queries are found
        authors = np.random.default_rng(2).permutation(50)
        wanted = slow_ranks(queries, targets, range(30), authors)
        assert ranked(queries, targets, None, authors) == wanted
        model, trials = sides(queries, targets, None, authors)
        model.rows = sparse.csr_matrix(model.rows)
        assert positive_ranks(model, trials).tolist() == wanted

    def test_constant_scores_are_no_success(self):
        for rows in (np.zeros((7, 4)), np.ones((7, 4)) / 2, np.repeat(unit_rows(1, 1024), 7, 0)):
            assert ranked(rows, np.tile(rows[:1], (11, 1))) == [11] * 7

    def test_ties_are_never_broken_by_position(self):
        """The own target first or last among its equals."""
        assert ranked([E1, E1], [E1, E2, E1, E1], [0, 3]) == [3, 3]

    def test_raw_rows_are_ranked_by_their_distance(self):
        """As unit rows the first target would win: its direction is the query's, but it is far."""
        queries, targets = np.array([[1.0, 1.0]]), np.array([[1.0, 0.5], [9.0, 9.0]])
        assert ranked(queries, targets, [0], unit=False) == [1] and ranked(
            queries, targets, [0]
        ) == [2]

    def test_errors(self):
        rows = unit_rows(6, 5)
        with pytest.raises(ValueError, match="1 of 6 queries have no target of their author"):
            ranked(rows, rows[:5])
        model, trials = sides(rows, rows)
        with pytest.raises(ValueError, match="not listed pairs"):
            positive_ranks(model, Trials(trials.queries, trials.targets, np.array([[0, 0]])))
        model.rows[3] = np.nan
        with pytest.raises(ValueError, match="not finite"):
            positive_ranks(model, trials)


def by_author(rank, authors=None):
    return pd.Series(np.asarray(rank, float), np.arange(len(rank)) if authors is None else authors)


class TestSummary:
    def test_by_hand(self):
        table = ranking_metrics(by_author([1, 2, 4, 5, 8, 9, 100, 1]))
        assert table.value["MRR"] == pytest.approx(
            (1 + 1 / 2 + 1 / 4 + 1 / 5 + 1 / 8 + 1 / 9 + 1 / 100 + 1) / 8
        )
        assert table.value[["R@1", "R@4", "R@8"]].tolist() == [2 / 8, 4 / 8, 6 / 8]
        assert table.value["mean_rank"] == 130 / 8
        assert ((table.low <= table.value) & (table.value <= table.high)).all()


class TestTrials:
    @pytest.mark.parametrize("posts", [1, 4, 16])
    def test_targets_are_later_and_apart(self, posts):
        counts = np.random.default_rng(0).integers(1, 60, 40)
        store = store_in_memory(counts)
        trials = ranking_trials(store, posts)
        author = trials.queries.authors
        assert author.tolist() == [
            number for number, there in enumerate(counts) if there >= 2 * posts
        ]
        begin, end = store.author_offsets[author], store.author_offsets[author + 1]
        query, target = trials.queries.first, trials.targets.first
        assert (query == begin).all(), "the first posts"
        assert (query + posts <= target).all(), "no post is in both"
        assert (target + posts == end).all(), "the last posts, and none of the next author"
        assert trials.same.tolist() == np.eye(len(author), dtype=bool).tolist()

    def test_the_accounts_may_be_those_of_a_larger_size(self):
        store = store_in_memory([32, 31, 40, 5, 90])
        trials = ranking_trials(store, 2, min_posts=32)
        assert trials.queries.authors.tolist() == [0, 2, 4] and trials.queries.count.tolist() == [
            2,
            2,
            2,
        ]

    def test_what_cannot_be_ranked(self):
        store = store_in_memory([32, 31, 5])
        with pytest.raises(ValueError, match="two authors with 32 posts, found 1"):
            ranking_trials(store)
        for wrong in ((4, 7), (0, None)):
            with pytest.raises(ValueError, match="query and target of"):
                ranking_trials(store, *wrong)


class TestDifferences:
    def test_models_are_compared_on_the_same_queries(self):
        """Against SciPy's own resampling, and the tail of its binomial."""
        rng = np.random.default_rng(0)
        other = rng.integers(1, 50, 300).astype(float)
        one = np.maximum(other + rng.integers(-4, 3, 300), 1)
        table = compare_rankings(by_author(one), by_author(other))
        gain = 1 / one - 1 / other
        drawn = stats.bootstrap(
            (gain,), np.mean, method="percentile", n_resamples=4000, random_state=1
        )
        row = table.loc["MRR_difference"]
        assert row.value == pytest.approx(gain.mean())
        assert row.low == pytest.approx(drawn.confidence_interval.low, abs=0.004)
        assert row.high == pytest.approx(drawn.confidence_interval.high, abs=0.004)
        assert table.value["R@8_difference"] == pytest.approx(
            (one <= 8).mean() - (other <= 8).mean()
        )
        better, worse = table.value["better"], table.value["worse"]
        assert (better, worse) == ((one < other).sum(), (one > other).sum())
        tail = 2 * stats.binom.cdf(min(better, worse), better + worse, 0.5)
        assert table.value["sign_p"] == pytest.approx(tail)
        swapped = compare_rankings(by_author(other), by_author(one)).value
        assert (
            swapped["MRR_difference"] == -row.value and swapped["sign_p"] == table.value["sign_p"]
        )
        assert compare_rankings(by_author(one), by_author(one)).value["sign_p"] == 1

    def test_other_queries_are_refused(self):
        for base in (by_author([1, 2]), by_author([1, 2, 3], [0, 2, 1])):
            with pytest.raises(ValueError, match="not of the same queries"):
                compare_rankings(by_author([1, 2, 3]), base)


def test_within_communities_only_accounts_of_the_own_one_are_rivals(make_store):
    """Accounts 0..14 write in a/..., 15..26 in b/..., the last three in no listed topic."""
    store = make_store([40] * 30, topics=3, habits=True)
    store.meta["topics"] = ["a/x", "b/y"]
    author = np.repeat(np.arange(30), 40)
    store.topic[:] = np.select([author < 15, author < 27], [0, 1], 2)
    trials, model = ranking_trials(store, 8), HabitCounts(hours=True)
    apart = trials_by_community(trials)
    assert {part.name: part.targets.authors.tolist() for part in apart} == {
        "": [27, 28, 29],
        "a": [*range(15)],
        "b": [*range(15, 27)],
    }
    rows = {
        side: np.stack(
            [np.bincount(store.hour[first : first + 8], minlength=24) for first in samples.first]
        )
        for side, samples in (("query", trials.queries), ("target", trials.targets))
    }
    unit = {side: part / np.linalg.norm(part, axis=1, keepdims=True) for side, part in rows.items()}
    table, rank = evaluate_ranking(model, apart)
    for members in ([*range(15)], [*range(15, 27)], [27, 28, 29]):
        wanted = slow_ranks(unit["query"][members], unit["target"][members], members, members)
        assert rank[members].tolist() == wanted
    assert table.value["MRR"] == pytest.approx((1 / rank).mean()) and len(rank) == 30
    store.meta["topics"] = ["x", "y"]
    assert trials_by_community(trials) == [trials]
