"""The split by author and time against plain Python, and the audit against every kind of violation."""

import hashlib
import json
import random
from datetime import UTC, datetime

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.splits import by_time as splits
from helpers.corpus.table import SCHEMA

DAY = 86_400


def posts(seed=0, authors=60):
    rng = random.Random(seed)
    rows = []
    for number in range(authors):
        start, end = sorted((rng.randrange(1000), rng.randrange(1000)))
        for i in range(rng.choice([1, 10, 40, 80])):
            when = rng.randint(start, end) * DAY + rng.randrange(DAY)
            rows.append((f"u{number:02d}", when, rng.choice("xyz"), f"post {i} by {number}"))
    return sorted(rows)


def save(rows, path):
    columns = list(zip(*rows, strict=True)) or [[]] * 4
    pq.write_table(pa.table([pa.array(column) for column in columns], names=SCHEMA.names[:4])
                   .cast(pa.schema([SCHEMA.field(i) for i in range(4)])), path)
    return path


def load(path):
    frame = pq.read_table(path).to_pandas()
    frame["time"] = (frame["time"] - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(seconds=1)
    return list(frame.itertuples(index=False, name=None))


def uniform(seed, author, start=0):
    return int(hashlib.sha256(f"{seed}:{author}".encode()).hexdigest()[start : start + 13], 16) / 2**52


def split_slowly(rows, t1, t2, heldout, min_posts, eval_posts, seed):
    out = {"train": [], "dev": [], "test": []}
    for author in {row[0] for row in rows}:
        own = [row for row in rows if row[0] == author]
        periods = {"train": [row for row in own if row[1] < t1], "dev": [row for row in own if t1 <= row[1] < t2],
                   "test": [row for row in own if row[1] >= t2]}
        could = [name for name in ("dev", "test") if len(periods[name]) >= eval_posts]
        if uniform(seed, author) >= heldout and len(periods["train"]) >= min_posts:
            name = "train"
        elif len(could) == 2:
            name = "dev" if uniform(seed, author, 13) < splits.DEV_SHARE else "test"
        elif could:
            name = could[0]
        else:
            continue
        out[name] += periods[name]
    return {name: sorted(chosen) for name, chosen in out.items()}


def make(tmp_path, rows=None, **changes):
    path = save(rows or posts(), tmp_path / "posts.parquet")
    settings = {"train_until": 0.6, "dev_until": 0.8, "heldout": 0.4, "min_posts": 5, "eval_posts": 6, "seed": 3}
    return splits.future(path, tmp_path / "posts", **settings | changes)


@pytest.mark.parametrize("seed", range(4))
def test_future_follows_the_rules(tmp_path, seed):
    rows = posts(seed)
    report = make(tmp_path, rows, seed=seed)
    times = sorted(row[1] for row in rows)
    t1, t2 = (duckdb.execute(f"SELECT quantile_disc(x, {q}) FROM (SELECT unnest(?) AS x)", [times]).fetchall()[0][0]
              for q in (0.6, 0.8))
    assert abs(sum(time < t1 for time in times) / len(times) - 0.6) < 0.01
    expected = split_slowly(rows, t1, t2, 0.4, 5, 6, seed)
    for name in splits.SPLITS:
        assert load(tmp_path / "posts" / f"{name}.parquet") == expected[name]
        assert report[f"{name}_posts"] == len(expected[name])
        assert report[f"{name}_authors"] == len({row[0] for row in expected[name]})
    unused = sum(count for name, count in report.items() if name.startswith("unused_"))
    assert unused + sum(map(len, expected.values())) == len(rows)
    assert sorted(path.name for path in (tmp_path / "posts").iterdir()) == [
        "dev.parquet", "split.json", "test.parquet", "train.parquet"]


def test_dates_mean_midnight_utc(tmp_path):
    report = make(tmp_path, train_until="1971-06-01", dev_until="1972-02-01")
    assert (report["t1"], report["t2"]) == ("1971-06-01 00:00:00", "1972-02-01 00:00:00")
    limit = datetime(1971, 6, 1, tzinfo=UTC).timestamp()
    assert max(row[1] for row in load(tmp_path / "posts/train.parquet")) < limit


def test_a_second_run_writes_nothing_and_another_seed_splits_anew(tmp_path):
    first = make(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "posts").iterdir()}
    assert make(tmp_path) == first
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "posts").iterdir()}
    assert make(tmp_path, seed=4)["fingerprint"] != first["fingerprint"]


def test_a_killed_run_is_done_again(tmp_path, monkeypatch):
    real, calls = splits.write, []

    def dies(*args):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(splits, "write", dies)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path)
    assert not (tmp_path / "posts/split.json").exists()
    assert make(tmp_path)["train_posts"] == len(load(tmp_path / "posts/train.parquet"))


@pytest.mark.parametrize("changes, message", [
    ({"train_until": 0.9}, "earlier"), ({"train_until": 1.5}, "train_until"), ({"dev_until": "soon"}, "dev_until"),
    ({"heldout": 1.0}, "heldout"), ({"eval_posts": 1000}, "no author for dev, test"),
])
def test_what_cannot_be_split_is_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        make(tmp_path, **changes)
    assert not (tmp_path / "posts/split.json").exists()


def test_none_keeps_every_post(tmp_path):
    path = save(posts(), tmp_path / "posts.parquet")
    report = splits.none(path, tmp_path / "out")
    assert load(tmp_path / "out/all.parquet") == posts() and report["all_posts"] == len(posts())


