"""StreamEncoder(post, side, pooling, projection): samples of posts to unit vectors, composed of exchangeable parts.

khan2021's encoder, IUR, LUAR's pooling and the Siamese transformer of tyo2021 are configurations of it (PRESETS).
Letters: B samples, M posts a sample, L tokens a post, N real posts of a batch, D dimensions of the embedding.
"""

from collections.abc import Callable
from typing import Annotated, Literal

import torch
import torch.nn.functional as nnf
from pydantic import Field, model_validator
from torch import Tensor, nn

from helpers.core.config import Config
from helpers.encoders import pretrained
from helpers.encoders.base import Encoder
from helpers.encoders.chunk_mean import ChunkMean
from helpers.encoders.pooling import POOLINGS
from helpers.encoders.side_features import FEATURES, TIMES, TopicEmbedding
from helpers.encoders.text_cnn import TextCNN
from helpers.encoders.transformer import Transformer
from helpers.tokens.batch import Batch
from helpers.tokens.tokenizer import Tokenizer

# from a pooled sample to its embedding, of (width, D): the last layers by name
PROJECTIONS: dict[str, Callable[[int, int], nn.Sequential]] = {
    # two layers without bias between LayerNorms, as released
    "khan2021": lambda width, dim: nn.Sequential(
        nn.LayerNorm(width),
        nn.Linear(width, dim, bias=False),
        nn.ReLU(),
        nn.Linear(dim, dim, bias=False),
        nn.LayerNorm(dim),
    ),
    # two layers with bias, as the paper's text says
    "khan2021_text": lambda width, dim: nn.Sequential(
        nn.Linear(width, dim), nn.ReLU(), nn.Linear(dim, dim)
    ),
    "linear": lambda width, dim: nn.Sequential(nn.Linear(width, dim)),
    "tyo2021": lambda width, dim: nn.Sequential(
        nn.Linear(width, dim), nn.ReLU()
    ),  # a dense layer, as released
    "wccn": lambda width, dim: nn.Sequential(
        nn.Linear(width, width)
    ),  # begins as WCCN of training authors
    "none": lambda width, dim: (
        nn.Sequential()
    ),  # the pooled vector itself, as sentence encoders are made
}


class StreamConfig(Config):
    """What a stream encoder is made of; the defaults are khan2021's (Appendix B), as its authors released them.

    post : what reads the text of a post. join_posts : the posts of a sample are read one after the other as one text.
    features : T text, TP text and time, TPS text, time and topic. time : how the time is read.
    filters : of each convolution width. token_dim : of token and topic embeddings. attention : outputs of a pooling.
    dim : D, of the embedding, unless the projection is "none" or "wccn". topic_dropout : share of training posts whose
    topic is hidden. model, max_tokens, precision, depth, frozen, every_layer : of a transformer. unit : False for
    vectors as they are, which the margins above 2 of tyo2021 Table 2 are for.
    """

    post: Literal["text_cnn", "transformer"] = "text_cnn"
    join_posts: bool = False
    features: Literal[tuple(FEATURES)] = "TPS"
    time: Literal[tuple(TIMES)] = "hour"
    pooling: Literal[tuple(POOLINGS)] = "khan2021"
    projection: Literal[tuple(PROJECTIONS)] = "khan2021"
    filters: int = Field(512, ge=1)
    widths: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (2, 3, 4), min_length=1, strict=False
    )  # of a list, too
    token_dim: int = Field(512, ge=1)
    attention: int = Field(512, ge=1)
    layers: int = Field(4, ge=1)
    dim: int = Field(1024, ge=1)
    dropout: float = Field(0.0, ge=0, lt=1)
    topic_dropout: float = Field(0.0, ge=0, le=1)
    model: str = "tiny"
    max_tokens: int = Field(512, ge=4)
    precision: Literal["no", "bf16"] = "no"
    depth: int = Field(0, ge=0)
    frozen: int = Field(0, ge=0)
    every_layer: bool = False
    unit: bool = True

    @property
    def is_pretrained(self) -> bool:
        """Does it begin with weights that were learned elsewhere?"""
        return self.post == "transformer" and self.model != "tiny"

    @model_validator(mode="after")
    def _one_text_has_one_time(self):
        if self.join_posts and self.features != "T":
            raise ValueError(
                "posts that are joined to one text have no time or topic of their own: features must be T"
            )
        return self


_DOCUMENT = {
    "post": "transformer",
    "join_posts": True,
    "features": "T",
    "pooling": "mean",
    "dropout": 0.1,
}
PRESETS = {
    "khan2021": {},
    # one attention over the posts' features, two layers with bias: the text of the paper taken literally
    "khan2021_text": {"pooling": "khan2021_text", "projection": "khan2021_text"},
    "iur": {"pooling": "iur", "filters": 256, "widths": (2, 3, 4, 5), "attention": 256, "dim": 512, "dropout": 0.1},
    "luar": {"pooling": "luar", "projection": "linear", "dim": 512},
    "tyo2021": _DOCUMENT | {"projection": "tyo2021", "dim": 256},
    "sawatphol2022": _DOCUMENT | {"projection": "none"}}  # fmt: skip


