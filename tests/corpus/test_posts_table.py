"""The database and its tables: whatever a folder is called, and what SQL is made of."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.core import paths
from helpers.corpus import posts_table
from helpers.corpus.collection import CollectConfig, collect
from helpers.corpus.posts_table import Selection, join_posts, open_database, select_posts
from helpers.splits.assignment import make_split
from helpers.splits.audit import audit_split
from helpers.splits.by_time import TimeSplit
from helpers.tokens import tokenizer
from helpers.tokens.store import build_store, list_topics


def test_a_folder_may_be_called_anything(tmp_path, monkeypatch):
    outputs = """100 % it's "Größe"; DROP TABLE posts -- [1]* {a}"""
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / outputs))
    run = paths.Run("demo")
    card = collect(run, CollectConfig(source="demo", options={"authors": 20, "posts": 800}))
    chosen = run.folder / "selected.parquet"
    selection = Selection(min_posts=5, max_posts=0, start="2001-01-01")
    counts = select_posts(run.folder / "posts.parquet", chosen, selection)
    assert counts["posts_before"] == card["posts"] and 0 < counts["posts"] <= card["posts"]
    rule = TimeSplit(train_until=0.5, dev_until=0.7, heldout=0.3, min_posts=2, eval_posts=2)
    report = make_split(chosen, run.posts, rule)
    assert set(audit_split(run.posts)["violations"]) == {0}
    train = run.posts / "train.parquet"
    assert join_posts(train, run.folder / "documents.parquet", min_chars=20)["documents"]
    words = tokenizer.prepare_text(run.tokenizer, "bytes", 256, train, 100, 0)
    encoding = (list_topics(train, 9), words.fingerprint)
    store = build_store(train, run.tokens / "train", words.encode, *encoding)
    assert store.posts == report["splits"]["train"]["posts"]
    assert [path.name for path in tmp_path.iterdir()] == [outputs]


def test_equal_rows_give_equal_bytes_whatever_the_threads_and_the_batches(tmp_path):
    """The oracle is Arrow's own sort, written a group and within it a page at a time."""
    rng = np.random.default_rng(0)
    # so many that DuckDB's batches differ
    texts = [f"{number} " + "word " * (number % 50) for number in rng.permutation(130_000)]
    columns = {"author": rng.choice(list("abc"), len(texts))}
    columns |= {"time": rng.integers(0, 999, len(texts)), "topic": ["x"] * len(texts)}
    rows = pa.table(columns | {"text": texts})
    pq.write_table(rows, tmp_path / "rows.parquet")
    order = [(name, "ascending") for name in ("author", "time", "text", "topic")]
    oracle = rows.sort_by(order).to_pylist()
    out = tmp_path / "out.parquet"
    contents = set()
    for threads in (1, 3):
        with open_database(tmp_path / "work", threads=threads) as connection:
            connection.read_parquet(str(tmp_path / "rows.parquet")).create_view("given")
            query = "SELECT * REPLACE (to_timestamp(time) AS time) FROM given"
            assert posts_table.write_posts(connection, query, out) == len(rows)
        contents.add(out.read_bytes())
    assert len(contents) == 1
    written = pq.read_table(out)
    seconds = written["time"].cast(pa.timestamp("s", "UTC")).cast(pa.int64())
    assert written.set_column(1, "time", seconds).to_pylist() == oracle


def test_a_folder_that_duckdb_cannot_use_is_named(tmp_path):
    words = "cannot work in a folder with '[?]' in its name: set AUTHORBOOK_OUTPUTS"
    with pytest.raises(ValueError, match=words):
        with open_database(tmp_path / "why?" / "work"):
            pass
    assert not list(tmp_path.iterdir())
