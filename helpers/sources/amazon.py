"""Reviews of Amazon, one JSON object a line and one file a product category: the topic (sawatphol2022 A.2).

Until 2018 a review is ``{"reviewerID", "reviewText", "unixReviewTime"}`` (seconds), in the release of 2023
``{"user_id", "text", "timestamp"}`` (milliseconds); ``asin``, the product, is optional in both. The complete files of
2014 are no JSON but Python's notation: their lines are counted as broken, take the 5-core files.
"""

import re
from functools import partial
from pathlib import Path

from helpers.cleaning.text import normalise_unicode
from helpers.sources import Part, file_parts, source_files
from helpers.sources.json_lines import JSON_LINES, json_records
from helpers.sources.timestamps import EARLIEST, LATEST

LAYOUTS = (
    ("reviewerID", "reviewText", "unixReviewTime", 1),
    ("user_id", "text", "timestamp", 1000),
)
BREAK = re.compile(r"<br\s?/?>", re.I)


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """One part per file; topic = category, ``id`` = the product where it is given.

    location: a file, a folder (searched recursively; files of products, "meta_...", are not read), plain or compressed,
        or a list of these. The category is the file's name without endings, "reviews_" and the "_5" of the 5-core.
    raw: keep HTML line breaks, which are newlines otherwise.
    Drops counted: broken_json, truncated_file, bad_review (a field is missing or of another type), bad_time (no number,
    or not between 1979 and 2100), empty. Noted: note_cp1252, lines with bytes that are no UTF-8.
    Raises ValueError where a location is missing or two files have the same name.
    """
    named = source_files(
        "amazon",
        location,
        lambda path: JSON_LINES.search(path.name) and not path.name.startswith("meta_"),
    )
    return file_parts(named, partial(_rows, raw=raw))


def category(path: Path) -> str:
    """ "reviews_Books_5.json.gz" -> "Books"."""
    return re.sub(r"_\d+$", "", JSON_LINES.sub("", path.name).removeprefix("reviews_"))


def _rows(path, drops, raw):
    return (_row(record, category(path), raw) for record in json_records(path, drops))


def _row(record, topic, raw):
    """The values of a post, or the reason for the drop."""
    if not isinstance(record, dict):
        return "bad_review"
    name, words, when, unit = LAYOUTS[0] if "reviewerID" in record else LAYOUTS[1]
    author, text, time, product = map(record.get, (name, words, when, "asin"))
    author = normalise_unicode(author) if isinstance(author, str) else ""
    if not (author.strip() and isinstance(text, str)):
        return "bad_review"
    if type(time) not in (int, float) or not EARLIEST * unit <= time <= LATEST * unit:
        return "bad_time"
    text = normalise_unicode(text if raw else BREAK.sub("\n", text))
    if not text.strip():
        return "empty"
    return (
        author,
        int(time // unit),
        topic,
        text,
        normalise_unicode(product) if isinstance(product, str) else None,
    )
