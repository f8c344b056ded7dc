"""Uses of the members of an author encoder: fusion weights and the calibration from score to likelihood ratio."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from helpers.accounts.samples import MAX_TOKENS, halves, last_posts
from helpers.core.progress import progress_bar
from helpers.evaluation import calibration
from helpers.evaluation.calibration import Calibration
from helpers.evaluation.fusion import Fusion
from helpers.tokens.store import TokenStore

SIZES = (4, 8, 16, 32)  # posts of a sample, on which calibration is fitted


@dataclass(frozen=True)
class ScoringConfig:
    """One way to use the members: their weights, the calibration to log-likelihood ratios, and its bounds.

    same, different : trials that calibration was fitted on. Ratios are cut to what so many can support, between
    -log(same + 1) and log(different + 1), as in forensic practice (Vergeer et al. 2016).
    """

    weights: dict[str, float]
    calibration: Calibration
    same: int
    different: int

    def llr(self, scores: np.ndarray, query_posts, target_posts) -> np.ndarray:
        """Log-likelihood ratios of scores, any shape, of pairs with so many posts, cut to the range of SIZES."""
        sizes = (np.clip(size, SIZES[0], SIZES[-1]) for size in (query_posts, target_posts))
        flat = [part.ravel() for part in np.broadcast_arrays(scores, *sizes)]
        ratios = self.calibration.llr(*flat).reshape(np.shape(scores))
        return ratios.clip(-np.log1p(self.same), np.log1p(self.different))

    @classmethod
    def of(cls, plain: dict) -> "ScoringConfig":
        """The use of which a dict tells, as ``asdict`` does."""
        return cls(**{**plain, "calibration": Calibration(**plain["calibration"])})


def fit_scoring(fusion: Fusion, dev: TokenStore, least: int) -> ScoringConfig:
    """Fit the calibration of a fusion, from its scores to log-likelihood ratios, on halves of dev accounts.

    Queries and targets have each of SIZES posts where at least ``least`` accounts go so far. The bounds count the
    accounts of one gallery, once: their pairs of other sizes are no further trials.
    Raises ValueError where too few accounts have posts enough.
    """
    scores, same, sizes, accounts = [], [], [], 0
    for asked, kept in progress_bar(
        [*product(SIZES, SIZES)], desc="calibrating", unit="size", delay=2
    ):
        older, newer = halves(dev, max(asked, kept), max(asked, kept))
        if len(older) < least:
            continue
        accounts = max(accounts, len(older))
        queries, targets = (
            last_posts(older, asked),
            replace(newer, count=np.minimum(newer.count, kept)),
        )
        block = np.concatenate(
            [block.copy() for _, block in fusion.gallery(targets, MAX_TOKENS).scores(queries)]
        )
        scores.append(block.ravel())
        same.append(np.eye(len(queries), dtype=bool).ravel())
        sizes.append(np.broadcast_to([[asked], [kept]], (2, block.size)))
    if not scores:
        raise ValueError(f"calibration needs {least} accounts with {2 * SIZES[0]} posts")
    scores, same, (asked, kept) = np.concatenate(scores), np.concatenate(same), np.hstack(sizes)
    fitted = calibration.fit_calibration(scores, same, asked, kept)
    return ScoringConfig(fusion.weights, fitted, accounts, accounts * (accounts - 1))
