"""A split by author and topic: the cross-topic test asks about topics that training never saw.

Topics with other names may still say the same (sawatphol2022, Table 4), so every split by topic tells how alike
training and test topics are, and one kind keeps topics that are alike on one side.
"""

from typing import Literal

import duckdb
import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from helpers.splits.assignment import Rule
from helpers.splits.by_author import assign_given_files
from helpers.splits.topic_similarity import cluster_topics, topic_similarity, topic_vectors


class TopicSplit(Rule):
    """Unseen authors, in unseen topics (``test_cross``), seen ones (``test_in``) or any (``dev``).

    Candidates for training are the ``author_share`` of the authors and the ``topic_share`` of the topics with the most
    documents (rows); kind "leak_aware" takes whole clusters of topics more alike than ``similarity``, and "random"
    every topic on every side. Of the candidate authors ``train_share`` are drawn; their documents in candidate topics
    train, of each author's ``author_topics`` most frequent topics only (0: all; 1 plants what regularisation is to
    undo), where these are ``min_documents`` or more. All other authors are drawn one by one: who has several documents
    in one split may be asked about, whose only one it is stays among the targets, a distractor.

    Where ``files`` names those of test_cross and dev, as PAN gives them (:func:`helpers.splits.by_author.assign_given_files`), both
    are taken as they are, all other posts may train where no topic of test_cross is met, and nothing is test_in.

    Where the paper is silent: in its Table 1 the tests are an eighth of train and alike in size, so test_cross is
    (1 - train_share) / 2 train_share of train (before ``author_topics`` thins it), and test_in and dev are as large as
    test_cross, each as far as a third of the other authors goes. Its authors may overlap; here they do not.
    See: sawatphol2022, Appendix A.2, Table 1
    """

    splits = ("train", "test_cross", "test_in", "dev")
    files: dict[Literal["test_cross", "dev"], str] = {}
    kind: Literal["cross_topic", "leak_aware", "random"] = "cross_topic"
    author_share: float = Field(0.1, gt=0, le=1)
    topic_share: float = Field(0.2, gt=0, le=1)
    train_share: float = Field(0.8, gt=0, le=1)
    min_documents: int = Field(2, ge=1)
    author_topics: int = Field(0, ge=0)
    similarity: float = Field(0.8, gt=0, le=1)
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _there_are_tests(self):
        if len(self.files) == 1 or not self.files and self.train_share == 1:
            raise ValueError(f"files {self.files} must name those of test_cross and dev, or none where train_share "
                             f"({self.train_share}) is below 1 and leaves authors for both")  # fmt: skip
        return self

    @property
    def optional(self) -> tuple[str, ...]:
        return ("test_in",) if self.files else ()

    @property
    def least(self) -> dict[str, int]:
        return {"train": self.min_documents}

    def promises(self, facts: dict) -> dict:
        apart = ("train", "test_cross")
        return super().promises(facts) | {
            "topics_within": ("test_in", "train"), "topics_apart": apart if self.kind != "random" else (),
            "clusters_apart": apart if self.kind == "leak_aware" else (),
            "max_topics": {"train": self.author_topics} if self.author_topics else {}}  # fmt: skip

    def assign(self, connection: duckdb.DuckDBPyConnection) -> dict:
        assign_given_files(connection, self.files)
        vectors = topic_vectors(connection, "posts", seed=self.seed)
        clusters = cluster_topics(vectors, self.similarity) if self.kind == "leak_aware" else None
        everywhere = self.kind == "random"
        topics = connection.execute("""
            SELECT topic, count(*) FILTER (home IS NULL) AS documents,
                   coalesce(bool_or(home = 'test_cross' AND reason = ''), false) AS asked
            FROM posts JOIN given USING (n) GROUP BY topic ORDER BY documents DESC, topic""").df()
        group = topics["topic"] if clusters is None else topics["topic"].map(clusters)
        topics = topics[
            (topics["documents"] > 0) & (everywhere | ~group.isin(group[topics["asked"]]))
        ]
        seen = np.ones(len(topics), bool) if everywhere else self._candidates(topics, clusters)
        connection.register("topics", topics.assign(seen=seen, unseen=everywhere | ~seen))
        authors = connection.execute("""
            SELECT author, count(*) AS documents, count(*) FILTER (seen) AS inside, count(*) FILTER (unseen) AS outside
            FROM posts JOIN given USING (n, author) LEFT JOIN topics USING (topic) WHERE home IS NULL
            GROUP BY author ORDER BY documents DESC, author""").df()
        connection.register("authors", authors[["author"]].assign(drawn=self._draw(authors)))
        self._place(connection)
        self.settle(connection, "SELECT n, split, reason FROM placed")
        used = connection.execute("""
            SELECT DISTINCT split, topic FROM posts JOIN assignment USING (n) WHERE reason = ''""").df()
        sides = [used["topic"][used["split"] == name] for name in ("train", "test_cross")]
        facts = (
            {}
            if clusters is None
            else {"clusters": {topic: int(each) for topic, each in clusters.items()}}
        )
        if min(map(len, sides)):  # else the engine says what is empty
            pairs = topic_similarity(vectors, *sides)
            facts |= {
                f"similarity_{name}": round(float(pairs["similarity"].agg(name)), 4)
                for name in ("max", "mean")
            }
            facts |= {"most_similar": pairs.loc[0, ["test_topic", "train_topic"]].tolist()}
        return facts

    def _candidates(self, topics, clusters):
        """Which topics, (T,) of falling size, training may use, (T,) bool."""
        room = max(1, round(self.topic_share * len(topics)))
        if room >= len(topics) and not self.files:
            raise ValueError(f"topic_share {self.topic_share} of {len(topics)} topics leaves none for the cross-topic"
                             " test")  # fmt: skip
        if clusters is None:
            return np.arange(len(topics)) < room
        cluster = clusters.loc[topics["topic"]].to_numpy()
        seen = np.zeros(len(topics), bool)
        for each in (
            topics.groupby(cluster)["documents"]
            .sum()
            .sort_values(ascending=False, kind="stable")
            .index
        ):
            if seen.sum() + (cluster == each).sum() <= room:
                seen |= cluster == each
        if not seen.any():
            raise ValueError(f"each of {len(set(cluster))} clusters of topics is larger than {room} topics, topic_share"
                             f" ({self.topic_share}) of {len(topics)}: raise topic_share or similarity")  # fmt: skip
        return seen

    def _draw(self, authors):
        """The split of each author, (N,) of falling size, None for those left over."""
        rng = np.random.default_rng(self.seed)
        split = np.full(len(authors), None, object)
        inside = authors["inside"].to_numpy()
        able = np.flatnonzero(
            inside[: max(1, round(self.author_share * len(authors)))] >= self.min_documents
        )
        split[rng.permutation(able)[: round(self.train_share * len(able))]] = "train"
        size = (1 - self.train_share) / 2 / self.train_share * inside[split == "train"].sum()
        order = rng.permutation(len(authors))
        columns = (
            {} if self.files else {"test_cross": "outside", "test_in": "inside", "dev": "documents"}
        )
        for number, (name, column) in enumerate(columns.items()):
            count = authors[column].to_numpy()
            free = order[pd.isna(split[order])]
            able = free[count[free] > 0]
            taken = able[
                : min(
                    np.searchsorted(np.cumsum(count[able]), size) + 1, -(-len(free) // (3 - number))
                )
            ]
            split[taken] = name
            size = count[taken].sum() if name == "test_cross" else size
        return split

    def _place(self, connection):
        """Make the table ``placed(n, author, split, topic, reason)``: what authors and topics decide."""
        connection.execute("""
            CREATE TABLE placed AS
            SELECT n, author, coalesce(home, drawn) AS split, topic,
                   CASE WHEN home IS NOT NULL THEN reason WHEN drawn IS NULL THEN 'authors_not_drawn'
                        WHEN drawn = 'test_cross' AND NOT unseen
                             OR drawn IN ('train', 'test_in') AND NOT coalesce(seen, false)
                        THEN 'other_topics_of_' || drawn || '_authors' ELSE '' END AS reason
            FROM posts JOIN given USING (n, author) LEFT JOIN authors USING (author) LEFT JOIN topics USING (topic)""")
        if self.author_topics:
            connection.execute(f"""
                UPDATE placed SET reason = 'rarer_topics_of_train_authors' WHERE split = 'train' AND reason = ''
                AND (author, topic) NOT IN (
                    SELECT (author, topic) FROM placed WHERE split = 'train' AND reason = '' GROUP BY author, topic
                    QUALIFY row_number() OVER (PARTITION BY author ORDER BY count(*) DESC, topic)
                            <= {self.author_topics})""")
            connection.execute(f"""
                UPDATE placed SET reason = 'authors_with_too_few_posts' WHERE split = 'train' AND reason = ''
                AND author IN (SELECT author FROM placed WHERE split = 'train' AND reason = '' GROUP BY author
                               HAVING count(*) < {self.min_documents})""")
        connection.execute("""
            UPDATE placed SET reason = 'other_topics_of_test_in_authors' WHERE split = 'test_in' AND reason = ''
            AND topic NOT IN (SELECT topic FROM placed WHERE split = 'train' AND reason = '')""")
