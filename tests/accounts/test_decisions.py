"""Decisions of people: what is read, refused and meant; accounts that posted the same texts."""

import json

import pandas as pd
import pytest

from helpers.accounts import decisions, reading
from helpers.accounts.__main__ import main
from helpers.accounts.decisions import (
    COLUMNS,
    check_decisions,
    find_same_texts,
    listed_decisions,
    of_lists,
    pseudonym_of,
    read_decisions,
)
from helpers.core import paths
from helpers.core.messages import without_formulas
from helpers.corpus import collection
from tests.accounts.shared import visible
from tests.factories import write_demo_csv


@pytest.fixture
def read(tmp_path):
    """lines of a file, below a header -> its decisions"""

    def read_lines(*lines, header="account_a,account_b,decision"):
        path = tmp_path / "decisions.csv"
        path.write_text("\n".join([header, *lines]), encoding="utf-8-sig")
        return read_decisions(path)

    return read_lines


def test_a_file_with_all_columns_and_one_with_the_needed(read):
    whole = read('Ann,Bob,same,me,2024-01-02,"seen, twice"', header=",".join(COLUMNS))
    assert tuple(whole.columns) == COLUMNS and whole.note[0] == "seen, twice"
    short = read(" Ann,Bob ,later")
    assert tuple(short.columns) == COLUMNS
    assert short.account_a[0] == whole.account_a[0] == "Ann"
    assert short.iloc[0, 2:].tolist() == ["later", "", "", ""]
    assert len(read()) == 0


@pytest.mark.parametrize(
    "lines, message",
    [
        (["Ann,Bob,maybe"], "decision 1: 'maybe' is none of same, different, later"),
        (["Ann,Bob,same", "Ann,,different"], "decision 2: an account is missing"),
        (['"Ann,Bob,same'], "decisions.csv: the row that begins in line 2"),
    ],
)
def test_what_is_no_decision_is_told(read, lines, message):
    with pytest.raises(ValueError, match=message):
        read(*lines)


def test_accounts_are_found_in_two_lists(read):
    decisions = read(
        "Ann,Bob,same", "Eve,Dan,different", "Ann,Eve,later", "Ann,who?,same", "Ann,Bob,same"
    )
    bob = pseudonym_of("Bob")
    listed = listed_decisions(decisions, ["Dan", "Ann"], [bob, "Eve"])
    rows = ["Ann", bob, "same"], ["Dan", "Eve", "different"], ["Ann", "Eve", "later"]
    assert listed.iloc[:3, :3].to_numpy().tolist() == list(rows), "Eve and Dan stand in reverse"
    assert len(listed) == 4, "who? stands in no list"
    swapped = listed_decisions(decisions, [bob, "Eve"], ["Dan", "Ann"])
    assert swapped.account_a.tolist() == listed.account_b.tolist()
    one_list = listed_decisions(decisions, ["Ann", "Bob"], ["Ann", "Bob"])
    assert one_list.account_b.tolist() == ["Bob", "Bob"]


LIKE_A_PSEUDONYM = ("u0123456789abcdef", "ufedcba9876543210")


def test_a_name_that_looks_like_a_pseudonym_is_a_name(read):
    decisions = read(f"{','.join(LIKE_A_PSEUDONYM)},same")
    pseudonyms = [pseudonym_of(name) for name in LIKE_A_PSEUDONYM]
    assert not set(pseudonyms) & set(LIKE_A_PSEUDONYM)
    for first in (pseudonyms[0], LIKE_A_PSEUDONYM[0]):
        for second in (pseudonyms[1], LIKE_A_PSEUDONYM[1]):
            listed = listed_decisions(decisions, ["Ann", first], [second])
            assert listed.iloc[0, :2].tolist() == [first, second]


def test_a_name_that_is_a_formula_is_read_back(tmp_path):
    path = tmp_path / "decisions.csv"
    values = ["=SUM(A1)", "'@Bob", "same", "", "", "-"]
    without_formulas(pd.DataFrame([values], columns=COLUMNS)).to_csv(path, index=False)
    assert path.read_text().splitlines()[1].startswith("'=SUM(A1),''@Bob,same")
    decisions = read_decisions(path)
    assert decisions.iloc[0].tolist() == values
    assert len(listed_decisions(decisions, ["=SUM(A1)"], [pseudonym_of("'@Bob")])) == 1


def test_accounts_that_a_list_lacks_are_named():
    rows = [("ann", "bob", "same"), ("bob", "nobody2", "different"), ("nobody2", "x", "later")]
    decisions = pd.DataFrame(rows, columns=["account_a", "account_b", "decision"])
    assert of_lists(decisions, [["ann", "bob"]])[1] == ["nobody2", "x"]
    aside = of_lists(decisions, [["ann", "bob"]], [pseudonym_of("x")])[1]
    assert aside == ["nobody2", pseudonym_of("x")], "a page shows no name of an account set aside"


@pytest.mark.parametrize(
    "rows",
    [
        ["Ann,Bob,same", "Bob,Ann,different"],
        ["Ann,Bob,same", "Bob,Cid,same", "Cid,Ann,different"],
        ["Ann,ANN ,different"],  # one account here
    ],
)
def test_two_people_who_are_one_are_refused(read, rows):
    names = [pseudonym_of(name) for name in ("Ann", "Bob", "Cid", "Dan")]
    decisions = read(*rows, "Dan,Bob,different", ",,")
    listed = listed_decisions(decisions, names, names)
    of_file = "|".join(["Bob and Ann", "Cid and Ann", "Ann and ANN"])
    with pytest.raises(ValueError, match=f"({of_file}) are two people, and that they are one"):
        check_decisions(listed, decisions, True)
    check_decisions(listed[listed.decision == "same"], decisions, True)


def test_accounts_of_two_lists_may_have_one_name(read):
    decisions = read("Ann,Ann,different", "Ann,Bob,same")
    listed = listed_decisions(decisions, ["Ann"], ["Ann", "Bob"])
    check_decisions(listed, decisions, False)
    with pytest.raises(ValueError, match="two people"):
        check_decisions(listed, decisions, True)


HOSTILE = "<b>copy\u202ecat"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("original") / "posts.csv"
    write_demo_csv(path, evader="", accounts=12, posts=360)
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
    assert "demo-0003 and stranger" in printed.out and "list A has" in printed.err
