"""Reviews of Amazon: one JSON object per line, one file per category (sawatphol2022 A.2).

A review of the releases until 2018 is ``{"reviewerID", "reviewText", "unixReviewTime"}``, with the
time in seconds. The complete files of 2014 are not JSON but Python literals: all their lines would
be counted as broken_json, so use the 5-core files of 2014.
"""

import re
from pathlib import Path

import msgspec

from ..cleaning.text import normalise_unicode
from . import Part, file_parts, source_files
from .csv_and_json_lines import JSON_LINES, json_records
from .table_columns import unix_seconds

LINE_BREAK = re.compile(r"<br\s?/?>", re.I)


class Review(msgspec.Struct, gc=False):
    """The fields of a review that are read."""

    reviewerID: str | None = None
    reviewText: str | None = None
    unixReviewTime: object = None


def parts(location: str | list[str]) -> list[Part]:
    """Return one part per file; the topic is the category.

    Drops counted: broken_json, truncated_file, bad_review (author or text is missing or no
    text), bad_time (not between 1979 and 2100), empty. Noted: note_cp1252, lines with
    bytes that are not UTF-8.

    Parameters
    ----------
    location : str or list of str
        a file or a folder (searched recursively; product files, "meta_...", are not read), plain or
        compressed. The category is the file's name without its endings, "reviews_", and the "_5"
        of the 5-core files.

    Raises
    ------
    ValueError
        A location is missing, or two files have the same name.
    """
    return file_parts(source_files("amazon", location, _has_reviews), _rows)


def category(path: Path) -> str:
    """Return the product category of a file: "reviews_Books_5.json.gz" -> "Books"."""
    name = JSON_LINES.sub("", path.name).removeprefix("reviews_")
    return re.sub(r"_\d+$", "", name)


def _has_reviews(name):
    """Return whether a name is of a JSON lines file of reviews, not of product descriptions."""
    return JSON_LINES.search(name) and not name.startswith("meta_")


def _rows(path, drops):
    """Yield a post, or the reason of its drop, for each review of a file."""
    topic = category(path)
    for review in json_records(path, Review, drops, "bad_review"):
        yield _row(review, topic)


def _row(review, topic):
    """Return the values of the post that a review is, or the reason why it is dropped."""
    author = review.reviewerID
    text = review.reviewText
    if author is None or text is None or not author.strip():
        return "bad_review"
    time = unix_seconds(review.unixReviewTime)
    return author, time, topic, normalise_unicode(LINE_BREAK.sub("\n", text))
