"""Decide about pairs of accounts in a terminal, and keep the decisions in a file for a team."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from ..core import paths
from ..core.artifacts import read_json
from ..core.messages import printable
from .answer_page import PAGE, RECORD
from .decided_pairs import (
    COLUMNS,
    DECISIONS,
    DIFFERENT,
    LATER,
    SAME,
    add_decisions,
    read_decisions,
    with_listed_names,
)

KEYS = {"s": SAME, "d": DIFFERENT, "l": LATER}
QUIT = "q"
PROMPT = "same person (s), different people (d), later (l), stop (q)? "
SHOWN_FEATURES = 5  # for a pair and against it


def decision_row(account_a: str, account_b: str, decision: str, who: str, note: str) -> dict:
    """Return one decision of today as a row of the file.

    Parameters
    ----------
    account_a, account_b : str
        names or pseudonyms
    decision : str
        one of DECISIONS
    who : str
        who decided
    note : str
        a remark
    """
    when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return dict(zip(COLUMNS, (account_a, account_b, decision, who, when, note), strict=True))


def open_pairs(run: paths.Run, path: Path) -> list[dict]:
    """Return the pairs of a run's page about which the file decides nothing yet.

    Parameters
    ----------
    run : Run
        of ``authorbook mine``
    path : Path
        the file of decisions, which need not be there

    Raises
    ------
    ValueError
        Where the run has made no page, or the file is no file of decisions.
    """
    record = run.folder / RECORD
    if not record.exists():
        raise ValueError(
            f"{paths.display_path(run.folder)} has no {PAGE}: run `{paths.PROGRAM} mine` "
            "first, or name two accounts and a decision"
        )
    pairs = read_json(record)["pairs"]
    if not path.exists():
        return pairs
    decisions = read_decisions(path)
    settled = decisions[decisions.decision != LATER]
    names = {pair["key_a"] for pair in pairs} | {pair["key_b"] for pair in pairs}
    settled = with_listed_names(settled, names)
    decided = {frozenset(pair) for pair in zip(settled.account_a, settled.account_b)}
    return [pair for pair in pairs if frozenset([pair["key_a"], pair["key_b"]]) not in decided]


def pair_text(pair: dict) -> str:
    """Return what a person reads about a pair before deciding.

    Parameters
    ----------
    pair : dict
        one of the pairs of an answer's record
    """
    lines = [
        f"{pair['a']} and {pair['b']}: {pair['state']}, probability {pair['probability_text']}, "
        f"{pair['posts_a']} and {pair['posts_b']} posts",
        *pair["sentences"],
        *pair["activity"],
    ]
    for title, side in (("for", "speaks_for"), ("against", "speaks_against")):
        signs = pair[side][:SHOWN_FEATURES]
        features = [f"{sign['text']} {sign['part']:+.2f}" for sign in signs]
        lines.append(f"{title:8}{', '.join(features) or 'nothing'}")
    return "\n".join(printable(line) for line in lines)


def ask_about_pairs(
    pairs: list[dict], path: Path, who: str, ask: Callable[[str], str] = input
) -> int:
    """Show each pair and ask for a decision; each is written before the next pair is shown.

    Parameters
    ----------
    pairs : list of dict
        result of :func:`open_pairs`
    path : Path
        the file of decisions
    who : str
        who decides
    ask : callable
        shows a question and returns the answer

    Returns
    -------
    The number of decisions that were added
    """
    count = 0
    for number, pair in enumerate(pairs, 1):
        print(f"\npair {number} of {len(pairs)}\n{pair_text(pair)}")
        key = ""
        while key not in (*KEYS, QUIT):
            key = ask(PROMPT).strip().lower()[:1]
        if key == QUIT:
            break
        note = ask("note (may be empty): ").strip()
        row = decision_row(pair["key_a"], pair["key_b"], KEYS[key], who, note)
        count += add_decisions(path, pd.DataFrame([row]))
    return count


def is_terminal() -> bool:
    """Tell whether somebody sits there to answer."""
    return sys.stdin is not None and sys.stdin.isatty()


def check_decision(decision: str) -> None:
    """Raise ValueError where a word is none of DECISIONS.

    Parameters
    ----------
    decision : str
        what the user named
    """
    if decision not in DECISIONS:
        raise ValueError(f"{decision!r} is no decision: say one of {', '.join(DECISIONS)}")
