"""Files of JSON lines, plain or compressed, which may be far larger than memory.

Of a damaged or cut file everything before the damage is read.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ..core.files import open_text

MAX_LINE_BYTES = 1 << 26  # a longer line is skipped and counted as broken_json
JSON_LINES = re.compile(r"\.(?:jsonl?|ndjson)(?:\.(?:gz|bz2|xz|zst))?$")  # "RC_2012-03.json.zst"


def json_records(
    path: Path, kind: type, drops: Counter, misfit: str = "broken_json"
) -> Iterator[object]:
    """Yield the JSON object of each line of a file; blank lines are skipped.

    Drops counted: ``misfit``, a line that is JSON of another kind; broken_json, a line that is no
    JSON or longer than MAX_LINE_BYTES; truncated_file, where the file is damaged or cut (the lines
    before the damage are yielded) or its last line is no JSON and has no newline. Noted:
    note_cp1252, a line with bytes that are not UTF-8; they are read as cp1252.

    Parameters
    ----------
    path : Path
        path of the file, which :func:`helpers.core.files.read_pieces` unpacks
    kind : type
        a :class:`msgspec.Struct` of the fields to read and their strict types, or dict
    drops : Counter
        number of drops by reason, increased in place
    misfit : str
        reason under which a line of another kind is counted

    Raises
    ------
    ValueError
        The file unpacks to far more than its size.
    """
    decoder = msgspec.json.Decoder(kind)
    for line in _lines(path, drops):
        if not line.strip():
            continue
        try:
            record = _record(line, decoder, drops)
        except msgspec.ValidationError:
            drops[misfit] += 1
        except (ValueError, RecursionError):
            if line.endswith(b"\n"):
                drops["broken_json"] += 1
            else:
                drops["truncated_file"] += 1
        else:
            yield record


def _lines(path, drops):
    """Yield the lines of a file up to its end or damage; count damage and lines that are too long.

    Memory does not grow with the file.
    """
    is_cut = False
    is_too_long = False
    with open_text(path) as file:
        try:
            while piece := file.buffer.readline(MAX_LINE_BYTES):
                is_end = piece.endswith(b"\n")
                is_too_long = is_too_long or (not is_end and len(piece) == MAX_LINE_BYTES)
                if not is_too_long:
                    yield piece
                elif is_end:
                    drops["broken_json"] += 1
                    is_too_long = False
        except EOFError:
            is_cut = True
    if is_cut or is_too_long:
        drops["truncated_file"] += 1


def _record(line, decoder, drops):
    """Return the value of one line, of the decoder's type.

    Python's parser reads what the decoder refuses: NaN, lone surrogates, bytes that are not UTF-8.
    """
    try:
        return decoder.decode(line)
    except (ValueError, RecursionError):
        pass
    try:
        value = json.loads(line)
    except UnicodeDecodeError:
        value = json.loads(line.decode("utf-8-sig", "cp1252"))
        drops["note_cp1252"] += 1
    return msgspec.convert(value, decoder.type)
