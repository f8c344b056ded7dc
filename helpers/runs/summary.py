"""The results of a run for people: what they say, beside the papers, and a table per protocol with intervals."""

import json
from pathlib import Path

import pandas as pd
from pandas.io.formats.style import Styler

from helpers.core.names import GLOSSARY, explain, label
from helpers.core.paths import Run
from helpers.core.results import KEY, format_interval, read, wide
from helpers.published.claims import WORDS, verdicts

MAIN = ("ranking", "linking", "verification")  # shown first, and differences last


def styled(frame: pd.DataFrame, shown: str | None = None) -> Styler:
    """A frame for a notebook: numbers to three digits, or as the format ``shown``, and every word escaped.

    Names of authors and topics may be HTML, which ``frame.style`` leaves as it is, in rows' and columns' names too.
    """
    styler = frame.style.set_table_attributes(
        'class="tex2jax_ignore mathjax_ignore"'
    )  # a name is no formula
    for axis in (0, 1):
        styler = styler.format_index(precision=3, escape="html", axis=axis)
    return styler.format(shown, precision=3, na_rep="", escape="html")


def folded(title: str, frame: pd.DataFrame) -> "HTML":  # noqa: F821
    """Show a long table folded under its title, without row numbers, for a notebook; every word escaped."""
    from html import escape

    from IPython.display import HTML

    table = styled(frame).hide(axis="index").to_html()
    return HTML(f"<details><summary>{escape(title)}</summary>{table}</details>")


def readable(frame: pd.DataFrame, hide: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return a table of :func:`helpers.core.results.wide` in words: the system first, no identifiers.

    hide : columns that say the same in every row, or that the page does not speak of.
    """
    models = frame.drop_duplicates("model")
    names = [label(model) for model in models["model"]]
    if "label" in models:
        names = [stored or name for stored, name in zip(models["label"].fillna(""), names)]
    system = frame["model"].map(dict(zip(models["model"], names)))
    words = frame.drop(columns=[name for name in ("model", "label", *hide) if name in frame])
    words.insert(0, "system", system)
    if "split" in words:
        words["split"] = words["split"].map(label)
    if "base" in words:
        words["base"] = words["base"].map(
            lambda base: dict(zip(models["model"], names)).get(base, label(base))
        )
    return words.rename(columns=label)


def results_html(files: Run, **about: object) -> str:
    """What the rows of a run say in words (``results.html``), beside the papers, all; about: run, stages, seconds."""
    from jinja2 import Environment

    page = Environment(autoescape=True).from_string(
        Path(__file__).with_name("results.html").read_text("utf-8")
    )
    rows = json.loads(read(files).query("value == value").to_json(orient="records"))
    first = min(
        (row["seed"] for row in rows if row["seed"] is not None), default=None
    )  # not the luckiest seed
    rows = [row for row in rows if row["seed"] in (first, None)]
    return page.render(
        pick=lambda **cells: [row for row in rows if cells.items() <= row.items()],
        tables=list(_tables(files)),
        stale=len(read(files, stale=True).drop_duplicates(KEY)),
        claims=verdicts(read(files)).to_dict("records"),
        interval=format_interval,
        label=label,
        explain=explain,
        glossary=GLOSSARY,
        words=WORDS,
        **about,
    )


def _tables(files):
    """Per protocol its models, then the differences between models: a title and a table of text."""
    frame = read(files)
    frame["sign"] = frame["base"].map(lambda base: "+" if base else "")
    frame["shown"] = [
        format_interval(*row) for row in frame[["value", "low", "high", "sign"]].to_numpy()
    ]
    shown = lambda one: (one[0][1], *(not one[0][0].startswith(name) for name in MAIN))  # noqa: E731
    names = dict(zip(frame["model"], frame["label"]))
    for (protocol, sign), rows in sorted(frame.groupby(["protocol", "sign"]), key=shown):
        table = wide(rows, protocol, "shown").astype(object)
        if "base" in table:
            table["base"] = table["base"].map(lambda base: names.get(base) or label(base))
        table = readable(table)
        yield (
            f"{label(protocol)}{sign and ': differences from base'}",
            table.where(table.notna(), "").astype(str),
        )
