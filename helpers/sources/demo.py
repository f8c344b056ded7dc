"""The demo corpus: a generated discussion forum whose authors' habits are known.

The demo corpus is a measuring instrument: its posts are filled sentence patterns, so a result on it
shows how a model uses style, hour and topic, and not how well the model recognises real people.
:func:`style_truth` gives each author's habits. Tests keep the difficulty within bounds: they rank
140 authors, 16 posts against 16 posts each, by words, by hour and by topic.

Each habit is a column of the truth table. An author's habits are sampled from the seed and the
author's number alone, so they do not depend on the other authors:

- ``casual``: normal(0, 1). It shifts those traits below that have a loading on it.
- one probability per name in ``demo_writer.TRAITS`` and ``PAIRS``: inverse logit of a normal
  (median, spread, loading on ``casual``). A pair's probability is that of its second form. Habits
  of words take all values between 0 and 1. Habits of marks, of capitals and of the order of a
  sentence's parts, which a bag of words does not show, are often near 0 or 1.
- ``<choice>_<option>`` for each of ``demo_writer.CHOICES``: shares that add up to 1, sampled from
  a Dirichlet distribution.
- ``sentences``: mean number of sentences of a post, 1 + log-normal (median 1.1); a post has 1 to 5.
- ``hour_peak``, ``hour_spread``, ``hour_peak2``, ``hour_share2``: a post's hour (UTC) comes from a
  normal about the first peak or, with probability ``hour_share2``, about the second, both wrapped
  at 24 hours.
- ``active_from``, ``active_to``: fractions of the corpus's span of time between which the author
  posts; 0.15 to 0.4 of the span, less where it was cut at the span's ends.
- ``topic_start_<topic>``, ``topic_end_<topic>``: shares of topics on the first and the last day of
  the span; between them the mixture moves linearly. The end is the start after three small random
  steps towards other Dirichlet mixtures.
"""

from functools import partial
from itertools import repeat
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.artifacts import atomic_write
from . import Part
from .demo_writer import CHOICES, LEXICON, PAIRS, TOPICS, TRAITS, Writer

START = 1_640_995_200  # 2022-01-01 UTC, in seconds
DAYS = 730  # length of the span, two years
PARTS = 6  # most parts

STYLE_STRENGTH = 0.87  # how far apart the authors' styles lie; calibrated on the tests
# shortest time that an author posts, as a share of the span, even if it began before the span
MIN_STAY = 0.12
# of options, which open_source() checks
BOUNDS = {"authors": (2, 10**6), "topics": (2, len(TOPICS)), "topic_giveaway": (0, 1)}
# appended to two posts, to test that pages escape what posts hold
HOSTILE_TAIL = " <script>alert(1)</script>"


def parts(
    location: str | list[str] = "",
    *,
    seed: int = 0,
    authors: int = 1200,
    posts: int = 80_000,
    topics: int = 24,
    topic_giveaway: float = 0.5,
) -> list[Part]:
    """Return at most PARTS parts, each with some authors; the posts depend on the options alone.

    Parameters
    ----------
    location : str
        must be empty: nothing is read
    seed : int
        seed of all random numbers
    authors : int
        number of authors, 2 or more
    posts : int
        total number of posts, at least five per author; the authors' numbers are log-normal
    topics : int
        number of topics, 2 to 24
    topic_giveaway : float
        how much an author's topics tell about the author, 0 to 1, see :func:`style_truth`

    Raises
    ------
    ValueError
        An option is out of range, or a location is given.
    """
    if location:
        raise ValueError(f"source 'demo' is generated: location must be empty, not {location!r}")
    if not posts >= 5 * authors:
        raise ValueError(f"posts must be at least five per author ({5 * authors}), not {posts!r}")

    # posts per author, exactly ``posts`` in all: log-normal (sigma 0.45), and raised to 0.42 of the
    # mean, which is 40% or more of it after the shares are scaled to their sum
    weights = np.exp(0.45 * np.random.default_rng([seed, 2]).standard_normal(authors))
    share = np.maximum(weights / weights.mean(), 0.42)
    ends = np.rint(np.cumsum(share) / share.sum() * posts).astype(int)
    hostile_posts = np.random.default_rng([seed, 3]).choice(posts, 2, replace=False)

    demo_parts = []
    for numbers in np.array_split(np.arange(authors), min(PARTS, authors)):
        name = f"authors-{numbers[0] + 1:04d}-{numbers[-1] + 1:04d}"
        rows = partial(_rows, numbers.tolist(), ends, hostile_posts, (seed, topics, topic_giveaway))
        demo_parts.append(Part(name, rows))
    return demo_parts


def style_truth(
    seed: int = 0, authors: int = 1200, topics: int = 24, topic_giveaway: float = 0.5
) -> pd.DataFrame:
    """Return a table with one row per author and one column per habit (see the module).

    Parameters
    ----------
    seed : int
        seed of all random numbers
    authors : int
        number of authors, 2 or more
    topics : int
        number of topics, 2 to 24
    topic_giveaway : float
        g: with 0 all authors have the same mixture of topics, with 1 each has nearly one topic
        alone; in between mixtures are sampled from a Dirichlet distribution about the common
        mixture with concentration ``13 (1 - g) / g``
    """
    return pd.DataFrame(
        [_author_habits(number, seed, topics, topic_giveaway) for number in range(authors)]
    )


