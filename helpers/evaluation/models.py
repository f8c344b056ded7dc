"""Models: one or several encoders, with normalised scores and weights, that score trials.

A baseline is a model of one member. A fusion is a model of several members, and so is the encoder
that ships. Wherever a model is asked for, an encoder or a member may be given instead, see
:func:`as_model`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np

from helpers.encoders.base import Encoder
from helpers.encoders.tfidf import TfidfEncoder
from helpers.evaluation.embeddings import Embeddings
from helpers.evaluation.score_norm import (
    cohort_statistics,
    gallery_statistics,
    s_norm,
    s_norm_pairs,
    statistics,
)
from helpers.evaluation.scores import Rows, cosine, fuse, pair_scores, round_scores, score_blocks
from helpers.tokens.batch import Samples

# slices of queries, each with the scores of these queries
Blocks = Iterator[tuple[slice, np.ndarray]]


@dataclass(frozen=True, eq=False)
class GalleryTfidf:
    """A TF-IDF that is fitted on the targets of each gallery: terms and idf are the gallery's.

    Attributes
    ----------
    kind : one of :data:`helpers.encoders.tfidf.WEIGHTINGS`
    tokenizer : tokenizer of the stores
    """

    kind: str
    tokenizer: object

    def fit(self, targets: Samples, max_tokens: int) -> TfidfEncoder:
        """Fit a TF-IDF on the targets of a gallery.

        Parameters
        ----------
        targets : T samples
        max_tokens : tokens read of each post
        """
        return TfidfEncoder(self.kind, self.tokenizer).fit(targets, max_tokens)


@dataclass(frozen=True, eq=False)
class Gallery:
    """The embedded targets of one member, with their statistics, to score queries against.

    Attributes
    ----------
    encoder : the member's encoder; where each gallery fits its own, the one fitted on these targets
    rows : (T, D) rows of the targets
    statistics : (2, T) statistics of the targets, see :mod:`helpers.evaluation.score_norm`; None
        for raw scores
    cohort : (C, D) rows of the cohort, for AS-norm; None for s-norm by the gallery
    reference : (T,) bool, targets from whose scores the statistics of s-norm are computed; None for
        all targets
    """

    encoder: Encoder
    rows: Rows
    statistics: np.ndarray | None = None
    cohort: Rows | None = None
    reference: np.ndarray | None = None

    @property
    def unit(self) -> bool:
        """Whether rows are compared by product, else by Euclidean distance."""
        return getattr(self.encoder, "unit", True)

    def scores(self, queries: Rows, own_column: np.ndarray | None = None) -> Blocks:
        """Yield blocks of normalised scores.

        Parameters
        ----------
        queries : (Q, D) rows of the queries
        own_column : (Q,), for each query its index among the targets, or -1 if it is none. Such a
            query is normalised by that target's statistics, which leave out its score with itself.
            Ignored with a cohort and without s-norm.

        Yields
        ------
        A slice of q queries, and their scores (q, T) float32; the next block overwrites this array.
        """
        blocks = score_blocks(queries, self.rows, self.unit)
        if self.statistics is None:
            yield from blocks
            return
        if self.cohort is not None:
            of_queries = cohort_statistics(queries, self.cohort, self.unit)
        for part, scores in blocks:
            if self.cohort is not None:
                of_block = of_queries[:, part]
            else:
                of_block = self._statistics(scores)
                if own_column is not None:
                    column = own_column[part]
                    of_block = np.where(column < 0, of_block, self.statistics[:, column])
            yield part, s_norm(scores, of_block, self.statistics)

    def pair_scores(self, queries: Rows, pairs: np.ndarray) -> np.ndarray:
        """Return normalised scores (N,) of listed pairs.

        Parameters
        ----------
        queries : (Q, D) rows of the queries
        pairs : (N, 2), row of the query and row of the target
        """
        scores = pair_scores(queries, self.rows, pairs, self.unit)
        if self.statistics is None:
            return scores
        if self.cohort is not None:
            of_queries = cohort_statistics(queries, self.cohort, self.unit)
        else:
            blocks = score_blocks(queries, self.rows, self.unit)
            of_queries = np.hstack([self._statistics(block) for _, block in blocks])
        return s_norm_pairs(scores, of_queries, self.statistics, pairs)

    def line(self, query: Rows, column: int, own_column: int) -> tuple[float, float]:
        """Return slope and offset that turn the raw score of a pair into its s-normed one.

        Without s-norm they are 1 and 0.

        Parameters
        ----------
        query : (1, D) row of the query
        column : index of the target
        own_column : index of the query among the targets, or -1 if it is none; ignored with a
            cohort
        """
        if self.statistics is None:
            return 1.0, 0.0
        mean_q, scale_q = self.statistics[:, own_column]
        if self.cohort is not None:
            mean_q, scale_q = cohort_statistics(query, self.cohort, self.unit)[:, 0]
        elif own_column < 0:
            mean_q, scale_q = self._statistics(cosine(query, self.rows, self.unit))[:, 0]
        mean_t, scale_t = self.statistics[:, column]
        return scale_q + scale_t, -(mean_q * scale_q + mean_t * scale_t)

    # statistics of queries, from their scores with the targets
    def _statistics(self, scores):
        if self.reference is not None:
            scores = scores[:, self.reference]
        return statistics(scores)


@dataclass(frozen=True, eq=False)
class Member:
    """One system of a model: an encoder, how its scores are normalised, and their weight.

    Attributes
    ----------
    name : name of the member in its model
    encoder : an encoder, dense or sparse, or a TF-IDF that each gallery fits
    normaliser : "none" for raw scores, "s_norm" by the gallery, "as_norm" by the nearest of
        ``cohort``
    weight : weight of its scores in the model
    cohort : for "as_norm", one sample of each of some training authors
    reference : (T,) bool, for "s_norm" targets chosen at random from whose scores all statistics
        are computed; None for all targets
    embeddings : cache of rows and galleries; shared by members that ``replace`` makes of this one
        with another name or weight
    """

    name: str
    encoder: Encoder | GalleryTfidf
    normaliser: Literal["none", "s_norm", "as_norm"] = "none"
    weight: float = 1.0
    cohort: Samples | None = None
    reference: np.ndarray | None = None
    embeddings: Embeddings = field(default_factory=Embeddings, repr=False)

    def gallery(self, targets: Samples, max_tokens: int) -> Gallery:
        """Make the gallery of some targets, or return the one that was made of them before.

        Parameters
        ----------
        targets : T samples
        max_tokens : tokens read of each post
        """
        reference = None if self.reference is None else self.reference.tobytes()
        kind = (self.normaliser, self.cohort, reference)
        key = ("gallery", self.encoder, *kind, targets, max_tokens)
        return self.embeddings.once(key, partial(self._gallery, targets, max_tokens))

    def _gallery(self, targets, max_tokens):
        encoder = self.encoder
        if isinstance(encoder, GalleryTfidf):
            encoder = encoder.fit(targets, max_tokens)
        gallery = Gallery(encoder, self.embeddings.of(encoder, targets, max_tokens))
        if self.normaliser == "s_norm":
            of_targets = gallery_statistics(gallery.rows, gallery.unit, self.reference)
            return replace(gallery, statistics=of_targets, reference=self.reference)
        if self.normaliser == "as_norm":
            cohort = self.embeddings.of(encoder, self.cohort, max_tokens)
            of_targets = cohort_statistics(gallery.rows, cohort, gallery.unit)
            return replace(gallery, statistics=of_targets, cohort=cohort)
        return gallery

    def opened(self, queries: Samples, targets: Samples, max_tokens: int) -> tuple[Gallery, Rows]:
        """Return the gallery of targets, and the rows (Q, D) of queries by the gallery's encoder.

        Parameters
        ----------
        queries, targets : Q and T samples
        max_tokens : tokens read of each post
        """
        gallery = self.gallery(targets, max_tokens)
        return gallery, self.embeddings.of(gallery.encoder, queries, max_tokens)


@dataclass(frozen=True, eq=False)
class Model:
    """The weighted mean of its members' scores.

    Attributes
    ----------
    members : one member or more; their weights are divided by the sum of all weights
    shares : each fitted weight times the spread of its member's scores, scaled to sum to 1; empty
        if not fitted

    Raises
    ------
    ValueError
        If a weight is below 0, or all are 0.
    """

    members: tuple[Member, ...]
    shares: dict[str, float] = field(default_factory=dict)

    def __post_init__(self):
        weights = [member.weight for member in self.members]
        total = sum(weights)
        if not (min(weights, default=0) >= 0 and 0 < total < np.inf):
            raise ValueError(f"fusion weights {self.weights}: none below 0 and one above")
        members = tuple(replace(member, weight=member.weight / total) for member in self.members)
        object.__setattr__(self, "members", members)

    @classmethod
    def fuse(
        cls, systems: dict[str, Encoder | Member], weights: dict[str, float] | None = None
    ) -> "Model":
        """Make one model of several systems, which get the given names and weights.

        Parameters
        ----------
        systems : encoders or members, by the name that each gets
        weights : weight of each system by name; equal ones by default, whatever members had before
        """
        weights = weights or dict.fromkeys(systems, 1.0)
        members = []
        for name, system in systems.items():
            member = system if isinstance(system, Member) else Member(name, system)
            members.append(replace(member, name=name, weight=weights[name]))
        return cls(tuple(members))

    @property
    def weights(self) -> dict[str, float]:
        """The weights by name, which add up to 1."""
        return {member.name: member.weight for member in self.members}

    @property
    def used_members(self) -> list[Member]:
        """The members with a weight above 0; only these embed samples."""
        return [member for member in self.members if member.weight]

    def scores(
        self,
        queries: Samples,
        targets: Samples,
        max_tokens: int = 32,
        own_column: np.ndarray | None = None,
    ) -> Blocks:
        """Score every query with every target, block by block, so that memory is bounded.

        Parameters
        ----------
        queries, targets : Q and T samples; one object for both where they are the same, so they are
            embedded once
        max_tokens : tokens read of each post
        own_column : (Q,), for each query its index among the targets, or -1 if it is none. Such a
            query is normalised by that target's statistics, which leave out its score with itself.
            Ignored with a cohort and without s-norm.

        Yields
        ------
        A slice of q queries, and their scores (q, T) float32; the next block overwrites this array.
        """
        blocks = []
        for member in self.used_members:
            gallery, rows = member.opened(queries, targets, max_tokens)
            blocks.append(gallery.scores(rows, own_column))
        if len(blocks) == 1:
            yield from blocks[0]
            return
        weights = [member.weight for member in self.used_members]
        for member_blocks in zip(*blocks, strict=True):
            part, _ = member_blocks[0]
            yield part, fuse([scores for _, scores in member_blocks], weights)

    def score_matrix(self, queries: Samples, targets: Samples, max_tokens: int = 32) -> np.ndarray:
        """Return all scores (Q, T) float32 at once, which must fit into memory.

        Parameters
        ----------
        queries, targets, max_tokens : arguments of :meth:`scores`
        """
        blocks = self.scores(queries, targets, max_tokens)
        return np.concatenate([scores.copy() for _, scores in blocks])

    def pair_scores(
        self, queries: Samples, targets: Samples, pairs: np.ndarray, max_tokens: int = 32
    ) -> np.ndarray:
        """Score listed pairs only.

        Parameters
        ----------
        queries, targets : Q and T samples
        pairs : (N, 2), row of the query and row of the target
        max_tokens : tokens read of each post

        Returns
        -------
        (N,) float32
        """
        total = np.zeros(len(pairs), np.float32)
        for member in self.used_members:
            gallery, rows = member.opened(queries, targets, max_tokens)
            total += member.weight * gallery.pair_scores(rows, pairs)
        return round_scores(total)

    def to_json(self) -> list[dict]:
        """Return names, normalisers and weights, as :meth:`from_json` takes them.

        Raises
        ------
        ValueError
            A member is normalised by a cohort, whose samples are not written.
        """
        if any(member.cohort is not None for member in self.members):
            raise ValueError("a model with a cohort is not written: its samples are not kept")
        names = ("name", "normaliser", "weight")
        return [{name: getattr(member, name) for name in names} for member in self.members]

    @classmethod
    def from_json(
        cls,
        members: list[dict],
        encoders: dict[str, Encoder | GalleryTfidf],
        reference: np.ndarray | None = None,
    ) -> "Model":
        """Make a model of what :meth:`to_json` gave, with embeddings of its own.

        Parameters
        ----------
        members : name, normaliser and weight of each member; "as_norm" is not possible, because no
            cohort is given
        encoders : the encoder of each member, by name
        reference : (T,) bool, of every member, see :class:`Member`
        """
        embeddings = Embeddings()
        return cls(
            tuple(
                Member(
                    **member,
                    encoder=encoders[member["name"]],
                    reference=reference,
                    embeddings=embeddings,
                )
                for member in members
            )
        )


System = Encoder | Member | Model


def as_model(system: System) -> Model:
    """Return a model as it is, and an encoder or a member as a model of this one member."""
    if isinstance(system, Model):
        return system
    return Model.fuse({"alone": system})


def with_s_norm(encoder: Encoder | GalleryTfidf) -> Member:
    """Return a member with s-norm by the gallery; a TF-IDF is also fitted on each gallery."""
    if isinstance(encoder, TfidfEncoder):
        encoder = GalleryTfidf(encoder.kind, encoder.tokenizer)
    return Member("s-norm", encoder, "s_norm")
