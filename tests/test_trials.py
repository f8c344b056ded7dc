"""The trials of account linking against loops over the posts, and what their choice must not depend on."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from helpers.evaluation.trials import choose

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
