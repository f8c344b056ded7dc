"""Splits by author and by topic: their rules re-checked in plain Python, leaks by content, pairs, and the audit."""

import random
import shutil
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.splits import by_topic as topic_splits
from helpers.splits.audit import AuditError
from helpers.corpus.table import SCHEMA
from helpers.splits.assignment import SPLITS
from helpers.splits.by_topic import audit, by_authors, by_topics

WORDS = ["ship wave salt sail mast", "court judge plea case law", "cod eel carp pike bass", "oak elm ash pine fir",
         "iron tin lead zinc gold", "bread milk egg flour salt", "king queen pawn rook mate",
         "rain wind snow hail fog"]  # fmt: skip
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


def load(path):
    table = pq.read_table(path)
    times = table["time"].cast("timestamp[s]").cast("int64").to_pylist()
    return list(zip(table["author"].to_pylist(), times, table["topic"].to_pylist(), table["text"].to_pylist()))


def files(folder, names):
    return {name: load(folder / f"{name}.parquet") for name in names}


def number(topic):
    return int(topic.split("/")[0].split()[1])


def used_and_unused(report, names):
    return sum(report[f"{name}_posts"] for name in names) + sum(
        value for key, value in report.items() if key.startswith("unused_"))  # fmt: skip


class TestByTopics:
    names = SPLITS["by_topics"]

    @pytest.mark.parametrize("kind", topic_splits.KINDS)
    @pytest.mark.parametrize("seed", range(2))
    def test_it_follows_the_rules(self, tmp_path, write_posts, kind, seed):
        rows = documents(seed)
        report = by_topics(write_posts(rows), tmp_path / "out", kind=kind, seed=seed, **RULES)
        made = files(tmp_path / "out", self.names)
        authors = {name: {row[0] for row in each} for name, each in made.items()}
        topics = {name: {row[2] for row in each} for name, each in made.items()}
        assert sum(map(len, authors.values())) == len(set().union(*authors.values()))
        for name, each in made.items():
            assert (report[f"{name}_posts"], report[f"{name}_authors"], report[f"{name}_topics"]) == (
                len(each), len(authors[name]), len(topics[name]))  # fmt: skip
            assert min(sum(row[0] == author for row in each) for author in authors[name]) >= 2
            assert each == sorted(each)
        assert topics["test_in"] <= topics["train"]
        assert used_and_unused(report, self.names) == len(rows)
        by_author = sorted(authors["train"] | set(row[0] for row in rows),
                           key=lambda author: (-sum(row[0] == author for row in rows), author))  # fmt: skip
        assert authors["train"] <= set(by_author[: round(0.4 * len(by_author))])
        if kind == "random":
            assert report["similarity_max"] == pytest.approx(1)
            return
        assert not topics["train"] & topics["test_cross"]
        allowed = topics["train"]
        if kind == "cross_topic":
            by_topic = sorted({row[2] for row in rows}, key=lambda t: (-sum(row[2] == t for row in rows), t))
            allowed = set(by_topic[: TOPICS // 2])
            assert topics["train"] <= allowed
        # every document of a training author in a candidate topic trains; every other of a cross-topic author asks
        assert made["train"] == [row for row in rows if row[0] in authors["train"] and row[2] in allowed]
        if kind == "cross_topic":
            assert made["test_cross"] == [row for row in rows if row[0] in authors["test_cross"]
                                          and row[2] not in allowed]  # fmt: skip

    @pytest.mark.parametrize("most", [1, 2])
    def test_training_authors_may_keep_their_most_frequent_topics_only(self, tmp_path, write_posts, most):
        path = write_posts(documents())
        whole, report = (by_topics(path, tmp_path / str(k), author_topics=k, **RULES) for k in (0, most))
        made = {k: load(tmp_path / str(k) / "train.parquet") for k in (0, most)}
        wanted = []
        for author in sorted({row[0] for row in made[0]}):
            counts = Counter(row[2] for row in made[0] if row[0] == author)
            kept = sorted(counts, key=lambda topic: (-counts[topic], topic))[:most]
            if sum(counts[topic] for topic in kept) >= 2:
                wanted += [row for row in made[0] if row[0] == author and row[2] in kept]
        assert made[most] == wanted and 0 < len(wanted) < len(made[0])
        assert used_and_unused(report, self.names) == used_and_unused(whole, self.names)
        assert report["unused_rarer_topics_of_train_authors"] > 0
        for name in ("test_cross", "dev"):
            assert load(tmp_path / f"{most}/{name}.parquet") == load(tmp_path / f"0/{name}.parquet")
        shutil.copy(tmp_path / "0/train.parquet", tmp_path / f"{most}/train.parquet")
        with pytest.raises(AuditError, match=f"train authors with more than {most} topics: [1-9]"):
            audit(tmp_path / str(most))

    def test_topics_that_say_the_same_never_face_each_other(self, tmp_path, write_posts):
        path = write_posts(documents())
        cross = by_topics(path, tmp_path / "cross", **RULES)
        aware = by_topics(path, tmp_path / "aware", kind="leak_aware", **RULES)
        faced = {name: {number(row[2]) % 8 for row in load(tmp_path / name / "train.parquet")}
                 & {number(row[2]) % 8 for row in load(tmp_path / name / "test_cross.parquet")}
                 for name in ("cross", "aware")}  # fmt: skip
        assert faced["cross"] and not faced["aware"]
        assert cross["similarity_max"] > 0.9 and aware["similarity_max"] <= aware["similarity"]
        assert aware["similarity_mean"] < cross["similarity_mean"]
        assert number(cross["most_similar"][0]) % 8 == number(cross["most_similar"][1]) % 8

    def test_sizes_are_those_of_the_paper(self, tmp_path, write_posts):
        """An eighth of train in each of the others, where there are authors enough: 80, 10, 10 and 10 per cent."""
        report = by_topics(write_posts(documents(authors=250)), tmp_path / "out", author_share=0.3, topic_share=0.5)
        for name in ("test_cross", "test_in", "dev"):
            assert report[f"{name}_posts"] == pytest.approx(report["train_posts"] / 8, rel=0.15)

    def test_a_text_is_in_one_split_and_stays_in_training(self, tmp_path, write_posts):
        rows = documents()
        before = by_topics(write_posts(rows), tmp_path / "out", **RULES)
        made = files(tmp_path / "out", self.names)
        train, others = made["train"][0], {made[name][0] for name in ("test_cross", "test_in", "dev")}
        changed = [(*row[:3], f" {train[3].upper()}\t") if row in others else row for row in rows]
        after = by_topics(write_posts(changed), tmp_path / "out", **RULES)
        assert train in load(tmp_path / "out/train.parquet")
        gone = after["unused_texts_of_other_splits"] + after.get("unused_authors_with_too_few_documents", 0)
        assert gone >= 3 and "unused_texts_of_other_splits" not in before
        assert after["train_posts"] == before["train_posts"]

    def test_a_second_run_writes_nothing_and_another_kind_splits_anew(self, tmp_path, write_posts):
        path = write_posts(documents())
        first = by_topics(path, tmp_path / "out", kind="leak_aware", **RULES)
        before = {file: file.stat().st_mtime_ns for file in (tmp_path / "out").iterdir()}
        assert by_topics(path, tmp_path / "out", kind="leak_aware", **RULES) == first
        assert before == {file: file.stat().st_mtime_ns for file in (tmp_path / "out").iterdir()}
        assert sorted(file.name for file in before) == [
            "clusters.json", "dev.parquet", "split.json", "test_cross.parquet", "test_in.parquet", "train.parquet",
        ]  # fmt: skip
        assert by_topics(path, tmp_path / "again", kind="leak_aware", **RULES) == first
        for name in self.names:
            assert load(tmp_path / f"again/{name}.parquet") == load(tmp_path / f"out/{name}.parquet")
        assert by_topics(path, tmp_path / "out", **RULES)["fingerprint"] != first["fingerprint"]
        assert not (tmp_path / "out/clusters.json").exists()

    @pytest.mark.parametrize("changes, message", [
        ({"kind": "fair"}, "kind 'fair': one of cross_topic, leak_aware, random"), ({"topic_share": 1}, "topic_share"),
        ({"train_share": 0}, "train_share"), ({"author_share": 1.5}, "author_share"),
        ({"topic_share": 0.99}, "leaves none for the cross-topic test"), ({"min_documents": 99}, "nothing is left for"),
        ({"author_topics": -1}, "author_topics must be at least 0, not -1"),
        ({"kind": "leak_aware", "topic_share": 0.06, "similarity": 0.3}, "raise it, or similarity"),
        ({"similarity": 0, "kind": "leak_aware"}, "similarity must lie in"), ({"min_df": 10**6}, "share no terms"),
    ])  # fmt: skip
    def test_what_cannot_be_split_is_refused(self, tmp_path, write_posts, changes, message):
        with pytest.raises(ValueError, match=message):
            by_topics(write_posts(documents()), tmp_path / "out", **RULES | changes)
        assert not (tmp_path / "out/split.json").exists()


class TestByAuthors:
    names = SPLITS["by_authors"]

    def test_shares_of_authors_with_all_their_posts(self, tmp_path, write_posts):
        rows = documents()
        report = by_authors(write_posts(rows), tmp_path / "out", test=0.2, dev=0.1)
        made = files(tmp_path / "out", self.names)
        assert sorted(sum(made.values(), [])) == rows
        assert [len({row[0] for row in made[name]}) for name in self.names] == [42, 12, 6]
        assert used_and_unused(report, self.names) == len(rows) and not report["given_pairs"]
        other = by_authors(write_posts(rows), tmp_path / "other", test=0.2, dev=0.1, seed=1)
        assert other["fingerprint"] != report["fingerprint"] and load(tmp_path / "other/test.parquet") != made["test"]

    def pairs(self, tmp_path, broken=False):
        rng = random.Random(3)
        rows = []
        for pair in range(60):
            for side in "ab":
                author = f"a{rng.randrange(100):03d}"
                rows.append((author, "x", f"text {pair} {side}", f"it's/{pair}/{side}"))
        if broken:
            rows[7] = (*rows[7][:3], "message-7")
        rows.sort()
        author, topic, text, ids = map(list, zip(*rows))
        table = pa.table({"author": author, "time": pa.array([0] * len(rows), pa.timestamp("s", "UTC")),
                          "topic": topic, "text": text, "id": ids})  # fmt: skip
        pq.write_table(table, tmp_path / "pairs.parquet")
        return tmp_path / "pairs.parquet"

    def test_given_pairs_stay_whole(self, tmp_path):
        report = by_authors(self.pairs(tmp_path), tmp_path / "out", test=0.2, dev=0.2)
        side = {key: name for name in self.names
                for key in pq.read_table(tmp_path / f"out/{name}.parquet")["id"].to_pylist()}  # fmt: skip
        assert len(side) == 120 and report["given_pairs"] and report["largest_component"] > 2
        assert all(side[f"it's/{pair}/a"] == side[f"it's/{pair}/b"] for pair in range(60))
        assert set(side.values()) == set(self.names)

    def test_other_ids_are_no_pairs(self, tmp_path):
        report = by_authors(self.pairs(tmp_path, broken=True), tmp_path / "out", test=0.2, dev=0.2)
        assert not report["given_pairs"] and report["largest_component"] == 1

    def test_the_audit_sees_a_cut_pair(self, tmp_path):
        by_authors(self.pairs(tmp_path), tmp_path / "out", test=0.2, dev=0.2)
        train, test = (pq.read_table(tmp_path / f"out/{name}.parquet") for name in ("train", "test"))
        ids = ["it's/new/a", *train["id"].to_pylist()[1:]]
        pq.write_table(train.set_column(4, "id", [ids]), tmp_path / "out/train.parquet")
        pq.write_table(test.set_column(4, "id", [["it's/new/b", *test["id"].to_pylist()[1:]]]),
                       tmp_path / "out/test.parquet")  # fmt: skip
        with pytest.raises(AuditError, match="authors of one pair in more than one split: 1"):
            audit(tmp_path / "out")

    def test_what_cannot_be_split_is_refused(self, tmp_path, write_posts):
        path = write_posts(documents(authors=5))
        for test, dev in ((0, 0.1), (0.1, 0), (0.5, 0.5)):
            with pytest.raises(ValueError, match="leave something for training"):
                by_authors(path, tmp_path / "out", test=test, dev=dev)
        with pytest.raises(ValueError, match="nothing is left for test"):
            by_authors(path, tmp_path / "out", test=0.01)
        with pytest.raises(ValueError, match="nothing is left for train"):
            by_authors(write_posts([]), tmp_path / "out")


def _shared_author(made):
    made["dev"] = sorted([*made["dev"], (made["train"][0][0], 5, "topic 0/\N{SNOWMAN}", "new words")])


def _shared_text(made):
    made["test_in"][0] = (*made["test_in"][0][:3], "  " + made["train"][0][3].upper())


def _known_topic(made):
    made["test_cross"][0] = (*made["test_cross"][0][:2], made["train"][0][2], made["test_cross"][0][3])


def _unknown_topic(made):
    made["test_in"][0] = (*made["test_in"][0][:2], "nowhere", made["test_in"][0][3])


def _alike_topic(made):
    twin = (number(made["train"][0][2]) + 8) % TOPICS
    assert all(number(row[2]) != twin for row in made["test_cross"])
    made["train"] = [row for row in made["train"] if number(row[2]) != twin]
    made["test_cross"][0] = (*made["test_cross"][0][:2], f"topic {twin}/\N{SNOWMAN}", made["test_cross"][0][3])


def _lonely(made):
    author = made["dev"][0][0]
    made["dev"] = made["dev"][:1] + [row for row in made["dev"] if row[0] != author]


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    """The folder of a leak-aware split; to be copied."""
    folder = tmp_path_factory.mktemp("split")
    schema = pa.schema([SCHEMA.field(number) for number in range(4)])
    table = pa.table([pa.array(column) for column in zip(*documents())], names=schema.names).cast(schema)
    pq.write_table(table, folder / "posts.parquet")
    by_topics(folder / "posts.parquet", folder / "out", kind="leak_aware", **RULES)
    return folder / "out"


@pytest.mark.parametrize("change, check", [
    (_shared_author, "authors in more than one split: 1"), (_shared_text, "texts in more than one split: 1"),
    (_known_topic, "topics of both train and test_cross: 1"), (_unknown_topic, "test_in topics that train lacks: 1"),
    (_alike_topic, "clusters of both train and test_cross: 1"), (_lonely, "dev authors with fewer than 2 documents: 1"),
    (lambda made: made["test_in"].reverse(), "test_in rows out of order"),
    (lambda made: made["train"].pop(), "train counts differ from split.json"),
    (lambda made: made["dev"].clear(), "no posts in dev"),
])  # fmt: skip
def test_the_audit_catches(tmp_path, write_posts, made_once, change, check):
    shutil.copytree(made_once, tmp_path / "out")
    rows = audit(tmp_path / "out")
    assert len(rows) == 17 and not any(row["value"] for row in rows)
    made = files(tmp_path / "out", SPLITS["by_topics"])
    change(made)
    for name, each in made.items():
        write_posts(each, f"out/{name}.parquet")
    with pytest.raises(AuditError) as error:
        audit(tmp_path / "out")
    assert check in str(error.value)


def test_the_audit_names_what_is_missing(tmp_path, made_once):
    shutil.copytree(made_once, tmp_path / "out")
    (tmp_path / "out/clusters.json").unlink()
    (tmp_path / "out/test_in.parquet").unlink()
    with pytest.raises(ValueError, match="no test_in.parquet, clusters.json in out"):
        audit(tmp_path / "out")
    (tmp_path / "out/split.json").write_text('{"split": "future"}')
    with pytest.raises(ValueError, match="holds the split 'future', not one of by_authors, by_topics"):
        audit(tmp_path / "out")