def stream_config(preset: str = "khan2021", **settings) -> StreamConfig:
    """The config of a preset with some settings changed. Raises ValueError for an unknown preset or setting."""
    if preset not in PRESETS:
        raise ValueError(f"encoder {preset!r}: one of {', '.join(PRESETS)}")
    return StreamConfig.of(PRESETS[preset] | settings, f"encoder {preset}")


class StreamEncoder(Encoder):
    """Each post through ``post`` and ``side``, its posts through ``pooling``, the sample through ``projection``.

    Padded posts take part in nothing, so an embedding depends on its own posts only.

    post : (N, L) tokens -> (N, dim), with ``dim``. side : modules of :mod:`helpers.encoders.side_features`.
    pooling : of :mod:`helpers.encoders.pooling`. projection : (B, pooling.dim) -> (B, D).
    config : the rest: ``join_posts``, ``unit``.
    """

    def __init__(
        self,
        post: nn.Module,
        side: list[nn.Module],
        pooling: nn.Module,
        projection: nn.Sequential,
        config: StreamConfig,
    ):
        super().__init__()
        self.post, self.side, self.pooling, self.projection = (
            post,
            nn.ModuleList(side),
            pooling,
            projection,
        )
        self.config, self.join_posts, self.unit = config, config.join_posts, config.unit
        self.dim = next(
            (one.out_features for one in reversed(projection) if isinstance(one, nn.Linear)),
            pooling.dim,
        )
        if pooling.xavier:
            for module in (*pooling.modules(), *projection):
                if isinstance(module, nn.Linear):
                    nn.init.xavier_uniform_(module.weight)
                    if module.bias is not None:
                        nn.init.zeros_(module.bias)

    def forward(self, batch: Batch) -> Tensor:
        """Batch of (B, M, L) tokens -> (B, D) float32, unit length unless ``unit`` is false."""
        batch = batch.concatenate_posts() if self.join_posts else batch
        posts = torch.cat(
            [self.post(batch.tokens[batch.mask]), *(feature(batch) for feature in self.side)], 1
        )
        vectors = self.projection(self.pooling(posts, batch.mask)).float()
        return nnf.normalize(vectors, dim=1) if self.unit else vectors


def build_stream_encoder(
    config: StreamConfig,
    vocabulary: int,
    topics: int,
    seed: int = 0,
    tokenizer: Tokenizer | None = None,
) -> Encoder:
    """A new encoder; the same seed gives the same weights.

    vocabulary : kinds of tokens of the store. topics : rows of its topic list, the last one for "other".
    tokenizer : of the store, for a pretrained transformer of other tokens; one whose weights will be loaded needs none.
    Where a model brings a last layer of its own, as LUAR does, the projection "linear" begins as that.
    Raises ValueError where a transformer is not there or does not fit the store, or sizes do not fit together.
    """
    torch.manual_seed(seed)
    post = (
        Transformer(vocabulary, config, tokenizer)
        if config.post == "transformer"
        else TextCNN(vocabulary, config.token_dim, config.filters, config.widths)
    )
    makers = {
        "time": TIMES[config.time],
        "topic": lambda: TopicEmbedding(topics, config.token_dim, config.topic_dropout),
    }
    side = [makers[feature]() for feature in FEATURES[config.features]]
    pooling = POOLINGS[config.pooling](post.dim + sum(feature.dim for feature in side), config)
    projection, shape = (
        PROJECTIONS[config.projection](pooling.dim, config.dim),
        (config.dim, pooling.dim),
    )
    if (
        config.projection == "linear"
        and config.is_pretrained
        and (last := pretrained.model_parts(config.model)[1])
    ):
        if last.weight.shape != shape:
            raise ValueError(
                f"{config.model} ends in {tuple(last.weight.shape)} weights, not {shape}: features, dim?"
            )
        projection = nn.Sequential(last)
    encoder = StreamEncoder(post, side, pooling, projection, config)
    return ChunkMean(encoder, pooling.group) if pooling.group else encoder


def parameter_counts(encoder: nn.Module) -> dict[str, int]:
    """Number of trained values per part of an encoder, and their ``total`` (khan2021 Table 6)."""
    counts = {
        name: sum(value.numel() for value in part.parameters())
        for name, part in encoder.named_children()
    }
    return {
        **{name: count for name, count in counts.items() if count},
        "total": sum(counts.values()),
    }
