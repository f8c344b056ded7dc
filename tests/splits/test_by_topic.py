"""The split by author and topic against plain Python; likeness and clusters of topics."""

import random
import shutil
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.corpus.posts_table import open_database
from helpers.splits import TopicSplit
from helpers.splits import by_topic as module
from helpers.splits.assignment import make_split
from helpers.splits.audit import AuditError, audit_split
from helpers.splits.by_topic import cluster_topics, most_similar_topics, topic_vectors
from tests.factories import posts_table
from tests.factories import read_posts as load
from tests.splits.test_by_time import counted

WORDS = (
    "ship wave salt sail mast|court judge plea case law|cod eel carp pike bass|"
    "oak elm ash pine fir|iron tin lead zinc gold|bread milk egg flour salt|"
    "king queen pawn rook mate|rain wind snow hail fog"
).split("|")
TOPICS = 16  # topics n and n + 8 say the same under two names
RULES = {"author_share": 0.4, "topic_share": 0.5, "train_share": 0.5}


def documents(seed=0, authors=60):
    rng = random.Random(seed)
    rows = []
    for number in range(authors):
        for i in range(rng.randrange(1, 30)):
            topic = min(rng.randrange(TOPICS), rng.randrange(TOPICS))
            text = f"{number} wrote {i}: " + " ".join(rng.choices(WORDS[topic % 8].split(), k=8))
            rows.append((f"o'{number:02d}", 1000 * number + i, f"topic {topic}/\N{SNOWMAN}", text))
    return rows


def by_topics(path, folder, **settings):
    return make_split(path, folder, TopicSplit.of(settings))


def files(folder, names):
    return {name: load(folder / f"{name}.parquet") for name in names}


def number(topic):
    return int(topic.split("/")[0].split()[1])


def most_frequent_first(values):
    counts = Counter(values)
    return sorted(counts, key=lambda value: (-counts[value], value))


