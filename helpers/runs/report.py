"""One HTML file that shows what a run found: its executed notebooks in order.

The file is self-contained and asks nothing of the network: plotly.js is inside it once, compressed, formulas become
MathML, and a content security policy forbids everything else. Post text may be hostile: text is escaped, of HTML that a
notebook shows words and tables are left, and of scripts the policy allows only the two named here, by their hashes.
"""

import base64
import gzip
import hashlib
import json
import re
from contextlib import suppress
from html import escape, unescape
from pathlib import Path

from helpers.core import paths
from helpers.core.artifacts import atomic_write

PLOTLY = "application/vnd.plotly.v1+json"
# Never shown: live widgets have no kernel here, and a notebook brings no script of its own.
DROPPED = ("application/vnd.jupyter.widget-view+json", "application/javascript")
# What is left of an output's HTML: no address, and no MathML or SVG, inside which the same text is parsed otherwise.
ELEMENTS = set(
    "table caption colgroup col thead tbody tfoot tr th td style div p span br hr pre code b i em strong"
    " small sup sub u h1 h2 h3 h4 h5 h6 ul ol li dl dt dd details summary".split()
)
LINK = re.compile(r'<a href="([\w.]+)\.ipynb">(.*?)</a>', re.S)
ATTRIBUTES = {"class", "id", "style", "colspan", "rowspan", "border"}
POLICY = (
    "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "script-src "
)


def build_report(
    notebooks: list[Path],
    out: str | Path,
    title: str,
    intro_html: str = "",
    beside: dict[str, str] | None = None,
) -> Path:
    """Write the executed ``notebooks``, in the order given, to the HTML file ``out``; return its path.

    A name with a dot, ``03_train.T.ipynb``, is a variant, shown folded. intro_html: trusted HTML that opens the page.
    beside: titles of notebooks that have a page ``<stem>.html`` each, to which contents and links lead; figures are
    then the stored pictures. Raises ValueError on a broken notebook.
    """
    import nbformat

    exporter, figures, books = _exporter(), [], []
    keys = {Path(path): re.sub(r"\W", "-", Path(path).stem) for path in notebooks}
    pages = {stem: f"{stem}.html" for stem in beside or ()} or {
        path.stem: f"#{key}" for path, key in keys.items()
    }
    linked = lambda a: f'<a href="{pages[a[1]]}">{a[2]}</a>' if a[1] in pages else a[2]  # noqa: E731
    for path, key in keys.items():
        book = nbformat.read(path, as_version=4)
        for number, cell in enumerate(book.cells):
            cell["id"] = f"{key}-{number}"
            cell["attachments"] = cell.get("attachments", {})
            if "outputs" in cell:
                _prepare(cell, figures, still=beside)
        body, _ = exporter.from_notebook_node(
            book, resources={"metadata": {"path": str(paths.NOTEBOOKS)}}
        )
        books.append(
            {"stem": path.stem, "key": key, "title": _title(book), "body": LINK.sub(linked, body)}
        )
    with atomic_write(out) as partial:
        partial.write_text(
            _page(figures, title=title, intro=intro_html, books=books, beside=beside), "utf-8"
        )
    return Path(out)


def _title(book):
    """The text of the first heading of level one, without its Markdown marks."""
    text = "\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
    heading = re.search(r"^#\s+(.+?)\s*#*$", text, re.M)
    return re.sub(r"[*_`]{1,2}(\S[^*_`]*)[*_`]{1,2}", r"\1", heading[1]) if heading else ""


def _prepare(cell, figures, still):
    """Turn the outputs nbconvert would drop or leave raw into HTML, in place; still: stored pictures for figures."""
    for output in cell.outputs:
        data = output.get("data", {})
        for kind in DROPPED:
            data.pop(kind, None)
        if still and PLOTLY in data and "image/png" in data:
            said = data.pop(PLOTLY).get("layout", {}).get("title", {}).get("text", "")
            output["metadata"] = {"image/png": {"alt": unescape(said.replace("<br>", " "))}}
        if PLOTLY in data:
            figures.append(data[PLOTLY])
            html = f'<div class="figure" data-figure="{len(figures) - 1}"></div>'
        elif "text/html" not in data and data.keys() & {
            "text/markdown",
            "text/latex",
        }:  # may quote posts: escaped
            html = _markdown(data.get("text/markdown") or data["text/latex"], escape=True)
        elif "text/html" in data:
            html = _words_and_tables(data["text/html"])
        else:
            continue
        output["data"] = {"text/html": html}
    cell["outputs"] = [output for output in cell.outputs if output.get("data", True)]


