"""A whole training step, for four ways to compute the same text convolutions.

plain: Conv1d and maximum. dense: channels-last Conv2d and max_pool2d under bf16 autocast, the
fastest dense form on a CPU. projected: helpers.encoders.text_cnn, and the same under bf16 autocast.
Each step is encoder (TPS), supervised contrastive loss, backward pass and AdamW on the same batch.
``python benchmarks/speed.py training`` measures them in turns.
"""

import numpy as np
import torch
import torch.nn.functional as nnf
from torch import nn

from helpers.encoders.stream import build_stream_encoder, stream_config
from helpers.encoders.text_cnn import TextCNN
from helpers.losses import make_loss
from helpers.tokens.batch import PAD, Batch
from helpers.tokens.samplers import draw_sizes

SIZES = {  # vocabulary, topics, then those of the encoder
    "small": (16_384, 257, {"filters": 128, "token_dim": 128, "attention": 128, "dim": 128}),
    "paper": (65_536, 2049, {"filters": 512, "token_dim": 512, "attention": 512, "dim": 1024}),
    "toy": (1000, 9, {"filters": 16, "token_dim": 16, "attention": 16, "dim": 16}),
}
WAYS = ("plain", "dense", "projected", "projected_bf16")
LOSS = make_loss("supcon")


class Conventional(nn.Module):
    """The text feature as it is usually written, with the parameters of a TextCNN."""

    def __init__(self, text: TextCNN):
        super().__init__()
        self.embedding = text.embedding
        self.convolutions = text.convolutions
        self.dim = text.dim
        self.widths = text.widths
        self.widest = max(text.widths)

    def embed(self, tokens):
        """(N, L) -> (N, d, L + widest - 1), zeros where there is no token."""
        embedded = self.embedding(tokens.clamp(min=0)) * (tokens != PAD).unsqueeze(2)
        return nnf.pad(embedded, (0, 0, 0, self.widest - 1)).transpose(1, 2)

    def windows(self, embedded):
        """Every convolution with the part of the embedded tokens that gives it L windows."""
        for convolution, width in zip(self.convolutions, self.widths):
            yield convolution, embedded[:, :, : embedded.shape[2] - self.widest + width]


class Plain(Conventional):
    def forward(self, tokens):
        pooled = [convolve(part).amax(2) for convolve, part in self.windows(self.embed(tokens))]
        return torch.cat(pooled, 1).relu()


class Dense(Conventional):
    def forward(self, tokens):
        pooled = []
        for convolution, part in self.windows(self.embed(tokens)):
            weight = convolution.weight.unsqueeze(2).to(memory_format=torch.channels_last)
            # (N, d, 1, L): channels-last already
            windows = nnf.conv2d(part.unsqueeze(2), weight, convolution.bias)
            pooled.append(nnf.max_pool2d(windows, (1, windows.shape[3])).flatten(1))
        return torch.cat(pooled, 1).relu()


def synthetic(step, vocabulary, topics, sampler):
    """A batch of Zipf-distributed tokens.

    A post's length is log-normal with mean 43 (khan2021), cut as a sampler cuts it.
    """
    rng = np.random.default_rng([0, step])
    authors = sampler.authors_per_batch
    samples = sampler.samples_per_author
    length = sampler.max_tokens
    count = draw_sizes("beta31", authors * samples, rng)
    mask = np.arange(count.max()) < count[:, None]
    weight = 1 / np.arange(1, vocabulary + 1)
    tokens = rng.choice(vocabulary, (*mask.shape, length), p=weight / weight.sum())
    long = rng.lognormal(np.log(43) - 0.5, 1, mask.shape).astype(int).clip(1, length)
    tokens[(np.arange(length) >= long[..., None]) | ~mask[..., None]] = PAD
    hour = rng.integers(0, 24, mask.shape) * mask
    topic = rng.integers(0, topics, mask.shape) * mask
    author = np.repeat(np.arange(authors), samples)
    arrays = (tokens, hour, topic, mask, author, hour * 3600)
    return Batch(*[torch.from_numpy(array) for array in arrays])


def make(name, vocabulary, topics, sizes):
    encoder = build_stream_encoder(stream_config(**sizes), vocabulary, topics, 0)
    encoder.post.method = "projected"
    if not name.startswith("projected"):
        encoder.post = {"plain": Plain, "dense": Dense}[name](encoder.post)
    return encoder, torch.optim.AdamW(encoder.parameters(), 1e-3, fused=True)


def step(name, encoder, optimizer, batch):
    """Take one step of training."""
    in_bf16 = name in ("dense", "projected_bf16")
    with torch.autocast("cpu", torch.bfloat16, enabled=in_bf16):
        embeddings = encoder(batch)
    loss = LOSS(embeddings, batch.authors)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
