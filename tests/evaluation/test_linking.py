"""Account linking: trials against loops over posts, tables against direct computation."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from helpers.evaluation.linking import (
    LinkingConfig,
    linking_curve,
    linking_metrics,
    linking_trials,
    score_linking,
)
from tests.factories import HabitCounts

DAY = 86_400
SMALL = {"topics": 2, "enrolled": 5, "accounts": 12, "query_posts": 6}
SMALL |= {"min_query_posts": 3, "target_posts": 2, "min_target_posts": 4}


def trials_of(store, sizes=(), earlier=None, **settings):
    return linking_trials(store, LinkingConfig.of(settings), sizes, earlier)


@pytest.fixture
def corpus(make_store):
    """40 authors with 5 to 80 posts each, in time order; posts are numbered by tokens."""
    counts = np.random.default_rng(1).integers(5, 80, 40)
    rng = np.random.default_rng(2)
    times = np.concatenate([np.sort(rng.integers(0, 100 * DAY, count)) for count in counts])
    numbers = np.arange(counts.sum() + 1)
    store = make_store(counts, topics=4)
    return replace(store, time=times, tokens=numbers[:-1].astype("u2"), post_offsets=numbers)


@pytest.fixture
def far_from_utc(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def posts_of(samples):
    """Account of each sample -> the numbers of its posts."""
    tokens = samples.store.tokens
    return {
        account: tokens[first : first + count].tolist()
        for account, first, count in zip(samples.authors.tolist(), samples.first, samples.count)
    }


def posts_in(store, author, topic, low, high):
    """The posts of an author in a topic, between two instants or two shares of its posts."""
    begin, end = store.author_offsets[author : author + 2].tolist()
    posts = []
    for post in range(begin, end):
        is_inside = low <= store.time[post] < high
        if isinstance(high, float):
            is_inside = low * (end - begin) <= post - begin < high * (end - begin)
        if is_inside and store.topic[post] == topic:
            posts.append(post)
    return posts


@pytest.mark.parametrize(
    "begin, split, end", [(0.0, 0.5, 1.0), (0.2, 0.6, 0.9), (20 * DAY, 60 * DAY, 90 * DAY)]
)
def test_samples_are_those_of_a_loop(corpus, far_from_utc, begin, split, end):
    moments = [begin, split, end]
    if begin > 1:
        moments = [datetime.fromtimestamp(second, UTC).isoformat()[:19] for second in moments]
    period = dict(zip(("query_from", "target_from", "target_until"), moments))
    for topic in trials_of(corpus, **SMALL, **period):
        number = corpus.meta["topics"].index(topic.name)
        queries, targets = posts_of(topic.queries), posts_of(topic.targets)
        assert (len(queries), len(targets)) == (5, 12) and queries.keys() <= targets.keys()
        for author, posts in queries.items():
            own = posts_in(corpus, author, number, begin, split)
            assert len(own) >= 3 and posts == own[-6:]
        for author, posts in targets.items():
            own = posts_in(corpus, author, number, split, end)
            assert len(own) >= 4 and posts == own[-2:]


def test_topics_are_the_most_popular_ones_that_qualify(corpus):
    early = []
    for topic in range(3):
        early.append([p for author in range(40) for p in posts_in(corpus, author, topic, 0.0, 0.5)])
    popular = [corpus.meta["topics"][topic] for topic in np.argsort([*map(len, early)])[::-1]]
    topics = trials_of(corpus, **SMALL | {"topics": 3})
    assert [topic.name for topic in topics] == popular
    # posts of other topics than the store's are no topic, however many
    corpus.topic[np.concatenate(early)[::2]] = 3
    settings = SMALL | {"topics": 3, "enrolled": 1, "min_query_posts": 1}
    assert {topic.name for topic in trials_of(corpus, **settings)} == set(popular)


def test_who_falls_silent_is_not_chosen_and_the_instant_itself_is_later(make_store):
    """Authors 0..4 stop before the split; 5..9 write once before, at and once after it."""
    store = make_store([3] * 10, topics=2)
    store.topic[:] = 0
    times = np.tile([DAY, 2 * DAY, 3 * DAY], 10)
    times[:15] //= 2
    numbers = np.arange(31)
    store = replace(store, time=times, tokens=numbers[:30].astype("u2"), post_offsets=numbers)
    settings = {"target_from": "1970-01-03", "topics": 1, "query_posts": 1, "target_posts": 2}
    settings |= {"min_target_posts": 2, "accounts": None}
    (topic,) = trials_of(store, enrolled=5, **settings)
    assert posts_of(topic.queries) == {author: [3 * author] for author in range(5, 10)}
    later = {author: [3 * author + 1, 3 * author + 2] for author in range(5, 10)}
    assert posts_of(topic.targets) == later
    with pytest.raises(ValueError, match="0 of 1 topics have .* enough posts: topic 0 5"):
        trials_of(store, enrolled=6, **settings)
    (topic,) = trials_of(store, enrolled=6, min_enrolled=3, **settings)
    assert len(topic.queries) == 5, "as many as there are"


def test_targets_of_the_same_community_only(corpus):
    """Accounts 0..19 write in a/x, the others mostly in b/x, and in a/x, too."""
    topics = []
    for author, count in enumerate(corpus.posts_per_author()):
        is_visit = np.arange(count) % 3 == 0
        topics.append(np.where(is_visit | (author < 20), 0, 1))
    store = replace(corpus, meta={"topics": ["a/x", "b/x"]}, topic=np.concatenate(topics))
    settings = SMALL | {"topics": 1, "enrolled": 3, "accounts": None}
    (everyone,) = trials_of(store, **settings)
    (natives,) = trials_of(store, **settings, same_community=True)
    targets = everyone.targets.authors
    assert natives.targets.authors.tolist() == targets[targets < 20].tolist() != targets.tolist()


def test_queries_may_be_posts_of_training(corpus, make_store, monkeypatch):
    """khan2021 Table 9: accounts are found by their names, of which training has others, too."""
    counts = np.random.default_rng(3).integers(20, 60, 30)
    numbers = np.arange(counts.sum() + 1)
    train = make_store(counts, topics=4, seed=5)
    train = replace(train, tokens=numbers[:-1].astype("u2"), post_offsets=numbers)
    number_in_corpus = np.arange(30) * 2  # above 38 they are names of nobody in the corpus

    def author_names(store):
        if store is train:
            return [f"a{number:02d}" for number in number_in_corpus]
        return [f"a{number:02d}" for number in range(40)]

    monkeypatch.setattr(type(train), "author_names", author_names)
    settings = SMALL | {"enrolled": 20, "min_enrolled": 2, "accounts": None}
    for topic in trials_of(corpus, earlier=train, **settings):
        number = corpus.meta["topics"].index(topic.name)
        queries, targets = {}, {}
        for author in range(40):
            later = posts_in(corpus, author, number, 0.0, 1.0)
            if len(later) >= 4:
                targets[author] = later[-2:]
        for row, author in enumerate(number_in_corpus.tolist()):
            before = posts_in(train, row, number, 0.0, 1.0)
            if author in targets and len(before) >= 3:
                queries[author] = before[-6:]
        assert posts_of(topic.queries) == queries
        assert posts_of(topic.targets) == targets
    other = replace(train, meta={"topics": ["cars"]})
    with pytest.raises(ValueError, match="do not have the same topics"):
        trials_of(corpus, earlier=other, **settings)


def test_all_pairs_are_scored_with_their_labels_and_sizes(corpus):
    topics = {topic.name: topic for topic in trials_of(corpus, **SMALL)}
    scored = score_linking(HabitCounts(hours=True), [*topics.values()])
    assert len(scored) == 2 * 5 * 12 and scored.same.sum() == 2 * 5
    assert (scored.same == (scored.query_author == scored.target_author)).all()
    for trial in scored.itertuples():
        query = posts_of(topics[trial.topic].queries)[trial.query_author]
        target = posts_of(topics[trial.topic].targets)[trial.target_author]
        assert (len(query), len(target)) == (trial.query_posts, trial.target_posts)
        one, other = (np.bincount(corpus.hour[posts], minlength=24) for posts in (query, target))
        cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
        assert trial.score == pytest.approx(cosine, abs=2e-6)


@pytest.fixture
def scored(corpus):
    return score_linking(HabitCounts(), trials_of(corpus, **SMALL))


def test_a_curve_is_the_mean_of_the_topics():
    same = np.array([1, 1, 0, 0, 0, 1, 1, 0], bool)
    table = pd.DataFrame({"score": [3, 2, 1, 0] * 2, "same": same, "topic": list("xxxxyyyy")})
    curve = linking_curve(table.assign(query_author=0)).set_index("P_fa").P_miss
    # the first is perfect, the second finds nothing until half is accepted
    assert curve[0.0] == 0.5 and curve[1.0] == 0
    assert curve[curve.index < 0.499].eq(0.5).all() and curve[curve.index > 0.501].eq(0).all()


def test_trainings_are_averaged_and_a_difference_is_that_of_both_means(scored):
    other = scored.assign(score=-scored.score)
    values = [linking_metrics(part, resamples=0).value for part in (scored, other)]
    np.testing.assert_allclose(
        linking_metrics([scored, other], resamples=0).value, np.mean(values, 0)
    )
    gain = linking_metrics([scored, other], resamples=50, base=[other])
    np.testing.assert_allclose(gain.value, np.mean(values, 0) - values[1])
    reverse = linking_metrics(other, resamples=50, base=[scored, other])
    np.testing.assert_allclose(gain[["low", "high"]], -reverse[["high", "low"]])
    for base in (scored[scored.topic == scored.topic[0]], scored.assign(target_posts=9)):
        with pytest.raises(ValueError, match="not of the same trials"):
            linking_metrics(scored, base=[base])
