"""The command line: vectors in a file, nearest accounts, two files compared, one-line errors."""

import gzip
import json

import pandas as pd
import pytest

from helpers.accounts.__main__ import main
from helpers.accounts.commands import CARE
from helpers.accounts.decisions import pseudonym_of


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


HOSTILE = "demo\x1b]0;x\x07\x1b[2J\u202e3"


def test_a_cut_file_of_hostile_names_and_of_names_that_look_like_pseudonyms(
    invented, tmp_path, capsys
):
    """It is read up to the cut, no name steers the terminal, a decided pair is one account."""
    frame = pd.read_csv(invented)
    name_of = {nick: pseudonym_of(nick) for nick in frame.nick.unique()}
    name_of |= {"demo-0003": HOSTILE, "newcomer": "newcomer"}
    first, second, third = list(name_of.values())[5:8]
    frame["nick"] = frame.nick.map(name_of)
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(gzip.compress(frame.to_csv(index=False).encode())[:-1000])
    (tmp_path / "d.csv").write_text(f"account_a,account_b,decision\n{first},{second},same\n")
    asked = ["mine", str(path), "-k", "2", "--names", "--accounts"]
    decided = ["--decisions", str(tmp_path / "d.csv")]
    assert main([*asked, "newcomer", second, third, *decided]) == 0
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines() if line.split()[:1] == ["newcomer"]]
    assert rows[0][1].startswith("demo") and len(rows) >= 2 and CARE in printed
    assert not set("\x1b\x07\u202e") & set(printed)
    card = json.loads((tmp_path / "outputs" / "mine" / "data_card.json").read_text())
    assert card["dropped_truncated_file"] == 1
    accounts = {*pd.read_csv(tmp_path / "outputs" / "mine" / "accounts.csv").account}
    assert third in accounts and {f"{first} + {second}", f"{second} + {first}"} & accounts


@pytest.fixture(scope="module")
def of_four(invented, tmp_path_factory):
    """A CSV of four accounts, which are too few to be matched."""
    path = tmp_path_factory.mktemp("of_four") / "posts.csv"
    frame = pd.read_csv(invented)
    frame[frame.nick.isin(sorted(set(frame.nick))[:4])].to_csv(path, index=False)
    return path


def test_files_that_cannot_be_compared_are_refused(of_four, tmp_path, capsys):
    frame = pd.read_csv(of_four).rename(columns={"written": "time"})
    days = frame.assign(time=pd.to_datetime(frame.time).dt.strftime("%Y-%m-%d"))
    days.to_csv(tmp_path / "days.csv", index=False)
    assert main(["match", str(of_four), str(tmp_path / "days.csv")]) == 1
    printed = capsys.readouterr()
    assert "list A has 0 accounts" in printed.err, "both files hold the same posts"
    assert printed.out.count("have no hours") == 1, "hours count in no file where one has none"
    days.drop(columns="time").to_csv(tmp_path / "none.csv", index=False)
    assert main(["match", str(of_four), str(tmp_path / "none.csv")]) == 1
    assert "only one of the files has times" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["match", "{posts}", "{posts}", "--overlap", "1.5"], "'overlap' is 1.5"),
        (["mine", "{posts}", "--accounts", f"who{HOSTILE}"], "the first is who"),
        (["mine", "{posts}", "--author", "x"], "no column 'x'"),
        (["encode", "nowhere.csv", "out.parquet"], "nowhere.csv"),
    ],
)
def test_errors_are_one_line(of_four, arguments, message, capsys):
    assert main([argument.format(posts=of_four) for argument in arguments]) == 1
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1 and "Traceback" not in printed
    assert not set("\x1b\x07\u202e") & set(printed)
