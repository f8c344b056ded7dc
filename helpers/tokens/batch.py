"""What an encoder reads: samples of posts of a token store, and the padded batch they become.

Letters: B samples, M posts (longest sample of the batch), L tokens a post, N samples of a list.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
import torch

from helpers.tokens.store import TokenStore, concat_ranges, subset, with_arrays

PAD = -1  # marks "no token" in a batch; it has no row in an embedding table
WINDOWS = ("prefix", "random")


@dataclass
class Batch:
    """Padded samples, ready for an encoder.

    tokens : (B, M, L) int64, PAD where there is none.
    hours, topics, times : (B, M) int64; hour of day in UTC, row of the topic list, seconds since 1970.
    mask : (B, M) bool, true for posts. authors : (B,) int64.
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
        return Batch(
            *(getattr(self, field.name).to(device, non_blocking=True) for field in fields(self))
        )

    def __getitem__(self, rows) -> "Batch":
        return Batch(*(getattr(self, field.name)[rows] for field in fields(self)))

    def joined(self) -> "Batch":
        """Each sample as one post, its posts' tokens one after the other: a stream of length one is a document."""
        flat = self.tokens.masked_fill(~self.mask[..., None], PAD).flatten(1)
        real = flat != PAD
        row, column = real.nonzero(as_tuple=True)
        tokens = torch.full_like(flat[:, : max(int(real.sum(1).max()), 1)], PAD)
        tokens[row, (real.cumsum(1) - 1)[row, column]] = flat[row, column]
        first = (self.hours[:, :1], self.topics[:, :1], torch.ones_like(self.mask[:, :1]))
        return Batch(tokens[:, None], *first, self.authors, self.times[:, :1])

    def in_groups(self, posts: int) -> tuple["Batch", torch.Tensor]:
        """Contiguous groups of at most ``posts`` posts as samples of their own, and the sample of each (G,)."""
        groups = -(-self.mask.shape[1] // posts)
        missing = groups * posts - self.mask.shape[1]

        def cut(values: torch.Tensor, fill) -> torch.Tensor:
            extra = values.new_full((len(values), missing, *values.shape[2:]), fill)
            return torch.cat([values, extra], 1).view(-1, posts, *values.shape[2:])

        mask = cut(self.mask, False)
        used = mask.any(1)
        parts = [
            cut(values, fill)[used]
            for values, fill in ((self.tokens, PAD), (self.hours, 0), (self.topics, 0))
        ]
        sample = torch.arange(len(self), device=mask.device).repeat_interleave(groups)[used]
        return Batch(*parts, mask[used], self.authors[sample], cut(self.times, 0)[used]), sample


@dataclass(frozen=True, eq=False)
class Samples:
    """N samples of a store: sample n is the posts ``first[n] .. first[n] + count[n] - 1``.

    store : the token store. first, count : (N,) int64, first post and number of posts.
    authors : (N,) int64, who wrote each sample; the store's author numbers, where the store is a whole split.
    """

    store: TokenStore
    first: np.ndarray
    count: np.ndarray
    authors: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, rows) -> "Samples":
        return replace(
            self, first=self.first[rows], count=self.count[rows], authors=self.authors[rows]
        )

    def batch(self, rows, max_tokens: int = 32) -> Batch:
        """The batch of some rows, each post cut to its first ``max_tokens`` tokens."""
        return make_batch(
            self.store, self.authors[rows], self.first[rows], self.count[rows], max_tokens
        )

    @classmethod
    def of_posts(cls, store: TokenStore) -> "Samples":
        """Every post of a store as a sample of its own, in the store's order."""
        author = np.repeat(np.arange(store.authors), store.posts_per_author())
        return cls(store, np.arange(store.posts), np.ones(store.posts, np.int64), author)

    @classmethod
    def of_lists(
        cls, store: TokenStore, posts: np.ndarray, offsets: np.ndarray, authors: np.ndarray
    ) -> "Samples":
        """Any lists of posts: sample n is ``posts[offsets[n] : offsets[n + 1]]``; the posts are copied to memory."""
        return cls(subset(store, posts, offsets), offsets[:-1], np.diff(offsets), authors)


def chunk_documents(store: TokenStore, rows: np.ndarray, max_tokens: int) -> Samples:
    """Long documents as samples: the posts of sample n are document ``rows[n]`` in consecutive pieces.

    A piece has ``max_tokens`` tokens, a document's last one the rest; a document without tokens is one empty piece.
    Averaged piece by piece, an encoder reads what lies behind the first tokens. The tokens are not copied.

    rows : (N,) posts of the store.
    """
    begin, tokens = store.post_offsets[:-1], np.diff(store.post_offsets)
    count = np.maximum(-(-tokens // max_tokens), 1)
    document = np.repeat(np.arange(store.posts), count)
    number, offsets = concat_ranges(np.zeros_like(count), count)
    post_offsets = np.append(begin[document] + number * max_tokens, store.post_offsets[-1:])
    cut = with_arrays(store, "pieces", document, post_offsets=post_offsets, author_offsets=offsets)
    return Samples(cut, offsets[:-1], count, Samples.of_posts(store).authors)[rows]


def make_batch(
    store: TokenStore,
    authors: np.ndarray,
    first: np.ndarray,
    count: np.ndarray,
    max_tokens: int = 32,
    window: str = "prefix",
    rng: np.random.Generator | None = None,
) -> Batch:
    """The batch of given windows of a store.

    authors, first, count : (B,), sample b is posts ``first[b] .. first[b] + count[b] - 1``. max_tokens : L.
    window : each post's first L tokens ("prefix"), or L consecutive ones from a random start ("random").
    rng : draws the starts of random windows. Raises ValueError for an unknown window.
    """
    if window not in WINDOWS:
        raise ValueError(f"window {window!r}: one of {', '.join(WINDOWS)}")
    mask = np.arange(count.max()) < count[:, None]
    posts, _ = concat_ranges(first, count)
    begin = store.post_offsets[posts]
    tokens = store.post_offsets[posts + 1] - begin
    if window == "random":
        begin = begin + (rng.random(len(posts)) * (np.maximum(tokens - max_tokens, 0) + 1)).astype(
            np.int64
        )
    tokens = np.minimum(tokens, max_tokens)
    full = np.full((*mask.shape, max_tokens), PAD, np.int64)
    place, _ = concat_ranges(np.flatnonzero(mask) * max_tokens, tokens)
    full.reshape(-1)[place] = store.tokens[concat_ranges(begin, tokens)[0]]
    hours, topics, times = (np.zeros(mask.shape, np.int64) for _ in range(3))
    hours[mask], topics[mask], times[mask] = (
        store.hour[posts],
        store.topic[posts],
        store.time[posts],
    )
    return Batch(
        *map(torch.from_numpy, (full, hours, topics, mask, authors.astype(np.int64), times))
    )