class TestByTopics:
    names = TopicSplit.splits

    @pytest.mark.parametrize("kind", ("cross_topic", "leak_aware"))
    def test_it_follows_the_rules(self, tmp_path, write_posts, kind):
        rows = documents(1)
        report = by_topics(write_posts(rows), tmp_path / "out", kind=kind, seed=1, **RULES)
        made = files(tmp_path / "out", self.names)
        authors = {name: {row[0] for row in each} for name, each in made.items()}
        topics = {name: {row[2] for row in each} for name, each in made.items()}
        assert sum(map(len, authors.values())) == len(set().union(*authors.values()))
        for name, each in made.items():
            sizes = [len(each), len(authors[name]), len(topics[name])]
            assert list(report["splits"][name].values()) == sizes and each == sorted(each)
        assert min(Counter(row[0] for row in made["train"]).values()) >= 2
        assert topics["test_in"] <= topics["train"]
        assert counted(report) == len(rows)
        by_author = most_frequent_first(row[0] for row in rows)
        assert authors["train"] <= set(by_author[: round(0.4 * len(by_author))])
        assert not topics["train"] & topics["test_cross"]
        allowed = topics["train"]
        if kind == "cross_topic":
            allowed = set(most_frequent_first(row[2] for row in rows)[: TOPICS // 2])
            assert topics["train"] <= allowed
        # every document of a training author in a candidate topic trains; every other of a
        # cross-topic author asks
        trains = [row for row in rows if row[0] in authors["train"] and row[2] in allowed]
        assert made["train"] == trains
        if kind == "cross_topic":
            asking = [row for row in rows if row[0] in authors["test_cross"]]
            assert made["test_cross"] == [row for row in asking if row[2] not in allowed]

    def test_training_authors_may_keep_their_most_frequent_topics_only(self, tmp_path, write_posts):
        path = write_posts(documents())
        most = 2
        by_topics(path, tmp_path / "0", **RULES)
        report = by_topics(path, tmp_path / str(most), author_topics=most, **RULES)
        made = {k: load(tmp_path / str(k) / "train.parquet") for k in (0, most)}
        wanted = []
        for author in sorted({row[0] for row in made[0]}):
            own = [row for row in made[0] if row[0] == author]
            kept = most_frequent_first(row[2] for row in own)[:most]
            own = [row for row in own if row[2] in kept]
            if len(own) >= 2:
                wanted += own
        assert made[most] == wanted and 0 < len(wanted) < len(made[0])
        assert report["unused"]["rarer_topics_of_train_authors"] > 0
        for name in ("test_cross", "dev"):
            assert load(tmp_path / f"{most}/{name}.parquet") == load(tmp_path / f"0/{name}.parquet")
        shutil.copy(tmp_path / "0/train.parquet", tmp_path / f"{most}/train.parquet")
        with pytest.raises(AuditError, match=f"train authors with more than {most} topics: [1-9]"):
            audit_split(tmp_path / str(most))

    def test_topics_that_say_the_same_never_face_each_other(self, tmp_path, write_posts):
        path = write_posts(documents())
        cross = by_topics(path, tmp_path / "cross", **RULES)
        aware = by_topics(path, tmp_path / "aware", kind="leak_aware", **RULES)
        faced = {}
        for name in ("cross", "aware"):
            made = files(tmp_path / name, ["train", "test_cross"])
            subjects = [{number(row[2]) % 8 for row in rows} for rows in made.values()]
            faced[name] = subjects[0] & subjects[1]
        assert faced["cross"] and not faced["aware"]
        assert cross["similarity_max"] > 0.9
        assert aware["similarity_max"] <= aware["settings"]["similarity"]
        assert number(cross["most_similar"][0]) % 8 == number(cross["most_similar"][1]) % 8

    def test_sizes_are_those_of_the_paper(self, tmp_path, write_posts):
        """An eighth of train in each of the others, give or take an author, if there are enough."""
        path = write_posts(documents(authors=250))
        report = by_topics(path, tmp_path / "out", author_share=0.3, topic_share=0.5)
        posts = {name: sizes["posts"] for name, sizes in report["splits"].items()}
        for name in ("test_cross", "test_in", "dev"):
            assert posts[name] == pytest.approx(posts["train"] / 8, abs=29)


def test_given_files_are_test_and_dev_and_their_topics_train_nobody(tmp_path):
    """An early file trains; the others share authors with it, that of the test a few topics."""
    rng = random.Random(1)
    rows = []
    for name, people, topics in (
        ("old", range(40), range(8)),
        ("2020", range(30, 50), range(8)),
        ("2021", range(48, 80), range(6, 12)),
    ):
        for post in range(120):
            topic = rng.choice(topics)
            text = f"{name} {post}: " + " ".join(rng.choices(WORDS[topic % 8].split(), k=8))
            author = f"o'{rng.choice(people):02d}"
            rows.append((author, 0, f"topic {topic}/x", text, f"{name}/{post // 2}/a"))
    rows.sort(key=lambda row: (row[0], row[3]))
    table = pq.read_table(posts_table(tmp_path / "posts.parquet", rows))
    ids = pa.array([row[4] for row in rows])
    pq.write_table(table.append_column("id", ids), tmp_path / "pan.parquet")
    rule = {"files": {"test_cross": "2021", "dev": "2020/"}}
    rule |= {"author_share": 1, "train_share": 1, "topic_share": 1}
    report = by_topics(tmp_path / "pan.parquet", tmp_path / "out", **rule)
    made = files(tmp_path / "out", report["splits"])
    assert list(made) == ["train", "test_cross", "dev"] and counted(report) == len(rows)
    test = [row for row in rows if row[4].startswith("2021/")]
    tested = {row[0] for row in test}
    dev = [row for row in rows if row[4].startswith("2020/") and row[0] not in tested]
    assert made["test_cross"] == [row[:4] for row in test]
    assert made["dev"] == [row[:4] for row in dev]
    topics = {row[2] for row in test}
    known = tested | {row[0] for row in dev}
    old = [row[:4] for row in rows if row[4].startswith("old/") and row[0] not in known]
    allowed = [row for row in old if row[2] not in topics]
    enough = Counter(row[0] for row in allowed)
    assert made["train"] == [row for row in allowed if enough[row[0]] >= 2]
    with pytest.raises(ValueError, match="files: no post of dev comes from the file 'PAN20'"):
        files_of = {"test_cross": "2021", "dev": "PAN20"}
        by_topics(tmp_path / "pan.parquet", tmp_path / "none", **rule | {"files": files_of})


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
