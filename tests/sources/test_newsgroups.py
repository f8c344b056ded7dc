"""20 Newsgroups: the messages of a tree, their headers, and what is dropped."""

import os
from pathlib import Path

import pandas as pd
import pytest

from helpers.core import paths
from helpers.sources import COLUMNS, newsgroups, open_source
from tests.factories import read_source as read

TREE = Path(os.environ.get("AUTHORBOOK_20NEWS") or paths.ROOT / "data" / "20news")
# shares of posts that hold a line of this kind; before quotes of any marker were cut the first
# two were 0.037 and 0.029
LEFT = {
    r"^\|>": 0.002,
    r"(?:^: .*\n){3}": 0.002,
    r"^In article <": 0.005,
    r"^(?:Nntp-Posting-Host|Lines): ": 0.002,
}


def left(texts):
    return {
        pattern: texts.str.contains(pattern, regex=True, flags=8).mean() for pattern in LEFT
    }  # 8: re.M


def message(
    body="My own words.\n",
    sender="jd@cs.example.edu (Jane Doe)",
    date="Tue, 6 Apr 93 01:23:45 GMT",
    more="",
):
    date = "" if date is None else f"Date: {date}\n"
    sender = "" if sender is None else f"From: {sender}\n"
    head = f"Newsgroups: sci.space\n{sender}Subject: Re: moon\n{date}{more}"
    return f"{head}Message-ID: <1@x>\nLines: 3\n\n{body}"


def tree(folder, *messages, group="20news-bydate-train/sci.space"):
    path = folder / group
    path.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(messages):
        (path / str(59_000 + number)).write_bytes(
            text.encode("latin-1") if isinstance(text, str) else text
        )
    return folder


def test_rows(tmp_path):
    body = (
        "In article <1@x> bob@example.org (Bob) writes:\n>theirs\n\nMine, cliché.\n\n"
        "--\nJane Doe  +1 555 123 4567\n"
    )
    tree(
        tmp_path,
        message(body),
        message("Signed, Jane\n", sender="Jane Doe", date="6 Apr 1993 03:23:45 +0200"),
    )
    rows, drops = read("newsgroups", tmp_path)
    assert rows[COLUMNS].values.tolist() == [
        ["jd@cs.example.edu", 734_059_425, "sci.space", "Mine, cliché."],
        ["Jane Doe", 734_059_425, "sci.space", "Signed, @self"],
    ]
    assert rows["time"].dtype == "int64" and rows["id"].tolist() == ["1@x"] * 2
    assert drops == {"note_cp1252": 1}
    raw, _ = read("newsgroups", tmp_path, raw=True)
    assert raw["text"].tolist() == [body.strip(), "Signed, Jane"]


def test_every_drop_is_counted(tmp_path):
    lost = {
        "no_author": [
            message(sender=None),
            message(sender=""),
            message(sender="<>"),
            "",
            b"\x00\n\n",
        ],
        "no_date": [message(date=None)],
        "bad_date": [message(date="sometime"), message(date="")],
        "empty": [
            message(""),
            message("> theirs\n"),
            message("In article <1@x> a@b.org writes:\n> x\n"),
        ],
    }
    tree(tmp_path, message(), *(text for group in lost.values() for text in group))
    rows, drops = read("newsgroups", tmp_path)
    assert len(rows) == 1 and drops == {reason: len(group) for reason, group in lost.items()}


def test_what_is_only_quotes_or_a_signature_is_dropped_and_no_attribution_stays(tmp_path):
    attributions = [
        "In article <1@x> jd@cs.example.edu (Jane Doe) writes:\n> theirs",
        "In article <1993Apr6.0413.24997> Jane Doe writes:\n|> theirs",
        "In article <1@x> jd@cs.example.edu (Jane Doe) writes: > theirs",
        "NEIL B. GANDLER writes:\n\n% theirs\n% more",
        "jd@cs.example.edu (Jane Doe) writes\n: theirs",
    ]
    signature = "-- \nNeil Gandler   uunet!host!neil\nDept. of Physics  +49 89 1234567"
    sender = "ng@cs.example.edu (NEIL B. GANDLER)"
    bodies = [f"{attribution}\n\n{signature}\n" for attribution in attributions]
    bodies += [signature]
    answers = [f"{attribution}\n\nMine, says neil gandler.\n" for attribution in attributions]
    tree(tmp_path, *(message(body, sender) for body in bodies + answers))
    rows, drops = read("newsgroups", tmp_path)
    assert drops == {"empty": 6}
    assert rows["text"].tolist() == ["Mine, says @self."] * 5


