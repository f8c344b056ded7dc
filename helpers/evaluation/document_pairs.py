"""Pairs of documents for verification (tyo2021 section 2.1.1).

A pair is of one author or of two, and on one topic or on two. PAN 2020 has only three of these four
kinds: no two texts of one author share a fandom, so a model may learn topics instead. The pairs
made here have all four kinds, as far as the documents allow. Authors must be split into train, dev
and test before documents are paired, never after.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from helpers.core.config import Config

KIND_NAMES = {  # (same author, same topic)
    (True, True): "one author, one topic",
    (True, False): "one author, two topics",
    (False, True): "two authors, one topic",
    (False, False): "two authors, two topics",
}
KINDS = list(KIND_NAMES)


class PairsConfig(Config):
    """Say which pairs of a run's documents are judged.

    Parameters
    ----------
    kind : str
        "balanced", of both kinds equally many on one topic; "natural", as the documents have them;
        or "given", PAN's own. See :func:`make_pairs` and :func:`given_pairs`.
    dev, test : int
        the number of pairs; given pairs are all taken.
    seed : int
        of the draw.
    """

    kind: Literal["balanced", "natural", "given"] = "balanced"
    dev: int = Field(600, ge=20)
    test: int = Field(1000, ge=20)
    seed: int = Field(0, ge=0)

    def pairs_of(self, tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """Make the pairs of "dev" and "test" from tables of documents by split.

        Raises ValueError as :func:`make_pairs` and :func:`given_pairs`.
        """
        if self.kind == "given":
            return {split: given_pairs(tables[split]) for split in ("dev", "test")}
        share = 0.5 if self.kind == "balanced" else None
        return {
            split: make_pairs(tables[split], count, self.seed, topic_share=share)
            for split, count in (("dev", self.dev), ("test", self.test))
        }


def make_pairs(
    documents: pd.DataFrame,
    count: int,
    seed: int = 0,
    same_share: float = 0.5,
    topic_share: float | None = 0.5,
) -> pd.DataFrame:
    """Draw different pairs of documents, with even shares of author and topic where they allow it.

    Pairs of one author are drawn evenly from the authors, as long as each has pairs left, so that
    prolific authors do not dominate. Pairs of two authors are drawn uniformly. The result depends
    on the seed only.

    Parameters
    ----------
    documents : frame
        columns ``author`` and ``topic``, one row a document.
    count : int
        of the pairs.
    seed : int
        of the draw.
    same_share : float
        the share of the pairs that are of one author.
    topic_share : float, optional
        the share of pairs on one topic, the same for pairs of one author and of two, so that the
        topic alone does not tell who wrote. If the documents have too few pairs of one author, both
        kinds take the share that is possible. None: the share that the documents have, for each
        kind by itself, as in PAN's own pairs and in the "modified test" of tyo2021.

    Returns
    -------
    Columns ``first``, ``second`` (row numbers of documents, in random order), ``same`` and
    ``same_topic``; rows shuffled.

    Raises
    ------
    ValueError
        If authors or topics are missing, or if too few pairs are possible (it says how many).
    """
    if documents[["author", "topic"]].isna().any(axis=None):
        raise ValueError("every document needs an author and a topic")
    if not (count >= 0 and 0 <= same_share <= 1 and 0 <= (topic_share or 0) <= 1):
        raise ValueError(
            f"count {count} must not be negative, same_share {same_share} and topic_share "
            f"{topic_share} must lie in [0, 1]"
        )
    author = pd.factorize(documents["author"])[0]
    topic = pd.factorize(documents["topic"])[0]
    counts = _counts_by_kind(pair_capacity(documents), count, same_share, topic_share)
    rng = np.random.default_rng(seed)
    frames = []
    for kind in KINDS:
        first, second = _draw(author, topic, kind, counts[kind], rng)
        is_swapped = rng.random(len(first)) < 0.5
        pairs = pd.DataFrame({"first": np.where(is_swapped, second, first)})
        pairs["second"] = np.where(is_swapped, first, second)
        frames.append(pairs.assign(same=kind[0], same_topic=kind[1]))
    return pd.concat(frames).iloc[rng.permutation(count)].reset_index(drop=True)


def _counts_by_kind(capacity, count, same_share, topic_share):
    """Return how many pairs of each kind to draw."""
    count_of_one = round(count * same_share)
    counts = {}
    for same, wanted in ((True, count_of_one), (False, count - count_of_one)):
        possible = capacity[same, True] + capacity[same, False]
        if wanted > possible:
            authors = "one author" if same else "two authors"
            raise ValueError(f"{wanted} pairs of {authors} asked for, {possible} can be made")
        share = topic_share
        if topic_share is None:
            share = capacity[same, True] / max(possible, 1)
        on_one_topic = max(round(wanted * share), wanted - capacity[same, False])
        on_one_topic = min(on_one_topic, capacity[same, True])
        counts[same, True] = on_one_topic
        counts[same, False] = wanted - on_one_topic
        if same and topic_share is not None and count_of_one:
            topic_share = on_one_topic / count_of_one  # of pairs of two authors, too
    return counts


def pair_capacity(documents: pd.DataFrame) -> dict[tuple[bool, bool], int]:
    """Count the different pairs that are possible, by kind: (same author, same topic)."""
    total = len(documents) * (len(documents) - 1) // 2
    of_author = _pairs_within(documents, ["author"])
    on_topic = _pairs_within(documents, ["topic"])
    of_both = _pairs_within(documents, ["author", "topic"])
    of_neither = total - of_author - on_topic + of_both
    return dict(zip(KINDS, (of_both, of_author - of_both, on_topic - of_both, of_neither)))


def _pairs_within(documents, columns):
    sizes = documents.groupby(columns, sort=False).size().to_numpy(np.int64)
    return int((sizes * (sizes - 1) // 2).sum())


def count_kinds(pairs: pd.DataFrame, documents: pd.DataFrame) -> pd.DataFrame:
    """Count the pairs of each kind, and all possible ones of the documents.

    Parameters
    ----------
    pairs : frame
        columns ``same`` and ``same_topic``.
    documents : frame
        columns ``author`` and ``topic``.

    Returns
    -------
    Columns ``pairs`` and ``possible``, a row for each of :data:`KIND_NAMES`.
    """
    counts = pairs.groupby(["same", "same_topic"]).size().reindex(KINDS, fill_value=0)
    table = pd.DataFrame({"pairs": counts, "possible": pd.Series(pair_capacity(documents))})
    return table.loc[KINDS].set_axis(KIND_NAMES.values())


@dataclass(frozen=True)
class _NumberedPairs:
    """Number all pairs of a kind, and few others, without listing them.

    Documents are ordered so that authors (or topics) stand together; then the partners of document
    i are rows in a row, from ``first_partner[i]`` on, and its pairs have the numbers ``begins[i]``
    to ``ends[i] - 1``.
    """

    kind: tuple[bool, bool]
    author: np.ndarray
    topic: np.ndarray
    first_partner: np.ndarray
    begins: np.ndarray
    ends: np.ndarray

    def rows(self, numbers):
        """Return both documents of pairs, by their rows in the order."""
        first = np.searchsorted(self.ends, numbers, side="right")
        return first, self.first_partner[first] + numbers - self.begins[first]

    def of_kind(self, numbers):
        """Return the numbers whose pairs are of the kind."""
        first, second = self.rows(numbers)
        same = self.author[first] == self.author[second]
        same_topic = self.topic[first] == self.topic[second]
        return numbers[(same == self.kind[0]) & (same_topic == self.kind[1])]

    def authors(self, numbers):
        """Return the author of each pair's first document."""
        return self.author[self.rows(numbers)[0]]


