"""The stream encoder: samples of posts become unit vectors, by parts that can be exchanged.

The encoder of khan2021, IUR, LUAR's pooling and the Siamese transformer of tyo2021 are
configurations of ``StreamEncoder(post, side, pooling, projection)``, see PRESETS. Letters: B
samples, M posts a sample, L tokens a post, N real posts of a batch, D dimensions of the embedding.
"""

from typing import Annotated, Literal

import torch
import torch.nn.functional as nnf
from pydantic import Field, model_validator
from torch import Tensor, nn

from ..core.parameters import Config
from ..tokens.batch import Batch
from ..tokens.tokenizer import Tokenizer
from .base import ChunkMean, Encoder
from .parts import FEATURES, POOLINGS, TIMES, TopicEmbedding
from .text_cnn import TextCNN
from .transformer import Transformer, model_parts

# of a layer, at most eight times the paper's: beyond that weights fill any memory
Width = Annotated[int, Field(ge=1, le=4096)]
Layers = Annotated[int, Field(ge=0, le=100)]


class StreamConfig(Config):
    """Settings of a stream encoder; the defaults are khan2021's (Appendix B), as released.

    Attributes
    ----------
    post : str
        what reads the text of a post: "text_cnn" or "transformer"
    join_posts : bool
        whether the posts of a sample are read one after the other as one text
    features : str
        what is read of a post: "T" its text, "TP" text and time, "TPS" text, time and topic
    time : str
        one of :data:`helpers.encoders.parts.TIMES`; not used where features are "T"
    pooling : str
        one of :data:`helpers.encoders.parts.POOLINGS`: how posts become one vector
    projection : str
        name of the last layers, from a pooled sample to its embedding
    filters : int
        filters of each convolution width of a "text_cnn"
    widths : tuple of int
        widths of the convolutions of a "text_cnn", in tokens
    token_dim : int
        size of the token embeddings of a "text_cnn", and of topic embeddings
    attention : int
        A, outputs of each attention of the pooling
    layers : int
        number of parallel attentions of the pooling "khan2021"
    dim : int
        D, size of the embedding; not used where the projection is "none" or "wccn", which keep the
        size of the pooled sample
    dropout : float
        dropout rate of the poolings that learn (khan2021, khan2021_text, iur) and of a transformer;
        LUAR's pooling, the mean and the maximum have none
    topic_dropout : float
        share of training posts whose topic is hidden at random
    model, max_tokens, precision, depth, frozen, every_layer : str, int or bool
        settings of a transformer, see :class:`~helpers.encoders.transformer.Transformer`
    unit : bool
        whether vectors are scaled to unit length; margins above 2, as in tyo2021 Table 2, need
        vectors that are not
    """

    post: Literal["text_cnn", "transformer"] = "text_cnn"
    join_posts: bool = False
    features: Literal[FEATURES] = "TPS"
    time: Literal[tuple(TIMES)] = "hour"
    pooling: Literal[tuple(POOLINGS)] = "khan2021"
    projection: Literal["khan2021", "khan2021_text", "linear", "tyo2021", "wccn", "none"] = (
        "khan2021"
    )
    filters: Width = 512
    # not strict, so that a list is accepted as well
    widths: tuple[Annotated[int, Field(ge=1, le=64)], ...] = Field(
        (2, 3, 4), min_length=1, max_length=16, strict=False
    )
    token_dim: Width = 512
    attention: Width = 512
    layers: int = Field(4, ge=1, le=16)
    dim: Width = 1024
    dropout: float = Field(0.0, ge=0, lt=1)
    topic_dropout: float = Field(0.0, ge=0, le=1)
    model: str = "tiny"
    max_tokens: int = Field(512, ge=4, le=8192)
    precision: Literal["no", "bf16"] = "no"
    depth: Layers = 0
    frozen: Layers = 0
    every_layer: bool = False
    unit: bool = True

    @property
    def is_pretrained(self) -> bool:
        """Whether the encoder begins with the weights of a pretrained model."""
        return self.post == "transformer" and self.model != "tiny"

    @model_validator(mode="after")
    def _fits(self):
        if self.join_posts and self.features != "T":
            raise ValueError(
                "posts that are joined to one text have no time or topic of their own: "
                "features must be T"
            )
        if len(set(self.widths)) < len(self.widths):
            raise ValueError(f"widths {self.widths} hold a width twice")
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
    # the paper taken literally: one attention over the posts' features, two layers with bias
    "khan2021_text": {"pooling": "khan2021_text", "projection": "khan2021_text"},
    "iur": {
        "pooling": "iur",
        "filters": 256,
        "widths": (2, 3, 4, 5),
        "attention": 256,
        "dim": 512,
        "dropout": 0.1,
    },
    "luar": {"pooling": "luar", "projection": "linear", "dim": 512},
    "tyo2021": _DOCUMENT | {"projection": "tyo2021", "dim": 256},
    "sawatphol2022": _DOCUMENT | {"projection": "none"},
}


def stream_config(preset: str = "khan2021", **settings) -> StreamConfig:
    """Return the config of a preset with some settings changed.

    Parameters
    ----------
    preset : str
        one of PRESETS
    **settings : Any
        fields of :class:`StreamConfig`

    Raises
    ------
    ValueError
        For an unknown preset or setting.
    """
    if preset not in PRESETS:
        raise ValueError(f"encoder {preset!r}: one of {', '.join(PRESETS)}")
    return StreamConfig.of(PRESETS[preset] | settings, f"encoder {preset}")


