"""Account ranking, khan2021 section 4.2: whose posts are these, among all the accounts of a gallery?

Each query (posts of one account) is compared with the later posts of every account; the rank of its own account is
what counts. Exact, in blocks: no full score matrix, no sort. Numbers depend on the gallery and on the sample sizes,
so both go with every result.
"""

import numpy as np
import torch
from scipy import sparse
from scipy.stats import binomtest

from helpers.tokens.store import TokenStore

TIES = ("pessimistic", "average")
TIE = 1e-6  # float32 noise of a product of unit vectors: scores closer than this are equal
RECALL_AT = (1, 4, 8)


def query_target_windows(store: TokenStore, posts: int = 16) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Authors with at least two samples of ``posts`` posts: their first ones are the query, their last the target.

    Returns author (N,), first post of the query (N,), first post of the target (N,). Targets are later than queries
    and share no post with them. Raises ValueError where fewer than two authors qualify.
    """
    author = np.flatnonzero(store.posts_per_author() >= 2 * posts)
    if len(author) < 2:
        raise ValueError(f"ranking needs two authors with {2 * posts} posts, found {len(author)}")
    return author, store.author_offsets[author], store.author_offsets[author + 1] - posts


def ranks(
    queries, targets, own: np.ndarray | None = None, ties: str = "pessimistic", rows: int = 512, columns: int = 4096
) -> np.ndarray:
    """Rank of each query's own target among all targets by dot product, 1 = best; float64 (Q,).

    queries (Q, D), targets (T, D): arrays or SciPy sparse matrices of unit rows, so that the order is that of the
    Euclidean distance. own (Q,): the index of each query's target, by default the query's own index.
    ties: equal scores rank before the own target ("pessimistic") or half of them do ("average"); never by position.
    Raises ValueError for shapes that do not fit or values that are not finite.
    """
    if ties not in TIES:
        raise ValueError(f"ties {ties!r}: one of {', '.join(TIES)}")
    own = np.arange(queries.shape[0]) if own is None else np.asarray(own)
    inside = ((0 <= own) & (own < targets.shape[0])).all()
    if queries.shape[1] != targets.shape[1] or len(own) != queries.shape[0] or not inside:
        raise ValueError(f"queries {queries.shape}, targets {targets.shape} and {len(own)} truths do not fit together")
    queries, targets = prepare(queries), prepare(targets)
    result = np.empty(len(own))
    for begin in range(0, len(own), rows):
        mine = torch.from_numpy(own[begin : begin + rows])
        block = queries[begin : begin + rows]
        score = _own_scores(block, targets, mine)
        before, upto = _count(block, targets, score, columns, ties)
        if ties == "pessimistic":
            result[begin : begin + rows] = np.maximum(upto, 1)  # the own target is among those at least as good
        else:
            result[begin : begin + rows] = before + (np.maximum(upto - before, 1) + 1) / 2
    return result


def prepare(matrix):
    """Rows as :func:`product` takes them: float32 tensor or CSR. Raises ValueError for values that are not finite."""
    matrix = matrix.tocsr() if sparse.issparse(matrix) else torch.as_tensor(matrix).float()
    values = torch.from_numpy(matrix.data) if sparse.issparse(matrix) else matrix
    if not torch.isfinite(values).all():
        raise ValueError("embeddings hold values that are not finite")
    return matrix


def product(block, targets) -> torch.Tensor:
    """Scores of every row of a block with every target, (B, T) float32."""
    if sparse.issparse(block):
        return torch.from_numpy((block @ targets.T).toarray()).float()
    return block @ targets.T


def _own_scores(block, targets, mine):
    if sparse.issparse(block):
        return torch.from_numpy(np.asarray(block.multiply(targets[mine.numpy()]).sum(1))).float().view(-1, 1)
    return (block * targets[mine]).sum(1, keepdim=True)


def _count(block, targets, score, columns, ties):
    """How many targets score clearly better, and how many at least as well."""
    before = np.zeros(block.shape[0])
    upto = np.zeros(block.shape[0])
    for begin in range(0, targets.shape[0], columns):
        scores = product(block, targets[begin : begin + columns])
        # comparing into floats and adding those is several times faster than counting booleans
        if ties == "average":
            before += torch.gt(scores, score + TIE, out=torch.empty_like(scores)).sum(1).numpy()
        upto += scores.ge_(score - TIE).sum(1).numpy()
    return before, upto


def summarise(rank: np.ndarray, targets: int, seed: int = 0, resamples: int = 1000) -> dict[str, float]:
    """MRR, R@1, R@4, R@8 and mean rank, with the 95% bootstrap interval of MRR and R@8 over accounts.

    rank (Q,): ranks from 1. targets: size of the gallery. Each query has one target, so R@k is the share of queries
    whose target is among the k best.
    """
    reciprocal, hit = 1 / rank, (rank <= 8).astype(float)
    rng = np.random.default_rng(seed)
    drawn = (rng.integers(0, len(rank), len(rank)) for _ in range(resamples))  # one at a time: bounded memory
    means = [(reciprocal[rows].mean(), hit[rows].mean()) for rows in drawn]
    (low, low8), (high, high8) = np.percentile(means, [2.5, 97.5], axis=0)
    return {
        "MRR": reciprocal.mean(), "MRR_low": low, "MRR_high": high,
        **{f"R@{k}": (rank <= k).mean() for k in RECALL_AT}, "R@8_low": low8, "R@8_high": high8,
        "mean_rank": rank.mean(), "queries": len(rank), "targets": targets,
    }  # fmt: skip


def compare(one: np.ndarray, other: np.ndarray, seed: int = 0, resamples: int = 2000) -> dict[str, float]:
    """Is one model better than another on the same queries? ranks (Q,) of both, in the same order.

    ``MRR_difference`` (one - other) with its paired 95% bootstrap interval over accounts; ``better``, ``worse``, how
    many queries rank higher and lower; ``sign_p``, the two-sided sign test of these counts, equal ranks left out
    (khan2021 footnote 2). Raises ValueError where the lengths differ.
    """
    if len(one) != len(other):
        raise ValueError(f"{len(one)} and {len(other)} ranks are not of the same queries")
    gain = 1 / one - 1 / other
    rng = np.random.default_rng(seed)
    means = [gain[rng.integers(0, len(gain), len(gain))].mean() for _ in range(resamples)]
    low, high = np.percentile(means, [2.5, 97.5])
    better, worse = int((one < other).sum()), int((one > other).sum())
    p = binomtest(better, better + worse).pvalue if better + worse else 1.0
    return {"MRR_difference": gain.mean(), "low": low, "high": high, "better": better, "worse": worse, "sign_p": p}
