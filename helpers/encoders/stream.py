"""Encoders: a batch of samples -> unit vectors. Any encoder runs with any loss, corpus and protocol.

Letters: B samples, M posts a sample, L tokens a post, N real posts of a batch, D dimensions of the embedding.
"""

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from helpers.encoders import time_features as clocks
from helpers.encoders.lsa import CountBranch
from helpers.tokens.batch import Batch
from helpers.encoders.text_cnn import TextConv

FEATURES = {"T": "text", "TP": "text + hour of publication", "TPS": "text + hour + topic (subreddit)"}
ATTENTIONS = ("parallel", "single")
PROJECTIONS = ("released", "paper")


class PostFeatures(nn.Module):
    """What encoders of streams know of one post: its text, its time (P) and its topic (S), side by side.

    vocabulary: token ids. topics: topic ids, the last one for "other" (paper: 2049). features: T, TP or TPS.
    filters: of each convolution width in ``widths``. token_dim: of token and topic embeddings.
    topic_dropout: share of posts whose topic training hides behind "other" (paper: none). Where the topic list holds
    every training topic, "other" occurs in no training post, and its row would stay as it was drawn.
    clock: how the time is read, see :mod:`helpers.encoders.time_features`. ``width``: entries of a post's vector.
    Raises ValueError for unknown features or an unknown clock.
    """

    def __init__(
        self, vocabulary, topics, features, filters, token_dim, widths, topic_dropout, clock, text_path, parts
    ):  # fmt: skip
        super().__init__()
        if features not in FEATURES:
            raise ValueError(f"features {features!r}: one of {', '.join(FEATURES)}")
        self.features, self.topic_dropout, self.parts = features, topic_dropout, parts
        self.counts = None  # a branch beside the stream, where there is one
        self.text = TextConv(vocabulary, token_dim, filters, widths, text_path)
        self.clock = clocks.make(clock) if "P" in features else None
        self.topic = nn.Embedding(topics, token_dim) if "S" in features else None
        if self.topic is not None:
            nn.init.uniform_(self.topic.weight, -0.05, 0.05)
        self.width = self.text.features + (self.clock.width if self.clock else 0) + token_dim * ("S" in features)
        self.register_buffer("weights", torch.full((len(parts),), 1 / len(parts)))

    def posts(self, batch: Batch) -> Tensor:
        """(N, width): real posts only, so that padding costs nothing."""
        found = [self.text(batch.tokens[batch.mask])]
        if self.clock is not None:
            found.append(self.clock(batch)[batch.mask].to(found[0].dtype))
        if self.topic is not None:
            found.append(self.topic(self._hide(batch.topics[batch.mask])))
        return torch.cat(found, 1)

    def _hide(self, topics: Tensor) -> Tensor:
        """In training a share of topics becomes "other", so that its embedding is trained too."""
        if not (self.training and self.topic_dropout):
            return topics
        hidden = torch.rand(topics.shape, device=topics.device) < self.topic_dropout
        return topics.masked_fill(hidden, self.topic.num_embeddings - 1)

    def inference(self):
        """A context for embedding many batches without gradients: the token table is computed once."""
        return self.text.whole_vocabulary()


