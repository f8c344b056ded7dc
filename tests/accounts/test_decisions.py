"""Decisions of people: what is read, what is refused, and which accounts of two lists they mean."""

import pandas as pd
import pytest

from helpers.accounts.decisions import (
    COLUMNS,
    check_decisions,
    listed_decisions,
    of_lists,
    pseudonym_of,
    read_decisions,
)
from helpers.core.messages import without_formulas


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
