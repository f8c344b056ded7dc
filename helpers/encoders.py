"""Encoders: a batch of samples -> unit vectors. Any encoder runs with any loss, corpus and protocol.

Letters: B samples, M posts a sample, L tokens a post, D dimensions of the embedding.
"""

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from helpers.counts import HOURS, CountBranch
from helpers.sampling import Batch
from helpers.textconv import TextConv

FEATURES = {"T": "text", "TP": "text + hour of publication", "TPS": "text + hour + topic (subreddit)"}


class StreamEncoder(nn.Module):
    """Encoder of streams of posts, khan2021 section 2.1, Figure 2 and Appendix B, in the shape its authors released.

    Each post: max-pooled convolutions of its tokens, concatenated with the one-hot hour (TP) and a learned topic
    embedding (TPS), projected to ``attention`` dimensions. The posts of a sample: ``layers`` parallel dot-product
    attentions (unscaled, value = key), each pooled over posts by maximum and by mean. Then LayerNorm, two fully
    connected layers without bias, LayerNorm, and unit length. Padded posts take no part in attention or pooling,
    so an embedding depends on its own posts only.

    vocabulary: token ids. topics: topic ids, the last one for "other" (paper: 2049). features: T, TP or TPS.
    filters, token_dim, attention, embedding: sizes; the defaults are the paper's.
    dropout: share of post vectors' entries zeroed in training (paper: none).
    topic_dropout: share of posts whose topic training hides behind "other" (paper: none). Where the topic list holds
    every training topic, "other" occurs in no training post, and its row would stay as it was drawn.
    counts: D of a :class:`~helpers.counts.CountBranch` beside the stream (paper: none), fitted before training. In
    training the encoder is the stream alone; in eval mode its unit vector and those of the count branch are the
    ``parts`` of one vector, which :func:`join` joins with ``weights``, chosen on dev authors.
    Raises ValueError for unknown features.
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
        counts: int = 0,
        text_path: str = "auto",
    ):
        super().__init__()
        if features not in FEATURES:
            raise ValueError(f"features {features!r}: one of {', '.join(FEATURES)}")
        self.features, self.layers, self.topic_dropout = features, layers, topic_dropout
        self.text = TextConv(vocabulary, token_dim, filters, path=text_path)
        self.topic = nn.Embedding(topics, token_dim) if "S" in features else None
        width = self.text.features + HOURS * ("P" in features) + token_dim * ("S" in features)
        self.post = nn.Linear(width, attention)
        self.dropout = nn.Dropout(dropout)
        self.query = nn.Linear(attention, layers * attention)
        self.key = nn.Linear(attention, layers * attention)
        self.project = nn.Sequential(
            nn.LayerNorm(2 * layers * attention),
            nn.Linear(2 * layers * attention, embedding, bias=False),
            nn.ReLU(),
            nn.Linear(embedding, embedding, bias=False),
            nn.LayerNorm(embedding),
        )
        for module in (self.post, self.query, self.key, self.project[1], self.project[3]):
            nn.init.xavier_uniform_(module.weight)  # the attention is unscaled, so its scale at the start matters
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        if self.topic is not None:
            nn.init.uniform_(self.topic.weight, -0.05, 0.05)
        self.counts = CountBranch(vocabulary, topics, counts, features) if counts else None
        self.parts = {"stream": embedding} | (self.counts.widths if counts else {})
        self.register_buffer("weights", torch.full((len(self.parts),), 1 / len(self.parts)))

    def forward(self, batch: Batch) -> Tensor:
        """Batch of (B, M, L) tokens -> (B, D), unit length."""
        mask = batch.mask
        parts = [self.text(batch.tokens[mask])]  # real posts only: padding costs nothing
        if "P" in self.features:
            parts.append(nnf.one_hot(batch.hours[mask], HOURS).to(parts[0].dtype))
        if self.topic is not None:
            parts.append(self.topic(self._hide(batch.topics[mask])))
        posts = self.dropout(self.post(torch.cat(parts, 1)))
        padded = posts.new_zeros(*mask.shape, posts.shape[1])
        padded[mask] = posts
        stream = nnf.normalize(self.project(self._pool(padded, mask)).float(), dim=1)
        if self.counts is None or self.training:
            return stream
        return join([stream, *self.counts(batch)], self.weights)

    def _hide(self, topics: Tensor) -> Tensor:
        """In training a share of topics becomes "other", so that its embedding is trained too."""
        if not (self.training and self.topic_dropout):
            return topics
        hidden = torch.rand(topics.shape, device=topics.device) < self.topic_dropout
        return topics.masked_fill(hidden, self.topic.num_embeddings - 1)

    def inference(self):
        """A context for embedding many batches without gradients: the token table is computed once."""
        return self.text.whole_vocabulary()

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
        mean = (attended * real).sum(2) / real.sum(2)
        return torch.cat([highest, mean], 2).flatten(1)


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
