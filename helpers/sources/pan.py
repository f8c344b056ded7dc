"""PAN's authorship verification of 2020 and 2021: pairs of fanfiction texts, read as single texts.

Files hold one JSON object per line; pairs and truths are joined by ``id``. A pair is ``{"id",
"fandoms": [a, b], "pair": [text, text]}``, its truth ``{"id", "same", "authors": [x, y]}``. The
truth of ``pairs.jsonl`` is ``truth.jsonl`` beside it, that of ``name.jsonl`` is
``name-truth.jsonl``. The texts have no date: in the posts table the time is 0, the first second of
1970, so a split by time and the hour of day are meaningless. The texts are longer than the default
``max_chars`` of a collection, which cuts them.
"""

import re
from functools import partial
from hashlib import blake2b
from pathlib import Path

import msgspec

from ..cleaning.authors import escape_surrogates
from ..cleaning.text import normalise_unicode
from ..core.artifacts import file_stats_fingerprint
from ..core.files import check_readable
from ..core.parameters import unknown
from . import Part, as_list, existing_path, source_files
from .csv_and_json_lines import json_records

# "pairs.jsonl" and "name.jsonl.gz", but no "truth.jsonl" or "name-answers.jsonl"
PAIRS_FILE = re.compile(r"(?<!truth)(?<!answers)\.jsonl(?:\.(?:gz|bz2|xz|zst))?$")


class Pair(msgspec.Struct):
    """A pair of texts."""

    id: str | int
    fandoms: tuple[str, str]
    pair: tuple[str, str]


class Truth(msgspec.Struct):
    """The authors of a pair's texts, and whether they are one."""

    id: str | int
    same: bool
    authors: tuple[str | int, str | int]

    def __post_init__(self):
        """Raise ValueError, which makes the record a misfit, where the fields do not agree."""
        first, second = map(str, self.authors)
        if self.same != (first == second):
            raise ValueError("same contradicts the authors")


def parts(location: str | list[str], *, keep_repeats: str | list[str] | None = None) -> list[Part]:
    """Return one part per file of pairs.

    A text's topic is its fandom, its id "<file>/<pair>/a" or "<file>/<pair>/b".

    Drops of pairs: broken_json, truncated_file, bad_pair (not two texts and two fandoms),
    duplicate_id, missing_truth. Drops of truths: bad_truth (fields are missing, or ``same``
    contradicts the authors), so that the pair's is missing. Drops of single texts: empty (no
    author, fandom or text), duplicate (the author has the same text earlier in the file, which is
    not in ``keep_repeats``). A truth without a pair is not counted. Noted: note_cp1252, lines with
    bytes that are not UTF-8.

    Parameters
    ----------
    location : str or list of str
        a file of pairs or a folder (searched recursively), plain or compressed. <file> of an id
        is the file's name, or for a folder the folder's name and the path below it, so that a
        split can select all texts below "pan21-test" by their ids.
    keep_repeats : str or list of str
        names of files or folders of ``location`` in which a text stays in each of its pairs. The
        collection must keep copies, too

    Raises
    ------
    ValueError
        A location or the truth of a file is missing, two locations have the same name, or
        ``keep_repeats`` names no location.
    """
    roots = [existing_path("pan", place) for place in as_list(location)]
    if len({root.name for root in roots}) < len(roots):
        raise ValueError(f"pan: two of {', '.join(map(str, roots))} have the same name; rename one")
    keep_repeats = as_list(keep_repeats or [])
    message = unknown(keep_repeats, [root.name for root in roots], "location in keep_repeats")
    if message:
        raise ValueError(f"pan: {message}")
    pan_parts = []
    for root in roots:
        for name, path in source_files("pan", root, PAIRS_FILE.search).items():
            # the folder's name is part of the ids: files of two years may have the same name
            file_name = name
            if root.is_dir():
                file_name = f"{root.name}/{name}"
            truth_path = pan_truth_path(path)
            rows = partial(_rows, path, truth_path, file_name, root.name in keep_repeats)
            stamp = file_stats_fingerprint(path) + file_stats_fingerprint(truth_path)
            pan_parts.append(Part(file_name, rows, stamp))
    return pan_parts


def pan_truth_path(path: Path) -> Path:
    """Return the path of the file that holds the truth of a file of pairs.

    Raises
    ------
    ValueError
        That file is missing or unreadable.
    """
    if "pairs" in path.name:
        truth_path = path.with_name(path.name.replace("pairs", "truth"))
    else:
        truth_path = path.with_name(path.name.replace(".jsonl", "-truth.jsonl"))
    if not truth_path.is_file() or truth_path == path:
        raise ValueError(f"pan: {truth_path.name}, the truth of {path}, is missing")
    check_readable(truth_path)
    return truth_path


def _rows(path, truth_path, file_name, keeps_repeats, drops):
    """Yield the texts of one file, and the reasons of drops.

    In memory are all truths, the ids of the pairs so far, and a hash of 16 bytes per text. Where
    repeats are kept, only a pair of twice the same text loses one.
    """
    truths = {}
    for truth in json_records(truth_path, Truth, drops, "bad_truth"):
        truths.setdefault(str(truth.id), truth.authors)

    pair_ids = set()
    digests = set()
    for pair in json_records(path, Pair, drops, "bad_pair"):
        pair_id = str(pair.id)
        if pair_id in pair_ids:
            yield "duplicate_id"
        elif pair_id not in truths:
            yield "missing_truth"
        else:
            yield from _texts(pair, truths[pair_id], f"{file_name}/{pair_id}", digests)
        pair_ids.add(pair_id)
        if keeps_repeats:
            digests.clear()


def _texts(pair, authors, pair_name, digests):
    """Yield the two texts of a pair, or "duplicate" in place of one that its author has already.

    ``digests`` holds a hash of author and text of all texts so far; it is added to in place.
    """
    for side, author, topic, text in zip("ab", authors, pair.fandoms, pair.pair):
        author = escape_surrogates(str(author))
        text = normalise_unicode(text)
        digest = blake2b(f"{author}\n{text}".encode(), digest_size=16).digest()
        if digest in digests:
            yield "duplicate"
        else:
            yield author, 0, normalise_unicode(topic), text, f"{pair_name}/{side}"
        digests.add(digest)
