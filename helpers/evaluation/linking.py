"""Account linking: whether two samples in one topic are by one account.

The protocol is that of khan2021 section 4.3, Figure 4.

For each popular topic some accounts are *enrolled* (the paper's "distinguished"). The query of an
enrolled account is its latest posts there in an earlier period. The target of an account, enrolled
or not, is its latest posts in the same topic in a later period, so the topic cannot tell accounts
apart. Every query is compared with every target. The paper has 5 topics with 100 x 5,000 trials
each, 100 of them same-account pairs. Results are means of error rates over topics.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field, field_validator, model_validator

from ..core.parameters import Config
from ..tokens.batch import Samples
from ..tokens.store import TokenStore, concat_ranges
from . import detection
from .detection import PAPER, DetectionCosts
from .models import System, as_model
from .trials import Trials, communities

# a share of each account's posts in time order, or an ISO date (UTC)
Moment = float | str | date


class LinkingConfig(Config):
    """Settings of the trials: which accounts are enrolled, and which accounts have a target.

    Attributes
    ----------
    query_from, target_from, target_until : queries are from [query_from, target_from), targets from
        [target_from, target_until). Shares serve archives that have no months in common.
    topics : number of topics; the most popular ones, by posts in the query period, that have enough
        accounts
    enrolled, min_enrolled : most and fewest enrolled accounts of a topic; if the second is None, it
        is the first
    accounts : number of accounts of a topic that have a target, the enrolled ones among them; None:
        all that have enough posts
    query_posts, min_query_posts : most and fewest posts of a query; if the second is None, it is
        the first
    target_posts, min_target_posts : number of posts of a target, and number of posts that an
        account must have in the target period
    targets : whether posts of a target are in the query's topic, as in the paper, or in any topic.
        In any topic, a topic profile alone can tell accounts apart.
    same_community : whether a topic takes only accounts that mostly write in its community, the
        part of its name before the first "/". An account of another archive would be too easy to
        exclude.
    seed : seed of the random choice of accounts
    """

    query_from: Moment = 0.0
    target_from: Moment = 0.5
    target_until: Moment = 1.0
    topics: int = Field(5, ge=1, le=10**6)
    enrolled: int = Field(100, ge=1)
    min_enrolled: int | None = Field(None, ge=1)
    accounts: int | None = Field(5000, ge=2)
    query_posts: int = Field(100, ge=1)
    min_query_posts: int | None = Field(None, ge=1)
    target_posts: int = Field(4, ge=1)
    min_target_posts: int = Field(16, ge=1)
    targets: Literal["same_topic", "any_topic"] = "same_topic"
    same_community: bool = False
    seed: int = Field(0, ge=0)

    @field_validator("query_from", "target_from", "target_until")
    @classmethod
    def _is_moment(cls, value):
        if isinstance(value, str):
            datetime.fromisoformat(value)  # an error says that it is no ISO date
        elif isinstance(value, float) and not 0 <= value <= 1:
            raise ValueError(
                "neither an ISO date nor a share of an account's posts between 0 and 1"
            )
        return value

    @model_validator(mode="after")
    def _fits(self):
        fits = (self.min_query_posts or 1) <= self.query_posts
        if not fits or self.target_posts > self.min_target_posts:
            raise ValueError(
                f"need min_query_posts ({self.min_query_posts}) <= query_posts "
                f"({self.query_posts}) and target_posts ({self.target_posts}) <= min_target_posts "
                f"({self.min_target_posts})"
            )
        if self.accounts is not None and self.accounts < self.enrolled:
            raise ValueError(f"{self.enrolled} enrolled of {self.accounts} accounts")
        if (self.min_enrolled or 1) > self.enrolled:
            raise ValueError(
                f"min_enrolled ({self.min_enrolled}) must not be above enrolled ({self.enrolled})"
            )
        moments = [self.query_from, self.target_from, self.target_until]
        shares = [moment for moment in moments if isinstance(moment, float)]
        seconds = [_timestamp(moment) for moment in moments if not isinstance(moment, float)]
        # a date and a share can only be compared once the posts are known
        if shares != sorted(set(shares)) or seconds != sorted(set(seconds)):
            raise ValueError(
                f"need query_from ({self.query_from}) < target_from ({self.target_from}) < "
                f"target_until ({self.target_until})"
            )
        return self


def linking_trials(
    store: TokenStore,
    config: LinkingConfig,
    sizes: tuple[int, ...] = (),
    earlier: TokenStore | None = None,
) -> list[Trials]:
    """Return the trials of each topic, all queries against all targets; ``name`` is the topic.

    Which accounts these are depends on the seed and the topic, not on ``target_posts``, and not on
    ``query_posts`` where ``min_query_posts`` is given. It takes about 30 bytes of memory a post.

    Parameters
    ----------
    store : posts of the accounts
    config : settings, which tell the accounts that are enrolled and those that have a target
    sizes : sizes of targets in posts, instead of ``target_posts``; each topic gives a Trials for
        each size, of the same accounts
    earlier : another store with earlier posts of the same accounts, found by their names. Queries
        are then the latest of these posts, whatever ``query_from`` says, as those of khan2021
        Table 9 are of training posts; and no share of the posts in ``store`` is kept for queries

    Raises
    ------
    ValueError
        If a size is above ``min_target_posts``, if too few topics have enough accounts, or if both
        stores do not have the same topics.
    """
    if sizes and max(sizes) > config.min_target_posts:
        raise ValueError(
            f"targets of {max(sizes)} posts: min_target_posts is {config.min_target_posts}"
        )
    target_from = config.target_from
    if earlier is not None and isinstance(target_from, float):
        target_from = 0.0
    is_late = _is_since(store, target_from)
    is_target = is_late & ~_is_since(store, config.target_until)
    accounts = np.arange(store.authors)
    late = _period(store, accounts, is_target, config.targets == "same_topic")
    if earlier is None:
        early = _period(store, accounts, _is_since(store, config.query_from) & ~is_late)
    else:
        if store.meta["topics"] != earlier.meta["topics"]:
            raise ValueError("earlier posts and later posts do not have the same topics")
        accounts = pd.Index(store.author_names()).get_indexer(earlier.author_names())
        early = _period(earlier, accounts, np.ones(earlier.posts, bool))

    sizes = sizes or (config.target_posts,)
    trials = []
    targets = {}
    for topic, enrolled, active in _chosen_topics(early, late, config):
        queries = _latest(early, topic, enrolled, config.query_posts)
        for size in sizes:
            # with targets in any topic, several topics often have the same targets
            key = (size, id(late.posts[topic]), active.tobytes())
            if key not in targets:
                targets[key] = _latest(late, topic, active, size)
            trials.append(Trials(queries, targets[key], name=store.meta["topics"][topic]))
    return trials


def trials_of_splits(
    stores: dict[str, TokenStore], configs: dict[str, LinkingConfig], sizes: tuple[int, ...]
) -> dict[str, list[Trials]]:
    """Return the trials of each split that has a store.

    Parameters
    ----------
    stores : stores by split; "train" has the training posts of the accounts of "seen"
    configs : settings by split
    sizes : sizes of targets in posts

    Returns
    -------
    Trials of :func:`linking_trials` by split; with "seen" also "seen_training", whose queries are
    training posts, as in khan2021 Table 9. Where these do not suffice, it is left out, and a line
    is printed that says so.

    Raises
    ------
    ValueError
        As :func:`linking_trials`, with the name of the split.
    """
    trials = {}
    for split, config in configs.items():
        if split not in stores:
            continue
        try:
            trials[split] = linking_trials(stores[split], config, sizes)
        except ValueError as error:
            raise ValueError(f"{split}: {error}") from None
    if "seen" in trials and "train" in stores:
        try:
            trials["seen_training"] = linking_trials(
                stores["seen"], configs["seen"], sizes, stores["train"]
            )
        except ValueError as error:  # enough later posts for both sides, but too few in training
            print(f"left out, queries from training: {error}")
    return trials


# posts of a period; the accounts are those of the store of the targets
class _Period(NamedTuple):
    store: TokenStore
    author: np.ndarray  # (posts of the store,) account of each post, -1 for none
    posts: list[np.ndarray]  # for each listed topic the numbers of its posts

    def counts(self, topic: int, accounts: int) -> np.ndarray:
        """Return the number of posts of a topic by each of so many accounts."""
        return np.bincount(self.author[self.posts[topic]], minlength=accounts)


def _period(store, accounts, is_chosen, of_topic=True):
    """Return the chosen posts of a store's authors, whose ``accounts`` may be -1.

    Posts of a topic are those that were written there, or all of the period.
    """
    author = np.repeat(accounts.astype(np.int32), store.posts_per_author())
    posts = np.flatnonzero(is_chosen & (author >= 0))
    topics = len(store.meta["topics"])  # a larger number marks a post in no listed topic
    if not of_topic:
        return _Period(store, author, [posts] * topics)
    posts = posts[np.argsort(store.topic[posts], kind="stable")]
    ends = np.searchsorted(store.topic[posts], np.arange(topics), "right")
    return _Period(store, author, np.split(posts, ends)[:topics])


def _chosen_topics(early, late, config):
    """Return the chosen topics, most popular first: number, enrolled accounts, all with a target.

    Accounts depend on seed and topic only.
    """
    store = late.store
    min_posts = config.min_query_posts or config.query_posts
    min_enrolled = config.min_enrolled or config.enrolled
    min_accounts = config.accounts or 2
    home = communities(store) if config.same_community else None
    topics = []
    able = {}
    by_posts = np.argsort([-len(posts) for posts in early.posts], kind="stable")
    for number in by_posts.tolist():
        name = store.meta["topics"][number]
        is_active = late.counts(number, store.authors) >= config.min_target_posts
        if config.same_community:
            is_active &= home == name.split("/")[0]
        is_able = is_active & (early.counts(number, store.authors) >= min_posts)
        able[name] = is_able.sum()
        if able[name] >= min_enrolled and is_active.sum() >= min_accounts:
            accounts = np.flatnonzero(is_able), np.flatnonzero(is_active)
            topics.append((number, *_draw_accounts(*accounts, number, config)))
        if len(topics) == config.topics:
            return topics

    most = sorted(able.items(), key=lambda item: -item[1])[:8]
    raise ValueError(
        f"linking: {len(topics)} of {config.topics} topics have {min_enrolled} accounts with "
        f"{min_posts} posts there in the query period and {config.min_target_posts} later, among "
        f"{min_accounts} with so many later; accounts there: "
        f"{', '.join(f'{name} {count}' for name, count in most)}"
    )


def _draw_accounts(candidates, active, topic, config):
    """Return the enrolled accounts, and with them the others that have a target, both sorted."""
    rng = np.random.default_rng([config.seed, topic])
    count = min(config.enrolled, len(candidates))
    enrolled = np.sort(rng.choice(candidates, count, replace=False))
    not_enrolled = np.setdiff1d(active, enrolled)
    if config.accounts is not None:
        not_enrolled = rng.choice(not_enrolled, config.accounts - count, replace=False)
    return enrolled, np.sort(np.concatenate([enrolled, not_enrolled]))


def _is_since(store, moment):
    """Return which posts (posts,) are at or after a date, or after a share of their account's."""
    if isinstance(moment, str | date):
        return store.time >= _timestamp(moment)
    posts = store.posts_per_author()
    number_within_account = np.arange(store.posts) - np.repeat(store.author_offsets[:-1], posts)
    return number_within_account >= moment * np.repeat(posts, posts)


