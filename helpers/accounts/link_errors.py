"""Count how often links are wrong, on accounts of the user that are cut in halves."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from scipy.stats import beta

from ..evaluation.detection import DetectionCosts

CONFIDENCE = 0.95


@dataclass(frozen=True)
class LinkErrors:
    """Links among N older and N newer halves of accounts.

    Each older half is asked twice: with its own newer half in the list, and without it.

    Attributes
    ----------
    accounts : N
    right : number of older halves that are linked with their own newer half
    wrong : number of older halves that are linked with another one, though their own is there
    wrong_alone : number of older halves that are linked with another one while their own is not
        there
    """

    accounts: int
    right: int
    wrong: int
    wrong_alone: int

    def wrong_share(self, prior: float) -> float | None:
        """Return the share of links that are wrong, None where there would be no link.

        Parameters
        ----------
        prior : share of the accounts asked about that have a second account in the list
        """
        return _wrong_share(self.right, self.wrong, self.wrong_alone, prior)

    def most_wrong_share(self, prior: float) -> float | None:
        """Return the upper 95% bound of :meth:`wrong_share`, as far as N accounts can tell.

        It puts the upper Clopper-Pearson bound in the place of the share of accounts that are
        linked wrongly while their own half is not there, which matters most.

        Parameters
        ----------
        prior : share of the accounts asked about that have a second account in the list
        """
        highest = 1.0
        if self.wrong_alone < self.accounts:
            highest = beta.ppf(CONFIDENCE, self.wrong_alone + 1, self.accounts - self.wrong_alone)
        return _wrong_share(self.right, self.wrong, float(highest * self.accounts), prior)


def _wrong_share(right, wrong, wrong_alone, prior):
    """Return the share of wrong links if ``prior`` of the accounts have a second one."""
    wrong_links = prior * wrong + (1 - prior) * wrong_alone
    links = prior * right + wrong_links
    if not right:
        return None
    return wrong_links / links


def count_link_errors(llr: np.ndarray, costs: DetectionCosts) -> LinkErrors:
    """Link halves of accounts as accounts are linked: by the lower of both directions.

    Parameters
    ----------
    llr : (N, N), log-likelihood ratios of N older halves with the newer ones, in the same order
    costs : costs of errors and the prior, from which probabilities and the threshold follow
    """
    is_linked = _linked(llr, costs)
    own_is_linked = is_linked.diagonal()
    others_alone = llr.copy()
    np.fill_diagonal(others_alone, -np.inf)
    return LinkErrors(
        len(llr),
        int(own_is_linked.sum()),
        int((is_linked.any(1) & ~own_is_linked).sum()),
        int(_linked(others_alone, costs).any(1).sum()),
    )


def _linked(llr, costs):
    """Return which pairs (N, N) are linked; -inf is a pair that is not compared."""
    of_rows = _probabilities(llr, costs)
    of_columns = _probabilities(llr.T, costs).T
    return np.minimum(of_rows, of_columns) >= costs.min_probability


def _probabilities(llr, costs):
    """Return the probability of each target of each query, see :meth:`AccountGallery.rank`."""
    compared = np.isfinite(llr).sum(1, keepdims=True)
    log_chances = np.log(costs.prior / compared) + llr
    total = np.logaddexp(logsumexp(log_chances, 1, keepdims=True), np.log1p(-costs.prior))
    return np.exp(log_chances - total)
