"""Tables of any columns: formats, times, and what a broken row does."""

import gzip
import lzma
import random
import subprocess
import sys
import tracemalloc
from collections import Counter

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from backports import zstd

from helpers.core import paths
from helpers.sources import COLUMNS, csv_and_json_lines, open_source, table
from tests.factories import read_source as read
from tests.factories import write_lines, write_table


@pytest.mark.parametrize("suffix", ["parquet", "csv.gz", "tsv", "jsonl", "ndjson.gz"])
def test_table_formats(tmp_path, suffix):
    rows = [
        ("a", "2020-01-01T00:00:00Z", 'line\none, "two"\té'),
        ("", "2020-01-01", "x"),
        ("b", "never", "x"),
        ("c", "2020-01-01 01:00:00+01:00", "<script>"),
        ("AutoModerator", "2020-01-01", "x"),
    ]
    frame = pd.DataFrame(rows, columns=["who", "when", "body"]).assign(sub="s")
    path = tmp_path / f"posts.{suffix}"
    if suffix == "tsv":
        frame.to_csv(path, index=False, sep="\t")
    else:
        write_table(path, frame)
    columns = {"author": "who", "time": "when", "topic": "sub", "text": "body", "id": "who"}
    rows, drops = read("table", path, columns=columns)
    assert rows[COLUMNS].values.tolist() == [
        ["a", 1577836800, "s", 'line\none, "two"\té'],
        ["c", 1577836800, "s", "<script>"],
    ]
    assert rows["id"].tolist() == ["a", "c"]
    assert drops == {"empty_author": 1, "bad_time": 1, "bot": 1}
    several = {"author": ["sub", "who"], "topic": [None, "sub"]}
    first = read("table", path, columns=columns | several)[0].iloc[0]
    assert (first["author"], first["topic"]) == ("s/a", "posts/s")


@pytest.mark.parametrize(
    "times",
    [
        ["1577836801"] * 2,
        ["2020-01-01T00:00:01.5", "2020-01-01 02:00:01+02:00"],
        [1577836801, 1577836801],
        [1577836801000, 1577836801999],
        [1577836801000000, 1577836801000000],
        [1577836801.5, 1577836801.0],
        pd.to_datetime(["2020-01-01 00:00:01.9"] * 2),
        pd.to_datetime(["2020-01-01 00:00:01"] * 2, utc=True).tz_convert("Asia/Tokyo"),
    ],
)
def test_table_times_are_utc_seconds(tmp_path, times):
    path = tmp_path / "posts.parquet"
    pd.DataFrame({"author": "a", "time": times, "topic": "t", "text": "x"}).to_parquet(path)
    assert read("table", path)[0]["time"].tolist() == [1577836801] * 2


HEAD, ROW = "author,time,topic,text\n", "a,1577836800,t,x\n"
POST = {"author": "a", "time": 1577836800, "topic": "t", "text": "x"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            f'{HEAD}{ROW}b,1577836800,t,"two\nlines"\nb,1577836800,t,"open\n{ROW * 3}',
            "line 5 .* quote",
        ),
        (f'author,"time,topic,text\n{ROW}', "line 1 .* quote"),
    ],
)
def test_a_quote_that_is_not_closed_is_an_error_with_its_line(tmp_path, content, message):
    path = tmp_path / "p.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=f"table: cannot read .*p.csv: .*{message}"):
        read("table", path)


def test_the_lines_that_a_stray_quote_swallows_are_counted(tmp_path):
    path = tmp_path / "p.csv"
    swallowing = 'b,1577836800,t,"open\n' + ROW * 500 + 'c,1577836800,t,"he said"\n'
    wrong = 'b,1577836800,t,"she said "hi" to me"\na,1577836800,t,x,too,many\na,few\n'
    path.write_text(HEAD + swallowing + wrong + ROW)
    rows, drops = read("table", path)
    assert rows["author"].tolist() == ["a"] and drops == {"broken_row": 505}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_csv_of_any_line_end_with_long_rows(tmp_path, end):
    path = tmp_path / "p.csv"
    text = f'one{end}{end}two, "three"\0' + "long " * 10**6  # 5 MB
    quoted = text.replace('"', '""')
    content = f'\ufefftext,author,topic,time{end}"{quoted}",a,t,1577836800{end}x,b,t,1577836800'
    path.write_bytes(content.encode())
    rows, drops = read("table", path)
    assert rows["author"].tolist() == ["a", "b"] and not drops
    assert rows["text"].tolist() == [text.replace(end, "\n"), "x"]


