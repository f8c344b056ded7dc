"""Splits without a calendar: by author (tyo2021 section 2.1.1), and by author and topic (sawatphol2022 A.2, Table 1).

No author is in two splits, none of the files holds a text of another, and what the cross-topic test asks about is
written in topics that training never saw. Topics with other names may still say the same (their Table 4), so every
split by topic tells how alike training and test topics are, and one kind keeps topics that are alike on one side.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from helpers.runs.artifacts import write_json
from helpers.corpus.table import text
from helpers.splits.assignment import PAIR, audit, place
from helpers.splits.topic_similarity import cluster_topics, topic_similarity, topic_vectors

__all__ = ["KINDS", "audit", "by_authors", "by_topics"]
KINDS = ("cross_topic", "leak_aware", "random")


def by_authors(posts_path, out_folder, *, test=0.1, dev=0.1, seed=0, memory_limit="2GB") -> dict:
    """Write ``train.parquet``, ``dev.parquet``, ``test.parquet`` and ``split.json`` to a folder; return the latter.

    test, dev: shares of the authors, drawn at random, with all their posts. Where every id is that of a text of a given
    pair (source pan: "<pair>/a", "<pair>/b"), authors who share a pair are connected, and so on; whole components are
    drawn while they fit into the share, so that no pair is cut (tyo2021 section 2.1.1 without its half-known pairs).

    ``split.json`` holds the parameters, posts, authors and topics of each split, and the posts that are unused by
    reason; used and unused add up to all posts. Of a text in several splits only one keeps it, training first.
    Raises ValueError for shares out of range or where a split is empty; AuditError where the result breaks a rule.
    """
    settings = {"split": "by_authors", "test": test, "dev": dev, "seed": seed}
    if not (0 < test and 0 < dev and test + dev < 1):
        raise ValueError(f"test ({test}) and dev ({dev}) must be above 0 and leave something for training")

    def decide(connection):
        rng = np.random.default_rng(seed)
        authors = connection.execute("SELECT DISTINCT author FROM posts ORDER BY author").df()
        pairs = _are_pairs(connection)
        component = _components(connection, authors["author"]) if pairs else np.arange(len(authors))
        size = np.bincount(component)
        side, order = np.full(len(size), "train", object), rng.permutation(len(size))
        for name, share in (("test", test), ("dev", dev)):
            left = round(share * len(authors))
            for each in order[side[order] == "train"]:
                if size[each] <= left:
                    side[each], left = name, left - size[each]
        topics = connection.execute("SELECT DISTINCT topic, true AS seen, true AS unseen FROM posts").df()
        told = {"given_pairs": pairs, "largest_component": int(size.max(initial=0))}
        return authors.assign(split=side[component]), topics, lambda: told

    return place(posts_path, out_folder, settings, decide, memory_limit)


def by_topics(posts_path, out_folder, *, kind="cross_topic", author_share=0.1, topic_share=0.2, train_share=0.8,
              min_documents=2, author_topics=0, similarity=0.8, min_df=5, seed=0, memory_limit="2GB") -> dict:
    """Write ``train``, ``dev``, ``test_cross``, ``test_in`` (.parquet) and ``split.json``; return the latter.

    Candidates for training are the ``author_share`` of the authors and the ``topic_share`` of the topics with the most
    documents (rows). Of the candidate authors ``train_share`` are drawn; their documents in candidate topics train.
    All others may be asked about, drawn one by one. test_cross: their documents in the other topics; test_in: in topics
    of train; dev: in any topic. An author belongs to one split, with at least ``min_documents`` there.

    Where the paper is silent: in Table 1 the tests are an eighth of train (10% beside 80%) and alike in size, so
    test_cross is (1 - train_share) / 2 train_share of train (before ``author_topics`` thins it), and test_in and dev
    are as large as test_cross, each as far as a third of the other authors goes. The paper does not say that its
    authors are disjoint; here they are.

    author_topics: of how many topics, those with most of the author's documents, a training author keeps documents, 0
    for all. 1 plants what regularisation is to undo: in training topic tells who writes, in the tests it does not.

    kind "leak_aware": topics more alike than ``similarity`` are in one cluster (:func:`~helpers.splits.topic_similarity.cluster_topics`,
    with ``min_df`` of its vectors), and clusters instead of topics are candidates, the largest first, while they fit
    into the share. Written beside the split as ``clusters.json``. "random": every topic is on every side, so both
    tests are of one kind: what a split that looks at authors alone would report.

    ``split.json`` as of :func:`by_authors`, and ``similarity_max``, ``similarity_mean`` over the test topics of each
    one's most similar training topic, ``most_similar`` [test topic, training topic].
    Raises ValueError for parameters out of range or where a split is empty; AuditError where a rule is broken.
    """
    settings = {"split": "by_topics", "kind": kind, "author_share": author_share, "topic_share": topic_share,
                "train_share": train_share, "min_documents": int(min_documents), "author_topics": int(author_topics),
                "similarity": similarity, "min_df": min_df, "seed": seed}  # fmt: skip
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r}: one of {', '.join(KINDS)}")
    for name in ("author_share", "topic_share", "train_share"):
        if not 0 < settings[name] < 1 and (name, settings[name]) != ("author_share", 1):
            raise ValueError(f"{name} must lie in (0, 1), not {settings[name]!r}")
    if author_topics < 0:
        raise ValueError(f"author_topics must be at least 0, not {author_topics!r}")
    folder = Path(out_folder)

    def decide(connection):
        (folder / "clusters.json").unlink(missing_ok=True)
        vectors = topic_vectors(connection, posts_path, min_df=min_df, seed=seed)
        topics = connection.execute("""
            SELECT topic, count(*) AS documents FROM posts GROUP BY topic ORDER BY documents DESC, topic""").df()
        clusters = cluster_topics(vectors, similarity) if kind == "leak_aware" else None
        everywhere = np.ones(len(topics), bool)
        seen = everywhere if kind == "random" else _candidates(topics, topic_share, clusters)
        topics = topics.assign(seen=seen, unseen=everywhere if kind == "random" else ~seen)
        connection.register("sides", topics)
        authors = connection.execute("""
            SELECT author, count(*) AS documents, count(*) FILTER (seen) AS inside, count(*) FILTER (unseen) AS outside
            FROM posts JOIN sides USING (topic) GROUP BY author ORDER BY documents DESC, author""").df()
        split = _draw(authors, author_share, train_share, min_documents, np.random.default_rng(seed))

        def told():
            used = [connection.execute(f"SELECT DISTINCT topic FROM {text(folder / name)}").fetchall()
                    for name in ("train.parquet", "test_cross.parquet")]  # fmt: skip
            pairs = topic_similarity(vectors, *([topic for (topic,) in rows] for rows in used))
            if clusters is not None:
                write_json(folder / "clusters.json", {str(topic): int(each) for topic, each in clusters.items()})
            return {"similarity_max": round(float(pairs["similarity"].max()), 4),
                    "similarity_mean": round(float(pairs["similarity"].mean()), 4),
                    "most_similar": pairs.loc[0, ["test_topic", "train_topic"]].tolist()}  # fmt: skip

        return authors[["author"]].assign(split=split), topics[["topic", "seen", "unseen"]], told

    return place(posts_path, folder, settings, decide, memory_limit)


def _candidates(topics, share, clusters):
    """Which topics, the largest first, training may use, (T,) bool."""
    room = max(1, round(share * len(topics)))
    if room >= len(topics):
        raise ValueError(f"{share} of {len(topics)} topics leaves none for the cross-topic test")
    if clusters is None:
        return np.arange(len(topics)) < room
    cluster = clusters.loc[topics["topic"]].to_numpy()
    seen = np.zeros(len(topics), bool)
    for each in topics.groupby(cluster)["documents"].sum().sort_values(ascending=False, kind="stable").index:
        if seen.sum() + (cluster == each).sum() <= room:
            seen |= cluster == each
    if not seen.any():
        raise ValueError(f"each of {len(set(cluster))} clusters of topics is larger than {room} topics, topic_share "
                         f"({share}) of {len(topics)}: raise it, or similarity")  # fmt: skip
    return seen


def _draw(authors, author_share, train_share, least, rng):
    """The split of each author, None for those left over. authors: by number of documents, falling."""
    split = np.full(len(authors), None, object)
    inside = authors["inside"].to_numpy()
    able = np.flatnonzero(inside[: max(1, round(author_share * len(authors)))] >= least)
    split[rng.permutation(able)[: round(train_share * len(able))]] = "train"
    size = (1 - train_share) / 2 / train_share * inside[split == "train"].sum()
    order = rng.permutation(len(authors))
    for number, (name, column) in enumerate((("test_cross", "outside"), ("test_in", "inside"), ("dev", "documents"))):
        count = authors[column].to_numpy()
        free = order[pd.isna(split[order])]
        able = free[count[free] >= least]
        third = -(-(authors["documents"].to_numpy()[free] >= least).sum() // (3 - number))
        taken = able[: min(np.searchsorted(np.cumsum(count[able]), size) + 1, third)]
        split[taken] = name
        size = count[taken].sum() if name == "test_cross" else size
    return split


def _components(connection, authors):
    """For each author the number of its component: those who share a pair, and so on."""
    links = connection.execute(f"""
        SELECT DISTINCT author, min(author) OVER (PARTITION BY regexp_extract(id, {PAIR}, 1)) AS first
        FROM posts""").df()
    a, b = (pd.Index(authors).get_indexer(links[name]) for name in ("author", "first"))
    graph = coo_array((np.ones(len(a), bool), (a, b)), shape=(len(authors), len(authors)))
    return connected_components(graph, directed=False)[1]


def _are_pairs(connection):
    if "id" not in [row[0] for row in connection.execute("DESCRIBE posts").fetchall()]:
        return False
    query = f"SELECT bool_and(coalesce(regexp_matches(id, {PAIR}), false)) FROM posts"
    return bool(connection.execute(query).fetchall()[0][0])
