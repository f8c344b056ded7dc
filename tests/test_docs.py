"""The pages: numbers are what the results say, comparisons hold, links lead somewhere."""

import re
import sys

import jinja2
import numpy as np
import pandas as pd
import pytest

from helpers.core import paths
from helpers.core.names import GLOSSARY
from helpers.core.results import COLUMNS

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
TABLE = re.compile(r"(?:^\|.*\n)+", re.M)
TYPED = re.compile(r"\{#- typed: .+? \+#\}.*?\{# end typed #\}", re.S)
GENERATED = re.compile(r"\{% filter table %\}.*?\{% endfilter %\}|\{\{.*?\}\}", re.S)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
each_template = pytest.mark.parametrize("name", render.pages())


def template(name):
    """The text of a template."""
    return (render.TEMPLATES / name).read_text("utf-8")


def prose(text):
    """A template without what is generated, and without lists of typed numbers that say why."""
    return GENERATED.sub("", TYPED.sub("", text))


def markdown_tables(text):
    """The tables of a page: their headers and their rows, as lists of cells."""
    tables = []
    for lines in TABLE.findall(text):
        cells = [line.strip().strip("|").split("|") for line in lines.splitlines()]
        rows = [[cell.strip() for cell in row] for row in cells]
        tables.append((rows[0], rows[2:]))
    return tables


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_template
def test_a_page_is_what_its_template_gives(name):
    """A statement of the template that does not hold is an error here."""
    text = render.environment().get_template(name).render(render.values())
    assert text == render.pages()[name].read_text("utf-8"), "run `.venv/bin/python docs/render.py`"


@each_page
def test_links_lead_somewhere(page):
    for path, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / path if path else page
        assert target.exists(), path
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{path}#{anchor}"


def test_readme_is_short():
    text = (paths.ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 100
    lines = re.sub(r"\]\([^)]*\)", "]", text).splitlines()
    assert not [line for line in lines if len(line) > 300 and not line.startswith("|")]


NO_SCORES = ["README.md", "results.md", "results-full.md", "data.md", "design.md"]


@pytest.mark.parametrize("name", NO_SCORES)
def test_a_page_types_no_score(name):
    folder = render.TEMPLATES if name in render.pages() else paths.ROOT / "docs"
    text = prose((folder / name).read_text("utf-8"))
    scores = re.findall(r"(?<!temperature )(?<!prior of )\b0\.\d{2,}", text)
    assert not scores, "let docs/render.py say it"


def test_every_comparison_of_the_page_of_results_is_checked():
    """A line that compares in words carries a statement, there or on the paragraph's next line."""
    text = TYPED.sub("", template("results.md"))
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
    ((_, rows),) = markdown_tables(text)
    assert [row[0] for row in rows] == [*GLOSSARY]
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


@pytest.mark.parametrize("expression", ["nobody", "t.nothing", "every", "every.nobody"])
def test_what_a_sentence_cannot_show_is_an_error(results, expression):
    with pytest.raises((ValueError, jinja2.UndefinedError), match="nobody|nothing|one value"):
        rendered(results, f"{{{{ {expression} }}}}")


def test_a_comparison_in_words(results):
    """What pages say of results that hold is checked where they are rendered."""
    text = "It is {{ t }}.{{ holds(lead.high < 0 and all(every > 0.5)) }}"
    assert rendered(results, text) == "It is 0.600 ± 0.141."
    for statement in ("t > both.u", "abs(lead) > 0.2", "best.first > max(both.u, t)"):
        with pytest.raises(ValueError, match="does not hold"):
            rendered(results, f"So it is.{{{{ holds({statement}) }}}}")


def test_a_value_that_was_not_measured_is_an_error(results):
    about = f"file: {results['file']}, protocol: ranking, split: test, metric: MRR"
    for system in ("system: V", 'systems: ["V*"]', "systems: {v: V}"):
        with pytest.raises(ValueError, match="V"):
            measured.named_values(f"t: {{{about}, {system}}}")