@pytest.mark.parametrize("name", ["p.csv", "p.jsonl.gz"])
def test_letters_of_another_encoding_are_kept_apart_and_counted(tmp_path, name):
    names = [b"J\xf6rg", b"J\xe4rg", b"J\xfcrg", "J\u00f6rg".encode(), b"J\x81rg", b"J\x8drg"]
    line = b'{"author": "%s", "time": 1577836800, "topic": "\xc3\xa9", "text": "\x93x\x94"}\n'
    if "csv" in name:
        line = b"%s,1577836800,\xc3\xa9,\x93x\x94\n"
        data = HEAD.encode() + b"".join(line % author for author in names)
    else:
        data = gzip.compress(b"".join(line % author for author in names))
    (tmp_path / name).write_bytes(data)
    rows, drops = read("table", tmp_path)
    assert rows["author"].tolist() == ["Jörg", "Järg", "Jürg", "Jörg", "J%x81rg", "J%x8drg"]
    assert set(rows["topic"]) == {"\u00e9"} and set(rows["text"]) == {"\u201cx\u201d"}
    assert drops == {"note_cp1252": 6}


GOOD = '{"author": "a", "time": 1577836800, "topic": "t", "text": "x"}\n'


EMPTY = "is empty or cut: it holds no"
UNREADABLE = [
    ("p.csv", b"", f"p.csv {EMPTY} first line with the names of columns"),
    ("p.jsonl", b"null\n[1]\n", f"p.jsonl {EMPTY} JSON object"),
    ("p.csv", f"{HEAD}{ROW}".encode("utf-16") + b"\0\xd8a\0", "p.csv: 'utf-16-le' codec can't"),
    ("p.csv", b"\xd0\xcf\x11\xe0\xa1\0\0 a sheet", "p.csv holds .xls, .* CSV UTF-8"),
    ("p.csv.gz", f"{HEAD}{ROW}".encode(), "p.csv.gz holds no packed file"),
    ("p.csv", f"author,{HEAD}a,{ROW}".encode(), "p.csv has the column 'author' 2 times"),
    ("p.jsonl", b'[\n  {\n    "author": "a"\n  }\n]\n', "a line of its own.*data.md"),
    ("p.json", GOOD.encode(), "p.json is none of .*write one JSON object a line into a .jsonl"),
    ("p.txt", b"author,text", "p.txt is none of .*rename it if its lines are"),
]


@pytest.mark.parametrize(("name", "content", "message"), UNREADABLE)
def test_files_that_cannot_be_read_say_why(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        open_source("table", str(tmp_path / name))
    assert "\n" not in str(error.value)


def test_a_cut_csv_gives_what_is_whole(tmp_path):
    texts = [random.Random(number).randbytes(50).hex() for number in range(5000)]
    data = HEAD + "".join(f'a,1577836800,t,"{text}\n{text}"\n' for text in texts)
    for cut in (5, 3001, 90_000):
        (tmp_path / "p.csv.gz").write_bytes(gzip.compress(data.encode(), mtime=0)[:-cut])
        rows, drops = read("table", tmp_path)
        assert drops == {"truncated_file": 1}
        assert rows["text"].tolist() == [f"{text}\n{text}" for text in texts[: len(rows)]]
        assert len(rows) > 5000 - cut / 40


def test_parquet_that_cannot_be_read_says_why(tmp_path):
    columns = {"author": ["a"], "time": [1577836800], "topic": ["t"], "text": [b"J\xf6"]}
    pa.parquet.write_table(pa.table(columns), tmp_path / "p.parquet")
    assert read("table", tmp_path)[0]["text"].tolist() == ["J\xf6"]
    columns["author"] = pa.array([b"J\xf6"]).view(pa.string())
    pa.parquet.write_table(pa.table(columns), tmp_path / "p.parquet")
    with pytest.raises(ValueError, match="cannot read .*p.parquet: 'utf-8' codec can't decode"):
        read("table", tmp_path)
    twice = pa.table([pa.array(["a"]), pa.array(["b"])], names=["author", "author"])
    pa.parquet.write_table(twice, tmp_path / "p.parquet")
    with pytest.raises(ValueError, match="has no column 'time'|'author' 2 times"):
        read("table", tmp_path)


def test_a_table_is_read_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "BATCH_ROWS", 10)
    times = list(range(1577836800, 1577836835))
    for name in ("p.parquet", "p.csv"):
        write_table(tmp_path / name, pd.DataFrame({**POST, "time": times}))
        assert read("table", tmp_path / name)[0].time.tolist() == times


