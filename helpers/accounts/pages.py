"""Make a page of a template beside this module, with its style; text in it is escaped.

A page about pairs has one script, which saves decisions. A content security policy allows it by its
hash, and forbids loading anything.
"""

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

FOLDER = Path(__file__).parent
SCRIPT = "answer_page.js"
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "script-src 'sha256-{}'"
)


def percent(probability: float) -> str:
    """Return a probability as text; none is rounded to certainty or impossibility.

    Parameters
    ----------
    probability : float
        between 0 and 1
    """
    if probability > 0.995:
        return "over 99%"
    if probability < 0.005:
        return "under 1%"
    return f"{probability:.0%}"


def render_page(name: str, fields: dict, style: str = "") -> str:
    """Return a page as HTML.

    Parameters
    ----------
    name : str
        of the template, ``name.html``
    fields : dict
        what the template shows
    style : str
        name of its style, ``style.css``; by default that of the template
    """
    environment = Environment(
        loader=FileSystemLoader(FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["percent"] = percent
    rules = (FOLDER / f"{style or name}.css").read_text("utf-8")
    return environment.get_template(f"{name}.html").render(fields, style=rules)


def script_fields() -> dict[str, str]:
    """Return the script that saves decisions, and the policy that allows this script alone."""
    script = (FOLDER / SCRIPT).read_text("utf-8")
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return {"policy": POLICY.format(base64.b64encode(digest).decode()), "script": script}
