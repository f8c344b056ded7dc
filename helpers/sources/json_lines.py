"""Files of JSON lines, plain or compressed, which may be far larger than memory.

Of a damaged or cut file everything before the damage is read.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ..core.files import read_pieces

MAX_LINE_BYTES = 1 << 26  # a longer line is skipped and counted as broken_json
JSON_LINES = re.compile(r"\.(?:jsonl?|ndjson)(?:\.(?:gz|bz2|xz|zst))?$")  # "RC_2012-03.json.zst"
NO_JSON = (ValueError, RecursionError)  # errors for a line that is not JSON, or nested too deeply


def byte_blocks(path: Path, drops: Counter) -> Iterator[bytes]:
    """Yield a file in blocks of whole lines; every block ends with a newline.

    A block holds about :data:`helpers.core.files.PIECE_BYTES`, or one longer line. Memory does not
    grow with the file.

    Drops counted: truncated_file, where the file is damaged or cut (the lines before the damage are
    yielded) or its last line is not JSON and has no newline; broken_json, a line longer than
    MAX_LINE_BYTES.

    Parameters
    ----------
    path : Path
        path of the file, which :func:`helpers.core.files.read_pieces` unpacks
    drops : Counter
        number of drops by reason, increased in place

    Raises
    ------
    ValueError
        The file unpacks to far more than its size.
    """
    pending = []  # the pieces of a line whose end is not read yet
    pending_bytes = 0
    is_cut = False
    for piece in _pieces(path):
        if piece is None:
            is_cut = True
            break
        if pending_bytes > MAX_LINE_BYTES and b"\n" in piece:
            drops["broken_json"] += 1
            piece = piece[piece.index(b"\n") + 1 :]
            pending_bytes = 0
        end = piece.rfind(b"\n") + 1
        if end:
            # a memoryview, because a slice of bytes would be one more copy
            yield b"".join([*pending, memoryview(piece)[:end]])
            pending = []
            pending_bytes = 0
        pending.append(piece[end:])
        pending_bytes += len(piece) - end
        if pending_bytes > MAX_LINE_BYTES:
            pending = []

    last_line = b"".join(pending)
    try:
        parse_json(last_line, Counter())
    except NO_JSON:
        is_cut = is_cut or bool(last_line.strip()) or pending_bytes > MAX_LINE_BYTES
    else:
        yield last_line + b"\n"
    if is_cut:
        drops["truncated_file"] += 1


def json_records(path: Path, drops: Counter) -> Iterator:
    """Yield the JSON value of each line of a file, of any type; blank lines are skipped.

    Drops counted: those of :func:`byte_blocks`, and broken_json, a line that is not JSON. Noted:
    those of :func:`parse_json`.

    Parameters
    ----------
    path : Path
        path of the file, see :func:`byte_blocks`
    drops : Counter
        number of drops by reason, increased in place
    """
    for block in byte_blocks(path, drops):
        for line in block.split(b"\n"):
            if not line.strip():
                continue
            try:
                yield parse_json(line, drops)
            except NO_JSON:
                drops["broken_json"] += 1


def parse_json(line: bytes, drops: Counter):
    """Return the value of one line of JSON.

    Noted in drops: note_cp1252, a line with bytes that are not UTF-8; they are read as cp1252.

    Parameters
    ----------
    line : bytes
        the line, with or without its newline
    drops : Counter
        number of notes, increased in place

    Raises
    ------
    ValueError or RecursionError
        The line is not JSON.
    """
    try:
        return json.loads(line)
    except UnicodeDecodeError:
        record = json.loads(line.decode("utf-8-sig", "cp1252"))
    drops["note_cp1252"] += 1
    return record


def _pieces(path):
    """Yield the unpacked content of a file in pieces, and None last where it is damaged or cut."""
    try:
        yield from read_pieces(path)
    except EOFError:
        yield None