class StreamEncoder(Encoder):
    """Read each post, pool the posts of a sample, project the sample.

    Padding changes no embedding: each depends on its own posts only.

    Parameters
    ----------
    post : Module
        maps (N, L) tokens to (N, ``dim``) vectors
    side : list of Module
        modules of :mod:`helpers.encoders.parts`, whose vectors are appended to the text's
    pooling : Module
        a module of :mod:`helpers.encoders.parts`
    projection : Sequential
        maps (B, ``pooling.dim``) pooled samples to (B, D) embeddings
    config : StreamConfig
        settings, of which ``join_posts``, ``unit``, ``projection`` and ``dim`` are read
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
        self.post = post
        self.side = nn.ModuleList(side)
        self.pooling = pooling
        self.projection = projection
        self.config = config
        self.unit = config.unit
        keeps_width = config.projection in ("wccn", "none")
        self.dim = pooling.dim if keeps_width else config.dim
        if pooling.xavier:
            for module in (*pooling.modules(), *projection):
                if isinstance(module, nn.Linear):
                    nn.init.xavier_uniform_(module.weight)
                    if module.bias is not None:
                        nn.init.zeros_(module.bias)

    def forward(self, batch: Batch) -> Tensor:
        """Return the (B, D) float32 rows of a batch, unit length unless ``unit`` is false."""
        if self.config.join_posts:
            batch = batch.concatenate_posts()
        features = [self.post(batch.tokens[batch.mask])]
        features += [feature(batch) for feature in self.side]
        pooled = self.pooling(torch.cat(features, 1), batch.mask)
        vectors = self.projection(pooled).float()
        return nnf.normalize(vectors, dim=1) if self.unit else vectors


def build_stream_encoder(
    config: StreamConfig,
    vocabulary: int,
    topics: int,
    seed: int = 0,
    tokenizer: Tokenizer | None = None,
) -> Encoder:
    """Build a new encoder; the same seed gives the same weights.

    The projection "linear" begins as the last layer of the pretrained model where that has one, as
    LUAR does. Where the pooling can only pool a limited number of posts, the encoder is wrapped in
    :class:`~helpers.encoders.base.ChunkMean`.

    Parameters
    ----------
    config : StreamConfig
        settings of the encoder
    vocabulary : int
        number of different tokens of the store
    topics : int
        rows of the store's topic list, the last one for "other"
    seed : int
        seed of the new weights; PyTorch's global generator is set to it
    tokenizer : Tokenizer or None
        the store's tokenizer, with which a pretrained transformer of other tokens reads the store;
        an encoder whose weights will be loaded needs none

    Raises
    ------
    ValueError
        If a transformer is not installed or does not fit the store, or if sizes do not fit.
    """
    torch.manual_seed(seed)
    if config.post == "transformer":
        post = Transformer(vocabulary, config, tokenizer)
    else:
        post = TextCNN(vocabulary, config.token_dim, config.filters, config.widths)
    side = []
    if "P" in config.features:
        side.append(TIMES[config.time]())
    if "S" in config.features:
        side.append(TopicEmbedding(topics, config.token_dim, config.topic_dropout))

    width = post.dim + sum(feature.dim for feature in side)
    pooling = POOLINGS[config.pooling](width, config)
    projection = _projection(config.projection, pooling.dim, config.dim)
    if config.projection == "linear" and config.is_pretrained:
        projection = _released_projection(config.model, projection)
    encoder = StreamEncoder(post, side, pooling, projection, config)
    return ChunkMean(encoder, pooling.group) if pooling.group else encoder


def _projection(name, width, dim):
    """Return the last layers of that name, from a pooled sample (width) to its embedding (dim)."""
    if name == "khan2021":  # as released: layers without bias, between LayerNorms
        return nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, dim, bias=False),
            nn.ReLU(),
            nn.Linear(dim, dim, bias=False),
            nn.LayerNorm(dim),
        )
    if name == "khan2021_text":  # as the paper's text says
        return nn.Sequential(nn.Linear(width, dim), nn.ReLU(), nn.Linear(dim, dim))
    if name == "linear":
        return nn.Sequential(nn.Linear(width, dim))
    if name == "tyo2021":  # a dense layer, as released
        return nn.Sequential(nn.Linear(width, dim), nn.ReLU())
    if name == "wccn":  # init_as_wccn sets its weights before training
        return nn.Sequential(nn.Linear(width, width))
    return nn.Sequential()  # "none": the pooled vector itself, as in sentence encoders


def _released_projection(model, projection):
    """Return the last layer that a pretrained model brings, or the projection where it has none."""
    _, layer = model_parts(model)
    if layer is None:
        return projection
    shape = tuple(projection[0].weight.shape)
    if layer.weight.shape != shape:
        raise ValueError(
            f"{model} ends in {tuple(layer.weight.shape)} weights, not {shape}: features, dim?"
        )
    return nn.Sequential(layer)


def parameter_counts(encoder: nn.Module) -> dict[str, int]:
    """Count the parameters of each part of an encoder and their ``total``, as khan2021 Table 6."""
    counts = {}
    for name, part in encoder.named_children():
        count = sum(value.numel() for value in part.parameters())
        if count:
            counts[name] = count
    return counts | {"total": sum(counts.values())}
