"""Escape hostile text where it reaches HTML."""

from html import escape


def escape_html(text: object) -> str:
    """Escape a text, so that a figure shows its HTML and its formulas as plain text.

    Dollar signs are escaped too, because a page with MathJax would typeset what is between two of
    them, and could make links of it. Quotes are not: plotly would show "&quot;" literally, and no
    figure puts text into an attribute.
    """
    return escape(str(text), quote=False).replace("$", "&#36;")
