"""PAN's authorship verification of 2020 and 2021: pairs of fanfiction, dissolved into texts.

One JSON object a line, joined by ``id``: a pair is ``{"id", "fandoms": [a, b], "pair": [text,
text]}``, its truth ``{"id", "same", "authors": [x, y]}``. The truth of ``pairs.jsonl`` is
``truth.jsonl`` beside it, that of ``name.jsonl`` is ``name-truth.jsonl``. The texts have no date:
in the posts table the time is 0, the first second of 1970, so a split by time and an hour of day
say nothing. They are longer than what a collection keeps of a post by default (max_chars).
"""

import re
from functools import partial
from hashlib import blake2b
from pathlib import Path

from helpers.cleaning.text import normalise_unicode
from helpers.core.artifacts import file_stats_fingerprint
from helpers.sources import Part, existing_paths, json_lines, row_part, source_files
from helpers.sources.json_lines import json_records

FRAME_ROWS = 2000  # of one frame: texts of some 20,000 characters each
PAIRS_FILE = re.compile(r"(?<!truth)(?<!answers)\.jsonl(?:\.(?:gz|bz2|xz|zst))?$")


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """Return one part per file of pairs; topic = fandom, ``id`` = "<file>/<pair>/a" or "/b".

    Drops counted: broken_json, truncated_file; of pairs bad_pair (not two texts and two fandoms),
    duplicate_id, missing_truth, bad_truth (fields are missing, or ``same`` contradicts the
    authors); of texts empty (no author, fandom or text) and duplicate (the author's same text was
    in an earlier pair of the file). A truth without a pair is no loss. Noted: note_cp1252, lines
    with bytes that are no UTF-8.

    Parameters
    ----------
    location : str or list of str
        a file of pairs or a folder (searched recursively), plain or compressed. <file> is the name
        of the folder and the path below it, so that a split may take "pan21-test" as it is.
    raw : bool
        accepted for all sources; the texts have no markup

    Raises
    ------
    ValueError
        A location or the truth of a file is missing, or two of them have the same name.
    """
    roots = existing_paths("pan", location)
    if len({root.name for root in roots}) < len(roots):
        raise ValueError(f"pan: two of {', '.join(map(str, roots))} have the same name; rename one")
    pan_parts = []
    for root in roots:
        files = source_files("pan", str(root), lambda path: PAIRS_FILE.search(path.name))
        for name, path in files.items():
            # the name is part of the ids: two years may use one twice
            file_name = name
            if root.is_dir():
                file_name = f"{root.name}/{name}"
            truth_path = pan_truth_path(path)
            rows = partial(_rows, path, truth_path, file_name)
            stamp = file_stats_fingerprint(path) + file_stats_fingerprint(truth_path)
            pan_parts.append(row_part(file_name, rows, stamp, FRAME_ROWS))
    return pan_parts


def pan_truth_path(path: Path) -> Path:
    """Return the file that holds the truth of a file of pairs.

    Raises
    ------
    ValueError
        It is missing.
    """
    if "pairs" in path.name:
        truth_path = path.with_name(path.name.replace("pairs", "truth"))
    else:
        truth_path = path.with_name(path.name.replace(".jsonl", "-truth.jsonl"))
    if not truth_path.is_file() or truth_path == path:
        raise ValueError(f"pan: {truth_path.name}, the truth of {path}, is missing")
    json_lines.check_readable("pan", truth_path)
    return truth_path


def _rows(path, truth_path, file_name, drops):
    """Yield the texts of one file. 32 bytes and Python's overhead are held per text."""
    truths = {}
    for truth in json_records(truth_path, drops):
        if isinstance(truth, dict):
            truths.setdefault(str(truth.get("id")), truth)

    pair_ids = set()
    digests = set()
    for pair in json_records(path, drops):
        if not _is_pair(pair):
            yield "bad_pair"
            continue
        pair_id = str(pair["id"])
        truth = truths.get(pair_id)
        if pair_id in pair_ids:
            yield "duplicate_id"
        elif truth is None:
            yield "missing_truth"
        elif not _is_truth(truth):
            yield "bad_truth"
        else:
            yield from _texts(pair, truth["authors"], f"{file_name}/{pair_id}", digests)
        pair_ids.add(pair_id)


def _texts(pair, authors, pair_name, digests):
    """Yield the two texts of a pair; digests : of the texts so far, by their authors."""
    for side, author, topic, text in zip("ab", authors, pair["fandoms"], pair["pair"]):
        author = normalise_unicode(str(author))
        text = normalise_unicode(text)
        digest = blake2b(f"{author}\n{text}".encode(), digest_size=16).digest()
        if digest in digests:
            yield "duplicate"
        else:
            yield author, 0, normalise_unicode(topic), text, f"{pair_name}/{side}"
        digests.add(digest)


def _is_pair(pair):
    return (
        isinstance(pair, dict)
        and type(pair.get("id")) in (str, int)
        and _are_two(pair.get("fandoms"), str)
        and _are_two(pair.get("pair"), str)
    )


def _is_truth(truth):
    same = truth.get("same")
    authors = truth.get("authors")
    return (
        isinstance(same, bool)
        and _are_two(authors, str | int)
        and same == (str(authors[0]) == str(authors[1]))
    )


def _are_two(values, kind):
    """Return whether there are two values of one kind in a list."""
    is_pair = isinstance(values, list) and len(values) == 2
    return is_pair and all(isinstance(value, kind) for value in values)
