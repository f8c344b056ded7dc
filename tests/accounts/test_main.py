"""The command line: vectors in a file, nearest accounts, two files compared, one-line errors."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.accounts.__main__ import main
from helpers.accounts.answers import LINKED, PAIR_COLUMNS
from helpers.accounts.commands import CARE
from helpers.accounts.decisions import pseudonym_of
from tests.factories import write_demo_csv


def test_encode(invented, tmp_path, capsys):
    assert main(["encode", str(invented), str(tmp_path / "out.parquet")]) == 0
    frame = pd.read_parquet(tmp_path / "out.parquet")
    assert len(frame) == 41 and len(frame.vector[0]) > 500 and "newcomer" not in set(frame.account)
    assert "41 accounts" in capsys.readouterr().out
    assert (tmp_path / "out.parquet").stat().st_mode & 0o777 == 0o600


def test_encode_replaces_no_posts(tmp_path, monkeypatch, capsys):
    """Neither its input nor another file of posts; told before the work."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("user,message\na,x\n")
    for target in ("./a.csv", "b.csv"):
        assert main(["encode", "a.csv", target, "--force"]) == 1
        assert "python -m helpers match a.csv" in capsys.readouterr().err
        assert (tmp_path / target).read_text() == "user,message\na,x\n"


def ask_about(path, account, *more):
    """Give the command that prints the pairs of one account."""
    return main(["mine", str(path), "--accounts", account, "-k", "2", *more])


def open_folders(folder):
    """Folders that others than their owner can read."""
    folders = [folder, *filter(Path.is_dir, folder.rglob("*"))]
    assert len(folders) > 1
    return [path for path in folders if path.stat().st_mode & 0o077]


HOSTILE = "demo\x1b]0;x\x07\x1b[2J\u202e3"


def test_of_a_cut_file_the_pairs_of_a_hostile_name_are_printed(invented, tmp_path, capsys):
    """It is read up to the cut, and no name can steer the terminal."""
    frame = pd.read_csv(invented)
    frame["nick"] = frame.nick.replace("demo-0003", HOSTILE)
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(gzip.compress(frame.to_csv(index=False).encode())[:-1000])
    assert ask_about(path, "newcomer", "--names") == 0
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines() if line.split()[:1] == ["newcomer"]]
    assert rows[0][1].startswith("demo") and len(rows) == 2 and CARE in printed
    assert not set("\x1b\x07\u202e") & set(printed)
    card = json.loads((tmp_path / "outputs" / "mine" / "data_card.json").read_text())
    assert card["dropped_truncated_file"] == 1
    assert ask_about(path, f"who{HOSTILE}", "--names") == 1
    assert not set("\x1b\x07\u202e") & set(capsys.readouterr().err)


def test_accounts_may_have_names_that_look_like_pseudonyms(tmp_path, invented):
    """Of this project's own tables, read again; the decided pair becomes one account."""
    frame = pd.read_csv(invented)
    name_of = {nick: pseudonym_of(nick) for nick in frame.nick.unique()}
    frame.assign(nick=frame.nick.map(name_of)).to_csv(tmp_path / "a.csv", index=False)
    first, second, third = list(name_of.values())[:3]
    (tmp_path / "d.csv").write_text(f"account_a,account_b,decision\n{first},{second},same\n")
    asked = ["mine", str(tmp_path / "a.csv"), "--accounts", second, third, "--names"]
    assert main([*asked, "--decisions", str(tmp_path / "d.csv")]) == 0
    accounts = {*pd.read_csv(tmp_path / "outputs" / "mine" / "accounts.csv").account}
    assert third in accounts
    assert {f"{first} + {second}", f"{second} + {first}"} & accounts


def test_files_that_cannot_be_compared_are_refused(invented, tmp_path, capsys):
    frame = pd.read_csv(invented).rename(columns={"written": "time"})
    days = frame.assign(time=pd.to_datetime(frame.time).dt.strftime("%Y-%m-%d"))
    days.to_csv(tmp_path / "days.csv", index=False)
    assert main(["match", str(invented), str(tmp_path / "days.csv")]) == 1
    printed = capsys.readouterr()
    assert re.search("list [AB] has", printed.err), "both files hold the same posts"
    assert printed.out.count("have no hours") == 1, "hours count in no file where one has none"
    days.drop(columns="time").to_csv(tmp_path / "none.csv", index=False)
    assert main(["match", str(invented), str(tmp_path / "none.csv")]) == 1
    assert "only one of the files has times" in capsys.readouterr().err


