"""Pairs of documents for verification (tyo2021 section 2.1.1).

A pair is of one author or of two, and on one topic or on two. PAN 2020 has only three of these four kinds: no two
texts of one author share a fandom, so a model may learn topics instead. The pairs made here have all four kinds, as
far as the documents allow. Authors must be split into train, dev and test before documents are paired, never after.
"""

from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from helpers.core.config import Config

KINDS = [(True, True), (True, False), (False, True), (False, False)]  # same author, same topic
KIND_NAMES = {
    (True, True): "one author, one topic",
    (True, False): "one author, two topics",
    (False, True): "two authors, one topic",
    (False, False): "two authors, two topics",
}


class PairsConfig(Config):
    """Say which pairs of a run's documents are judged.

    kind : "balanced", of both kinds equally many on one topic; "natural", as the documents have them; or "given", PAN's
    own. See :func:`make_pairs` and :func:`given_pairs`. dev, test : the number of pairs; given pairs are all taken.
    """

    kind: Literal["balanced", "natural", "given"] = "balanced"
    dev: int = Field(600, ge=20)
    test: int = Field(1000, ge=20)
    seed: int = Field(0, ge=0)

    def pairs_of(self, tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """Make the pairs of "dev" and "test" from tables of documents by split; raises as the functions below."""
        if self.kind == "given":
            return {split: given_pairs(tables[split]) for split in ("dev", "test")}
        share = 0.5 if self.kind == "balanced" else None
        return {split: make_pairs(tables[split], getattr(self, split), self.seed, topic_share=share)
                for split in ("dev", "test")}  # fmt: skip


def make_pairs(documents: pd.DataFrame, count: int, seed: int = 0, same_share: float = 0.5,
               topic_share: float | None = 0.5) -> pd.DataFrame:  # fmt: skip
    """Draw ``count`` different pairs of documents, with even shares of author and topic where the documents allow it.

    Pairs of one author are drawn evenly from the authors, as long as each has pairs left, so that prolific authors do
    not dominate. Pairs of two authors are drawn uniformly. The result depends on the seed only.

    Parameters
    ----------
    documents : columns ``author`` and ``topic``, one row a document.
    same_share : the share of the pairs that are of one author.
    topic_share : the share of pairs on one topic, the same for pairs of one author and of two, so that the topic alone
        does not tell who wrote. If the documents have too few pairs of one author, both kinds take the share that is
        possible. None: the share that the documents have, for each kind by itself, as in PAN's own pairs and in the
        "modified test" of tyo2021.

    Returns
    -------
    Columns ``first``, ``second`` (row numbers of documents, in random order), ``same`` and ``same_topic``; rows
    shuffled.

    Raises ValueError if authors or topics are missing, or if too few pairs are possible (it says how many).
    """
    if documents[["author", "topic"]].isna().any(axis=None):
        raise ValueError("every document needs an author and a topic")
    if not (count >= 0 and 0 <= same_share <= 1 and 0 <= (topic_share or 0) <= 1):
        raise ValueError(f"count {count} must not be negative, same_share {same_share} and topic_share {topic_share} "
                         "must lie in [0, 1]")  # fmt: skip
    author, topic = (pd.factorize(documents[name])[0] for name in ("author", "topic"))
    room = pair_capacity(documents)
    of_one = round(count * same_share)
    counts = {}
    for same, number in ((True, of_one), (False, count - of_one)):
        there = room[same, True] + room[same, False]
        if number > there:
            whose = "one author" if same else "two authors"
            raise ValueError(f"{number} pairs of {whose} asked for, {there} can be made")
        share = room[same, True] / max(there, 1) if topic_share is None else topic_share
        within = min(max(round(number * share), number - room[same, False]), room[same, True])
        counts[same, True], counts[same, False] = within, number - within
        if same and topic_share is not None and of_one:
            topic_share = within / of_one
    rng = np.random.default_rng(seed)
    frames = []
    for kind in KINDS:
        first, second = _draw(author, topic, kind, counts[kind], rng)
        swap = rng.random(len(first)) < 0.5
        frames.append(pd.DataFrame({"first": np.where(swap, second, first), "second": np.where(swap, first, second),
                                    "same": kind[0], "same_topic": kind[1]}))  # fmt: skip
    return pd.concat(frames).iloc[rng.permutation(count)].reset_index(drop=True)


def pair_capacity(documents: pd.DataFrame) -> dict[tuple[bool, bool], int]:
    """Count the different pairs that are possible, by kind: (same author, same topic)."""

    def within(columns):
        sizes = documents.groupby(columns, sort=False).size().to_numpy(np.int64)
        return int((sizes * (sizes - 1) // 2).sum())

    both, author, topic = within(["author", "topic"]), within(["author"]), within(["topic"])
    every = len(documents) * (len(documents) - 1) // 2
    return dict(zip(KINDS, (both, author - both, topic - both, every - author - topic + both)))


def count_kinds(pairs: pd.DataFrame, documents: pd.DataFrame) -> pd.DataFrame:
    """Count the ``pairs`` of each kind, and all ``possible`` ones of the documents; indexed by :data:`KIND_NAMES`."""
    counts = pairs.groupby(["same", "same_topic"]).size().reindex(KINDS, fill_value=0)
    table = pd.DataFrame({"pairs": counts, "possible": pd.Series(pair_capacity(documents))}).loc[
        KINDS
    ]
    return table.set_axis(KIND_NAMES.values())


def _draw(author, topic, kind, count, rng):
    """``count`` different pairs of a kind, (first, second).

    In an order that puts authors (or topics) together the partners of document i are the later rows low[i] to high[i].
    That numbers all pairs of the kind, and numbers are drawn: all of them shuffled where there are few more than
    ``count``, else some at a time until there are enough.
    """
    if not count:
        return np.empty((2, 0), np.int64)
    same, same_topic = kind
    order, low, high = _partners(author, topic, same, same_topic)
    room = np.maximum(high - low, 0)
    ends = np.cumsum(room)
    a, t = author[order], topic[order]

    def pair(number):
        i = np.searchsorted(ends, number, side="right")
        return i, low[i] + number - (ends[i] - room[i])

    def is_kind(number):
        i, j = pair(number)
        return ((a[i] == a[j]) == same) & ((t[i] == t[j]) == same_topic)

    drawn = np.empty(0, np.int64)
    if ends[-1] <= 4 * count:
        drawn = rng.permutation(ends[-1])
        drawn = drawn[is_kind(drawn)]
        if same:  # one of each author, then a second of each ...
            turn = pd.Series(drawn).groupby(a[pair(drawn)[0]]).cumcount()
            drawn = drawn[np.argsort(turn, kind="stable")]
    if same:  # the pairs of an author have numbers in a row
        begin = np.append(0, ends)[np.unique(a, return_index=True)[1]]
        per_author = np.diff(np.append(begin, ends[-1]))
    while len(drawn) < count:
        size = 2 * (count - len(drawn)) + 1000
        if same:  # an author with pairs left, then one of its pairs
            used = np.bincount(a[pair(drawn)[0]], minlength=len(per_author))
            chosen = rng.choice(np.flatnonzero(per_author > used), size)
            number = begin[chosen] + rng.integers(per_author[chosen])
        else:
            number = rng.integers(ends[-1], size=size)
        drawn = pd.unique(np.concatenate([drawn, number[is_kind(number)]]))
    first, second = pair(drawn[:count])
    return order[first], order[second]


def _partners(author, topic, same, same_topic):
    """An order of the documents, and in it for each the rows from low to high that hold its partners.

    They hold nothing else, but for two authors and two topics: then the groups leave as few others as they can.
    """
    size = len(author)
    if not (same or same_topic):
        groups = max((author, topic), key=lambda codes: (np.bincount(codes) ** 2.0).sum())
        order = np.argsort(groups, kind="stable")
        return order, _run_ends(groups[order]), np.full(size, size)
    first, second = (author, topic) if same else (topic, author)
    order = np.lexsort((second, first))
    outer, inner = _run_ends(first[order]), _run_ends(second[order])
    if same and same_topic:
        return order, np.arange(1, size + 1), np.minimum(outer, inner)
    return order, inner, outer  # where the inner run goes on in the next group there is no partner


def _run_ends(codes):
    """For each element the end of its run of equal ones."""
    last = np.append(codes[1:] != codes[:-1], True)
    edges = np.flatnonzero(last) + 1
    return edges[np.cumsum(last) - last]


def given_pairs(documents: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs that the documents came in, in the form of :func:`make_pairs`, in order of their first text.

    documents : columns ``author``, ``topic``, ``id`` (<pair>/a and <pair>/b). A text that was in several pairs is in
    the first of them only; the other pairs are left out. Raises ValueError if an id is there twice, or if no two ids
    form a pair.
    """
    if "id" not in documents or documents["id"].duplicated().any():
        raise ValueError(
            "given pairs need documents with an id each, as notebook 01 keeps them without pseudonyms"
        )
    name = documents["id"].str.extract(r"^(?P<pair>.*)/(?P<side>[ab])$")
    sides = [
        name[name.side == side].reset_index(names=place)
        for side, place in (("a", "first"), ("b", "second"))
    ]
    pairs = sides[0].merge(sides[1], on="pair")[["first", "second"]]
    if pairs.empty:
        raise ValueError(
            "no two documents are of one given pair: their ids must be <pair>/a and <pair>/b"
        )
    one, other = (documents[["author", "topic"]].to_numpy()[pairs[place]] for place in pairs)
    return pairs.assign(same=one[:, 0] == other[:, 0], same_topic=one[:, 1] == other[:, 1])
