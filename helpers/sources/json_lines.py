"""Files of JSON lines, plain or compressed, which may be far larger than memory.

Of a damaged or cut file everything before the damage is read.
"""

import bz2
import codecs
import gzip
import json
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import zstandard

# bytes read at a time: they fit into the processor's cache; 16 MB take 1.5 times as long to parse
BLOCK_BYTES = 1 << 18
MAX_LINE_BYTES = 1 << 26  # a longer line is skipped and counted as broken_json
# window of zstd --long=31, which the Reddit dumps use; the decoder holds so much output in memory
ZSTD_WINDOW_BYTES = 1 << 31
OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
COMPRESSED = (*OPENERS, ".zst")
JSON_LINES = re.compile(r"\.(?:jsonl?|ndjson)(?:\.(?:gz|bz2|xz|zst))?$")  # "RC_2012-03.json.zst"
# first bytes of compressed files, as expressions; zstd files may begin with a skippable frame
MAGIC = {
    ".gz": rb"\x1f\x8b",
    ".bz2": rb"BZh",
    ".xz": rb"\xfd7zXZ",
    ".zst": rb"\(\xb5/\xfd|[P-_]\*M\x18",
}
NO_JSON = (ValueError, RecursionError)  # errors for a line that is not JSON, or nested too deeply
# errors for a damaged or cut file
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


def _as_cp1252(error):
    """Return bytes that are not UTF-8 as letters of Windows-1252, and where decoding goes on.

    A byte that means nothing there either becomes "%x81", so that two names that differ in it stay
    different.
    """
    letters = error.object[error.start : error.end].decode("cp1252", "backslashreplace")
    return letters.replace("\\", "%"), error.end  # a backslash would begin an escape of JSON


codecs.register_error("cp1252", _as_cp1252)


def check_readable(kind: str, path: Path) -> None:
    """Check that a file is compressed as its ending says, and is not UTF-16.

    Parameters
    ----------
    kind : str
        name of the source, for the error message
    path : Path
        path of the file; an empty file passes

    Raises
    ------
    ValueError
        The file is not compressed as its ending says, or is UTF-16.
    """
    with open(path, "rb") as file:
        head = file.read(6)
        if head and path.suffix in MAGIC and not re.match(MAGIC[path.suffix], head):
            raise ValueError(
                f"{kind}: {path} is not packed as its ending {path.suffix} says: "
                "download or rename it"
            )
        file.seek(0)
        with suppress(*DAMAGE):
            head = next(_unpacked(file, path.suffix), b"")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError(f"{kind}: {path} is UTF-16: save it as UTF-8")


def byte_blocks(path: Path, drops: Counter) -> Iterator[bytes]:
    """Yield a file in blocks of whole lines; every block ends with a newline.

    A block holds about BLOCK_BYTES, or one longer line. Memory does not grow with the file.

    Drops counted: truncated_file, where the file is damaged or cut (the lines before the damage are
    yielded) or its last line is not JSON and has no newline; broken_json, a line longer than
    MAX_LINE_BYTES.

    Parameters
    ----------
    path : Path
        path of the file; ``.zst`` (with windows up to ZSTD_WINDOW_BYTES), ``.gz``, ``.bz2`` and
        ``.xz`` are unpacked, with any number of frames; any other file is read as it is
    drops : Counter
        number of drops by reason, increased in place

    Raises
    ------
    OSError
        The file cannot be opened.
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
    with open(path, "rb") as file:
        try:
            yield from _unpacked(file, path.suffix)
        except DAMAGE:
            yield None


def _unpacked(file, suffix):
    """Yield the unpacked content of an open file in pieces.

    A cut file raises one of DAMAGE, after everything that could be unpacked was yielded.
    """
    if suffix == ".zst":
        yield from _zstd_pieces(file)
        return
    if suffix in OPENERS:
        file = OPENERS[suffix](file)
    # read1, because read() would lose what it has gathered when it meets the damage
    yield from iter(partial(file.read1, BLOCK_BYTES), b"")


def _zstd_pieces(file):
    """Yield the unpacked content of a zstd file, of one frame or several, in pieces."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    # zstandard's stream reader does not notice a cut file; this object knows its frame's end
    frame = None
    while packed := file.read(BLOCK_BYTES // 8):
        while packed:
            if frame is None:
                frame = decompressor.decompressobj()
            yield frame.decompress(packed)
            packed = frame.unused_data
            if frame.eof:
                frame = None
    if frame:
        raise EOFError("the last frame is cut")
