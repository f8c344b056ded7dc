"""The command line: vectors in a file, nearest accounts, two files compared, one-line errors."""

import gzip
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.accounts.__main__ import main
from helpers.accounts.answers import LINKED, PAIR_COLUMNS
from helpers.accounts.commands import CARE
from helpers.accounts.decisions import pseudonym_of
from helpers.core import paths
from tests.factories import write_demo_csv


def test_encode(invented, tmp_path, capsys):
    assert main(["encode", str(invented), str(tmp_path / "out.parquet")]) == 0
    frame = pd.read_parquet(tmp_path / "out.parquet")
    assert len(frame) == 41 and len(frame.vector[0]) > 500 and "newcomer" not in set(frame.account)
    assert "41 accounts" in capsys.readouterr().out
    assert (tmp_path / "out.parquet").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("spelling", ["a.csv", "./a.csv", "link.parquet", "b.csv", "b.parquet"])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_encode_replaces_no_posts(tmp_path, monkeypatch, capsys, spelling, force):
    """Neither its input, by whatever path, nor a file of another kind; told before the work."""
    monkeypatch.chdir(tmp_path)
    posts = "user,message\na,x\n"
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(posts)
    pd.DataFrame({"user": ["a"], "message": ["x"]}).to_parquet("b.parquet")
    (tmp_path / "link.parquet").symlink_to("a.csv")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert main(["encode", "a.csv", spelling, *force]) == 1
    told = capsys.readouterr().err
    if spelling != "b.parquet":
        words = "is the file to read" if "link" in spelling else "python -m helpers match a.csv"
        assert words in told
    elif not force:
        assert "b.parquet exists: name another file, or replace it with --force" in told
    else:  # the work began
        assert "nothing can be compared" in told or "nothing is left" in told
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}


def ask_about(path, account, *more):
    """Give the command that prints the pairs of one account."""
    return main(["mine", str(path), "--accounts", account, "-k", "2", *more])


def test_the_pairs_of_one_account_with_names_and_without(invented, tmp_path, capsys):
    assert ask_about(invented, "newcomer", "--names") == 0
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines() if line.split()[:1] == ["newcomer"]]
    assert rows[0][1] == "demo-0003" and len(rows) == 2 and CARE in printed
    assert ask_about(invented, "newcomer") == 0
    assert "demo-" not in capsys.readouterr().out
    assert ask_about(invented, "nosuch", "--names") == 1
    assert capsys.readouterr().err.rstrip().endswith("the first is nosuch")


def test_lost_rows_and_dates_without_hours_are_said(invented, tmp_path, capsys):
    """One line a reason, and hours count in no file where one has none."""
    frame = pd.read_csv(invented).rename(columns={"written": "time"})
    times = pd.to_datetime(frame.time)
    days = frame.assign(time=times.dt.strftime("%Y-%m-%d"))
    days.loc[days.index % 4 == 0, "time"] = "13.02.2024 10:00"
    days.to_csv(tmp_path / "days.csv", index=False)
    assert main(["match", str(invented), str(tmp_path / "days.csv")]) == 1
    printed = capsys.readouterr()
    assert re.search("list [AB] has", printed.err), "both files hold the same posts"
    said = printed.out
    lost = (days.index % 4 == 0).sum()
    assert f"{lost:,} of {len(days):,} rows were dropped: the time in column 'time' cannot" in said
    assert said.count("rows were dropped") == said.count("have no hours") == 1
    days.drop(columns="time").to_csv(tmp_path / "none.csv", index=False)
    assert main(["match", str(invented), str(tmp_path / "none.csv")]) == 1
    assert "only one of the files has times" in capsys.readouterr().err


def test_accounts_may_have_names_that_look_like_pseudonyms(tmp_path, invented, capsys):
    """Of this project's own tables, read again; the decided pair becomes one account."""
    frame = pd.read_csv(invented)
    name_of = {nick: pseudonym_of(nick) for nick in frame.nick.unique()}
    frame.assign(nick=frame.nick.map(name_of)).to_csv(tmp_path / "a.csv", index=False)
    first, second, third = list(name_of.values())[:3]
    (tmp_path / "d.csv").write_text(f"account_a,account_b,decision\n{first},{second},same\n")
    asked = ["mine", str(tmp_path / "a.csv"), "--accounts", second, third, "--names"]
    assert main([*asked, "--decisions", str(tmp_path / "d.csv")]) == 0
    accounts = pd.read_csv(paths.Run("mine").folder / "accounts.csv").account
    assert third in accounts.tolist() and {f"{first} + {second}", f"{second} + {first}"} & {
        *accounts
    }


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


def run_match(folder, capsys, *arguments):
    """Run the command in silence on files of a folder; return its pairs and its words."""
    words = [str(folder / word) if word.endswith(".csv") else word for word in arguments]
    assert main(["match", *words]) == 0
    return pd.read_csv(paths.Run("match").folder / "pairs.csv"), capsys.readouterr().out


