"""Texts become samples as notebook 01 cleans them; passages of several posts are nobody's own."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.accounts import samples as module
from helpers.accounts.samples import without_passages
from helpers.accounts.unjudged import posts_of_one_form
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
    first, second = (
        module.samples_of(posts, encoder.tokenizer, topics=topics)
        for posts, topics in (
            ([["> quoted only", "a first"], ["b"]], [["gone", "tea"], [None]]),
            ([["c", "d", "e"]], [["tea", 7, float("nan")]]),
        )
    )
    assert module.rooms_of(first.store).tolist() == ["tea", module.UNKNOWN_TOPIC]
    assert module.rooms_of(module.in_memory(second).store).tolist() == [
        "tea",
        "7",
        module.UNKNOWN_TOPIC,
    ]
    unlisted = store_in_memory([2])
    unlisted.meta["topics"], unlisted.topic[:] = ["a"], [0, 1]
    assert module.rooms_of(unlisted).tolist() == ["a", module.UNKNOWN_TOPIC], (
        "the last row is any other topic"
    )


def test_a_post_without_own_words_is_left_out(encoder):
    times = [[1577836800, 1577840400], [1577836800]]
    samples = module.samples_of([["> quoted only", "mine"], ["other"]], encoder.tokenizer, times)
    assert samples.count.tolist() == [1, 1]
    assert samples.store.hour.tolist() == [1, 0]  # the time of the post that stayed


@pytest.mark.parametrize(
    ("given", "times", "message"),
    [
        ([], None, "no account"),
        ([["a"], ["> quote"]], None, "account 1 has no post"),
        ([["a"]], [[1, 2]], "one time for each post"),
        ([["a"]], [["never"]], "1 times are none"),
        ([["a"], ["b", None]], None, "account 1 has the post None"),
    ],
)
def test_what_is_wrong_is_said(encoder, given, times, message):
    with pytest.raises(ValueError, match=message):
        module.samples_of(given, encoder.tokenizer, times)


def test_one_list_of_texts_is_not_two_accounts(encoder):
    with pytest.raises(TypeError, match="one list an account"):
        module.samples_of(["post", "post"], encoder.tokenizer)


def test_posts_are_spread_over_all_of_an_account():
    store = store_in_memory([3, 10, 200])
    store = replace(store, time=np.arange(store.posts))
    samples = module.spread_posts(store, posts=64)
    assert samples.authors.tolist() == [1, 2] and samples.count.tolist() == [10, 64]
    times = samples.store.time[samples.first[1] : samples.first[1] + 64]
    assert times[[0, -1]].tolist() == [13, 212], "the first and the last post are read"
    assert set(np.diff(times)) == {3, 4}
    assert module.spread_posts(store).store is store, "nothing is copied where all fit"


def test_posts_of_one_form_are_counted():
    rng = np.random.default_rng(0)
    joins = [[5, 6, 7, *rng.integers(100, 900, 2)] for _ in range(20)]
    person = [list(rng.integers(100, 900, 9)) for _ in range(20)]
    signed = [[*rng.integers(100, 900, 9), 5, 6, 7] for _ in range(20)]
    few = joins[:4]
    posts = [*joins, *person, *signed, *few]
    store = replace(
        store_in_memory([20, 20, 20, 4]),
        tokens=np.concatenate(posts).astype(np.uint16),
        post_offsets=np.cumsum([0, *map(len, posts)]),
    )
    kinds = np.arange(2, 1002, dtype=np.uint64)
    assert posts_of_one_form(store, kinds).tolist() == [20, 0, 0, 0]


def test_a_footer_of_several_accounts_is_no_form():
    rng = np.random.default_rng(0)
    footer = list(range(20, 60))
    joins = [[5, 6, 7, *rng.integers(100, 900, 2)] for _ in range(20)]
    colleague, other = ([[*rng.integers(100, 900, 9), *footer] for _ in range(20)] for _ in "ab")
    footers_only = [[5, 6, number, *footer] for number in range(100, 120)]
    alone = [[*rng.integers(100, 900, 9), *range(60, 90)] for _ in range(20)]
    persons = [list(rng.integers(100, 900, 9)) for _ in range(80)]
    posts = [*joins, *colleague, *other, *footers_only, *alone, *persons]
    store = replace(
        store_in_memory([20] * 9),
        tokens=np.concatenate(posts).astype(np.uint16),
        post_offsets=np.cumsum([0, *map(len, posts)]),
    )
    kinds = np.arange(2, 1002, dtype=np.uint64)
    # what stands before a footer is judged as any post; what one account alone repeats is its form
    assert posts_of_one_form(store, kinds).tolist() == [20, 0, 0, 0, 20, 0, 0, 0, 0]


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
    store = store_in_memory([2, 4], lengths=[len(post) for post in texts], vocabulary=3)
    store.tokens[:] = np.concatenate(texts)
    kinds = np.arange(1, 4).astype(np.uint64)
    left, dropped = without_passages(store, kinds)
    expected = [
        own for own, post in zip(repeated_naively(texts, 4), texts) if len(own) >= 0.25 * len(post)
    ]
    kept_posts = [
        left.tokens[a:b].tolist() for a, b in zip(left.post_offsets, left.post_offsets[1:])
    ]
    assert kept_posts == expected and dropped == sum(map(len, texts)) - sum(map(len, expected)) > 0
    assert left.author_offsets[-1] == len(kept_posts) == len(left.hour)


def test_forms_that_differ_in_a_number_are_one_form(encoder):
    own = ["I never liked tabs.", "Spaces, always spaces!"]
    samples = module.samples_of(
        [[FORM.format(3), own[0]], [FORM.format(41), own[1]]], encoder.tokenizer
    )
    left, dropped = without_passages(samples.store, encoder.kinds)
    texts = [
        encoder.tokenizer.decode(left.tokens[a:b])
        for a, b in zip(left.post_offsets, left.post_offsets[1:])
    ]
    assert dropped > 20 and texts == own


def test_stores_are_cut(encoder):
    both = module.samples_of([["a first one", "b"], ["e f g", "h"]], encoder.tokenizer)
    second = module.samples_of([["e f g", "h"]], encoder.tokenizer)
    alone = module.in_memory(both[np.array([1])])
    assert alone.count.tolist() == [2]
    assert alone.store.tokens.tolist() == second.store.tokens.tolist()


def test_of_an_account_of_many_texts_evenly_spread_ones_are_read(encoder, monkeypatch):
    texts = [f"this is what number {number} says" for number in range(10)]
    monkeypatch.setattr(module.spread_posts, "__defaults__", (None, 4))
    samples = module.samples_of([texts, texts[:3]], encoder.tokenizer)
    assert samples.count.tolist() == [4, 3]
    read = module.texts_of(samples.store, np.arange(4), encoder.tokenizer)
    assert [text.split()[4] for text in read] == ["0", "3", "6", "9"]


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
    store = store_in_memory([count + 1], lengths=list(map(len, posts)), vocabulary=4000)
    store.tokens[:] = np.concatenate(posts)
    left = module.without_frames(store, np.arange(2, 4002).astype(np.uint64))
    expected = []
    for post in posts[:-1]:
        if post[:3] == [1, 2, 3]:
            post = post[3:]
        if post[-4:] == [4, 5, 6, 7]:
            post = post[:-4]
        expected.append(post)
    found = [left.tokens[a:b].tolist() for a, b in zip(left.post_offsets, left.post_offsets[1:])]
    assert found == [*expected, [1, 2, 3]]


def test_phrases_go_wherever_they_stand():
    posts = [[number + 20, 8, 9, 10, number + 60] for number in range(12)]
    posts += [[number + 200, number + 300] for number in range(12)] + [[8, 9, 10]]
    store = store_in_memory([25], lengths=list(map(len, posts)), vocabulary=4000)
    store.tokens[:] = np.concatenate(posts)
    kinds = np.arange(2, 4002).astype(np.uint64)
    left = module.without_phrases(module.whole_accounts(store), kinds).store
    found = [left.tokens[a:b].tolist() for a, b in zip(left.post_offsets, left.post_offsets[1:])]
    assert found == [*([post[0], post[-1]] for post in posts[:24]), [8, 9, 10]]
