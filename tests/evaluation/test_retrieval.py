"""Retrieval against one comparison at a time, hand-made cases, ties, blocks, and scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from helpers.evaluation import scores
from helpers.evaluation.ranking import evaluate_retrieval, retrieval_trials
from helpers.evaluation.ranking import ranking_differences as compare
from helpers.evaluation.trials import Trials
from tests.factories import LookUp, one_token_samples, store_in_memory, unit_rows
from tests.oracles import slow_errors, slow_ranks


def one_token_store(counts, seed=0):
    """Authors with so many texts each, whose one token is their number."""
    return store_in_memory(counts, seed, lengths=np.ones(sum(counts), int), topics=4)


def sides(rows, authors, queries, targets, topics=None):
    samples = one_token_samples(authors, topics)
    return LookUp(np.asarray(rows, np.float32)), Trials(
        samples[np.asarray(queries)], samples[np.asarray(targets)]
    )


class TestTrials:
    def test_half_of_each_author_asks(self):
        counts = np.random.default_rng(1).integers(1, 8, 30)
        trials = retrieval_trials(one_token_store(counts))
        queries, targets = trials.queries.first, trials.targets.first
        assert (
            sorted([*queries, *targets]) == list(range(counts.sum()))
            and (np.diff(queries) > 0).all()
        )
        assert (np.bincount(trials.queries.authors, minlength=30) == counts // 2).all()
        assert (np.bincount(trials.targets.authors, minlength=30) == counts - counts // 2).all()

    def test_the_seed_draws(self):
        store = one_token_store([4])
        drawn = [tuple(retrieval_trials(store, seed).queries.first) for seed in range(300)]
        assert drawn[0] == tuple(retrieval_trials(store, 0).queries.first)
        counts = [drawn.count(pair) for pair in set(drawn)]
        assert len(counts) == 6 and min(counts) > 25  # of 50 expected

    def test_nobody_has_two(self):
        with pytest.raises(ValueError, match="two texts, found 2 authors of 2 texts"):
            retrieval_trials(one_token_store([1, 1]))


class TestEvaluate:
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    @pytest.mark.parametrize("block", [1, 300, 1 << 24])
    def test_it_counts(self, monkeypatch, seed, kind, block):
        monkeypatch.setattr(scores, "BLOCK", block)
        rng = np.random.default_rng(seed)
        store = one_token_store(rng.integers(1, 9, 12), seed)
        rows = unit_rows(store.posts, 4, seed=seed)
        half = store.posts // 2
        rows[half:] = rows[rng.integers(0, half, store.posts - half)]  # many equal ones
        trials = retrieval_trials(store, seed)
        model = LookUp(sparse.csr_array(rows) if kind == "sparse" else rows)
        table, rank = evaluate_retrieval(model, trials, resamples=10)
        queries, targets = trials.queries.first, trials.targets.first
        authors, topics = (
            [values[side] for side in (queries, targets)]
            for values in (np.repeat(np.arange(12), store.posts_per_author()), store.topic)
        )
        assert rank.tolist() == slow_ranks(rows[queries], rows[targets], *authors)
        assert rank.index.tolist() == authors[0].tolist()
        value = table.value
        assert value["MRR"] == pytest.approx((1 / rank).mean())
        assert value["MRR@10"] == pytest.approx(sum(1 / r for r in rank if r <= 10) / len(rank))
        assert (value["R@1"], value["R@8"]) == pytest.approx(
            ((rank <= 1).mean(), (rank <= 8).mean())
        )
        kinds = slow_errors(rows[queries], rows[targets], authors, topics)
        for name in ("right", "same_topic_error", "other_topic_error"):
            assert value[name] == pytest.approx(kinds.count(name) / len(kinds))
        assert value["right"] == value["R@1"]

    def test_by_hand(self):
        angle = np.radians([0, 10, 20, 30, 5, 180])
        rows = np.column_stack([np.cos(angle), np.sin(angle)])
        model, trials = sides(rows, [0, 1, 1, 0, 2, 0], [0], [2, 3, 4, 5])
        # author 0 at 0 degrees: 2 at 5 and 1 at 20 are nearer than its own at 30
        for topics, error in (
            (list("xyzzxy"), "same_topic_error"),
            (list("xyxzyx"), "other_topic_error"),
        ):
            table, rank = evaluate_retrieval(model, trials, topics=topics)
            assert rank.tolist() == [3] and table.value[["R@1", "R@8", error]].tolist() == [0, 1, 1]
            assert table.low["MRR"] == table.high["MRR"] == pytest.approx(1 / 3)

    def test_intervals_are_over_authors(self):
        """One prolific author is always found, many never: queries are no independent sample."""
        rows = np.concatenate([np.tile([[1.0, 0, 0]], (200, 1)), np.tile([[0, 1.0, 0]], (40, 1))])
        store = one_token_store([200] + [2] * 20)
        row = evaluate_retrieval(LookUp(rows.astype(np.float32)), retrieval_trials(store))[0].loc[
            "R@1"
        ]
        assert row.value == pytest.approx(100 / 120) and row.low == 0  # drawn without that author
        rng, means = np.random.default_rng(9), []
        for _ in range(1000):
            drawn = rng.integers(0, 21, 21)
            means.append(100 * (drawn == 0).sum() / (100 * (drawn == 0).sum() + (drawn > 0).sum()))
        assert row.high == pytest.approx(np.percentile(means, 97.5), abs=0.02)

    def test_what_does_not_fit_is_refused(self):
        rows, authors = unit_rows(5, 3), [0, 0, 1, 1, 2]
        with pytest.raises(ValueError, match="1 of 1 queries have no target"):
            evaluate_retrieval(*sides(rows, authors, [0], [2, 3, 4]))
        with pytest.raises(ValueError, match="targets of two authors"):
            evaluate_retrieval(*sides(rows, authors, [0], [1]))
        with pytest.raises(ValueError, match="3 topics of 5 texts"):
            evaluate_retrieval(*sides(rows, authors, [0], [1, 2]), topics=["x"] * 3)


class TestDifferences:
    authors = pd.Index(["a", "a", "b", "b", "b", "b"])

    def ranks(self, *rows):
        return [pd.Series(row, self.authors, dtype=float) for row in rows]

    def test_by_hand(self):
        """Two seeds; a gains nothing, b a hit in one of two seeds, at two of its four queries."""
        base = self.ranks([1, 9, 9, 9, 9, 9], [1, 9, 9, 9, 9, 9])
        one = self.ranks([1, 9, 8, 1, 9, 9], [1, 9, 9, 9, 9, 9])
        row = compare(one, base).loc["R@8_difference"]
        assert row.value == pytest.approx(1 / 6)
        assert (row.low, row.high) == pytest.approx((0, 0.25)), "drawn: aa, ab, ba or bb"
        assert compare(base, one).value["R@8_difference"] == pytest.approx(-1 / 6)
        assert compare(one, base).value["MRR_difference"] == pytest.approx((1 / 8 + 1 - 2 / 9) / 12)