def _shared_author(rows):
    rows["dev"] = sorted([*rows["dev"], (rows["train"][0][0], rows["dev"][0][1], "x", "new")])


def _early(split, before):
    def change(rows):
        limit = max(row[1] for row in rows[before])
        author, _, topic, text = rows[split][0]
        rows[split][0] = (author, limit, topic, text)
        rows[split].sort()
    return change


def _shared_text(rows):
    author, time, topic, _ = rows["test"][3]
    rows["test"][3] = (author, time, topic, "  " + rows["train"][0][3].upper())


def _too_few(split):
    def change(rows):
        author = rows[split][0][0]
        rows[split] = rows[split][:3] + [row for row in rows[split] if row[0] != author]
    return change


def _unsorted(rows):
    rows["test"] = rows["test"][::-1]


def _unsorted_times(rows):
    rows["train"][0], rows["train"][1] = rows["train"][1], rows["train"][0]


def _one_post_less(rows):
    author = next(row[0] for row in rows["train"] if sum(row[0] == other[0] for other in rows["train"]) > 6)
    rows["train"].remove(next(row for row in rows["train"] if row[0] == author))


@pytest.mark.parametrize("change, check", [
    (_shared_author, "authors in more than one split: 1"),
    (_early("dev", "train"), "dev posts not later than every train post: 1"),
    (_early("test", "train"), "test posts not later than every train post: 1"),
    (_early("test", "dev"), "test posts not later than every dev post: 1"),
    (_shared_text, "texts in more than one split: 1"),
    (_too_few("train"), "train authors with fewer than 5 posts: 1"),
    (_too_few("dev"), "dev authors with fewer than 6 posts: 1"),
    (_too_few("test"), "test authors with fewer than 6 posts: 1"),
    (_unsorted, "test rows out of order"),
    (_unsorted_times, "train rows out of order"),
    (_one_post_less, "train counts differ from split.json"),
    (lambda rows: rows["dev"].clear(), "no posts in dev"),
])
def test_the_audit_catches(tmp_path, change, check):
    make(tmp_path)
    folder = tmp_path / "posts"
    assert all(row["value"] == 0 for row in splits.audit(folder)) and len(splits.audit(folder)) == 14
    rows = {name: load(folder / f"{name}.parquet") for name in splits.SPLITS}
    change(rows)
    for name in splits.SPLITS:
        save(rows[name], folder / f"{name}.parquet")
    with pytest.raises(splits.AuditError) as error:
        splits.audit(folder)
    assert check in str(error.value)
    json.loads((folder / "split.json").read_text())


def test_the_audit_names_a_missing_file(tmp_path):
    make(tmp_path)
    (tmp_path / "posts/dev.parquet").unlink()
    with pytest.raises(ValueError, match="no dev.parquet"):
        splits.audit(tmp_path / "posts")


def two_communities(gap=3000):
    """The same people by day, but one community ends before the other begins."""
    early = [(f"a{author}", day, f"a/{topic}", words) for author, day, topic, words in posts(0)]
    late = [(f"b{author}", day + gap * DAY, f"b/{topic}", f"{words} b") for author, day, topic, words in posts(1)]
    return sorted(early + late)


def test_a_calendar_for_each_community(tmp_path):
    rows = two_communities()
    report = make(tmp_path, rows, periods="community")
    assert set(report["t1"]) == set(report["t2"]) == {"a", "b"}
    for community in "ab":
        own = [row for row in rows if row[2][0] == community]
        times = [row[1] for row in own]
        t1, t2 = (duckdb.execute(f"SELECT quantile_disc(x, {q}) FROM (SELECT unnest(?) AS x)", [times]).fetchall()[0][0]
                  for q in (0.6, 0.8))
        wanted = split_slowly(own, t1, t2, 0.4, 5, 6, 3)
        for name in splits.SPLITS:
            made = [row for row in load(tmp_path / "posts" / f"{name}.parquet") if row[2][0] == community]
            assert made == wanted[name] and made
    unused = sum(value for key, value in report.items() if key.startswith("unused_"))
    assert sum(report[f"{name}_posts"] for name in splits.SPLITS) + unused == len(rows)
    make(tmp_path, rows)  # with one calendar nobody of the early community is asked about
    assert {row[2][0] for row in load(tmp_path / "posts" / "test.parquet")} == {"b"}


def test_the_audit_looks_into_each_community(tmp_path):
    make(tmp_path, two_communities(), periods="community")
    assert not any(row["value"] for row in splits.audit(tmp_path / "posts"))
    path = tmp_path / "posts" / "train.parquet"
    rows = load(path)
    last = max(row[1] for row in load(tmp_path / "posts" / "test.parquet") if row[2][0] == "a")
    at = next(i for i, row in enumerate(rows) if row[2][0] == "a" and (i + 1 == len(rows) or rows[i + 1][0] != row[0]))
    rows[at] = (rows[at][0], last + 1, *rows[at][2:])  # late for its community, early for the other
    save(rows, path)
    with pytest.raises(splits.AuditError, match="test posts not later than every train post"):
        splits.audit(tmp_path / "posts")


def test_unknown_periods(tmp_path):
    with pytest.raises(ValueError, match="periods 'lunar': one of common, community"):
        make(tmp_path, periods="lunar")
