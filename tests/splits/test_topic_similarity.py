"""Topic vectors, the most similar training topic, and clusters, against naive loops."""

import numpy as np
import pandas as pd
import pytest

from helpers.corpus.posts_table import open_database
from helpers.splits import by_topic as module
from helpers.splits.by_topic import cluster_topics, most_similar_topics, topic_vectors


def frame(rows):
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return pd.DataFrame(units, [f"t{n}" for n in range(len(rows))])


def test_topics_that_say_the_same_are_alike(tmp_path, write_posts, monkeypatch):
    rng = np.random.default_rng(0)
    words = {
        "sea": "ship wave salt sail",
        "ocean": "ship wave salt sail",
        "law": "court judge plea case",
        "it's \N{FISH}": "cod eel carp pike",
    }
    rows = []
    for n, (topic, own) in enumerate(list(words.items()) * 40):
        rows.append((f"a{n % 7}", n, topic, f"{n} and " + " ".join(rng.choice(own.split(), 6))))
    with open_database(tmp_path / "work") as connection:
        connection.read_parquet(str(write_posts(sorted(rows)))).create_view("posts")
        vectors = topic_vectors(connection)
        assert vectors.index.tolist() == sorted(words)
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
        assert vectors.loc["sea"] @ vectors.loc["ocean"] > 0.9
        assert vectors.loc["sea"] @ vectors.loc["law"] < 0.2
        monkeypatch.setattr(module, "MAX_DOCUMENTS", 4)
        monkeypatch.setattr(module, "MIN_DOCUMENTS", 1)
        monkeypatch.setattr(module, "MIN_TERM_DOCUMENTS", 5)
        with pytest.raises(ValueError, match="4 documents of 4 topics share no terms"):
            topic_vectors(connection)


def test_the_most_similar_training_topic():
    vectors = frame(np.abs(np.random.default_rng(1).standard_normal((9, 4))))
    train, test = vectors.index[:5], vectors.index[5:]
    pair, similarity = most_similar_topics(vectors, train, test[::-1])
    scores = {(a, b): float(vectors.loc[a] @ vectors.loc[b]) for a in test for b in train}
    assert tuple(pair) == max(scores, key=scores.get)
    assert similarity == pytest.approx(max(scores.values()))


@pytest.mark.parametrize("similarity", [0.8, 1.0])
def test_clusters_keep_what_is_alike_together(similarity):
    vectors = frame(np.abs(np.random.default_rng(2).standard_normal((30, 4))))
    vectors.iloc[7] = vectors.iloc[3]
    clusters = cluster_topics(vectors, similarity)
    group = list(range(30))  # merged one pair at a time
    for i in range(30):
        for j in range(30):
            if vectors.iloc[i] @ vectors.iloc[j] > similarity - 1e-9:
                group = [group[i] if each == group[j] else each for each in group]
    for i in range(30):
        for j in range(30):
            assert (clusters.iloc[i] == clusters.iloc[j]) == (group[i] == group[j])


def test_topics_without_a_known_term_join_no_others():
    rows = pd.DataFrame([[1, 0], [0, 0], [0.99, 0.14], [0, 1], [0, 0]], list("abcde"))
    found = cluster_topics(rows, 0.4)
    assert found.iloc[0] == found.iloc[2] != found.iloc[3] and found.iloc[1] == found.iloc[4] == -1
