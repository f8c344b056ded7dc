"""Decisions of people: what is read, what is refused, and which accounts of two lists they mean."""

import pandas as pd
import pytest

from helpers.accounts.decisions import (
    COLUMNS,
    check_chains,
    listed_decisions,
    pseudonym_of,
    read_decisions,
    unknown_accounts,
)
from helpers.core.escaping import without_formulas


@pytest.fixture(autouse=True)
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))


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
        (["Ann,Bob,same", "Ann,Bob,later", "Ann,Bob,different"], "of Ann and Bob both"),
        (["Ann,Bob,same", "Bob,Ann,different"], "of Bob and Ann both 'same' and 'different'"),
        (["Ann,Bob,same", "Ann,Cid"], "has a broken row"),
    ],
)
def test_what_is_no_decision_is_told(read, lines, message):
    with pytest.raises(ValueError, match=message):
        read(*lines)


def test_a_contradiction_of_a_name_and_a_pseudonym_is_found(read):
    with pytest.raises(ValueError, match="both 'same' and 'different'"):
        read("Ann,Bob,same", f"{pseudonym_of('Ann')},Bob,different")


def test_a_missing_column_is_told(read):
    with pytest.raises(ValueError, match="has no column decision: .* who, when, note"):
        read("Ann,Bob", header="account_a,account_b")


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
    with pytest.raises(ValueError, match="both 'same' and 'different'"):
        read(f"{','.join(LIKE_A_PSEUDONYM)},same", f"{','.join(pseudonyms)},different")


def test_a_name_that_is_a_formula_is_read_back(tmp_path):
    path = tmp_path / "decisions.csv"
    values = {
        "account_a": "=SUM(A1)",
        "account_b": "'@Bob",
        "decision": "same",
        "note": "-",
        "who": "",
    }
    without_formulas(pd.DataFrame([values | {"when": ""}])).to_csv(path, index=False)
    assert path.read_text().splitlines()[1].startswith("'=SUM(A1),''@Bob,same")
    decisions = read_decisions(path)
    assert decisions.iloc[0].to_dict() == values | {"when": ""}
    assert len(listed_decisions(decisions, ["=SUM(A1)"], [pseudonym_of("'@Bob")])) == 1


def test_a_chain_of_same_pairs_and_its_ends_apart_are_a_contradiction(tmp_path):
    rows = "a,b,same\nb,c,same\nd,e,same\n"
    path = tmp_path / "decisions.csv"
    path.write_text(f"account_a,account_b,decision\n{rows}a,d,different\nc,e,later\n")
    check_chains(read_decisions(path))
    path.write_text(f"account_a,account_b,decision\n{rows}c,a,different\n")
    with pytest.raises(ValueError, match="c and a are two people, but .* join them over other"):
        check_chains(read_decisions(path))


def test_an_open_quote_is_said_with_the_file(tmp_path):
    path = tmp_path / "decisions.csv"
    path.write_text('account_a,account_b,decision\n"a,b,same\n')
    with pytest.raises(ValueError, match="decisions.csv: the row that begins in line 2"):
        read_decisions(path)


def test_accounts_that_a_list_lacks_are_named():
    rows = [("ann", "bob", "same"), ("bob", "nobody2", "different"), ("nobody2", "x", "later")]
    decisions = pd.DataFrame(rows, columns=["account_a", "account_b", "decision"])
    assert unknown_accounts(decisions, ["ann", "bob"]) == ["nobody2", "x"]


def test_two_forms_of_one_name_cannot_be_two_people(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("account_a,account_b,decision\nRenée,RENÉE,different\n,,\n", encoding="utf-8")
    decisions = read_decisions(path)
    assert len(decisions) == 1  # Excel leaves rows without values
    with pytest.raises(ValueError, match="Renée and RENÉE .* differ only in case or form"):
        check_chains(decisions)
