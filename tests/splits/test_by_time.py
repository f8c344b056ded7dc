"""The split by author and time against plain Python, and the audit against all violations."""

import hashlib
import random
from collections import Counter
from datetime import UTC, datetime

import duckdb
import pytest

from helpers.splits import NoSplit, TimeSplit
from helpers.splits.assignment import make_split
from helpers.splits.audit import audit_split
from helpers.splits.by_time import DEV_SHARE
from tests.factories import posts_table as save
from tests.factories import read_posts as load

DAY = 86_400
SPLITS = TimeSplit.splits


def posts(seed=0, authors=60):
    rng = random.Random(seed)
    rows = []
    for number in range(authors):
        start, end = sorted((rng.randrange(1000), rng.randrange(1000)))
        for i in range(rng.choice([1, 10, 40, 80])):
            when = rng.randint(start, end) * DAY + rng.randrange(DAY)
            rows.append((f"u{number:02d}", when, rng.choice("xyz"), f"post {i} by {number}"))
    return sorted(rows)


def uniform(seed, author, start=0):
    digest = hashlib.sha256(f"{seed}:{author}".encode()).hexdigest()
    return int(digest[start : start + 13], 16) / 2**52


def quantiles(times):
    """The times that 60 and 80 of 100 lie below, as DuckDB finds them."""
    query = "SELECT quantile_disc(x, [0.6, 0.8]) FROM (SELECT unnest(?) AS x)"
    return duckdb.execute(query, [times]).fetchall()[0][0]


def counted(report):
    """Posts of the splits and posts that no split has."""
    used = sum(part["posts"] for part in report["splits"].values())
    return used + sum(report["unused"].values())


def split_slowly(rows, t1, t2, heldout, min_posts, eval_posts, seed):
    out = {"train": [], "dev": [], "test": [], "seen": []}
    for author in {row[0] for row in rows}:
        own = [row for row in rows if row[0] == author]
        periods = {
            "train": [row for row in own if row[1] < t1],
            "dev": [row for row in own if t1 <= row[1] < t2],
            "test": [row for row in own if row[1] >= t2],
        }
        could = [name for name in ("dev", "test") if len(periods[name]) >= eval_posts]
        if uniform(seed, author) >= heldout and len(periods["train"]) >= min_posts:
            name = "train"
            later = periods["dev"] + periods["test"]
            out["seen"] += later if len(later) >= eval_posts else []
        elif len(could) == 2:
            name = "dev" if uniform(seed, author, 13) < DEV_SHARE else "test"
        elif could:
            name = could[0]
        else:
            continue
        out[name] += periods[name]
    return {name: sorted(chosen) for name, chosen in out.items()}


def make(tmp_path, rows=None, **changes):
    path = save(tmp_path / "posts.parquet", rows or posts())
    settings = {"train_until": 0.6, "dev_until": 0.8, "heldout": 0.4, "seed": 3}
    settings |= {"min_posts": 5, "eval_posts": 6}
    return make_split(path, tmp_path / "posts", TimeSplit.of(settings | changes))


@pytest.mark.parametrize("seed", range(2))
def test_future_follows_the_rules(tmp_path, seed):
    rows = posts(seed)
    report = make(tmp_path, rows, seed=seed)
    times = sorted(row[1] for row in rows)
    t1, t2 = quantiles(times)
    assert abs(sum(time < t1 for time in times) / len(times) - 0.6) < 0.01
    expected = split_slowly(rows, t1, t2, 0.4, 5, 6, seed)
    for name in SPLITS:
        assert load(tmp_path / "posts" / f"{name}.parquet") == expected[name]
        sizes = report["splits"][name]
        assert sizes["posts"] == len(expected[name])
        assert sizes["authors"] == len({row[0] for row in expected[name]})
        assert sizes["topics"] == len({row[2] for row in expected[name]})
    assert counted(report) == len(rows)


