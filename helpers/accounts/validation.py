"""Check the answers about own accounts on halves of accounts."""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from ..evaluation.calibration import calibration_metrics
from ..evaluation.detection import DetectionCosts
from ..evaluation.matching import as_pairs
from ..tokens.batch import Samples
from .encoder import ENOUGH, AuthorEncoder
from .gallery import NOT_COMPARED, AccountGallery
from .reading import OwnPosts
from .samples import cut_in_half, spread_posts
from .scoring import match_pairs, posterior
from .unjudged import is_read

MAX_ACCOUNTS = 1000  # of more accounts, so many are sampled at random and cut in halves
MIN_POSTS_OF_HALF = 8  # accounts with fewer posts than two such halves are not checked
MAX_POSTS_OF_HALF = 128  # with 512, 87 of 102 planted accounts were linked, with 128 it was 86
CONFIDENCE = 0.95  # of the bound of the share of wrong links


def able_accounts(posts: OwnPosts) -> np.ndarray:
    """Return the numbers of the accounts that can be cut in halves of MIN_POSTS_OF_HALF posts."""
    return np.flatnonzero(posts.store.posts_per_author() >= 2 * MIN_POSTS_OF_HALF)


def split_half_trials(posts: OwnPosts, seed: int = 0) -> tuple[AccountGallery, Samples]:
    """Return a gallery of the newer halves of accounts, and their older halves as queries.

    Both are in the same order. Accounts with fewer than 2 * MIN_POSTS_OF_HALF posts are left out:
    one must have so many. Of more than 2 * MAX_POSTS_OF_HALF posts, so many are taken, evenly
    spread over their time.

    Parameters
    ----------
    posts : OwnPosts
        all accounts.
    seed : int
        seed of the random sample of MAX_ACCOUNTS accounts, which is taken where there are more.
    """
    able = np.random.default_rng(seed).permutation(able_accounts(posts))
    accounts = np.sort(able[:MAX_ACCOUNTS])
    whole = spread_posts(posts.store, accounts, 2 * MAX_POSTS_OF_HALF)
    older, newer = cut_in_half(whole)
    return posts.gallery(newer), older


@dataclass(frozen=True, eq=False)
class CalibrationChoice:
    """The calibration that is used for own accounts, and how well it does on their halves.

    Attributes
    ----------
    encoder : the encoder with the calibration that is used
    able : number of accounts that can be cut in halves
    gallery : the newer halves of the accounts that judged; None where nothing was judged
    older : their older halves, in the same order; None where nothing was judged
    ratios : name of a calibration that was judged, "shipped" and perhaps "own", the one that is
        used last -> (N, N), log-likelihood ratios of the older with the newer halves of N accounts;
        of the own calibration each row is that of a fit in which this account took no part
    metrics : one column for each of these; its rows are the metrics of
        :func:`helpers.evaluation.calibration.calibration_metrics` and the number of accounts
    """

    encoder: AuthorEncoder
    able: int
    gallery: AccountGallery | None = None
    older: Samples | None = None
    ratios: dict[str, np.ndarray] = field(default_factory=dict)
    metrics: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def fitted(self) -> int:
        """Number of accounts that the own calibration is fitted on, 0 where there is none."""
        return len(self.older) if "own" in self.ratios else 0


def choose_calibration(
    posts: OwnPosts, costs: DetectionCosts = DetectionCosts(), seed: int = 0
) -> CalibrationChoice:
    """Fit the calibration on own accounts where there are enough, and judge it and the shipped one.

    Only accounts with at least 2 * MIN_POSTS_OF_HALF posts that the encoder can read are used, at
    most MAX_ACCOUNTS sampled at random. They are cut in halves. From ENOUGH such accounts on, the
    own calibration is fitted, which starts from the shipped one and leaves it as far as the
    accounts say so: few accounts change little. It is judged twice, each time on a random half of
    the accounts after a fit on the others; the one that is used is fitted on all. Of fewer accounts
    the shipped calibration is used; where there are fewer than two, nothing is judged.

    Parameters
    ----------
    posts : OwnPosts
        all accounts, and the encoder with the shipped calibration.
    costs : DetectionCosts
        costs of errors, with which the metrics are computed.
    seed : int
        seed of the random sample of accounts and of its parts.
    """
    able = len(able_accounts(posts))
    if able < 2:
        return CalibrationChoice(posts.encoder, able)
    gallery, older = split_half_trials(posts, seed)
    can_be_read = np.flatnonzero([is_read(problem) for problem in gallery.problems])
    if 2 <= len(can_be_read) < len(gallery):
        older = older[can_be_read]
        gallery = posts.gallery(gallery.targets[can_be_read])
    scores = gallery.scores(older)
    ratios = {"shipped": gallery.llr(scores, older)}
    if len(older) >= ENOUGH:
        ratios["own"] = _left_out_ratios(gallery, older, scores, seed)
        gallery = _calibrated(gallery, older, scores, np.arange(len(older)))
    same = np.eye(len(older), dtype=bool).ravel()
    metrics = pd.DataFrame(
        {name: calibration_metrics(llr.ravel(), same, costs).value for name, llr in ratios.items()}
    )
    metrics.loc["accounts"] = len(older)
    return CalibrationChoice(gallery.encoder, able, gallery, older, ratios, metrics)


