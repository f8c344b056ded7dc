"""Write the executed notebooks of a run to one HTML file, the report.

The file needs no network: it contains plotly.js once, compressed, formulas are MathML, and a
content security policy forbids loading anything. Since posts may hold harmful HTML, text is
escaped, only words and tables are kept of the HTML that a notebook outputs, and the policy allows
only two scripts, plotly.js and ``report.js``, by their hashes.
"""

import base64
import gzip
import hashlib
import json
import re
from contextlib import suppress
from functools import cache
from html import escape
from pathlib import Path
from xml.etree.ElementTree import tostring

import nbformat
from jinja2 import FileSystemLoader, Template, pass_context
from latex2mathml.converter import convert_to_element
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from plotly.offline import get_plotlyjs
from pygments.formatters import HtmlFormatter
from selectolax.lexbor import LexborHTMLParser

from ..core import paths
from ..core.artifacts import atomic_write

HERE = Path(__file__).parent
PLOTLY = "application/vnd.plotly.v1+json"
# Outputs that are never shown: widgets need a kernel, and scripts of a notebook are not allowed.
# Where Markdown or LaTeX, which may quote posts, is an output, its plain text is shown.
DROPPED = (
    "application/vnd.jupyter.widget-view+json",
    "application/javascript",
    "text/markdown",
    "text/latex",
)
# Elements and attributes that are kept of an output's HTML. None can hold an address. MathML and
# SVG are not among them, because browsers parse text inside them by other rules.
ELEMENTS = set(
    "table caption colgroup col thead tbody tfoot tr th td style div p span br hr pre code b i em"
    " strong small sup sub u h1 h2 h3 h4 h5 h6 ul ol li dl dt dd details summary".split()
)
ATTRIBUTES = {"class", "id", "style", "colspan", "rowspan", "border"}
# <a href="03_train.ipynb">words</a>
LINK_TO_NOTEBOOK = re.compile(r'<a href="[\w.]+\.ipynb">(.*?)</a>', re.S)
# "\begin{aligned}", "\end{equation*}"
ALIGNED = re.compile(r"(begin|end){(aligned|align|equation)\*?}")
# "\arg\min", "\arg \max"
ARG_MIN = re.compile(r"\\arg\s*\\(min|max)")
POLICY = (
    "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; script-src "
)


def build_report(
    notebooks: list[Path],
    out: str | Path,
    title: str,
    intro_html: str = "",
) -> Path:
    """Write executed notebooks to one HTML file and return its path.

    Parameters
    ----------
    notebooks : list of Path
        executed notebooks, in the order of the page; one whose stem has a dot, such as
        ``03_train.T.ipynb``, is a variant and is shown folded
    out : str or Path
        path of the HTML file
    title : str
        title of the page
    intro_html : str
        trusted HTML at the top of the page; without it, cells show their code unfolded

    Raises
    ------
    ValueError
        where a notebook is damaged
    """
    keys = {path: re.sub(r"\W", "-", path.stem) for path in notebooks}
    resources = {"metadata": {"path": str(paths.NOTEBOOKS)}}

    figures = []
    books = []
    for path, key in keys.items():
        book = nbformat.read(path, as_version=4)
        for number, cell in enumerate(book.cells):
            cell["id"] = f"{key}-{number}"
            cell["attachments"] = cell.get("attachments", {})
            if "outputs" in cell:
                _prepare(cell, figures)
        body, _ = _exporter().from_notebook_node(book, resources=resources)
        for notebook, anchor in keys.items():
            body = body.replace(f'<a href="{notebook.stem}.ipynb">', f'<a href="#{anchor}">')
        body = LINK_TO_NOTEBOOK.sub(r"\1", body)  # of notebooks that are not shown
        books.append({"stem": path.stem, "key": key, "title": _title(book), "body": body})
    with atomic_write(out) as partial:
        page = _page(figures, title=title, intro=intro_html, books=books)
        partial.write_text(page, encoding="utf-8")
    return Path(out)


def _title(book):
    """Return the text of the first heading of level one without Markdown marks; "" for none."""
    text = "\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
    # "# Title" or "# Title #"
    heading = re.search(r"^#\s+(.+?)\s*#*$", text, re.M)
    if heading is None:
        return ""
    # "*word*", "**word**", "`word`" -> "word"
    return re.sub(r"[*_`]{1,2}(\S[^*_`]*)[*_`]{1,2}", r"\1", heading[1])


