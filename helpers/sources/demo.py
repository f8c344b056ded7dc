"""The demo corpus: a generated discussion forum whose authors' habits are known.

A measuring instrument, not a result: every post is written by sentence patterns, so a table made from it says how
a model uses style, hour and topic, never how well it knows people. :func:`style_truth` gives each author's habits. How
hard it is (16 posts against 16 of 140 authors, by words, hour, topic) is held in bands by its tests.

Habits (columns of the truth table; every draw is the author's own, from the seed and the author's number alone):

- ``casual``: normal(0, 1). Shifts the traits below that have a loading.
- one probability per name in ``demo_lexicon.TRAITS`` and ``PAIRS``: inverse logit of a normal (median, spread,
  loading on ``casual``). A pair's probability is that of its second form. Habits of words are graded; those of marks,
  capitals and the order of a sentence's parts, which no bag of words holds, are firmer: many are near 0 or 1.
- ``<choice>_<option>`` for each of ``demo_lexicon.CHOICES``: shares that add up to 1, Dirichlet.
- ``sentences``: mean number of sentences, 1 + log-normal (median 1.1); a post has 1..5.
- ``hour_peak``, ``hour_spread``, ``hour_peak2``, ``hour_share2``: a mixture of two wrapped normals, hours UTC.
- ``active_from``, ``active_to``: fractions of the span; an author stays for 0.15 to 0.4 of it, people come and go.
- ``topic_start_<topic>``, ``topic_end_<topic>``: shares of topics on the first and the last day of the span; between
  them the mixture moves linearly. The end is the start after a walk of small Dirichlet steps.
"""

from functools import partial
from itertools import repeat
from pathlib import Path

import numpy as np
import pandas as pd

from helpers.core.artifacts import atomic_write
from helpers.sources import Part, row_part
from helpers.sources.demo_lexicon import (
    CHOICES,
    CONCENTRATION,
    END_PRIOR,
    PAIR,
    PAIRS,
    TOPICS,
    TRAITS,
)
from helpers.sources.demo_writer import Writer

START, DAYS = 1_640_995_200, 730  # 2022-01-01 UTC, two years
PARTS = 6

STRENGTH = 0.87  # how far apart authors lie in style, the one knob of the calibration
SHORTEST_STAY = (
    0.12  # of an author, as a share of the span, also of one who was there before it began
)


def parts(
    location: str | list[str] = "",
    *,
    raw: bool = False,
    seed: int = 0,
    authors: int = 1200,
    posts: int = 80_000,
    topics: int = 24,
    topic_giveaway: float = 0.5,
) -> list[Part]:
    """Six parts, each some of the authors; what a part holds depends on the options alone.

    location: must be empty, nothing is read. raw: no difference, the posts hold no markup or quotes to remove.
    posts: in total, log-normal over authors. topic_giveaway: see :func:`style_truth`. Raises ValueError out of range.
    """
    if location:
        raise ValueError(f"source 'demo' is generated: location must be empty, not {location!r}")
    _validate(seed, authors, topics, topic_giveaway)
    if not posts >= 5 * authors:
        raise ValueError(f"posts must be at least five per author ({5 * authors}), not {posts!r}")
    # posts per author, exactly ``posts`` in all: log-normal (sigma 0.45), at least 40% of the mean
    weights = np.exp(0.45 * np.random.default_rng([seed, 2]).standard_normal(authors))
    share = np.maximum(weights / weights.mean(), 0.42)
    counts = np.diff(np.rint(np.cumsum(share) / share.sum() * posts).astype(int), prepend=0)
    hostile = np.random.default_rng([seed, 3]).choice(posts, 2, replace=False).tolist()
    slices = np.array_split(np.arange(authors), min(PARTS, authors))
    return [
        row_part(
            f"authors-{who[0] + 1:04d}-{who[-1] + 1:04d}",
            partial(_rows, who.tolist(), counts, hostile, seed, topics, topic_giveaway),
        )
        for who in slices
    ]


def style_truth(seed=0, authors=1200, topics=24, topic_giveaway=0.5) -> pd.DataFrame:
    """One row per author, the habits as columns (see the module).

    topic_giveaway: 0 gives every author the same mixture of topics, 1 nearly one topic each; in between a Dirichlet
    about the common mixture with concentration ``13 (1 - g) / g``.
    """
    _validate(seed, authors, topics, topic_giveaway)
    return pd.DataFrame([_author(i, seed, topics, topic_giveaway) for i in range(authors)])


def write_style_truth(path: Path, posts: int = 0, **options) -> None:
    """Write the table of :func:`style_truth` (Parquet), whole or not at all. posts: changes nobody's habits."""
    with atomic_write(path) as partial:
        style_truth(**options).to_parquet(partial, index=False)


