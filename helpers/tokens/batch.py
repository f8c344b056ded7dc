"""The input of an encoder: samples of posts of a token store, and padded batches of such samples.

In shapes, B is the number of samples in a batch, M the number of posts in its longest sample, L the
number of tokens read of each post, and N the number of samples in a :class:`Samples`.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as nnf

from .store import TokenStore, concat_ranges, subset, with_arrays

PAD = -1  # marks "no token" in a batch; it has no row in an embedding table


@dataclass
class Batch:
    """Padded samples, ready for an encoder: B samples of up to M posts of up to L tokens.

    ``batch[rows]`` is a batch of some of the samples; ``len(batch)`` is B.

    Attributes
    ----------
    tokens : (B, M, L) int64, token ids, PAD where there is no token
    hours : (B, M) int64, hour of day in UTC, 0 where there is no post
    topics : (B, M) int64, row of the topic list, 0 where there is no post
    mask : (B, M) bool, true where there is a post
    authors : (B,) int64, the number of the author of each sample
    times : (B, M) int64, seconds since 1970, 0 where there is no post
    """

    tokens: torch.Tensor
    hours: torch.Tensor
    topics: torch.Tensor
    mask: torch.Tensor
    authors: torch.Tensor
    times: torch.Tensor

    def __len__(self) -> int:
        return len(self.authors)

    def __getitem__(self, rows) -> "Batch":
        return Batch(*(tensor[rows] for tensor in vars(self).values()))

    def to(self, device: torch.device | str) -> "Batch":
        """Return the batch on another device."""
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in vars(self).values()))

    def concatenate_posts(self) -> "Batch":
        """Return a batch in which the posts of each sample are joined to one.

        This one post has all tokens of the sample, and the hour, topic and time of its first post.
        """
        tokens = self.tokens.flatten(1)
        is_token = tokens != PAD
        longest = max(int(is_token.sum(1).max()), 1)
        order = is_token.sort(dim=1, descending=True, stable=True).indices
        documents = tokens.gather(1, order)[:, None, :longest]
        return Batch(
            documents,
            self.hours[:, :1],
            self.topics[:, :1],
            torch.ones_like(self.mask[:, :1]),
            self.authors,
            self.times[:, :1],
        )

    def split_posts(self, posts: int) -> tuple["Batch", torch.Tensor]:
        """Split samples into groups of consecutive posts, each a sample of its own.

        Parameters
        ----------
        posts : number of posts in a group; the last group of a sample may have fewer

        Returns
        -------
        groups : a batch of G samples, the groups
        sample : (G,) int64, the row of this batch from which each group comes
        """
        size = self.mask.shape[1]
        groups = math.ceil(size / posts)
        missing = groups * posts - size
        sample = torch.arange(len(self), device=self.mask.device).repeat_interleave(groups)

        tokens = nnf.pad(self.tokens, (0, 0, 0, missing), value=PAD)
        split = {
            "tokens": tokens.reshape(-1, posts, tokens.shape[2]),
            "authors": self.authors[sample],
        }
        for name in ("hours", "topics", "mask", "times"):
            split[name] = nnf.pad(getattr(self, name), (0, missing)).reshape(-1, posts)
        has_posts = split["mask"].any(1)
        return Batch(**split)[has_posts], sample[has_posts]


@dataclass(frozen=True, eq=False)
class Samples:
    """N samples of a store: sample n is the posts ``first[n] .. first[n] + count[n] - 1``.

    ``samples[rows]`` are some of the samples; ``len(samples)`` is N.

    Attributes
    ----------
    store : the token store that holds the posts
    first : (N,) int64, the store's number of the first post of each sample
    count : (N,) int64, the number of posts in each sample
    authors : (N,) int64, who wrote each sample; author numbers of the store, unless the store is a
        selection of posts (:meth:`of_lists`)
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
        """Return the batch of some of the samples.

        Parameters
        ----------
        rows : an index of samples, such as a slice or an array of numbers
        max_tokens : L, how many tokens of each post are read, from its first
        """
        chosen = self[rows]
        return make_batch(self.store, chosen.authors, chosen.first, chosen.count, max_tokens)

    @classmethod
    def of_posts(cls, store: TokenStore) -> "Samples":
        """Return every post of a store as a sample of its own, in the store's order."""
        author = np.repeat(np.arange(store.authors), store.posts_per_author())
        return cls(store, np.arange(store.posts), np.ones(store.posts, np.int64), author)

    @classmethod
    def of_lists(
        cls, store: TokenStore, posts: np.ndarray, offsets: np.ndarray, authors: np.ndarray
    ) -> "Samples":
        """Return lists of posts as samples; the posts are copied to memory.

        Parameters
        ----------
        store : the token store that holds the posts
        posts : numbers of posts in the store, in any order
        offsets : (N + 1,), sample n is ``posts[offsets[n] : offsets[n + 1]]``
        authors : (N,), who wrote each sample
        """
        return cls(subset(store, posts, offsets), offsets[:-1], np.diff(offsets), authors)


