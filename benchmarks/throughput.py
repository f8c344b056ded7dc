"""Posts a second of a whole training step, for four ways to compute the same text convolutions.

    python benchmarks/throughput.py                      128 filters, vocabulary 16,384
    python benchmarks/throughput.py --size paper         512 filters, vocabulary 65,536, 2,049
                                                         topics

plain: Conv1d and maximum. dense: channels-last Conv2d and max_pool2d under bf16 autocast, the
fastest dense form on a CPU. projected: helpers.encoders.text_cnn, and the same under bf16 autocast.
Each step is encoder (TPS), supervised contrastive loss, backward pass and AdamW on the same batches
of 64 authors x 8 samples; they take turns, so that a busy machine slows all alike.
"""

import argparse
import statistics
import sys
import time
from functools import partial

import numpy as np
import torch
import torch.nn.functional as nnf
from torch import nn

from helpers.encoders.stream import build_stream_encoder, parameter_counts, stream_config
from helpers.encoders.text_cnn import TextCNN
from helpers.losses import make_loss
from helpers.tokens.batch import PAD, Batch
from helpers.tokens.samplers import SamplerConfig, make_sampler
from helpers.tokens.samplers.sizes import draw_sizes
from helpers.tokens.store import open_store
from helpers.training.distributed import device_name

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


def make(name, vocabulary, topics, sizes, seed=0):
    encoder = build_stream_encoder(stream_config(**sizes), vocabulary, topics, seed)
    encoder.post.method = "projected"
    if not name.startswith("projected"):
        encoder.post = {"plain": Plain, "dense": Dense}[name](encoder.post)
    return encoder, torch.optim.AdamW(encoder.parameters(), 1e-3, fused=True)


def step(name, encoder, optimizer, batch):
    """Seconds and loss of one step."""
    began = time.perf_counter()
    in_bf16 = name in ("dense", "projected_bf16")
    with torch.autocast("cpu", torch.bfloat16, enabled=in_bf16):
        embeddings = encoder(batch)
    loss = LOSS(embeddings, batch.authors)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return time.perf_counter() - began, loss.item()


def arguments_of_command():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument(
        "--store", help="a token store to take batches from; else Zipf-distributed tokens"
    )
    parser.add_argument(
        "--steps", type=int, default=5, help="timed steps of each way, after one untimed"
    )
    parser.add_argument("--authors", type=int, default=64)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=32, help="tokens a post")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    return parser.parse_args()


def main():
    arguments = arguments_of_command()
    vocabulary, topics, sizes = SIZES[arguments.size]
    config = SamplerConfig(
        authors_per_batch=arguments.authors,
        samples_per_author=arguments.samples,
        max_tokens=arguments.max_tokens,
    )
    draw = partial(synthetic, vocabulary=vocabulary, topics=topics, sampler=config)
    if arguments.store:
        store = open_store(arguments.store)
        draw = make_sampler(config, store, 0)
        topics = max(topics, len(store.meta["topics"]) + 1)
        highest = int(store.tokens[: 10**7].max())
        if highest >= vocabulary:
            too_large = f"too large for the vocabulary of --size {arguments.size}"
            sys.exit(f"the store holds token {highest}: {too_large}")
    nets = {name: make(name, vocabulary, topics, sizes) for name in arguments.ways}
    encoder, _ = next(iter(nets.values()))
    device = device_name(torch.device("cpu"))
    print(f"{parameter_counts(encoder)['total']:,} parameters, {arguments.size} size, {device}")
    compare(nets, [draw(number) for number in range(arguments.steps + 1)])


def compare(nets, batches):
    """Print posts a second of every way in turns; the first batch is not timed."""
    seconds = {name: [] for name in nets}
    first_losses = {}
    for number, batch in enumerate(batches):
        for name, (encoder, optimizer) in nets.items():
            took, loss = step(name, encoder, optimizer, batch)
            if number == 0:
                first_losses[name] = loss  # all start from the same weights
            else:
                seconds[name].append(took)
    posts = [int(batch.mask.sum()) for batch in batches]
    distinct = statistics.mean(len(batch.tokens.unique()) - 1 for batch in batches)
    print(f"a batch: {statistics.mean(posts):,.0f} posts, {distinct:,.0f} distinct tokens")
    print(f"{'':14} {'s/step':>8} {'posts/s':>9} {'ratio':>7}   first loss")
    medians = {name: statistics.median(took) for name, took in seconds.items()}
    base = next(iter(medians.values()))
    for name, median in medians.items():
        rate = statistics.mean(posts[1:]) / median
        ratio = base / median
        print(f"{name:14} {median:8.3f} {rate:9,.0f} {ratio:6.2f}x   {first_losses[name]:.5f}")


if __name__ == "__main__":
    main()