def test_a_table_without_time(tmp_path):
    """The layout that the authors of sawatphol2022 expect: text, author, topic."""
    path = tmp_path / "train.csv"
    path.write_text('text,author,topic\n"one, two",a1,Books\n,a2,Books\nthree,a2,Music\n')
    with pytest.raises(ValueError, match="no column 'time'"):
        open_source("table", str(path))
    with pytest.raises(ValueError, match="name the file's column"):
        open_source("table", str(path), columns={"time": None, "text": None})
    drops = Counter()
    (part,) = open_source("table", str(path), columns={"time": None})
    posts = [post[:4] for post in part.read(drops)]
    assert posts == [("a1", 0, "Books", "one, two"), ("a2", 0, "Music", "three")]
    assert drops == {"empty_text": 1}


PACK = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstd.compress}


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("authors", "names"),
    [
        ([10.0, 11.5, None, -3.0], ["10", "11.5", "-3"]),
        (pd.array([10, None, 2**62 + 1, 7], "Int64"), ["10", "4611686018427387905", "7"]),
        (["10.0", "10", "1.0.0", "v1.0"], ["10", "10", "1.0.0", "v1.0"]),
        (["2", "2.000", "3.00", "3"], ["2", "2.000", "3.00", "3"]),  # a German thousand
        (pd.Categorical([10.0, 10.0, 12.0, 12.0]), ["10", "10", "12", "12"]),
    ],
)
def test_a_number_is_one_name_in_every_kind_of_file(tmp_path, kind, authors, names):
    frame = pd.DataFrame({"author": authors, "time": 1577836800, "topic": "t", "text": "x"})
    path = write_table(tmp_path / f"p.{kind}", frame)
    rows, drops = read("table", path)
    assert rows["author"].tolist() == names
    assert drops == {reason: 4 - len(names) for reason in ["empty_author"] if len(names) < 4}
    assert set(table.author_names(path, "author")) - {""} == set(names)


