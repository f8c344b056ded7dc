"""Selections and statistics of a posts table against plain Python."""

import random
from collections import Counter

import pandas as pd
import pyarrow.parquet as pq
import pytest

from helpers.corpus import posts_table as corpus
from helpers.corpus.posts_table import Selection
from tests.factories import posts_table


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
    path = posts_table(tmp_path / "in.parquet", sorted(rows))
    year = {"start": "2015-07-01", "end": "2016-07-01"}
    for low, high in ((2, 2), (10, 20), (10, 0)):
        inside = [row for row in sorted(rows) if start <= row[1] < start + 366 * day]
        posts = Counter(row[0] for row in inside)
        chosen = {author for author, n in posts.items() if low <= n <= (high or n)}
        counts = corpus.select_posts(
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
        corpus.select_posts(path, tmp_path / "none.parquet", Selection(min_posts=9999, max_posts=0))
    assert not (tmp_path / "none.parquet").exists()


def test_statistics_are_those_of_table_8(tmp_path):
    month = 31 * 86_400
    rows = [
        ("a", 0, "x", "one two"),
        ("a", 1, "y", "one"),
        ("a", month, "y", "one two three"),
        ("b", 5, "x", "four"),
    ]
    facts = corpus.corpus_statistics(posts_table(tmp_path / "in.parquet", rows))
    assert [facts[name] for name in ("posts", "authors", "topics")] == [4, 2, 2]
    assert (facts["first"], facts["last"]) == ("1970-01-01 00:00:00", "1970-02-01 00:00:00")
    means = ("words_per_post", "posts_per_author", "topics_per_author", "active_months")
    assert [facts[name] for name in means] == [1.75, 2.0, 1.5, 1.5]
