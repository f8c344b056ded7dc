"""Account linking: trials against loops over posts, tables against direct computation."""

import random
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import roc_curve

from helpers.evaluation import scores
from helpers.evaluation.detection import PAPER, DetectionCosts
from helpers.evaluation.linking import (
    LinkingConfig,
    linking_curve,
    linking_metrics,
    linking_trials,
    score_linking,
)
from helpers.tokens.store import build_store, list_topics
from helpers.tokens.tokenizer import prepare_text
from tests.factories import HabitCounts, LookUp

EVEN = DetectionCosts(prior=0.5, miss=1, false_accept=1)
DAY = 86_400
SMALL = {
    "topics": 2,
    "enrolled": 5,
    "accounts": 12,
    "query_posts": 6,
    "min_query_posts": 3,
    "target_posts": 2,
    "min_target_posts": 4,
}


def trials_of(store, sizes=(), **settings):
    return linking_trials(store, LinkingConfig.of(settings), sizes)


@pytest.fixture
def corpus(make_store):
    """40 authors with 5 to 80 posts each, in time order; posts are numbered by tokens."""
    counts = np.random.default_rng(1).integers(5, 80, 40)
    rng = np.random.default_rng(2)
    times = np.concatenate([np.sort(rng.integers(0, 100 * DAY, count)) for count in counts])
    posts = np.arange(counts.sum())
    return replace(
        make_store(counts, topics=4),
        time=times,
        tokens=posts.astype("u2"),
        post_offsets=np.arange(len(posts) + 1),
    )