def _draw(author, topic, kind, count, rng):
    """Draw different pairs of a kind, (first, second).

    Where there are few more than ``count``, all are shuffled, else some are drawn at a time until
    there are enough.
    """
    if not count:
        return np.empty((2, 0), np.int64)
    same, same_topic = kind
    order, low, high = _partners(author, topic, same, same_topic)
    partners = np.maximum(high - low, 0)
    ends = np.cumsum(partners)
    pairs = _NumberedPairs(kind, author[order], topic[order], low, ends - partners, ends)
    total = ends[-1]
    numbers = np.empty(0, np.int64)
    if total <= 4 * count:
        numbers = pairs.of_kind(rng.permutation(total))
        if same:  # one of each author, then a second of each ...
            turn = pd.Series(numbers).groupby(pairs.authors(numbers)).cumcount()
            numbers = numbers[np.argsort(turn, kind="stable")]
    while len(numbers) < count:
        size = 2 * (count - len(numbers)) + 1000
        if same:
            more = _draw_by_author(pairs, numbers, size, rng)
        else:
            more = rng.integers(total, size=size)
        numbers = pd.unique(np.concatenate([numbers, pairs.of_kind(more)]))
    first, second = pairs.rows(numbers[:count])
    return order[first], order[second]


def _draw_by_author(pairs, drawn_numbers, size, rng):
    """Draw an author with pairs left, then one of its pairs: they have numbers in a row."""
    first_row = np.unique(pairs.author, return_index=True)[1]
    begin = pairs.begins[first_row]
    per_author = np.diff(np.append(begin, pairs.ends[-1]))
    used = np.bincount(pairs.authors(drawn_numbers), minlength=len(per_author))
    author = rng.choice(np.flatnonzero(per_author > used), size)
    return begin[author] + rng.integers(per_author[author])


