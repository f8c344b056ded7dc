"""Encoders by name that are fitted in closed form, or not at all: the baselines of every table."""

from collections.abc import Callable
from functools import partial

import torch

from helpers.encoders import pretrained
from helpers.encoders.base import Encoder
from helpers.encoders.chunk_mean import ChunkMean
from helpers.encoders.frequent_tokens import FrequentTokens
from helpers.encoders.lsa import LSAEncoder
from helpers.encoders.profiles import HourProfile
from helpers.encoders.stream import build_stream_encoder, stream_config
from helpers.encoders.tfidf import WEIGHTINGS, fit_tfidf
from helpers.encoders.wccn import WCCN
from helpers.tokens import pretrained_tokenizers
from helpers.tokens.samplers.windows import training_windows
from helpers.tokens.store import TokenStore

LSA_DIM, FREQUENT = (
    1024,
    300,
)  # dimensions of the dense vectors; most frequent tokens that are not masked
PRETRAINED = ("minilm", *pretrained_tokenizers.LUAR_FOLDERS)


def fit_lsa(
    store: TokenStore,
    tokenizer,
    max_tokens: int,
    seed: int,
    posts: int,
    frequent: int = 0,
    dim: int = LSA_DIM,
    buckets: int = 2**16,
) -> WCCN:
    """LSA and WCCN of a training store; of small ones with a sixth as many dimensions as there are samples.

    frequent : so many of the most frequent tokens are read, 0 for all. dim : at most. buckets : of pairs of tokens.
    """
    windows = training_windows(store, posts)
    lsa = LSAEncoder(
        frequent + 1 if frequent else store.meta["vocabulary"], min(dim, len(windows) // 6), buckets
    )
    encoder = FrequentTokens(lsa, store.meta["vocabulary"]) if frequent else lsa
    return WCCN(encoder.fit(windows, max_tokens, seed)).fit(windows, max_tokens)


def zero_shot(model: str, tokenizer) -> Encoder:
    """A pretrained model as it is, on a GPU where there is one: LUAR, whole, or a sentence encoder.

    The latter reads posts as one text, eight at a time (khan2021 section 4.3).
    """
    luar = {"preset": "luar", "features": "T", "post": "transformer"}
    config = stream_config(
        **luar if pretrained.is_luar(model) else {"preset": "sawatphol2022"}, model=model
    )
    encoder = build_stream_encoder(config, tokenizer.vocabulary, 1, 0, tokenizer).to(
        "cuda" if torch.cuda.is_available() else "cpu"
    )
    return ChunkMean(encoder, 8) if config.join_posts else encoder


BASELINES: dict[str, Callable[..., Encoder]] = {  # called with (store, tokenizer, max_tokens, seed, posts)
    **{kind: lambda *given, kind=kind: fit_tfidf(kind, *given) for kind in WEIGHTINGS},
    "lsa": fit_lsa,
    "lsa_masked": partial(fit_lsa, frequent=FREQUENT),
    "hours": lambda store, *given: WCCN(HourProfile()).fit(training_windows(store, given[-1]), 1),
    **{name: lambda store, tokenizer, *_, name=name: zero_shot(name, tokenizer) for name in PRETRAINED}}  # fmt: skip


def fit_baseline(
    name: str, store: TokenStore, tokenizer, max_tokens: int = 32, seed: int = 0, posts: int = 16
) -> Encoder:
    """Fit the named encoder on a training store.

    name : one of FITTED. tokenizer : of the store. max_tokens : read of each post, L. posts : of a training sample of
    those that count whole samples, as many as will be compared; 1 for documents.
    Raises ValueError for another name, or where the store is too small, or a pretrained model is not installed.
    """
    if name not in BASELINES:
        raise ValueError(f"encoder {name!r}: one of {', '.join(BASELINES)}")
    return BASELINES[name](store, tokenizer, max_tokens, seed, posts)


def fusion_members(features: str) -> list[str]:
    """Return the names in FITTED that see no more than a stream with these features (T, TP or TPS), to fuse with it."""
    return [
        "lsa",
        *(name for letter, name in (("P", "hours"), ("S", "topics")) if letter in features),
    ]


def check_installed(names: list[str]) -> None:
    """Raise ValueError where one of the names needs a model that is not installed, before long work begins."""
    for name in {*names}.intersection(PRETRAINED):
        pretrained_tokenizers.locate_model(name)
