"""Accounts that posted the same texts are named, also where nothing else of them is left."""

import json

import pandas as pd
import pytest

from helpers.accounts import decisions, reading
from helpers.accounts.__main__ import main
from helpers.accounts.decisions import find_same_texts
from helpers.core import paths
from helpers.corpus import collection
from tests.accounts.shared import visible
from tests.factories import write_demo_csv

HOSTILE = "<b>copy\u202ecat"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("original") / "posts.csv"
    write_demo_csv(path, evader="", accounts=34, posts=1000)
    return pd.read_csv(path)


@pytest.fixture
def copied(original, tmp_path):
    """A file in which one account posted all texts of another, and one some of a third."""
    later = original.written.max()
    copy = original[original.nick == "demo-0003"].assign(nick=HOSTILE, written=later)
    some = original[original.nick == "demo-0005"].head(6).assign(nick="demo-0007", written=later)
    path = tmp_path / "copied.csv"
    pd.concat([original, copy, some]).to_csv(path, index=False)
    return path


def names_of(pairs, path):
    names = {decisions.pseudonym_of(name): name for name in pd.read_csv(path).nick}
    return [{names[pair.account_a], names[pair.account_b]} for pair in pairs.itertuples()]


def test_mine_names_pairs_before_any_number(copied, original, capsys):
    assert main(["mine", str(copied), "--names"]) == 0
    lines = capsys.readouterr().out.splitlines()
    lines = [line for line in lines if "rows were dropped" not in line]
    line = lines[0]
    assert line.startswith("2 pairs of accounts posted the same texts: ")
    assert "<b>copycat" in line and "demo-0003" in line and HOSTILE not in line
    folder = paths.Run("mine").folder
    page = (folder / "report.html").read_text("utf-8")
    assert "<b>copy" not in page and "These accounts posted the same texts" in page
    posts = (original.nick == "demo-0003").sum()
    assert f"<b>copycat {posts} posts" in visible(page)
    assert page.index("posted the same texts") < page.index("How often is a link wrong?")
    record = json.loads((folder / "answers.json").read_text("utf-8"))["same_texts"]
    assert [sorted([pair["a"], pair["b"]]) for pair in record["pairs"]] == [
        ["<b>copycat", "demo-0003"],
        ["demo-0005", "demo-0007"],
    ]
    table = pd.read_csv(folder / "same_texts.csv")
    assert list(table.texts) == [pair["texts"] for pair in record["pairs"]]
    assert "nothing but copies of earlier posts" in visible(page)


def test_copies_are_known_as_long_as_posts_are(copied, original, encoder, tmp_path, monkeypatch):
    """Whatever was read before, stopped or damaged; posts are read again only if they must be."""
    run = paths.Run("mine")
    merges = []
    merge = collection.merge
    monkeypatch.setattr(collection, "merge", lambda *rest: (merges.append(1), merge(*rest))[1])
    named = [{HOSTILE, "demo-0003"}, {"demo-0005", "demo-0007"}]

    posts = reading.read_posts(run, str(copied), encoder)
    assert names_of(find_same_texts([posts], None), copied) == named and len(merges) == 1
    posts = reading.read_posts(run, str(copied), encoder)
    assert names_of(find_same_texts([posts], None), copied) == named and len(merges) == 1
    rows = [(HOSTILE, "demo-0003", "same"), ("demo-0007", "demo-0005", "different")]
    decided = pd.DataFrame(rows, columns=["account_a", "account_b", "decision"])
    assert find_same_texts([posts], decided).empty
    posts.texts_path.write_bytes(posts.texts_path.read_bytes()[:-5])
    posts = reading.read_posts(run, str(copied), encoder)
    assert names_of(find_same_texts([posts], None), copied) == named and len(merges) == 2

    original.to_csv(tmp_path / "plain.csv", index=False)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(reading, "write_texts", stop)
        reading.read_posts(run, str(tmp_path / "plain.csv"), encoder)
    posts = reading.read_posts(run, str(tmp_path / "plain.csv"), encoder)
    assert find_same_texts([posts], None).empty
    posts = reading.read_posts(run, str(copied), encoder)
    assert names_of(find_same_texts([posts], None), copied) == named
    assert len(list((run.folder / "texts").glob("*.parquet"))) == 1


def test_match_names_pairs_across_lists(original, copied, tmp_path, capsys):
    """Also where a list is then too small to be matched."""
    stranger = original[original.nick == "demo-0003"].assign(nick="stranger")
    few = original[original.nick.isin(["demo-0001", "demo-0002"])]
    few = few.assign(message=[f"other words number {n} of this account" for n in range(len(few))])
    pd.concat([stranger, few]).to_csv(tmp_path / "b.csv", index=False)
    assert main(["match", str(copied), str(tmp_path / "b.csv"), "--names"]) == 1
    printed = capsys.readouterr()
    assert "2 pairs of accounts posted the same texts" in printed.out
    assert "demo-0003 and stranger" in printed.out and "list B has" in printed.err