def _timestamp(day):
    """Return the seconds since 1970 of an ISO date, in UTC if it has no zone."""
    when = datetime.fromisoformat(str(day))
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return when.timestamp()


def _latest(period, topic, accounts, max_posts):
    """Return the last posts of each account in a topic and period, as samples."""
    posts = period.posts[topic]
    end = np.searchsorted(period.author[posts], accounts, "right")
    first = np.maximum(np.searchsorted(period.author[posts], accounts), end - max_posts)
    place, offsets = concat_ranges(first, end - first)
    return Samples.of_lists(period.store, posts[place], offsets, accounts)


def score_linking(model: System, trials: list[Trials], max_tokens: int = 32) -> pd.DataFrame:
    """Score the trials of all topics, in one table of about 22 bytes a trial.

    Targets that several topics share are embedded once.

    Parameters
    ----------
    model : the model that scores the trials
    trials : trials of :func:`linking_trials`
    max_tokens : tokens read of each post

    Returns
    -------
    Columns ``topic``, ``query_author`` and ``target_author`` (author numbers of the store),
    ``query_posts`` and ``target_posts`` (numbers of posts), ``score`` (float32) and ``same``
    (whether both samples are of one account).
    """
    model = as_model(model)
    frames = []
    for topic in trials:
        scores = model.score_matrix(topic.queries, topic.targets, max_tokens)
        queries, targets = scores.shape
        samples = {
            "query_author": np.repeat(topic.queries.authors, targets),
            "target_author": np.tile(topic.targets.authors, queries),
            "query_posts": np.repeat(topic.queries.count, targets),
            "target_posts": np.tile(topic.targets.count, queries),
        }
        frames.append(pd.DataFrame(samples, dtype=np.int32).assign(score=scores.ravel()))
    scored = pd.concat(frames, ignore_index=True)
    code, names = pd.factorize(np.array([topic.name for topic in trials]))
    sizes = [len(topic) for topic in trials]
    scored["topic"] = pd.Categorical.from_codes(np.repeat(code, sizes), names)
    return scored.assign(same=scored.query_author == scored.target_author)