def _validate(seed, authors, topics, topic_giveaway):
    bounds = {
        "seed": (seed, 0, 2**32),
        "authors": (authors, 2, 10**6),
        "topics": (topics, 2, len(TOPICS)),
        "topic_giveaway": (topic_giveaway, 0, 1),
    }
    for name, (value, low, high) in bounds.items():
        if not low <= value <= high:
            raise ValueError(f"{name} must lie in {low}..{high}, not {value!r}")


def _author(i, seed, topics, topic_giveaway) -> dict:
    """The habits of author ``i``."""
    rng = np.random.default_rng([seed, 0, i])
    row = {"author": f"demo-{i + 1:04d}", "casual": rng.standard_normal()}
    for name, (median, spread, loading) in [*TRAITS.items(), *((name, PAIR) for name in PAIRS)]:
        logit = (
            np.log(median / (1 - median))
            + STRENGTH * spread * rng.standard_normal()
            + loading * row["casual"]
        )
        row[name.lower()] = 1 / (1 + np.exp(-logit))
    for name, options in CHOICES.items():
        alpha = np.array(END_PRIOR if name == "end" else [1.0] * len(options))
        shares = rng.dirichlet(alpha * CONCENTRATION[name] / STRENGTH**2)
        row.update({f"{name}_{option}": share for option, share in zip(options, shares)})
    row["sentences"] = 1 + 1.1 * np.exp(0.5 * rng.standard_normal())
    row["hour_peak"] = rng.normal(19, 5) % 24
    row["hour_spread"] = rng.uniform(1.2, 2.8)
    row["hour_peak2"] = (row["hour_peak"] + rng.uniform(6, 18)) % 24
    row["hour_share2"] = rng.beta(1.5, 4)
    stay = rng.uniform(0.15, 0.4)
    begin = rng.uniform(-stay, 1)
    row["active_from"] = min(max(begin, 0.0), 1 - SHORTEST_STAY)
    row["active_to"] = max(min(begin + stay, 1.0), row["active_from"] + SHORTEST_STAY)
    start, end = _mixtures(rng, seed, topics, topic_giveaway)
    row.update({f"topic_start_{name}": share for name, share in zip(TOPICS, start)})
    row.update({f"topic_end_{name}": share for name, share in zip(TOPICS, end)})
    return row


def _mixtures(rng, seed, topics, giveaway):
    """Topic shares at both ends of the span."""
    common = np.random.default_rng([seed, 1]).dirichlet(np.full(topics, 4.0))
    if giveaway == 0:
        return common, common
    concentration = max(13 * (1 - giveaway) / giveaway, 0.02)

    def draw():
        return rng.dirichlet(np.maximum(concentration * common, 1e-3))

    start = end = draw()
    for _ in range(3):
        step = 0.2 * (1 - giveaway)
        end = (1 - step) * end + step * draw()
    return start, end


def _rows(who, counts, hostile, seed, topics, topic_giveaway, drops):
    """The posts of some authors, one author after the other; nothing is dropped."""
    first = np.cumsum(counts) - counts
    names = list(TOPICS)[:topics]
    for i in who:
        row, rng = _author(i, seed, topics, topic_giveaway), np.random.default_rng([seed, 4, i])
        time, at = _times(row, counts[i], rng)
        start, end = (
            np.array([row[f"topic_{side}_{name}"] for name in names]) for side in ("start", "end")
        )
        edges = np.cumsum(start + at[:, None] * (end - start), axis=1)
        drawn = (rng.random((len(at), 1)) * edges[:, -1:] > edges).sum(axis=1)
        topic = [names[k] for k in drawn.tolist()]
        text = Writer(row, names, rng).texts(topic)
        for post in hostile:
            if 0 <= post - first[i] < len(text):
                text[post - first[i]] += " <script>alert(1)</script>"
        yield from zip(repeat(row["author"]), time.tolist(), topic, text)


def _times(row, n, rng):
    """Sorted times in seconds, and the fraction of the span each lies at."""
    at = row["active_from"] + (row["active_to"] - row["active_from"]) * rng.random(n)
    second_peak = rng.random(n) < row["hour_share2"]
    hour = np.where(second_peak, row["hour_peak2"], row["hour_peak"]) + row[
        "hour_spread"
    ] * rng.standard_normal(n)
    day = np.minimum((at * DAYS).astype(np.int64), DAYS - 1)
    time = np.sort(START + day * 86_400 + (hour % 24 * 3600).astype(np.int64) % 86_400)
    return time, (time - START) / (DAYS * 86_400)
