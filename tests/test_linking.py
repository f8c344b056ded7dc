"""The linking protocol against a plain loop over authors and posts; scores and tables against direct computation."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import roc_curve

from helpers.embedding import embed
from helpers.evaluation import linking
from helpers.evaluation.detection import PAPER, Costs
from helpers.evaluation.linking import by_target_size, choose, products, results, score

DAY = 86_400
SMALL = {"topics": 2, "distinguished": 5, "accounts": 20, "query_posts": 6, "fewest_query_posts": 3,
         "target_posts": 2, "fewest_target_posts": 4}  # fmt: skip


@pytest.fixture
def corpus(make_store):
    """40 authors with 5 to 80 posts each and times that grow within an author."""
    counts = np.random.default_rng(1).integers(5, 80, 40)
    store = make_store(counts, topics=4)
    rng = np.random.default_rng(2)
    times = np.concatenate([np.sort(rng.integers(0, 100 * DAY, count)) for count in counts])
    return replace(store, time=times), times


@pytest.fixture
def far_from_utc(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def posts_of(samples, number):
    return samples.posts[samples.offsets[number] : samples.offsets[number + 1]].tolist()


def owner(store, post):
    return int(np.searchsorted(store.author_offsets, post, "right")) - 1


def in_period(store, post, low, high):
    """Between two instants, or two shares of its author's posts."""
    author = owner(store, post)
    begin, end = store.author_offsets[author : author + 2].tolist()
    if isinstance(high, float):
        return (low or 0) * (end - begin) <= post - begin < high * (end - begin)
    return low <= store.time[post] < high


