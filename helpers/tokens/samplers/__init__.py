"""Samplers: which posts of a token store make the batch of a step.

``make_sampler(SamplerConfig(kind="authors"), store, seed)(step)`` is a
:class:`helpers.tokens.batch.Batch`. A new kind is a file with a
:class:`helpers.tokens.samplers.base.Sampler` and a line in SAMPLERS.
"""

from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from helpers.core.config import Config
from helpers.tokens.samplers.authors import AuthorSampler
from helpers.tokens.samplers.base import Sampler
from helpers.tokens.samplers.document_pairs import PairSampler, RandomDocumentSampler
from helpers.tokens.samplers.sizes import SIZES
from helpers.tokens.samplers.topics import TopicSampler
from helpers.tokens.store import TokenStore

SAMPLERS: dict[str, type[Sampler]] = {
    "authors": AuthorSampler,
    "pairs": PairSampler,
    "random": RandomDocumentSampler,
    "topic": TopicSampler,
}
COMMON_SETTINGS = ("kind", "authors_per_batch", "max_tokens", "window")  # read by every kind


class SamplerConfig(Config):
    """What a batch is made of. Setting what a kind does not read is an error.

    Attributes
    ----------
    kind : "authors", P authors x K windows of posts; of single posts: "pairs", "random" documents,
        "topic"
    authors_per_batch : P; the number of pairs of "pairs", of documents of "random"
    samples_per_author : K, of "authors" and "topic"
    min_posts : fewest posts of a sample, of "authors"
    max_posts : most posts of a sample, of "authors"; for the other kinds it is 1
    sizes : distribution of posts a sample, of "authors"; see
        :func:`helpers.tokens.samplers.sizes.draw_sizes`
    max_tokens : tokens of a post, L
    window : each post's first L tokens ("prefix"), or L consecutive ones from a random start
        ("random")
    overlap : whether an author's samples may share posts, of "authors"
    reach_smallest : whether a sample may have ``min_posts`` posts, of "authors"; see ``draw_sizes``
    topics_per_batch : topics the authors of a batch come from, of "topic"
    """

    kind: Literal[tuple(SAMPLERS)] = "authors"
    authors_per_batch: int = Field(64, ge=2)
    samples_per_author: int = Field(8, ge=1)
    min_posts: int = Field(1, ge=1)
    max_posts: int = Field(16, ge=1)
    sizes: Literal[tuple(SIZES)] = "beta31"
    max_tokens: int = Field(32, ge=1)
    window: Literal["prefix", "random"] = "prefix"
    overlap: bool = True
    reach_smallest: bool = False
    topics_per_batch: int = Field(1, ge=1)

    @field_validator("*")
    @classmethod
    def _is_read(cls, value: Any, info: ValidationInfo) -> Any:
        name = info.field_name
        kind = info.data.get("kind")
        if kind is None or name in COMMON_SETTINGS + SAMPLERS[kind].reads:
            return value
        if name == "max_posts" and value in (1, cls.model_fields[name].default):
            return 1  # all other kinds draw single posts
        if value != cls.model_fields[name].default:
            raise ValueError(f"the sampler kind {kind!r} has no such setting")
        return value

    @field_validator("max_posts")
    @classmethod
    def _is_not_below_min_posts(cls, value: int, info: ValidationInfo) -> int:
        if value < info.data.get("min_posts", 1):
            raise ValueError(f"it must be at least min_posts, {info.data['min_posts']}")
        return value


def make_sampler(config: SamplerConfig, store: TokenStore, seed: int) -> Sampler:
    """Make the sampler of a config: ``sampler(step) -> Batch``.

    Parameters
    ----------
    config : kind and settings
    store : to draw from
    seed : of all steps

    Raises
    ------
    ValueError
        there are too few authors; said here or at a step
    """
    return SAMPLERS[config.kind](config, store, seed)