def test_match(two_lists, tmp_path, capsys, monkeypatch):
    # lists are drawn for the fit in the order of pseudonyms, so what is found depends on the key
    monkeypatch.setenv("AUTHORBOOK_PSEUDONYM_KEY", "0" * 64)
    pairs, printed = run_match(two_lists, capsys, "a.csv", "b.csv", "--names")
    assert list(pairs.columns) == PAIR_COLUMNS
    linked = pairs[pairs.state == LINKED]
    # a link needs 10/11, so one of some thirty may be wrong
    assert len(linked) > 25 and (linked.account_a != linked.account_b).sum() <= 1
    said = ("We assume that", " pairs of accounts are linked", CARE)
    for words in said:
        assert words in printed
    assert re.search("probabilities were fitted on 3[0-4] accounts of list [AB]", printed)
    out = tmp_path / "outputs" / "match"
    html = (out / "report.html").read_text()
    assert "<title>Two lists: a.csv and b.csv" in html and "Who of a.csv is who in b.csv?" in html
    assert f'<summary><b>1</b> <span class="name">{pairs.account_a[0]}</span>' in html
    accounts = pd.read_csv(out / "accounts.csv")
    assert accounts.list.value_counts().to_dict() == {"A": 34, "B": 34}
    folders = [out, *filter(Path.is_dir, out.rglob("*"))]
    assert not [path for path in folders if path.stat().st_mode & 0o077]

    columns = {"account_a": "account_b", "account_b": "account_a"}
    columns |= {"posts_a": "posts_b", "posts_b": "posts_a"}
    swapped, _ = run_match(two_lists, capsys, "b.csv", "a.csv", "--names")
    pd.testing.assert_frame_equal(in_order(swapped.rename(columns=columns)), in_order(pairs))
    tables = {path.name for path in (tmp_path / "outputs").rglob("*.csv")}
    assert tables == {"pairs.csv", "accounts.csv", "same_texts.csv"} and not list(
        (tmp_path / "outputs" / ".names").rglob("*.parquet")
    )


def in_order(pairs):
    """The same pairs in an order that does not depend on which side is which."""
    return pairs[PAIR_COLUMNS].sort_values(["account_a", "account_b"], ignore_index=True)


def test_match_heeds_decisions(two_lists, tmp_path, capsys):
    path = tmp_path / "decisions.csv"
    decisions = ["demo-0001,demo-0003,same", "demo-0005,demo-0005,different", "x,y,later"]
    path.write_text("\n".join(["account_b,account_a,decision", *decisions]))
    arguments = ["--decisions", str(path), "--overlap", "0.9"]
    words = [str(two_lists / "a.csv"), str(two_lists / "b.csv")]
    assert main(["match", *words, *arguments, "--accounts", "demo-0007"]) == 0
    printed = capsys.readouterr().out
    asked = pseudonym_of("demo-0007")
    table = [line for line in printed.splitlines() if re.fullmatch(r"u\w{16} +u\w{16} .*", line)]
    assert table and all(asked in line for line in table)
    assert "We assume that 90% of the accounts of the shorter list" in printed
    assert "demo-" not in printed and "not used: y, x." in printed
    pairs = pd.read_csv(paths.Run("match").folder / "pairs.csv")
    assert pseudonym_of("demo-0003") not in set(pairs.account_a)
    assert pseudonym_of("demo-0001") not in set(pairs.account_b)
    apart = pseudonym_of("demo-0005")
    assert not ((pairs.account_a == apart) & (pairs.account_b == apart)).any()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["a.csv", "b.csv", "--overlap", "1.5"], "'overlap' is 1.5"),
        (["a.csv", "b.csv", "--accounts", "who?"], "who? is in neither list"),
        (["a.csv", "a.csv"], "list A has 0 accounts with enough posts"),
    ],
)
def test_what_cannot_be_matched_is_told_in_one_line(two_lists, capsys, arguments, message):
    words = [str(two_lists / word) if word.endswith(".csv") else word for word in arguments]
    assert main(["match", *words]) == 1
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["mine", "{posts}", "--accounts", "who?"],
        ["encode", "nowhere.csv", "out"],
        ["mine", "{posts}", "--author", "x"],
        ["mine", "{posts}", "--prior", "7"],
    ],
)
def test_errors_are_one_line(invented, arguments, capsys):
    assert main([argument.format(posts=invented) for argument in arguments]) == 1
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1 and "Traceback" not in printed


def test_accounts_without_a_name_are_not_all(capsys):
    with pytest.raises(SystemExit):
        main(["mine", "posts.csv", "--accounts"])
    assert "--accounts: expected at least one argument" in capsys.readouterr().err


HOSTILE = "demo\x1b]0;x\x07\x1b[2J\u202e3"


def test_names_cannot_steer_the_terminal(invented, tmp_path, capsys):
    frame = pd.read_csv(invented)
    frame["nick"] = frame.nick.replace("demo-0003", HOSTILE)
    frame.to_csv(tmp_path / "posts.csv", index=False)
    assert ask_about(tmp_path / "posts.csv", "newcomer", "--names") == 0
    printed = capsys.readouterr().out
    assert not set("\x1b\x07\u202e") & set(printed) and "demo" in printed
    assert ask_about(tmp_path / "posts.csv", f"who{HOSTILE}", "--names") == 1
    assert not set("\x1b\x07\u202e") & set(capsys.readouterr().err)


def test_a_cut_file_is_read_up_to_the_cut(invented, tmp_path, capsys):
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(gzip.compress(invented.read_bytes())[:-1000])
    assert ask_about(path, "newcomer", "--names") == 0
    capsys.readouterr()
    card = json.loads((tmp_path / "outputs" / "mine" / "data_card.json").read_text())
    assert card["dropped_truncated_file"] == 1


def test_outputs_are_for_their_owner_alone(invented, tmp_path):
    before = os.umask(0o022)
    try:
        assert ask_about(invented, "newcomer") == 0
    finally:
        os.umask(before)
    outputs = tmp_path / "outputs"
    assert (outputs / "mine" / "pairs.csv").exists()
    folders = [outputs, *filter(Path.is_dir, outputs.rglob("*"))]
    assert len(folders) > 3
    assert not [path for path in folders if path.stat().st_mode & 0o077]
