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

    Pairs of one author are sampled evenly over the authors that have such pairs, so that prolific
    authors do not dominate; a pair that has come already counts once. Pairs of two authors are
    sampled uniformly. The same documents and seed give the same pairs.

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
        pairs = _draw(author, topic, kind, counts[kind], rng)
        pairs = rng.permuted(pairs, axis=1)
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
    """Sample distinct pairs (count, 2) of a kind, the lower row first.

    A document is sampled, then a second one of its author, of its topic, or any other, as the kind
    wants; pairs of other kinds are left out. The weights of the first documents make each author
    with a pair of the kind equally likely, or, for pairs of two authors, each pair.
    """
    same, same_topic = kind
    group = np.zeros_like(author)
    if same:
        group = author
    elif same_topic:
        group = topic
    size = np.bincount(group)
    begin = np.cumsum(size) - size
    order = np.argsort(group, kind="stable")
    weights = size[group].astype(float)
    if same:
        of_both = pd.Series(author).groupby([author, topic]).transform("size").to_numpy()
        partners = of_both - 1
        if not same_topic:
            partners = size[author] - of_both
        pairs_of_author = np.bincount(author, partners)[author]
        weights = np.where(partners > 0, weights / np.maximum(pairs_of_author, 1), 0)

    pairs = np.empty((0, 2), np.int64)
    while len(pairs) < count:
        first = rng.choice(len(group), 2 * count + 1000, p=weights / weights.sum())
        second = order[begin[group[first]] + rng.integers(size[group[first]])]
        is_kind = (author[first] == author[second]) == same
        is_kind &= (topic[first] == topic[second]) == same_topic
        is_kind &= first != second
        more = np.sort(np.stack([first, second], 1)[is_kind], 1)
        pairs = pd.DataFrame(np.concatenate([pairs, more])).drop_duplicates().to_numpy()
    return pairs[:count]


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