@pytest.mark.parametrize("ending", PACK)
def test_a_small_packed_file_does_not_fill_the_memory(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(csv_and_json_lines, "MAX_LINE_BYTES", 1 << 20)
    content = (GOOD * 2).encode() + b"x" * 30_000_000 + b"\n" + GOOD.encode()
    (tmp_path / f"p.jsonl{ending}").write_bytes(PACK[ending](content))
    del content
    (part,) = open_source("table", str(tmp_path))
    drops = Counter()
    tracemalloc.start()
    n_rows = sum(1 for _ in part.read(drops))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_rows >= 2 and drops["truncated_file"] and peak < 1 << 25  # xz: a window of 8 MB


QUOTES = ['"open', '"hi" - really?', '"', 'say "hi"', '""x', '"a "b" c"', "no", 'or 5"']


@pytest.mark.parametrize("writer", ["mysql", "pandas"])
@pytest.mark.parametrize(
    "texts", [QUOTES, QUOTES[::-1], [QUOTES[0]] * 9, [*QUOTES[:1], *"x" * 2000]]
)
def test_quotes_between_tabs_are_those_that_their_writer_meant(tmp_path, writer, texts):
    """The batches of mysql hold no tab and no line end within a value, and quote none."""
    path = tmp_path / "p.tsv"
    if writer == "mysql":
        lines = [f"a\t1577836800\tt\t{text}\n" for text in texts]
        path.write_text("author\ttime\ttopic\ttext\n" + "".join(lines))
    else:
        texts = [*texts, 'two "\nlines', 'tab\t" ', "x\n\t\t\ty", '"one\n\ta\tb\t"c', "last"]
        pd.DataFrame({**POST, "text": texts}).to_csv(path, sep="\t", index=False)
    rows, drops = read("table", path)
    assert rows["text"].tolist() == texts and not drops


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r"hi all\ndoes it\twork?\n\"yes\"", 'hi all\ndoes it\twork?\n"yes"'),
        (r"C:\\new\\table and \\n", r"C:\new\table and \n"),
    ],
)
def test_escapes_of_mysql_are_what_they_stand_for(tmp_path, written, text):
    written = written.replace(r"\"", '"')
    path = tmp_path / "p.tsv"
    path.write_text(f"author\ttime\ttopic\ttext\na\t1577836800\tt\t{written}\n")
    assert read("table", path)[0]["text"].tolist() == [text]


@pytest.mark.parametrize(
    ("name", "header", "author"),
    [
        ("p.csv", HEAD, "1.23450E+17"),
        ("p.csv", HEAD, "123456789012345680.0"),
        ("p.jsonl", "", "1.2345678901234568e17"),
        ("p.parquet", "", 123456789012345680.0),
    ],
)
def test_rounded_ids_are_no_names(tmp_path, name, header, author):
    """Ids beyond 2 ** 53 as floats, or as a spreadsheet shows them, make one of many people."""
    path = tmp_path / name
    names = [author] * 3 + ["7"] * 4
    if name.endswith("parquet"):
        write_table(path, pd.DataFrame({**POST, "author": [author] * 3}))
    elif name.endswith("jsonl"):
        path.write_text("".join(GOOD.replace('"a"', author) for author in names))
    else:
        row = ROW.replace(",", header[6])
        path.write_text(header + "".join(author + row[1:] for author in names))
    words = r"column 'author' holds ids that were rounded, such as '1.*as text"
    with pytest.raises(ValueError, match=words):
        read("table", path)