def write_style_truth(path: Path, posts: int = 0, **options) -> None:
    """Write the table of :func:`style_truth` as a Parquet file, whole or not at all.

    Parameters
    ----------
    path : Path
        path of the Parquet file
    posts : int
        ignored, so that the options of :func:`parts` can be passed on: habits do not depend on it
    **options
        arguments of :func:`style_truth`
    """
    with atomic_write(path) as partial_path:
        style_truth(**options).to_parquet(partial_path, index=False)


def _author_habits(number, seed, topics, topic_giveaway):
    """Return the row of the truth table of the author with a number."""
    rng = np.random.default_rng([seed, 0, number])
    row = {"author": f"demo-{number + 1:04d}", "casual": rng.standard_normal()}
    traits = TRAITS | dict.fromkeys(PAIRS, LEXICON["pair_trait"])
    for name, (median, spread, loading) in traits.items():
        logit = (
            np.log(median / (1 - median))
            + STYLE_STRENGTH * spread * rng.standard_normal()
            + loading * row["casual"]
        )
        row[name.lower()] = 1 / (1 + np.exp(-logit))

    for name, options in CHOICES.items():
        prior = np.array(LEXICON["end_prior"]) if name == "end" else np.ones(len(options))
        shares = rng.dirichlet(prior * LEXICON["concentration"][name] / STYLE_STRENGTH**2)
        row |= _named(f"{name}_", options, shares)

    row["sentences"] = 1 + 1.1 * np.exp(0.5 * rng.standard_normal())
    row["hour_peak"] = rng.normal(19, 5) % 24
    row["hour_spread"] = rng.uniform(1.2, 2.8)
    row["hour_peak2"] = (row["hour_peak"] + rng.uniform(6, 18)) % 24
    row["hour_share2"] = rng.beta(1.5, 4)
    stay = rng.uniform(0.15, 0.4)
    begin = rng.uniform(-stay, 1)
    row["active_from"] = min(max(begin, 0.0), 1 - MIN_STAY)
    row["active_to"] = max(min(begin + stay, 1.0), row["active_from"] + MIN_STAY)

    start, end = _topic_mixtures(rng, seed, topics, topic_giveaway)
    return row | _named("topic_start_", TOPICS, start) | _named("topic_end_", TOPICS, end)


def _named(prefix, names, shares):
    """Return the shares as a dict; a key is the prefix and a name."""
    return {f"{prefix}{name}": share for name, share in zip(names, shares)}


def _topic_mixtures(rng, seed, topics, giveaway):
    """Sample an author's shares of topics at the start and at the end of the span."""
    common = np.random.default_rng([seed, 1]).dirichlet(np.full(topics, 4.0))
    if giveaway == 0:
        return common, common
    concentration = max(13 * (1 - giveaway) / giveaway, 0.02)
    alpha = np.maximum(concentration * common, 1e-3)
    start = rng.dirichlet(alpha)
    end = start
    step = 0.2 * (1 - giveaway)
    for _ in range(3):
        end = (1 - step) * end + step * rng.dirichlet(alpha)
    return start, end


def _rows(numbers, ends, hostile_posts, options, drops):
    """Yield the posts of some authors, one author after the other; nothing is dropped.

    Parameters
    ----------
    numbers : list of int
        numbers of the authors whose posts are yielded
    ends : (authors,) int
        total number of posts of the authors up to and including each author, over all authors
    hostile_posts : (2,) int
        numbers, in the whole corpus, of the posts that get HOSTILE_TAIL
    options : tuple
        seed, number of topics, topic_giveaway
    drops : Counter
        ignored
    """
    seed, topics, topic_giveaway = options
    topic_names = list(TOPICS)[:topics]
    counts = np.diff(ends, prepend=0)
    for number in numbers:
        row = _author_habits(number, seed, topics, topic_giveaway)
        rng = np.random.default_rng([seed, 4, number])
        time = _times(row, counts[number], rng)
        post_topics = _topics(row, topic_names, (time - START) / (DAYS * 86_400), rng)
        texts = Writer(row, topic_names, rng).texts(post_topics)
        for post in hostile_posts - (ends[number] - counts[number]):
            if 0 <= post < len(texts):
                texts[post] += HOSTILE_TAIL
        yield from zip(repeat(row["author"]), time.tolist(), post_topics, texts)


def _topics(row, topic_names, fraction, rng):
    """Sample a topic for each post from the author's mixture at the post's fraction of the span."""
    start = np.array([row[f"topic_start_{name}"] for name in topic_names])
    end = np.array([row[f"topic_end_{name}"] for name in topic_names])
    edges = np.cumsum(start + fraction[:, None] * (end - start), axis=1)
    positions = rng.random((len(fraction), 1)) * edges[:, -1:]
    return [topic_names[topic] for topic in (positions > edges).sum(axis=1)]


def _times(row, n_posts, rng):
    """Sample the times of an author's posts, in seconds since 1970, sorted."""
    stay = row["active_to"] - row["active_from"]
    fraction = row["active_from"] + stay * rng.random(n_posts)
    is_second_peak = rng.random(n_posts) < row["hour_share2"]
    peak = np.where(is_second_peak, row["hour_peak2"], row["hour_peak"])
    hour = peak + row["hour_spread"] * rng.standard_normal(n_posts)
    day = np.minimum((fraction * DAYS).astype(np.int64), DAYS - 1)
    return np.sort(START + day * 86_400 + (hour % 24 * 3600).astype(np.int64) % 86_400)
