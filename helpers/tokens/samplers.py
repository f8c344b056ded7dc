"""Samplers: they choose the posts of a token store that make the batch of a step.

``make_sampler(AuthorSampler(), store, seed)(step)`` is a :class:`helpers.tokens.batch.Batch`. A
sampler is its settings. To add a kind, write a subclass of Sampler and add a line to SAMPLERS.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field, model_validator
from scipy import stats

from ..core.parameters import Config, unknown
from .batch import Batch, Samples, make_batch
from .store import TokenStore

# name -> distribution of x in 0..1; None where draw_sizes needs no x
SIZES = {
    "uniform": stats.uniform(),
    "beta21": stats.beta(2, 1),
    "beta31": stats.beta(3, 1),
    "beta41": stats.beta(4, 1),
    "poisson16": None,
    "fixed": None,
}


class Sampler(Config):
    """Sample the batch of a step, a function of store, seed and step.

    Nothing is carried from step to step, so a resumed run samples exactly what an undisturbed one
    would have sampled.

    Attributes
    ----------
    kind : one of SAMPLERS
    authors_per_batch : P; for "pairs" the number of pairs, for "random" the number of documents
    max_tokens : L, how many tokens of a post are read
    window : "prefix" reads the first L tokens of a post, "random" L consecutive ones from a random
        start
    """

    kind: str
    authors_per_batch: int = Field(64, ge=2, le=2**16)
    max_tokens: int = Field(32, ge=1, le=8192)
    window: Literal["prefix", "random"] = "prefix"

    def bind(self, store: TokenStore) -> Callable[[np.random.Generator], Batch]:
        """Return a function that samples a batch of a store by random numbers."""
        return partial(self._draw, store)

    def _gather(self, store, authors, first, count, rng):
        """Read B samples of consecutive posts: authors (B,), first posts (B,), sizes (B,) or one.

        ``rng`` chooses where in a post its tokens begin, if ``window`` is "random".
        """
        window_rng = rng if self.window == "random" else None
        counts = np.broadcast_to(count, first.shape)
        return make_batch(store, authors, first, counts, self.max_tokens, window_rng)


class AuthorSampler(Sampler):
    """Sample P authors, uniformly without replacement, and K windows of consecutive posts of each.

    A batch has P * K samples, those of an author side by side, or fewer where fewer than P authors
    qualify. With ``overlap`` any author qualifies, without it authors with K or more posts.
    ValueError where fewer than two qualify.

    Attributes
    ----------
    samples_per_author : K
    min_posts : fewest posts of a sample
    max_posts : most posts of a sample
    sizes : name of the distribution of the number of posts in a sample; see :func:`draw_sizes`
    overlap : whether the samples of an author may share posts

    References
    ----------
    khan2021 section 2.3.
    """

    kind: Literal["authors"] = "authors"
    samples_per_author: int = Field(8, ge=1, le=2**10)
    min_posts: int = Field(1, ge=1, le=10**4)
    max_posts: int = Field(16, ge=1, le=10**4)
    sizes: Literal[tuple(SIZES)] = "beta31"
    overlap: bool = True

    @model_validator(mode="after")
    def _has_sizes(self):
        if self.max_posts < self.min_posts:
            raise ValueError(f"max_posts must be at least min_posts, {self.min_posts}")
        return self

    def _draw(self, store, rng):
        samples = self.samples_per_author
        authors = _eligible_authors(store, 1 if self.overlap else samples)
        authors = _draw_authors(authors, self.authors_per_batch, rng)
        bounds = (self.min_posts, self.max_posts)
        sizes = draw_sizes(self.sizes, len(authors) * samples, rng, *bounds)
        begin = store.author_offsets[authors]
        available = store.author_offsets[authors + 1] - begin
        sizes = sizes.reshape(-1, samples)
        first, count = draw_windows(available, sizes, rng, self.overlap)
        first += begin[:, None]
        authors = np.repeat(authors, samples)
        return self._gather(store, authors, first.ravel(), count.ravel(), rng)


class DocumentSampler(Sampler):
    """Sample single posts, which are documents."""

    max_posts: ClassVar[int] = 1


class PairSampler(DocumentSampler):
    """Sample ``authors_per_batch`` pairs of posts: one half by one author, the other by two.

    Samples 2i and 2i + 1 of the batch are pair i. Pairs by one author come first; no author has two
    of them, so they are fewer where too few authors have two posts. Every author is equally likely,
    however many posts they wrote. A loss with ``paired=True`` uses only these pairs. ValueError
    where fewer than two authors have two or more posts.

    References
    ----------
    tyo2021 section 2.1.1.
    """

    kind: Literal["pairs"] = "pairs"

    def _draw(self, store, rng):
        pairs = self.authors_per_batch
        posts_of_author = store.posts_per_author()
        same = _draw_authors(_eligible_authors(store, 2), pairs - pairs // 2, rng)
        posts = posts_of_author[same]
        first = (rng.random(len(same)) * posts).astype(np.int64)
        step = 1 + (rng.random(len(same)) * (posts - 1)).astype(np.int64)
        second = (first + step) % posts

        writers = _eligible_authors(store, 1)
        different = np.concatenate([_draw_authors(writers, 2, rng) for _ in range(pairs // 2)])
        place = (rng.random(len(different)) * posts_of_author[different]).astype(np.int64)

        authors = np.concatenate([np.repeat(same, 2), different])
        places = np.concatenate([np.column_stack([first, second]).ravel(), place])
        return self._gather(store, authors, store.author_offsets[authors] + places, 1, rng)


class RandomSampler(DocumentSampler):
    """Sample ``authors_per_batch`` different posts uniformly, whoever wrote them.

    This is the batch of a shuffled data loader, as in the released code. Two posts by one author
    are in it by chance only, so a triplet loss finds hardly any positive (tyo2021 section 4). All
    posts are taken where the store has fewer.
    """

    kind: Literal["random"] = "random"

    def _draw(self, store, rng):
        count = min(self.authors_per_batch, store.posts)
        documents = rng.choice(store.posts, count, replace=False)
        authors = np.searchsorted(store.author_offsets, documents, side="right") - 1
        return self._gather(store, authors, documents, 1, rng)


class TopicSampler(DocumentSampler):
    """Sample P different authors who share topics, and K documents of each.

    In such a batch the topic neither separates the authors nor joins an author's documents, so it
    gives the hard negatives and the hard positives of topic regularisation.

    A batch has P * K samples of one post each, those of an author side by side. A topic is sampled,
    weighted by its number of authors with K or more documents, and more topics without replacement
    until they have P authors. At least two authors come from each topic, so a batch may lack one of
    P authors; it lacks more where all topics together have too few. The first document of an author
    is on the topic that gave the author. The others are on other topics; where the author has too
    few of those, the rest are on the same topic. No document is repeated. The released code of
    sawatphol2022 samples 32 x 2.

    Attributes
    ----------
    samples_per_author : K
    """

    kind: Literal["topic"] = "topic"
    samples_per_author: int = Field(8, ge=1, le=2**10)

    def bind(self, store: TokenStore) -> Callable[[np.random.Generator], Batch]:
        """Return a function that samples a batch; ValueError where no two authors share a topic."""
        author = Samples.of_posts(store).authors
        # the row after the last topic is "other", which is none that authors share
        is_listed = store.topic != len(store.meta["topics"])
        is_able = is_listed & (store.posts_per_author()[author] >= self.samples_per_author)
        authors = pd.Series(author[is_able]).groupby(store.topic[is_able]).unique()
        shared = authors[authors.str.len() > 1]
        if shared.empty:
            raise ValueError(
                f"{store.folder}: no two authors of {self.samples_per_author} posts or more share "
                "a topic"
            )
        return partial(self._draw, store, shared)

    def _draw(self, store, authors_of_topic, rng):
        topic_of_author = self._choose_authors(authors_of_topic, rng)
        # which posts of each author are on the topic
        on_topic = []
        for author, topic in topic_of_author.items():
            begin, end = store.author_offsets[author : author + 2]
            on_topic.append(store.topic[begin:end] == topic)
        numbers = rng.integers([is_on_topic.sum() for is_on_topic in on_topic])
        documents = []
        for author, is_on_topic, number in zip(topic_of_author, on_topic, numbers):
            first = np.flatnonzero(is_on_topic)[number]
            # 0 for other topics, which are wanted most, 1 for the same topic, 2 for the first post
            rank = is_on_topic.astype(int)
            rank[first] = 2
            # lexsort sorts by its last key first: by rank, then at random
            order = np.lexsort([rng.random(len(rank)), rank])
            posts = [first, *order[: self.samples_per_author - 1]]
            documents.extend(store.author_offsets[author] + posts)
        authors = np.repeat(list(topic_of_author), self.samples_per_author)
        return self._gather(store, authors, np.array(documents), 1, rng)

    def _choose_authors(self, authors_of_topic, rng):
        """Return the topic of each chosen author, at least two authors of each topic."""
        # sorting by log(weight) + Gumbel noise gives the order in which topics come out if they are
        # sampled one after the other, without replacement, with these weights
        weights = authors_of_topic.str.len().to_numpy()
        order = np.argsort(-np.log(weights) - rng.gumbel(size=len(weights)))
        topic_of_author = {}
        for topic in authors_of_topic.index[order]:
            missing = self.authors_per_batch - len(topic_of_author)
            free = np.setdiff1d(authors_of_topic[topic], list(topic_of_author))
            if missing < 2:
                break
            if len(free) > 1:
                new_authors = rng.choice(free, min(missing, len(free)), replace=False)
                topic_of_author |= dict.fromkeys(new_authors.tolist(), topic)
        return topic_of_author


SAMPLERS: dict[str, type[Sampler]] = {
    "authors": AuthorSampler,
    "pairs": PairSampler,
    "random": RandomSampler,
    "topic": TopicSampler,
}


def sampler_config(settings: dict[str, Any], where: str = "sampler") -> Sampler:
    """Return the sampler of a dict of settings, such as ``{"kind": "pairs"}``.

    Parameters
    ----------
    settings : setting -> value, with the ``kind``, by default "authors"
    where : where the settings come from, the start of an error's message

    Raises
    ------
    ValueError
        a setting is unknown, or is not one of this kind, or has a wrong value
    """
    kind = str(settings.get("kind", "authors"))
    if kind not in SAMPLERS:
        raise ValueError(f"{where}: {unknown([kind], SAMPLERS, 'kind')}")
    return SAMPLERS[kind].of(settings, where)


def make_sampler(sampler: Sampler, store: TokenStore, seed: int) -> Callable[[int], Batch]:
    """Return the function from a step, counted from 0, to its batch.

    Parameters
    ----------
    sampler : the kind of sampler and its settings
    store : the token store to sample from
    seed : seed of the random numbers, used together with the number of the step

    Raises
    ------
    ValueError
        the store has too few suitable authors; "topic" raises it here, the others at a step
    """
    return partial(_batch_of_step, sampler.bind(store), seed)


def _batch_of_step(draw, seed, step):
    return draw(np.random.default_rng([seed, step]))


def _eligible_authors(store, min_posts):
    """Return the authors with enough posts; ValueError where these are fewer than two."""
    authors = np.flatnonzero(store.posts_per_author() >= min_posts)
    if len(authors) < 2:
        raise ValueError(
            f"{len(authors)} authors with {min_posts} posts or more in {store.folder}: "
            "need at least 2"
        )
    return authors


def _draw_authors(authors, count, rng):
    """Sample different authors uniformly, in random order; all where they are fewer."""
    return rng.choice(authors, min(count, len(authors)), replace=False)


def draw_windows(
    available: np.ndarray, sizes: np.ndarray, rng: np.random.Generator, overlap: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Place K windows of consecutive posts at random among the posts of each of P authors.

    Parameters
    ----------
    available : (P,), number of posts of each author; at least K where windows must not overlap
    sizes : (P, K), wanted number of posts in each window
    rng : source of the random places
    overlap : whether windows of an author may share posts, as in the paper. If so, each window is
        placed uniformly and independently, and its size is cut to ``available``. If not, the K
        windows of an author are disjoint, so that two samples cannot be matched by a common post,
        and each has at most an equal share of the author's posts

    Returns
    -------
    first : (P, K), number of the first post of each window, from 0 within the author
    size : (P, K), number of posts in each window
    """
    available = available[:, None]
    if overlap:
        sizes = np.minimum(sizes, available)
        first = (rng.random(sizes.shape) * (available - sizes + 1)).astype(np.int64)
        return first, sizes

    samples = sizes.shape[1]
    sizes = np.minimum(sizes, available // samples)
    unused = available - sizes.sum(1, keepdims=True)
    # sorted, as gaps[:, k] is the number of unused posts before the kth window from the left;
    # posts_before is the number of posts in the windows to its left
    gaps = np.sort((rng.random(sizes.shape) * (unused + 1)).astype(np.int64), 1)
    order = rng.permuted(np.broadcast_to(np.arange(samples), sizes.shape), axis=1)
    ordered_sizes = np.take_along_axis(sizes, order, 1)
    posts_before = ordered_sizes.cumsum(1) - ordered_sizes
    first = np.empty_like(sizes)
    np.put_along_axis(first, order, gaps + posts_before, 1)
    return first, sizes


def draw_sizes(
    sizes: str,
    count: int,
    rng: np.random.Generator,
    min_posts: int = 1,
    max_posts: int = 16,
) -> np.ndarray:
    """Choose random sample sizes ``R + ceil(x (S - R))``, with R min_posts and S max_posts.

    Parameters
    ----------
    sizes : name of the distribution of x, a key of SIZES. Two have no x: "poisson16" is Poisson(16)
        restricted to R..S, "fixed" always S
    count : wanted number of sizes
    rng : source of the random numbers
    min_posts : R, the lower bound; as x > 0, the printed formula never gives R itself unless R = S
    max_posts : S, the largest size

    Returns
    -------
    (count,) int64
    """
    if sizes == "fixed":
        return np.full(count, max_posts)
    if sizes == "poisson16":
        support, weight = _poisson16(min_posts, max_posts)
        return rng.choice(support, count, p=weight)

    x = SIZES[sizes].ppf(rng.random(count))
    return min_posts + np.ceil(x * (max_posts - min_posts)).astype(np.int64)


def _poisson16(min_posts, max_posts):
    """Return the sizes from min_posts to max_posts, and the probability of each in Poisson(16)."""
    support = np.arange(min_posts, max_posts + 1)
    weight = stats.poisson(16).pmf(support)
    return support, weight / weight.sum()


def skewness(sizes: str) -> float:
    """Return the skewness of a distribution of sizes, to compare with the published ones.

    It is that of x (see :func:`draw_sizes`), of Poisson(16) restricted to 1..16, or 0 for "fixed".

    References
    ----------
    khan2021 Table 4.
    """
    if sizes == "fixed":
        return 0.0
    if sizes == "poisson16":
        poisson = stats.rv_discrete(values=_poisson16(1, 16))
        return float(poisson.stats(moments="s"))
    return float(SIZES[sizes].stats(moments="s"))