@pytest.mark.parametrize("digits", [16, 19])
def test_ids_of_fifteen_digits_and_zeros_are_refused(tmp_path, digits):
    path = tmp_path / "p.csv"
    rng = random.Random(0)
    rounding = 10 ** (digits - 15)
    ids = [rng.randrange(10 ** (digits - 1), 10**digits) // rounding * rounding for _ in range(60)]
    path.write_text(HEAD + "".join(f"{number}{ROW[1:]}" for number in ids))
    with pytest.raises(ValueError, match="'author' holds ids that were rounded"):
        read("table", path)


def snowflakes(rng, max_sequence):
    """Return ids of 40 posts: milliseconds, worker, process and, mostly 0, a number in sequence."""
    times = [rng.randrange(10**11, 4 * 10**11) for _ in range(40)]
    fields = [rng.randrange(1 << 5) << 17 | rng.randrange(1 << 5) << 12 for _ in times]
    sequence = [max(rng.randrange(-9 * max_sequence, max_sequence + 1), 0) for _ in times]
    return [time << 22 | field | number for time, field, number in zip(times, fields, sequence)]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_ids_that_were_floats_are_refused(tmp_path, kind):
    """Ids that pandas read beside a missing one and made whole numbers again end in any digit."""
    path = tmp_path / f"p.{kind}"

    def read_ids(ids):
        write_table(path, pd.DataFrame({**POST, "author": ids}))
        return read("table", path)[0]["author"].tolist()

    for seed in range(6):
        rng = random.Random(seed)
        ids = [rng.randrange(10**17, 2 * 10**18) for _ in range(40)]
        assert read_ids(ids) == list(map(str, ids))
        with pytest.raises(ValueError, match="'author' holds ids that were rounded, .* as text"):
            read_ids([int(float(number)) for number in ids])
    for seed, max_sequence in ((0, 0), (1, 1), (2, 9), (3, 4095)):
        ids = snowflakes(random.Random(seed), max_sequence)
        assert read_ids(ids) == list(map(str, ids))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("columns", [{}, {"topic": ["topic", "room"]}])
def test_a_post_without_a_topic_is_kept(tmp_path, kind, columns):
    topics = ["t", "", None, "  "]
    frame = pd.DataFrame({"author": "a", "time": 1577836800, "topic": topics, "text": "x"})
    frame["room"] = frame["topic"].where(frame["topic"] == "t")
    path = write_table(tmp_path / f"p.{kind}", frame)
    rows, drops = read("table", path, columns=columns)
    assert len(rows) == 4
    if not columns:
        assert rows["topic"].tolist() == ["t", *[table.NO_TOPIC] * 3]
        assert drops == {"note_empty_topic": 3}


@pytest.mark.parametrize(
    "name, delimiter, first_line, encoding",
    [
        ("p.csv", ",", "", "utf-8-sig"),
        ("p.csv", ";", "sep={}\n", "utf-8-sig"),
        ("p.csv", "\t", '"sep={}"\r\n', "utf-16"),
        ("p.tsv", ",", "\n", "utf-8-sig"),
        ("p.tsv", "|", "", "utf-16"),
    ],
)
def test_the_delimiter_is_that_of_the_header(tmp_path, name, delimiter, first_line, encoding):
    path = tmp_path / name
    content = first_line.format(delimiter) + '"author, the"{0}time{0}topic{0}text\n'
    content += 'a{0}1577836800{0}t{0}"1,5; x | y\t"\n'
    path.write_text(content.format(delimiter), encoding)
    columns = {"author": "author, the"}
    assert table.column_names(path) == ["author, the", "time", "topic", "text"]
    rows, drops = read("table", path, columns=columns)
    assert rows.values.tolist() == [["a", 1577836800, "t", "1,5; x | y\t"]] and not drops
    with path.open("a", encoding=encoding.replace("-sig", "").replace("16", "16-le")) as file:
        file.write("too few\n")
    assert read("table", path, columns=columns)[1] == {"broken_row": 1}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("reason", "column", "values"),
    [
        ("marked_bot", "is_bot", [True, False, True]),
        ("marked_bot", "Bot", [1.0, 0.03, 1.0]),  # a score is no truth
        ("marked_bot", "bot_id", ["B012", "", "B013"]),
        ("marked_bot", "via_bot", ["@gif", None, "@pic"]),
        ("repost", "forwarded_from", ["Ann", None, "Bo"]),
        ("repost", "isRetweet", [True, False, True]),
        ("repost", "text", ["RT @jane: hi", "so true RT @jane: hi, ART @jane", "RT @jane"]),
        ("notice", "text", ["<Media omitted>", "x", "<Media omitted>"]),
        ("rounded_author", "author", ["1.2E+17", "y", "1.2E+17"]),
    ],
)
def test_rows_that_are_no_post_of_a_person_are_dropped(tmp_path, ending, reason, column, values):
    many = 400  # of rounded ids a few are dropped, and many are refused
    frame = pd.DataFrame({**POST, "author": ["x", *"y" * many, "z"]})
    frame[column] = [values[0], *values[1:2] * many, values[2]]
    rows, drops = read("table", write_table(tmp_path / f"p.{ending}", frame))
    assert set(rows["author"]) == {"y"} and drops == {reason: 2}


