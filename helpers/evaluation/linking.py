"""Account linking, khan2021 section 4.3: do the posts of a known account in one topic find its later posts?

For each popular topic some *distinguished* accounts are chosen. Each one's query is its latest posts there in an
earlier period; its target, and that of many other accounts, is its latest posts anywhere in a later period. Every
query is compared with every target. The paper: 5 topics, 100 x 5,000 trials each, 100 of them of one account.

A sample is a list of posts, not a window of consecutive ones; :meth:`Samples.windows` makes it one, so that every
encoder and baseline reads it as it reads any other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
from scipy import sparse

from helpers.evaluation import detection
from helpers.store import TokenStore, ranges, take

GRID = 2**20  # scores are rounded to 1/GRID, the float32 noise of a product of unit vectors, so that equal pairs tie


@dataclass(frozen=True)
class Samples:
    """N samples: authors (N,); sample n is posts[offsets[n] : offsets[n + 1]] of a store, earliest first."""

    authors: np.ndarray
    posts: np.ndarray
    offsets: np.ndarray

    def sizes(self) -> np.ndarray:
        """Posts in each sample, (N,)."""
        return np.diff(self.offsets)

    def windows(self, store: TokenStore) -> tuple[TokenStore, np.ndarray, np.ndarray]:
        """A store of these posts, and the first post (N,) and size (N,) of each sample in it."""
        return take(store, self.posts, self.offsets), self.offsets[:-1], self.sizes()


@dataclass(frozen=True)
class Topic:
    """The trials of one topic: all pairs of a query (of a distinguished account) and a target (of every account)."""

    name: str
    queries: Samples
    targets: Samples


def choose(
    store: TokenStore,
    target_from: float | str = 0.5,
    query_from: float | str = 0.0,
    target_until: float | str = 1.0,
    topics: int = 5,
    distinguished: int = 100,
    fewest_distinguished: int | None = None,
    accounts: int | None = 5000,
    query_posts: int = 100,
    fewest_query_posts: int | None = None,
    target_posts: int = 4,
    fewest_target_posts: int = 16,
    same_community: bool = False,
    seed: int = 0,
) -> list[Topic]:
    """The most popular topics that have enough accounts, by their posts in the query period.

    Queries are from [query_from, target_from), targets from [target_from, target_until): ISO dates (UTC), or shares
    of each account's own posts in time order, for archives that have no months in common.
    distinguished: accounts with ``fewest_query_posts`` posts in the topic (default: ``query_posts``) and
    ``fewest_target_posts`` later posts in any topic, as many as there are where these are at least
    ``fewest_distinguished`` (default: all of them). Their query is their latest ``query_posts`` or fewer.
    accounts: the distinguished ones and others with enough later posts; None: all of those.
    same_community: only accounts that mostly write in the topic's community, what precedes its first "/"; an account
    of another archive is told apart too easily.
    Which accounts these are depends on the seed and the topic, not on ``query_posts`` (where ``fewest_query_posts``
    is given) or ``target_posts``. Takes about 30 bytes a post.

    Raises ValueError, with what was found, where there are too few topics or accounts, or a setting makes no sense.
    """
    fewest_query_posts = query_posts if fewest_query_posts is None else fewest_query_posts
    fewest_distinguished = distinguished if fewest_distinguished is None else fewest_distinguished
    if not (1 <= fewest_query_posts <= query_posts and 1 <= target_posts <= fewest_target_posts):
        raise ValueError(
            f"need 1 <= fewest_query_posts ({fewest_query_posts}) <= query_posts ({query_posts}) and "
            f"1 <= target_posts ({target_posts}) <= fewest_target_posts ({fewest_target_posts})")  # fmt: skip
    if topics < 1 or fewest_distinguished < 1 or (accounts is not None and accounts < max(distinguished, 2)):
        raise ValueError(f"{topics} topics, {distinguished} distinguished of {accounts} accounts: nothing to compare")
    author = np.repeat(np.arange(store.authors, dtype=np.int32), store.posts_per_author())
    split = _since(store, author, target_from)
    early = np.flatnonzero(_since(store, author, query_from) & ~split)
    late = np.flatnonzero(split & ~_since(store, author, target_until))
    active = np.bincount(author[late], minlength=store.authors) >= fewest_target_posts
    if active.sum() < (accounts or 2):
        raise ValueError(f"{active.sum()} accounts have {fewest_target_posts} posts in the target period, {len(late)} "
                         f"posts: {accounts or 2} accounts wanted")  # fmt: skip
    early = early[np.argsort(store.topic[early], kind="stable")]  # within a topic still by author, then time
    names = store.meta["topics"]  # posts in none of these have the next row, and are no topic
    bounds = np.searchsorted(store.topic[early], np.arange(len(names) + 1))
    community = _communities(store, author) if same_community else np.zeros(store.authors, np.int64)
    home = [name.split("/")[0] for name in names] if same_community else [0] * len(names)
    everybody = active
    chosen, found = [], {}
    for row in np.argsort(-np.diff(bounds), kind="stable").tolist():
        posts = early[bounds[row] : bounds[row + 1]]
        active = everybody & (community == home[row])
        able = np.bincount(author[posts], minlength=store.authors) >= fewest_query_posts
        able = np.flatnonzero(able & active)
        found[names[row]] = len(able)
        if len(able) < fewest_distinguished or active.sum() < (accounts or 2):
            continue
        rng = np.random.default_rng([seed, row])
        mine = np.sort(rng.choice(able, min(distinguished, len(able)), replace=False))
        others = np.setdiff1d(np.flatnonzero(active), mine)
        others = others if accounts is None else rng.choice(others, accounts - len(mine), replace=False)
        everyone = np.sort(np.concatenate([mine, others]))
        chosen.append(Topic(names[row], _latest(posts, author, mine, query_posts),
                            _latest(late, author, everyone, target_posts)))  # fmt: skip
        if len(chosen) == topics:
            return chosen
    most = ", ".join(f"{name} {count}" for name, count in sorted(found.items(), key=lambda item: -item[1])[:8])
    raise ValueError(
        f"{len(chosen)} of {topics} topics have {fewest_distinguished} accounts with {fewest_query_posts} posts there "
        f"in the query period and {fewest_target_posts} later; accounts found: {most}")  # fmt: skip


def _communities(store, author):
    """(authors,): the community in which each account has most of its posts in known topics, "" where in none."""
    names = np.array([name.split("/")[0] for name in store.meta["topics"]])
    kinds, kind = np.unique(names, return_inverse=True)
    known = np.flatnonzero(np.asarray(store.topic) < len(names))
    count = np.zeros((store.authors, len(kinds) + 1))
    np.add.at(count, (author[known], kind[store.topic[known]]), 1)
    count[:, -1] = 0.5
    return np.append(kinds, "")[count.argmax(1)]


def _since(store, author, value):
    """(posts,) bool: at or after an ISO date, or beyond a share of the account's own posts."""
    if isinstance(value, str | date):
        try:
            when = datetime.fromisoformat(str(value))
        except ValueError:
            raise ValueError(f"{value!r} is no ISO date") from None
        return store.time >= (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    if not 0 <= value <= 1:
        raise ValueError(f"{value!r}: an ISO date, or a share of an account's posts between 0 and 1")
    nth = np.arange(store.posts) - store.author_offsets[author]
    return nth >= value * store.posts_per_author()[author]


def _latest(posts, author, wanted, most):
    """The last ``most`` of the given posts (by author, then time) of each wanted author."""
    by = author[posts]
    end = np.searchsorted(by, wanted, "right")
    first = np.maximum(np.searchsorted(by, wanted), end - most)
    place, offsets = ranges(first, end - first)
    return Samples(wanted, posts[place], offsets)


def score(store: TokenStore, chosen: list[Topic], vectors: Callable, memory: dict | None = None) -> pd.DataFrame:
    """All trials of all topics, about 22 bytes each: columns ``topic``, ``query_author``, ``target_author`` (their rows
    in the store), ``query_posts``, ``target_posts`` (sizes), ``score`` and ``same`` (of one account).

    vectors: (store, first post (N,), size (N,)) -> unit rows (N, D), an array or a SciPy sparse matrix: an encoder's
    embeddings or what :func:`helpers.baselines.fit` returns. Each pair is scored alone, by the product of its rows.
    memory: of one scorer and store, filled here, so that the same samples are embedded once in several calls.
    """
    memory = {} if memory is None else memory

    def embedded(samples):  # often everybody is a target in every topic
        key = samples.posts.tobytes(), samples.offsets.tobytes()
        if key not in memory:
            memory[key] = vectors(*samples.windows(store))
        return memory[key]

    names = [topic.name for topic in chosen]
    frames = []
    for number, topic in enumerate(chosen):
        queries, targets = topic.queries, topic.targets
        scores = products(embedded(queries), embedded(targets))
        query, target = (place.ravel() for place in np.indices(scores.shape, np.int32))
        frames.append(pd.DataFrame({
            "topic": pd.Categorical.from_codes(np.full(scores.size, number, np.int16), names),
            "query_author": queries.authors.astype(np.int32)[query],
            "target_author": targets.authors.astype(np.int32)[target],
            "query_posts": queries.sizes().astype(np.int32)[query],
            "target_posts": targets.sizes().astype(np.int32)[target],
            "score": scores.ravel(),
        }))  # fmt: skip
    trials = pd.concat(frames, ignore_index=True)
    return trials.assign(same=trials.query_author == trials.target_author)


def products(queries, targets, rows: int = 256) -> np.ndarray:
    """Scores (Q, T), float32, of unit rows (Q, D) and (T, D), dense or sparse, a block of rows at a time."""
    scores = np.empty((queries.shape[0], targets.shape[0]), np.float32)
    for begin in range(0, len(scores), rows):
        block = queries[begin : begin + rows] @ targets.T
        block = block.toarray() if sparse.issparse(block) else block
        scores[begin : begin + rows] = np.rint(block * GRID) / GRID
    return scores


def results(
    trials: pd.DataFrame, costs: detection.Costs = detection.PAPER, seed: int = 0, resamples: int = 1000
) -> pd.DataFrame:
    """EER and minDCF with 95% intervals over query accounts: a row per topic, their "mean" (khan2021 Table 2), and
    "pooled", with one threshold for all topics. trials: of :func:`score`, or such a table read from a file."""
    parts = dict(list(trials.groupby("topic", observed=True)))
    tallies = {name: detection.tally(part.score, part.same, part.query_author) for name, part in parts.items()}
    sets = {name: [one] for name, one in tallies.items()} | {"mean": list(tallies.values())}
    sets["pooled"] = [detection.tally(trials.score, trials.same, trials.query_author)]
    table = pd.DataFrame({name: detection.summarise(some, costs, seed, resamples) for name, some in sets.items()}).T
    counted = [parts.get(name, trials) for name in table.index]
    return table.assign(
        accounts=[part.query_author.nunique() for part in counted], positives=[part.same.sum() for part in counted],
        trials=[len(part) for part in counted],
    )  # fmt: skip


def by_target_size(
    store: TokenStore,
    vectors: Callable,
    sizes: tuple[int, ...] = (4, 8, 12),
    costs: detection.Costs = detection.PAPER,
    memory: dict | None = None,
    **settings,
) -> pd.DataFrame:
    """The "mean" row of :func:`results` at each size of the targets, column ``target_posts`` (khan2021 Figure 6).

    memory: of :func:`score`. settings: of :func:`choose`; accounts and queries are the same at every size.
    """
    rows, memory = [], {} if memory is None else memory
    for size in sizes:
        trials = score(store, choose(store, **settings | {"target_posts": size}), vectors, memory)
        rows.append(results(trials, costs, settings.get("seed", 0)).loc[["mean"]].assign(target_posts=size))
    return pd.concat(rows, ignore_index=True)