def test_encodings_are_told_apart_and_noted(tmp_path):
    latin = message("na\u00efve \u00ff words\n").replace("\n", "\r\n")
    tree(tmp_path, latin, message("utf \u00e9\n").encode(), message("no \x81\u00e9\n"))
    rows, notes = read("newsgroups", tmp_path)
    assert rows["text"].tolist() == ["na\u00efve \u00ff words", "utf \u00e9", "no \ufffd\u00e9"]
    assert notes == {"note_cp1252": 1, "note_undecodable": 1}


def groups(folder):
    tree(folder, message("one\n"), message("two\n"))
    tree(folder, message("three\n"), group="20news-bydate-train/alt.atheism")
    return tree(folder, message("four\n"), group="20news-bydate-test/sci.space")


def test_one_part_per_group_wherever_the_location_is(tmp_path):
    groups(tmp_path)
    (tmp_path / "20news-bydate-train" / "README").write_text(message())
    names = [part.name for part in open_source("newsgroups", str(tmp_path))]
    assert names == [
        "20news-bydate-test/sci.space",
        "20news-bydate-train/alt.atheism",
        "20news-bydate-train/sci.space",
    ]
    below = [part.name for part in open_source("newsgroups", str(tmp_path / "20news-bydate-train"))]
    assert below == ["alt.atheism", "sci.space"]
    rows, _ = read("newsgroups", tmp_path / "20news-bydate-train" / "sci.space")
    assert rows[["topic", "text"]].values.tolist() == [["sci.space", "one"], ["sci.space", "two"]]
    halves = [str(tmp_path / f"20news-bydate-{half}") for half in ("train", "test")]
    with pytest.raises(ValueError, match="two of the locations hold sci.space"):
        open_source("newsgroups", halves)


def test_unreadable_locations(tmp_path):
    (tmp_path / "20news.tar.gz").write_bytes(b"")
    with pytest.raises(ValueError, match="20news.tar.gz is no folder; unpack it"):
        open_source("newsgroups", str(tmp_path / "20news.tar.gz"))
    with pytest.raises(ValueError, match="absent is missing"):
        open_source("newsgroups", str(tmp_path / "absent"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="nothing to read"):
        open_source("newsgroups", str(tmp_path / "empty"))


def test_what_is_too_large_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(newsgroups, "MAX_MESSAGE_BYTES", 10_000)
    rows, drops = read("newsgroups", tree(tmp_path, message(), message("word " * 4000)))
    assert len(rows) == 1 and drops == {"too_large": 1}


def test_links_out_of_a_tree_are_not_followed(tmp_path, capsys):
    secret = tree(tmp_path / "private", message("nobody else's business\n"))
    folder = tree(tmp_path / "tree", message())
    (folder / "20news-bydate-train/sci.space/1").symlink_to(next(secret.rglob("59000")))
    rows, _ = read("newsgroups", folder)
    assert rows["text"].tolist() == ["My own words."]
    assert "1 links that lead out of it are not followed, such as 1" in capsys.readouterr().out


def test_what_is_left_is_seen():
    texts = [
        "mine\n|> theirs",
        ": theirs\n: theirs\n: theirs\nmine",
        "In article <1@x> he said",
        "Lines: 3\nmine",
        "mine",
    ]
    assert list(left(pd.Series(texts)).values()) == [0.2] * 4


@pytest.mark.skipif(
    not TREE.is_dir(), reason="needs the tree of 20 Newsgroups, $AUTHORBOOK_20NEWS or data/20news"
)
def test_the_real_tree_holds_few_quotes_and_fields():
    rows, drops = read("newsgroups", TREE)
    shares = left(rows["text"])
    assert all(shares[pattern] <= share for pattern, share in LEFT.items()), shares
    assert drops["empty"] < 0.03 * (len(rows) + drops["empty"]), "answers are dropped as empty"
