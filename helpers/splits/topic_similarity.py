"""How similar two topics are in what is written there: two names may stand for the same topic.

The vector of a topic is made as in HITS (the successor of sawatphol2022 that measures topic
leakage): TF-IDF of its documents without terms that are in more than half of all documents, NMF,
rows scaled to unit length, and the mean over the topic's documents. Similarity is the cosine.
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

from ..corpus.posts_table import query_scalar

MAX_DOCUMENTS = 20_000  # read of all topics together, the same number of each ...
MIN_DOCUMENTS = 20  # ... but never fewer of a topic that has as many: one says little of its topic
MAX_TERMS = 5000  # the most frequent ones
MIN_TERM_DOCUMENTS = 5  # a term in fewer documents is ignored
COMPONENTS = 50  # most dimensions of a topic vector


def topic_vectors(connection: DuckDBPyConnection, seed: int = 0) -> pd.DataFrame:
    """Return one unit vector per topic, a vector of zeros for a topic without a known term.

    Parameters
    ----------
    connection : DuckDB connection with the view ``posts``
        Only the first 2,000 characters of each sampled document are read.
    seed : int
        Seed of the hash that samples documents, and of NMF.

    Returns
    -------
    (T, C): T topics, indexed by their sorted names; C is COMPONENTS, or fewer where there are fewer
    documents or terms.

    Raises
    ------
    ValueError
        Where no term is in enough documents and in at most half of them.
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
        Return value of :func:`topic_vectors`.
    train_topics, test_topics
        Names of topics, at least one each; repeated names count once.

    Returns
    -------
    One row per test topic: ``test_topic``, ``train_topic``, and ``similarity`` in [0, 1].
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
    """Return the cluster of each topic, such that topics of different clusters are never similar.

    Two similar topics are in one cluster, and so are topics that a chain of similar ones links
    (single linkage; other linkages may separate similar topics). All topics without a known term
    are in the cluster -1.

    Parameters
    ----------
    vectors
        Return value of :func:`topic_vectors`, of T topics.
    similarity : float in (0, 1]
        Cosine above which two topics are similar.

    Returns
    -------
    (T,) int, indexed by the topics' names.
    """
    has_terms = vectors.to_numpy().any(1)
    clusters = pd.Series(-1, vectors.index)
    if has_terms.sum() < 2:
        return clusters.mask(has_terms, 0)
    # |u - v|^2 = 2 - 2 cos(u, v) for unit rows, and Euclidean distances need no matrix of all pairs
    distance = max(np.sqrt(2 - 2 * similarity), 1e-6)
    model = AgglomerativeClustering(None, linkage="single", distance_threshold=distance)
    clusters[has_terms] = model.fit_predict(vectors[has_terms].to_numpy(np.float64))
    return clusters