@pytest.fixture
def far_from_utc(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def posts_of(samples, number=None):
    """The posts of one sample, or of all of them."""
    rows = range(len(samples)) if number is None else [number]
    return [
        int(samples.store.tokens[post])
        for row in rows
        for post in range(samples.first[row], samples.first[row] + samples.count[row])
    ]


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
    @pytest.mark.parametrize(
        "begin, split, end", [(0.0, 0.5, 1.0), (0.2, 0.6, 0.9), (20 * DAY, 60 * DAY, 90 * DAY)]
    )
    def test_samples_are_those_of_a_loop(self, corpus, far_from_utc, begin, split, end):
        store, settings = corpus, dict(SMALL)
        if begin > 1:
            dates = (
                datetime.fromtimestamp(second, UTC).isoformat()[:19]
                for second in (begin, split, end)
            )
        else:
            dates = (begin, split, end)
        settings |= dict(zip(("query_from", "target_from", "target_until"), dates))
        for topic in trials_of(store, **settings):
            row = store.meta["topics"].index(topic.name)
            mine, everyone = topic.queries.authors, topic.targets.authors
            sizes = len(set(mine.tolist())), len(set(everyone.tolist()))
            assert sizes == (5, SMALL["accounts"]) and set(mine) <= set(everyone)
            for samples, wanted, least, most in (
                (
                    topic.queries,
                    lambda p: in_period(store, p, begin, split) and store.topic[p] == row,
                    3,
                    6,
                ),
                (
                    topic.targets,
                    lambda p: in_period(store, p, split, end) and store.topic[p] == row,
                    4,
                    2,
                ),
            ):
                for number, author in enumerate(samples.authors):
                    own = [
                        p
                        for p in range(*store.author_offsets[author : author + 2].tolist())
                        if wanted(p)
                    ]
                    assert len(own) >= least
                    assert posts_of(samples, number) == own[-most:]

    def test_topics_are_the_most_popular_ones_that_qualify(self, corpus):
        store = corpus
        early = np.array([in_period(store, post, 0.0, 0.5) for post in range(store.posts)])
        popular = np.argsort(-np.bincount(store.topic[early], minlength=4)[:3], kind="stable")
        names = [store.meta["topics"][row] for row in popular]
        assert [topic.name for topic in trials_of(store, **SMALL | {"topics": 3})] == names
        # posts of other topics than the store's are no topic, however many
        store.topic[early] = np.where(np.arange(early.sum()) % 3, 3, store.topic[early])
        settings = SMALL | {"topics": 3, "enrolled": 1, "min_query_posts": 1}
        assert {topic.name for topic in trials_of(store, **settings)} == set(names)

    def test_a_topic_of_few_accounts_is_passed_over(self, corpus):
        store = corpus
        first = trials_of(store, **SMALL | {"topics": 1})[0]
        row = store.meta["topics"].index(first.name)
        store.topic[store.topic == row] = 3
        store.topic[: store.author_offsets[4]] = row  # four authors
        names = [topic.name for topic in trials_of(store, **SMALL)]
        assert first.name not in names and len(names) == 2

    def test_the_seed_decides_and_sizes_do_not(self, corpus):
        store = corpus
        wanted = trials_of(store, **SMALL, seed=3)
        again = trials_of(store, **SMALL, seed=3)
        longer = trials_of(store, **SMALL | {"target_posts": 4}, seed=3)
        other = trials_of(store, **SMALL, seed=4)
        for one, same, more in zip(wanted, again, longer, strict=True):
            for side in ("queries", "targets"):
                assert posts_of(getattr(one, side)) == posts_of(getattr(same, side))
                assert (getattr(one, side).authors == getattr(same, side).authors).all()
            assert posts_of(one.queries) == posts_of(more.queries)
            assert (one.targets.authors == more.targets.authors).all()
            assert (more.targets.count == 4).all() and (one.targets.count == 2).all()
        both = trials_of(store, (2, 4), **SMALL, seed=3)
        assert [posts_of(one.targets) for one in both[::2]] == [
            posts_of(one.targets) for one in wanted
        ]
        assert [posts_of(one.targets) for one in both[1::2]] == [
            posts_of(one.targets) for one in longer
        ]
        assert both[0].queries is both[1].queries and [one.name for one in both[::2]] == [
            one.name for one in wanted
        ]
        assert any(
            (one.queries.authors != two.queries.authors).any() for one, two in zip(wanted, other)
        )
        assert any(
            (one.targets.authors != two.targets.authors).any() for one, two in zip(wanted, other)
        )

    def test_who_falls_silent_is_not_chosen_and_the_instant_itself_is_later(self, make_store):
        """Authors 0..4 stop before the split; 5..9 write once before, at and once after it."""
        store = make_store([3] * 10, topics=2)
        store.topic[:] = 0
        times = np.tile([DAY, 2 * DAY, 3 * DAY], 10)
        times[:15] //= 2
        store = replace(
            store, time=times, tokens=np.arange(30, dtype="u2"), post_offsets=np.arange(31)
        )
        settings = {
            "target_from": "1970-01-03",
            "topics": 1,
            "query_posts": 1,
            "target_posts": 2,
            "min_target_posts": 2,
            "accounts": None,
        }
        (topic,) = trials_of(store, enrolled=5, **settings)
        assert topic.queries.authors.tolist() == topic.targets.authors.tolist() == [5, 6, 7, 8, 9]
        assert posts_of(topic.queries) == [15, 18, 21, 24, 27]
        assert posts_of(topic.targets) == [16, 17, 19, 20, 22, 23, 25, 26, 28, 29]
        with pytest.raises(ValueError, match="0 of 1 topics have .* enough posts: topic 0 5"):
            trials_of(store, enrolled=6, **settings)

    def test_as_many_enrolled_accounts_as_there_are(self, corpus):
        store = corpus
        wanted = {"topics": 1, "enrolled": 30, "accounts": None, "min_query_posts": None}
        with pytest.raises(ValueError, match="0 of 1 topics have enough accounts"):
            trials_of(store, **SMALL | wanted)
        (topic,) = trials_of(store, **SMALL | wanted | {"min_enrolled": 3})
        row = store.meta["topics"].index(topic.name)
        posts = [
            post
            for post in range(store.posts)
            if store.topic[post] == row and in_period(store, post, 0.0, 0.5)
        ]
        per_author = np.bincount([owner(store, post) for post in posts])
        assert set(topic.queries.authors) == set(np.flatnonzero(per_author >= 6)) & set(
            topic.targets.authors
        )

    def test_the_others_are_drawn_from_all(self, corpus):
        store = corpus
        drawn = [trials_of(store, **SMALL, seed=seed)[0] for seed in range(30)]
        seen = np.concatenate(
            [np.setdiff1d(topic.targets.authors, topic.queries.authors) for topic in drawn]
        )
        assert len(set(seen.tolist())) == 28 and np.bincount(seen).max() < 20

    def test_all_who_qualify(self, corpus):
        store = corpus
        late = np.array([in_period(store, post, 0.5, 1.0) for post in range(store.posts)])
        for topic in trials_of(store, **SMALL | {"accounts": None}):
            there = late & (store.topic == store.meta["topics"].index(topic.name))
            later = [
                there[begin:end].sum()
                for begin, end in zip(store.author_offsets, store.author_offsets[1:])
            ]
            assert topic.targets.authors.tolist() == [
                author for author, count in enumerate(later) if count >= 4
            ]

    def test_errors_say_what_was_found(self, corpus):
        store = corpus
        for message, wrong in {
            "0 of 2 topics .* accounts with enough posts: topic 0": {"accounts": 99},
            "3 of 4 topics": {"topics": 4},
            r"min_query_posts \(7\) must not be above query_posts \(6\)": {"min_query_posts": 7},
            r"target_posts \(5\) must not be above min_target_posts \(4\)": {"target_posts": 5},
            r"enrolled \(5\) must not be above accounts \(4\)": {"accounts": 4},
            "'target_from' is 'May': .*isoformat": {"target_from": "May"},
            "'target_from' is 1.5: neither an ISO date nor a share": {"target_from": 1.5},
            "0 of 2 topics have enough": {"target_from": "2200-01-01"},
            "0 of 2 topics": {"target_from": "1970-01-01"},
            "unknown setting 'distinguished'": {"distinguished": 3},
            "targets of 9 posts: min_target_posts is 4": {"sizes": (2, 9)},
        }.items():
            with pytest.raises(ValueError, match=message):
                trials_of(store, **SMALL | wrong)


def test_targets_of_the_same_community_only(corpus):
    """Accounts 0..19 write in a/x, the others mostly in b/x, and in a/x, too."""
    topics = []
    for author, count in enumerate(corpus.posts_per_author()):
        is_visit = np.arange(count) % 3 == 0
        topics.append(np.where(is_visit | (author < 20), 0, 1))
    store = replace(corpus, meta={"topics": ["a/x", "b/x"]}, topic=np.concatenate(topics))
    settings = SMALL | {"topics": 1, "enrolled": 3, "accounts": None}
    (everyone,), (natives,) = [
        trials_of(store, **settings, same_community=same) for same in (False, True)
    ]
    targets = everyone.targets.authors
    assert natives.targets.authors.tolist() == targets[targets < 20].tolist() != targets.tolist()


class TestTrainingPeriod:
    """khan2021 Table 9: queries from the training posts of accounts, targets later."""

    TOPICS = ("bread", "bikes", "birds")
    PLACES = {"topics": 2, "enrolled": 20, "min_enrolled": 2, "accounts": None, "query_posts": 6}
    PLACES |= {"min_query_posts": 3, "target_posts": 2, "min_target_posts": 4}

    @pytest.fixture
    def periods(self, tmp_path, write_posts):
        """Tables of training posts by 14 accounts, and of later posts by eleven of them."""
        rng = random.Random(4)
        rows = {"train": [], "seen": []}
        for number in range(14):
            for name, begin in (("train", 0), ("seen", 1000 * DAY)):
                if name == "seen" and number % 4 == 3:
                    continue
                seconds = sorted(rng.sample(range(begin, begin + 900 * DAY), 40))
                rows[name] += [
                    (f"a{number:02d}", second, rng.choice(self.TOPICS), f"{name} {number} {second}")
                    for second in seconds
                ]
        stores = {}
        for name in rows:
            path = write_posts(rows[name], f"{name}.parquet")
            encode = prepare_text(tmp_path / "words", "bytes", 0, path).encode
            topics = list_topics(path, known=self.TOPICS)
            stores[name] = build_store(path, tmp_path / name, encode, topics, "bytes", 256)
        return rows, stores

    @staticmethod
    def texts(samples):
        """The posts of each sample, by the name of its account, as texts."""
        store = samples.store
        found = {}
        for account, first, count in zip(samples.authors, samples.first, samples.count):
            ends = store.post_offsets[first : first + count + 1]
            found[int(account)] = [
                bytes(store.tokens[begin:end].astype("u1").tolist()).decode()
                for begin, end in zip(ends, ends[1:])
            ]
        return found

    def test_queries_and_targets_are_those_of_a_loop_over_posts(self, periods):
        rows, stores = periods
        dates = {
            "query_from": "1970-01-01",
            "target_from": "1972-09-01",
            "target_until": "1999-01-01",
        }
        config = LinkingConfig.of(self.PLACES | dates)
        trials = linking_trials(stores["seen"], config, earlier=stores["train"])
        people = sorted({row[0] for row in rows["seen"]})
        posts_before = Counter(row[2] for row in rows["train"] if row[0] in people)
        popular = [topic for topic, _ in posts_before.most_common()]
        names = [part.name for part in trials]
        assert len(names) == 2 and names == [topic for topic in popular if topic in names]

        for part in trials:
            queries, targets = {}, {}
            for number, person in enumerate(people):
                before = [row[3] for row in rows["train"] if row[::2][:2] == (person, part.name)]
                after = [row[3] for row in rows["seen"] if row[::2][:2] == (person, part.name)]
                if len(after) >= 4:  # enough posts in the topic later: the account has a target
                    targets[number] = after[-2:]
                    if len(before) >= 3:  # and enough before: it is looked for
                        queries[number] = before[-6:]
            assert self.texts(part.queries) == queries
            assert self.texts(part.targets) == targets

    def test_stores_of_other_topics_are_refused(self, periods):
        _, stores = periods
        other = replace(stores["train"], meta={"topics": ["cars"]})
        with pytest.raises(ValueError, match="do not have the same topics"):
            linking_trials(stores["seen"], LinkingConfig.of(self.PLACES), earlier=other)


class TestScores:
    def test_all_pairs_with_their_labels_and_sizes(self, corpus):
        chosen, model = trials_of(corpus, **SMALL), HabitCounts()
        scored = score_linking(model, chosen)
        assert len(scored) == 2 * 5 * 12 and scored.same.sum() == 2 * 5
        assert (scored.same == (scored.query_author == scored.target_author)).all()

        def row(posts):
            counts = np.zeros(34)
            for post in posts:
                counts[corpus.hour[post]] += 1
                counts[24 + corpus.topic[post]] += 1
            return counts / np.linalg.norm(counts)

        for trial in scored.sample(60, random_state=0).itertuples():
            (topic,) = (one for one in chosen if one.name == trial.topic)
            rows = []
            for samples, author, size in (
                (topic.queries, trial.query_author, trial.query_posts),
                (topic.targets, trial.target_author, trial.target_posts),
            ):
                posts = posts_of(samples, samples.authors.tolist().index(author))
                assert {owner(corpus, post) for post in posts} == {author} and len(posts) == size
                rows.append(row(posts))
            assert trial.score == pytest.approx(rows[0] @ rows[1], abs=2e-6)

    def test_sparse_rows_and_small_blocks_score_the_same(self, corpus, monkeypatch):
        rows = np.abs(np.random.default_rng(0).standard_normal((corpus.posts, 9))).astype(
            np.float32
        )
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        chosen = trials_of(corpus, **SMALL)
        dense = score_linking(LookUp(rows), chosen)
        for matrix in (sparse.csr_matrix, sparse.csr_array):
            np.testing.assert_allclose(
                score_linking(LookUp(matrix(rows)), chosen).score, dense.score, atol=2e-6
            )
        monkeypatch.setattr(scores, "BLOCK", 1)
        np.testing.assert_allclose(
            score_linking(LookUp(rows), chosen).score, dense.score, atol=2e-6
        )


class TestResults:
    @pytest.fixture
    def scored(self, corpus):
        return score_linking(HabitCounts(), trials_of(corpus, **SMALL))

    def test_error_rates_are_those_of_scikit_learn(self, scored):
        def crossing(part):
            p_fa, hit, _ = roc_curve(part.same, part.score, drop_intermediate=False)
            return np.interp(0, p_fa + hit - 1, p_fa)

        alone = [crossing(part) for _, part in scored.groupby("topic", observed=True)]
        table = linking_metrics(scored, resamples=50)
        assert table.value["EER"] == pytest.approx(np.mean(alone))
        assert ((table.low <= table.value) & (table.value <= table.high)).all()
        pooled = linking_metrics(scored.assign(topic="pooled"), resamples=0)
        assert pooled.value["EER"] == pytest.approx(crossing(scored))

    def test_a_curve_is_the_mean_of_the_topics(self):
        same = np.array([[1, 1, 0, 0], [0, 1, 1, 0]], bool).ravel()
        topic = np.repeat(["x", "y"], 4)
        table = pd.DataFrame({"score": [3, 2, 1, 0] * 2, "same": same, "topic": topic})
        curve = linking_curve(table.assign(query_author=0)).set_index("P_fa").P_miss
        # the first is perfect, the second finds nothing until half is accepted
        assert curve[0.0] == 0.5 and curve[1.0] == 0
        assert curve[curve.index < 0.499].eq(0.5).all() and curve[curve.index > 0.501].eq(0).all()

    def test_a_difference_is_that_of_both_means_over_topics(self, scored):
        base = scored.assign(score=-scored.score)
        table = linking_metrics(scored, resamples=50, base=[base])
        values = linking_metrics(scored, resamples=0).value
        apart = values - linking_metrics(base, resamples=0).value
        assert table.value.tolist() == apart.tolist()
        reverse = linking_metrics(base, resamples=50, base=[scored])
        np.testing.assert_allclose(table[["low", "high"]], -reverse[["high", "low"]])
        first_topic = scored[scored.topic == scored.topic.iloc[0]]
        with pytest.raises(ValueError, match="not of the same trials"):
            linking_metrics(scored, base=[first_topic])

    def test_trainings_of_one_system_are_averaged(self, scored):
        other = scored.assign(score=-scored.score)
        values = [linking_metrics(part, resamples=0).value for part in (scored, other)]
        both = linking_metrics([scored, other], resamples=0).value
        np.testing.assert_allclose(both, np.mean(values, 0))
        gain = linking_metrics([scored, other], base=[other], resamples=0).value
        np.testing.assert_allclose(gain, both - values[1])
        others = scored.assign(target_posts=scored.target_posts + 1)
        with pytest.raises(ValueError, match="not of the same trials"):
            linking_metrics(scored, base=[others])

    def test_the_costs_are_those_asked_for(self, scored):
        scored = scored.assign(
            score=np.random.default_rng(0).standard_normal(len(scored)) + scored.same
        )
        low, high = (linking_metrics(scored, costs, resamples=0).value for costs in (EVEN, PAPER))
        assert low["minDCF"] < high["minDCF"] and low["minDCF_released"] == high["minDCF_released"]

    def test_a_habit_is_found_and_chance_is_chance(self, make_store):
        """Authors with their own hours are linked; the same posts with hours shuffled are not."""
        store = make_store(np.full(60, 60), topics=3, habits=True)
        store = replace(store, meta={"topics": ["all"]}, topic=np.zeros(3600, "u2"))
        settings = {
            "topics": 1,
            "enrolled": 30,
            "accounts": 60,
            "query_posts": 10,
            "min_query_posts": 5,
            "target_posts": 8,
        }
        linked = linking_metrics(
            score_linking(HabitCounts(hours=True), trials_of(store, **settings))
        ).loc["EER"]
        store.hour[:] = np.random.default_rng(0).permutation(store.hour)
        lost = linking_metrics(
            score_linking(HabitCounts(hours=True), trials_of(store, **settings))
        ).loc["EER"]
        assert linked.value < 0.15 and linked.high < 0.3
        assert 0.35 < lost.value < 0.65 and lost.low < 0.5 < lost.high
