"""How alike two topics are by what is written there: topics with other names may be the same topic.

A topic is the mean of its documents' topic weights, after HITS (the successor of sawatphol2022 that measures topic
leakage): TF-IDF without the terms of every second document, NMF, unit rows, mean. Similarity is the cosine.
"""

import warnings
from collections.abc import Iterable

import duckdb
import numpy as np
import pandas as pd
from sklearn.cluster import AgglomerativeClustering
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from helpers.corpus.posts_table import query_scalar

LEAST = 20  # documents of a topic, where it has them: one alone says little of it


def topic_vectors(
    connection: duckdb.DuckDBPyConnection,
    posts: str,
    *,
    documents: int = 20_000,
    terms: int = 5000,
    min_df: int = 5,
    components: int = 50,
    seed: int = 0,
) -> pd.DataFrame:
    """One unit row per topic, (T, components or fewer), index: the topics' names, sorted.

    posts: a table or view. documents: read in all, as many of each topic as go into it, drawn by a hash of seed and
    text, but at least LEAST; of each the first 2,000 characters. terms: the most frequent of those in at most half and
    at least ``min_df`` of the documents. A topic without any of them is a zero row, like none.
    Raises ValueError where no term is left.
    """
    topics = query_scalar(connection, f"SELECT count(DISTINCT topic) FROM {posts}")
    rows = connection.execute(
        f"""
        SELECT topic, left(text, 2000) FROM {posts}
        QUALIFY row_number() OVER (PARTITION BY topic ORDER BY md5($seed || text), author)
                <= {max(LEAST, documents // max(topics, 1))}
        ORDER BY topic, md5($seed || text), author""",
        {"seed": str(seed)},
    ).fetchall()
    names, texts = zip(*rows, strict=True) if rows else ((), ())
    try:
        weights = TfidfVectorizer(
            max_df=0.5, min_df=min_df, max_features=terms, dtype=np.float32
        ).fit_transform(texts)
    except ValueError as error:
        raise ValueError(
            f"{len(texts)} documents of {topics} topics share no terms to compare by: {error}"
        ) from None
    model = NMF(
        min(components, *weights.shape), init="nndsvda", random_state=seed, max_iter=100, tol=1e-3
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # an approximation suffices
        vectors = normalize(model.fit_transform(weights))
    means = pd.DataFrame(vectors).groupby(np.array(names, object)).mean()
    return pd.DataFrame(normalize(means), means.index)


def topic_similarity(
    vectors: pd.DataFrame, train_topics: Iterable[str], test_topics: Iterable[str]
) -> pd.DataFrame:
    """For each test topic the most similar training topic: ``test_topic``, ``train_topic``, ``similarity``.

    The most similar pair is first. vectors: of :func:`topic_vectors`. Raises ValueError where a topic has no vector, or
    there is none on one of the sides.
    """
    train, test = sorted(set(train_topics)), sorted(set(test_topics))
    if unknown := [name for name in [*train, *test] if name not in vectors.index]:
        raise ValueError(f"no vector of the topics {', '.join(unknown[:5])}")
    if not (train and test):
        raise ValueError(f"{len(train)} training and {len(test)} test topics cannot be compared")
    cosine = vectors.loc[test].to_numpy() @ vectors.loc[train].to_numpy().T
    nearest = cosine.argmax(1)
    rows = pd.DataFrame({"test_topic": test, "train_topic": np.array(train, object)[nearest],
                         "similarity": cosine.max(1).clip(0, 1)})  # fmt: skip
    return rows.sort_values(
        ["similarity", "test_topic"], ascending=[False, True], ignore_index=True
    )


def cluster_topics(vectors: pd.DataFrame, similarity: float) -> pd.Series:
    """The cluster of each topic, int: no two topics of different clusters are more alike than ``similarity``, (0, 1].

    Single linkage: whoever is alike is in one cluster, and so on; no other linkage gives that promise. Topics without
    a known term are in one cluster, -1, as nothing is known of them. Raises ValueError for a similarity out of range.
    """
    if not 0 < similarity <= 1:
        raise ValueError(f"similarity must lie in (0, 1], not {similarity!r}")
    known = vectors.to_numpy().any(1)
    labels = pd.Series(-1, vectors.index)
    if known.sum() < 2:
        return labels.mask(known, 0)
    # |u - v|^2 = 2 - 2 cos(u, v) for unit rows: needs no matrix of all pairs
    distance = np.sqrt(2 - 2 * similarity)
    model = AgglomerativeClustering(None, linkage="single", distance_threshold=max(distance, 1e-6))
    labels[known] = model.fit_predict(vectors[known].to_numpy(np.float64))
    return labels
