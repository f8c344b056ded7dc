"""Random documents are any, and each once."""

import numpy as np
from scipy import stats

from helpers.tokens.samplers import SamplerConfig, make_sampler


def test_documents_are_drawn_uniformly_without_replacement(make_store):
    store = make_store([5, 2, 1, 9, 3, 4], lengths=np.ones(24, int))  # token = post

    def draw(count):
        return make_sampler(SamplerConfig(kind="random", authors_per_batch=count, max_tokens=4), store, 0)

    for count, size in ((5, 5), (24, 24), (100, 24)):
        posts = draw(count)(3).tokens[:, 0, 0].tolist()
        assert len(posts) == len(set(posts)) == size
    five = draw(5)
    seen = np.bincount(np.concatenate([five(step).tokens[:, 0, 0].numpy() for step in range(1000)]), minlength=24)
    assert stats.chisquare(seen).pvalue > 1e-3
