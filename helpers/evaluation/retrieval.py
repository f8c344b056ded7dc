"""Retrieval among texts, sawatphol2022 section 3: does another text of the same author come first?

Half of each author's texts ask, the other half answers beside everybody else's; unlike in account ranking an author
has several targets, and the best of them counts. So "R@8" of the paper is the share of queries with any own target
among the 8 nearest: success@8. Numbers depend on the number of targets, which goes with them.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch

from helpers.evaluation.ranking import TIE, prepare, product

ORDERS = ("random", "file")
RECALLS = ("success", "true")
SCORES = 1 << 24  # held at a time, 64 MB


def queries_and_targets(labels, seed: int = 0, order: str = "random") -> tuple[np.ndarray, np.ndarray]:
    """Row numbers (Q,), (T,), each ascending: floor(n/2) of an author's n texts are queries, all others targets.

    labels (N,): the author of each text; an author of a single text is a target and nobody's query. order: which
    texts are queries, drawn at random or the first in the "file", as released. Raises ValueError for another order or
    where no author has two texts.
    """
    if order not in ORDERS:
        raise ValueError(f"order {order!r}: one of {', '.join(ORDERS)}")
    author = pd.factorize(np.asarray(labels))[0]
    rows = np.arange(len(author))
    if order == "random":
        rows = np.random.default_rng(seed).permutation(rows)
    rows = rows[np.argsort(author[rows], kind="stable")]
    size = np.bincount(author)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(size) - size, size)
    is_query = np.empty(len(rows), bool)
    is_query[rows] = nth < np.repeat(size // 2, size)
    if not is_query.any():
        raise ValueError(f"retrieval needs an author with two texts, found {len(size)} authors of {len(rows)} texts")
    return np.flatnonzero(is_query), np.flatnonzero(~is_query)


def retrieve(vectors, labels, query_rows, target_rows, k: tuple[int, ...] = (1, 8), recall: str = "success",
             seed: int = 0, resamples: int = 1000) -> dict[str, float]:
    """``MRR``, ``MRR@10``, ``R@k`` for each k, with the 95% bootstrap interval (``_low``, ``_high``) of MRR and R@k.

    vectors (N, D): unit rows, an array or a SciPy sparse matrix. labels (N,): authors. The rank of a query is that of
    its author's best target: 1 and the targets of others that score as high or higher, so ties are never in favour.
    MRR is the mean of 1/rank over all queries; "MRR@10" counts ranks beyond 10 as 0, as released. Intervals are over
    authors, drawn with all their queries: the texts of one are not independent.
    recall "true": also ``recall@k``, the mean share of an author's targets among the k nearest; between equal scores
    others' targets come first.
    With ``queries``, ``targets``, ``authors`` (that have queries), ``distractors`` (targets of all others). Exact, in
    blocks. Raises ValueError for rows out of range, values that are not finite or a query without own target.
    """
    if recall not in RECALLS:
        raise ValueError(f"recall {recall!r}: one of {', '.join(RECALLS)}")
    author, queries, targets = _check(vectors, labels, query_rows, target_rows)
    own_targets = np.bincount(author[targets], minlength=author.max() + 1)[author[queries]]
    rank, found = np.empty(len(queries)), np.empty((len(queries), len(k)))
    for rows, scores, own in _blocks(vectors, author, queries, targets):
        rank[rows] = _rank(scores, own)
        if recall == "true":
            found[rows] = _found(scores, own, k)
    columns = {"MRR": 1 / rank, **{f"R@{each}": (rank <= each).astype(float) for each in k}}
    means = resampled_means(np.column_stack(list(columns.values())), author[queries], seed, resamples)
    result = {}
    for (name, values), low, high in zip(columns.items(), *np.percentile(means, [2.5, 97.5], axis=0), strict=True):
        result |= {name: values.mean(), f"{name}_low": low, f"{name}_high": high}
    result["MRR@10"] = np.where(rank <= 10, 1 / rank, 0).mean()
    if recall == "true":
        result |= {f"recall@{each}": (found[:, i] / own_targets).mean() for i, each in enumerate(k)}
    return result | {
        "queries": len(queries), "targets": len(targets), "authors": len(np.unique(author[queries])),
        "distractors": int((~np.isin(author[targets], author[queries])).sum()),
    }  # fmt: skip


def ranks(vectors, labels, query_rows, target_rows) -> np.ndarray:
    """The rank of each query (Q,), as :func:`retrieve` defines it."""
    author, queries, targets = _check(vectors, labels, query_rows, target_rows)
    return np.concatenate([_rank(scores, own) for _, scores, own in _blocks(vectors, author, queries, targets)])


def gain(one, base, authors, k: int = 8, seed: int = 0, resamples: int = 1000) -> dict[str, float]:
    """``gain``, what one model adds to the R@k of a base on the same queries, and its 95% interval, ``low``, ``high``.

    one, base: ranks, (Q,) or (seeds, Q), of which the mean over seeds is compared. authors (Q,): of the queries; whole
    authors are resampled, so what makes an author hard for both models does not widen the interval.
    Raises ValueError where the shapes differ.
    """
    one, base, authors = np.atleast_2d(one), np.atleast_2d(base), np.asarray(authors)
    if one.shape[1:] != base.shape[1:] or authors.shape != one.shape[1:]:
        raise ValueError(f"ranks {one.shape} and {base.shape} of {authors.shape} queries do not fit together")
    added = (one <= k).mean(0) - (base <= k).mean(0)
    low, high = np.percentile(resampled_means(added[:, None], authors, seed, resamples), [2.5, 97.5])
    return {"gain": added.mean(), "low": low, "high": high}


def error_by_topic(vectors, labels, topics, query_rows, target_rows) -> dict[str, float]:
    """Shares of queries: ``right``, ``same_topic_error``, ``other_topic_error``; they add up to 1.

    topics (N,). Right is a query whose nearest target is of its author. Else the nearest is of another author, who
    writes there on the query's topic (what a model that reads topics confuses) or on another. A tie is an error, and
    one between topics is of the same topic. ``queries`` tells of how many. Raises ValueError as :func:`retrieve`.
    """
    author, queries, targets = _check(vectors, labels, query_rows, target_rows)
    topic = pd.factorize(np.asarray(topics))[0]
    if len(topic) != len(author):
        raise ValueError(f"{len(topic)} topics of {len(author)} texts")
    right = same = 0
    for rows, scores, own in _blocks(vectors, author, queries, targets):
        like = torch.from_numpy(topic[queries[rows], None] == topic[targets])

        def best(which, scores=scores):
            return scores.masked_fill(~which, -torch.inf).amax(1)

        alike, other = best(~own & like), best(~own & ~like)
        wrong = torch.maximum(alike, other) >= best(own) - TIE
        right += int((~wrong).sum())
        same += int((wrong & (alike >= other - TIE)).sum())
    count = len(queries)
    return {"right": right / count, "same_topic_error": same / count,
            "other_topic_error": (count - right - same) / count, "queries": count}  # fmt: skip


def _check(vectors, labels, query_rows, target_rows):
    """(author codes, queries, targets), checked against each other."""
    author = pd.factorize(np.asarray(labels))[0]
    queries, targets = np.asarray(query_rows), np.asarray(target_rows)
    both = np.concatenate([queries, targets])
    if vectors.shape[0] != len(author) or not len(queries) or both.min() < 0 or both.max() >= len(author):
        raise ValueError(f"vectors {vectors.shape}, {len(author)} labels, {len(queries)} queries and {len(targets)} "
                         "targets do not fit together")  # fmt: skip
    if (author[both] < 0).any():
        raise ValueError("every text needs a label")
    if len(np.unique(both)) < len(both):
        raise ValueError("a text is twice among queries and targets")
    if missing := np.isin(author[queries], author[targets], invert=True).sum():
        raise ValueError(f"{missing} of {len(queries)} queries have no target of their author")
    return author, queries, targets


def _blocks(vectors, author, queries, targets) -> Iterator[tuple[slice, torch.Tensor, torch.Tensor]]:
    """(rows of queries, their scores (B, T), which targets are of their author (B, T) bool)."""
    vectors = vectors.tocsr() if hasattr(vectors, "tocsr") else vectors
    asking, answering = prepare(vectors[queries]), prepare(vectors[targets])
    step = max(1, SCORES // len(targets))
    for begin in range(0, len(queries), step):
        rows = slice(begin, begin + step)
        own = torch.from_numpy(author[queries[rows], None] == author[targets])
        yield rows, product(asking[rows], answering), own


def _rank(scores, own):
    best = scores.masked_fill(~own, -torch.inf).amax(1, keepdim=True)
    return 1 + ((scores >= best - TIE) & ~own).sum(1).numpy()


def _found(scores, own, k):
    """How many own targets are among the k nearest, (B, len(k)). Beyond the first max(k) of each side none can be."""
    most = min(max(k), scores.shape[1])
    mine = scores.masked_fill(~own, -torch.inf).topk(most).values
    others = scores.masked_fill(own, -torch.inf).topk(most).values
    place = torch.arange(1, most + 1) + (others[:, None] >= mine[:, :, None] - TIE).sum(2)
    return torch.stack([((place <= each) & mine.isfinite()).sum(1) for each in k], 1).numpy()


def resampled_means(values, author, seed, resamples):
    """Means of the columns of values (Q, C) over authors (Q,) drawn with replacement, (resamples, C)."""
    author = np.unique(author, return_inverse=True)[1]
    count = np.bincount(author)
    sums = np.stack([np.bincount(author, column) for column in values.T], 1)
    rng, even = np.random.default_rng(seed), np.full(len(count), 1 / len(count))
    drawn = (rng.multinomial(len(count), even) for _ in range(resamples))  # one at a time: bounded memory
    return np.array([times @ sums / (times @ count) for times in drawn])
