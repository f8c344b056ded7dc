"""Fill the templates: sentences that page and terminal share, and the page.

The page needs no network. What a record holds is escaped in it. One script saves decisions; a
content security policy allows it by its hash, and forbids loading anything.
"""

import base64
import hashlib
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, select_autoescape

from ..core.paths import PROGRAM
from .encoder import ENOUGH
from .match import MIN_LIKELY
from .reading import NO_HOURS
from .samples import MAX_TOKENS, MOST_POSTS
from .unjudged import UNSURE

FOLDER = Path(__file__).parent
TABLES = {  # files beside the page
    "pairs": "pairs.csv",
    "accounts": "accounts.csv",
    "same_texts": "same_texts.csv",
    "record": "answers.json",
}
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


@cache
def templates() -> Environment:
    """Return the templates; what they show of a record is escaped in HTML."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER), autoescape=select_autoescape(["html"])
    )
    environment.filters["percent"] = percent
    environment.globals |= {
        "enough": ENOUGH,
        "max_tokens": MAX_TOKENS,
        "min_likely": MIN_LIKELY,
        "most_posts": MOST_POSTS,
        "no_hours": NO_HOURS,
        "program": PROGRAM,
        "tables": TABLES,
        "unsure": UNSURE,
    }
    return environment


def sentences(part: str, record: dict) -> list[str]:
    """Return what is said in one part of an answer.

    Parameters
    ----------
    part : str
        a macro of ``sentences.txt``
    record : dict
        what it takes: a record, or a part of one
    """
    text = getattr(templates().get_template("sentences.txt").module, part)(record)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if line]


def render(record: dict) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    record : dict
        result of :func:`helpers.accounts.page.answer_record`
    """
    script = (FOLDER / "page.js").read_text("utf-8")
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return (
        templates()
        .get_template("page.html")
        .render(
            record,
            made=f"{datetime.now(UTC):%Y-%m-%d}",
            policy=POLICY.format(base64.b64encode(digest).decode()),
            script=script,
            style=(FOLDER / "page.css").read_text("utf-8"),
        )
    )
