"""PAN's authorship verification of 2020 and 2021: pairs of fanfiction, as pairs or dissolved into texts.

One JSON object a line, joined by ``id``: a pair is ``{"id", "fandoms": [a, b], "pair": [text, text]}``, its truth
``{"id", "same", "authors": [x, y]}``. The truth of ``pairs.jsonl`` is ``truth.jsonl`` beside it, that of ``name.jsonl``
is ``name-truth.jsonl``. The texts have no date: in the posts table the time is 0, the first second of 1970, so a split
by time and an hour of day say nothing. They are longer than what a collection keeps of a post by default (max_chars).
"""

import re
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import pandas as pd

from helpers.runs.artifacts import stamp
from helpers.cleaning.text import normalise_unicode
from helpers.sources.ndjson import records
from helpers.evaluation.pairs import dissolve
from helpers.sources import COLUMNS, Part, files

ROWS = 1000  # pairs of one frame: two texts of some 20,000 characters each
LINES = re.compile(r"(?<!truth)(?<!answers)\.jsonl(?:\.(?:gz|bz2|xz|zst))?$")
PAIR = ["id", "author_a", "author_b", "topic_a", "topic_b", "text_a", "text_b", "same"]


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """One part per file of pairs. Columns as everywhere, and ``id``, the pair's with "/a" or "/b"; topic = fandom.

    location: a file of pairs, a folder (searched recursively), plain or compressed, or a list of these.
    raw: accepted for all sources; the texts have no markup.
    Drops counted: those of :func:`read_pairs` (a pair each), empty and duplicate (a text each: the author's same text
    was in an earlier pair of the file).
    Raises ValueError where a location or the truth of a file is missing, or two files have the same name.
    """
    found = files("pan", location, lambda path: bool(LINES.search(path.name)))
    return [
        Part(name, lambda drops, path=path: read(path, drops), stamp(path) + stamp(truth_of(path)))
        for name, path in found.items()
    ]


def truth_of(path: Path) -> Path:
    """The file that holds the truth of a file of pairs. Raises ValueError where it is missing."""
    name = path.name.replace("pairs", "truth") if "pairs" in path.name else path.name.replace(".jsonl", "-truth.jsonl")
    if not (path.parent / name).is_file() or name == path.name:
        raise ValueError(f"pan: {name}, the truth of {path}, is missing")
    return path.parent / name


def read(path: Path, drops: Counter) -> Iterator[pd.DataFrame]:
    """The texts of one file in frames of at most 2 ROWS rows. 32 bytes and Python's overhead are held per text."""
    seen = set()
    for pairs in read_pairs(path, drops):
        texts = dissolve(pairs)
        filled = texts[texts.text.str.strip().astype(bool)]
        keys = [
            blake2b(f"{author}\n{text}".encode(), digest_size=16).digest()
            for author, text in zip(filled.author, filled.text)
        ]
        new = [key not in seen for key in keys]
        seen.update(keys)
        lost = Counter(duplicate=2 * len(pairs) - len(texts) + new.count(False), empty=len(texts) - len(filled))
        drops.update(+lost)  # without zeros
        if any(new):
            yield filled[new].assign(time=0)[[*COLUMNS, "id"]].reset_index(drop=True)


def read_pairs(path: Path, drops: Counter) -> Iterator[pd.DataFrame]:
    """The pairs of one file in frames of at most ROWS rows, columns PAIR; ``same`` is bool, all else text.

    Drops counted: broken_json, truncated_file, bad_pair (not two texts and two fandoms), duplicate_id, missing_truth,
    bad_truth (fields are missing, or ``same`` contradicts the authors); a truth without a pair is no loss.
    Raises ValueError where the truth is missing.
    """
    truth = {}
    for record in records(truth_of(path), drops):
        if isinstance(record, dict):
            truth.setdefault(str(record.get("id")), record)
    rows, seen = [], set()
    for record in records(path, drops):
        row = _row(record, truth, seen)
        if isinstance(row, str):
            drops[row] += 1
            continue
        rows.append(row)
        if len(rows) == ROWS:
            yield pd.DataFrame(rows, columns=PAIR)
            rows = []
    if rows:
        yield pd.DataFrame(rows, columns=PAIR)


def _row(record, truth, seen):
    """The values of PAIR, or the reason for the drop."""
    if not isinstance(record, dict) or type(record.get("id")) not in (str, int):
        return "bad_pair"
    sides = [record.get("fandoms"), record.get("pair")]
    if not all(_is_two(side, str) for side in sides):
        return "bad_pair"
    key = str(record["id"])
    if key in seen:
        return "duplicate_id"
    seen.add(key)
    if key not in truth:
        return "missing_truth"
    same, authors = truth[key].get("same"), truth[key].get("authors")
    if not (isinstance(same, bool) and _is_two(authors, (str, int)) and same == (str(authors[0]) == str(authors[1]))):
        return "bad_truth"
    return key, *map(sound, [*map(str, authors), *sides[0], *sides[1]]), same


def _is_two(values, kind):
    return isinstance(values, list) and len(values) == 2 and all(isinstance(value, kind) for value in values)
