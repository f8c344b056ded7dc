"""A split by author and topic: the cross-topic test has only topics that training never saw.

Topics with different names may still have the same content (sawatphol2022, Table 4). So every split
by topic reports how similar training and test topics are, and the kind "leak_aware" never puts
similar topics on both sides.

The vector of a topic is made as in HITS (the successor of sawatphol2022 that measures topic
leakage): TF-IDF of its documents without terms that are in more than half of all documents, NMF,
rows scaled to unit length, and the mean over the topic's documents. Similarity is the cosine.
"""

import math
import warnings
from collections.abc import Iterable
from typing import Literal

import numpy as np
import pandas as pd
from duckdb import DuckDBPyConnection
from pydantic import Field, model_validator
from sklearn.cluster import AgglomerativeClustering
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from ..corpus.posts_table import query_scalar
from .assignment import Rule
from .by_author import assign_given_files

MAX_DOCUMENTS = 20_000  # read of all topics together, the same number of each ...
MIN_DOCUMENTS = 20  # ... but never fewer of a topic that has as many: one says little of its topic
MAX_TERMS = 5000  # the most frequent ones
MIN_TERM_DOCUMENTS = 5  # a term in fewer documents is ignored
COMPONENTS = 50  # most dimensions of a topic vector


class TopicSplit(Rule):
    """Unseen authors, in unseen topics (``test_cross``), seen ones (``test_in``) or any (``dev``).

    A document is a row of the posts table. Candidates for training are the authors and the topics
    with the most documents: the shares ``author_share`` of all authors and ``topic_share`` of all
    topics. A random ``train_share`` of the candidate authors trains, with their documents in
    candidate topics. All other authors are assigned to test_cross, test_in and dev in random order,
    however few documents they have. There an author with several documents can be a query; one
    with a single document is only a distractor among the targets.

    Where ``files`` names the files of test_cross and dev, as PAN gives them, both splits are these
    files. The other authors can then only train, on topics that test_cross lacks, and test_in is
    empty.

    The paper does not say how large the tests should be. In its Table 1 each test has an eighth of
    the documents of train, so test_cross gets (1 - train_share) / (2 train_share) of the documents
    of train (counted before ``author_topics`` removes some), and test_in and dev are as large as
    test_cross. Each of the three in turn gets at most an equal part of the authors who are left for
    it and those after it. The paper's splits may share authors; here they do not.

    Attributes
    ----------
    files : split -> its file, see :func:`helpers.splits.by_author.assign_given_files`
    kind : "cross_topic"
        "leak_aware" also keeps topics of one cluster (see ``similarity``) on one side.
    author_share, topic_share, train_share : float, see above
    min_documents : int, fewest documents of a training author
    author_topics : int, how many topics of a training author are kept, the most frequent first
        0 keeps all. With 1 the topic gives the author away, which regularisation should undo.
    similarity : float, cosine above which two topics are in one cluster; only for "leak_aware"
    seed : int, seed of the draw and of the topic vectors

    References
    ----------
    sawatphol2022, Appendix A.2, Table 1
    """

    splits = ("train", "test_cross", "test_in", "dev")
    files: dict[Literal["test_cross", "dev"], str] = {}
    kind: Literal["cross_topic", "leak_aware"] = "cross_topic"
    author_share: float = Field(0.1, gt=0, le=1)
    topic_share: float = Field(0.2, gt=0, le=1)
    train_share: float = Field(0.8, gt=0, le=1)
    min_documents: int = Field(2, ge=1)
    author_topics: int = Field(0, ge=0)
    similarity: float = Field(0.8, gt=0, le=1)
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _there_are_tests(self):
        # "and" binds before "or": one given file alone, or none and no authors left for the tests
        if len(self.files) == 1 or not self.files and self.train_share == 1:
            raise ValueError(
                f"files {self.files} must name those of test_cross and dev, or none where "
                f"train_share ({self.train_share}) is below 1 and leaves authors for both"
            )
        return self

    @property
    def optional(self) -> tuple[str, ...]:
        """Names of splits that may be empty."""
        return ("test_in",) if self.files else ()

    @property
    def min_posts_per_split(self) -> dict[str, int]:
        """The fewest posts that an author may have in a split, by its name."""
        return {"train": self.min_documents}

    def guarantees(self, facts: dict) -> list[list]:
        """Return the promises that the audit checks, which depend on the settings.

        Every topic of test_in is in train, no topic of test_cross is.
        """
        promises = super().guarantees(facts)
        promises.append(["topics_within", "test_in", "train"])
        promises.append(["topics_apart", ["train", "test_cross"]])
        if self.kind == "leak_aware":
            promises.append(["clusters_apart", ["train", "test_cross"]])
        if self.author_topics:
            promises.append(["max_topics", "train", self.author_topics])
        return promises

    def assign(self, connection: DuckDBPyConnection) -> dict:
        """Make the table ``assignment``; return clusters of topics and similarities.

        Returns
        -------
        ``clusters``: {topic: cluster}, only for "leak_aware"; ``most_similar``: the topics [of
        test_cross, of train] that are most similar; ``similarity_max``: how similar they are.

        Raises
        ------
        ValueError
            Where no topic is left for training or for test_cross.
        """
        assign_given_files(connection, self.files)
        vectors = topic_vectors(connection, self.seed)
        clusters = None
        if self.kind == "leak_aware":
            clusters = cluster_topics(vectors, self.similarity)
        connection.register("topics", self._sides_of_topics(connection, clusters))
        connection.register("authors", self._draw(connection))
        self._place(connection)
        self.write_assignment(connection, "SELECT n, split, reason FROM placed")

        facts = {}
        if clusters is not None:
            facts["clusters"] = {topic: int(cluster) for topic, cluster in clusters.items()}
        used = connection.execute("""
            SELECT DISTINCT split, topic FROM posts JOIN assignment USING (n)
            WHERE reason = ''""").df()
        train_topics = used["topic"][used["split"] == "train"]
        test_topics = used["topic"][used["split"] == "test_cross"]
        if len(train_topics) and len(test_topics):  # else make_split raises and names what is empty
            pair, similarity = most_similar_topics(vectors, train_topics, test_topics)
            facts |= {"most_similar": pair, "similarity_max": round(similarity, 4)}
        return facts

    def _sides_of_topics(self, connection, clusters):
        """Return the topics: ``seen`` ones may be in train, ``unseen`` ones in test_cross.

        It lacks topics found in given files only, and the groups of topics of a given test_cross. A
        group is a cluster where there are ``clusters``, else a topic.
        """
        topics = connection.execute("""
            SELECT topic, topic AS group, count(*) FILTER (home IS NULL) AS documents,
                   coalesce(bool_or(home = 'test_cross' AND reason = ''), false) AS asked
            FROM posts JOIN given USING (n) GROUP BY topic ORDER BY topic""").df()
        if clusters is not None:
            topics["group"] = topics["topic"].map(clusters)
        is_asked = topics["group"].isin(topics["group"][topics["asked"]])
        topics = topics[(topics["documents"] > 0) & ~is_asked]
        seen = self._candidates(topics)
        return topics.assign(seen=seen, unseen=~seen)

    def _candidates(self, topics):
        """Return (T,) bool: which of the T topics training may use.

        Groups are taken whole, those with the most documents first; one that would exceed
        ``topic_share`` is passed over.
        """
        n_topics = max(1, round(self.topic_share * len(topics)))
        if n_topics >= len(topics) and not self.files:
            raise ValueError(
                f"topic_share {self.topic_share} of {len(topics)} topics leaves none for the "
                "cross-topic test"
            )
        groups = topics.groupby("group")["documents"].agg(["sum", "size"])
        chosen = []
        groups = groups.sort_values("sum", ascending=False, kind="stable")
        for group, size in groups["size"].items():
            if size <= n_topics:
                chosen.append(group)
                n_topics -= size
        if not chosen:
            raise ValueError(
                f"each of {len(groups)} clusters of topics is larger than {n_topics} topics, "
                f"topic_share ({self.topic_share}) of {len(topics)}: raise topic_share or "
                "similarity"
            )
        return topics["group"].isin(chosen)

    def _draw(self, connection):
        """Return the authors in no given file, and the split ``drawn`` for each, None for none."""
        authors = connection.execute("""
            SELECT author, count(*) AS documents, count(*) FILTER (seen) AS inside,
                   count(*) FILTER (unseen) AS outside
            FROM posts JOIN given USING (n, author) LEFT JOIN topics USING (topic)
            WHERE home IS NULL GROUP BY author ORDER BY documents DESC, author""").df()
        rng = np.random.default_rng(self.seed)
        split = np.full(len(authors), None, object)
        inside = authors["inside"].to_numpy()
        n_candidates = max(1, round(self.author_share * len(authors)))
        candidates = np.flatnonzero(inside[:n_candidates] >= self.min_documents)
        n_train = round(self.train_share * len(candidates))
        split[rng.permutation(candidates)[:n_train]] = "train"

        # wanted number of documents in test_cross; later that which test_cross got
        size = (1 - self.train_share) / 2 / self.train_share * inside[split == "train"].sum()
        order = rng.permutation(len(authors))
        columns = {"test_cross": "outside", "test_in": "inside", "dev": "documents"}
        if self.files:
            columns = {}
        for number, (name, column) in enumerate(columns.items()):
            documents = authors[column].to_numpy()
            free = order[pd.isna(split[order])]
            able = free[documents[free] > 0]
            enough = np.searchsorted(documents[able].cumsum(), size) + 1
            fair_share = math.ceil(len(free) / (len(columns) - number))
            chosen = able[: min(enough, fair_share)]
            split[chosen] = name
            if name == "test_cross":
                size = documents[chosen].sum()
        return authors[["author"]].assign(drawn=split)

    def _place(self, connection):
        """Make the table ``placed(n, author, split, topic, reason)`` from authors and topics.

        Training documents of an author's rarer topics are left out, then training authors with too
        few documents, then documents of test_in in topics that train does not have after that.
        """
        connection.execute("""
            CREATE TABLE placed AS
            SELECT n, author, coalesce(home, drawn) AS split, topic,
                   CASE WHEN home IS NOT NULL THEN reason
                        WHEN drawn IS NULL THEN 'authors_not_drawn'
                        WHEN drawn = 'test_cross' AND NOT unseen
                             OR drawn IN ('train', 'test_in') AND NOT coalesce(seen, false)
                        THEN 'other_topics_of_' || drawn || '_authors' ELSE '' END AS reason
            FROM posts JOIN given USING (n, author) LEFT JOIN authors USING (author)
            LEFT JOIN topics USING (topic)""")
        if self.author_topics:
            connection.execute(f"""
                UPDATE placed SET reason = 'rarer_topics_of_train_authors'
                WHERE split = 'train' AND reason = '' AND (author, topic) NOT IN (
                    SELECT (author, topic) FROM placed WHERE split = 'train' AND reason = ''
                    GROUP BY author, topic
                    QUALIFY row_number() OVER (PARTITION BY author ORDER BY count(*) DESC, topic)
                            <= {self.author_topics})""")
            connection.execute(f"""
                UPDATE placed SET reason = 'authors_with_too_few_posts'
                WHERE split = 'train' AND reason = '' AND author IN (
                    SELECT author FROM placed WHERE split = 'train' AND reason = ''
                    GROUP BY author HAVING count(*) < {self.min_documents})""")
        connection.execute("""
            UPDATE placed SET reason = 'other_topics_of_test_in_authors'
            WHERE split = 'test_in' AND reason = '' AND topic NOT IN (
                SELECT topic FROM placed WHERE split = 'train' AND reason = '')""")


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


def most_similar_topics(
    vectors: pd.DataFrame, train_topics: Iterable[str], test_topics: Iterable[str]
) -> tuple[list[str], float]:
    """Return the most similar pair of topics, and how similar they are.

    Parameters
    ----------
    vectors
        Return value of :func:`topic_vectors`.
    train_topics, test_topics
        Names of topics, at least one each.

    Returns
    -------
    The test topic and the training topic, and their cosine in [0, 1].
    """
    train = vectors.loc[sorted(train_topics)]
    test = vectors.loc[sorted(test_topics)]
    cosine = (test @ train.T).to_numpy().clip(0, 1)
    row, column = np.unravel_index(cosine.argmax(), cosine.shape)
    return [test.index[row], train.index[column]], float(cosine[row, column])


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
