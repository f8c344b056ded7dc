"""Write an answer as one page to read, print and send, and as tables beside it.

The page needs no network, see :mod:`helpers.accounts.pages`. Names and posts are escaped.
"""

from datetime import UTC, datetime
from pathlib import Path

from ..core.artifacts import atomic_write, make_folder, write_json
from ..core.escaping import without_formulas
from ..core.paths import PROGRAM
from .answer_record import SAME_TEXTS, accounts_table, pairs_table, same_texts_table
from .answer_text import pairs_title
from .answers import Answer
from .pages import render_page, script_fields

PAGE = "report.html"
RECORD = "answers.json"
PAIRS = "pairs.csv"
ACCOUNTS = "accounts.csv"


def render(record: dict) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    record : dict
        result of :func:`helpers.accounts.answer_record.answer_record`
    """
    fields = {
        "pairs_title": pairs_title({state for state, count in record["counts"].items() if count}),
        "made": f"{datetime.now(UTC):%Y-%m-%d}",
        "files": (PAIRS, ACCOUNTS, RECORD),
        "table": PAIRS,
        "accounts_title": "accounts",
        "program": PROGRAM,
    }
    return render_page("answer_page", record | fields | script_fields())


def write_answer(answer: Answer, record: dict, folder: Path) -> Path:
    """Write the page, its record and its tables to a folder, each whole or not at all.

    Parameters
    ----------
    answer : Answer
        what was found
    record : dict
        result of :func:`helpers.accounts.answer_record.answer_record`
    folder : Path
        of the run; files of an earlier answer are replaced

    Returns
    -------
    The path of the page
    """
    make_folder(folder)
    for file_name, table in (
        (PAIRS, pairs_table(answer)),
        (ACCOUNTS, accounts_table(answer)),
        (SAME_TEXTS, same_texts_table(answer)),
    ):
        with atomic_write(folder / file_name) as partial:
            without_formulas(table).to_csv(partial, index=False, float_format="%.6f")
    write_json(folder / RECORD, record)
    with atomic_write(folder / PAGE) as partial:
        partial.write_text(render(record), "utf-8")
    return folder / PAGE
