"""What an encoder reads: samples of posts of a token store, and the padded batch they become.

Letters: B samples, M posts (longest sample of the batch), L tokens a post, N samples of a list.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
import torch

from helpers.tokens.store import TokenStore, ranges, take

PAD = -1  # marks "no token" in a batch; it has no row in an embedding table
WINDOWS = ("prefix", "random")


@dataclass
class Batch:
    """Padded samples, ready for an encoder.

    Attributes
    ----------
    tokens : (B, M, L) int64, PAD where there is none.
    hours, topics, times : (B, M) int64; hour of day in UTC, row of the topic list, seconds since 1970.
    mask : (B, M) bool, true for posts.
    authors : (B,) int64.
    """

    tokens: torch.Tensor
    hours: torch.Tensor
    topics: torch.Tensor
    mask: torch.Tensor
    authors: torch.Tensor
    times: torch.Tensor

    def __len__(self) -> int:
        return len(self.authors)

    def to(self, device: torch.device | str) -> "Batch":
        """The batch on another device."""
        return Batch(*(getattr(self, field.name).to(device, non_blocking=True) for field in fields(self)))

    def __getitem__(self, rows) -> "Batch":
        return Batch(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(frozen=True)
class Samples:
    """N samples of a store: sample n is the posts ``first[n] .. first[n] + count[n] - 1``.

    Attributes
    ----------
    store : the token store.
    first, count : (N,) int64, first post and number of posts.
    authors : (N,) int64, who wrote each sample; the store's author numbers, where the store is a whole split.
    """

    store: TokenStore
    first: np.ndarray
    count: np.ndarray
    authors: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, rows) -> "Samples":
        return replace(self, first=self.first[rows], count=self.count[rows], authors=self.authors[rows])

    def batch(self, rows, max_tokens: int = 32) -> Batch:
        """The batch of some rows, each post cut to its first ``max_tokens`` tokens."""
        return gather(self.store, self.authors[rows], self.first[rows], self.count[rows], max_tokens)

    @classmethod
    def of_posts(cls, store: TokenStore) -> "Samples":
        """Every post of a store as a sample of its own, in the store's order."""
        author = np.repeat(np.arange(store.authors), store.posts_per_author())
        return cls(store, np.arange(store.posts), np.ones(store.posts, np.int64), author)

    @classmethod
    def of_lists(cls, store: TokenStore, posts: np.ndarray, offsets: np.ndarray, authors: np.ndarray) -> "Samples":
        """Any lists of posts: sample n is ``posts[offsets[n] : offsets[n + 1]]``; the posts are copied to memory."""
        return cls(take(store, posts, offsets), offsets[:-1], np.diff(offsets), authors)


def gather(
    store: TokenStore,
    authors: np.ndarray,
    first: np.ndarray,
    count: np.ndarray,
    max_tokens: int = 32,
    window: str = "prefix",
    rng: np.random.Generator | None = None,
) -> Batch:
    """The batch of given windows of a store.

    Parameters
    ----------
    authors, first, count : (B,), sample b is posts ``first[b] .. first[b] + count[b] - 1``.
    max_tokens : L.
    window : each post's first L tokens ("prefix"), or L consecutive ones from a random start ("random").
    rng : draws the starts of random windows.

    Raises
    ------
    ValueError
        For an unknown window.
    """
    if window not in WINDOWS:
        raise ValueError(f"window {window!r}: one of {', '.join(WINDOWS)}")
    mask = np.arange(count.max()) < count[:, None]
    posts, _ = ranges(first, count)
    begin = store.post_offsets[posts]
    tokens = store.post_offsets[posts + 1] - begin
    if window == "random":
        begin = begin + (rng.random(len(posts)) * (np.maximum(tokens - max_tokens, 0) + 1)).astype(np.int64)
    tokens = np.minimum(tokens, max_tokens)
    place = np.arange(max_tokens)
    real = place < tokens[:, None]
    full = np.full((*mask.shape, max_tokens), PAD, np.int64)
    flat = np.full(real.shape, PAD, np.int64)
    flat[real] = store.tokens[(begin[:, None] + place)[real]]
    full[mask] = flat
    hours, topics, times = (np.zeros(mask.shape, np.int64) for _ in range(3))
    hours[mask], topics[mask], times[mask] = store.hour[posts], store.topic[posts], store.time[posts]
    return Batch(*map(torch.from_numpy, (full, hours, topics, mask, authors.astype(np.int64), times)))
