"""From source to posts table against plain Python: drops, copies, pseudonyms, bytes, resuming."""

import hashlib
import hmac
import pkgutil
import random
import stat
from collections import Counter
from functools import partial

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers import sources
from helpers.cleaning.authors import pseudonym_key
from helpers.core import artifacts, paths
from helpers.corpus import collection as corpus
from helpers.corpus.collection import CollectConfig
from helpers.sources import Part
from tests.factories import read_posts, write_lines

KEY = "00" * 31 + "07"
SUBJECTS = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()


def frames(part, posts=120):
    """Random posts of a part: short ones, a bot's, repeated ones with other case or white space."""
    rng = random.Random(part)
    rows = []
    for i in range(posts):
        words = [rng.choice(SUBJECTS) + str(rng.randrange(50)) for _ in range(rng.randint(4, 30))]
        text = " ".join(words)
        author = rng.choice(["Ann Lee", "Bo Berg", "Cy Clay", "build bot"])
        kind = rng.random()
        if kind < 0.1:
            text = "short"
        elif kind < 0.2:
            text = "said the same words again and again"
        elif kind < 0.3:
            text = "Said  the same\nwords AGAIN and again"
        elif kind < 0.5 and rows:
            text = rows[-1][3] + " x"
        elif author == "Ann Lee":
            text += " kind regards, A.L."
        rows.append((author, 1_600_000_000 + rng.randrange(10) * 3_000_000, rng.choice("xy"), text))
    return pd.DataFrame(rows, columns=sources.COLUMNS)


def read_part(reads, ids, number, drops):
    reads.append(number)
    drops["broken"] += 2
    drops["note_cp1252"] += 1
    frame = frames(number)
    if ids:
        frame["id"] = [f"{number}-{i}" for i in range(len(frame))]
    yield from frame.itertuples(index=False, name=None)


def stub(parts=3, ids=False):
    reads = []
    numbers = range(parts)
    return [Part(f"part {n}/é", partial(read_part, reads, ids, n)) for n in numbers], reads


@pytest.fixture
def source(monkeypatch, tmp_path):
    """A source of three parts; gives the list of the parts read so far."""
    parts, reads = stub()
    monkeypatch.setattr(sources, "open_source", lambda kind, location, **options: parts)
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.setenv("AUTHORBOOK_PSEUDONYM_KEY", KEY)
    return reads


def collect(run="a", workers=1, memory_limit="2GB", **changes):
    settings = {"source": "table", "location": "somewhere"}
    settings |= {"near_duplicate": 0, "strip_signatures": False} | changes
    return corpus.collect(paths.Run(run), CollectConfig(**settings), memory_limit, workers)


def posts_of(run):
    return paths.Run(run).folder / "posts.parquet"


def load(run):
    return read_posts(posts_of(run))


def pseudonym(author):
    digest = hmac.new(bytes.fromhex(KEY), author.lower().encode(), hashlib.sha256)
    return "u" + digest.hexdigest()[:16]


def accounted(card):
    dropped = sum(number for name, number in card.items() if name.startswith("dropped_"))
    return card["rows_read"] == card["posts"] + dropped


def test_every_row_is_kept_once_or_counted(source):
    card = collect(raw=True)
    rows, drops = [], Counter(broken=6)
    for number in range(3):
        for author, time, topic, text in frames(number).itertuples(index=False, name=None):
            if author == "build bot":
                drops["bot"] += 1
            elif len(text) < 10:
                drops["short"] += 1
            else:
                rows.append((time, pseudonym(author), text, topic))
    first = {}
    for row in sorted(rows):
        first.setdefault(" ".join(row[2].lower().split()), row)
    drops["duplicate"] = len(rows) - len(first)
    expected = sorted((author, time, text, topic) for time, author, text, topic in first.values())
    assert load("a") == [(author, time, topic, text) for author, time, text, topic in expected]
    dropped = {name[8:]: n for name, n in card.items() if name.startswith("dropped_") and n}
    assert dropped == dict(drops)
    assert card["note_cp1252"] == 3 and "dropped_note_cp1252" not in card  # a fact, no loss
    assert card["rows_read"] == 3 * 122 and accounted(card) and card["posts"] == len(expected) > 100
    assert pq.read_schema(posts_of("a")).field("time").type == pa.timestamp("us", "UTC")
    assert card["sha256"] == artifacts.file_fingerprint(posts_of("a"))


