"""Account linking, khan2021 section 4.3: do the posts of a known account in one topic find its later posts?

The trials that :func:`helpers.evaluation.trials.choose` draws are scored, all pairs of query and target, and summed up
as error rates per topic and their mean.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy import sparse

from helpers.evaluation import detection
from helpers.evaluation.trials import Topic, choose
from helpers.tokens.store import TokenStore

GRID = 2**20  # scores are rounded to 1/GRID, the float32 noise of a product of unit vectors, so that equal pairs tie


def score(store: TokenStore, chosen: list[Topic], vectors: Callable, memory: dict | None = None) -> pd.DataFrame:
    """All trials of all topics, about 22 bytes each: columns ``topic``, ``query_author``, ``target_author`` (their rows
    in the store), ``query_posts``, ``target_posts`` (sizes), ``score`` and ``same`` (of one account).

    vectors: (store, first post (N,), size (N,)) -> unit rows (N, D), an array or a SciPy sparse matrix: an encoder's
    embeddings or what :func:`helpers.encoders.tfidf.fit` returns. Each pair is scored alone, by the product of its rows.
    memory: of one scorer and store, filled here, so that the same samples are embedded once in several calls.
    """
    memory = {} if memory is None else memory

    def embedded(samples):  # often everybody is a target in every topic
        key = samples.posts.tobytes(), samples.offsets.tobytes()
        if key not in memory:
            memory[key] = vectors(*samples.windows(store))
        return memory[key]

    names = [topic.name for topic in chosen]
    frames = []
    for number, topic in enumerate(chosen):
        queries, targets = topic.queries, topic.targets
        scores = products(embedded(queries), embedded(targets))
        query, target = (place.ravel() for place in np.indices(scores.shape, np.int32))
        frames.append(pd.DataFrame({
            "topic": pd.Categorical.from_codes(np.full(scores.size, number, np.int16), names),
            "query_author": queries.authors.astype(np.int32)[query],
            "target_author": targets.authors.astype(np.int32)[target],
            "query_posts": queries.sizes().astype(np.int32)[query],
            "target_posts": targets.sizes().astype(np.int32)[target],
            "score": scores.ravel(),
        }))  # fmt: skip
    trials = pd.concat(frames, ignore_index=True)
    return trials.assign(same=trials.query_author == trials.target_author)


def products(queries, targets, rows: int = 256) -> np.ndarray:
    """Scores (Q, T), float32, of unit rows (Q, D) and (T, D), dense or sparse, a block of rows at a time."""
    scores = np.empty((queries.shape[0], targets.shape[0]), np.float32)
    for begin in range(0, len(scores), rows):
        block = queries[begin : begin + rows] @ targets.T
        block = block.toarray() if sparse.issparse(block) else block
        scores[begin : begin + rows] = np.rint(block * GRID) / GRID
    return scores


def results(
    trials: pd.DataFrame, costs: detection.Costs = detection.PAPER, seed: int = 0, resamples: int = 1000
) -> pd.DataFrame:
    """EER and minDCF with 95% intervals over query accounts: a row per topic, their "mean" (khan2021 Table 2), and
    "pooled", with one threshold for all topics. trials: of :func:`score`, or such a table read from a file."""
    parts = dict(list(trials.groupby("topic", observed=True)))
    tallies = {name: detection.tally(part.score, part.same, part.query_author) for name, part in parts.items()}
    sets = {name: [one] for name, one in tallies.items()} | {"mean": list(tallies.values())}
    sets["pooled"] = [detection.tally(trials.score, trials.same, trials.query_author)]
    table = pd.DataFrame({name: detection.summarise(some, costs, seed, resamples) for name, some in sets.items()}).T
    counted = [parts.get(name, trials) for name in table.index]
    return table.assign(
        accounts=[part.query_author.nunique() for part in counted], positives=[part.same.sum() for part in counted],
        trials=[len(part) for part in counted],
    )  # fmt: skip


def by_target_size(
    store: TokenStore,
    vectors: Callable,
    sizes: tuple[int, ...] = (4, 8, 12),
    costs: detection.Costs = detection.PAPER,
    memory: dict | None = None,
    **settings,
) -> pd.DataFrame:
    """The "mean" row of :func:`results` at each size of the targets, column ``target_posts`` (khan2021 Figure 6).

    memory: of :func:`score`. settings: of :func:`~helpers.evaluation.trials.choose`; accounts and queries are the same
    at every size.
    """
    rows, memory = [], {} if memory is None else memory
    for size in sizes:
        trials = score(store, choose(store, **settings | {"target_posts": size}), vectors, memory)
        rows.append(results(trials, costs, settings.get("seed", 0)).loc[["mean"]].assign(target_posts=size))
    return pd.concat(rows, ignore_index=True)
