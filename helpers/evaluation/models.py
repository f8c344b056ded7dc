"""Models: what queries and targets are scored by, an encoder alone or several with normalised scores and weights.

A baseline is a model of one member, a fusion one of several, and so is the encoder that ships. An encoder or a
member stands for the model of itself alone wherever a model is asked for, see :func:`as_model`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np

from helpers.encoders.base import Encoder
from helpers.encoders.tfidf import TfidfEncoder
from helpers.evaluation import score_norm
from helpers.evaluation.embeddings import Embeddings
from helpers.evaluation.scores import Rows, fuse, pair_scores, round_scores, score_blocks
from helpers.tokens.batch import Samples

Blocks = Iterator[tuple[slice, np.ndarray]]


@dataclass(frozen=True, eq=False)
class GalleryTfidf:
    """A TF-IDF that is fitted on the targets of each gallery, so that its terms and their idf are the gallery's.

    Attributes
    ----------
    kind : one of :data:`helpers.encoders.tfidf.WEIGHTINGS`
    tokenizer : of the stores
    """

    kind: str
    tokenizer: object

    def fit(self, targets: Samples, max_tokens: int) -> TfidfEncoder:
        """Fit a TF-IDF on targets, of whose posts so many tokens are read."""
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
    reference : (T,) bool, targets drawn at random that stand for all in s-norm; by default all do
    embeddings : what was made of samples; shared by members that ``replace`` makes of this one with other weights
    """

    name: str
    encoder: Encoder | GalleryTfidf
    normaliser: Literal["none", "s_norm", "as_norm"] = "none"
    weight: float = 1.0
    cohort: Samples | None = None
    reference: np.ndarray | None = None
    embeddings: Embeddings = field(default_factory=Embeddings, repr=False)

    def encoder_of(self, targets: Samples, max_tokens: int) -> Encoder:
        """Return the encoder, fitted on the targets where each gallery fits its own."""
        if not isinstance(self.encoder, GalleryTfidf):
            return self.encoder
        make = partial(self.encoder.fit, targets, max_tokens)
        return self.embeddings.once(("encoder", self.encoder, targets, max_tokens), make)

    def rows(self, samples: Samples, targets: Samples, max_tokens: int) -> Rows:
        """Return the rows (N, D) of samples that are compared with these targets."""
        return self.embeddings.of(self.encoder_of(targets, max_tokens), samples, max_tokens)

    def raw_scores(self, queries: Samples, targets: Samples, max_tokens: int) -> Blocks:
        """Yield blocks of scores before they are normalised; arguments as of :meth:`Model.scores`."""
        query_rows = self.rows(queries, targets, max_tokens)
        return score_blocks(query_rows, self.rows(targets, targets, max_tokens), self._unit)

    def scores(
        self,
        queries: Samples,
        targets: Samples,
        max_tokens: int,
        own_column: np.ndarray | None = None,
    ) -> Blocks:
        """Yield blocks of normalised scores; arguments as of :meth:`Model.scores`."""
        blocks = self.raw_scores(queries, targets, max_tokens)
        if self.normaliser == "none":
            yield from blocks
            return
        of_targets = self.target_statistics(targets, max_tokens)
        if self.normaliser == "as_norm":
            of_queries = self._cohort_statistics(queries, targets, max_tokens)
        for part, scores in blocks:
            if self.normaliser == "as_norm":
                of_block = of_queries[:, part]
            else:
                of_block = self._block_statistics(scores)
                if own_column is not None:  # a target is not measured against itself
                    column = own_column[part]
                    of_block = np.where(column < 0, of_block, of_targets[:, column])
            yield part, score_norm.s_norm(scores, of_block, of_targets)

    def pair_scores(
        self, queries: Samples, targets: Samples, pairs: np.ndarray, max_tokens: int
    ) -> np.ndarray:
        """Return normalised scores of listed pairs; arguments as of :meth:`Model.pair_scores`."""
        rows = [self.rows(samples, targets, max_tokens) for samples in (queries, targets)]
        scores = pair_scores(*rows, pairs, self._unit)
        if self.normaliser == "none":
            return scores
        if self.normaliser == "as_norm":
            of_queries = self._cohort_statistics(queries, targets, max_tokens)
        else:
            blocks = self.raw_scores(queries, targets, max_tokens)
            of_queries = np.hstack(
                [self._block_statistics(block) for _, block in blocks]
            )
        of_targets = self.target_statistics(targets, max_tokens)
        return score_norm.s_norm_pairs(scores, of_queries, of_targets, pairs)

    def target_statistics(self, targets: Samples, max_tokens: int) -> np.ndarray:
        """Return the statistics (2, T) of the targets, see :mod:`helpers.evaluation.score_norm`."""
        key = ("statistics", self.encoder, self.normaliser, self.cohort, targets, max_tokens)
        make = partial(self._target_statistics, targets, max_tokens)
        return self.embeddings.once(key, make)

    def line(
        self, query: Samples, targets: Samples, max_tokens: int, column: int, own_column: int
    ) -> tuple[float, float]:
        """Return slope and offset that turn the raw score of a query and a target into the s-normed one.

        Parameters
        ----------
        query : one sample
        targets : the gallery
        max_tokens : tokens read of each post
        column : of the target
        own_column : of the query where it is itself a target, else -1
        """
        if self.normaliser == "none":
            return 1.0, 0.0
        of_targets = self.target_statistics(targets, max_tokens)
        mean_q, scale_q = of_targets[:, own_column]
        if own_column < 0:
            _, scores = next(self.raw_scores(query, targets, max_tokens))
            mean_q, scale_q = self._block_statistics(scores)[:, 0]
        mean_t, scale_t = of_targets[:, column]
        return scale_q + scale_t, -(mean_q * scale_q + mean_t * scale_t)

    @property
    def _unit(self):
        return getattr(self.encoder, "unit", True)

    def _block_statistics(self, scores):
        if self.reference is not None:
            scores = scores[:, self.reference]
        return score_norm.statistics(scores)

    def _target_statistics(self, targets, max_tokens):
        if self.normaliser == "as_norm":
            return self._cohort_statistics(targets, targets, max_tokens)
        rows = self.rows(targets, targets, max_tokens)
        return score_norm.gallery_statistics(rows, self._unit, self.reference)

    def _cohort_statistics(self, samples, targets, max_tokens):
        rows = self.rows(samples, targets, max_tokens)
        cohort = self.rows(self.cohort, targets, max_tokens)
        return score_norm.cohort_statistics(rows, cohort, self._unit)


