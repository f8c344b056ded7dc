"""One HTML file that shows what a run found: its executed notebooks in order.

The file is self-contained and asks nothing of the network: plotly.js is inside it once, formulas become MathML, and
a content security policy forbids everything else. Post text may be hostile, so text is escaped, and a script that
hides in somebody's HTML does not run: only the two scripts written here are allowed, by their hashes.
"""

import base64
import hashlib
import json
import re
from html import escape
from pathlib import Path

from helpers.runs import paths
from helpers.runs.artifacts import atomic_write

PLOTLY = "application/vnd.plotly.v1+json"
# Never shown: live widgets have no kernel here, and a notebook brings no script of its own.
DROPPED = ("application/vnd.jupyter.widget-view+json", "application/javascript")
POLICY = ("default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
          "script-src ")
FOLDED = """{% extends "basic/index.html.j2" %}{% block input_group %}
{% set tags = cell.metadata.get("tags", []) %}<details class="code"><summary>
{{- "parameters of this run" if "injected-parameters" in tags else "parameters" if "parameters" in tags else "code" -}}
</summary>{{ super() }}</details>{% endblock %}"""
STYLE = """
:root { color-scheme: light; --rule: #d9dee3; --soft: #5b6670; --link: #0b57a4 }
* { box-sizing: border-box } html { -webkit-text-size-adjust: 100% }
body { font: 16px/1.6 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; color: #1c2329;
 max-width: 58rem; margin: 0 auto; padding: 1.5rem 1.25rem 6rem; overflow-wrap: break-word }
h1, h2, h3, h4 { line-height: 1.25; margin: 2rem 0 .6rem } h1 { font-size: 1.7rem } h2 { font-size: 1.3rem }
h3 { font-size: 1.1rem } header h1 { font-size: 2.1rem; margin-top: .5rem } a { color: var(--link) }
nav { border: 1px solid var(--rule); border-radius: 6px; padding: .75rem 1.25rem; margin: 1.5rem 0 }
nav h2 { font-size: 1rem; margin: 0 } nav ol { margin: .4rem 0 0; padding-left: 1.5rem }
nav li.variant { list-style: none; font-size: .9rem } small { font-weight: normal; color: var(--soft) }
.notebook { border-top: 2px solid var(--rule); margin-top: 3rem } .notebook > summary { padding: 1rem 0 }
summary { cursor: pointer } .notebook > summary { font-size: 1.2rem; font-weight: 600 }
.code { margin: .5rem 0 } .code > summary { color: var(--soft); font-size: .8rem; width: max-content }
pre, code { font: .85em ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace }
pre { line-height: 1.45; margin: .4rem 0; padding: .6rem .8rem; overflow: auto; max-height: 34rem; white-space: pre }
.highlight, .rendered_html pre { background: #f5f7f9; border-radius: 6px } .output_stderr pre { color: var(--soft) }
.output_text pre { padding: 0 } :not(pre) > code { background: #f0f3f5; border-radius: 3px; padding: .1em .3em }
.output_html, .output_markdown, .rendered_html, .wide, .output_png { overflow-x: auto } math { font-size: 1.1em }
.formula, .tex.block { display: block; margin: .9rem 0; overflow-x: auto; overflow-y: hidden }
math { font-family: "STIX Two Math", "Cambria Math", "Latin Modern Math", "DejaVu Math TeX Gyre", math, serif }
mtd[columnalign=right] { text-align: right; padding-right: 0 } mtd[columnalign=left] { text-align: left }
munderover > :not(:first-child), munder > :last-child, mover > :last-child { padding: .12em 0 }
.tex.block { white-space: pre-wrap; text-align: center } img { max-width: 100%; height: auto }
table { border-collapse: collapse; font-size: .88rem; margin: .8rem 0; font-variant-numeric: tabular-nums; border: 0 }
th, td { padding: .3rem .7rem; text-align: right; white-space: nowrap; border: 0; border-bottom: 1px solid var(--rule) }
.rendered_html td { white-space: normal; min-width: 4rem } .rendered_html th, .rendered_html td { text-align: left }
.dataframe td, .dataframe thead th { text-align: right }
.results .word { text-align: left } tr:hover td { background: #f5f7f9 }
caption { text-align: left; font-weight: 600; padding: .3rem 0 } .figure { width: 100%; min-height: 450px }
blockquote { margin: .8rem 0; padding: .1rem 1rem; border-left: 4px solid var(--rule); color: var(--soft) }
@media (max-width: 40rem) { body { padding: 1rem .9rem 4rem } header h1 { font-size: 1.6rem } h1 { font-size: 1.4rem } }
"""
DRAW = """
const figures = JSON.parse(document.getElementById("figures").textContent);
const draw = place => {  // a folded figure has no width yet: it is drawn when its notebook is opened
  if (place.dataset.drawn || !place.clientWidth) return;
  place.dataset.drawn = 1;
  const {data, layout = {}, frames} = figures[place.dataset.figure];
  if (layout.width > place.clientWidth) delete layout.width;
  Plotly.newPlot(place, {data, layout, frames, config: {responsive: true, displaylogo: false}});
};
const drawIn = root => root.querySelectorAll(".figure").forEach(draw);
document.querySelectorAll("details.notebook").forEach(d => d.addEventListener("toggle", () => drawIn(d)));
const unfold = () => {
  const target = document.getElementById(location.hash.slice(1));
  if (target && target.matches("details.notebook")) target.open = true;
};
addEventListener("hashchange", unfold);
unfold();
drawIn(document);
"""


