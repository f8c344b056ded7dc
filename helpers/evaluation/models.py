"""Models: encoders, alone or several with normalised scores and weights, that score trials.

A baseline is a model of one member, a fusion one of several, and so is the encoder that ships. An
encoder or a member stands for the model of itself alone wherever a model is asked for, see
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
from helpers.evaluation.scores import Rows, fuse, pair_scores, round_scores, score_blocks
from helpers.tokens.batch import Samples

Blocks = Iterator[tuple[slice, np.ndarray]]


@dataclass(frozen=True, eq=False)
class GalleryTfidf:
    """A TF-IDF that is fitted on the targets of each gallery: terms and idf are the gallery's.

    Attributes
    ----------
    kind : one of :data:`helpers.encoders.tfidf.WEIGHTINGS`
    tokenizer : of the stores
    """

    kind: str
    tokenizer: object

    def fit(self, targets: Samples, max_tokens: int) -> TfidfEncoder:
        """Fit a TF-IDF on targets.

        Parameters
        ----------
        targets : T samples
        max_tokens : tokens read of each post
        """
        return TfidfEncoder(self.kind, self.tokenizer).fit(targets, max_tokens)


@dataclass(frozen=True, eq=False)
class Member:
    """One system of a model: an encoder, how its scores are normalised, and their weight.

    Attributes
    ----------
    name : of the member
    encoder : dense or sparse, or a TF-IDF that each gallery fits
    normaliser : "none"; "s_norm", by the gallery; "as_norm", by the nearest of ``cohort``
    weight : of its scores
    cohort : samples of training authors, one each
    reference : (T,) bool, targets drawn at random that stand for all in s-norm; None where all do
    embeddings : what was made of samples; shared by members that ``replace`` makes of this one with
        another name or weight
    """

    name: str
    encoder: Encoder | GalleryTfidf
    normaliser: Literal["none", "s_norm", "as_norm"] = "none"
    weight: float = 1.0
    cohort: Samples | None = None
    reference: np.ndarray | None = None
    embeddings: Embeddings = field(default_factory=Embeddings, repr=False)

    def open(self, targets: Samples, max_tokens: int) -> "Gallery":
        """Embed targets, or return the gallery that was made of them before.

        Parameters
        ----------
        targets : T samples
        max_tokens : tokens read of each post
        """
        key = ("gallery", self.encoder, self.normaliser, self.cohort, targets, max_tokens)
        return self.embeddings.once(key, partial(Gallery, self, targets, max_tokens))


class Gallery:
    """The targets of a member, embedded and measured once, that any queries are scored against.

    ``encoder`` is the member's, fitted on the targets where each gallery fits its own; ``rows``
    (T, D) are those of the targets, and ``statistics`` (2, T) what normalises their scores.

    Parameters
    ----------
    member : whose encoder and normaliser are used
    targets : T samples
    max_tokens : tokens read of each post, of queries and targets alike
    """

    def __init__(self, member: Member, targets: Samples, max_tokens: int):
        self.member = member
        self.max_tokens = max_tokens
        self.encoder = member.encoder
        if isinstance(member.encoder, GalleryTfidf):
            self.encoder = member.encoder.fit(targets, max_tokens)
        self.unit = getattr(self.encoder, "unit", True)
        self.rows = self.embed(targets)
        self.statistics = None
        if member.normaliser == "s_norm":
            self.statistics = gallery_statistics(self.rows, self.unit, member.reference)
        elif member.normaliser == "as_norm":
            self.statistics = self._against_cohort(targets)

    def embed(self, samples: Samples) -> Rows:
        """Return the rows (N, D) of N samples."""
        return self.member.embeddings.of(self.encoder, samples, self.max_tokens)

    def raw_scores(self, queries: Samples) -> Blocks:
        """Yield blocks of scores that are not normalised, as :meth:`scores` does."""
        return score_blocks(self.embed(queries), self.rows, self.unit)

    def scores(self, queries: Samples, own_column: np.ndarray | None = None) -> Blocks:
        """Yield blocks of normalised scores.

        Parameters
        ----------
        queries : Q samples
        own_column : (Q,) the column of a query that is itself a target, -1 of another; s-norm does
            not measure it against itself

        Yields
        ------
        The rows of q queries as a slice, and their scores (q, T) float32, which the next block
        overwrites.
        """
        blocks = self.raw_scores(queries)
        if self.statistics is None:
            yield from blocks
            return
        if self.member.normaliser == "as_norm":
            of_queries = self._against_cohort(queries)
        for part, scores in blocks:
            if self.member.normaliser == "as_norm":
                of_block = of_queries[:, part]
            else:
                of_block = self._against_gallery(scores)
                if own_column is not None:
                    column = own_column[part]
                    of_block = np.where(column < 0, of_block, self.statistics[:, column])
            yield part, s_norm(scores, of_block, self.statistics)

    def pair_scores(self, queries: Samples, pairs: np.ndarray) -> np.ndarray:
        """Return normalised scores (N,) of listed pairs.

        Parameters
        ----------
        queries : Q samples
        pairs : (N, 2), row of the query and row of the target
        """
        scores = pair_scores(self.embed(queries), self.rows, pairs, self.unit)
        if self.statistics is None:
            return scores
        if self.member.normaliser == "as_norm":
            of_queries = self._against_cohort(queries)
        else:
            blocks = self.raw_scores(queries)
            of_queries = np.hstack([self._against_gallery(block) for _, block in blocks])
        return s_norm_pairs(scores, of_queries, self.statistics, pairs)

    def line(self, query: Samples, column: int, own_column: int) -> tuple[float, float]:
        """Return slope and offset that turn a raw score into the s-normed one.

        Parameters
        ----------
        query : one sample
        column : of the target
        own_column : of the query where it is itself a target, else -1
        """
        if self.statistics is None:
            return 1.0, 0.0
        mean_q, scale_q = self.statistics[:, own_column]
        if own_column < 0:
            _, scores = next(self.raw_scores(query))
            mean_q, scale_q = self._against_gallery(scores)[:, 0]
        mean_t, scale_t = self.statistics[:, column]
        return scale_q + scale_t, -(mean_q * scale_q + mean_t * scale_t)

    def _against_gallery(self, scores):
        if self.member.reference is not None:
            scores = scores[:, self.member.reference]
        return statistics(scores)

    def _against_cohort(self, samples):
        cohort = self.embed(self.member.cohort)
        return cohort_statistics(self.embed(samples), cohort, self.unit)


@dataclass(frozen=True, eq=False)
class Model:
    """The weighted mean of its members' scores.

    Attributes
    ----------
    members : one or more; their weights are divided by their sum
    shares : each fitted weight times the spread of its member's scores, scaled to sum to 1; empty
        if not fitted

    Raises
    ------
    ValueError
        A weight is below 0, or none is above.
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
        """Make one model of several systems.

        Parameters
        ----------
        systems : encoders or members, by the name that they get
        weights : of each system; equal ones by default
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
        """The members with a weight above 0; the others embed nothing."""
        return [member for member in self.members if member.weight]

    def scores(
        self,
        queries: Samples,
        targets: Samples,
        max_tokens: int = 32,
        own_column: np.ndarray | None = None,
    ) -> Blocks:
        """Score every query with every target, at bounded memory.

        Parameters
        ----------
        queries, targets : Q and T samples; one object for both where they are the same, so they are
            embedded once
        max_tokens : tokens read of each post
        own_column : (Q,) the column of a query that is itself a target, -1 of another; s-norm does
            not measure it against itself

        Yields
        ------
        The rows of q queries as a slice, and their scores (q, T) float32, which the next block
        overwrites.
        """
        members = self.used_members
        weights = [member.weight for member in members]
        blocks = [
            member.open(targets, max_tokens).scores(queries, own_column) for member in members
        ]
        if len(members) == 1:
            yield from blocks[0]
            return
        for member_blocks in zip(*blocks, strict=True):
            part, _ = member_blocks[0]
            yield part, fuse([scores for _, scores in member_blocks], weights)

    def score_matrix(self, queries: Samples, targets: Samples, max_tokens: int = 32) -> np.ndarray:
        """Return all scores (Q, T) float32 of few queries and targets.

        Parameters
        ----------
        queries, targets, max_tokens : as of :meth:`scores`
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
            gallery = member.open(targets, max_tokens)
            total += member.weight * gallery.pair_scores(queries, pairs)
        return round_scores(total)

    def to_json(self) -> list[dict]:
        """Return names, normalisers and weights, as :meth:`from_json` takes them."""
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
        members : name, normaliser and weight of each
        encoders : by name
        reference : (T,) bool, see :class:`Member`
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
    """Return a model as it is, and an encoder or a member as the model of itself alone."""
    if isinstance(system, Model):
        return system
    return Model.fuse({"alone": system})


def with_s_norm(encoder: Encoder | GalleryTfidf) -> Member:
    """Return an encoder whose scores the gallery normalises; a TF-IDF is fitted on it, too."""
    if isinstance(encoder, TfidfEncoder):
        encoder = GalleryTfidf(encoder.kind, encoder.tokenizer)
    return Member("s-norm", encoder, "s_norm")
