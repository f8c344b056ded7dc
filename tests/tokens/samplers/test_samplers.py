"""What every sampler promises, and the settings that it takes or refuses."""

import numpy as np
import pytest
import torch
from scipy import stats

from helpers.tokens.batch import PAD
from helpers.tokens.samplers import SAMPLERS, SamplerConfig, base, make_sampler
from tests.oracles import equal_batches

COUNTS = (6, 3, 9, 4, 2, 12, 3, 5, 8)
SMALL = {"authors_per_batch": 4, "max_tokens": 6}


@pytest.fixture
def store(make_store):
    """Token = post."""
    store = make_store(COUNTS, lengths=np.random.default_rng(0).integers(1, 9, sum(COUNTS)))
    object.__setattr__(store, "meta", {"topics": ["topic"] * 5})  # "other" does not occur
    return store


@pytest.mark.parametrize("kind", SAMPLERS)
class TestEverySampler:
    def test_a_batch_is_a_function_of_store_seed_and_step(self, store, kind):
        config = SamplerConfig(kind=kind, window="random", **SMALL)
        batches = [make_sampler(config, store, 5)(step) for step in range(4)]
        second = make_sampler(config, store, 5)
        np.random.seed(3), torch.manual_seed(3)
        for step in (3, 0, 2, 1, 0):
            assert equal_batches(second(step), batches[step])
        assert not equal_batches(batches[0], batches[1])
        assert not equal_batches(make_sampler(config, store, 6)(0), batches[0])

    def test_no_batch_of_a_large_store_looks_at_all_authors(self, store, kind, monkeypatch):
        draw = make_sampler(SamplerConfig(kind=kind, **SMALL), store, 0)  # this may

        def looked(self):
            raise AssertionError("the cost of a batch grows with the store")

        monkeypatch.setattr(base, "MAX_SCANNED_AUTHORS", 0)
        monkeypatch.setattr(type(store), "posts_per_author", looked)
        assert len(draw(0).authors)

    @pytest.mark.parametrize("window", ["prefix", "random"])
    def test_posts_are_those_of_their_author_with_all_they_have(self, store, kind, window):
        draw = make_sampler(SamplerConfig(kind=kind, window=window, **SMALL), store, 0)
        for step in range(20):
            batch = draw(step)
            assert batch.tokens.shape == (*batch.mask.shape, 6)
            assert batch.mask.shape[1] == 1 or kind in ("authors", "corpus")
            for row, place in batch.mask.nonzero().tolist():
                tokens = [token for token in batch.tokens[row, place].tolist() if token != PAD]
                post = tokens[0]
                assert tokens == [post] * min(
                    6, store.post_offsets[post + 1] - store.post_offsets[post]
                )
                assert (
                    store.author_offsets[batch.authors[row]]
                    <= post
                    < store.author_offsets[batch.authors[row] + 1]
                )
                for name, values in (
                    ("hours", store.hour),
                    ("topics", store.topic),
                    ("times", store.time),
                ):
                    assert getattr(batch, name)[row, place] == values[post]

    def test_settings_of_other_kinds_are_refused_and_defaults_are_not(self, kind):
        changed = {
            "samples_per_author": 3,
            "min_posts": 2,
            "max_posts": 5,
            "sizes": "fixed",
            "overlap": False,
            "reach_smallest": True,
            "topics_per_batch": 2,
        }
        for name, value in changed.items():
            if name in SAMPLERS[kind].reads:
                assert getattr(SamplerConfig.of({"kind": kind, name: value}), name) == value
            else:
                message = (
                    f"sampler: '{name}' is {value!r}: the sampler kind '{kind}' has no such setting"
                )
                with pytest.raises(ValueError, match=message):
                    SamplerConfig.of({"kind": kind, name: value}, "sampler")
        config = SamplerConfig(kind=kind)
        assert SamplerConfig.of(config.model_dump()) == config, (
            "what a training keeps is read again"
        )


def test_kinds_of_single_posts_say_so():
    assert SamplerConfig().max_posts == 16
    assert [SamplerConfig(kind=kind).max_posts for kind in ("pairs", "random", "topic")] == [
        1,
        1,
        1,
    ]
    assert SamplerConfig(kind="pairs", max_posts=1) == SamplerConfig(kind="pairs")


@pytest.mark.parametrize(
    "settings, message",
    [
        (
            {"kind": "triples"},
            "'kind' is 'triples': Input should be 'authors', 'corpus', 'pairs', 'random' or ",
        ),
        ({"sizes": "beta"}, "'sizes' is 'beta'"),
        ({"window": "suffix"}, "'window' is 'suffix'"),
        ({"authors_per_batch": 1}, "'authors_per_batch' is 1"),
        ({"samples_per_author": 0}, "'samples_per_author' is 0"),
        ({"kind": "topic", "topics_per_batch": 0}, "'topics_per_batch' is 0"),
        ({"min_posts": 0}, "'min_posts' is 0"),
        ({"min_posts": 5, "max_posts": 4}, "'max_posts' is 4: it must be at least min_posts, 5"),
        ({"max_tokens": 0}, "'max_tokens' is 0"),
        ({"authors": 4}, "authors_per_batch"),
    ],
)
def test_settings_out_of_bounds(settings, message):
    with pytest.raises(ValueError, match=message) as error:
        SamplerConfig.of(settings, "sampler")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("scanned", [0, 10**6], ids=["refused", "all looked at"])
def test_authors_are_drawn_uniformly_and_differ_whether_or_not_all_are_looked_at(
    make_store, monkeypatch, scanned
):
    monkeypatch.setattr(base, "MAX_SCANNED_AUTHORS", scanned)
    store, rng = make_store([3, 9] * 25), np.random.default_rng(0)
    authors = np.concatenate([base.draw_authors(store, 5, 4, rng) for _ in range(4000)]).reshape(
        4000, 5
    )
    assert all(len(set(row)) == 5 for row in authors.tolist())
    counts = np.bincount(authors.ravel(), minlength=50)
    assert not counts[::2].any(), "authors with too few posts"
    assert stats.chisquare(counts[1::2]).pvalue > 0.001
    assert sorted(base.draw_authors(store, 99, 4, rng)) == list(range(1, 50, 2)), "all there are"
    with pytest.raises(ValueError, match="0 authors with 10 posts or more"):
        base.draw_authors(store, 5, 10, rng)


def test_a_batch_of_a_corpus_holds_its_authors_alone(make_store):
    store = make_store([4] * 30)
    object.__setattr__(store, "meta", {"topics": [], "corpora": [0, 20]})
    draw = make_sampler(SamplerConfig(kind="corpus", **SMALL), store, 0)
    batches = [draw(step).authors.numpy() for step in range(600)]
    is_second = np.array([authors.min() >= 20 for authors in batches])
    assert all(authors.max() < 20 for authors in np.array(batches)[~is_second])
    assert len(set(np.concatenate(batches))) == 30, "all authors are in some batch"
    assert stats.binomtest(int(is_second.sum()), 600, 1 / 3).pvalue > 0.001


def test_a_store_of_one_corpus_gives_the_batches_of_any_kind(store):
    draw = make_sampler(SamplerConfig(kind="corpus", **SMALL), store, 0)
    assert len(draw(0).authors.unique()) == 4
