"""Who is looked for among whom: the trials of account linking (khan2021 section 4.3, Figure 4).

For each popular topic some *distinguished* accounts are chosen. Each one's query is its latest posts there in an
earlier period; its target, and that of many other accounts, is its latest posts anywhere in a later period. Every
query is compared with every target. The paper: 5 topics, 100 x 5,000 trials each, 100 of them of one account.

A sample is a list of posts, not a window of consecutive ones; :meth:`Samples.windows` makes it one, so that every
encoder and baseline reads it as it reads any other.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np

from helpers.tokens.store import TokenStore, ranges, take


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