def _words_and_tables(html: str) -> str:
    """HTML without any element or attribute that could run, load or lead somewhere."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html, is_fragment=True)
    tree.strip_tags(list({node.tag for node in tree.css("*")} - ELEMENTS), recursive=True)
    for node in tree.css("*"):
        for name in node.attributes.keys() - ATTRIBUTES:
            del node.attrs[name]
    return tree.html or ""


def mathml(tex: str, display: str = "inline") -> str:
    """MathML of a LaTeX formula; its LaTeX, set apart, where the converter does not know it."""
    from xml.etree.ElementTree import tostring

    from latex2mathml.converter import convert_to_element

    known = re.sub(r"(begin|end){(aligned|align|equation)\*?}", r"\1{align*}", tex)
    known = re.sub(r"\\arg\s*\\(min|max)", r"\\mathop{\\mathrm{arg\\,\1}}", known)
    with suppress(Exception):  # whatever is wrong with one formula must not cost the report
        tree = convert_to_element(known, display=display)
        for element in tree.iter():
            element.attrib = {
                name: value for name, value in element.items() if name not in ("href", "style")
            }
        math = tostring(tree, encoding="unicode").replace(
            "&amp;#x", "&#x"
        )  # convert() itself unescapes all, also "<"
        if "\\" not in math:  # it passes a command it does not know through as text
            return f'<span class="formula">{math}</span>' if display == "block" else math
    return f'<code class="tex {display}">{escape(tex.strip())}</code>'


def _markdown(source, **options):
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    # no anchors: the same heading in two notebooks would give the same id twice
    renderer = IPythonRenderer(exclude_anchor_links=True, allow_harmful_protocols=False, **options)
    if options.get("escape"):
        renderer.image = lambda text, url, title=None: escape(
            text
        )  # its address may be anywhere, or nowhere
    renderer.inline_math = mathml
    renderer.block_math = lambda body: mathml(body, "block")
    renderer.latex_environment = lambda name, body: mathml(
        f"\\begin{{{name}}}{body}\\end{{{name}}}", "block"
    )
    return MarkdownWithMath(renderer).render(source)


def _exporter():
    from jinja2 import FileSystemLoader, pass_context
    from nbconvert import HTMLExporter

    @pass_context
    def markdown2html(context, source):
        place = context["resources"]["metadata"]["path"]
        return _markdown(
            source,
            escape=False,
            attachments=context["cell"].attachments,
            embed_images=True,
            path=place,
        )

    exporter = HTMLExporter(
        template_file="folded.html",
        extra_loaders=[FileSystemLoader(Path(__file__).parent)],
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    exporter.register_filter("markdown2html", markdown2html)
    return exporter


def _page(figures, **shown):
    from jinja2 import Template
    from plotly.offline import get_plotlyjs
    from pygments.formatters import HtmlFormatter

    style, draw, page = (
        Path(__file__).with_suffix(suffix).read_text("utf-8") for suffix in (".css", ".js", ".html")
    )
    plotly = get_plotlyjs().replace("\r\n", "\n") if figures else ""
    digests = [
        base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()
        for each in (plotly, draw)
        if each
    ]
    light, dark = (
        HtmlFormatter(style=name).get_style_defs(".highlight")
        for name in ("default", "github-dark")
    )
    drawings = json.dumps(figures).replace(
        "<", "\\u003c"
    )  # a post in a hover text must not close the element
    return Template(page).render(
        **shown, draw=draw, drawings=drawings, policy=POLICY + " ".join(f"'sha256-{digest}'" for digest in digests),
        style=f"{style}{light}@media (prefers-color-scheme: dark) {{{dark}}}",
        licence=plotly[: plotly.find("*/")].strip("/*\n "),
        plotly=base64.b64encode(gzip.compress(plotly.encode(), mtime=0)).decode() if figures else "")  # fmt: skip
