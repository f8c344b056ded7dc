"""The posts table against plain Python: written, selected, joined to documents, described."""

import random
from collections import Counter

import numpy as np
import pandas as pd
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
from tests import factories
from tests.factories import read_posts


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


def join_slowly(rows, max_chars, min_chars):
    """One post at a time; (documents, posts and characters used)."""
    runs = {}
    for author, time, topic, text in sorted(rows, key=lambda row: (row[0], row[1], row[3], row[2])):
        runs.setdefault((author, topic), []).append((author, time, topic, text))
    found, posts, characters = [], 0, 0
    for run in runs.values():
        start, pages = 0, {}
        for row in run:
            pages.setdefault(start // max_chars, []).append(row)
            start += len(row[3]) + 1
        for page in pages.values():
            whole = "\n".join(row[3] for row in page)
            part = whole[:max_chars]
            if len(part) >= min_chars:
                found.append((*page[0][:3], part))
                posts += len(page)
                characters += len(part) - (len(page) - 1)
    return sorted(found, key=lambda row: (row[0], row[1], row[3], row[2])), posts, characters


def made(seed):
    rng = random.Random(seed)
    letters = "ab \n'\"é🤦🏼\u0301"
    rows = []
    for number in range(200):
        text = f"{number}" + "".join(rng.choices(letters, k=rng.choice([0, 5, 20, 70, 300])))
        rows.append((f"o'{rng.randrange(6)}", rng.randrange(50), rng.choice("xy"), text))
    return sorted(rows)


@pytest.mark.parametrize("seed, max_chars, min_chars", [(0, 100, 30), (1, 57, 57), (2, 1000, 1)])
def test_it_joins(tmp_path, write_posts, seed, max_chars, min_chars):
    rows = made(seed)
    limits = {"max_chars": max_chars, "min_chars": min_chars}
    report = join_posts(write_posts(rows), tmp_path / "out.parquet", **limits)
    found, posts, characters = join_slowly(rows, max_chars, min_chars)
    assert read_posts(tmp_path / "out.parquet") == found and found
    assert report["documents"] == len(found) and report["authors"] == len({row[0] for row in found})
    assert report["posts_used"] == posts and posts + report["posts_in_short_documents"] == len(rows)
    assert report["characters_used"] == characters
    lost = report["characters_in_short_documents"] + report["characters_cut"]
    assert characters + lost == sum(len(row[3]) for row in rows)


def test_select_counts_posts_inside_the_window(tmp_path):
    rng = random.Random(0)
    day = 86_400
    start = int(pd.Timestamp("2015-07-01", tz="UTC").timestamp())
    rows = []
    for number in range(1000):
        time = start + rng.randrange(-100, 500) * day
        rows.append((f"u{rng.randrange(40) ** 2 // 40}", time, "x", f"post {number}"))
    for time in (start, start + 366 * day - 1, start - 1, start + 366 * day):
        rows.append(("edge", time, "x", f"at {time}"))
    path = factories.posts_table(tmp_path / "in.parquet", sorted(rows))
    year = {"start": "2015-07-01", "end": "2016-07-01"}
    for low, high in ((2, 2), (10, 20), (10, 0)):
        inside = [row for row in sorted(rows) if start <= row[1] < start + 366 * day]
        posts = Counter(row[0] for row in inside)
        chosen = {author for author, n in posts.items() if low <= n <= (high or n)}
        counts = select_posts(
            path, tmp_path / "out.parquet", Selection(min_posts=low, max_posts=high, **year)
        )
        found = pq.read_table(tmp_path / "out.parquet").to_pandas()
        expected = [(row[0], row[3]) for row in inside if row[0] in chosen]
        assert list(zip(found["author"], found["text"])) == expected
        assert counts == {
            "posts_before": len(rows),
            "authors_before": len({r[0] for r in rows}),
            "posts": len(found),
            "authors": len(chosen),
        }
        assert "edge" in chosen or low > 2
    with pytest.raises(ValueError, match="none of .* authors has 9999"):
        select_posts(path, tmp_path / "none.parquet", Selection(min_posts=9999, max_posts=0))
    assert not (tmp_path / "none.parquet").exists()


def test_statistics_are_those_of_table_8(tmp_path):
    month = 31 * 86_400
    rows = [
        ("a", 0, "x", "one two"),
        ("a", 1, "y", "one"),
        ("a", month, "y", "one two three"),
        ("b", 5, "x", "four"),
    ]
    facts = posts_table.corpus_statistics(factories.posts_table(tmp_path / "in.parquet", rows))
    assert [facts[name] for name in ("posts", "authors", "topics")] == [4, 2, 2]
    assert (facts["first"], facts["last"]) == ("1970-01-01 00:00:00", "1970-02-01 00:00:00")
    means = ("words_per_post", "posts_per_author", "topics_per_author", "active_months")
    assert [facts[name] for name in means] == [1.75, 2.0, 1.5, 1.5]
