"""Sample sizes against the printed formula, windows against the histories they come from, batches against the store."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from helpers.tokens import samplers as sampling
from helpers.tokens.batch import gather
from helpers.tokens.samplers import SIZES, draw_batch, draw_sizes, draw_windows, skewness
from helpers.tokens.batch import PAD


def same(one, other):
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in vars(one))


class TestSizes:
    def test_published_skews(self):
        """khan2021 Table 4."""
        wanted = {"uniform": 0, "beta21": -0.5657, "poisson16": -0.7860, "beta31": -0.8607, "beta41": -1.0498}
        assert {name: skewness(name) for name in SIZES} == pytest.approx({**wanted, "fixed": 0}, abs=5e-5)

    @staticmethod
    def probabilities(name, smallest, largest, reach):
        """Exact: x <= t has probability t^a for Beta(a, 1)."""
        sizes = np.arange(smallest, largest + 1)
        if name == "poisson16":
            weight = np.array([math.exp(-16) * 16.0**size / math.factorial(size) for size in sizes])
            return sizes, weight / weight.sum()
        power = {"uniform": 1, "beta21": 2, "beta31": 3, "beta41": 4}[name]
        if reach:
            upto = ((sizes - smallest + 1) / (largest - smallest + 1)) ** power
        else:
            upto = ((sizes - smallest) / (largest - smallest)) ** power
        return sizes, np.diff(upto, prepend=0)

    @pytest.mark.parametrize("smallest, largest", [(1, 16), (3, 9)])
    @pytest.mark.parametrize("reach", [False, True], ids=["as printed", "reaching the smallest"])
    @pytest.mark.parametrize("name", ["uniform", "beta21", "beta31", "beta41", "poisson16"])
    def test_draws_follow_the_exact_probabilities(self, name, reach, smallest, largest):
        draws = draw_sizes(name, 40_000, np.random.default_rng(2), smallest, largest, reach)
        assert draws.dtype == np.int64 and draws.min() >= smallest and draws.max() <= largest
        sizes, weight = self.probabilities(name, smallest, largest, reach)
        seen = np.array([(draws == size).sum() for size in sizes])
        assert not seen[weight == 0].any()
        rare = weight * len(draws) < 5
        seen, weight = (np.append(values[~rare], values[rare].sum()) for values in (seen, weight))
        seen, weight = seen[weight > 0], weight[weight > 0]
        assert stats.chisquare(seen, weight * seen.sum()).pvalue > 1e-3

    def test_the_printed_formula_gives_2_to_16(self):
        draws = draw_sizes("beta31", 200_000, np.random.default_rng(1))
        assert (draws.min(), draws.max()) == (2, 16)
        assert draws.mean() == pytest.approx(12.73, abs=0.03)
        assert (draws == 16).mean() == pytest.approx(0.187, abs=0.004)
        assert draw_sizes("beta31", 200_000, np.random.default_rng(1), reach_smallest=True).min() == 1

    def test_fixed_and_a_single_size(self):
        rng = np.random.default_rng(0)
        assert set(draw_sizes("fixed", 9, rng, 1, 7)) == {7}
        for name in SIZES:
            for reach in (False, True):
                assert set(draw_sizes(name, 9, rng, 5, 5, reach)) == {5}

    def test_errors(self):
        rng = np.random.default_rng(0)
        with pytest.raises(ValueError, match="sizes 'beta': one of uniform, beta21"):
            draw_sizes("beta", 3, rng)
        for smallest, largest in ((0, 4), (5, 4)):
            with pytest.raises(ValueError, match="need 1 <= smallest <= largest"):
                draw_sizes("beta31", 3, rng, smallest, largest)


class TestWindows:
    @pytest.mark.parametrize("overlap", [True, False])
    def test_they_lie_within_the_history_and_apart_where_asked(self, overlap):
        """Many random histories, among them authors with fewer posts than wanted and with just one post a sample."""
        rng = np.random.default_rng(0)
        for _ in range(400):
            samples = int(rng.integers(1, 9))
            longest = int(rng.choice([samples, samples + 3, 30, 200]))
            available = rng.integers(1 if overlap else samples, longest + 1, 25)
            wanted = rng.integers(1, 17, (25, samples))
            first, size = draw_windows(available, wanted.copy(), rng, overlap)
            assert first.shape == size.shape == wanted.shape
            assert (size >= 1).all() and (size <= wanted).all()
            assert (first >= 0).all() and (first + size <= available[:, None]).all()
            if overlap:
                assert (size == np.minimum(wanted, available[:, None])).all()
                continue
            fits = wanted.sum(1) <= available
            assert (size[fits] == wanted[fits]).all()
            for begin, count, posts in zip(first, size, available):
                used = np.concatenate([np.arange(b, b + c) for b, c in zip(begin, count)])
                assert len(used) == len(set(used)), "two samples share a post"
            # where not all fits, little is given away: at most the remainders of the division
            assert (size.sum(1)[~fits] > available[~fits] - samples).all()

    @pytest.mark.parametrize("samples, overlap", [(1, True), (3, True), (1, False)])
    def test_starts_are_uniform(self, samples, overlap):
        available = np.full(20_000, 13)
        first, _ = draw_windows(available, np.full((20_000, samples), 4), np.random.default_rng(3), overlap)
        for column in first.T:
            assert stats.chisquare(np.bincount(column, minlength=10)).pvalue > 1e-3

    def test_apart_every_sample_can_be_anywhere(self):
        first, _ = draw_windows(np.full(4000, 20), np.full((4000, 3), 4), np.random.default_rng(3), overlap=False)
        assert (first.min(0) == 0).all() and (first.max(0) == 16).all()
        assert np.ptp(first.mean(0)) < 0.5, "a sample's number must not tell its place"


class TestBatch:
    COUNTS = (40, 3, 17, 90, 1, 25, 16)

    def rows(self, store, batch):
        """Per sample: its posts' numbers, read back from the tokens (token = post; empty posts do not occur here)."""
        for tokens, mask, author in zip(batch.tokens, batch.mask, batch.authors.tolist()):
            yield author, [int(tokens[post, 0]) for post in range(len(mask)) if mask[post]]

    @pytest.mark.parametrize("overlap", [True, False])
    @pytest.mark.parametrize("window", ["prefix", "random"])
    def test_samples_are_consecutive_posts_of_their_author(self, make_store, window, overlap):
        store = make_store(self.COUNTS, lengths=np.random.default_rng(0).integers(1, 50, sum(self.COUNTS)))
        for step in range(30):
            batch = draw_batch(store, 0, step, authors=3, samples=4, length=8, window=window, overlap=overlap)
            assert len(batch) == 12
            seen = {}
            for author, posts in self.rows(store, batch):
                assert posts == list(range(posts[0], posts[0] + len(posts)))
                assert store.author_offsets[author] <= posts[0] and posts[-1] < store.author_offsets[author + 1]
                seen.setdefault(author, []).extend(posts)
            if not overlap:
                assert all(len(posts) == len(set(posts)) for posts in seen.values())

    def test_everything_of_a_post_is_there(self, make_store):
        store = make_store(self.COUNTS, longest=12)
        batch = draw_batch(store, 1, 2, authors=7, samples=3, length=8)
        assert batch.tokens.dtype == batch.hours.dtype == torch.int64 and batch.mask.dtype == torch.bool
        assert batch.tokens.shape == (*batch.mask.shape, 8)
        for row in range(len(batch)):
            mask = batch.mask[row].tolist()
            assert mask == sorted(mask, reverse=True), "real posts come first"
            assert (batch.tokens[row][~batch.mask[row]] == PAD).all()
            assert not batch.hours[row][~batch.mask[row]].any() and not batch.topics[row][~batch.mask[row]].any()
        author, first, count = np.array([2, 0]), store.author_offsets[[2, 0]] + [5, 0], np.array([4, 9])
        batch = gather(store, author, first, count, 8)
        for row in range(2):
            for place, post in enumerate(range(first[row], first[row] + count[row])):
                tokens = store.tokens[store.post_offsets[post] : store.post_offsets[post + 1]][:8].tolist()
                assert batch.tokens[row, place].tolist() == tokens + [PAD] * (8 - len(tokens))
                assert batch.hours[row, place] == store.hour[post] and batch.topics[row, place] == store.topic[post]
        assert batch.authors.tolist() == [2, 0]

    def test_random_windows_are_consecutive_tokens_of_the_post_with_uniform_starts(self, make_store):
        store = make_store([4, 4], lengths=[20, 8, 3, 0] * 2)
        tokens = np.concatenate([np.arange(n) for n in [20, 8, 3, 0] * 2]).astype("u2")  # token = place in the post
        object.__setattr__(store, "tokens", tokens)
        rng = np.random.default_rng(0)
        many = np.zeros(3000, np.int64)
        batch = gather(store, many, many, many + 4, 8, "random", rng)
        starts = batch.tokens[:, 0, 0]
        torch.testing.assert_close(batch.tokens[:, 0], starts[:, None] + torch.arange(8))
        assert stats.chisquare(np.bincount(starts, minlength=13)).pvalue > 1e-3 and starts.max() == 12
        for post, length in ((1, 8), (2, 3), (3, 0)):  # nothing to choose: the whole post
            wanted = torch.tensor([*range(length), *[PAD] * (8 - length)])
            assert (batch.tokens[:, post] == wanted).all()

    def test_a_batch_is_a_function_of_store_seed_and_step(self, make_store):
        settings = {"authors": 4, "samples": 3, "length": 8, "window": "random"}
        store = make_store([30] * 20)
        wanted = [draw_batch(store, 5, step, **settings) for step in range(4)]
        np.random.seed(3), torch.manual_seed(3)
        for step in (3, 0, 2, 1):
            assert same(draw_batch(make_store([30] * 20), 5, step, **settings), wanted[step])
        assert not same(wanted[0], wanted[1])
        assert not same(draw_batch(store, 6, 0, **settings), wanted[0])

    def test_different_authors_side_by_side(self, make_store):
        store = make_store([20] * 30)
        for step in range(20):
            authors = draw_batch(store, 0, step, authors=10, samples=4).authors.view(10, 4)
            assert (authors == authors[:, :1]).all() and len(set(authors[:, 0].tolist())) == 10
        assert len(draw_batch(make_store([20] * 3), 0, 0, authors=64, samples=4)) == 12, "all there are"

    def test_an_author_counts_once_however_much_he_writes(self, make_store):
        store = make_store([1000, 2, 30, 16, 500, 2])
        seen = np.bincount([a for step in range(1500) for a in draw_batch(store, 0, step, 2, 1).authors.tolist()])
        assert stats.chisquare(seen).pvalue > 1e-3

    def test_apart_needs_a_post_for_every_sample(self, make_store):
        store = make_store([3, 8, 2, 9, 1, 50])
        seen = {a for step in range(50) for a in draw_batch(store, 0, step, 2, 4, overlap=False).authors.tolist()}
        assert seen == {1, 3, 5}

    def test_moving_and_choosing_rows(self, make_store):
        batch = draw_batch(make_store([20] * 5), 0, 0, authors=4, samples=2)
        assert same(batch.to("cpu"), batch)
        part = batch[2:5]
        assert len(part) == 3
        assert torch.equal(part.tokens, batch.tokens[2:5]) and torch.equal(part.authors, batch.authors[2:5])

    def test_errors(self, make_store):
        with pytest.raises(ValueError, match="1 authors have enough posts"):
            draw_batch(make_store([20]), 0, 0)
        with pytest.raises(ValueError, match="1 authors have enough posts for 8 samples"):
            draw_batch(make_store([20, 7]), 0, 0, overlap=False)
        with pytest.raises(ValueError, match="window 'suffix': one of prefix, random"):
            draw_batch(make_store([20, 7]), 0, 0, window="suffix")
        with pytest.raises(ValueError, match="sizes 'beta'"):
            draw_batch(make_store([20, 7]), 0, 0, sizes="beta")


@pytest.mark.parametrize("scanned", [0, 10**6])
def test_authors_are_drawn_uniformly_and_differ_whether_or_not_all_are_looked_at(make_store, monkeypatch, scanned):
    monkeypatch.setattr(sampling, "SCANNED", scanned)
    store, rng = make_store([3, 9] * 25), np.random.default_rng(0)
    drawn = np.concatenate([sampling.draw_authors(store, 5, 4, rng) for _ in range(4000)]).reshape(4000, 5)
    assert all(len(set(row)) == 5 for row in drawn.tolist())
    counts = np.bincount(drawn.ravel(), minlength=50)
    assert not counts[::2].any(), "authors with too few posts"
    assert stats.chisquare(counts[1::2]).pvalue > 0.001
    assert sorted(sampling.draw_authors(store, 99, 4, rng)) == list(range(1, 50, 2)), "all there are"
    with pytest.raises(ValueError, match="0 authors"):
        sampling.draw_authors(store, 5, 10, rng)