class TestProtocol:
    @pytest.mark.parametrize("begin, split, end", [(0.0, 0.5, 1.0), (0.2, 0.6, 0.9), (20 * DAY, 60 * DAY, 90 * DAY)])
    def test_samples_are_those_of_a_loop(self, corpus, far_from_utc, begin, split, end):
        store, _ = corpus
        settings = dict(SMALL)
        if begin > 1:
            dates = (datetime.fromtimestamp(second, UTC).isoformat()[:19] for second in (begin, split, end))
        else:
            dates = (begin, split, end)
        settings |= dict(zip(("query_from", "target_from", "target_until"), dates))
        for topic in choose(store, **settings):
            row = store.meta["topics"].index(topic.name)
            mine, everyone = topic.queries.authors, topic.targets.authors
            assert (len(set(mine.tolist())), len(set(everyone.tolist()))) == (5, 20) and set(mine) <= set(everyone)
            for samples, wanted, least, most in (
                (topic.queries, lambda p: in_period(store, p, begin, split) and store.topic[p] == row, 3, 6),
                (topic.targets, lambda p: in_period(store, p, split, end), 4, 2),
            ):
                for number, author in enumerate(samples.authors):
                    own = [p for p in range(*store.author_offsets[author : author + 2].tolist()) if wanted(p)]
                    assert len(own) >= least
                    assert posts_of(samples, number) == own[-most:]

    def test_topics_are_the_most_popular_ones_that_qualify(self, corpus):
        store, _ = corpus
        early = np.array([in_period(store, post, 0.0, 0.5) for post in range(store.posts)])
        popular = np.argsort(-np.bincount(store.topic[early], minlength=4)[:3], kind="stable")
        names = [store.meta["topics"][row] for row in popular]
        assert [topic.name for topic in choose(store, **SMALL | {"topics": 3})] == names
        # posts of other topics than the store's are no topic, however many
        store.topic[early] = np.where(np.arange(early.sum()) % 3, 3, store.topic[early])
        settings = SMALL | {"topics": 3, "distinguished": 1, "fewest_query_posts": 1}
        assert {topic.name for topic in choose(store, **settings)} == set(names)

    def test_a_topic_of_few_accounts_is_passed_over(self, corpus):
        store, _ = corpus
        first = choose(store, **SMALL | {"topics": 1})[0]
        row = store.meta["topics"].index(first.name)
        store.topic[store.topic == row] = 3
        store.topic[: store.author_offsets[4]] = row  # four authors
        names = [topic.name for topic in choose(store, **SMALL)]
        assert first.name not in names and len(names) == 2

    def test_the_seed_decides_and_sizes_do_not(self, corpus):
        store, _ = corpus
        wanted = choose(store, **SMALL, seed=3)
        again = choose(store, **SMALL, seed=3)
        longer = choose(store, **SMALL | {"target_posts": 4}, seed=3)
        other = choose(store, **SMALL, seed=4)
        for one, same, more in zip(wanted, again, longer):
            for side in ("queries", "targets"):
                for field in ("authors", "posts", "offsets"):
                    assert (getattr(getattr(one, side), field) == getattr(getattr(same, side), field)).all()
            assert (one.queries.posts == more.queries.posts).all()
            assert (one.targets.authors == more.targets.authors).all()
            assert (more.targets.sizes() == 4).all() and (one.targets.sizes() == 2).all()
        assert any((one.queries.authors != two.queries.authors).any() for one, two in zip(wanted, other))
        assert any((one.targets.authors != two.targets.authors).any() for one, two in zip(wanted, other))

    def test_who_falls_silent_is_not_chosen_and_the_instant_itself_is_later(self, make_store):
        """Authors 0..4 stop before the split; 5..9 write once before it, at it and once after it."""
        store = make_store([3] * 10, topics=2)
        store.topic[:] = 0
        times = np.tile([DAY, 2 * DAY, 3 * DAY], 10)
        times[:15] //= 2
        store = replace(store, time=times)
        settings = {"topics": 1, "query_posts": 1, "target_posts": 2, "fewest_target_posts": 2, "accounts": None}
        (topic,) = choose(store, "1970-01-03", distinguished=5, **settings)
        assert topic.queries.authors.tolist() == topic.targets.authors.tolist() == [5, 6, 7, 8, 9]
        assert topic.queries.posts.tolist() == [15, 18, 21, 24, 27]
        assert topic.targets.posts.tolist() == [16, 17, 19, 20, 22, 23, 25, 26, 28, 29]
        with pytest.raises(ValueError, match="0 of 1 topics have 6 accounts .* found: topic 0 5"):
            choose(store, "1970-01-03", distinguished=6, **settings)

    def test_as_many_distinguished_accounts_as_there_are(self, corpus):
        store, _ = corpus
        wanted = {"topics": 1, "distinguished": 30, "accounts": None, "fewest_query_posts": None}
        with pytest.raises(ValueError, match="0 of 1 topics have 30 accounts with 6 posts .* accounts found: (.*)"):
            choose(store, **SMALL | wanted)
        (topic,) = choose(store, **SMALL | wanted | {"fewest_distinguished": 3})
        row = store.meta["topics"].index(topic.name)
        posts = [post for post in range(store.posts) if store.topic[post] == row and in_period(store, post, 0.0, 0.5)]
        per_author = np.bincount([owner(store, post) for post in posts])
        assert set(topic.queries.authors) == set(np.flatnonzero(per_author >= 6)) & set(topic.targets.authors)

    def test_the_others_are_drawn_from_all(self, corpus):
        store, _ = corpus
        drawn = [choose(store, **SMALL, seed=seed)[0] for seed in range(30)]
        seen = np.concatenate([np.setdiff1d(topic.targets.authors, topic.queries.authors) for topic in drawn])
        assert len(set(seen.tolist())) == 38 and np.bincount(seen).max() < 25

    def test_all_who_qualify(self, corpus):
        store, _ = corpus
        late = np.array([in_period(store, post, 0.5, 1.0) for post in range(store.posts)])
        later = [late[begin:end].sum() for begin, end in zip(store.author_offsets, store.author_offsets[1:])]
        for topic in choose(store, **SMALL | {"accounts": None}):
            assert topic.targets.authors.tolist() == [author for author, count in enumerate(later) if count >= 4]

    def test_errors_say_what_was_found(self, corpus):
        store, _ = corpus
        for message, wrong in {
            "38 accounts have 4 posts in the target period, .* posts: 99 accounts wanted": {"accounts": 99},
            "1 of 2 topics have 19 accounts with 6 posts .* found: topic 0 19, topic 1 17, topic 2 17": {
                "distinguished": 19, "fewest_query_posts": None},
            "3 of 4 topics": {"topics": 4},
            r"need 1 <= fewest_query_posts \(7\) <= query_posts \(6\)": {"fewest_query_posts": 7},
            r"target_posts \(5\) <= fewest_target_posts \(4\)": {"target_posts": 5},
            "nothing to compare": {"accounts": 4},
            "'May' is no ISO date": {"target_from": "May"},
            "1.5: an ISO date, or a share": {"target_from": 1.5},
            "0 accounts have": {"target_from": "2200-01-01"},
            "0 of 2 topics": {"target_from": "1970-01-01"},
        }.items():  # fmt: skip
            with pytest.raises(ValueError, match=message):
                choose(store, **SMALL | wrong)


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


def test_targets_of_the_same_community_only(corpus):
    """Accounts 0..19 write in a/..., the others in b/...; some posts are of no known topic."""
    store, _ = corpus
    store = replace(store, meta={"topics": ["a/x", "a/y", "b/x"]})
    for author in range(40):
        mine = slice(*store.author_offsets[author : author + 2].tolist())
        store.topic[mine] = np.where(np.arange(mine.stop - mine.start) % 5 == 0, 3, author % 2 if author < 20 else 2)
    settings = SMALL | {"topics": 3, "distinguished": 3, "accounts": None}
    for topic in choose(store, **settings, same_community=True):
        wanted = range(20) if topic.name.startswith("a/") else range(20, 40)
        assert set(topic.targets.authors.tolist()) <= set(wanted) and len(topic.targets.authors) > 14
    assert all(len(topic.targets.authors) > 34 for topic in choose(store, **settings))