def linking_metrics(
    scored: pd.DataFrame,
    costs: DetectionCosts = PAPER,
    seed: int = 0,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Return means of error rates over topics (khan2021 Table 2), with intervals over accounts.

    Parameters
    ----------
    scored : scored trials of :func:`score_linking`
    costs : costs of a miss and of a false link, and the prior
    seed, resamples : seed and number of bootstrap resamples

    Returns
    -------
    The table of :func:`helpers.evaluation.detection.detection_metrics`.
    """
    return detection.detection_metrics(_counts_of_topics(scored), costs, seed, resamples)


def linking_differences(
    scored: list[pd.DataFrame],
    base: list[pd.DataFrame],
    costs: DetectionCosts = PAPER,
    seed: int = 0,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Return the differences of error rates between two models, with paired intervals.

    Parameters
    ----------
    scored, base : trials scored by :func:`score_linking`, a table for each training of the model,
        and of the one that is subtracted; metrics are averaged over trainings
    costs : costs of a miss and of a false link, and the prior
    seed, resamples : seed and number of bootstrap resamples

    Returns
    -------
    The table of :func:`helpers.evaluation.detection.detection_differences`.

    Raises
    ------
    ValueError
        If the trials differ.
    """
    trials = ["topic", "query_author", "target_author", "target_posts"]
    if not all(part[trials].equals(base[0][trials]) for part in [*scored, *base]):
        raise ValueError("scores to compare are not of the same trials")
    counts = [_counts_of_topics(part) for part in scored]
    base_counts = [_counts_of_topics(part) for part in base]
    return detection.detection_differences(counts, base_counts, costs, seed, resamples)


def all_differences(
    scored: dict[tuple[str, str], pd.DataFrame],
    bases: Iterable[str],
    costs: DetectionCosts = PAPER,
    seed: int = 0,
) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    """Compare every system with some of them, on each split.

    Systems "x", "x-seed1" and so on are trainings of one, over which metrics are averaged. It has
    the name "x" or, without such a training, that of the first.

    Parameters
    ----------
    scored : trials scored by :func:`score_linking`, by split and name of the system
    bases : names of the systems that are subtracted
    costs : costs of a miss and of a false link, and the prior
    seed : seed of the bootstrap resamples

    Yields
    ------
    split, name of the system, name of the base, and the table of :func:`linking_differences`

    Raises
    ------
    ValueError
        If a base is no system.
    """
    trainings = defaultdict(list)
    name_of = {}
    for (split, model), part in scored.items():
        system = _system_of(model)
        trainings[split, system].append(part)
        name_of[system] = min(name_of.get(system, model), model, key=len)
    bases = dict.fromkeys(map(_system_of, bases))
    unknown = sorted(bases.keys() - name_of.keys())
    if unknown:
        raise ValueError(f"no scores of {', '.join(unknown)}, to be subtracted")
    for (split, system), parts in trainings.items():
        for base in bases:
            if base != system:
                table = linking_differences(parts, trainings[split, base], costs, seed)
                yield split, name_of[system], name_of[base], table


def _system_of(model):
    """Return the name of a system: of its trainings, what stands before "-seed"."""
    return model.partition("-seed")[0]


def linking_curves(scored: pd.DataFrame) -> list[pd.DataFrame]:
    """Return :func:`helpers.evaluation.detection.det_curve` of each topic, in topic order."""
    return [detection.det_curve(counts) for counts in _counts_of_topics(scored)]


def linking_by_topic(scored: pd.DataFrame, costs: DetectionCosts = PAPER) -> pd.DataFrame:
    """Return error rates by topic, as the mean over topics, and for all trials pooled.

    Pooled trials have one threshold for all topics.

    Parameters
    ----------
    scored : scored trials of :func:`score_linking`
    costs : costs of a miss and of a false link, and the prior

    Returns
    -------
    A row for each topic, ``mean`` and ``pooled``, a column for each of
    :data:`helpers.evaluation.detection.METRICS`.
    """
    tables = {
        name: linking_metrics(part, costs, resamples=0)
        for name, part in scored.groupby("topic", observed=True)
    }
    tables["mean"] = linking_metrics(scored, costs, resamples=0)
    tables["pooled"] = linking_metrics(scored.assign(topic="pooled"), costs, resamples=0)
    return pd.DataFrame({name: table.value for name, table in tables.items()}).T


def _counts_of_topics(scored):
    """Return the counts of the trials of each topic, in topic order."""
    return [
        detection.count_scores(part.score, part.same, part.query_author)
        for _, part in scored.groupby("topic", observed=True)
    ]
