"""Account ranking, khan2021 section 4.2: whose posts are these, among all the accounts of a gallery?

For each account its first posts are the query and its last posts the target. The targets of all accounts are the
gallery, and we measure the rank of the right one. Ranks depend on the sizes of the gallery and of the samples.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from helpers.evaluation.bootstrap import bootstrap_means, metric_table
from helpers.evaluation.gallery import open_gallery
from helpers.evaluation.scores import TILE
from helpers.evaluation.trials import Trials, communities
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore, concat_ranges

RECALL_AT = (1, 4, 8)


def ranking_trials(store: TokenStore, posts: int = 16, min_posts: int | None = None) -> Trials:
    """List the trials: the first ``posts`` posts of each account against the last ``posts`` of every account.

    min_posts : posts that an account must have, 2 * posts at least and by default; a larger number keeps the accounts
        the same for samples of several sizes.
    """
    min_posts = 2 * posts if min_posts is None else min_posts
    author = np.flatnonzero(store.posts_per_author() >= min_posts)
    if not 1 <= posts <= min_posts / 2:
        raise ValueError(
            f"ranking: query and target of {posts} posts each, of accounts with {min_posts}"
        )
    if len(author) < 2:
        raise ValueError(f"ranking needs two authors with {min_posts} posts, found {len(author)}")
    count = np.full(len(author), posts)
    first, last = store.author_offsets[author], store.author_offsets[author + 1] - posts
    return Trials(
        Samples(store, first, count, author), Samples(store, last, count, author), name="ranking"
    )


class PositiveTargets:
    """Find the targets of each query's author, once for all blocks of scores."""

    def __init__(self, trials: Trials):
        if trials.pairs is not None:
            raise ValueError("ranks need every query against every target, not listed pairs")
        order = np.argsort(trials.targets.authors, kind="stable")
        authors = trials.targets.authors[order]
        if not len(trials.queries) or len(np.unique(authors)) < 2:
            raise ValueError(f"ranks need a query and targets of two authors, not {len(trials.queries)} queries and "
                             f"targets of {len(np.unique(authors))}")  # fmt: skip
        first, end = (
            np.searchsorted(authors, trials.queries.authors, side) for side in ("left", "right")
        )
        if missing := (first == end).sum():
            raise ValueError(f"{missing} of {len(first)} queries have no target of their author")
        place, self.offsets = concat_ranges(first, end - first)
        self.columns = order[place]

    def of(self, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return (row within the block, column) of every right target of a block of queries."""
        offsets = self.offsets[rows.start : rows.stop + 1]
        return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), self.columns[
            offsets[0] : offsets[-1]
        ]

    def ranks(self, rows: slice, scores: np.ndarray) -> np.ndarray:
        """Return the rank of the best right target (q,): 1 + targets of others with the same score or a higher one."""
        row, column = self.of(rows)
        own = scores[row, column]
        begin = self.offsets[rows.start : rows.stop] - self.offsets[rows.start]
        best = np.maximum.reduceat(own, begin)
        threshold, scores = torch.from_numpy(best)[:, None], torch.from_numpy(scores)
        count = np.zeros(len(best))
        for tile in scores.split(
            TILE, 1
        ):  # comparing into floats is several times faster than counting booleans
            count += torch.ge(tile, threshold, out=torch.empty(tile.shape)).sum(1).numpy()
        return 1 + count - np.add.reduceat(own >= best[row], begin, dtype=float)


def positive_ranks(model, trials: Trials, max_tokens: int = 32) -> pd.Series:
    """Return the rank of each query's best right target, 1 = best; its index is the author of the query."""
    own, rank = PositiveTargets(trials), np.empty(len(trials.queries))
    for rows, scores in open_gallery(model, trials.targets, max_tokens).scores(trials.queries):
        rank[rows] = own.ranks(rows, scores)
    return pd.Series(rank, pd.Index(trials.queries.authors, name="author"), name="rank")


def ranking_metrics(rank: pd.Series, seed: int = 0, resamples: int = 1000) -> pd.DataFrame:
    """Summarise ranks by author as MRR, R@1, R@4, R@8 and mean rank, with intervals over authors."""
    recalls = {f"R@{k}": rank <= k for k in RECALL_AT}
    return bootstrap_means(
        {"MRR": 1 / rank, **recalls, "mean_rank": rank}, rank.index, resamples, seed
    )


def evaluate_ranking(
    model, trials: Trials, max_tokens: int = 32, seed: int = 0, resamples: int = 1000
) -> tuple[pd.DataFrame, pd.Series]:
    """Rank the right target of every query.

    model : an encoder or a fusion. resamples : of the bootstrap; 0 for no interval, as during training.
    Returns (value, low, high) of MRR, R@1, R@4, R@8 and mean_rank (khan2021 section 4.2), and :func:`positive_ranks`.
    """
    rank = positive_ranks(model, trials, max_tokens)
    return ranking_metrics(rank, seed, resamples), rank


def trials_by_community(trials: Trials) -> dict[str, Trials]:
    """Part the trials by community, as an account of another archive is told apart too easily.

    A community needs two authors. If no topic names a community ("community/topic"), all trials stay together.
    """
    store = trials.queries.store
    if not any("/" in name for name in store.meta["topics"]):
        return {"": trials}
    home, apart = communities(store), {}
    for name in np.unique(home[trials.queries.authors]):
        queries, targets = (
            side[np.flatnonzero(home[side.authors] == name)]
            for side in (trials.queries, trials.targets)
        )
        if len(np.unique(targets.authors)) > 1:
            apart[name] = Trials(queries, targets, name=name)
    return apart


def evaluate_by_community(
    model, apart: dict[str, Trials], max_tokens: int = 32, seed: int = 0, resamples: int = 1000
) -> tuple[pd.DataFrame, pd.Series]:
    """Evaluate as :func:`evaluate_ranking`, but rank every account among those of its own community only.

    apart : of :func:`trials_by_community`, made once, as normalised models keep the galleries of the same targets.
    """
    rank = pd.concat([positive_ranks(model, part, max_tokens) for part in apart.values()])
    return ranking_metrics(rank, seed, resamples), rank


def ranking_differences(ranks, base, seed: int = 0, resamples: int = 1000) -> pd.DataFrame:
    """Return MRR_difference and R@8_difference of two models on the same queries, with paired intervals over authors.

    ranks, base : a series of :func:`positive_ranks`, or one a seed, whose mean is compared. An author who is hard for both
    models does not widen the interval. Raises ValueError where the queries differ.
    """
    sides = [one if isinstance(one, Sequence) else [one] for one in (ranks, base)]
    authors = sides[0][0].index
    if not all(
        len(each) == len(authors) and (each.index == authors).all()
        for side in sides
        for each in side
    ):
        raise ValueError("ranks to compare are not of the same queries")
    one, other = (np.stack([each.to_numpy() for each in side]) for side in sides)
    columns = {"MRR_difference": (1 / one).mean(0) - (1 / other).mean(0),
               "R@8_difference": (one <= 8).mean(0) - (other <= 8).mean(0)}  # fmt: skip
    return bootstrap_means(columns, authors, resamples, seed)


def compare_rankings(
    ranks: pd.Series, base: pd.Series, seed: int = 0, resamples: int = 2000
) -> pd.DataFrame:
    """Compare two models on the same queries.

    Returns the rows of :func:`ranking_differences`, ``better`` and ``worse`` (queries that rank higher and lower) and
    ``sign_p``, the two-sided sign test of these counts, equal ranks left out (khan2021 footnote 2).
    """
    from scipy.stats import binomtest

    result = ranking_differences(ranks, base, seed, resamples)
    better, worse = int((ranks < base).sum()), int((ranks > base).sum())
    p = binomtest(better, better + worse).pvalue if better + worse else 1.0
    return pd.concat([result, metric_table({"better": better, "worse": worse, "sign_p": p})])