@pytest.fixture(scope="module")
def two_lists(tmp_path_factory):
    """A folder with two files of 34 invented accounts, 32 of them in both, and all in one file."""
    folder = tmp_path_factory.mktemp("two_lists")
    write_demo_csv(folder / "all.csv", evader="", accounts=36, posts=3000)
    frame = pd.read_csv(folder / "all.csv")
    written = pd.to_datetime(frame.written)
    is_older = written < written.groupby(frame.nick).transform("median")
    is_first = is_older & ~frame.nick.isin(["demo-0001", "demo-0002"])
    is_second = ~is_older & ~frame.nick.isin(["demo-0003", "demo-0004"])
    frame["year"] = np.select([is_first, is_second], [2001, 2002])
    frame = frame[frame.year > 0]
    frame[frame.year == 2001].to_csv(folder / "a.csv", index=False)
    frame[frame.year == 2002].to_csv(folder / "b.csv", index=False)
    return folder


def test_match(two_lists, tmp_path, capsys, monkeypatch):
    """Decided pairs are heeded, and nobody is named who did not ask for names."""
    # lists are drawn for the fit in the order of pseudonyms, so what is found depends on the key
    monkeypatch.setenv("AUTHORBOOK_PSEUDONYM_KEY", "0" * 64)
    path = tmp_path / "decisions.csv"
    decisions = ["demo-0001,demo-0003,same", "demo-0005,demo-0005,different", "x,y,later"]
    path.write_text("\n".join(["account_b,account_a,decision", *decisions]))
    files = [str(two_lists / "a.csv"), str(two_lists / "b.csv")]
    more = ["--decisions", str(path), "--overlap", "0.9", "--accounts", "demo-0007"]
    assert main(["match", *files, *more]) == 0
    printed = capsys.readouterr().out
    rows = [line for line in printed.splitlines() if re.fullmatch(r"u\w{16} +u\w{16} .*", line)]
    assert rows and all(pseudonym_of("demo-0007") in row for row in rows)
    assert "We assume that 90% of the accounts of the shorter list" in printed
    assert CARE in printed and "not used: y, x." in printed
    out = tmp_path / "outputs" / "match"
    html = (out / "report.html").read_text()
    assert "<title>Two lists: a.csv and b.csv" in html and "demo-" not in printed + html
    pairs = pd.read_csv(out / "pairs.csv")
    assert f'<summary><b>1</b> <span class="name">{pairs.account_a[0]}</span>' in html
    assert list(pairs.columns) == PAIR_COLUMNS
    linked = pairs[pairs.state == LINKED]
    # a link needs 10/11, so one of some thirty may be wrong
    assert len(linked) > 20 and (linked.account_a != linked.account_b).sum() <= 1
    assert pseudonym_of("demo-0003") not in set(pairs.account_a)
    assert pseudonym_of("demo-0001") not in set(pairs.account_b)
    apart = pseudonym_of("demo-0005")
    assert not ((pairs.account_a == apart) & (pairs.account_b == apart)).any()
    accounts = pd.read_csv(out / "accounts.csv")
    assert accounts.list.value_counts().to_dict() == {"A": 34, "B": 34}
    assert not open_folders(tmp_path / "outputs")
    tables = {path.name for path in (tmp_path / "outputs").rglob("*.csv")}
    assert tables == {"pairs.csv", "accounts.csv", "same_texts.csv"}
    assert not list((tmp_path / "outputs" / ".names").rglob("*.parquet"))


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["match", "{posts}", "{posts}", "--overlap", "1.5"], "'overlap' is 1.5"),
        (["mine", "{posts}", "--accounts", "who?"], "the first is who?"),
        (["mine", "{posts}", "--author", "x"], "no column 'x'"),
        (["encode", "nowhere.csv", "out.parquet"], "nowhere.csv"),
    ],
)
def test_errors_are_one_line(invented, arguments, message, capsys):
    assert main([argument.format(posts=invented) for argument in arguments]) == 1
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1 and "Traceback" not in printed