class StreamEncoder(PostFeatures):
    """Encoder of streams of posts, khan2021 section 2.1, Figure 2 and Appendix B, in the shape its authors released.

    Each post: max-pooled convolutions of its tokens, concatenated with the one-hot hour (TP) and a learned topic
    embedding (TPS), projected to ``attention`` dimensions. The posts of a sample: ``layers`` parallel dot-product
    attentions (unscaled, value = key), each pooled over posts by maximum and by mean. Then LayerNorm, two fully
    connected layers without bias, LayerNorm, and unit length. Padded posts take no part in attention or pooling,
    so an embedding depends on its own posts only.

    Sizes: the defaults are the paper's; the other arguments are those of :class:`PostFeatures`.
    dropout: share of post vectors' entries zeroed in training (paper: none).
    attention_reading: "parallel" as above, or "single" as the text says: one attention over the posts' features as
    they are, pooled by maximum. projection: "released" as above, or "paper": two layers with bias.
    counts: D of a :class:`~helpers.encoders.lsa.CountBranch` beside the stream (paper: none), fitted before training. In
    training the encoder is the stream alone; in eval mode its unit vector and those of the count branch are the
    ``parts`` of one vector, which :func:`join` joins with ``weights``, chosen on dev authors.
    Raises ValueError for unknown features, clocks or readings.
    """

    def __init__(
        self,
        vocabulary: int,
        topics: int,
        features: str = "TPS",
        filters: int = 512,
        token_dim: int = 512,
        attention: int = 512,
        embedding: int = 1024,
        layers: int = 4,
        dropout: float = 0.0,
        topic_dropout: float = 0.0,
        clock: str = "hour",
        attention_reading: str = "parallel",
        projection: str = "released",
        counts: int = 0,
        text_path: str = "auto",
    ):
        for name, value, valid in (("attention_reading", attention_reading, ATTENTIONS),
                                   ("projection", projection, PROJECTIONS)):  # fmt: skip
            if value not in valid:
                raise ValueError(f"{name} {value!r}: one of {', '.join(valid)}")
        branch = CountBranch(vocabulary, topics, counts, features) if counts else None
        parts = {"stream": embedding} | (branch.widths if branch else {})
        known = topic_dropout, clock, text_path, parts
        super().__init__(vocabulary, topics, features, filters, token_dim, (2, 3, 4), *known)
        self.single = attention_reading == "single"
        self.layers = 1 if self.single else layers
        self.post = nn.Identity() if self.single else nn.Linear(self.width, attention)
        self.dropout = nn.Dropout(dropout)
        width = self.width if self.single else attention
        self.query = nn.Linear(width, self.layers * attention)
        self.key = nn.Linear(width, self.layers * attention)
        pooled = attention if self.single else 2 * layers * attention
        if projection == "paper":
            self.project = nn.Sequential(nn.Linear(pooled, embedding), nn.ReLU(), nn.Linear(embedding, embedding))
        else:
            self.project = normed_projection(pooled, embedding)
        for module in (self.post, self.query, self.key, *self.project):
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)  # the attention is unscaled: its scale at the start matters
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        self.counts = branch

    def forward(self, batch: Batch) -> Tensor:
        """Batch of (B, M, L) tokens -> (B, D), unit length."""
        posts = self.dropout(self.post(self.posts(batch)))
        padded = posts.new_zeros(*batch.mask.shape, posts.shape[1])
        padded[batch.mask] = posts
        stream = nnf.normalize(self.project(self._pool(padded, batch.mask)).float(), dim=1)
        if self.counts is None or self.training:
            return stream
        return join([stream, *self.counts(batch)], self.weights)

    def _pool(self, posts: Tensor, mask: Tensor) -> Tensor:
        """(B, M, A) post vectors -> (B, 2 * layers * A): maximum and mean of every attention layer's output."""
        samples, longest, _ = posts.shape
        query, key = (
            linear(posts).view(samples, longest, self.layers, -1).transpose(1, 2) for linear in (self.query, self.key)
        )
        hidden = ~mask[:, None, None, :]
        scores = (query @ key.transpose(2, 3)).masked_fill(hidden, float("-inf"))
        attended = scores.softmax(-1) @ key
        real = mask[:, None, :, None]
        highest = attended.masked_fill(~real, float("-inf")).amax(2)
        if self.single:
            return highest.flatten(1)
        mean = (attended * real).sum(2) / real.sum(2)
        return torch.cat([highest, mean], 2).flatten(1)


def normed_projection(width: int, embedding: int) -> nn.Sequential:
    """LayerNorm, two fully connected layers without bias, ReLU between them, LayerNorm."""
    return nn.Sequential(
        nn.LayerNorm(width),
        nn.Linear(width, embedding, bias=False),
        nn.ReLU(),
        nn.Linear(embedding, embedding, bias=False),
        nn.LayerNorm(embedding),
    )


def join(parts: list[Tensor], weights: Tensor) -> Tensor:
    """Parts (B, D_1), (B, D_2) ... -> (B, D_1 + D_2 + ...), unit length.

    The cosine of two results is the mean of the parts' cosines with these weights (not below 0); a part that is zero
    for a sample takes no part there.
    """
    return nnf.normalize(torch.cat([part * weight.sqrt() for part, weight in zip(parts, weights)], 1), dim=1)


def parameter_counts(encoder: nn.Module) -> dict[str, int]:
    """Number of trained values per part of an encoder, and their ``total`` (khan2021 Table 6)."""
    counts = {
        name: sum(parameter.numel() for parameter in part.parameters()) for name, part in encoder.named_children()
    }
    counts = {name: count for name, count in counts.items() if count}
    return {**counts, "total": sum(counts.values())}