def test_training_has_a_bound_of_posts_and_a_date_means_midnight_utc(tmp_path):
    """Khan et al., section 4.1: 100 to 1,000 posts in the training year, any number in the test."""
    make(tmp_path, train_until="1971-06-01", dev_until="1972-02-01", max_posts=20)
    train = load(tmp_path / "posts/train.parquet")
    assert max(row[1] for row in train) < datetime(1971, 6, 1, tzinfo=UTC).timestamp()
    assert max(Counter(row[0] for row in train).values()) <= 20
    assert max(Counter(row[0] for row in load(tmp_path / "posts/test.parquet")).values()) > 20


def test_a_second_run_writes_nothing_and_another_seed_splits_anew(tmp_path):
    first = make(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "posts").iterdir()}
    assert make(tmp_path) == first
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "posts").iterdir()}
    assert make(tmp_path, seed=4)["fingerprint"] != first["fingerprint"]


def test_none_keeps_every_post(tmp_path):
    path = save(tmp_path / "posts.parquet", posts())
    report = make_split(path, tmp_path / "out", NoSplit())
    assert load(tmp_path / "out/all.parquet") == posts()
    assert report["splits"]["all"]["posts"] == len(posts())
    assert audit_split(tmp_path / "out")["violations"].tolist() == [0] * 4


@pytest.mark.parametrize("query", ["FROM posts LIMIT 9", "FROM posts UNION ALL SELECT 1"])
def test_a_rule_that_loses_a_post_or_places_it_twice_is_an_error(tmp_path, monkeypatch, query):
    def assign(self, connection):
        places = f"SELECT n, 'all' AS split, '' AS reason FROM (SELECT n {query})"
        connection.execute(f"CREATE TABLE assignment AS {places}")
        return {}

    monkeypatch.setattr(NoSplit, "assign", assign)
    path = save(tmp_path / "posts.parquet", posts())
    with pytest.raises(RuntimeError, match="NoSplit placed [0-9]+ posts in no row, or in several"):
        make_split(path, tmp_path / "out", NoSplit())
    assert not (tmp_path / "out/split.json").exists()


def test_files_of_splits_that_are_now_empty_are_removed(tmp_path):
    def names():
        return sorted(path.stem for path in (tmp_path / "posts").glob("*.parquet*"))

    assert "seen" in make(tmp_path)["splits"] and "seen" in names()
    assert "seen" not in make(tmp_path, min_posts=70)["splits"]
    assert not [name for name in names() if name.startswith("seen")]
    make_split(tmp_path / "posts.parquet", tmp_path / "posts", NoSplit())  # none of its splits
    assert names() == ["all", "all.parquet"]


def two_communities(gap=3000):
    """The same people by day, but one community ends before the other begins."""
    early = [(f"a{author}", day, f"a/{topic}", words) for author, day, topic, words in posts(0)]
    late = [
        (f"b{author}", day + gap * DAY, f"b/{topic}", f"{words} b")
        for author, day, topic, words in posts(1)
    ]
    return sorted(early + late)


def test_a_calendar_for_each_community(tmp_path):
    rows = two_communities()
    report = make(tmp_path, rows, periods="community")
    assert set(report["t1"]) == set(report["t2"]) == {"a", "b"}
    for community in "ab":
        own = [row for row in rows if row[2][0] == community]
        t1, t2 = quantiles([row[1] for row in own])
        wanted = split_slowly(own, t1, t2, 0.4, 5, 6, 3)
        for name in SPLITS:
            made = load(tmp_path / "posts" / f"{name}.parquet")
            assert [row for row in made if row[2][0] == community] == wanted[name] != []
    assert counted(report) == len(rows)
    make(tmp_path, rows)  # with one calendar nobody of the early community is asked about
    assert {row[2][0] for row in load(tmp_path / "posts" / "test.parquet")} == {"b"}


def test_a_text_of_training_is_asked_about_no_more(tmp_path):
    rows = posts()
    make(tmp_path, rows)
    made = {name: load(tmp_path / "posts" / f"{name}.parquet") for name in SPLITS}
    copied = set(made["test"][:40:3])
    text = made["train"][0][3].upper() + " "
    changed = [(*row[:3], text) if row in copied else row for row in rows]
    report = make(tmp_path, changed)
    assert load(tmp_path / "posts/train.parquet") == made["train"]
    assert report["unused"]["texts_of_other_splits"] == len(copied)
    assert not set(load(tmp_path / "posts/test.parquet")) - set(made["test"])
