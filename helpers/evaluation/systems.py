"""Systems of a comparison: what scores, its name in tables, and what its results belong to.

A comparison is a list of systems. An encoder that counts is one, and so is a trained network. Each
can be normalised, and several can be summed with weights that rank dev accounts best.
:mod:`helpers.evaluation.comparisons` evaluates lists of systems.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ..core import results
from ..core.names import label, name_of, row_name, short_name
from ..core.paths import Run
from ..encoders.base import ChunkMean, Encoder
from ..tokens.batch import Samples
from .models import Member, Model, Scorer, as_model, fit_weights, fitted_on_gallery
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
    def named(cls, name: str, scorer: Scorer, **training: Any) -> "System":
        """Return a system whose results have its own name.

        Parameters
        ----------
        name : its name, or its identifier in ``names.csv``
        scorer : the encoder or model that scores pairs
        **training : fields of its results that describe a training, see
            :attr:`helpers.training.experiment.Trained.about`
        """
        return cls(name, name, label(name), scorer, training=training)

    @classmethod
    def counting(cls, kind: str, encoder: Encoder) -> "System":
        """Return the system of an encoder that is fitted in closed form.

        Parameters
        ----------
        kind : its name in :data:`helpers.encoders.baselines.BASELINES`
        encoder : the fitted encoder
        """
        return cls.named(kind, Member(kind, encoder))

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

        Raises
        ------
        ValueError
            If the system is a sum, whose members are normalised when it is made.
        """
        if isinstance(self.scorer, Model):
            raise ValueError(f"{self.label} is a sum: its members are normalised by sum_of")
        normaliser, _ = NORMS[norm]
        encoder = self.scorer.encoder
        if cohort is None:
            # the same for every norm, so that a gallery is fitted once
            make = partial(fitted_on_gallery, encoder)
            encoder = self.scorer.embeddings.once(("on gallery",), make)
        return replace(self.scorer, encoder=encoder, normaliser=normaliser, cohort=cohort)

    def score_matrix(self, queries: Samples, targets: Samples, max_tokens: int = 32) -> np.ndarray:
        """Return the scores (Q, T) of Q queries with T targets, see :class:`Model`.

        Parameters
        ----------
        queries, targets : Q and T samples
        max_tokens : tokens read of each post
        """
        return as_model(self.scorer).score_matrix(queries, targets, max_tokens)

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
    trials : the trials by which it is ranked
    """

    protocol: str = ""
    key: tuple | str = ""
    trained: Any = None
    trials: Trials | None = None

    @classmethod
    def of(
        cls, protocol: str, key: tuple | str, trained: Any, trials: Trials, split: str = "test"
    ) -> "RowSystem":
        """Return the row of a network; trained on single posts, it averages their vectors.

        Parameters
        ----------
        protocol, key, trained, trials : attributes of the row
        split : name of the accounts of the trials
        """
        encoder = trained.encoder
        if trained.experiment.sampler.max_posts == 1:
            encoder = ChunkMean(encoder)
        model = key if isinstance(key, str) else " ".join(str(value) for value in key)
        about = {
            "protocol": protocol,
            "split": split,
            "sample_size": trials.queries.count.max(),
            "data": trials.queries.store.meta["fingerprint"],
        }
        about |= trained.about
        return cls(model, model, row_name(key), encoder, "", about, protocol, key, trained, trials)
