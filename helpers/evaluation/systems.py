"""Systems of a comparison: what scores, its name in tables, and what its results belong to.

A comparison is a list of systems. An encoder that counts is one, and so is a trained network. Each
can be normalised, and several can be summed with weights that rank dev accounts best. One call
evaluates a list of systems and records the results of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

import pandas as pd

from ..core import results
from ..core.names import label, name_of, row_name, short_name
from ..core.paths import Run
from ..encoders.base import ChunkMean, Encoder
from ..tokens.batch import Samples
from .detection import DetectionCosts
from .linking import linking_metrics, score_linking
from .models import Member, Model, Scorer, fit_weights, fitted_on_gallery
from .ranking import compare_rankings, evaluate_ranking, trials_by_community
from .trials import Trials

# norm of a counting system -> its normaliser, and the end of the system's identifier
NORMS = {
    "s-norm": ("s_norm", "gallery"),
    "AS-norm": ("as_norm", "nearest"),
    "AS cohort": ("as_norm", "cohort"),
}
# (larger system, norm, note) of a network -> the beginning of the system's identifier
OF_NETWORK = {
    ("", "", ""): "stream",
    ("", "s-norm", ""): "adapted",
    ("", "AS-norm", ""): "near",
    ("Stream+LSA", "", ""): "fused",
    ("Stream+LSA", "s-norm", ""): "normed",
    ("Fusion", "s-norm", ""): "everything",
    ("Fusion", "AS-norm", ""): "nearest",
    ("Fusion", "s-norm", "no Stream"): "unlearned",
    ("Fusion", "s-norm", "equal weights"): "equal",
}
PROFILES = {"P": "hours", "S": "topics"}  # letter of features -> the profile that sees as much
SEED = "-seed"  # before the number of another training of the same settings, in an identifier


@dataclass(frozen=True, eq=False)
class System:
    """A system of a comparison.

    Attributes
    ----------
    member : its name as a member of a sum: "tfidf_word", "stream"
    model : the identifier of its results
    label : its readable name
    scorer : what scores pairs of samples
    norm : how its scores are normalised, "" for raw ones
    training : fields of its results that describe a training: ``experiment``, ``seed`` ...
    """

    member: str
    model: str
    label: str
    scorer: Scorer
    norm: str = ""
    training: dict = field(default_factory=dict)

    @property
    def shares(self) -> dict[str, float]:
        """Share of each member of a weighted sum, see :class:`Model`; {} for any other system."""
        return getattr(self.scorer, "shares", {})

    @classmethod
    def counting(cls, kind: str, encoder: Encoder) -> "System":
        """Return the system of an encoder that is fitted in closed form.

        Parameters
        ----------
        kind : its name in :data:`helpers.encoders.baselines.BASELINES`
        encoder : the fitted encoder
        """
        return cls(kind, kind, label(kind), Member(kind, encoder))

    def normed(self, norm: str, cohort: Samples | None = None) -> "System":
        """Return the system with normalised scores.

        Parameters
        ----------
        norm : "s-norm" or "AS-norm", by the gallery, on which a TF-IDF is then fitted; or
            "AS cohort"
        cohort : samples whose scores normalise, for "AS cohort"
        """
        _, ending = NORMS[norm]
        return replace(
            self,
            model=f"{self.model}_{ending}",
            label=short_name(self.label, norm=norm),
            scorer=self.normed_scorer(norm, cohort),
            norm=norm,
        )

    def normed_scorer(self, norm: str, cohort: Samples | None = None) -> Member:
        """Return its scorer with normalised scores, see :meth:`normed`.

        Parameters
        ----------
        norm, cohort : arguments of :meth:`normed`
        """
        normaliser, _ = NORMS[norm]
        encoder = self.scorer.encoder
        if cohort is None:
            # the same for every norm, so that a gallery is fitted once
            make = partial(fitted_on_gallery, encoder)
            encoder = self.scorer.embeddings.once(("on gallery",), make)
        return replace(self.scorer, encoder=encoder, normaliser=normaliser, cohort=cohort)

    def record(self, files: Run, table: pd.DataFrame, **measured: Any) -> None:
        """Record metrics of the system, see :func:`helpers.core.results.record`.

        Parameters
        ----------
        files, table : the run, and the metrics
        **measured : fields of :class:`helpers.core.results.Measured` beside those of the system
        """
        about = {"model": self.model, "label": self.label} | self.training
        results.record(files, table, **about | measured)


@dataclass(frozen=True, eq=False)
class Network(System):
    """A trained network, alone or as part of a larger system.

    Attributes
    ----------
    name : the name of its training
    experiment : the :class:`~helpers.training.experiment.Experiment` of its training
    note : what its readable name adds
    """

    name: str = ""
    experiment: Any = None
    note: str = ""

    @classmethod
    def of(cls, name: str, trained: Any, note: str = "", member: str = "stream") -> "Network":
        """Return the system of a trained network.

        Parameters
        ----------
        name : the name of its training
        trained : the :class:`~helpers.training.experiment.Trained`
        note : what its readable name adds, such as "1-8"
        member : its name as a member of a sum
        """
        scorer = Member(member, trained.encoder)
        experiment = trained.experiment
        alone = cls(member, "", "", scorer, "", trained.about, name, experiment, note)
        return alone._made(scorer)

    @property
    def profiles(self) -> list[str]:
        """Names of the counting profiles that see what it sees: of hours, and of topics."""
        features = self.experiment.encoder.features
        return [profile for letter, profile in PROFILES.items() if letter in features]

    def normed(self, norm: str, cohort: Samples | None = None) -> "Network":
        """Return the network with scores that are normalised by the gallery.

        Parameters
        ----------
        norm : "s-norm" or "AS-norm"
        cohort : None
        """
        return self._made(self.normed_scorer(norm, cohort), "", norm)

    def sum_of(
        self,
        members: Sequence[System],
        name: str,
        dev: Trials,
        max_tokens: int = 32,
        norm: str = "",
        note: str = "",
    ) -> "Network":
        """Return the weighted sum of the scores of members, named after this network.

        Parameters
        ----------
        members : the systems that are summed, with raw scores
        name : "Stream+LSA" or "Fusion"
        dev : trials of dev accounts, on which the weights are fitted
        max_tokens : tokens read of each post
        norm : how the members' scores are normalised: "s-norm", "AS-norm", or "" for raw ones
        note : "no Stream"; or "equal weights", which are not fitted
        """
        scorers = {system.member: system.scorer for system in members}
        if norm:
            scorers = {system.member: system.normed_scorer(norm) for system in members}
        if note == "equal weights":
            return self._made(Model.fuse(scorers), name, norm, note)
        return self._made(fit_weights(scorers, dev, max_tokens), name, norm, note)

    def _made(self, scorer, name="", norm="", note=""):
        """Return a system that is made of this network."""
        model = f"{OF_NETWORK[name, norm, note]}_{self.name}"
        shown_norm = norm
        if name == "Fusion" and norm == "s-norm":
            shown_norm = ""  # is understood
        title = name_of(self.experiment, name, shown_norm, note or self.note)
        return replace(self, model=model, label=title, scorer=scorer, norm=norm)


@dataclass(frozen=True, eq=False)
class RowSystem(System):
    """A trained network that is a row of a table, with trials of its own.

    Attributes
    ----------
    protocol : the table: "khan2021 Table 1"
    key : values of the table's index, see :func:`helpers.core.names.row_name`
    trained : the :class:`~helpers.training.experiment.Trained`
    trials : the trials of test accounts by which it is ranked
    """

    protocol: str = ""
    key: tuple | str = ""
    trained: Any = None
    trials: Trials | None = None

    @classmethod
    def of(cls, protocol: str, key: tuple | str, trained: Any, trials: Trials) -> "RowSystem":
        """Return the row of a network; trained on single posts, it averages their vectors.

        Parameters
        ----------
        protocol, key, trained, trials : attributes of the row
        """
        encoder = trained.encoder
        if trained.experiment.sampler.max_posts == 1:
            encoder = ChunkMean(encoder)
        model = key if isinstance(key, str) else " ".join(str(value) for value in key)
        about = {
            "protocol": protocol,
            "split": "test",
            "sample_size": trials.queries.count.max(),
            "data": trials.queries.store.meta["fingerprint"],
        }
        about |= trained.about
        return cls(model, model, row_name(key), encoder, "", about, protocol, key, trained, trials)


def rank_rows(
    files: Run, systems: Sequence[RowSystem], seed: int = 0
) -> dict[RowSystem, pd.Series]:
    """Rank the test accounts by each system, and record the metrics.

    Parameters
    ----------
    files : the run
    systems : the systems, each with its trials
    seed : seed of the bootstrap

    Returns
    -------
    The ranks of each system, see :func:`helpers.evaluation.ranking.positive_ranks`.
    """
    ranks = {}
    for system in systems:
        trials = system.trials
        max_tokens = system.trained.experiment.sampler.max_tokens
        table, ranks[system] = evaluate_ranking(system.scorer, trials, max_tokens, seed)
        system.record(files, table, queries=len(trials.queries), targets=len(trials.targets))
    return ranks


def rank_systems(
    files: Run,
    systems: Sequence[System],
    split: str,
    trials: Trials,
    max_tokens: int = 32,
    seed: int = 0,
) -> dict[System, pd.Series]:
    """Rank the accounts of a split by each system, and record the metrics.

    Where accounts come from several communities, each is ranked a second time, among those of its
    own community.

    Parameters
    ----------
    files : the run
    systems : the systems
    split : the name of the split
    trials : its trials, see :func:`helpers.evaluation.ranking.ranking_trials`
    max_tokens : tokens read of each post
    seed : seed of the bootstrap

    Returns
    -------
    The ranks of each system, see :func:`helpers.evaluation.ranking.positive_ranks`.
    """
    queries = trials.queries
    measured = {
        "split": split,
        "queries": len(queries),
        "sample_size": queries.count.max(),
        "max_tokens": max_tokens,
        "data": queries.store.meta["fingerprint"],
    }
    communities = trials_by_community(trials)
    ranks = {}
    for system in systems:
        table, ranks[system] = evaluate_ranking(system.scorer, trials, max_tokens, seed)
        system.record(files, table, protocol="ranking", targets=len(trials.targets), **measured)
        if len(communities) > 1:
            table, _ = evaluate_ranking(system.scorer, communities, max_tokens, seed)
            system.record(files, table, protocol="ranking within communities", **measured)
    return ranks


def compare_ranks(
    files: Run,
    pairs: Sequence[tuple[System, System]],
    ranks: dict[System, pd.Series],
    seed: int = 0,
    **measured: Any,
) -> pd.DataFrame:
    """Subtract the metrics of other systems from those of systems, query by query, and record it.

    Parameters
    ----------
    files : the run
    pairs : systems, each with the one that is subtracted
    ranks : result of :func:`rank_systems` or :func:`rank_rows`
    seed : seed of the bootstrap
    **measured : fields of the results: ``split``, ``max_tokens``, ``data``; ``protocol``, by
        default "ranking"

    Returns
    -------
    A row per pair: ``model``, ``label``, ``base`` (the label of the other system) and ``split``,
    with ``value, low, high`` of the difference in MRR, and ``better, worse, sign_p`` of
    :func:`helpers.evaluation.ranking.compare_rankings`.
    """
    measured = {"protocol": "ranking"} | measured
    rows = []
    for system, base in pairs:
        table = compare_rankings(ranks[system], ranks[base], seed)
        row = _record_difference(files, system, base, table, **measured)
        rows.append(row | table.value["better":].to_dict())
    return pd.DataFrame(rows)


def _record_difference(files, system, base, table, **measured):
    """Record the differences of two systems; return that of the first metric as a tidy row."""
    system.record(files, table, base=base.model, **measured)
    row = {"model": system.model, "label": system.label, "base": base.label, **measured}
    return row | table.iloc[0].to_dict()


def link_systems(
    files: Run,
    systems: Sequence[System],
    trials: list[Trials],
    costs: DetectionCosts,
    seed: int = 0,
    **measured: Any,
) -> dict[str, pd.DataFrame]:
    """Score the linking trials of a split by each system, and record the error rates.

    These are of the targets that have as many posts as those of the first trials.

    Parameters
    ----------
    files : the run
    systems : the systems
    trials : result of :func:`helpers.evaluation.linking.linking_trials`
    costs : costs of a miss and of a false link, and the prior
    seed : seed of the bootstrap
    **measured : fields of the results: ``split``, ``max_tokens``, ``data``

    Returns
    -------
    The scored trials of each system, see :func:`helpers.evaluation.linking.score_linking`.
    """
    targets = trials[0].targets
    measured |= {"sample_size": targets.count.max(), "targets": len(targets)}
    scored = {}
    for system in systems:
        scored[system.model] = score_linking(system.scorer, trials, measured["max_tokens"])
        part = scored[system.model].query("target_posts == @measured['sample_size']")
        table = linking_metrics(part, costs, seed)
        system.record(files, table, protocol="linking", queries=part.same.sum(), **measured)
    return scored


def compare_links(
    files: Run,
    systems: Sequence[System],
    bases: Sequence[System],
    scored: dict[str, pd.DataFrame],
    costs: DetectionCosts,
    seed: int = 0,
    **measured: Any,
) -> pd.DataFrame:
    """Subtract the error rates of some systems from those of all others, and record it.

    Of several trainings of one system, whose identifiers end in "-seed1" and so on, the error rates
    are averaged, and the difference has no seed.

    Parameters
    ----------
    files : the run
    systems : the systems
    bases : those that are subtracted
    scored : the trials of each system, with targets of one size
    costs : costs of a miss and of a false link, and the prior
    seed : seed of the bootstrap
    **measured : fields of the results: ``split``, ``max_tokens``, ``data``

    Returns
    -------
    A row per pair: ``model``, ``label``, ``base`` (the label of the other system) and ``split``,
    with ``value, low, high`` of the difference in EER.
    """
    trainings = {}
    for system in systems:
        trainings.setdefault(system.model.partition(SEED)[0], []).append(system)
    rows = []
    for name, of_system in trainings.items():
        for base in dict.fromkeys(base.model.partition(SEED)[0] for base in bases):
            if base == name:
                continue
            sides = [of_system, trainings[base]]
            parts = [[scored[system.model] for system in side] for side in sides]
            table = linking_metrics(parts[0], costs, seed, base=parts[1])
            # the first in the alphabet has no seed in its identifier, where there is such a one
            pair = [min(side, key=attrgetter("model")) for side in sides]
            about = {"protocol": "linking", "seed": None, **measured}
            rows.append(_record_difference(files, *pair, table, **about))
    return pd.DataFrame(rows)
