"""Escape hostile text where it reaches HTML, or a table that is opened with a spreadsheet."""

import re
from html import escape

import pandas as pd

# What a spreadsheet takes for a formula, by its first letter (OWASP, CSV injection). An apostrophe
# before it makes it a text; one more is put before texts that begin with both already.
FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def escape_html(text: object) -> str:
    """Escape a text, so that a figure shows its HTML and its formulas as plain text.

    Dollar signs are escaped too, because a page with MathJax would typeset what is between two of
    them, and could make links of it. Quotes are not: plotly would show "&quot;" literally, and no
    figure puts text into an attribute.
    """
    return escape(str(text), quote=False).replace("$", "&#36;")


def escape_formula(value: object) -> object:
    """Put an apostrophe before a text that a spreadsheet would compute; other values stay."""
    if isinstance(value, str) and FORMULA.match(value):
        return f"'{value}"
    return value


def unescape_formula(text: str) -> str:
    """Return the text of which :func:`escape_formula` made this one; other texts stay."""
    if text.startswith("'") and FORMULA.match(text):
        return text[1:]
    return text


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table, to be written for people, whose texts are no formulas.

    Parameters
    ----------
    table : DataFrame
        whose column names are ours; numbers stay numbers
    """
    texts = table.select_dtypes(exclude=["number", "bool"])
    escaped = {column: [escape_formula(value) for value in texts[column]] for column in texts}
    return table.assign(**escaped)