@dataclass(frozen=True, eq=False)
class Model:
    """The weighted mean of its members' scores.

    Attributes
    ----------
    members : one or more; their weights are divided by their sum
    shares : each fitted weight times the spread of its member's scores, scaled to sum to 1; empty if not fitted

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
        queries, targets : Q and T samples; one object for both where they are the same, so they are embedded once
        max_tokens : tokens read of each post
        own_column : (Q,) the column of a query that is itself a target, -1 of another; s-norm does not measure it
            against itself

        Yields
        ------
        The rows of q queries as a slice, and their scores (q, T) float32, which the next block overwrites.
        """
        members = self.used_members
        blocks = [member.scores(queries, targets, max_tokens, own_column) for member in members]
        if len(members) == 1:
            yield from blocks[0]
            return
        weights = [member.weight for member in members]
        for member_blocks in zip(*blocks, strict=True):
            part, _ = member_blocks[0]
            yield part, fuse([scores for _, scores in member_blocks], weights)

    def score_matrix(self, queries: Samples, targets: Samples, max_tokens: int = 32) -> np.ndarray:
        """Return all scores (Q, T) float32 of few queries and targets; arguments as of :meth:`scores`."""
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
            total += member.weight * member.pair_scores(queries, targets, pairs, max_tokens)
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
    """Return an encoder whose scores the gallery normalises; a TF-IDF is fitted on the gallery's texts, too."""
    if isinstance(encoder, TfidfEncoder):
        encoder = GalleryTfidf(encoder.kind, encoder.tokenizer)
    return Member("s-norm", encoder, "s_norm")
