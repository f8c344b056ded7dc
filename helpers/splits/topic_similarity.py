"""How alike two topics are by what is written there: other names may be of the same topic.

A topic is the mean of its documents' topic weights, after HITS (the successor of sawatphol2022 that
measures topic leakage): TF-IDF without the terms of every second document, NMF, unit rows, mean.
Similarity is the cosine.
"""

import warnings
from collections.abc import Iterable

import numpy as np
import pandas as pd
from duckdb import DuckDBPyConnection
from sklearn.cluster import AgglomerativeClustering
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from helpers.corpus.posts_table import query_scalar

MAX_DOCUMENTS = 20_000  # read in all, as many of each topic as go into it ...
MIN_DOCUMENTS = 20  # ... but so many of a topic that has them: one alone says little of it
MAX_TERMS = 5000
MIN_TERM_DOCUMENTS = 5  # that hold a term
COMPONENTS = 50


def topic_vectors(connection: DuckDBPyConnection, seed: int = 0) -> pd.DataFrame:
    """Return one unit row per topic, a zero row for a topic without a known term.

    Parameters
    ----------
    connection : DuckDB connection with the view ``posts``
        Of each document that is read, the first 2,000 characters count.
    seed : int
        Seed of the hash by which documents are drawn, and of NMF.

    Returns
    -------
    (T, COMPONENTS or fewer), index: the topics' names, sorted.

    Raises
    ------
    ValueError
        Where no term is left.
    """
    topics = query_scalar(connection, "SELECT count(DISTINCT topic) FROM posts")
    documents_each = max(MIN_DOCUMENTS, MAX_DOCUMENTS // max(topics, 1))
    documents = connection.execute(
        """
        SELECT topic, left(text, 2000) AS text FROM posts
        QUALIFY row_number() OVER (PARTITION BY topic ORDER BY md5($seed || text), author)
                <= $documents_each
        ORDER BY topic, md5($seed || text), author""",
        {"seed": str(seed), "documents_each": documents_each},
    ).df()
    vectorizer = TfidfVectorizer(
        max_df=0.5, min_df=MIN_TERM_DOCUMENTS, max_features=MAX_TERMS, dtype=np.float32
    )
    try:
        weights = vectorizer.fit_transform(documents["text"])
    except ValueError as error:
        raise ValueError(
            f"{len(documents)} documents of {topics} topics share no terms to compare by: {error}"
        ) from None
    components = min(COMPONENTS, *weights.shape)
    model = NMF(components, init="nndsvda", random_state=seed, max_iter=100, tol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # an approximation suffices
        vectors = normalize(model.fit_transform(weights))
    means = pd.DataFrame(vectors).groupby(documents["topic"].to_numpy(object)).mean()
    return pd.DataFrame(normalize(means), means.index)


def topic_similarity(
    vectors: pd.DataFrame, train_topics: Iterable[str], test_topics: Iterable[str]
) -> pd.DataFrame:
    """Return for each test topic the most similar training topic, the most similar pair first.

    Parameters
    ----------
    vectors
        Vectors of :func:`topic_vectors`.
    train_topics, test_topics
        Names, one or more.

    Returns
    -------
    A row a test topic: ``test_topic``, ``train_topic``, ``similarity``.
    """
    train = np.array(sorted(set(train_topics)), object)
    test = sorted(set(test_topics))
    cosine = vectors.loc[test].to_numpy() @ vectors.loc[train].to_numpy().T
    pairs = pd.DataFrame(
        {
            "test_topic": test,
            "train_topic": train[cosine.argmax(1)],
            "similarity": cosine.max(1).clip(0, 1),
        }
    )
    order = ["similarity", "test_topic"]
    return pairs.sort_values(order, ascending=[False, True], ignore_index=True)


def cluster_topics(vectors: pd.DataFrame, similarity: float) -> pd.Series:
    """Return the cluster of each topic: topics of different clusters are not alike.

    Single linkage: whoever is alike is in one cluster, and so on; no other linkage gives that
    promise. Topics without a known term are in one cluster, -1, as nothing is known of them.

    Parameters
    ----------
    vectors
        Vectors of :func:`topic_vectors`.
    similarity : float in (0, 1]
        Cosine from which topics are alike.

    Returns
    -------
    (T,) int, index: the topics' names.
    """
    has_terms = vectors.to_numpy().any(1)
    clusters = pd.Series(-1, vectors.index)
    if has_terms.sum() < 2:
        return clusters.mask(has_terms, 0)
    # |u - v|^2 = 2 - 2 cos(u, v) for unit rows: needs no matrix of all pairs
    distance = max(np.sqrt(2 - 2 * similarity), 1e-6)
    model = AgglomerativeClustering(None, linkage="single", distance_threshold=distance)
    clusters[has_terms] = model.fit_predict(vectors[has_terms].to_numpy(np.float64))
    return clusters
