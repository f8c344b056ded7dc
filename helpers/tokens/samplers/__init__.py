"""Samplers: they choose the posts of a token store that make the batch of a step.

``make_sampler(SamplerConfig(kind="authors"), store, seed)(step)`` is a
:class:`helpers.tokens.batch.Batch`. To add a kind, write a file with a subclass of
:class:`helpers.tokens.samplers.base.Sampler` and add a line to SAMPLERS.
"""

from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from ...core.parameters import Config
from ..store import TokenStore
from .authors import AuthorSampler, CorpusSampler
from .base import Sampler
from .document_pairs import PairSampler, RandomDocumentSampler
from .sizes import SIZES
from .topics import TopicSampler

SAMPLERS: dict[str, type[Sampler]] = {
    "authors": AuthorSampler,
    "corpus": CorpusSampler,
    "pairs": PairSampler,
    "random": RandomDocumentSampler,
    "topic": TopicSampler,
}
MAX_BATCH_TOKENS = 2**26  # hundreds of times the paper's batch; its vectors would fill any memory
COMMON_SETTINGS = ("kind", "authors_per_batch", "max_tokens", "window")  # read by every kind


class SamplerConfig(Config):
    """What a batch is made of.

    A setting that a kind does not read must keep its default; another value is an error. In what
    follows the kinds that read a setting are in brackets; settings without them are read by all.

    Attributes
    ----------
    kind : "authors" samples K windows of consecutive posts of each of P authors, "corpus" the same
        with all authors of a batch from one corpus of a joined store; the other kinds sample single
        posts, which are documents: "pairs" pairs of them, half by one author, "random" any, "topic"
        K of each of P authors who share topics
    authors_per_batch : P; for "pairs" the number of pairs, for "random" the number of documents
    samples_per_author : K ("authors", "topic")
    min_posts : fewest posts of a sample ("authors")
    max_posts : most posts of a sample ("authors"); 1 for the other kinds
    sizes : name of the distribution of the number of posts in a sample ("authors"); see
        :func:`helpers.tokens.samplers.sizes.draw_sizes`
    max_tokens : L, how many tokens of a post are read
    window : "prefix" reads the first L tokens of a post, "random" L consecutive ones from a random
        start
    overlap : whether the samples of an author may share posts ("authors")
    reach_smallest : whether a sample may have as few as ``min_posts`` posts ("authors"); see
        ``draw_sizes``
    topics_per_batch : number of topics from which the authors of a batch come ("topic")
    """

    kind: Literal[tuple(SAMPLERS)] = "authors"
    authors_per_batch: int = Field(64, ge=2, le=2**16)
    samples_per_author: int = Field(8, ge=1, le=2**10)
    min_posts: int = Field(1, ge=1, le=10**4)
    max_posts: int = Field(16, ge=1, le=10**4)
    sizes: Literal[tuple(SIZES)] = "beta31"
    max_tokens: int = Field(32, ge=1, le=8192)
    window: Literal["prefix", "random"] = "prefix"
    overlap: bool = True
    reach_smallest: bool = False
    topics_per_batch: int = Field(1, ge=1, le=2**16)

    @field_validator("*")
    @classmethod
    def _is_read(cls, value: Any, info: ValidationInfo) -> Any:
        # rejects a value for a setting that the kind does not read
        name = info.field_name
        kind = info.data.get("kind")
        if kind is None or name in COMMON_SETTINGS + SAMPLERS[kind].reads:
            return value
        if name == "max_posts" and value in (1, cls.model_fields[name].default):
            return 1  # all other kinds sample single posts
        if value != cls.model_fields[name].default:
            raise ValueError(f"the sampler kind {kind!r} has no such setting")
        return value

    @field_validator("max_posts")
    @classmethod
    def _is_not_below_min_posts(cls, value: int, info: ValidationInfo) -> int:
        if value < info.data.get("min_posts", 1):
            raise ValueError(f"it must be at least min_posts, {info.data['min_posts']}")
        return value

    def regrouped(self, samples_per_author: int, where: str = "sampler") -> "SamplerConfig":
        """Return a config whose batches are as large, with another number of samples an author.

        Parameters
        ----------
        samples_per_author : K, which must divide the size of a batch
        where : what gives the number, the start of an error's message

        Raises
        ------
        ValueError
            the number does not divide the size of a batch
        """
        samples = self.authors_per_batch * self.samples_per_author
        divides = type(samples_per_author) is int and samples_per_author > 0
        if not divides or samples % samples_per_author:
            raise ValueError(
                f"{where} {samples_per_author!r} must divide the {samples} samples of a batch"
            )
        settings = self.model_dump() | {
            "authors_per_batch": samples // samples_per_author,
            "samples_per_author": samples_per_author,
        }
        return SamplerConfig.of(settings, where)

    @model_validator(mode="after")
    def _fits_into_memory(self):
        samples = self.authors_per_batch
        if "samples_per_author" in SAMPLERS[self.kind].reads:
            samples *= self.samples_per_author
        tokens = samples * self.max_posts * self.max_tokens
        if tokens > MAX_BATCH_TOKENS:
            raise ValueError(
                f"a batch of up to {tokens:,} tokens ({samples} samples of {self.max_posts} posts "
                f"of {self.max_tokens} tokens): at most {MAX_BATCH_TOKENS:,}"
            )
        return self


def make_sampler(config: SamplerConfig, store: TokenStore, seed: int) -> Sampler:
    """Make the sampler that a config describes: ``sampler(step) -> Batch``.

    Parameters
    ----------
    config : the kind of sampler and its settings
    store : the token store to sample from
    seed : seed of the random numbers, used together with the number of the step

    Raises
    ------
    ValueError
        the store has too few suitable authors; "topic" raises it here, the others at a step
    """
    return SAMPLERS[config.kind](config, store, seed)
