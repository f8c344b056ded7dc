"""Account linking: whether two samples in one topic are by one account.

The protocol is that of khan2021 section 4.3, Figure 4.

For each popular topic some accounts are *enrolled* (the paper's "distinguished"). The query of an
enrolled account is its latest posts there in an earlier period. The target of an account, enrolled
or not, is its latest posts in the same topic in a later period, so the topic cannot tell accounts
apart. Every query is compared with every target. The paper has 5 topics with 100 x 5,000 trials
each, 100 of them same-account pairs. Results are means of error rates over topics.
"""

from collections import Counter
from datetime import UTC, date, datetime
from functools import partial

import numpy as np
import pandas as pd
from pydantic import Field, field_validator, model_validator

from ..core.parameters import Config
from ..tokens.batch import Samples
from ..tokens.store import TokenStore
from .bootstrap import resampled_metrics
from .detection import (
    METRICS,
    PAPER,
    DetectionCosts,
    ScoreCounts,
    count_scores,
    error_rates,
    topic_means,
)
from .models import Scorer, as_model
from .trials import Trials, communities

# a share of each account's posts in time order, or an ISO date (UTC)
Moment = float | str | date
NOT_ABOVE = (  # settings of which the first must not be above the second
    ("min_query_posts", "query_posts"),
    ("target_posts", "min_target_posts"),
    ("min_enrolled", "enrolled"),
    ("enrolled", "accounts"),
)
TRIAL = ["topic", "query_author", "target_author", "target_posts"]  # columns that tell a trial


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
        for lower, upper in NOT_ABOVE:
            low = getattr(self, lower)
            high = getattr(self, upper)
            if low is not None and high is not None and low > high:
                raise ValueError(f"{lower} ({low}) must not be above {upper} ({high})")
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
    ``query_posts`` where ``min_query_posts`` is given.

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
    sizes = sizes or (config.target_posts,)
    if max(sizes) > config.min_target_posts:
        raise ValueError(
            f"targets of {max(sizes)} posts: min_target_posts is {config.min_target_posts}"
        )
    early, late = _periods(store, config, earlier)
    home = communities(store)
    trials = []
    able = Counter()
    for topic, name in _popular_topics(early["topic"], store.meta["topics"]):
        early_account = early["account"][early["topic"] == topic]
        late_account = late["account"][late["topic"] == topic]
        query_posts = np.bincount(early_account, minlength=store.authors)
        is_active = np.bincount(late_account, minlength=store.authors) >= config.min_target_posts
        if config.same_community:
            is_active &= home == name.split("/")[0]
        is_able = is_active & (query_posts >= (config.min_query_posts or config.query_posts))
        able[name] = is_able.sum()
        has_enrolled = able[name] >= (config.min_enrolled or config.enrolled)
        if not has_enrolled or is_active.sum() < (config.accounts or 2):
            continue
        enrolled, everyone = _draw_accounts(is_able, is_active, topic, config)
        queries = _latest(earlier or store, early_account, enrolled, config.query_posts)
        for size in sizes:
            targets = _latest(store, late_account, everyone, size)
            trials.append(Trials(queries, targets, name=name))
        if len(trials) == config.topics * len(sizes):
            return trials
    most = ", ".join(f"{name} {count}" for name, count in able.most_common(8))
    raise ValueError(
        f"linking: {len(trials) // len(sizes)} of {config.topics} topics have enough accounts, see "
        "min_enrolled, min_query_posts, min_target_posts and accounts; accounts with enough posts: "
        + most
    )


def _periods(store, config, earlier):
    """Return topic and account of the posts of queries, and of those of targets, by post number."""
    target_from = config.target_from
    if earlier is not None and isinstance(target_from, float):
        target_from = 0.0
    is_late = _is_since(store, target_from)
    account = np.repeat(np.arange(store.authors, dtype=np.int32), store.posts_per_author())
    posts = pd.DataFrame({"topic": store.topic, "account": account})
    late = posts[is_late & ~_is_since(store, config.target_until)]
    if earlier is None:
        return posts[_is_since(store, config.query_from) & ~is_late], late
    if store.meta["topics"] != earlier.meta["topics"]:
        raise ValueError("earlier posts and later posts do not have the same topics")
    accounts = pd.Index(store.author_names()).get_indexer(earlier.author_names())
    account = np.repeat(accounts, earlier.posts_per_author())
    return pd.DataFrame({"topic": earlier.topic, "account": account})[account >= 0], late


def _popular_topics(topic, names):
    """Return numbers and names of the listed topics, those of most posts first."""
    # a larger number marks a post in no listed topic
    posts = np.bincount(topic, minlength=len(names))[: len(names)]
    return [(number, names[number]) for number in np.argsort(-posts, kind="stable").tolist()]


