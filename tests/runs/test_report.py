"""The report: everything once, hostile text escaped, nothing asked of the network."""

import base64
import gzip
import hashlib
import json
import re

import nbformat
import plotly.graph_objects as go
import pytest
from bs4 import BeautifulSoup, Comment
from plotly.offline import get_plotlyjs

from helpers.runs import report

HOSTILE = "<script>fetch('http://example.org')</script>"


def executed(path, *cells):
    """A notebook of Markdown (str) and of code cells given by their outputs (list)."""
    make = nbformat.v4
    book = make.new_notebook()
    for cell in cells:
        if isinstance(cell, str):
            book.cells.append(make.new_markdown_cell(cell))
        else:
            code = make.new_code_cell("print('code')", outputs=cell, execution_count=1)
            book.cells.append(code)
    nbformat.write(book, path)
    return path


def display(**data):
    return nbformat.v4.new_output(
        "display_data", {k.replace("__", "/"): v for k, v in data.items()}
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report of two notebooks with every kind of output, some of it hostile."""
    tmp_path = tmp_path_factory.mktemp("page")
    scatter = go.Scatter(x=[1, 2], y=[1, 2], text=["</script>" + HOSTILE] * 2)
    figure = json.loads(go.Figure(scatter).to_json())
    plot = nbformat.v4.new_output("display_data", {"application/vnd.plotly.v1+json": figure})
    stream = nbformat.v4.new_output("stream", text=HOSTILE)
    first = executed(
        tmp_path / "01_a.ipynb",
        "# The *first* one\n\n$x < 1$ and\n\n$$\\frac{a}{b}$$\n\n$\\nosuch{x}$",
        [stream],
        [display(text__plain=HOSTILE)],
        [display(text__markdown="**posts** " + HOSTILE)],
        [plot],
        [display(text__latex="$$z_i$$")],
        [display(**{"application__javascript": "alert(1)"})],
    )
    second = executed(tmp_path / "01_a.T.ipynb", "# The *first* one\n\n## The first one", [plot])
    return report.build_report(
        [first, second], tmp_path / "report.html", "A <title>", "<p>intro</p>"
    ).read_text()


def test_the_report_holds_everything_once(page):
    soup = BeautifulSoup(page, "html.parser")
    ids = [element["id"] for element in soup.find_all(id=True)]
    assert len(ids) == len(set(ids))
    assert [(a["href"], a.get_text()) for a in soup.nav.find_all("a")] == [
        ("#01_a", "The first one"),
        ("#01_a-T", "The first one variant T"),
    ]
    assert {a["href"][1:] for a in soup.nav.find_all("a")} <= set(ids)
    assert soup.title.text == "A <title>" and "<p>intro</p>" in page
    assert not any(block.has_attr("open") for block in soup.find_all("details")) and soup.select(
        "details.code pre"
    )
    assert page.count("plotly.js v") == 1
    assert [place["data-figure"] for place in soup.select(".figure")] == ["0", "1"]
    assert len(json.loads(soup.find(id="figures").string)) == 2
    formulas = [tex.text for tex in soup.select("code.tex")]
    assert r"\nosuch{x}" in formulas, "no converter knows it: it is shown, set apart"
    assert "<mfrac>" in page and "$$" not in re.sub(r"<script.*?</script>", "", page, flags=re.S)


def test_hostile_text_is_escaped_and_no_script_but_ours_is_allowed(page):

    soup = BeautifulSoup(page, "html.parser")
    assert HOSTILE not in page and page.count("&lt;script&gt;fetch") == 2  # stream, plain
    scripts = soup.find_all("script")
    assert len(scripts) == 2 and scripts[0]["id"] == "figures"  # the data, and what draws
    contents = soup.find("template", id="plotly").contents
    packed = [part for part in contents if not isinstance(part, Comment)]
    plotly = gzip.decompress(base64.b64decode(packed[0])).decode()  # what draws unpacks it
    policy = soup.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
    digests = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in (plotly, scripts[1].string)
    ]
    assert policy.split("script-src ")[1].split() == [f"'sha256-{digest}'" for digest in digests]
    assert len(packed) == 1 and plotly == get_plotlyjs() and "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1] and "alert(1)" not in page


def test_links_between_notebooks_lead_to_where_they_are_shown(tmp_path):
    text = "# 01 · A: more\n\n[b](02_b.ipynb) [c](03_c.ipynb) [paper](https://example.org/x.ipynb)"
    first = executed(tmp_path / "01_a.ipynb", text)
    second = executed(tmp_path / "02_b.ipynb", "# 02 · <b>")
    page = report.build_report([first, second], tmp_path / "r.html", "t").read_text()
    soup = BeautifulSoup(page, "html.parser")
    assert [a["href"] for a in soup.main.find_all("a")] == ["#02_b", "https://example.org/x.ipynb"]
    assert "b c paper" in soup.main.text
    assert [a.text for a in soup.nav.find_all("a")] == ["01 · A", "02 · <b>"]


def test_a_page_of_the_book_shows_the_stored_pictures(tmp_path):
    picture = display(image__png="aGVsbG8=")
    picture.metadata = {"image/png": {"alt": "a finding, <b>"}}
    attack = display(text__html="<script>x</script><b>y</b>")
    book = executed(tmp_path / "01_a.ipynb", "# A", [picture], [attack])
    page = report.build_report([book], tmp_path / "r.html", "t").read_text()
    assert "data:image/png;base64,aGVsbG8=" in page and "<template" not in page
    assert 'alt="a finding, &lt;b&gt;"' in page
    assert "<b>y</b>" in page and "<script>x" not in page