def build(notebooks: list[Path], out: str | Path, title: str, intro_html: str = "") -> Path:
    """Write the executed ``notebooks``, in the order given, to the HTML file ``out``; return its path.

    A name with a dot, ``03_train.T.ipynb``, is a variant: shown folded, under its notebook in the contents.
    intro_html: trusted HTML that opens the page. Raises ValueError on a missing or broken notebook.
    """
    figures, contents, sections = [], [], []
    exporter = _exporter()
    for path in map(Path, notebooks):
        stem, _, variant = path.stem.partition(".")
        book, key = _read(path), re.sub(r"\W", "-", path.stem)
        name = escape(_title(book) or stem) + (f" <small>variant {escape(variant)}</small>" if variant else "")
        for number, cell in enumerate(book.cells):
            cell["id"] = f"{key}-{number}"
            cell["attachments"] = cell.get("attachments", {})
            _prepare(cell, figures)
        body, _ = exporter.from_notebook_node(book, resources={"metadata": {"path": str(paths.NOTEBOOKS)}})
        contents.append(f'<li class="{"variant" if variant else ""}"><a href="#{key}">{name}</a></li>')
        frame = "<details class='notebook' id='{}'><summary>{}</summary>{}</details>" if variant else (
            "<section class='notebook' id='{}' aria-label='{}'>{}</section>")
        sections.append(frame.format(key, name if variant else escape(stem), body))
    with atomic_write(out) as partial:
        partial.write_text(_page(escape(title), intro_html, contents, sections, figures), encoding="utf-8")
    return Path(out)


def _read(path: Path):
    import nbformat

    try:
        return nbformat.read(path, as_version=4)
    except FileNotFoundError:
        raise ValueError(f"{path} is missing: it has not been run") from None
    except Exception as error:  # nbformat raises its own, JSON's and the schema's errors
        raise ValueError(f"{path} is not a notebook: {str(error).splitlines()[0]}") from None


def _title(book) -> str:
    """The text of the first heading of level one, without its Markdown marks."""
    text = "\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
    found = re.search(r"^#\s+(.+?)\s*#*$", text, re.M)
    return re.sub(r"[*_`]{1,2}(\S[^*_`]*)[*_`]{1,2}", r"\1", found[1]) if found else ""


def _prepare(cell, figures: list) -> None:
    """Turn the outputs nbconvert would drop or leave raw (figures, formulas, Markdown) into HTML, in place."""
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        for kind in DROPPED:
            data.pop(kind, None)
        if PLOTLY in data:
            for trace in data[PLOTLY].get("data", []):
                if trace.get("type") == "scattergl":  # a browser gives a page a handful of WebGL contexts at most
                    trace["type"] = "scatter"
            figures.append(data[PLOTLY])
            output["data"] = {"text/html": f'<div class="figure" data-figure="{len(figures) - 1}"></div>'}
        elif "text/html" not in data and "text/latex" in data:
            output["data"] = {"text/html": mathml(data["text/latex"].strip("$ \n"), "block")}
        elif "text/html" not in data and "text/markdown" in data:  # may quote posts: its raw HTML is escaped
            output["data"] = {"text/html": _markdown(data["text/markdown"], escape=True)}
    if "outputs" in cell:
        cell["outputs"] = [output for output in cell["outputs"] if output.get("data", True)]


def mathml(tex: str, display: str = "inline") -> str:
    """MathML of a LaTeX formula; its LaTeX, set apart, where the converter is missing or does not know it."""
    known = re.sub(r"(begin|end){(aligned|align|equation)\*?}", r"\1{align*}", tex)
    known = re.sub(r"\\arg\s*\\(min|max)", r"\\mathop{\\mathrm{arg\\,\1}}", known)
    try:
        from latex2mathml.converter import convert

        made = convert(known, display=display)
        if "\\" not in made:  # it passes a command it does not know through as text
            return f'<span class="formula">{made}</span>' if display == "block" else made
    except Exception:  # whatever is wrong with one formula must not cost the report
        pass
    return f'<code class="tex {display}">{escape(tex.strip())}</code>'


def _markdown(source: str, **options) -> str:
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    class Renderer(IPythonRenderer):
        def inline_math(self, body):
            return mathml(body)

        def block_math(self, body):
            return mathml(body, "block")

        def latex_environment(self, name, body):
            return mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block")

    # no anchors: the same heading in two notebooks would give the same id twice
    return MarkdownWithMath(Renderer(exclude_anchor_links=True, **options)).render(source)


def _exporter():
    from jinja2 import DictLoader, pass_context
    from nbconvert import HTMLExporter

    class Exporter(HTMLExporter):
        @pass_context
        def markdown2html(self, context, source):
            cell, where = context["cell"], context["resources"]["metadata"]["path"]
            return _markdown(source, escape=False, attachments=cell.attachments, embed_images=True, path=where)

    return Exporter(template_file="folded.j2", extra_loaders=[DictLoader({"folded.j2": FOLDED})],
                    exclude_input_prompt=True, exclude_output_prompt=True)


def _page(title, intro, contents, sections, figures) -> str:
    from pygments.formatters import HtmlFormatter

    scripts = [DRAW]
    if figures:
        from plotly.offline import get_plotlyjs

        scripts.insert(0, get_plotlyjs().replace("\r\n", "\n"))
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    policy = POLICY + " ".join(f"'sha256-{digest}'" for digest in digests)
    drawings = json.dumps(figures).replace("<", "\\u003c")  # a post in a hover text must not close the element
    parts = [
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{STYLE}{HtmlFormatter().get_style_defs('.highlight')}</style></head><body>",
        f"<header><h1>{title}</h1>{intro}</header>",
        f'<nav aria-label="Contents"><h2>Contents</h2><ol>{"".join(contents)}</ol></nav><main>',
        *sections,
        f'</main><script type="application/json" id="figures">{drawings}</script>',
        *(f"<script>{script}</script>" for script in scripts),
        "</body></html>\n",
    ]
    return "\n".join(parts)
