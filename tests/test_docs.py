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
TYPED = re.compile(r"\{#- typed: .+? \+#\}.*?\{# end typed #\}", re.S)
GENERATED = re.compile(r"\{% filter table %\}.*?\{% endfilter %\}|\{\{.*?\}\}", re.S)


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", render.pages())
def test_a_page_is_what_its_template_gives(name):
    """A statement of the template that does not hold is an error here."""
    text = render.environment().get_template(name).render(render.values())
    assert text == render.pages()[name].read_text("utf-8"), "run `.venv/bin/python docs/render.py`"


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
