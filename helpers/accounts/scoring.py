"""Uses of the members of an author encoder: weights, and the map from score to likelihood ratio."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from helpers.accounts.samples import MAX_TOKENS, halves, last_posts
from helpers.core.progress import progress_bar
from helpers.evaluation import calibration
from helpers.evaluation.calibration import Calibration
from helpers.evaluation.models import Model
from helpers.tokens.store import TokenStore

SIZES = (4, 8, 16, 32)  # posts of a sample, on which calibration is fitted


@dataclass(frozen=True)
class ScoringConfig:
    """One way to use the members: their weights, the calibration, and its bounds.

    Attributes
    ----------
    members : of :meth:`helpers.evaluation.models.Model.to_json`
    calibration : from scores to log-likelihood ratios
    same, different : trials that calibration was fitted on. Ratios are cut to what so many can
        support, between -log(same + 1) and log(different + 1), as in forensic practice (Vergeer et
        al. 2016).
    """

    members: list[dict]
    calibration: Calibration
    same: int
    different: int

    @property
    def weights(self) -> dict[str, float]:
        """The weights of the members by name."""
        return {member["name"]: member["weight"] for member in self.members}

    def llr(self, scores: np.ndarray, query_posts, target_posts) -> np.ndarray:
        """Return log-likelihood ratios of scores.

        Parameters
        ----------
        scores : of any shape
        query_posts, target_posts : posts of each pair, of a shape that fits; cut to the range of
            SIZES
        """
        sizes = [np.clip(posts, SIZES[0], SIZES[-1]) for posts in (query_posts, target_posts)]
        flat = [values.ravel() for values in np.broadcast_arrays(scores, *sizes)]
        ratios = self.calibration.llr(*flat).reshape(np.shape(scores))
        return ratios.clip(-np.log1p(self.same), np.log1p(self.different))

    @classmethod
    def of(cls, plain: dict) -> "ScoringConfig":
        """Return the use of which a dict tells, as ``asdict`` makes it."""
        return cls(**{**plain, "calibration": Calibration(**plain["calibration"])})


def fit_scoring(model: Model, dev: TokenStore, min_accounts: int) -> ScoringConfig:
    """Fit the calibration of a model on halves of dev accounts.

    Queries and targets have each of SIZES posts where accounts enough go so far. The bounds count
    the accounts of one gallery, once: their pairs of other sizes are no further trials.

    Parameters
    ----------
    model : whose scores are calibrated
    dev : of the accounts
    min_accounts : that go so far

    Raises
    ------
    ValueError
        Too few accounts have posts enough.
    """
    trials = []
    accounts = 0
    sizes = list(product(SIZES, SIZES))
    for query_posts, target_posts in progress_bar(sizes, desc="calibrating", unit="size", delay=2):
        least = max(query_posts, target_posts)
        older, newer = halves(dev, least, least)
        if len(older) < min_accounts:
            continue
        accounts = max(accounts, len(older))
        queries = last_posts(older, query_posts)
        targets = replace(newer, count=np.minimum(newer.count, target_posts))
        scores = model.score_matrix(queries, targets, MAX_TOKENS)
        same = np.eye(len(queries), dtype=bool)
        columns = np.broadcast_arrays(scores, same, query_posts, target_posts)
        trials.append([values.ravel() for values in columns])
    if not trials:
        raise ValueError(f"calibration needs {min_accounts} accounts with {2 * SIZES[0]} posts")
    fitted = calibration.fit_calibration(*map(np.concatenate, zip(*trials)))
    return ScoringConfig(model.to_json(), fitted, accounts, accounts * (accounts - 1))
