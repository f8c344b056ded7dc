"""Account linking, khan2021 section 4.3, Figure 4: are two samples in one topic by the same account?

For each popular topic some accounts are *enrolled* (the paper's "distinguished"). The query of an enrolled account is
its latest posts there in an earlier period. The target of an account, enrolled or not, is its latest posts in the same
topic in a later period, so the topic cannot tell accounts apart. Every query is compared with every target. The paper
has 5 topics with 100 x 5,000 trials each, 100 of them same-account pairs. Results are means of error rates over topics.
"""

from datetime import UTC, date, datetime
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field, field_validator, model_validator

from helpers.core.config import Config
from helpers.evaluation import detection
from helpers.evaluation.gallery import open_gallery
from helpers.evaluation.trials import Trials, communities
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore, concat_ranges

Moment = (
    float | str | date
)  # a share of each account's own posts in time order, or an ISO date (UTC)


class LinkingConfig(Config):
    """Settings of the trials: which accounts are enrolled, and which accounts have a target.

    query_from, target_from, target_until : queries are from [query_from, target_from), targets from [target_from,
    target_until). Shares serve archives that have no months in common.
    topics : number of topics; the most popular ones, by posts in the query period, that have enough accounts.
    enrolled, min_enrolled : enrolled accounts of a topic, at most and at least (None: the same).
    accounts : accounts that have a target, the enrolled ones among them; None: all that have enough posts.
    query_posts, min_query_posts : posts of an enrolled account in the topic, at most and at least (None: the same).
    target_posts, min_target_posts : posts of a target, and later posts that an account must have.
    targets : whether posts of a target are in the query's topic, as in the paper, or in any topic. In any topic, a
    topic profile alone can tell accounts apart.
    same_community : only accounts that mostly write in the topic's community, the part of its name before the first
    "/". An account of another archive would be told apart too easily.
    """

    query_from: Moment = 0.0
    target_from: Moment = 0.5
    target_until: Moment = 1.0
    topics: int = Field(5, ge=1)
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
            try:
                datetime.fromisoformat(value)
            except ValueError:
                raise ValueError("no ISO date") from None
        elif isinstance(value, float) and not 0 <= value <= 1:
            raise ValueError(
                "neither an ISO date nor a share of an account's posts between 0 and 1"
            )
        return value

    @model_validator(mode="after")
    def _fits(self):
        if (
            self.min_query_posts or 1
        ) > self.query_posts or self.target_posts > self.min_target_posts:
            raise ValueError(
                f"need min_query_posts ({self.min_query_posts}) <= query_posts ({self.query_posts}) and "
                f"target_posts ({self.target_posts}) <= min_target_posts ({self.min_target_posts})"
            )
        if self.accounts is not None and self.accounts < self.enrolled:
            raise ValueError(f"{self.enrolled} enrolled of {self.accounts} accounts")
        return self


def linking_trials(
    store: TokenStore, config: LinkingConfig, sizes: tuple[int, ...] = ()
) -> list[Trials]:
    """Return the trials of each topic, all queries against all targets; ``name`` is the topic.

    Which accounts these are depends on the seed and the topic, not on ``target_posts``, and not on ``query_posts``
    where ``min_query_posts`` is given. Takes about 30 bytes a post.

    sizes : targets of so many posts instead of ``target_posts``, one Trials a size and topic, of the same accounts.
    """
    if sizes and max(sizes) > config.min_target_posts:
        raise ValueError(
            f"targets of {max(sizes)} posts: min_target_posts is {config.min_target_posts}"
        )
    author = np.repeat(np.arange(store.authors, dtype=np.int32), store.posts_per_author())
    is_late = _since(store, author, config.target_from)
    early = np.flatnonzero(_since(store, author, config.query_from) & ~is_late)
    late = np.flatnonzero(is_late & ~_since(store, author, config.target_until))
    trials, made = [], {}
    for name, queried, targeted, enrolled, everyone in _topics(store, author, early, late, config):
        queries = _latest(store, queried, author, enrolled, config.query_posts)
        for size in sizes or (config.target_posts,):
            key = (
                size,
                id(targeted),
                everyone.tobytes(),
            )  # targets in any topic are often those of every topic
            if key not in made:
                made[key] = _latest(store, targeted, author, everyone, size)
            trials.append(Trials(queries, made[key], name=name))
    return trials


def _topics(store, author, early, late, config):
    """(name, early posts there, later posts, enrolled accounts, all accounts) of the chosen topics, most popular first.

    Who is enrolled and who else has a target depends on seed and topic only.
    """
    at_least = config.min_query_posts or config.query_posts
    min_enrolled, accounts = config.min_enrolled or config.enrolled, config.accounts
    names = store.meta["topics"]  # posts in none of these have the next row, and are no topic
    by_topic = _by_topic(store, early)
    later = _by_topic(store, late) if config.targets == "same_topic" else [late] * len(names)
    community = communities(store) if config.same_community else np.zeros(store.authors, np.int64)
    homes = [name.split("/")[0] for name in names] if config.same_community else [0] * len(names)
    chosen, counts = [], {}
    for row in np.argsort([-len(posts) for posts in by_topic], kind="stable").tolist():
        posts = by_topic[row]
        able = np.bincount(author[later[row]], minlength=store.authors) >= config.min_target_posts
        active = able & (community == homes[row])
        candidates = np.flatnonzero(
            (np.bincount(author[posts], minlength=store.authors) >= at_least) & active
        )
        counts[names[row]] = len(candidates)
        if len(candidates) < min_enrolled or active.sum() < (accounts or 2):
            continue
        rng = np.random.default_rng([config.seed, row])
        enrolled = np.sort(
            rng.choice(candidates, min(config.enrolled, len(candidates)), replace=False)
        )
        others = np.setdiff1d(np.flatnonzero(active), enrolled)
        others = (
            others
            if accounts is None
            else rng.choice(others, accounts - len(enrolled), replace=False)
        )
        chosen.append(
            (names[row], posts, later[row], enrolled, np.sort(np.concatenate([enrolled, others])))
        )
        if len(chosen) == config.topics:
            return chosen
    most = ", ".join(
        f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1])[:8]
    )
    raise ValueError(
        f"linking: {len(chosen)} of {config.topics} topics have {min_enrolled} accounts with {at_least} "
        f"posts there in the query period and {config.min_target_posts} later, among {accounts or 2} with "
        f"so many later; accounts there: {most}"
    )


