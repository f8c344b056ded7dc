"""PAN's authorship verification of 2020 and 2021: pairs of fanfiction, as pairs or dissolved into texts.

One JSON object a line, joined by ``id``: a pair is ``{"id", "fandoms": [a, b], "pair": [text, text]}``, its truth
``{"id", "same", "authors": [x, y]}``. The truth of ``pairs.jsonl`` is ``truth.jsonl`` beside it, that of ``name.jsonl``
is ``name-truth.jsonl``. The texts have no date: in the posts table the time is 0, the first second of 1970, so a split
by time and an hour of day say nothing. They are longer than what a collection keeps of a post by default (max_chars).
"""

import re
from functools import partial
from hashlib import blake2b
from pathlib import Path

from helpers.cleaning.text import normalise_unicode
from helpers.core.artifacts import file_stats_fingerprint
from helpers.sources import Part, as_list, existing_path, json_lines, row_part, source_files
from helpers.sources.json_lines import json_records

ROWS = 2000  # of one frame: texts of some 20,000 characters each
LINES = re.compile(r"(?<!truth)(?<!answers)\.jsonl(?:\.(?:gz|bz2|xz|zst))?$")


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """One part per file of pairs. Columns as everywhere, and ``id``, "<file>/<pair>/a" or "/b"; topic = fandom.

    location: a file of pairs, a folder (searched recursively), plain or compressed, or a list of these. <file> is the
        name of the folder and the path below it, so that a split may take "pan21-test" as it is.
    raw: accepted for all sources; the texts have no markup.
    Drops counted: broken_json, truncated_file; of pairs bad_pair (not two texts and two fandoms),
    duplicate_id, missing_truth, bad_truth (fields are missing, or ``same`` contradicts the authors); of texts empty (no
    author, fandom or text) and duplicate (the author's same text was in an earlier pair of the file). A truth without a
    pair is no loss. Noted: note_cp1252, lines with bytes that are no UTF-8.
    Raises ValueError where a location or the truth of a file is missing, or two of them have the same name.
    """
    roots = [existing_path("pan", place) for place in as_list(location)]
    if len({root.name for root in roots}) < len(roots):
        raise ValueError(f"pan: two of {', '.join(map(str, roots))} have the same name; rename one")
    named = {
        f"{root.name}/{name}" if root.is_dir() else name: path
        for root in roots
        for name, path in source_files(
            "pan", str(root), lambda path: LINES.search(path.name)
        ).items()
    }
    # the name is part of the ids: two years may use one twice
    return [
        row_part(
            name,
            partial(_texts, path, name),
            file_stats_fingerprint(path) + file_stats_fingerprint(read_pan_truth(path)),
            ROWS,
        )
        for name, path in named.items()
    ]


def read_pan_truth(path: Path) -> Path:
    """The file that holds the truth of a file of pairs. Raises ValueError where it is missing."""
    name = (
        path.name.replace("pairs", "truth")
        if "pairs" in path.name
        else path.name.replace(".jsonl", "-truth.jsonl")
    )
    if not (path.parent / name).is_file() or name == path.name:
        raise ValueError(f"pan: {name}, the truth of {path}, is missing")
    json_lines.check_readable("pan", path.parent / name)
    return path.parent / name


def _texts(path, name, drops):
    """The texts of one file. 32 bytes and Python's overhead are held per text."""
    truth, ids, seen = {}, set(), set()
    for record in json_records(read_pan_truth(path), drops):
        if isinstance(record, dict):
            truth.setdefault(str(record.get("id")), record)
    for record in json_records(path, drops):
        if reason := _fault(record, truth, ids):
            yield reason
            continue
        key = str(record["id"])
        for side, author, topic, text in zip(
            "ab", truth[key]["authors"], record["fandoms"], record["pair"]
        ):
            author, topic, text = map(normalise_unicode, (str(author), topic, text))
            digest = blake2b(f"{author}\n{text}".encode(), digest_size=16).digest()
            if digest in seen or not (author.strip() and topic.strip() and text.strip()):
                yield "duplicate" if digest in seen else "empty"
            else:
                yield author, 0, topic, text, f"{name}/{key}/{side}"
            seen.add(digest)


def _fault(record, truth, ids):
    """The reason to drop a pair, or None; remembers its id."""
    if not (
        isinstance(record, dict)
        and type(record.get("id")) in (str, int)
        and _is_two(record.get("fandoms"), str)
        and _is_two(record.get("pair"), str)
    ):
        return "bad_pair"
    key = str(record["id"])
    if key in ids:
        return "duplicate_id"
    ids.add(key)
    if key not in truth:
        return "missing_truth"
    same, authors = truth[key].get("same"), truth[key].get("authors")
    agree = (
        isinstance(same, bool)
        and _is_two(authors, (str, int))
        and same == (str(authors[0]) == str(authors[1]))
    )
    return None if agree else "bad_truth"


def _is_two(values, kind):
    return (
        isinstance(values, list)
        and len(values) == 2
        and all(isinstance(value, kind) for value in values)
    )
