"""Scores and error tables of account linking against direct computation."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import roc_curve
from test_trials import DAY, SMALL, corpus, owner, posts_of  # noqa: F401 (a fixture)

from helpers.encoders.embed import embed
from helpers.evaluation import linking
from helpers.evaluation.detection import PAPER, Costs
from helpers.evaluation.linking import by_target_size, products, results, score
from helpers.evaluation.trials import choose


def count_vectors(store, first, count):
    """Unit rows: how often each hour and topic occurs."""
    rows = np.zeros((len(first), 30), np.float32)
    for number, (begin, size) in enumerate(zip(first, count)):
        for post in range(begin, begin + size):
            rows[number, store.hour[post]] += 1
            rows[number, 24 + store.topic[post]] += 1
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class TestScores:
    def test_all_pairs_with_their_labels_and_sizes(self, corpus):
        store, _ = corpus
        chosen = choose(store, **SMALL)
        trials = score(store, chosen, count_vectors)
        assert len(trials) == 2 * 5 * 20 and trials.same.sum() == 2 * 5
        assert (trials.same == (trials.query_author == trials.target_author)).all()
        for trial in trials.sample(60, random_state=0).itertuples():
            (topic,) = (one for one in chosen if one.name == trial.topic)
            sides = []
            for samples, author, size in ((topic.queries, trial.query_author, trial.query_posts),
                                          (topic.targets, trial.target_author, trial.target_posts)):  # fmt: skip
                posts = posts_of(samples, samples.authors.tolist().index(author))
                assert {owner(store, post) for post in posts} == {author} and len(posts) == size
                vectors = [count_vectors(store, [post], [1])[0] for post in posts]
                sides.append(np.sum(vectors, 0) / np.linalg.norm(np.sum(vectors, 0)))
            assert trial.score == pytest.approx(sides[0] @ sides[1], abs=2e-6)

    def test_sparse_rows_score_the_same(self, corpus):
        store, _ = corpus
        chosen = choose(store, **SMALL)
        dense = score(store, chosen, count_vectors)
        for matrix in (sparse.csr_matrix, sparse.csr_array):
            thin = score(store, chosen, lambda *windows, matrix=matrix: matrix(count_vectors(*windows)))
            np.testing.assert_allclose(thin.score, dense.score, atol=2e-6)

    @pytest.mark.parametrize("rows", [1, 3, 100])
    def test_blocks_and_noise(self, rows):
        vectors = np.random.default_rng(0).standard_normal((9, 300)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        scores = products(vectors, vectors[:7], rows)
        assert scores.dtype == np.float32
        np.testing.assert_allclose(scores, vectors @ vectors[:7].T, atol=1e-6)
        assert len(np.unique(products(np.tile(vectors[0], (40, 1)), np.tile(vectors[1], (55, 1)), rows))) == 1

    def test_an_encoder_embeds_them(self, corpus):
        import torch

        class Hours(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.one = torch.nn.Parameter(torch.ones(1))

            def inference(self):
                return torch.inference_mode()

            def forward(self, batch):
                real = torch.nn.functional.one_hot(batch.hours, 24) * batch.mask[..., None]
                topics = torch.nn.functional.one_hot(batch.topics, 6) * batch.mask[..., None]
                return torch.nn.functional.normalize(torch.cat([real.sum(1), topics.sum(1)], 1).float(), dim=1)

        store, _ = corpus
        chosen = choose(store, **SMALL)
        trials = score(store, chosen, lambda some, first, count: embed(Hours(), some, first, first, count))
        np.testing.assert_allclose(trials.score, score(store, chosen, count_vectors).score, atol=2e-6)


class TestResults:
    @pytest.fixture
    def trials(self, corpus):
        store, _ = corpus
        return score(store, choose(store, **SMALL), count_vectors)

    def test_rows_are_those_of_scikit_learn(self, trials):
        def crossing(part):
            p_fa, hit, _ = roc_curve(part.same, part.score, drop_intermediate=False)
            return np.interp(0, p_fa + hit - 1, p_fa)

        table = results(trials, resamples=50)
        alone = {name: crossing(part) for name, part in trials.groupby("topic", observed=True)}
        for name, value in alone.items():
            assert table.EER[name] == pytest.approx(value)
        assert table.EER["mean"] == pytest.approx(np.mean(list(alone.values())))
        assert table.EER["pooled"] == pytest.approx(crossing(trials))
        assert table.minDCF["mean"] == pytest.approx(table.minDCF[list(alone)].mean())
        assert table.trials.tolist() == [100, 100, 200, 200] and table.positives.tolist() == [5, 5, 10, 10]
        assert table.accounts["mean"] == trials.query_author.nunique() <= 10

    def test_the_costs_are_those_asked_for(self, trials):
        trials = trials.assign(score=np.random.default_rng(0).standard_normal(len(trials)) + trials.same)
        low, high = (results(trials, costs, resamples=20).minDCF for costs in (Costs(0.5, 1, 1), PAPER))
        assert low["pooled"] < high["pooled"] and low["mean"] < high["mean"]

    def test_a_saved_table_gives_the_same(self, trials, tmp_path):
        trials.to_parquet(tmp_path / "trials.parquet")
        again = results(pd.read_parquet(tmp_path / "trials.parquet"), resamples=50)
        pd.testing.assert_frame_equal(again, results(trials, resamples=50))

    def test_equal_scores_are_chance(self, corpus):
        store, _ = corpus
        noise = np.random.default_rng(0).standard_normal(300).astype(np.float32)
        constant = lambda some, first, count: np.tile(noise / np.linalg.norm(noise), (len(first), 1))  # noqa: E731
        table = results(score(store, choose(store, **SMALL), constant), resamples=20)
        assert (table.EER == 0.5).all() and (table.minDCF == 1).all()

    def test_by_size(self, corpus):
        store, _ = corpus
        table = by_target_size(store, count_vectors, (1, 2, 4), **SMALL | {"target_posts": 2})
        assert table.target_posts.tolist() == [1, 2, 4] and table.trials.tolist() == [200] * 3
        for row, size in enumerate((1, 2, 4)):
            wanted = results(score(store, choose(store, **SMALL | {"target_posts": size}), count_vectors))
            for name in ("EER", "EER_low", "minDCF_high"):
                assert table[name][row] == wanted[name]["mean"]
        assert table.EER.nunique() > 1


def test_a_habit_is_found_and_chance_is_chance(make_store):
    """Authors with their own hours are linked; the same posts with hours shuffled are not."""
    counts = np.full(60, 60)
    store = make_store(counts, topics=3, habits=True)
    store = replace(store, time=np.tile(np.arange(60) * DAY, 60))
    settings = {"topics": 2, "distinguished": 30, "accounts": 60, "query_posts": 10, "fewest_query_posts": 5,
                "target_posts": 8}  # fmt: skip
    hours = lambda some, first, count: count_vectors(some, first, count)[:, :24]  # noqa: E731
    found = linking.results(score(store, choose(store, **settings), hours)).loc["mean"]
    store.hour[:] = np.random.default_rng(0).permutation(store.hour)
    lost = linking.results(score(store, choose(store, **settings), hours)).loc["mean"]
    assert found.EER < 0.15 and found.EER_high < 0.3
    assert 0.35 < lost.EER < 0.65 and lost.EER_low < 0.5 < lost.EER_high


def test_targets_that_are_the_same_for_all_topics_are_embedded_once(corpus):
    store, _ = corpus
    calls = []

    def vectors(some, first, count):
        calls.append(len(first))
        return count_vectors(some, first, count)

    chosen = choose(store, **SMALL | {"accounts": None})
    trials = score(store, chosen, vectors)
    assert len(calls) == 3 and len(chosen) == 2
    alone = [score(store, [topic], count_vectors) for topic in chosen]
    assert trials.score.tolist() == [value for part in alone for value in part.score]
    calls.clear()
    score(store, choose(store, **SMALL), vectors)
    assert len(calls) == 4
    calls.clear()
    by_target_size(store, vectors, (1, 2, 2), **SMALL | {"accounts": None, "target_posts": 2})
    assert len(calls) == 2 + 2, "the queries once, the targets of each size once"