def chunk_documents(store: TokenStore, max_tokens: int) -> Samples:
    """Cut documents into consecutive pieces; the pieces of one document become one sample.

    An encoder that averages over pieces so reads a whole document, and not only its first tokens.
    The tokens are not copied.

    Parameters
    ----------
    store : a token store in which each post is a document
    max_tokens : number of tokens in a piece; the last piece of a document has the rest, and a
        document without tokens becomes one empty piece

    Returns
    -------
    A sample for each document, whose posts are the pieces
    """
    tokens = np.diff(store.post_offsets)
    pieces = np.maximum(-(-tokens // max_tokens), 1)
    number, _ = concat_ranges(np.zeros_like(pieces), pieces)
    begin = np.repeat(store.post_offsets[:-1], pieces) + number * max_tokens
    return samples_of_pieces(store, pieces, post_offsets=np.append(begin, store.post_offsets[-1:]))


def samples_of_pieces(store: TokenStore, pieces: np.ndarray, **arrays: np.ndarray) -> Samples:
    """Return a sample for each document of a store, whose posts are the document's pieces.

    Parameters
    ----------
    store : a token store in which each post is a document
    pieces : (documents,), the number of pieces of each document
    **arrays : ``tokens`` and ``post_offsets`` of all pieces; those of the store if left out
    """
    offsets = np.append(0, pieces.cumsum())
    document = np.repeat(np.arange(store.posts), pieces)
    cut_store = with_arrays(store, "pieces", document, author_offsets=offsets, **arrays)
    return Samples(cut_store, offsets[:-1], pieces, Samples.of_posts(store).authors)


def training_windows(store: TokenStore, posts: int = 16, windows: int = 16) -> Samples:
    """Return disjoint samples of consecutive posts of each author, from the author's first post on.

    There is no chance in them: a layer or statistics are fitted on them.

    Parameters
    ----------
    store : the token store of the training authors
    posts : number of posts in a sample; an author's last sample may have fewer
    windows : most samples per author; the posts after them are left out
    """
    windows_of_author = np.clip(-(-store.posts_per_author() // posts), 1, windows)
    author = np.repeat(np.arange(store.authors), windows_of_author)
    number, _ = concat_ranges(np.zeros_like(windows_of_author), windows_of_author)
    first = store.author_offsets[author] + number * posts
    count = np.minimum(posts, store.author_offsets[author + 1] - first)
    return Samples(store, first, count, author)


def make_batch(
    store: TokenStore,
    authors: np.ndarray,
    first: np.ndarray,
    count: np.ndarray,
    max_tokens: int = 32,
    rng: np.random.Generator | None = None,
) -> Batch:
    """Read B samples of consecutive posts of a store into a batch.

    Parameters
    ----------
    store : the token store that holds the posts
    authors : (B,), who wrote each sample
    first : (B,), the store's number of the first post of each sample
    count : (B,), the number of posts in each sample
    max_tokens : L, how many consecutive tokens of each post are read
    rng : chooses at random where in a longer post these begin; None reads the first ones
    """
    mask = np.arange(count.max()) < count[:, None]
    posts, _ = concat_ranges(first, count)
    begin = store.post_offsets[posts]
    tokens = store.post_offsets[posts + 1] - begin
    if rng is not None:
        starts = np.maximum(tokens - max_tokens, 0) + 1
        begin = begin + (rng.random(len(posts)) * starts).astype(np.int64)
    tokens = np.minimum(tokens, max_tokens)

    padded_tokens = np.full((*mask.shape, max_tokens), PAD, np.int64)
    source, _ = concat_ranges(begin, tokens)
    target, _ = concat_ranges(np.flatnonzero(mask) * max_tokens, tokens)
    padded_tokens.reshape(-1)[target] = store.tokens[source]
    return Batch(
        torch.from_numpy(padded_tokens),
        _padded(store.hour[posts], mask),
        _padded(store.topic[posts], mask),
        torch.from_numpy(mask),
        torch.from_numpy(authors.astype(np.int64)),
        _padded(store.time[posts], mask),
    )


def _padded(values: np.ndarray, mask: np.ndarray) -> torch.Tensor:
    """Put one value per post where ``mask`` (B, M) is true, and 0 elsewhere."""
    padded = np.zeros(mask.shape, np.int64)
    padded[mask] = values
    return torch.from_numpy(padded)
