"""The audit finds each broken promise in files that were changed after they were written."""

import shutil

import duckdb
import pytest

from helpers.splits import AuthorSplit, TopicSplit
from helpers.splits.assignment import make_split
from helpers.splits.audit import AuditError, audit_split
from tests.factories import posts_table
from tests.splits.test_by_author import pairs
from tests.splits.test_by_time import make, two_communities
from tests.splits.test_by_topic import RULES, documents

FIRST = "WHERE text = (SELECT min(text) FROM {0})"
FEW = """WHERE author = (SELECT min(author) FROM {0}) AND text NOT IN (
    SELECT text FROM {0} WHERE author = (SELECT min(author) FROM {0}) LIMIT 3)"""
LAST_OF_A = "WHERE text = (SELECT max_by(text, time) FROM train WHERE topic LIKE 'a%')"
# kind of the split: what the audit says, and SQL that changes the files, each a table of its name
CHANGES = {
    "time": {
        "authors in more than one split: 1": [
            "INSERT INTO dev SELECT (SELECT min(author) FROM train), time, topic, 'new' FROM dev "
            "LIMIT 1"
        ],
        "test posts not later than every dev post: 1": [
            f"UPDATE test SET time = (SELECT max(time) FROM dev) {FIRST.format('test')}"
        ],
        "seen posts not later than every train post: 1": [
            f"UPDATE seen SET time = (SELECT max(time) FROM train) {FIRST.format('seen')}"
        ],
        "seen authors with fewer than 6 posts: 1": [f"DELETE FROM seen {FEW.format('seen')}"],
        "train authors with fewer than 5 posts: 1": [f"DELETE FROM train {FEW.format('train')}"],
        "texts in more than one split: 1": [
            "UPDATE test SET text = '  ' || (SELECT upper(min(text)) FROM train) "
            + FIRST.format("test")
        ],
        "test rows out of order": [
            "CREATE OR REPLACE TABLE test AS FROM test ORDER BY author DESC"
        ],
        "train counts differ from split.json": [f"DELETE FROM train {FIRST.format('train')}"],
    },
    "communities": {
        "test posts not later than every train post: [1-9]": [
            "UPDATE train SET time = (SELECT max(time) FROM test WHERE topic LIKE 'a%') "
            f"+ INTERVAL 1 SECOND {LAST_OF_A}"
        ]
    },
    "topics": {
        "topics of both train and test_cross: 1": [
            f"UPDATE test_cross SET topic = (SELECT min(topic) FROM train) "
            f"{FIRST.format('test_cross')}"
        ],
        "test_in topics that train lacks: 1": [
            f"UPDATE test_in SET topic = 'nowhere' {FIRST.format('test_in')}"
        ],
        # topics 0 and 8 say the same
        "clusters of both train and test_cross: 1": [
            "DELETE FROM train WHERE topic LIKE 'topic 8/%'",
            f"UPDATE test_cross SET topic = 'topic 8/\N{SNOWMAN}' {FIRST.format('test_cross')}",
        ],
    },
    "pairs": {
        "authors of one pair in more than one split: 1": [
            f"UPDATE train SET id = 'its/new/a' {FIRST.format('train')}",
            f"UPDATE test SET id = 'its/new/b' {FIRST.format('test')}",
        ]
    },
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Kind of a split -> its folder, to be copied."""
    places = {kind: tmp_path_factory.mktemp(kind) for kind in CHANGES}
    make(places["time"])
    make(places["communities"], two_communities(), periods="community")
    posts = posts_table(places["topics"] / "posts.parquet", documents())
    make_split(posts, places["topics"] / "posts", TopicSplit(kind="leak_aware", **RULES))
    make_split(pairs(places["pairs"]), places["pairs"] / "posts", AuthorSplit(test=0.2, dev=0.2))
    return {kind: place / "posts" for kind, place in places.items()}


def change(folder, statements):
    with duckdb.connect() as connection:
        files = list(folder.glob("*.parquet"))
        for file in files:
            connection.execute(f"CREATE TABLE {file.stem} AS FROM '{file}'")
        for statement in statements:
            connection.execute(statement)
        for file in files:
            connection.execute(f"COPY {file.stem} TO '{file}'")


@pytest.mark.parametrize(
    "kind, check", [(kind, check) for kind, changes in CHANGES.items() for check in changes]
)
def test_a_broken_promise_is_found(folders, tmp_path, kind, check):
    folder = shutil.copytree(folders[kind], tmp_path / "posts")
    assert not audit_split(folder)["violations"].any()
    change(folder, CHANGES[kind][check])
    with pytest.raises(AuditError, match=check):
        audit_split(folder)


def test_a_missing_file_is_named(folders, tmp_path):
    folder = shutil.copytree(folders["topics"], tmp_path / "posts")
    (folder / "test_in.parquet").unlink()
    with pytest.raises(ValueError, match="posts/test_in.parquet: missing; the command that"):
        audit_split(folder)
