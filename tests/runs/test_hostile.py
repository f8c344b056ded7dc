"""Attack strings in every kind of output: a report runs our scripts alone, policy or not."""

import json
import re
from pathlib import Path

import nbformat
import pandas as pd
import plotly.graph_objects as go
import pytest
import yaml
from bs4 import BeautifulSoup

from helpers.core import paths
from helpers.runs import report, summary

ATTACKS = yaml.safe_load(Path(__file__).with_name("attacks.yaml").read_text("utf-8"))
ATTACKS.append("W" + "o" * 3000)
ADDRESSES = set("href src srcdoc action formaction data xlink:href background poster cite".split())


def dangers(page):
    """What in a page could run or load something, the scripts aside that draw the figures."""
    dangerous = []
    for element in BeautifulSoup(page, "html.parser").find_all(True):
        if element.name in "iframe object embed base link form img svg script".split():
            dangerous.append(str(element)[:200])
        for name, value in element.attrs.items():
            inside = name == "href" and value.startswith("#")
            if name.startswith("on") or name in ADDRESSES and not inside or "url(" in str(value):
                dangerous.append((element.name, name, value))
    return dangerous


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    make = nbformat.v4
    folder = tmp_path_factory.mktemp("hostile")
    frame = pd.DataFrame(ATTACKS, index=ATTACKS, columns=ATTACKS[:1])
    figure = json.loads(
        go.Figure(go.Bar(x=ATTACKS, y=[1] * len(ATTACKS), name=ATTACKS[2])).to_json()
    )
    datas = [
        {"text/html": frame.to_html()},
        {"text/html": summary.styled(frame).to_html()},
        {"application/vnd.plotly.v1+json": figure},
    ]
    kinds = ("text/plain", "text/html", "text/markdown", "text/latex", "application/javascript")
    datas += [{kind: text} for kind in kinds for text in ATTACKS]
    outputs = [make.new_output("display_data", data) for data in datas]
    outputs += [make.new_output("stream", text=text) for text in ATTACKS]
    cells = [
        make.new_markdown_cell("# A title"),
        make.new_code_cell("\n".join(ATTACKS), outputs=outputs),
    ]
    nbformat.write(make.new_notebook(cells=cells), folder / "01_a.ipynb")
    return report.build_report(
        [folder / "01_a.ipynb"], folder / "report.html", ATTACKS[2]
    ).read_text()


def test_a_report_of_attack_strings_runs_our_scripts_alone(page):
    ours = re.compile(
        r'<script type="application/json" id="figures">.*?</script>\n'
        r"<script>.*?</script>\n</body></html>",
        re.S,
    )
    page, number = ours.subn("", page)
    assert number == 1 and "</body>" not in page
    assert not dangers(page), dangers(page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "wo" * 2 not in page


def test_a_styled_table_holds_its_words_as_text():
    frame = pd.DataFrame({ATTACKS[0]: [0.12345, None], "text": ATTACKS[:2]}, index=ATTACKS[3:5])
    html = summary.styled(frame).to_html()
    assert dangers(html) == [] and "0.123<" in html and "nan" not in html
    assert html.count("&lt;script&gt;") == 3
    # a page with MathJax would make a link of "$\\href{javascript:..."
    table = BeautifulSoup(html, "html.parser").table
    assert {"tex2jax_ignore", "mathjax_ignore"} <= set(table["class"])
    assert ">12.3%<" in summary.styled(frame[[ATTACKS[0]]], "{:.1%}").to_html()


def test_a_folded_table_holds_its_words_as_text():
    html = summary.folded(ATTACKS[0], pd.DataFrame({"text": ATTACKS[:2]})).data
    assert dangers(html) == [] and html.startswith("<details><summary>&lt;script&gt;")


def test_tables_of_notebooks_are_styled_through_the_helper():
    """``frame.style`` escapes neither cells nor names of rows and columns."""
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                assert not re.search(r"\.(style|to_html)\b", cell.source), path.name
