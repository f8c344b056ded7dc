"""Reviews of Amazon, one JSON object a line and one file a product category: the topic (sawatphol2022 A.2).

Until 2018 a review is ``{"reviewerID", "reviewText", "unixReviewTime"}`` (seconds), in the release of 2023
``{"user_id", "text", "timestamp"}`` (milliseconds); ``asin``, the product, is optional in both. The complete files of
2014 are no JSON but Python's notation: their lines are counted as broken, take the 5-core files.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pandas as pd

from helpers.runs.artifacts import stamp
from helpers.cleaning.text import normalise_unicode
from helpers.sources.ndjson import records
from helpers.sources import Part, files, frame
from helpers.sources.timestamps import LATEST

ROWS = 10_000  # of one frame
ENDING = re.compile(r"\.(?:jsonl?|ndjson)(?:\.(?:gz|bz2|xz|zst))?$")
LAYOUTS = (("reviewerID", "reviewText", "unixReviewTime", 1), ("user_id", "text", "timestamp", 1000))
BREAK = re.compile(r"<br\s?/?>", re.I)


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """One part per file. Columns as everywhere, and ``id``, the product where it is given; topic = category.

    location: a file, a folder (searched recursively; files of products, "meta_...", are not read), plain or compressed,
    or a list of these. The category is the file's name without its endings, "reviews_" and the "_5" of the 5-core.
    raw: keep HTML line breaks, which are newlines otherwise.
    Drops counted: broken_json, truncated_file, bad_review (a field is missing or of another type), bad_time, empty.
    Raises ValueError where a location is missing or two files have the same name.
    """
    found = files("amazon", location, lambda path: bool(ENDING.search(path.name)) and not path.name.startswith("meta_"))
    return [Part(name, lambda drops, path=path: read(path, drops, raw), stamp(path)) for name, path in found.items()]


def category(path: Path) -> str:
    """ "reviews_Books_5.json.gz" -> "Books"."""
    return re.sub(r"_\d+$", "", ENDING.sub("", path.name).removeprefix("reviews_"))


def read(path: Path, drops: Counter, raw: bool = False) -> Iterator[pd.DataFrame]:
    """The reviews of one file in frames of at most ROWS rows."""
    rows = (_row(record, raw) for record in records(path, drops))
    while chunk := list(islice(rows, ROWS)):
        yield from frame(chunk, category(path), drops)


def _row(record, raw):
    """(author, time, text, id), or the reason for the drop."""
    if not isinstance(record, dict):
        return "bad_review"
    name, words, when, unit = LAYOUTS[0] if "reviewerID" in record else LAYOUTS[1]
    author, text, time = record.get(name), record.get(words), record.get(when)
    product = record.get("asin")
    author = normalise_unicode(author) if isinstance(author, str) else ""
    if not (author.strip() and isinstance(text, str)):
        return "bad_review"
    if type(time) not in (int, float) or not 0 <= time <= LATEST * unit:
        return "bad_time"
    text = normalise_unicode(text if raw else BREAK.sub("\n", text))
    if not text.strip():
        return "empty"
    return author, int(time // unit), text, normalise_unicode(product) if isinstance(product, str) else None
