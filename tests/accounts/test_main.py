"""The command line: vectors in a file, nearest accounts, two files compared, one-line errors."""

import json

import pandas as pd
import pytest

from helpers.accounts.__main__ import main
from helpers.accounts.commands import CARE


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
