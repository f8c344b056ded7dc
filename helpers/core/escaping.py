"""Escape hostile text where it reaches HTML, or a table that is opened with a spreadsheet."""

import re
from html import escape

import pandas as pd

# What a spreadsheet takes for a formula, by its first letter (OWASP, CSV injection). An apostrophe
# before it makes it a text; one more is put before texts that begin with both already.
FORMULA = r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"


def escape_html(text: object) -> str:
    """Escape a text, so that a figure shows its HTML and its formulas as plain text.

    Dollar signs are escaped too, because a page with MathJax would typeset what is between two of
    them, and could make links of it. Quotes are not: plotly would show "&quot;" literally, and no
    figure puts text into an attribute.
    """
    return escape(str(text), quote=False).replace("$", "&#36;")


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table, to be written for people, with an apostrophe before texts that are formulas.

    Parameters
    ----------
    table : DataFrame
        whose column names are ours; other values than texts stay
    """
    return table.replace(f"^({FORMULA})", r"'\1", regex=True)


def unescape_formula(text: str) -> str:
    """Return the text of which :func:`without_formulas` made this one; other texts stay."""
    return re.sub(f"^'({FORMULA})", r"\1", text)
