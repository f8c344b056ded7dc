"""Weights of an author encoder's members, and the map from their score to a likelihood ratio."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from helpers.accounts.samples import MAX_TOKENS, halves, last_posts
from helpers.core.progress import progress_bar
from helpers.evaluation import calibration
from helpers.evaluation.calibration import Calibration
from helpers.evaluation.models import Model
from helpers.tokens.store import TokenStore

SIZES = (4, 8, 16, 32)  # numbers of posts per sample on which calibration is fitted


@dataclass(frozen=True)
class ScoringConfig:
    """One use of the members: their weights, the calibration, and its bounds.

    Attributes
    ----------
    members : names, normalisers and weights, as :meth:`helpers.evaluation.models.Model.to_json`
        returns them
    calibration : turns scores into log-likelihood ratios
    same, different : numbers of same-account and different-account trials that calibration was
        fitted on. Log-likelihood ratios are clipped to what so many trials can support, between
        -log(same + 1) and log(different + 1), as in forensic practice (Vergeer et al. 2016)
    """

    members: list[dict]
    calibration: Calibration
    same: int
    different: int

    @property
    def weights(self) -> dict[str, float]:
        """Name of a member -> its weight."""
        return {member["name"]: member["weight"] for member in self.members}

    def llr(self, scores: np.ndarray, query_posts, target_posts) -> np.ndarray:
        """Return the log-likelihood ratio of each score, within the bounds.

        Parameters
        ----------
        scores : scores of pairs, in an array of any shape
        query_posts, target_posts : numbers of posts of the query and of the target of each pair,
            broadcast to the shape of ``scores``; clipped to the range of SIZES
        """
        sizes = [np.clip(posts, SIZES[0], SIZES[-1]) for posts in (query_posts, target_posts)]
        flat = [values.ravel() for values in np.broadcast_arrays(scores, *sizes)]
        ratios = self.calibration.llr(*flat).reshape(np.shape(scores))
        return ratios.clip(-np.log1p(self.same), np.log1p(self.different))

    @classmethod
    def of(cls, plain: dict) -> "ScoringConfig":
        """Return the object from which ``asdict`` has made a dict."""
        return cls(**{**plain, "calibration": Calibration(**plain["calibration"])})


def fit_scoring(model: Model, dev: TokenStore, min_accounts: int) -> ScoringConfig:
    """Fit the calibration of a model on halves of dev accounts.

    The older halves are queries, the newer ones targets, cut to each combination of two SIZES for
    which at least ``min_accounts`` accounts have enough posts. All combinations are fitted
    together. The bounds count the trials of the largest one only, since the others repeat the same
    pairs of accounts.

    Parameters
    ----------
    model : gives the scores that are calibrated
    dev : posts of the dev accounts
    min_accounts : combinations of sizes with fewer accounts are left out

    Raises
    ------
    ValueError
        Fewer than ``min_accounts`` accounts have enough posts for the smallest sizes.
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