def test_copies_stay_where_they_are_wanted(source):
    card = collect("all", raw=True, keep_copies=True)
    without = collect("unique", raw=True)
    assert not card.get("dropped_duplicate") and without["dropped_duplicate"]
    assert card["posts"] == without["posts"] + without["dropped_duplicate"] and accounted(card)
    kept, unique = Counter(load("all")), Counter(load("unique"))
    assert not unique - kept
    texts = [{" ".join(row[3].lower().split()) for row in rows} for rows in (kept, unique)]
    assert texts[0] == texts[1]
    with pytest.raises(ValueError, match="needs a near_duplicate of 0"):
        collect(keep_copies=True, near_duplicate=0.5)


def test_ids_are_kept_with_names_and_go_with_them(source, monkeypatch):
    """In a public archive an id leads back to the name."""
    monkeypatch.setattr(sources, "open_source", lambda *args, **options: stub(ids=True)[0])
    collect(pseudonymise=False)
    assert pq.read_schema(posts_of("a")).names == [*sources.COLUMNS, "id"]
    collect(pseudonymise=True)
    assert pq.read_schema(posts_of("a")).names == sources.COLUMNS


def test_equal_input_gives_equal_bytes_however_it_is_read(source, monkeypatch):
    settings = {"near_duplicate": 0.8, "strip_signatures": True}
    first = collect("a", **settings)
    assert accounted(first) and first["signatures_cut"] and first["dropped_near_duplicate"]
    monkeypatch.setattr(sources, "open_source", lambda *args, **options: stub()[0][::-1])
    assert collect("b", workers=2, memory_limit="500MB", **settings)["sha256"] == first["sha256"]
    assert posts_of("a").read_bytes() == posts_of("b").read_bytes()
    assert not (corpus.parts_folder(paths.Run("a")) / "merge").exists()


@pytest.mark.parametrize(
    "place, at_call, survives",
    [
        ("helpers.cleaning.text.clean_plain_text", 150, 1),
        ("helpers.corpus.merge.run_step", 1, 3),
        ("helpers.corpus.collection.write_json", 2, 1),
    ],
)
def test_a_killed_run_continues_and_ends_with_the_same_bytes(
    source, monkeypatch, place, at_call, survives
):
    settings = {"near_duplicate": 0.8, "strip_signatures": True}
    expected = collect("whole", **settings)
    real = pkgutil.resolve_name(place)
    calls = []

    def dies(*args, **kwargs):
        calls.append(1)
        if len(calls) == at_call:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    del source[:]
    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(place, dies)
        collect("killed", **settings)
    assert not paths.Run("killed").data_card.exists()
    del source[:]
    assert collect("killed", **settings) == expected
    assert source == list(range(survives, 3))  # parts that were whole are not read again
    assert posts_of("killed").read_bytes() == posts_of("whole").read_bytes()
    assert not list(paths.Run("killed").folder.rglob("*.partial"))


def test_what_is_current_is_reused_and_what_is_stale_is_not(source):
    first = collect()
    assert source == [0, 1, 2] and collect() == first and source == [0, 1, 2]
    collect(near_duplicate=0.9)
    assert source == [0, 1, 2]  # only merged anew
    collect(min_chars=20)
    assert source == [0, 1, 2] * 2
    collect(min_chars=20, location="elsewhere")
    assert source == [0, 1, 2] * 3
    posts_of("a").write_bytes(b"damaged")
    assert collect(min_chars=20, location="elsewhere")["posts"] == len(load("a"))
    whole = posts_of("a").read_bytes()
    part = sorted(corpus.parts_folder(paths.Run("a")).glob("*.parquet"))[1]
    data = bytearray(part.read_bytes())
    data[len(data) // 3] ^= 1
    part.write_bytes(data)
    posts_of("a").unlink()
    collect(min_chars=20, location="elsewhere")
    assert source == [0, 1, 2] * 3 + [1], "a damaged part is read again"
    assert posts_of("a").read_bytes() == whole


def test_names_become_keyed_pseudonyms(source, monkeypatch):
    collect()
    names = {"Ann Lee", "Bo Berg", "Cy Clay"}
    assert {row[0] for row in load("a")} == {pseudonym(name) for name in names}
    collect("named", pseudonymise=False)
    assert {row[0] for row in load("named")} == names
    collect("demo", source="demo")
    assert {row[0] for row in load("demo")} == names, "invented people keep theirs"
    monkeypatch.setenv("AUTHORBOOK_PSEUDONYM_KEY", "11" * 32)
    other = collect("a")
    assert other["fingerprint"] != collect("named", pseudonymise=False)["fingerprint"]
    assert not {row[0] for row in load("a")} & {pseudonym("Ann Lee")}
    for wrong in ("not hex", "00ff", "zz" * 32):
        monkeypatch.setenv("AUTHORBOOK_PSEUDONYM_KEY", wrong)
        with pytest.raises(ValueError, match="hexadecimal"):
            collect("b")


def test_the_key_is_made_once_and_is_private(source, monkeypatch):
    monkeypatch.delenv("AUTHORBOOK_PSEUDONYM_KEY")
    key = pseudonym_key()
    path = paths.outputs() / ".pseudonym_key"
    assert len(key) == 32 and pseudonym_key() == key == path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert key.hex() not in str(collect())
    # a kill right after its creation must not make pseudonyms that anybody can compute
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="damaged"):
        pseudonym_key()


