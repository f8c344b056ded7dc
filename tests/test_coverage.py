"""The table of what is shown of the papers: its rows, and what they name and measured."""

import re
from collections import Counter
from functools import cache

import nbformat

from helpers.core import paths, results
from helpers.published import claims

DOCUMENT = paths.ROOT / "docs" / "coverage.md"
STATES = ["shown", "on archives", "on own data", "partly", "not yet"]
ROWS_OF_PAPER = {"K": 26, "S": 17, "R": 16}
FILE = re.compile(r"\b(?:params|helpers|tests)/[\w./-]*\w")


def read():
    """What stands above the table, and its rows as (id, what, where, state, why)."""
    text = DOCUMENT.read_text(encoding="utf-8")
    above, _, below = text.partition("\n| id |")
    rows = [line.strip("|").split("|") for line in below.splitlines()[2:] if line.strip()]
    return above, [tuple(cell.strip() for cell in row) for row in rows]


ABOVE, ROWS = read()


@cache
def headings(notebook):
    """The headings of a notebook's Markdown cells, without their marks."""
    cells = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return {heading.strip() for heading in re.findall("^#+ (.+)$", text, re.M)}


def test_every_row_of_the_papers_is_there_once_and_in_order():
    ids = []
    for paper, rows in ROWS_OF_PAPER.items():
        ids += [f"{paper}{row:02d}" for row in range(1, rows + 1)]
    assert [row[0] for row in ROWS] == ids


def test_a_row_names_cells_that_are_there_or_says_why_it_has_none():
    for name, what, where, state, why in ROWS:
        assert state in STATES and what, name
        assert where or state == "not yet", f"{name}: which cell shows it?"
        assert why or state == "shown", f"{name}: what is missing, or what is needed?"
        assert "params/" in why or state not in ("on archives", "on own data"), name
        for place in filter(None, where.split("; ")):
            notebook, mark, heading = place.partition(" · ")
            assert mark and heading in headings(notebook), f"{name}: {notebook} lacks {heading!r}"


def test_the_files_that_it_names_are_there():
    named = FILE.findall(DOCUMENT.read_text(encoding="utf-8"))
    assert named and not [name for name in named if not (paths.ROOT / name).exists()]


def test_the_counts_above_the_table_are_those_of_the_table():
    counted = Counter(row[3] for row in ROWS)
    numbers = [(str(counted[state]), state) for state in STATES]
    assert re.findall(r"(\d+) \*([a-z ]+)\*", ABOVE) == numbers
    assert re.findall(r"^\| ([a-z ]+) \| [A-Z]", ABOVE, re.M) == STATES, "each has its meaning"


def test_rows_say_measured_where_a_stored_draw_has_a_verdict():
    files = sorted((paths.ROOT / "outputs" / "open").glob("draw-*/results.csv"))
    verdicts = [claims.verdicts(results.read_results(file)) for file in files]
    measured = {row for table in verdicts for row in table.id[table.ours != ""]}
    assert {row[0] for row in ROWS if "measured on the public archives" in row[4]} == measured
    assert f"In {len(measured)} rows the last column says *measured*" in ABOVE
