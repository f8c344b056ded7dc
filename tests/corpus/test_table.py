"""The database and its tables: whatever a folder is called, and what SQL is made of."""

import re

import pytest

from helpers.corpus.collect import CollectConfig, collect
from helpers.corpus.selection import Selection, select
from helpers.corpus.documents import join_posts
from helpers.corpus.table import database
from helpers.runs import paths
from helpers.splits.assignment import split
from helpers.splits.audit import audit
from helpers.splits.by_time import TimeSplit
from helpers.tokens import tokenizer
from helpers.tokens.store import build_store, list_topics


@pytest.mark.parametrize("outputs", ["it's \"quoted\"; DROP TABLE posts --", "some [1]* {a}", "100 % Größe"])
def test_a_folder_may_be_called_anything(tmp_path, monkeypatch, outputs):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / outputs))
    run = paths.Run("demo")
    card = collect(run, CollectConfig(source="demo", options={"authors": 20, "posts": 800}), progress=False)
    chosen = run.folder / "selected.parquet"
    counts = select(run.folder / "posts.parquet", chosen, Selection(min_posts=5, max_posts=0, start="2001-01-01"))
    assert counts["posts_before"] == card["posts"] and 0 < counts["posts"] <= card["posts"]
    report = split(chosen, run.posts, TimeSplit(train_until=0.5, dev_until=0.7, heldout=0.3,
                                                min_posts=2, eval_posts=2))
    assert set(audit(run.posts)["violations"]) == {0}
    train = run.posts / "train.parquet"
    assert join_posts(train, run.folder / "documents.parquet", min_chars=20)["documents"]
    words = tokenizer.prepare(run.tokenizer, "bytes", 256, train, 100, 0)
    store = build_store(train, run.tokens / "train", words.encode, list_topics(train, 9), words.fingerprint)
    assert store.posts == report["splits"]["train"]["posts"]
    assert [path.name for path in tmp_path.iterdir()] == [outputs]


def test_a_folder_that_duckdb_cannot_use_is_named(tmp_path):
    with pytest.raises(ValueError, match="cannot work in a folder with '[?]' in its name: set AUTHORBOOK_OUTPUTS"):
        with database(tmp_path / "why?" / "work"):
            pass
    assert not list(tmp_path.iterdir())


def test_no_path_and_no_text_is_written_into_sql():
    """Values are bound; what stands in braces within SQL is a constant of the code, a number or a column."""
    for path in sorted((paths.ROOT / "helpers").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"read_parquet\(\s*['{]|(?:FROM|TO|from|to) '\{|=\s*'\{", text), path.name