def _calibrated(gallery, older, scores, rows):
    """Return the gallery with a calibration that is fitted on some of the accounts."""
    encoder = gallery.encoder.calibrated_by(
        scores[0], older, gallery.targets, rows, gallery.hours, gallery.languages
    )
    return replace(gallery, encoder=encoder)


def _left_out_ratios(gallery, older, scores, seed):
    """Return the log-likelihood ratios of own calibrations, each row of one fitted on others."""
    parts = np.array_split(np.random.default_rng(seed).permutation(len(older)), 2)
    ratios = np.empty(scores[0].shape)
    for judging, fitting in (parts, reversed(parts)):
        judged = _calibrated(gallery, older, scores, np.sort(fitting))
        ratios[judging] = judged.llr(scores, older)[judging]
    return ratios


def link_errors(
    choice: CalibrationChoice,
    costs: DetectionCosts,
    are_two: bool = False,
    together: pd.DataFrame | None = None,
) -> dict[str, float | None] | None:
    """Count links among halves of accounts, which are linked as accounts of lists are.

    Each older half is asked twice: with its own newer half in the list, and without it. The second
    time the accounts are away as well that may be the same person's: a link with these would be
    right.

    Parameters
    ----------
    choice : CalibrationChoice
        the calibration that is used, with the ratios of N older halves
    costs : DetectionCosts
        costs of errors and the prior, from which probabilities and the threshold follow
    are_two : bool
        whether older and newer halves are matched as two lists, in which each account has one
        partner at most; else as accounts of one list
    together : DataFrame, optional
        two columns, names of accounts that are one person's, or are linked

    Returns
    -------
    None of fewer than ENOUGH accounts; else ``accounts``, N; numbers of older halves that are
    linked with their own newer half (``right``), with another one though their own is there
    (``wrong``), or while it is not there (``wrong_alone``); ``wrong_share``, the share of links
    that are wrong at this prior, None where there would be no link; and ``most_wrong_share``, its
    upper bound with the upper 95% Clopper-Pearson bound in place of the share of ``wrong_alone``,
    which matters most
    """
    if choice.gallery is None or len(choice.gallery) < ENOUGH:
        return None
    *_, llr = choice.ratios.values()
    accounts = len(llr)
    is_linked = _linked(llr, costs, are_two)
    own_is_linked = is_linked.diagonal()
    others_alone = llr.copy()
    np.fill_diagonal(others_alone, NOT_COMPARED)
    if together is not None:
        sides = np.stack([choice.gallery.columns(names) for _, names in together.items()])
        sides = sides[:, (sides >= 0).all(0)]
        others_alone[tuple(sides)] = NOT_COMPARED
        others_alone[tuple(sides[::-1])] = NOT_COMPARED
    right = int(own_is_linked.sum())
    wrong = int((is_linked.any(1) & ~own_is_linked).sum())
    wrong_alone = int(_linked(others_alone, costs, are_two).any(1).sum())
    test = binomtest(wrong_alone, accounts, alternative="less")
    highest = accounts * test.proportion_ci(CONFIDENCE).high
    errors = {"accounts": accounts, "right": right, "wrong": wrong, "wrong_alone": wrong_alone}
    for name, alone in (("wrong_share", wrong_alone), ("most_wrong_share", highest)):
        wrong_links = costs.prior * wrong + (1 - costs.prior) * alone
        errors[name] = None
        if right:
            errors[name] = float(wrong_links / (costs.prior * right + wrong_links))
    return errors


def _linked(llr, costs, are_two):
    """Return which pairs (N, N) are linked, by the rule of one list or of two."""
    if are_two:
        probability, _ = match_pairs(as_pairs(llr - np.log(len(llr))), costs.prior)
        return probability.toarray() >= costs.min_probability
    forward, _ = posterior(llr, costs.prior)
    back, _ = posterior(llr.T, costs.prior)
    return np.minimum(forward, back.T) >= costs.min_probability