def test_no_machine_path_gets_into_the_card(source, tmp_path):
    card = collect(location=[str(tmp_path / "data" / "x.csv"), "data/y.csv"])
    assert card["location"] == "x.csv, data/y.csv" and str(tmp_path) not in str(card)


FORMS = "Amélie Doe|Ame\u0301lie Doe|Amélie\u00a0Doe|Amé\u200blie Doe|AMÉLIE DOE|Bo".split("|")


def written(folder, rows, name="posts.jsonl"):
    folder.mkdir(exist_ok=True)
    columns = ("author", "topic", "text")
    times = range(1_600_000_000, 1_600_000_000 + len(rows))
    records = [dict(zip(columns, row)) | {"time": time} for time, row in zip(times, rows)]
    write_lines(folder / name, records)
    return folder


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.setenv("AUTHORBOOK_PSEUDONYM_KEY", KEY)


def gathered(run, folder, workers=1, engine="duckdb", **settings):
    settings = {"near_duplicate": 0, "strip_signatures": False} | settings
    config = CollectConfig(source="table", location=str(folder), **settings)
    card = corpus.collect(paths.Run(run), config, workers=workers, engine=engine)
    assert accounted(card)
    return card


@pytest.mark.parametrize("pseudonymise", [True, False])
def test_the_form_of_a_name_makes_no_second_author(tmp_path, outputs, monkeypatch, pseudonymise):
    rows = [(name, "t", f"words of post {number}") for number, name in enumerate(FORMS * 3)]
    rows += [("Amélie Doe", "t", "one more of the first form")]
    folder = written(tmp_path / "in", rows[:11], "a.jsonl")
    written(folder, rows[11:], "b.jsonl")
    card = gathered("a", folder, pseudonymise=pseudonymise)
    assert card["authors"] == 2 and card["note_name_forms"] == 5 and card["posts"] == 19
    shown = {"Amélie Doe", "Bo"}
    if pseudonymise:
        shown = {pseudonym(name) for name in shown}
    assert {row[0] for row in load("a")} == shown
    # whatever the order of parts, the number of workers and the engine
    (folder / "a.jsonl").rename(folder / "c.jsonl")
    monkeypatch.setitem(corpus.ENGINES, "daft", corpus.run_jobs)
    gathered("b", folder, workers=2, engine="daft", pseudonymise=pseudonymise)
    assert posts_of("a").read_bytes() == posts_of("b").read_bytes()


def test_what_is_no_name_or_topic_is_counted_and_what_is_stays_apart(tmp_path, outputs):
    rows = [
        ("\u200b", "t", "of nobody that can be seen"),
        ("\u3164\u00a0", "t", "of nobody either, but other words"),
        ("\ud800", "t", "half of a letter as a name"),
        ("\ud801", "t", "half of another letter as a name"),
        ("?", "t", "a question mark as a name"),
        ("Ann", "t\0x", "on a topic that is damaged"),
        ("Ann", "\ud800", "on a topic of half a letter"),
        ("Ann", "?", "on a topic of a question mark"),
    ]
    card = gathered("a", written(tmp_path / "in", rows), pseudonymise=False)
    assert card["dropped_empty_author"] == 2 and card["dropped_broken_topic"] == 1
    assert card["posts"] == 5 and card["authors"] == 4
    assert {row[2] for row in load("a")} == {"t", "\\ud800", "?"}
    assert {row[0] for row in load("a")} == {"\\ud800", "\\ud801", "?", "Ann"}


def test_a_text_that_is_cut_before_it_is_cleaned_is_counted(tmp_path, outputs):
    quotes = "\n".join(["> what somebody else wrote"] * 100)
    rows = [
        ("Ann", "t", f"my own words\n{quotes}\nand words that nobody reads"),
        ("Bo", "t", "word " * 50),
        ("Cy", "t", f"{quotes}\nwords below what is read"),
        ("Di", "t", "a short post"),
    ]
    card = gathered("a", written(tmp_path / "in", rows), max_chars=100)
    assert card["truncated"] == 2 and card["dropped_short"] == 1 and card["posts"] == 3
