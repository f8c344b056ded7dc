"""Samplers: which posts of a token store make the batch of a step.

``make_sampler(SamplerConfig(kind="authors"), store, seed)(step)`` is a :class:`helpers.tokens.batch.Batch`.
"""

from helpers.tokens.samplers.registry import SAMPLERS, SamplerConfig, make_sampler

__all__ = ["SAMPLERS", "SamplerConfig", "make_sampler"]
