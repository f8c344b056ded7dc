"""Pages: numbers are what results say, links lead somewhere, the table of coverage holds."""

import importlib.util
import re
import sys
from collections import Counter
from functools import cache

import jinja2
import nbformat
import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from helpers.core import paths
from helpers.core.names import GLOSSARY
from helpers.core.results import COLUMNS
from tests.toy_runs import notebook

sys.path.insert(0, str(paths.ROOT / "docs"))
import measured  # noqa: E402
import render  # noqa: E402

CARDS = paths.ROOT / "helpers" / "accounts" / "shipped"
PAGES = [
    paths.ROOT / "README.md",
    *sorted((paths.ROOT / "docs").glob("*.md")),
    *sorted(CARDS.glob("*/README.md")),
]
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)")
TYPED = re.compile(r"\{#- typed: .+? \+#\}.*?\{# end typed #\}", re.S)
GENERATED = re.compile(r"\{% filter table %\}.*?\{% endfilter %\}|\{\{.*?\}\}", re.S)


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_pages_are_what_their_templates_give():
    """A statement of a template that does not hold is an error here, with its line."""
    for name, page in render.pages().items():
        text = render.environment().get_template(name).render(render.values())
        assert text == page.read_text("utf-8"), f"{name}: run `.venv/bin/python docs/render.py`"


def test_links_lead_somewhere():
    for page in PAGES:
        for path, anchor in LINK.findall(page.read_text(encoding="utf-8")):
            target = page.parent / path if path else page
            assert target.exists(), f"{page.name}: {path}"
            if anchor and target.suffix == ".md":
                found = anchors(target.read_text(encoding="utf-8"))
                assert anchor in found, f"{page.name}: {path}#{anchor}"


def test_a_page_types_no_score():
    for name in ("README.md", "results.md", "results-full.md", "data.md", "design.md"):
        folder = render.TEMPLATES if name in render.pages() else paths.ROOT / "docs"
        text = GENERATED.sub("", TYPED.sub("", (folder / name).read_text("utf-8")))
        scores = re.findall(r"(?<!temperature )(?<!prior of )\b0\.\d{2,}", text)
        assert not scores, f"{name}: let docs/render.py say it"


def test_every_comparison_of_the_page_of_results_is_checked():
    """A line that compares in words carries a statement, there or on the paragraph's next line."""
    text = TYPED.sub("", (render.TEMPLATES / "results.md").read_text("utf-8"))
    words = re.compile(r"\b(above|below|higher|lower|ahead|gains|loses|falls|rises|shrinks)\b")
    compares = 0
    for paragraph in re.split(r"\n(?=\n|\* |\d\. )", text):
        values = re.findall(r"\{\{ (?!holds)", paragraph)
        if words.search(GENERATED.sub("", paragraph)) and values:
            compares += 1
            assert "{{ holds(" in paragraph, paragraph
    assert compares > 15


def test_the_glossary_has_every_term():
    text = (paths.ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")]
    assert rows[2:] == [*GLOSSARY]
    assert "glossary.md" in (paths.ROOT / "docs" / "results.md").read_text(encoding="utf-8")


NAN = np.nan
ROWS = [
    ("a", "T", 0, "", "MRR", 0.5, 0.4, 0.6),
    ("a1", "T", 1, "", "MRR", 0.7, 0.6, 0.8),
    ("b", "U", 0, "", "MRR", 0.65, NAN, NAN),
    ("a", "T", 0, "b", "MRR_difference", -0.15, -0.2, -0.1),
]


def write(path, rows):
    """A table of results with these rows, in one protocol and split."""
    columns = "model label seed base metric value low high".split()
    frame = pd.DataFrame(rows, columns=columns)
    frame = frame.assign(protocol="ranking", split="test", queries=9)
    frame.reindex(columns=COLUMNS).to_csv(path, index=False)


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "results.csv"
    write(path, ROWS)
    return {"file": str(path), "protocol": "ranking", "split": "test"}


def rendered(results, body):
    """A text that names values of the results of these tests, as a page shows it."""
    named = (
        f"_all: &all {{file: {results['file']}, protocol: ranking, split: test, metric: MRR}}\n"
        "t: {<<: *all, system: T}\n"
        "both: {<<: *all, systems: {t: T, u: U}}\n"
        'every: {<<: *all, systems: ["*"]}\n'
        "lead: {<<: *all, system: T, base: U}\n"
        'best: {<<: *all, settings: {first: {seed: 0}}, systems: ["*"], pick: max}\n'
    )
    return render.environment().from_string(body).render(measured.named_values(named))


def test_a_comparison_in_words(results):
    """What pages say of results that hold is checked where they are rendered."""
    text = "It is {{ t }}.{{ holds(lead.high < 0 and all(every > 0.5)) }}"
    assert rendered(results, text) == "It is 0.600 ± 0.141."
    for statement in ("t > both.u", "abs(lead) > 0.2", "best.first > max(both.u, t)"):
        with pytest.raises(ValueError, match="does not hold"):
            rendered(results, f"So it is.{{{{ holds({statement}) }}}}")
    for unknown in ("nobody", "t.nothing", "every", "every.nobody"):
        with pytest.raises((ValueError, jinja2.UndefinedError), match="nobody|nothing|one value"):
            rendered(results, f"{{{{ {unknown} }}}}")
    about = f"file: {results['file']}, protocol: ranking, split: test, metric: MRR"
    with pytest.raises(ValueError, match="V"):
        measured.named_values(f"t: {{{about}, system: V}}")


_spec = importlib.util.spec_from_file_location("book", paths.ROOT / "docs" / "book.py")
book = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(book)


def test_the_book_is_one_page_of_all_notebooks_with_their_code(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    (tmp_path / "notebooks").mkdir()
    for name in ("00_a", "01_b"):
        text = f"# {name}: long\n\n**Paper.** [next](01_b.ipynb)"
        notebook(tmp_path / f"notebooks/{name}.ipynb", (text,), "print(1)", parameters="")
    page = BeautifulSoup(book.build(tmp_path / "out").read_text(), "html.parser")
    assert [a["href"] for a in page.nav.find_all("a")] == ["#00_a", "#01_b"]
    assert [a.text.strip() for a in page.nav.find_all("a")] == ["00_a", "01_b"]
    assert [a["href"] for a in page.main.find_all("a")] == ["#01_b"] * 2
    assert page.select("details.code[open]"), "a book shows its code"


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


ABOVE, TABLE_ROWS = read()


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
    assert [row[0] for row in TABLE_ROWS] == ids


def test_a_row_names_cells_that_are_there_or_says_why_it_has_none():
    for name, what, where, state, why in TABLE_ROWS:
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
    counted = Counter(row[3] for row in TABLE_ROWS)
    numbers = [(str(counted[state]), state) for state in STATES]
    assert re.findall(r"(\d+) \*([a-z ]+)\*", ABOVE) == numbers
    assert re.findall(r"^\| ([a-z ]+) \| [A-Z]", ABOVE, re.M) == STATES, "each has its meaning"


def test_rows_say_measured_where_a_stored_draw_has_a_verdict():
    files = (paths.ROOT / "outputs" / "open").glob("draw-*/results.csv")
    draws = [int(file.parent.name.removeprefix("draw-")) for file in files]
    rows = {row for draw in draws for row in measured.verdicts_of(draw).id}
    assert {row[0] for row in TABLE_ROWS if "measured on the public archives" in row[4]} == rows
    assert f"In {len(rows)} rows the last column says *measured*" in ABOVE
