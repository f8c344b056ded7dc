"""Windows against the histories they come from, and batches of P authors x K windows."""

import numpy as np
import pytest
from scipy import stats

from helpers.tokens.samplers import SamplerConfig, make_sampler
from helpers.tokens.samplers.authors import draw_windows

COUNTS = (40, 3, 17, 90, 1, 25, 16)


def sampler(store, **settings):
    return make_sampler(SamplerConfig(**settings), store, 0)


class TestWindows:
    @pytest.mark.parametrize("overlap", [True, False])
    def test_they_lie_within_the_history_and_apart_where_asked(self, overlap):
        """Many random histories, among them authors with fewer posts than asked for and with just
        one post a sample.
        """
        rng = np.random.default_rng(0)
        for _ in range(200):
            samples = int(rng.integers(1, 9))
            max_posts = int(rng.choice([samples, samples + 3, 30, 200]))
            available = rng.integers(1 if overlap else samples, max_posts + 1, 25)
            wanted_sizes = rng.integers(1, 17, (25, samples))
            first, size = draw_windows(available, wanted_sizes.copy(), rng, overlap)
            assert first.shape == size.shape == wanted_sizes.shape
            assert (size >= 1).all() and (size <= wanted_sizes).all()
            assert (first >= 0).all() and (first + size <= available[:, None]).all()
            if overlap:
                assert (size == np.minimum(wanted_sizes, available[:, None])).all()
                continue
            fits = wanted_sizes.sum(1) <= available
            assert (size[fits] == wanted_sizes[fits]).all()
            for begin, count in zip(first, size):
                used = np.concatenate([np.arange(b, b + c) for b, c in zip(begin, count)])
                assert len(used) == len(set(used)), "two samples share a post"
            # where not all fits, little is given away: at most the remainders of the division
            assert (size.sum(1)[~fits] > available[~fits] - samples).all()

    @pytest.mark.parametrize("samples, overlap", [(3, True), (1, False)])
    def test_starts_are_uniform(self, samples, overlap):
        available = np.full(20_000, 13)
        first, _ = draw_windows(
            available, np.full((20_000, samples), 4), np.random.default_rng(3), overlap
        )
        for column in first.T:
            assert stats.chisquare(np.bincount(column, minlength=10)).pvalue > 1e-3

    def test_apart_every_sample_can_be_anywhere(self):
        first, _ = draw_windows(
            np.full(4000, 20), np.full((4000, 3), 4), np.random.default_rng(3), overlap=False
        )
        assert (first.min(0) == 0).all() and (first.max(0) == 16).all()
        assert np.ptp(first.mean(0)) < 0.5, "a sample's number must not tell its place"


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("window", ["prefix", "random"])
def test_samples_are_consecutive_posts_of_their_author(make_store, window, overlap):
    store = make_store(COUNTS, lengths=np.random.default_rng(0).integers(1, 50, sum(COUNTS)))
    draw = sampler(
        store,
        authors_per_batch=3,
        samples_per_author=4,
        max_tokens=8,
        window=window,
        overlap=overlap,
    )
    for step in range(30):
        batch = draw(step)
        assert len(batch) == 12
        posts_of = {}
        for tokens, mask, author in zip(batch.tokens, batch.mask.tolist(), batch.authors.tolist()):
            assert mask == sorted(mask, reverse=True), "posts come first"
            posts = tokens[: sum(mask), 0].tolist()  # token = post
            assert posts == list(range(posts[0], posts[0] + len(posts)))
            assert (
                store.author_offsets[author] <= posts[0]
                and posts[-1] < store.author_offsets[author + 1]
            )
            posts_of.setdefault(author, []).extend(posts)
        if not overlap:
            assert all(len(posts) == len(set(posts)) for posts in posts_of.values())


@pytest.mark.parametrize(
    "settings, sizes",
    [
        ({"sizes": "fixed", "max_posts": 5}, {5}),
        ({"min_posts": 3, "max_posts": 4}, {4}),
        ({"min_posts": 3, "max_posts": 4, "reach_smallest": True}, {3, 4}),
        ({"sizes": "uniform", "max_posts": 3}, {2, 3}),
    ],
)
def test_sizes_are_those_of_the_config(make_store, settings, sizes):
    draw = sampler(make_store([20] * 30), **settings)
    assert {size for step in range(3) for size in draw(step).mask.sum(1).tolist()} == sizes


def test_different_authors_side_by_side(make_store):
    draw = sampler(make_store([20] * 30), authors_per_batch=10, samples_per_author=4)
    for step in range(20):
        authors = draw(step).authors.view(10, 4)
        assert (authors == authors[:, :1]).all() and len(set(authors[:, 0].tolist())) == 10
    assert len(sampler(make_store([20] * 3), samples_per_author=4)(0)) == 12, "all there are"


def test_an_author_counts_once_however_much_he_writes(make_store):
    draw = sampler(make_store([1000, 2, 30, 16, 500, 2]), authors_per_batch=2, samples_per_author=1)
    seen = np.bincount([author for step in range(800) for author in draw(step).authors.tolist()])
    assert stats.chisquare(seen).pvalue > 1e-3


def test_apart_needs_a_post_for_every_sample(make_store):
    settings = {"authors_per_batch": 2, "samples_per_author": 4, "overlap": False}
    draw = sampler(make_store([3, 8, 2, 9, 1, 50]), **settings)
    assert {author for step in range(50) for author in draw(step).authors.tolist()} == {1, 3, 5}
    with pytest.raises(ValueError, match="1 authors with 4 posts or more in nowhere"):
        sampler(make_store([20, 3]), **settings)(0)


def test_one_author_is_too_few(make_store):
    with pytest.raises(
        ValueError, match="1 authors with 1 posts or more in nowhere: need at least 2"
    ):
        sampler(make_store([20]))(0)