def _by_topic(store, posts):
    """The posts of each listed topic, by author, then time."""
    posts = posts[np.argsort(store.topic[posts], kind="stable")]
    bounds = np.searchsorted(store.topic[posts], np.arange(len(store.meta["topics"]) + 1))
    return [posts[begin:end] for begin, end in zip(bounds, bounds[1:])]


def _since(store, author, moment):
    """(posts,) bool: at or after a date, or beyond a share of the account's own posts."""
    if isinstance(moment, str | date):
        when = datetime.fromisoformat(str(moment))
        return store.time >= (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    nth = np.arange(store.posts) - store.author_offsets[author]
    return nth >= moment * store.posts_per_author()[author]


def _latest(store, posts, author, accounts, max_posts):
    """The last ``max_posts`` of the given posts (by author, then time) of each account."""
    by = author[posts]
    end = np.searchsorted(by, accounts, "right")
    first = np.maximum(np.searchsorted(by, accounts), end - max_posts)
    place, offsets = concat_ranges(first, end - first)
    return Samples.of_lists(store, posts[place], offsets, accounts)


def score_linking(model, trials: list[Trials], max_tokens: int = 32) -> pd.DataFrame:
    """Score all trials, at about 22 bytes each; targets that several topics share are embedded once.

    Returns columns ``topic``, ``query_author``, ``target_author`` (authors of the store), ``query_posts``,
    ``target_posts`` (sizes), ``score`` (float32) and ``same`` (is it a same-account pair?).
    """
    names = list(dict.fromkeys(each.name for each in trials))
    frames, galleries = [], {}
    for each in trials:
        if id(each.targets) not in galleries:
            galleries[id(each.targets)] = open_gallery(model, each.targets, max_tokens)
        blocks = galleries[id(each.targets)].scores(each.queries)
        scores = np.concatenate([block.copy() for _, block in blocks])
        query, target = (place.ravel() for place in np.indices(scores.shape, np.int32))
        frames.append(
            pd.DataFrame(
                {
                    "topic": pd.Categorical.from_codes(
                        np.full(scores.size, names.index(each.name), np.int16), names
                    ),
                    "query_author": each.queries.authors.astype(np.int32)[query],
                    "target_author": each.targets.authors.astype(np.int32)[target],
                    "query_posts": each.queries.count.astype(np.int32)[query],
                    "target_posts": each.targets.count.astype(np.int32)[target],
                    "score": scores.ravel(),
                }
            )
        )
    scored = pd.concat(frames, ignore_index=True)
    return scored.assign(same=scored.query_author == scored.target_author)


def linking_metrics(
    scored: pd.DataFrame,
    costs: detection.DetectionCosts = detection.PAPER,
    seed: int = 0,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Return means of error rates over topics (khan2021 Table 2), with intervals over accounts."""
    return detection.detection_metrics(list(_tallies(scored).values()), costs, seed, resamples)


def linking_curves(scored: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the error curve of each topic, as of :func:`detection.curve`, in the order of the topics."""
    return [detection.det_curve(one) for one in _tallies(scored).values()]


def linking_by_topic(
    scored: pd.DataFrame, costs: detection.DetectionCosts = detection.PAPER
) -> pd.DataFrame:
    """Return EER, minDCF and counts of each topic, their "mean", and "pooled": one threshold for all topics."""
    tallies = _tallies(scored)
    pooled = [detection.count_scores(scored.score, scored.same, scored.query_author)]
    sets = {name: [one] for name, one in tallies.items()} | {
        "mean": list(tallies.values()),
        "pooled": pooled,
    }
    parts = dict(list(scored.groupby("topic", observed=True)))
    rows = {}
    for name, some in sets.items():
        part, value = (
            parts.get(name, scored),
            detection.detection_metrics(some, costs, resamples=0).value,
        )
        rows[name] = {"EER": value.EER, "minDCF": value.minDCF, "accounts": part.query_author.nunique(),
                      "positives": part.same.sum(), "trials": len(part)}  # fmt: skip
    return pd.DataFrame(rows).T


def linking_by_target_size(
    scored: pd.DataFrame,
    costs: detection.DetectionCosts = detection.PAPER,
    seed: int = 0,
    resamples: int = 1000,
) -> pd.DataFrame:
    """Return :func:`linking_metrics` for each size of the targets (khan2021 Figure 6), index ``target_posts, metric``."""
    parts = scored.groupby("target_posts")
    return pd.concat(
        {size: linking_metrics(part, costs, seed, resamples) for size, part in parts},
        names=["target_posts"],
    )


def _tallies(scored):
    parts = scored.groupby("topic", observed=True)
    return {
        name: detection.count_scores(part.score, part.same, part.query_author)
        for name, part in parts
    }
