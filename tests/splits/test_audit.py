"""The audit finds each broken promise in files that were changed after they were written."""

import shutil
from pathlib import Path

import duckdb
import pytest
import yaml

from helpers.splits import AuthorSplit, TopicSplit
from helpers.splits.assignment import make_split
from helpers.splits.audit import AuditError, audit_split
from tests.factories import posts_table
from tests.splits.test_by_author import pairs
from tests.splits.test_by_time import make, two_communities
from tests.splits.test_by_topic import RULES, documents

CHANGES = yaml.safe_load(Path(__file__).with_name("audit.yaml").read_text("utf-8"))


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
