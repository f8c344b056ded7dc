"""Texts become samples as notebook 01 cleans them; passages of several posts are nobody's own."""

from dataclasses import replace

import numpy as np

from helpers.accounts import samples as module
from helpers.accounts.samples import without_passages
from helpers.accounts.unjudged import posts_of_one_form
from tests.accounts.shared import posts_of
from tests.factories import store_in_memory

FORM = (
    "Please fill in this form: name of the package, its version {}, and what you expected to "
    "happen instead."
)


def test_texts_times_and_lengths(encoder):
    samples = module.samples_of(
        [["Hello there, friends", "<script>x</script> is fine"], ["One post"]],
        encoder.tokenizer,
        [["2020-01-01T05:00:00Z", 1577840400], [1577836800]],
    )
    assert samples.count.tolist() == [2, 1] and samples.authors.tolist() == [0, 1]
    assert samples.store.hour.tolist() == [5, 1, 0]
    first = samples.store.tokens[: samples.store.post_offsets[1]]
    assert encoder.tokenizer.decode(first) == "Hello there, friends"


def test_rooms_go_with_their_posts(encoder):
    posts = [["> quoted only", "a first"], ["b", "c", "d"]]
    topics = [["gone", "tea"], [None, 7, float("nan")]]
    samples = module.samples_of(posts, encoder.tokenizer, topics=topics)
    none = module.UNKNOWN_TOPIC
    assert module.rooms_of(samples.store).tolist() == ["tea", none, "7", none]
    unlisted = store_in_memory([2])
    unlisted.meta["topics"] = ["a"]
    unlisted.topic[:] = [0, 1]
    assert module.rooms_of(unlisted).tolist() == ["a", none], "the last row is any other topic"


def test_posts_are_spread_over_all_of_an_account():
    store = store_in_memory([3, 10, 200])
    store = replace(store, time=np.arange(store.posts))
    samples = module.spread_posts(store, posts=64)
    assert samples.authors.tolist() == [1, 2] and samples.count.tolist() == [10, 64]
    times = samples.store.time[samples.first[1] : samples.first[1] + 64]
    assert times[[0, -1]].tolist() == [13, 212], "the first and the last post are read"
    assert set(np.diff(times)) == {3, 4}
    assert module.spread_posts(store).store is store, "nothing is copied where all fit"


KINDS = np.arange(2, 4002).astype(np.uint64)  # of 4,000 tokens, each its own


def store_of(counts, posts):
    """A store of accounts with so many of the given posts, which are lists of tokens."""
    store = store_in_memory(counts, lengths=list(map(len, posts)))
    store.tokens[:] = np.concatenate(posts)
    return store


def test_posts_of_one_form_are_counted():
    rng = np.random.default_rng(0)
    joins = [[5, 6, 7, *rng.integers(100, 900, 2)] for _ in range(20)]
    person = [list(rng.integers(100, 900, 9)) for _ in range(20)]
    signed = [[*rng.integers(100, 900, 9), 5, 6, 7] for _ in range(20)]
    few = joins[:4]
    store = store_of([20, 20, 20, 4], [*joins, *person, *signed, *few])
    assert posts_of_one_form(store, KINDS).tolist() == [20, 0, 0, 0]


def test_a_footer_of_several_accounts_is_no_form():
    rng = np.random.default_rng(0)
    footer = list(range(20, 60))
    joins = [[5, 6, 7, *rng.integers(100, 900, 2)] for _ in range(20)]
    colleague, other = ([[*rng.integers(100, 900, 9), *footer] for _ in range(20)] for _ in "ab")
    footers_only = [[5, 6, number, *footer] for number in range(100, 120)]
    alone = [[*rng.integers(100, 900, 9), *range(60, 90)] for _ in range(20)]
    persons = [list(rng.integers(100, 900, 9)) for _ in range(80)]
    posts = [*joins, *colleague, *other, *footers_only, *alone, *persons]
    # what stands before a footer is judged as any post; what one account alone repeats is its form
    assert posts_of_one_form(store_of([20] * 9, posts), KINDS).tolist() == [
        20,
        0,
        0,
        0,
        20,
        *[0] * 4,
    ]


def repeated_naively(posts, length):
    """What runs of ``length`` tokens that stand in two posts or more do not cover."""
    seen, covered = {}, [set() for _ in posts]
    for number, post in enumerate(posts):
        for at in range(len(post) - length + 1):
            seen.setdefault(tuple(post[at : at + length]), []).append((number, at))
    for places in seen.values():
        if len({number for number, _ in places}) > 1:
            for number, at in places:
                covered[number].update(range(at, at + length))
    return [
        [token for at, token in enumerate(post) if at not in gone]
        for post, gone in zip(posts, covered)
    ]


def test_passages_equal_those_of_a_loop(monkeypatch):
    monkeypatch.setattr(module, "PASSAGE_TOKENS", 4)
    rng = np.random.default_rng(0)
    texts = [rng.integers(0, 3, size).tolist() for size in (30, 4, 25, 3, 40, 0)]
    left, dropped = without_passages(store_of([2, 4], texts), KINDS)
    expected = [
        own for own, post in zip(repeated_naively(texts, 4), texts) if len(own) >= 0.25 * len(post)
    ]
    kept_posts = posts_of(left)
    assert kept_posts == expected and dropped == sum(map(len, texts)) - sum(map(len, expected)) > 0
    assert left.author_offsets[-1] == len(kept_posts) == len(left.hour)


def test_forms_that_differ_in_a_number_are_one_form(encoder):
    own = ["I never liked tabs.", "Spaces, always spaces!"]
    posts = [[FORM.format(3), own[0]], [FORM.format(41), own[1]]]
    samples = module.samples_of(posts, encoder.tokenizer)
    left, dropped = without_passages(samples.store, encoder.kinds)
    assert dropped > 20 and [encoder.tokenizer.decode(post) for post in posts_of(left)] == own


def test_frames_equal_those_of_a_loop():
    """What begins or ends a tenth of an account's posts goes; the same words within a post stay."""
    rng = np.random.default_rng(3)
    count = 30
    posts = [rng.integers(20, 4000, rng.integers(4, 9)).tolist() for _ in range(count)]
    for number, post in enumerate(posts):
        if number % 3 == 0:
            post[:0] = [1, 2, 3]
        if number % 5 == 0:
            post += [4, 5, 6, 7]
        if number % 4 == 0:
            post[-1:-1] = [8, 9, 10]
    posts.append([1, 2, 3])  # nothing else: stays
    left = module.without_frames(store_of([count + 1], posts), KINDS)
    expected = []
    for post in posts[:-1]:
        if post[:3] == [1, 2, 3]:
            post = post[3:]
        if post[-4:] == [4, 5, 6, 7]:
            post = post[:-4]
        expected.append(post)
    assert posts_of(left) == [*expected, [1, 2, 3]]


def test_phrases_go_wherever_they_stand():
    posts = [[number + 20, 8, 9, 10, number + 60] for number in range(12)]
    posts += [[number + 200, number + 300] for number in range(12)] + [[8, 9, 10]]
    samples = module.whole_accounts(store_of([25], posts))
    left = module.without_phrases(samples, KINDS).store
    assert posts_of(left) == [*([post[0], post[-1]] for post in posts[:24]), [8, 9, 10]]
