"""Decisions of people about pairs of accounts: the file that keeps them, and what matching heeds.

The file, ``decisions.csv``, has one decision a row: who decided when that two accounts are the same
person's or two people's, or that this is still open.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.artifacts import atomic_write
from ..core.files import check_readable
from ..sources.csv_rows import csv_rows
from .reading import pseudonym_of

COLUMNS = ("account_a", "account_b", "decision", "who", "when", "note")
NEEDED = COLUMNS[:3]
SAME = "same"
DIFFERENT = "different"
LATER = "later"
DECISIONS = (SAME, DIFFERENT, LATER)


def read_decisions(path: str | Path) -> pd.DataFrame:
    """Read a file of decisions and check that they do not contradict each other.

    Parameters
    ----------
    path : str | Path
        a CSV file with COLUMNS, of which those after NEEDED may be missing; others are ignored

    Returns
    -------
    COLUMNS as text, "" where the file has none; accounts are pseudonyms, whatever the file has.

    Raises
    ------
    ValueError
        A column is missing, a row is broken, has no account or another decision than DECISIONS, or
        a pair was decided as the same and as different.
    """
    frame = read_rows(path)
    for column in ("account_a", "account_b"):
        frame[column] = [pseudonym_of(name) for name in frame[column]]
    return frame


def read_rows(path: str | Path) -> pd.DataFrame:
    """Return what :func:`read_decisions` does, with the accounts as the file names them.

    Parameters
    ----------
    path : str | Path
        as in :func:`read_decisions`
    """
    path = Path(path)
    check_readable(path)
    broken_rows = Counter()
    rows = csv_rows(path, ",", broken_rows)
    header = next(rows, [])
    missing = [column for column in NEEDED if column not in header]
    if missing:
        raise ValueError(
            f"{path} has no column {', '.join(missing)}: a file of decisions has the columns "
            f"{', '.join(COLUMNS)}"
        )
    place = {column: header.index(column) for column in COLUMNS if column in header}
    empty = dict.fromkeys(COLUMNS, "")
    decisions = [empty | {column: row[place[column]].strip() for column in place} for row in rows]
    if broken_rows["broken_row"] or broken_rows["truncated_file"]:
        raise ValueError(f"{path} has a broken row: no decision may be lost, so mend it first")
    frame = pd.DataFrame(decisions, columns=COLUMNS, dtype=object)
    _check_rows(path, frame)
    _check_contradictions(path, frame)
    return frame


def add_decisions(path: str | Path, added: pd.DataFrame) -> int:
    """Add decisions to a file, which is made where it is not there.

    A pair that the file calls "later", or does not have, gets the decision that is added. The same
    decision about a pair is added once.

    Parameters
    ----------
    path : str | Path
        the file of decisions
    added : DataFrame
        COLUMNS as text, accounts by name or pseudonym

    Returns
    -------
    The number of decisions that were added

    Raises
    ------
    ValueError
        As in :func:`read_decisions`; also where a decision contradicts one of the file, which then
        stays as it is.
    """
    path = Path(path)
    present = pd.DataFrame(columns=COLUMNS, dtype=object)
    if path.exists():
        present = read_rows(path)
    joint = pd.concat([present, added[list(COLUMNS)]], ignore_index=True)
    _check_rows(path, joint)
    _check_contradictions(path, joint)
    row_of_pair = {}
    for row in joint.itertuples(index=False):
        pair = _pair(row.account_a, row.account_b)
        if pair not in row_of_pair or row_of_pair[pair].decision == LATER:
            row_of_pair[pair] = row
    written = pd.DataFrame(row_of_pair.values(), columns=COLUMNS)
    with atomic_write(path) as partial:
        written.to_csv(partial, index=False)
    old_rows = set(present.itertuples(index=False, name=None))
    return sum(row not in old_rows for row in written.itertuples(index=False, name=None))


def _pair(left, right):
    return frozenset([pseudonym_of(left), pseudonym_of(right)])


def _check_rows(path, frame):
    """Raise ValueError where a row has no account, or no decision that is known."""
    for number, row in enumerate(frame.itertuples(index=False), 1):
        if row.decision not in DECISIONS:
            raise ValueError(
                f"{path}, decision {number}: {row.decision!r} is none of {', '.join(DECISIONS)}"
            )
        if not row.account_a or not row.account_b:
            raise ValueError(f"{path}, decision {number}: an account is missing")


def _check_contradictions(path, frame):
    """Raise ValueError where a pair, in either order, is decided as the same and as different."""
    decision_of_pair = {}
    decided = frame[frame.decision != LATER]
    for row in decided.itertuples():
        pair = _pair(row.account_a, row.account_b)
        if decision_of_pair.setdefault(pair, row.decision) != row.decision:
            raise ValueError(
                f"{path} says of {row.account_a} and {row.account_b} both {SAME!r} and "
                f"{DIFFERENT!r}: keep one"
            )


@dataclass(frozen=True, eq=False)
class DecidedPairs:
    """What was decided about two lists of accounts.

    Attributes
    ----------
    same, different : (K, 2) int, pairs of a row of list A and a row of list B, each once
    unknown : number of decisions about accounts of which no pair stands in the two lists
    """

    same: np.ndarray
    different: np.ndarray
    unknown: int


def decided_pairs(
    decisions: pd.DataFrame, names_a: Sequence[str], names_b: Sequence[str]
) -> DecidedPairs:
    """Find the accounts of decisions in two lists.

    A decision says first the account of list A. Where this fits no pair of the lists, but the
    reverse does, it is read in reverse.

    Parameters
    ----------
    decisions : DataFrame
        result of :func:`read_decisions`
    names_a, names_b : sequence of str
        pseudonyms or names of the accounts of both lists
    """
    row_a = {pseudonym_of(name): row for row, name in enumerate(names_a)}
    row_b = {pseudonym_of(name): row for row, name in enumerate(names_b)}
    pairs = {decision: set() for decision in DECISIONS}
    unknown = 0
    for left, right, decision in decisions[list(NEEDED)].itertuples(index=False):
        if left in row_a and right in row_b:
            pairs[decision].add((row_a[left], row_b[right]))
        elif right in row_a and left in row_b:
            pairs[decision].add((row_a[right], row_b[left]))
        else:
            unknown += 1
    same, different = [
        np.array(sorted(pairs[decision]), int).reshape(-1, 2) for decision in (SAME, DIFFERENT)
    ]
    return DecidedPairs(same, different, unknown)
