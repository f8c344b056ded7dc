"""Encoders by name that are fitted in closed form, or not at all: the baselines of every table."""

from collections.abc import Callable
from functools import partial

import torch

from ..tokens.batch import training_windows
from ..tokens.document_sets import Documents
from ..tokens.store import TokenStore
from ..tokens.tokenizer import LUAR_FOLDERS, locate_model
from .base import ChunkMean, Encoder
from .lsa import WCCN, FrequentTokens, HourProfile, LSAEncoder
from .stream import build_stream_encoder, stream_config
from .tfidf import TEXT_KINDS, WEIGHTINGS, fit_tfidf
from .transformer import is_luar

LSA_DIM = 1024  # dimensions of LSA, at most
FREQUENT = 300  # number of most frequent tokens that "lsa_masked" reads
GROUP_POSTS = 8  # posts that a sentence encoder reads as one text, unless told otherwise
# baselines that are a pretrained model without any training: its name, and posts read as one text
PRETRAINED = {
    "minilm": ("minilm", GROUP_POSTS),
    # the two ways of khan2021 section 4.3: all posts as one text, and every post alone
    "minilm_joined": ("minilm", 0),
    "minilm_averaged": ("minilm", 1),
    **{name: (name, GROUP_POSTS) for name in LUAR_FOLDERS},
}


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
    """Fit LSA and WCCN on a training store.

    D is ``dim``, but at most a sixth of the number of training samples.

    Parameters
    ----------
    store : TokenStore
        training posts
    tokenizer : Tokenizer
        not used; every baseline is called with one
    max_tokens : int
        L, tokens read of each post
    seed : int
        seed of the randomised decomposition
    posts : int
        M, posts of a training sample
    frequent : int
        number of most frequent tokens that are told apart; 0 for all
    dim : int
        most dimensions
    buckets : int
        number of hash values for pairs of neighbouring tokens

    Raises
    ------
    ValueError
        If the store gives fewer than six training samples, or no author two.
    """
    windows = training_windows(store, posts)
    vocabulary = store.meta["vocabulary"]
    dim = min(dim, len(windows) // 6)
    if frequent:
        encoder = FrequentTokens(LSAEncoder(frequent + 1, dim, buckets), vocabulary)
    else:
        encoder = LSAEncoder(vocabulary, dim, buckets)
    encoder.fit(windows, max_tokens, seed)
    return WCCN(encoder).fit(windows, max_tokens)


# with the arguments of every baseline; it reads no text, so one token a post is enough
def _fit_hours(store, tokenizer, max_tokens, seed, posts):
    return WCCN(HourProfile()).fit(training_windows(store, posts), max_tokens=1)


def zero_shot(model: str, tokenizer, group_posts: int = GROUP_POSTS) -> Encoder:
    """Return a pretrained model as it is, on a GPU where there is one.

    LUAR reads single posts and pools them, as it was trained. A sentence encoder reads a group of
    posts as one text, as much of it as it can (512 tokens), and the vectors of a sample's groups
    are averaged. The baseline of khan2021 section 4.3 is one group of all posts; the paper also
    tried groups of one post, and found them worse.

    Parameters
    ----------
    model : str
        name or folder, see :mod:`helpers.tokens.tokenizer`
    tokenizer : Tokenizer
        the store's tokenizer
    group_posts : int
        most posts of a group, 0 for all; not used by LUAR
    """
    if is_luar(model):
        config = stream_config("luar", features="T", post="transformer", model=model)
    else:
        config = stream_config("sawatphol2022", model=model)
    encoder = build_stream_encoder(config, tokenizer.vocabulary, topics=1, tokenizer=tokenizer)
    encoder.to("cuda" if torch.cuda.is_available() else "cpu")
    if config.join_posts and group_posts:
        return ChunkMean(encoder, group_posts)
    return encoder


# zero_shot with the arguments of every baseline
def _load_pretrained(model, group_posts, store, tokenizer, max_tokens, seed, posts):
    return zero_shot(model, tokenizer, group_posts)


# each is called with (store, tokenizer, max_tokens, seed, posts)
BASELINES: dict[str, Callable[..., Encoder]] = {
    **{kind: partial(fit_tfidf, kind) for kind in WEIGHTINGS},
    "lsa": fit_lsa,
    "lsa_masked": partial(fit_lsa, frequent=FREQUENT),
    "hours": _fit_hours,
    **{name: partial(_load_pretrained, *reading) for name, reading in PRETRAINED.items()},
}


def fit_baseline(
    name: str, store: TokenStore, tokenizer, max_tokens: int = 32, seed: int = 0, posts: int = 16
) -> Encoder:
    """Fit the named encoder on a training store.

    Parameters
    ----------
    name : str
        one of BASELINES
    store : TokenStore
        training posts
    tokenizer : Tokenizer
        the store's tokenizer
    max_tokens : int
        L, tokens read of each post
    seed : int
        seed of the posts that a TF-IDF is fitted on, and of LSA's randomised decomposition
    posts : int
        M, posts of a training sample of encoders that count whole samples: the size of the samples
        that will be compared, 1 for documents; other encoders ignore it

    Raises
    ------
    ValueError
        If the name is another, the store is too small, or a pretrained model is not installed.
    """
    if name not in BASELINES:
        raise ValueError(f"encoder {name!r}: one of {', '.join(BASELINES)}")
    return BASELINES[name](store, tokenizer, max_tokens, seed, posts)


def fit_on_documents(
    name: str, documents: Documents, max_tokens: int = 32, seed: int = 0
) -> Encoder:
    """Fit the named encoder on training documents, each of which is a sample of one post.

    A TF-IDF of characters or words is fitted on the raw texts, if the documents have them. It then
    has the tokenizer of these, by which
    :func:`helpers.evaluation.verification.evaluate_documents` knows what it reads.

    Parameters
    ----------
    name : str
        one of BASELINES
    documents : Documents
        documents with the split "train"
    max_tokens : int
        L, tokens read of each document; a raw text is read whole
    seed : int
        as in :func:`fit_baseline`

    Raises
    ------
    ValueError
        As :func:`fit_baseline`.
    """
    if documents.raw is not None and name in TEXT_KINDS:
        documents = documents.raw
        max_tokens = documents.longest
    train = documents.stores["train"]
    return fit_baseline(name, train, documents.tokenizer, max_tokens, seed, posts=1)


def check_installed(names: list[str]) -> None:
    """Raise ValueError if a pretrained baseline of these names is not installed."""
    for name in names:
        if name in PRETRAINED:
            model, _ = PRETRAINED[name]
            locate_model(model)
