"""Pairs of documents for verification (tyo2021 section 2.1.1).

A pair is of one author or of two, and on one topic or on two. PAN 2020 has only three of these four
kinds: no two texts of one author share a fandom, so a model may learn topics instead. The pairs
made here have all four kinds, as far as the documents allow. Authors must be split into train, dev
and test before documents are paired, never after.
"""

import math
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.special import comb

from ..core.parameters import Config

KIND_NAMES = {  # (same author, same topic)
    (True, True): "one author, one topic",
    (True, False): "one author, two topics",
    (False, True): "two authors, one topic",
    (False, False): "two authors, two topics",
}
KINDS = list(KIND_NAMES)
# kind of PairsConfig -> share of pairs of one author; shares on one topic, see make_pairs
SHARES = {
    "balanced": (0.5, 0.5),
    "natural": (0.5, None),
    # of PAN's 275,565 pairs 147,778 are of one author, and 23,131 others are on one topic (tyo2021)
    "pan": (147778 / 275565, {True: 0.0, False: 23131 / (275565 - 147778)}),
}


class PairsConfig(Config):
    """Settings of the pairs of documents that are compared.

    Parameters
    ----------
    kind : str
        "balanced": half of the same-author and half of the different-author pairs are on one topic;
        "natural": the shares on one topic are those that the documents have; "pan": the four kinds
        of pairs have their shares in PAN's large training set, where no pair of one author is on
        one topic; "given": PAN's own pairs. See :func:`make_pairs` and :func:`given_pairs`.
    dev, test : int
        number of pairs of each split; not used for "given", which takes all pairs.
    seed : int
        seed of the random choice of pairs.
    """

    kind: Literal["balanced", "natural", "pan", "given"] = "balanced"
    dev: int = Field(600, ge=20, le=10**8)
    test: int = Field(1000, ge=20, le=10**8)
    seed: int = Field(0, ge=0)

    @property
    def protocol(self) -> str:
        """The protocol under which results are recorded: "verification_given" for PAN's pairs."""
        if self.kind == "balanced":
            return "verification"
        return f"verification_{self.kind}"

    def pairs_of(self, tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """Make the pairs of "dev" and of "test" from tables of documents by split.

        Raises ValueError as :func:`make_pairs` or :func:`given_pairs`.
        """
        if self.kind == "given":
            return {split: given_pairs(tables[split]) for split in ("dev", "test")}
        counts = {"dev": self.dev, "test": self.test}
        return {
            split: make_pairs(tables[split], count, self.seed, *SHARES[self.kind])
            for split, count in counts.items()
        }


def make_pairs(
    documents: pd.DataFrame,
    count: int,
    seed: int = 0,
    same_share: float = 0.5,
    topic_share: float | dict[bool, float] | None = 0.5,
) -> pd.DataFrame:
    """Sample distinct pairs of documents at random, with given shares of one author and one topic.

    Pairs of one author are sampled evenly over the authors that have pairs left, so that prolific
    authors do not dominate. Pairs of two authors are sampled uniformly. The same documents and seed
    give the same pairs.

    Parameters
    ----------
    documents : frame
        a row for each document, with columns ``author`` and ``topic``.
    count : int
        number of pairs.
    seed : int
        seed of the random choice.
    same_share : float
        the share of the pairs that are of one author.
    topic_share : float or dict, optional
        the share of pairs on one topic, the same for pairs of one author and of two, so that the
        topic alone does not tell the kind. If the pairs of one author allow only another share,
        pairs of two authors take that share as well. A dict: the shares among pairs of one author
        (True) and of two (False). None: each kind has the share that all its possible pairs
        have, as in the "modified test" of tyo2021.

    Returns
    -------
    Columns ``first`` and ``second`` (row numbers of documents; which is first is random), ``same``
    and ``same_topic`` (whether author and topic are the same). Rows are in random order.

    Raises
    ------
    ValueError
        If authors or topics are missing, or if too few pairs are possible; the message says how
        many are.
    """
    if documents[["author", "topic"]].isna().any(axis=None):
        raise ValueError("every document needs an author and a topic")
    author = pd.factorize(documents["author"])[0]
    topic = pd.factorize(documents["topic"])[0]
    counts = _counts_by_kind(pair_capacity(documents), count, same_share, topic_share)
    rng = np.random.default_rng(seed)
    frames = []
    for kind in KINDS:
        pairs = np.stack(_draw(author, topic, kind, counts[kind], rng), 1)
        is_swapped = rng.random(len(pairs)) < 0.5
        pairs[is_swapped] = pairs[is_swapped, ::-1]
        frame = pd.DataFrame(pairs, columns=["first", "second"])
        frames.append(frame.assign(same=kind[0], same_topic=kind[1]))
    return pd.concat(frames).iloc[rng.permutation(count)].reset_index(drop=True)


def _counts_by_kind(capacity, count, same_share, topic_share):
    """Return how many pairs of each kind to sample."""
    count_of_one = round(count * same_share)
    counts = {}
    for same, wanted in ((True, count_of_one), (False, count - count_of_one)):
        possible = capacity[same, True] + capacity[same, False]
        if wanted > possible:
            authors = "one author" if same else "two authors"
            raise ValueError(f"{wanted} pairs of {authors} asked for, {possible} can be made")
        share = topic_share
        if share is None:
            share = capacity[same, True] / max(possible, 1)
        elif isinstance(share, dict):
            share = share[same]
        least = wanted - capacity[same, False]
        on_one_topic = min(max(round(wanted * share), least), capacity[same, True])
        counts[same, True] = on_one_topic
        counts[same, False] = wanted - on_one_topic
        if isinstance(topic_share, float) and wanted:
            topic_share = on_one_topic / wanted  # pairs of two authors get that of one
    return counts


def pair_capacity(documents: pd.DataFrame) -> dict[tuple[bool, bool], int]:
    """Count the different pairs that are possible, by kind: (same author, same topic)."""
    pairs = []  # of documents that agree in all of some columns
    for columns in (["author", "topic"], ["author"], ["topic"]):
        pairs.append(int(comb(documents.groupby(columns).size(), 2).sum()))
    of_both, of_author, on_topic = pairs
    of_neither = math.comb(len(documents), 2) - of_author - on_topic + of_both
    return dict(zip(KINDS, (of_both, of_author - of_both, on_topic - of_both, of_neither)))


def count_kinds(pairs: pd.DataFrame, documents: pd.DataFrame) -> pd.DataFrame:
    """Count the pairs of each kind, and how many pairs of the kind the documents allow.

    Parameters
    ----------
    pairs : frame
        pairs with columns ``same`` and ``same_topic``.
    documents : frame
        a row for each document, with columns ``author`` and ``topic``.

    Returns
    -------
    Columns ``pairs`` and ``possible``, a row for each of :data:`KIND_NAMES`.
    """
    counts = pairs.groupby(["same", "same_topic"]).size().reindex(KINDS, fill_value=0)
    table = pd.DataFrame({"pairs": counts, "possible": pd.Series(pair_capacity(documents))})
    return table.loc[KINDS].set_axis(KIND_NAMES.values())


def _draw(author, topic, kind, count, rng):
    """Sample distinct pairs of a kind, and return their first and their second documents.

    Pairs are numbered without listing them: the partners of the document in row i of an order are
    the rows from low[i] to high[i] - 1, and its pairs have the numbers up to ends[i] - 1. If only
    4 times as many pairs as wanted are numbered, or fewer, all are shuffled. Else some are sampled
    at a time until there are enough.
    """
    if not count:
        return np.empty((2, 0), np.int64)
    same, same_topic = kind
    order, low, high = _partners(author, topic, same, same_topic)
    author = author[order]
    topic = topic[order]
    ends = np.cumsum(high - low)
    numbers = np.empty(0, np.int64)
    while len(numbers) < count:
        if ends[-1] <= 4 * count:
            more = rng.permutation(ends[-1])
        elif same:
            taken = author[_rows(numbers, ends, high)[0]]
            more = _draw_by_author(author, high - low, taken, count, rng)
        else:
            more = rng.integers(ends[-1], size=2 * (count - len(numbers)) + 1000)
        first, second = _rows(more, ends, high)  # for two authors and two topics others as well
        is_kind = (author[first] == author[second]) == same
        is_kind &= (topic[first] == topic[second]) == same_topic
        numbers = pd.unique(np.concatenate([numbers, more[is_kind]]))
    if same and ends[-1] <= 4 * count:  # one pair of each author, then a second one, and so on
        turn = pd.Series(numbers).groupby(author[_rows(numbers, ends, high)[0]]).cumcount()
        numbers = numbers[np.argsort(turn, kind="stable")]
    first, second = _rows(numbers[:count], ends, high)
    return order[first], order[second]


def _rows(numbers, ends, high):
    """Return the rows of the first and of the second document of numbered pairs."""
    first = np.searchsorted(ends, numbers, side="right")
    return first, high[first] + numbers - ends[first]


def _draw_by_author(author, partners, taken, count, rng):
    """Sample an author with pairs left, then one of its pairs, which have consecutive numbers.

    With replacement, so numbers may repeat. ``taken`` are the authors of pairs that were drawn.
    """
    per_author = np.bincount(author, partners).astype(np.int64)
    is_left = per_author > np.bincount(taken, minlength=len(per_author))
    number = rng.choice(np.flatnonzero(is_left), 2 * (count - len(taken)) + 1000)
    begin = np.cumsum(per_author) - per_author
    return begin[number] + rng.integers(per_author[number])


def _partners(author, topic, same, same_topic):
    """Return an order of the documents, and the rows from low to high of each one's partners.

    These rows are exactly the partners of the kind, each pair once: those behind the document
    that agree with it in as much as the kind, and not in more. Only for two authors and two topics
    do they hold others as well; authors or topics are grouped, whichever leaves fewer others.
    """
    size = len(author)
    outer = author
    inner = topic
    if not same and (same_topic or _pairs_in_groups(topic) > _pairs_in_groups(author)):
        outer = topic
        inner = author
    if not same and not same_topic:
        inner = np.zeros_like(outer)
    group = outer * size + inner
    order = np.argsort(group, kind="stable")
    groups = [np.zeros(size), outer[order], group[order], np.arange(size)]
    agreeing = [same, same_topic].count(True)
    high = np.searchsorted(groups[agreeing], groups[agreeing], "right")  # behind each one's group
    low = np.searchsorted(groups[agreeing + 1], groups[agreeing + 1], "right")
    return order, low, high


def _pairs_in_groups(codes):
    return (np.bincount(codes) ** 2.0).sum()  # about twice as many


def given_pairs(documents: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs that the documents came in, in order of their first text.

    A pair of which one text is missing is left out. So is every later pair of a text that was in
    several pairs, unless the source was to keep repeats.

    Parameters
    ----------
    documents : frame
        a row for each document, with columns ``author``, ``topic`` and ``id``, which is <pair>/a or
        <pair>/b.

    Returns
    -------
    The columns of :func:`make_pairs`.

    Raises
    ------
    ValueError
        If ids are missing, an id repeats, or no two ids form a pair.
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