def _partners(author, topic, same, same_topic):
    """Return an order of the documents, and the rows from low to high of each one's partners.

    The rows hold nothing else, but for two authors and two topics: then the groups leave as few
    others as they can.
    """
    size = len(author)
    if not (same or same_topic):
        groups = max((author, topic), key=_pairs_in_groups)
        order = np.argsort(groups, kind="stable")
        return order, _run_ends(groups[order]), np.full(size, size)
    outer, inner = (author, topic) if same else (topic, author)
    order = np.lexsort((inner, outer))
    outer_ends = _run_ends(outer[order])
    inner_ends = _run_ends(inner[order])
    if same and same_topic:
        return order, np.arange(1, size + 1), np.minimum(outer_ends, inner_ends)
    # where the inner run goes on in the next group there is no partner
    return order, inner_ends, outer_ends


def _pairs_in_groups(codes):
    return (np.bincount(codes) ** 2.0).sum()


def _run_ends(codes):
    """Return for each element the end of its run of equal ones."""
    is_last = np.append(codes[1:] != codes[:-1], True)
    ends = np.flatnonzero(is_last) + 1
    run = np.cumsum(is_last) - is_last
    return ends[run]


def given_pairs(documents: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs that the documents came in, in order of their first text.

    A text that was in several pairs is in the first of them only; the other pairs are left out.

    Parameters
    ----------
    documents : frame
        columns ``author``, ``topic``, ``id`` (<pair>/a and <pair>/b).

    Returns
    -------
    Columns as those of :func:`make_pairs`.

    Raises
    ------
    ValueError
        If an id is there twice, or if no two ids form a pair.
    """
    if "id" not in documents or documents["id"].duplicated().any():
        raise ValueError(
            "given pairs need documents with an id each, as notebook 01 keeps them without "
            "pseudonyms"
        )
    name = documents["id"].str.extract(r"^(?P<pair>.*)/(?P<side>[ab])$")
    first = name[name.side == "a"].reset_index(names="first")
    second = name[name.side == "b"].reset_index(names="second")
    pairs = first.merge(second, on="pair")[["first", "second"]]
    if pairs.empty:
        raise ValueError(
            "no two documents are of one given pair: their ids must be <pair>/a and <pair>/b"
        )
    author = documents.author.to_numpy()
    topic = documents.topic.to_numpy()
    same = author[pairs["first"]] == author[pairs["second"]]
    same_topic = topic[pairs["first"]] == topic[pairs["second"]]
    return pairs.assign(same=same, same_topic=same_topic)
