"""Turn Markdown into HTML, and its formulas into MathML."""

import re
from contextlib import suppress
from html import escape
from typing import Any
from xml.etree.ElementTree import tostring

from latex2mathml.converter import convert_to_element
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

# "\begin{aligned}", "\end{equation*}"
ALIGNED = re.compile(r"(begin|end){(aligned|align|equation)\*?}")
# "\arg\min", "\arg \max"
ARG_MIN = re.compile(r"\\arg\s*\\(min|max)")


# Renders Markdown with its formulas as MathML.
class _Renderer(IPythonRenderer):
    def inline_math(self, body: str) -> str:
        return mathml(body)

    def block_math(self, body: str) -> str:
        return mathml(body, "block")

    def latex_environment(self, name: str, body: str) -> str:
        return mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block")


class _HostileRenderer(_Renderer):
    """Renders Markdown that may quote posts: its HTML and its pictures become plain text."""

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return escape(text)


def markdown_html(source: str, is_trusted: bool, **options: Any) -> str:
    """Return the HTML of Markdown.

    Parameters
    ----------
    source : str
        the Markdown
    is_trusted : bool
        False where it may quote posts; its HTML and pictures then become plain text
    **options : Any
        more arguments of nbconvert's ``IPythonRenderer``
    """
    kind = _Renderer if is_trusted else _HostileRenderer
    # no anchor links: a heading that occurs in two notebooks would give the page the same id twice
    renderer = kind(
        escape=not is_trusted, exclude_anchor_links=True, allow_harmful_protocols=False, **options
    )
    return MarkdownWithMath(renderer).render(source)


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
