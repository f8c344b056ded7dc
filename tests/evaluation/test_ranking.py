"""Ranks against one comparison at a time and by hand; summaries, paired differences, errors."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

from helpers.evaluation import scores
from helpers.evaluation.ranking import (
    compare_rankings,
    evaluate_ranking,
    evaluate_retrieval,
    positive_ranks,
    ranking_differences,
    ranking_metrics,
    ranking_trials,
    retrieval_trials,
    trials_by_community,
)
from helpers.evaluation.trials import Trials
from tests.factories import HabitCounts, LookUp, one_token_samples, store_in_memory, unit_rows
from tests.oracles import slow_errors, slow_ranks

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


def test_ties_are_never_broken_by_position_and_raw_rows_are_ranked_by_their_distance():
    for rows in (np.zeros((7, 4)), np.repeat(unit_rows(1, 1024), 7, 0)):
        assert ranked(rows, np.tile(rows[:1], (11, 1))) == [11] * 7, "constant scores"
    assert ranked([E1, E1], [E1, E2, E1, E1], [0, 3]) == [3, 3]
    # as unit rows the first target would win: its direction is the query's, but it is far
    queries, targets = np.array([[1.0, 1.0]]), np.array([[1.0, 0.5], [9.0, 9.0]])
    assert ranked(queries, targets, unit=False) == [1] and ranked(queries, targets) == [2]


def by_author(rank, authors=None):
    return pd.Series(np.asarray(rank, float), np.arange(len(rank)) if authors is None else authors)


def test_the_summary_by_hand():
    table = ranking_metrics(by_author([1, 2, 4, 5, 8, 9, 100, 1]))
    mrr = (1 + 1 / 2 + 1 / 4 + 1 / 5 + 1 / 8 + 1 / 9 + 1 / 100 + 1) / 8
    assert table.value.tolist() == pytest.approx([mrr, 2 / 8, 4 / 8, 6 / 8, 130 / 8])
    assert table.index.tolist() == ["MRR", "R@1", "R@4", "R@8", "mean_rank"]
    assert ((table.low <= table.value) & (table.value <= table.high)).all()


@pytest.mark.parametrize("posts", [1, 16])
def test_targets_are_later_and_apart(posts):
    counts = np.random.default_rng(0).integers(1, 60, 40)
    store = store_in_memory(counts)
    trials = ranking_trials(store, posts)
    author = trials.queries.authors
    np.testing.assert_array_equal(author, np.flatnonzero(counts >= 2 * posts))
    query, target = trials.queries.first, trials.targets.first
    assert (query == store.author_offsets[author]).all(), "the first posts"
    assert (query + posts <= target).all(), "no post is in both"
    assert (target + posts == store.author_offsets[author + 1]).all(), "the last posts"
    assert trials.same.tolist() == np.eye(len(author), dtype=bool).tolist()


def test_the_accounts_may_be_those_of_a_larger_size():
    trials = ranking_trials(store_in_memory([32, 31, 40, 5, 90]), 2, min_posts=32)
    assert trials.queries.authors.tolist() == [0, 2, 4]
    assert trials.queries.count.tolist() == [2, 2, 2]
    store = store_in_memory([32, 31, 5])
    with pytest.raises(ValueError, match="two authors with 32 posts, found 1"):
        ranking_trials(store)


def test_models_are_compared_on_the_same_queries():
    rng = np.random.default_rng(0)
    base = rng.integers(1, 50, 300).astype(float)
    rank = np.maximum(base + rng.integers(-4, 3, 300), 1)
    table = compare_rankings(by_author(rank), by_author(base))
    better, worse = (rank < base).sum(), (rank > base).sum()
    tail = 2 * stats.binom.cdf(min(better, worse), better + worse, 0.5)
    recall = (rank <= 8).mean() - (base <= 8).mean()
    wanted = [(1 / rank - 1 / base).mean(), recall, better, worse, tail]
    assert table.value.tolist() == pytest.approx(wanted)
    assert compare_rankings(by_author(rank), by_author(rank)).value["sign_p"] == 1
    for other in (by_author([1, 2]), by_author([1, 2, 3], [0, 2, 1])):
        with pytest.raises(ValueError, match="not of the same queries"):
            compare_rankings(by_author([1, 2, 3]), other)


def test_differences_of_several_seeds_by_hand():
    """Two seeds; a gains nothing, b a hit in one of two seeds, at two of its four queries."""
    base = [by_author([1, 9, 9, 9, 9, 9], list("aabbbb"))] * 2
    ranks = [by_author([1, 9, 8, 1, 9, 9], list("aabbbb")), base[0]]
    table = ranking_differences(ranks, base)
    row = table.loc["R@8_difference"]
    assert row.value == pytest.approx(1 / 6)
    assert (row.low, row.high) == pytest.approx((0, 0.25)), "drawn: aa, ab, ba or bb"
    assert table.value["MRR_difference"] == pytest.approx((1 / 8 + 1 - 2 / 9) / 12)


def test_within_communities_only_accounts_of_the_own_one_are_rivals(make_store):
    """Accounts 0..14 write in a/..., 15..26 in b/..., the last three in no listed topic."""
    store = make_store([40] * 30, topics=3, habits=True)
    store.meta["topics"] = ["a/x", "b/y"]
    author = np.repeat(np.arange(30), 40)
    store.topic[:] = np.select([author < 15, author < 27], [0, 1], 2)
    trials = ranking_trials(store, 8)
    apart = trials_by_community(trials)
    homes = {"": [27, 28, 29], "a": [*range(15)], "b": [*range(15, 27)]}
    assert {part.name: part.targets.authors.tolist() for part in apart} == homes
    hours = []
    for samples in (trials.queries, trials.targets):
        counts = [
            np.bincount(store.hour[first : first + 8], minlength=24) for first in samples.first
        ]
        hours.append(counts / np.linalg.norm(counts, axis=1, keepdims=True))
    table, rank = evaluate_ranking(HabitCounts(hours=True), apart)
    for members in homes.values():
        wanted = slow_ranks(hours[0][members], hours[1][members], members, members)
        assert rank[members].tolist() == wanted
    assert table.value["MRR"] == pytest.approx((1 / rank).mean()) and len(rank) == 30
    store.meta["topics"] = ["x", "y"]
    assert trials_by_community(trials) == [trials]


def one_token_store(counts, seed=0):
    """Authors with so many texts each, whose one token is their number."""
    return store_in_memory(counts, seed, lengths=np.ones(sum(counts), int), topics=4)


def test_half_of_each_author_asks():
    counts = np.random.default_rng(1).integers(1, 8, 30)
    trials = retrieval_trials(one_token_store(counts))
    queries, targets = trials.queries.first, trials.targets.first
    assert sorted([*queries, *targets]) == list(range(counts.sum()))
    assert (np.bincount(trials.queries.authors, minlength=30) == counts // 2).all()
    drawn = [tuple(retrieval_trials(one_token_store([4]), s).queries.first) for s in range(300)]
    times = [drawn.count(pair) for pair in set(drawn)]
    assert len(times) == 6 and min(times) > 25  # of 50 expected
    with pytest.raises(ValueError, match="two texts, found 2 authors of 2 texts"):
        retrieval_trials(one_token_store([1, 1]))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("kind", "block"), [(np.asarray, 1), (sparse.csr_array, 300)])
def test_retrieval_is_counted(monkeypatch, seed, kind, block):
    monkeypatch.setattr(scores, "BLOCK", block)
    rng = np.random.default_rng(seed)
    store = one_token_store(rng.integers(1, 9, 12), seed)
    rows = unit_rows(store.posts, 4, seed=seed)
    half = store.posts // 2
    rows[half:] = rows[rng.integers(0, half, store.posts - half)]  # many equal ones
    trials = retrieval_trials(store, seed)
    table, rank = evaluate_retrieval(LookUp(kind(rows)), trials, resamples=10)
    texts = [trials.queries.first, trials.targets.first]
    author = np.repeat(np.arange(12), store.posts_per_author())
    authors, topics = [[values[side] for side in texts] for values in (author, store.topic)]
    assert rank.tolist() == slow_ranks(rows[texts[0]], rows[texts[1]], *authors)
    assert rank.index.tolist() == authors[0].tolist()
    errors = slow_errors(rows[texts[0]], rows[texts[1]], authors, topics)
    wanted = {
        "MRR": (1 / rank).mean(),
        "MRR@10": sum(1 / r for r in rank if r <= 10) / len(rank),
        "R@1": (rank <= 1).mean(),
        "R@8": (rank <= 8).mean(),
    }
    for kind_of_error in ("right", "same_topic_error", "other_topic_error"):
        wanted[kind_of_error] = errors.count(kind_of_error) / len(errors)
    assert table.value.to_dict() == pytest.approx(wanted)


def test_intervals_of_retrieval_are_over_authors():
    """One prolific author is always found, many never: queries are no independent sample."""
    rows = np.array([E1] * 200 + [E2] * 40, np.float32)
    trials = retrieval_trials(one_token_store([200] + [2] * 20))
    row = evaluate_retrieval(LookUp(rows), trials)[0].loc["R@1"]
    assert row.value == pytest.approx(100 / 120) and row.low == 0  # drawn without that author