def _latest(store, account, accounts, max_posts):
    """Return the last posts of some accounts, as samples.

    ``account`` is the account of each post of a topic and a period, by post number, ascending.
    """
    latest = account[account.isin(accounts)].groupby(account).tail(max_posts)
    offsets = np.append(np.searchsorted(latest, accounts), len(latest))
    return Samples.of_lists(store, latest.index.to_numpy(), offsets, accounts)


def _draw_accounts(is_able, is_active, topic, config):
    """Return the enrolled accounts, and with them the others that have a target, both sorted."""
    rng = np.random.default_rng([config.seed, topic])
    candidates = np.flatnonzero(is_able)
    count = min(config.enrolled, len(candidates))
    enrolled = np.sort(rng.choice(candidates, count, replace=False))
    not_enrolled = np.setdiff1d(np.flatnonzero(is_active), enrolled)
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


def score_linking(model: Scorer, trials: list[Trials], max_tokens: int = 32) -> pd.DataFrame:
    """Score the trials of all topics, in one table of about 22 bytes a trial.

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
    names = list(dict.fromkeys(topic.name for topic in trials))
    frames = []
    for topic in trials:
        sides = []
        for side, samples in (("query", topic.queries), ("target", topic.targets)):
            columns = {f"{side}_author": samples.authors, f"{side}_posts": samples.count}
            sides.append(pd.DataFrame(columns, dtype=np.int32))
        frame = sides[0].merge(sides[1], how="cross")
        frame["score"] = (
            as_model(model).score_matrix(topic.queries, topic.targets, max_tokens).ravel()
        )
        of_topic = np.full(len(frame), names.index(topic.name))
        frames.append(frame.assign(topic=pd.Categorical.from_codes(of_topic, names)))
    scored = pd.concat(frames, ignore_index=True)
    return scored.assign(same=scored.query_author == scored.target_author)


def linking_metrics(
    scored: pd.DataFrame | list[pd.DataFrame],
    costs: DetectionCosts = PAPER,
    seed: int = 0,
    resamples: int = 1000,
    base: list[pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """Return means of error rates over topics (khan2021 Table 2), with intervals over accounts.

    Accounts are resampled with all their trials in all topics, because trials of one query depend
    on each other. A topic without trials of both kinds in a resample is left out of it, and a
    resample without any such topic counts for nothing.

    Parameters
    ----------
    scored : scored trials of :func:`score_linking`; or a list of them, one of each training of the
        model, over which metrics are averaged
    costs : costs of a miss and of a false link, and the prior
    seed, resamples : seed and number of bootstrap resamples
    base : the same trials, scored by each training of another model; if given, what is returned is
        the difference to it, the accounts resampled alike

    Returns
    -------
    Columns ``value``, ``low`` and ``high``, a row for each of
    :data:`helpers.evaluation.detection.METRICS`, or for "EER_difference" and so on.

    Raises
    ------
    ValueError
        If the trials differ.
    """
    trainings = [scored] if isinstance(scored, pd.DataFrame) else scored
    base = base or []
    if not all(part[TRIAL].equals(trainings[0][TRIAL]) for part in [*trainings[1:], *base]):
        raise ValueError("scores to compare are not of the same trials")
    accounts = np.unique(trainings[0].query_author)
    measure = partial(topic_means, accounts, costs)
    counts, base_counts = [[_counts(part) for part in side] for side in (trainings, base)]
    return resampled_metrics(METRICS, accounts, measure, counts, base_counts, seed, resamples)


def linking_curve(scored: pd.DataFrame, points: int = 500) -> pd.DataFrame:
    """Return the mean P_miss of the topics at each P_fa (khan2021 Figure 7).

    Parameters
    ----------
    scored : scored trials of :func:`score_linking`
    points : number of values of P_fa on a linear scale, and again on a logarithmic one

    Returns
    -------
    Columns ``P_fa`` (ascending), ``P_miss``.
    """
    logarithmic = np.geomspace(1e-6, 1, points)
    p_fa = np.unique(np.concatenate([[0], logarithmic, np.linspace(0, 1, points)]))
    # where a curve falls vertically, np.interp takes the lower end, that of the better threshold
    p_miss = [np.interp(p_fa, *error_rates(counts)) for counts in _counts(scored)]
    return pd.DataFrame({"P_fa": p_fa, "P_miss": np.mean(p_miss, axis=0)})


def _counts(scored) -> list[ScoreCounts]:
    """Return the counts of the trials of each topic, in topic order."""
    return [
        count_scores(part.score, part.same, part.query_author)
        for _, part in scored.groupby("topic", observed=True)
    ]
