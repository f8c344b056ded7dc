"""Make README.md, pages of docs/ and the model card from ``docs/templates/``.

Run ``.venv/bin/python docs/render.py`` after a change of a template or of a stored result. A test
says where a page is not what its template gives.

A template is Markdown with `Jinja <https://jinja.palletsprojects.com/en/stable/templates/>`_:

* ``{{ lead }}`` is a value of ``docs/templates/values.yaml`` as a table shows it:
  ``+0.068 (0.043 to 0.094)``. Its fields are ``value``, ``low`` and ``high`` (the interval of the
  first seed), ``sd``, ``seeds`` and ``queries``.
* ``{{ format(mrr.fusion / mrr.lsa, ".0%") }}`` is computed; a value alone is its number.
* ``{{ holds(lead.low > 0 and all(mrr.fusion > counting)) }}`` stands behind the sentence that
  states it. Rendering ends at a statement that does not hold; the error names its line.
* ``{% filter table %}`` begins a table: see ``docs/measured.py``.
"""

import sys
from functools import cache
from pathlib import Path

import jinja2
import measured
import numpy as np
import yaml

from helpers.core.names import GLOSSARY

ROOT = Path(__file__).resolve().parents[1]
TEMPLATES = ROOT / "docs" / "templates"
PAGES_ELSEWHERE = {
    "README.md": ROOT / "README.md",
    "open-small.md": ROOT / "helpers/accounts/shipped/open-small/README.md",
}


def shown(value: object) -> object:
    """Return a value as a sentence shows it; texts are returned as they are."""
    if isinstance(value, measured.Value):
        return value.text()
    if isinstance(value, measured.Group | np.ndarray):
        raise ValueError("a sentence shows one value, not several")
    if isinstance(value, float):
        return measured.Value(value).text()
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return value


def holds(statement: object) -> str:
    """Return an empty text; raise ValueError where a statement of a page does not hold."""
    if not isinstance(statement, bool | np.bool_):
        raise ValueError("neither true nor false: compare, or use all(...)")
    if not statement:
        raise ValueError("this statement does not hold")
    return ""


FUNCTIONS = {
    "abs": abs,
    "all": all,
    "any": any,
    "comparisons": measured.comparisons,
    "format": format,
    "glossary": GLOSSARY,
    "holds": holds,
    "log": np.log,
    "max": max,
    "min": min,
    "sum": sum,
}


@cache
def environment() -> jinja2.Environment:
    """Return the environment of templates, without the values of ``values.yaml``."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    templates.globals |= FUNCTIONS
    templates.filters["table"] = measured.table
    return templates


@cache
def values() -> dict[str, object]:
    """Return the values of ``values.yaml``, and where the repository is if CITATION.cff says so."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    named = measured.named_values((TEMPLATES / "values.yaml").read_text("utf-8"))
    return {"repository": cited.get("repository-code", "")} | named


def pages() -> dict[str, Path]:
    """Return the path of the page that each template makes."""
    names = sorted(path.name for path in TEMPLATES.glob("*.md"))
    return {name: PAGES_ELSEWHERE.get(name, ROOT / "docs" / name) for name in names}


def main() -> None:
    """Make all pages."""
    for name, page in pages().items():
        text = environment().get_template(name).render(values())
        if text != page.read_text("utf-8"):
            page.write_text(text, encoding="utf-8")
            print(page.relative_to(ROOT), file=sys.stderr)


if __name__ == "__main__":
    main()
