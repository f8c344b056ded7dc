"""Reviews of Amazon: one JSON object per line, one file per category (sawatphol2022 A.2).

In the releases until 2018 a review is ``{"reviewerID", "reviewText", "unixReviewTime"}`` (seconds),
in that of 2023 ``{"user_id", "text", "timestamp"}`` (milliseconds); ``asin``, the product, is
optional in both. The complete files of 2014 are not JSON but Python literals: all their lines would
be counted as broken_json, so use the 5-core files of 2014.
"""

import re
from functools import partial
from pathlib import Path

from ..cleaning.text import normalise_unicode
from . import Part, file_parts, source_files
from .json_lines import JSON_LINES, json_records
from .timestamps import EARLIEST, LATEST

# names of the fields of author, text and time; number of time units per second
LAYOUT_2018 = ("reviewerID", "reviewText", "unixReviewTime", 1)
LAYOUT_2023 = ("user_id", "text", "timestamp", 1000)
LINE_BREAK = re.compile(r"<br\s?/?>", re.I)


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """Return one part per file; the topic is the category, the id the product or None.

    Drops counted: broken_json, truncated_file, bad_review (author or text is missing or no
    text), bad_time (no number, or not between 1979 and 2100), empty. Noted: note_cp1252, lines with
    bytes that are not UTF-8.

    Parameters
    ----------
    location : str or list of str
        a file or a folder (searched recursively; product files, "meta_...", are not read), plain or
        compressed. The category is the file's name without its endings, "reviews_", and the "_5"
        of the 5-core files.
    raw : bool
        keep HTML line breaks, which otherwise become newlines

    Raises
    ------
    ValueError
        A location is missing, or two files have the same name.
    """
    return file_parts(source_files("amazon", location, _has_reviews), partial(_rows, raw=raw))


def category(path: Path) -> str:
    """Return the product category of a file: "reviews_Books_5.json.gz" -> "Books"."""
    name = JSON_LINES.sub("", path.name).removeprefix("reviews_")
    return re.sub(r"_\d+$", "", name)


def _has_reviews(path):
    """Return whether a path is a JSON lines file of reviews, not of product descriptions."""
    return JSON_LINES.search(path.name) and not path.name.startswith("meta_")


def _rows(path, drops, raw):
    """Yield a post, or the reason of its drop, for each review of a file."""
    topic = category(path)
    for review in json_records(path, drops):
        yield _row(review, topic, raw)


def _row(review, topic, raw):
    """Return the values of the post that a review is, or the reason why it is dropped."""
    if not isinstance(review, dict):
        return "bad_review"
    layout = LAYOUT_2018 if "reviewerID" in review else LAYOUT_2023
    author_field, text_field, time_field, units = layout
    author = review.get(author_field)
    text = review.get(text_field)
    time = review.get(time_field)
    product = review.get("asin")

    if not (isinstance(author, str) and isinstance(text, str)):
        return "bad_review"
    if not author.strip():
        return "bad_review"
    if type(time) not in (int, float) or not EARLIEST * units <= time <= LATEST * units:
        return "bad_time"
    if not raw:
        text = LINE_BREAK.sub("\n", text)
    product = normalise_unicode(product) if isinstance(product, str) else None
    return author, int(time // units), topic, normalise_unicode(text), product