def test_marked_up_texts_of_telegram_are_joined(tmp_path):
    texts = [
        ["see ", {"type": "bold", "text": "this"}, ", ", {"type": "link", "text": "a.example"}],
        "plain",
        [{"type": "mention", "text": "@half \ud800"}],
        [],
        [{"type": "bold"}, 5],
        {"text": "no list"},
        ["mine ", {"type": "blockquote", "text": "theirs"}],
    ]
    records = [{"from_id": "user1", "date_unixtime": "1577836800", "text": text} for text in texts]
    path = write_lines(tmp_path / "p.jsonl", records)
    columns = {"author": "from_id", "time": "date_unixtime", "topic": None}
    rows, drops = read("table", path, columns=columns)
    assert rows["text"].tolist() == ["see this, a.example", "plain", "@half ?", "mine "]
    assert drops == {"empty_text": 3}


@pytest.mark.parametrize(
    ("date", "date_format"),
    [
        ("13/02/2024, 10:00 -", "%d/%m/%Y, %H:%M"),
        ("\u200e[13.02.24, 10:00:00]", "%d.%m.%y, %H:%M:%S"),
    ],
)
def test_the_lines_of_the_docs_read_chats_of_whatsapp(tmp_path, date, date_format):
    script = (paths.ROOT / "docs" / "data.md").read_text("utf-8")
    script = script.split("| WhatsApp |")[1].split("```python\n")[1].split("```")[0]
    (tmp_path / "chat.py").write_text(script, "utf-8")
    chat = f"{date} Ann: one: two\n1. more\n{date} Group was made\n{date} Bob: three\n"
    (tmp_path / "chat.txt").write_text(chat, "utf-8")
    command = [sys.executable, "chat.py", "chat.txt", "posts.csv", date_format]
    subprocess.run(command, cwd=tmp_path, check=True)
    rows, drops = read("table", tmp_path / "posts.csv", columns={"topic": None})
    assert rows["author"].tolist() == ["Ann", "Bob"] and not drops
    assert rows["time"].tolist() == [1707818400] * 2
    assert rows["text"].tolist() == ["one: two\n1. more\n", "three\n"]


HEADERS = {
    "ann": "From: Ann <ann@x.org>",
    "bob": "From: Bob via Users <users@list.org>\nReply-To: users@list.org, bob@x.org",
    "cy=x.org@groups.org": "From: Cy via G <cy=x.org@groups.org>\nReply-To: users@list.org",
    "dan": "From: Dan via G <users@list.org>\nX-Original-From: Dan <dan@x.org>",
    "eve": "From: Eve via G <e@list.org>\nX-Original-Sender: eve@x.org\nReply-To: e@list.org",
}


def test_the_lines_of_the_docs_tell_the_authors_of_lists(tmp_path):
    script = (paths.ROOT / "docs" / "data.md").read_text("utf-8")
    script = script.split("**Mailboxes.**")[1].split("```python\n")[1].split("```")[0]
    (tmp_path / "mails.py").write_text(script, "utf-8")
    common = "To: users@list.org\nDate: Tue, 13 Feb 2024 10:00:00 +0000\n\nSome words.\n\n"
    mails = [f"From a Tue Feb 13 10:00:00 2024\n{lines}\n{common}" for lines in HEADERS.values()]
    (tmp_path / "box").write_text("".join(mails), "utf-8")
    command = [sys.executable, "mails.py", "box", "posts.jsonl"]
    subprocess.run(command, cwd=tmp_path, check=True)
    posts = pd.read_json(tmp_path / "posts.jsonl", lines=True)
    assert [name.removesuffix("@x.org") for name in posts.author] == [*HEADERS]
    assert posts.name.tolist() == "Ann Bob Cy Dan Eve".split(), "names to mask"


def test_a_mark_may_begin_anywhere_in_json_lines(tmp_path):
    post = {"author": "ann", "time": 1577836800, "topic": "t", "text": "x"}
    marked = [post | {"forwarded_from": "Bo"}, post | {"reblog": {"id": 1}}]
    by_program = post | {"via_bot": "@quiz"}
    path = write_lines(tmp_path / "p.jsonl", [post] * 1500 + [*marked, by_program])
    kept, drops = read("table", path)
    assert len(kept) == 1500 and drops == {"repost": 2, "marked_bot": 1}
