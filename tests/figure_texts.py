"""The texts of a figure: a title, and names that are short and no identifiers."""

import re
from html import unescape

from helpers.core.names import INSIDE, MAX_LETTERS, NAMES


def check_figure(figure):
    """Raise AssertionError where a figure has no title, shows an identifier, or a long name."""
    title = figure["layout"].get("title", {}).get("text")
    assert title, "a figure without a finding, which is also what a screen reader says"
    shown_identifiers = [text for text in shown(figure) if identifiers(text)]
    assert not shown_identifiers, f"a figure shows the identifier {shown_identifiers[0]}"
    names = long_names(figure)
    assert not names, f"a figure shows the name {names[0]!r} of more than {MAX_LETTERS} letters"


def shown(figure):
    """Every text of a figure that a reader sees: title, panels, axes with their ticks, legend."""
    layout = figure["layout"]
    yield layout.get("title", {}).get("text") or ""
    yield from (note.get("text") or "" for note in layout.get("annotations", []))
    for axis in (layout[name] for name in layout if re.fullmatch(r"[xy]axis\d*", name)):
        yield (axis.get("title") or {}).get("text") or ""
        yield from (str(text) for text in axis.get("ticktext") or [])
    for trace in figure["data"]:
        yield trace.get("name") or ""
        yield from (
            value
            for axis in "xy"
            for value in list(trace.get(axis) or [])
            if isinstance(value, str)
        )


def identifiers(text):
    """Find the identifiers in a text: words with an underscore, and those in no name."""
    said = " ".join([*NAMES.values(), *INSIDE.values()])
    known = {name for name in NAMES if name not in said} - {
        "fused",
        "mean",
        "learned",
        "continuous",
        "right",
        "found",
        "hours",
    }  # words
    return [word for word in re.split(r"[\s,():;<>&]+", text) if "_" in word or word in known]


def long_names(figure):
    """Names of a legend and of a category axis that have too many letters."""
    names = [trace.get("name") or "" for trace in figure["data"] if trace.get("showlegend", True)]
    for trace in figure["data"]:
        if trace.get("type") == "bar":
            names += [value for value in list(trace.get("y") or []) if isinstance(value, str)]
    return sorted({name for name in map(unescape, names) if len(name) > MAX_LETTERS})
