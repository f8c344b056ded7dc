"""Models: one or several encoders, with normalised scores and weights, that score trials.

A baseline is a model of one member. A fusion is a model of several members, and so is the encoder
that ships. Wherever a model is asked for, an encoder or a member may be given instead, see
:func:`as_model`. How much each member of a fusion counts is fitted on dev trials.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
from scipy import special

from ..encoders.base import Encoder, embed
from ..encoders.tfidf import TfidfEncoder
from ..tokens.batch import Samples
from .scores import Blocks, Gallery, Rows, as_rows, fuse
from .trials import Trials, check_ranking

MAX_KEPT = 120  # entries: rows of queries and of targets, and statistics, of 24 galleries or more
STEPS = {"none": 0, "s_norm": 1, "as_norm": 2}  # how often scores are normalised by a gallery
MAX_QUERIES = 1000  # most dev queries on which weights are fitted
RIDGE = 1e-3  # penalty on squared shares, which keeps a useless member's weight at 0
MIN_SPREAD = 1e-6  # a smaller spread of scores counts as this, so that nothing is divided by 0


class Embeddings:
    """Keep the rows of samples, and what else is made of them: the MAX_KEPT entries used last.

    Samples and encoders are compared as objects, not by content. So an encoder that was trained
    further needs a new cache.
    """

    def __init__(self):
        self._kept = {}
        self._wholes = WeakKeyDictionary()

    def some(self, samples: Samples, rows: np.ndarray) -> Samples:
        """Return some of the samples, which are not embedded where all samples have been.

        Parameters
        ----------
        samples : N samples
        rows : numbers of samples
        """
        chosen = samples[rows]
        self._wholes[chosen] = samples, rows
        return chosen

    def whole(self, samples: Samples) -> tuple[Samples, np.ndarray | None]:
        """Return the arguments of :meth:`some` that made the samples; else the samples and None.

        Parameters
        ----------
        samples : N samples
        """
        return self._wholes.get(samples, (samples, None))

    def of(
        self, encoder: Encoder, samples: Samples, max_tokens: int, progress: bool = False
    ) -> Rows:
        """Embed samples, or return the rows that were made of them before.

        Parameters
        ----------
        encoder : an encoder of dense or sparse rows
        samples : N samples
        max_tokens : tokens read of each post
        progress : show a bar where it takes over two seconds

        Returns
        -------
        (N, D) rows, as :func:`helpers.evaluation.scores.as_rows` makes them
        """
        whole, rows = self.whole(samples)
        key_of_whole = ("rows", encoder, whole, max_tokens)
        if whole is not samples and key_of_whole in self._kept:
            return self._kept[key_of_whole][rows]
        key = ("rows", encoder, samples, max_tokens)
        return self.once(
            key, lambda: as_rows(embed(encoder, samples, max_tokens, progress=progress))
        )

    def once(self, key: tuple[Hashable, ...], make: Callable[[], Any]) -> Any:
        """Return what ``make`` returns, or what it returned for this key before.

        Parameters
        ----------
        key : what was made, of which objects; hashable
        make : called without arguments where the key is new
        """
        made = self._kept.pop(key) if key in self._kept else make()
        self._kept[key] = made  # moved to the end, as the entry used last
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        return made


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

    def fit(self, targets: Samples, max_tokens: int) -> tuple[TfidfEncoder, Rows]:
        """Fit a TF-IDF on the targets of a gallery, and return their rows as well.

        Parameters
        ----------
        targets : T samples
        max_tokens : tokens read of each post
        """
        encoder = TfidfEncoder(self.kind, self.tokenizer)
        rows = encoder.fit_transform(targets, max_tokens)
        return encoder, rows


@dataclass(frozen=True, eq=False)
class Member:
    """One system of a model: an encoder, how its scores are normalised, and their weight.

    Attributes
    ----------
    name : name of the member in its model
    encoder : an encoder, dense or sparse, or a TF-IDF that each gallery fits
    normaliser : "none" for raw scores, "s_norm" by the gallery, "as_norm" by the nearest of
        ``cohort`` or, without one, by s-norm and then by the nearest of the gallery
    weight : weight of its scores in the model
    cohort : for "as_norm", one sample of each of some training authors
    reference : (T,) bool, targets chosen at random from whose scores all statistics are computed;
        None for all targets; ignored with a cohort
    neighbours : number of nearest targets for "as_norm" by the gallery; by default it depends on
        the gallery's size, see :func:`helpers.evaluation.scores.neighbour_statistics`
    embeddings : cache of rows and galleries; shared by members that ``replace`` makes of this one
        with another name or weight
    """

    name: str
    encoder: Encoder | GalleryTfidf
    normaliser: Literal["none", "s_norm", "as_norm"] = "none"
    weight: float = 1.0
    cohort: Samples | None = None
    reference: np.ndarray | None = None
    neighbours: int | None = None
    embeddings: Embeddings = field(default_factory=Embeddings, repr=False)

    @property
    def steps(self) -> int:
        """How often its scores are normalised, 0 to 2; by a cohort once."""
        if self.cohort is not None:
            return 1
        return STEPS[self.normaliser]

    @property
    def shared(self) -> tuple[Hashable, ...]:
        """What is equal for members whose galleries differ in ``steps`` only."""
        reference = None if self.reference is None else self.reference.tobytes()
        return self.encoder, self.cohort, reference, self.neighbours

    def gallery(self, targets: Samples, max_tokens: int) -> Gallery:
        """Make the gallery of some targets, or return the one that was made of them before.

        Parameters
        ----------
        targets : T samples
        max_tokens : tokens read of each post
        """
        key = ("gallery", *self.shared, targets, max_tokens, self.steps)
        return self.embeddings.once(key, partial(self._gallery, targets, max_tokens))

    def _gallery(self, targets, max_tokens):
        encoder = self.encoder
        if isinstance(encoder, GalleryTfidf):
            # the same for members that differ in their normaliser, so that it embeds only once
            key = ("fitted", encoder, targets, max_tokens)
            encoder, rows = self.embeddings.once(key, partial(encoder.fit, targets, max_tokens))
            self.embeddings.once(("rows", encoder, targets, max_tokens), partial(as_rows, rows))
        rows = self.embeddings.of(encoder, targets, max_tokens)
        cohort = None
        if self.cohort is not None:
            cohort = self.embeddings.of(encoder, self.cohort, max_tokens)
        return Gallery.of(encoder, rows, self.steps, cohort, self.reference, self.neighbours)

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
    """The weighted sum of its members' scores.

    Attributes
    ----------
    members : one member or more. A weight may be negative, where the same encoder is a member with
        another normaliser
    shares : each fitted weight times the spread of its member's scores, scaled to sum to 1; empty
        if not fitted
    """

    members: tuple[Member, ...]
    shares: dict[str, float] = field(default_factory=dict)

    @classmethod
    def mean(cls, members: Iterable[Member], shares: dict[str, float] | None = None) -> "Model":
        """Return the weighted mean of members: their weights are divided by the sum of all.

        Parameters
        ----------
        members : one member or more
        shares : see :class:`Model`

        Raises
        ------
        ValueError
            If the weights do not have a finite sum above 0.
        """
        members = list(members)
        weights = {member.name: member.weight for member in members}
        total = sum(member.weight for member in members)
        if not 0 < total < np.inf:
            raise ValueError(f"fusion weights {weights}: their sum must be above 0")
        scaled = [replace(member, weight=member.weight / total) for member in members]
        return cls(tuple(scaled), shares or {})

    @classmethod
    def fuse(cls, systems: dict[str, Encoder | Member]) -> "Model":
        """Return the mean of several systems, which get the given names and equal weights.

        Parameters
        ----------
        systems : encoders or members, by the name that each gets
        """
        members = []
        for name, system in systems.items():
            member = system if isinstance(system, Member) else Member(name, system)
            members.append(replace(member, name=name, weight=1.0))
        return cls.mean(members)

    def normalised(self, normaliser: str, neighbours: int | None = None) -> "Model":
        """Return the model with other settings of all members.

        Parameters
        ----------
        normaliser, neighbours : see :class:`Member`
        """
        settings = {"normaliser": normaliser, "neighbours": neighbours}
        return Model(tuple(replace(member, **settings) for member in self.members))

    @property
    def used_members(self) -> list[Member]:
        """The members whose weight is not 0; only these embed samples."""
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
            query is normalised by that target's statistics, which leave out its score with itself

        Yields
        ------
        A slice of q queries, and their scores (q, T) float32
        """
        if own_column is None:
            own_column = np.full(len(queries), -1)
        opened = self.opened(queries, targets, max_tokens)
        blocks = [gallery.step_scores(rows, own_column) for gallery, rows in opened.values()]
        for of_galleries in zip(*blocks, strict=True):
            steps = [steps_of_gallery for _, steps_of_gallery in of_galleries]
            yield of_galleries[0][0], self._weighted_sum(dict(zip(opened, steps)))

    def opened(
        self, queries: Samples, targets: Samples, max_tokens: int
    ) -> dict[tuple[Hashable, ...], tuple[Gallery, Rows]]:
        """Return a gallery and the rows of queries for each set of members that share them.

        Parameters
        ----------
        queries, targets, max_tokens : arguments of :meth:`scores`

        Returns
        -------
        :attr:`Member.shared` of the members -> result of :meth:`Member.opened` for the one of these
        with the most steps
        """
        most_steps = {}
        for member in sorted(self.used_members, key=attrgetter("steps")):
            most_steps[member.shared] = member
        return {
            shared: member.opened(queries, targets, max_tokens)
            for shared, member in most_steps.items()
        }

    def _weighted_sum(self, steps):
        """Return the sum of the members' scores, each of the step that the member needs."""
        scores = [steps[member.shared][member.steps] for member in self.used_members]
        return fuse(scores, [member.weight for member in self.used_members])

    def score_matrix(
        self,
        queries: Samples,
        targets: Samples,
        max_tokens: int = 32,
        own_column: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return all scores (Q, T) float32 at once, which must fit into memory.

        Parameters
        ----------
        queries, targets, max_tokens, own_column : arguments of :meth:`scores`
        """
        blocks = self.scores(queries, targets, max_tokens, own_column)
        return np.concatenate([scores for _, scores in blocks])

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
        opened = self.opened(queries, targets, max_tokens)
        steps = {
            shared: gallery.pair_scores(rows, pairs) for shared, (gallery, rows) in opened.items()
        }
        return self._weighted_sum(steps)

    @classmethod
    def from_json(
        cls, members: list[dict], encoders: dict[str, Encoder | GalleryTfidf], **shared: object
    ) -> "Model":
        """Make a model of plain members.

        Parameters
        ----------
        members : name, normaliser, weight and perhaps neighbours of each member; "as_norm" is that
            by the gallery
        encoders : the encoder of each member, by name
        **shared : attributes of every member: ``reference`` and ``embeddings``
        """
        return cls(
            tuple(Member(encoder=encoders[plain["name"]], **plain, **shared) for plain in members)
        )


Scorer = Encoder | Member | Model


def as_model(system: Scorer) -> Model:
    """Return a model as it is, and an encoder or a member as a model of this one member."""
    if isinstance(system, Model):
        return system
    return Model.fuse({"alone": system})


def fitted_on_gallery(encoder: Encoder | GalleryTfidf) -> Encoder | GalleryTfidf:
    """Return an encoder as a gallery needs it: a TF-IDF is fitted on each gallery."""
    if isinstance(encoder, TfidfEncoder):
        return GalleryTfidf(encoder.kind, encoder.tokenizer)
    return encoder


def fit_weights(
    systems: dict[str, Encoder | Member], trials: Trials, max_tokens: int = 32
) -> Model:
    """Fuse systems with the weights that make the positive targets of dev queries most likely.

    No weight is below 0.

    The likelihood is that of a conditional logit (McFadden 1974): a softmax, over all targets, of
    the weighted scores. Its negative logarithm is convex in the weights, so no grid is needed for
    many members. A small ridge keeps the weight of a useless member at 0. If there are more than
    MAX_QUERIES queries, the first ones are used, with the targets of their authors only.

    Parameters
    ----------
    systems : encoders or members, by the name that each gets in the model
    trials : every query against every target, of dev accounts
    max_tokens : tokens read of each post

    Returns
    -------
    The model with its weights, and its ``shares``: each weight times the spread of its member's
    scores, scaled to sum to 1. All shares are equal if no member helps.

    Raises
    ------
    ValueError
        If there is no system, or a query has no target of its author.
    """
    from scipy import optimize  # imported here: a model that only scores needs none

    members = Model.fuse(systems).members
    check_ranking(trials)
    if len(trials.queries) > MAX_QUERIES:
        queries = trials.queries[:MAX_QUERIES]
        trials = Trials(queries, trials.targets[np.isin(trials.targets.authors, queries.authors)])

    samples = (trials.queries, trials.targets, max_tokens)
    scores = np.stack([as_model(member).score_matrix(*samples) for member in members])
    spread = np.maximum(scores.std((1, 2), ddof=1, dtype=np.float64), MIN_SPREAD)
    scores /= spread[:, None, None].astype(np.float32)
    positive = trials.same / trials.same.sum(1, keepdims=True)

    count = len(scores)
    bounds = [(0, None)] * count
    optimum = optimize.minimize(_loss, np.ones(count), (scores, positive), jac=True, bounds=bounds)
    shares = np.full(count, 1 / count)
    if optimum.x.any():
        shares = optimum.x / optimum.x.sum()
    weights = (shares / spread).tolist()
    weighted = [replace(member, weight=weight) for member, weight in zip(members, weights)]
    return Model.mean(weighted, dict(zip(systems, shares.tolist())))


def _loss(shares, scores, positive):
    """Return loss and gradient of the shares (S,) of S members with scores (S, Q, T).

    Each row of ``positive`` (Q, T) shares a weight of 1 among the targets of the query's author.
    """
    mixed = np.tensordot(shares.astype(np.float32), scores, 1)
    likely = special.softmax(mixed, 1)
    loss = (special.logsumexp(mixed, 1) - (positive * mixed).sum(1)).mean()
    gradient = np.tensordot(scores, likely - positive, 2) / len(positive) + 2 * RIDGE * shares
    return loss + RIDGE * (shares**2).sum(), gradient
