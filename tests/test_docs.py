"""The pages: numbers are what the results say, comparisons hold, links lead somewhere."""

import re
import sys

import jinja2
import numpy as np
import pandas as pd
import pytest
import yaml

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
MISSING = ("", "–")
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


def defects(headers, rows):
    """What is wrong with a table, in words."""
    sentences = []
    if len(rows) < 2:
        sentences.append("a table of one row: a sentence or a column of another table says it")
    if len(headers[0].split()) > 3:
        sentences.append(f"the first header is a caption: {headers[0]}")
    for header, *cells in zip(headers, *rows):
        if all(cell in MISSING for cell in cells):
            sentences.append(f"an empty column: {header}")
    for name, *cells in rows:
        if all(cell in MISSING for cell in cells):
            sentences.append(f"an empty row: {name}")
    return sentences


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
def test_tables_are_readable(page):
    for headers, rows in markdown_tables(page.read_text("utf-8")):
        assert defects(headers, rows) == []


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


def write(path, rows, **about):
    """A table of results with these rows, in one protocol and split."""
    columns = "model label seed base metric value low high".split()
    frame = pd.DataFrame(rows, columns=columns)
    frame = frame.assign(**{"protocol": "ranking", "split": "test", "queries": 9} | about)
    if path.exists():
        frame = pd.concat([pd.read_csv(path), frame])
    frame.reindex(columns=COLUMNS).to_csv(path, index=False)


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "results.csv"
    write(path, ROWS)
    return {"file": str(path), "protocol": "ranking", "split": "test"}


def lines(about, **more):
    return measured.table(yaml.safe_dump(about | more)).splitlines()


def test_a_table_by_hand(results):
    about = results | {"columns": ["MRR"]}
    of_t = "| T | 0.600 ± 0.141 |"
    of_u = "| U | 0.650 |"
    assert lines(about) == ["| system | MRR |", "|---|---|", of_u, of_t]
    assert lines(about, rows=["T"], first="name") == ["| name | MRR |", "|---|---|", of_t]
    assert lines(about, rows=["T", "U"], order="given")[2:] == [of_t, of_u]
    assert lines(about, seed=0)[2:] == [of_u, "| T | 0.500 (0.400 to 0.600) |"]
    assert lines(results, columns=["seeds", "accounts", {"metric": "MRR", "value_only": True}]) == [
        "| system | seeds | accounts | MRR |",
        "|---|---|---|---|",
        "| U | 1 | 9 | 0.650 |",
        "| T | 2 | 9 | 0.600 |",
    ]
    with pytest.raises(ValueError, match="0 MRR of 'V' in ranking, test"):
        lines(about, rows=["V"])


def test_a_difference_is_that_of_the_first_seed_and_may_be_missing(results):
    columns = ["MRR", {"metric": "MRR", "base": "U"}]
    with pytest.raises(ValueError, match="0 MRR of 'U' minus 'U'"):
        lines(results, columns=columns)
    assert lines(results, columns=columns, allow_missing=True) == [
        "| system | MRR | MRR minus U |",
        "|---|---|---|",
        "| U | 0.650 | – |",
        "| T | 0.600 ± 0.141 | -0.150 (-0.200 to -0.100) |",
    ]
    row = {"name": "T minus U", "system": "T", "base": "U"}
    assert lines(results, columns=["MRR"], rows=["U", row])[2:] == [
        "| U | 0.650 |",
        "| T minus U | -0.150 (-0.200 to -0.100) |",
    ]


def test_a_column_may_be_of_another_split_a_ratio_or_a_mean(results, tmp_path):
    second = [("a", "T", 0, "", "MRR", 0.3, 0.2, 0.4), ("b", "U", 0, "", "MRR", 0.35, NAN, NAN)]
    write(tmp_path / "results.csv", second, split="other")
    columns = [
        {"header": "one"},
        {"header": "two", "split": "other"},
        {"header": "times", "ratio_to": "U"},
        {"header": "mean", "mean": True},
        {"header": "of U", "mean": True, "ratio_to": "U"},
    ]
    assert lines(results, metric="MRR", columns=columns) == [
        "| system | one | two | times | mean | of U |",
        "|---|---|---|---|---|---|",
        "| U | 0.650 | 0.350 | 1.00 | 0.500 | 1.00 |",
        "| T | 0.600 ± 0.141 | 0.300 (0.200 to 0.400) | 0.92 | 0.450 | 0.90 |",
    ]


def rendered(results, body):
    """A text that names values of the results of these tests, as a page shows it."""
    named = (
        f"_all: &all {{file: {results['file']}, protocol: ranking, split: test, metric: MRR}}\n"
        "t: {<<: *all, system: T}\n"
        "both: {<<: *all, systems: {t: T, u: U}}\n"
        'every: {<<: *all, systems: ["*"]}\n'
        "lead: {<<: *all, system: T, base: U}\n"
        "seeds: {<<: *all, settings: {first: {seed: 0}, second: {seed: 1}}, system: T}\n"
        'best: {<<: *all, settings: {first: {seed: 0}}, systems: ["*"], pick: max}\n'
    )
    return render.environment().from_string(body).render(measured.named_values(named))


@pytest.mark.parametrize(
    "expression, shown",
    [
        ("t", "0.600 ± 0.141"),
        ('format(t, ".2f")', "0.60"),
        ("t.seeds", "2"),
        ("lead", "-0.150 (-0.200 to -0.100)"),
        ('format(lead.low, "+.1f")', "-0.2"),
        ('format(both.t / both.u, ".2f")', "0.92"),
        ("max(every).value", "0.650"),
        ("sum(every) - max(every)", "0.600"),
        ("seeds.second - seeds.first", "0.200"),
        ("best.first", "0.650"),
    ],
)
def test_a_number_in_a_sentence(results, expression, shown):
    text = rendered(results, f"It is {{{{ {expression} }}}} here.")
    assert text == f"It is {shown} here."


@pytest.mark.parametrize("expression", ["nobody", "t.nothing", "every", "every.nobody"])
def test_what_a_sentence_cannot_show_is_an_error(results, expression):
    with pytest.raises((ValueError, jinja2.UndefinedError), match="nobody|nothing|one value"):
        rendered(results, f"{{{{ {expression} }}}}")


@pytest.mark.parametrize(
    "statement, is_true",
    [
        ("lead.high < 0 and t > 0.5", True),
        ("t > both.u", False),
        ("all(every > 0.5)", True),
        ("any(every > 0.9) or not t < 0.6", True),
        ("abs(lead) > 0.2", False),
        ("best.first == max(both.u, t)", True),
    ],
)
def test_a_comparison_in_words(results, statement, is_true):
    text = f"So it is.{{{{ holds({statement}) }}}}"
    if is_true:
        assert rendered(results, text) == "So it is."
    else:
        with pytest.raises(ValueError, match="does not hold"):
            rendered(results, text)


def test_a_value_that_was_not_measured_is_an_error(results):
    about = f"file: {results['file']}, protocol: ranking, split: test, metric: MRR"
    for system in ("system: V", 'systems: ["V*"]', "systems: {v: V}"):
        with pytest.raises(ValueError, match="V"):
            measured.named_values(f"t: {{{about}, {system}}}")