def _prepare(cell, figures):
    """Turn the outputs of a cell into safe HTML, in place; text and pictures stay as they are.

    Plotly figures are appended to ``figures``, and the page draws them.
    """
    for output in cell.outputs:
        data = output.get("data", {})
        for kind in DROPPED:
            data.pop(kind, None)
        if PLOTLY in data:
            html = f'<div class="figure" data-figure="{len(figures)}"></div>'
            figures.append(data[PLOTLY])
        elif "text/html" in data:
            html = _words_and_tables(data["text/html"])
        else:
            continue
        output["data"] = {"text/html": html}
    cell["outputs"] = [output for output in cell.outputs if output.get("data", True)]


def _words_and_tables(html: str) -> str:
    """Return HTML without elements and attributes that could run code, load files or hold links."""
    tree = LexborHTMLParser(html, is_fragment=True)
    tree.strip_tags(list({node.tag for node in tree.css("*")} - ELEMENTS), recursive=True)
    for node in tree.css("*"):
        for name in node.attributes.keys() - ATTRIBUTES:
            del node.attrs[name]
    return tree.html or ""


class _Renderer(IPythonRenderer):
    """Renders Markdown with its formulas as MathML."""

    def inline_math(self, body: str) -> str:
        return mathml(body)

    def block_math(self, body: str) -> str:
        return mathml(body, "block")

    def latex_environment(self, name: str, body: str) -> str:
        return mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block")


def mathml(tex: str, display: str = "inline") -> str:
    """Return the MathML of a formula.

    Parameters
    ----------
    tex : str
        the formula in LaTeX; where the converter cannot read it, its source is returned as code
    display : str
        "inline", or "block" for a line of its own
    """
    latex = ALIGNED.sub(r"\1{align*}", tex)
    latex = ARG_MIN.sub(r"\\mathop{\\mathrm{arg\\,\1}}", latex)
    with suppress(Exception):  # whatever is wrong with one formula must not cost the report
        tree = convert_to_element(latex, display=display)
        for element in tree.iter():
            element.attrib.pop("href", None)
            element.attrib.pop("style", None)
        # convert() would unescape everything, "<" too; only character references are unescaped here
        math = tostring(tree, encoding="unicode").replace("&amp;#x", "&#x")
        if "\\" not in math:  # a command that the converter does not know stays as text
            if display == "block":
                return f'<span class="formula">{math}</span>'
            return math
    return f'<code class="tex {display}">{escape(tex.strip())}</code>'


# The filter of the template for Markdown cells, which are trusted: attached pictures are embedded.
@pass_context
def _markdown_cell(context, source):
    # no anchor links: a heading that occurs in two notebooks would give the page the same id twice
    renderer = _Renderer(
        exclude_anchor_links=True,
        allow_harmful_protocols=False,
        escape=False,
        attachments=context["cell"].attachments,
        embed_images=True,
        path=context["resources"]["metadata"]["path"],
    )
    return MarkdownWithMath(renderer).render(source)


# Return nbconvert's exporter with this room's template and its Markdown filter. It is kept, since
# to compile its templates takes longer than to fill them.
@cache
def _exporter():
    exporter = HTMLExporter(
        template_file="folded.html",
        extra_loaders=[FileSystemLoader(HERE)],
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    exporter.register_filter("markdown2html", _markdown_cell)
    return exporter


def _page(figures, **fields):
    """Return the HTML of the page, with the hashes of the scripts that may run."""
    draw = (HERE / "report.js").read_text("utf-8")
    scripts = [draw]
    if figures:
        plotly = get_plotlyjs().replace("\r\n", "\n")
        scripts = [plotly, draw]
        fields["licence"] = plotly[: plotly.find("*/")].strip("/*\n ")
        fields["plotly"] = _base64(gzip.compress(plotly.encode(), mtime=0))
    hashes = [f"'sha256-{_base64(hashlib.sha256(code.encode()).digest())}'" for code in scripts]
    light = HtmlFormatter(style="default").get_style_defs(".highlight")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".highlight")
    css = (HERE / "report.css").read_text("utf-8")
    return Template((HERE / "report.html").read_text("utf-8")).render(
        **fields,
        draw=draw,
        # "</script>" in a hover text must not end the element that holds the figures
        drawings=json.dumps(figures).replace("<", "\\u003c"),
        policy=POLICY + " ".join(hashes),
        style=f"{css}{light}@media (prefers-color-scheme: dark) {{{dark}}}",
    )


def _base64(content):
    return base64.b64encode(content).decode()
