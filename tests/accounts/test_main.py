"""The command line: vectors in a file, nearest accounts, two files compared, one-line errors."""

import gzip
import json

import duckdb
import pandas as pd
import pytest

from helpers.accounts.__main__ import main
from helpers.accounts.commands import CARE
from helpers.core.errors import DEFECT


@pytest.fixture(autouse=True)
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))


def test_encode(invented, tmp_path, capsys):
    assert main(["encode", str(invented), str(tmp_path / "out.parquet")]) == 0
    frame = pd.read_parquet(tmp_path / "out.parquet")
    assert len(frame) == 41 and len(frame.vector[0]) > 500 and "newcomer" not in set(frame.account)
    assert "41 accounts" in capsys.readouterr().out


def test_nearest_with_names_and_without(invented, tmp_path, capsys):
    assert main(["nearest", str(invented), "newcomer", "-k", "2", "--names"]) == 0
    printed = capsys.readouterr().out
    assert "demo-0003" in printed and CARE in printed and "nobody of these" in printed
    assert main(["nearest", str(invented), "newcomer", "-k", "2"]) == 0
    printed = capsys.readouterr().out
    assert "demo-" not in printed and "false links in 10,000" in printed
    log = [json.loads(line) for line in open(tmp_path / "outputs" / "mine" / "asked.jsonl")]
    assert (
        len(log) == 2 and log[0]["asked"] == log[1]["asked"] and log[0]["asked"][0].startswith("u")
    )


def test_compare(invented, tmp_path, capsys):
    frame = pd.read_csv(invented)
    frame[frame.nick.isin(["newcomer", "demo-0009"])].to_csv(tmp_path / "a.csv", index=False)
    frame[~frame.nick.isin(["newcomer"])].to_csv(tmp_path / "b.csv", index=False)
    assert (
        main(["compare", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--names", "-k", "1"])
        == 0
    )
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "(first file)" in line]
    assert ["newcomer", "demo-0003"] in [[row[0], row[3]] for row in rows]


@pytest.mark.parametrize(
    "arguments",
    [
        ["nearest", "{posts}", "who?"],
        ["encode", "nowhere.csv", "out"],
        ["nearest", "{posts}", "newcomer", "--author", "x"],
    ],
)
def test_errors_are_one_line(invented, arguments, capsys):
    assert main([argument.format(posts=invented) for argument in arguments]) == 1
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1 and "Traceback" not in printed


def test_the_same_file_twice_is_said(invented, capsys):
    assert main(["compare", str(invented), str(invented)]) in (0, 1)
    printed = capsys.readouterr()
    assert "of 41 accounts of the first file" in printed.out or "do they overlap?" in printed.err


def test_a_prior_is_a_probability(invented, capsys):
    assert main(["nearest", str(invented), "newcomer", "--prior", "7"]) == 1
    assert "'prior' is 7.0" in capsys.readouterr().err


HOSTILE = "demo\x1b]0;x\x07\x1b[2J\u202e3"


def test_names_cannot_steer_the_terminal(invented, tmp_path, capsys):
    frame = pd.read_csv(invented)
    frame["nick"] = frame.nick.replace("demo-0003", HOSTILE)
    frame.to_csv(tmp_path / "posts.csv", index=False)
    assert main(["nearest", str(tmp_path / "posts.csv"), "newcomer", "-k", "3", "--names"]) == 0
    printed = capsys.readouterr().out
    assert not set("\x1b\x07\u202e") & set(printed) and "demo" in printed
    assert main(["nearest", str(tmp_path / "posts.csv"), f"who{HOSTILE}", "--names"]) == 1
    assert not set("\x1b\x07\u202e") & set(capsys.readouterr().err)


def test_a_cut_file_is_told_in_one_line(invented, tmp_path, capsys):
    whole = gzip.compress(invented.read_bytes())
    (tmp_path / "posts.csv.gz").write_bytes(whole[: len(whole) // 2])
    assert main(["nearest", str(tmp_path / "posts.csv.gz"), "newcomer"]) in (0, 1)
    printed = capsys.readouterr().err
    assert "Traceback" not in printed and DEFECT not in printed


def raise_full_disk(*_, **__):
    raise duckdb.TransactionException(
        'TransactionContext Error: Failed to commit: Could not write file "/full/work.wal": '
        "No space left on device"
    )


def find_name(*_, **__):
    return {}["newcomer"]


def test_a_full_disk_is_told_in_one_line(invented, monkeypatch, capsys):
    monkeypatch.setattr("helpers.accounts.reading.collect", raise_full_disk)
    assert main(["nearest", str(invented), "newcomer"]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("the disk is full at /full/work.wal: free some space, then")
    assert printed.count("\n") == 1


def test_a_defect_is_told_in_one_line(invented, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("helpers.accounts.reading.collect", find_name)
    assert main(["nearest", str(invented), "newcomer"]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"{DEFECT}: KeyError") and printed.count("\n") == 1
    assert "in find_name" in (tmp_path / "outputs" / "traceback.txt").read_text()
