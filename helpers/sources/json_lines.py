"""JSON lines as the large dumps publish them: plain or compressed, far larger than memory.

Some dumps are cut off: what can be read before the damage is read.
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

# bytes read at a time: what fits a cache; blocks of 16 MB took half as long again to parse
BLOCK_BYTES = 1 << 18
MAX_LINE_BYTES = 1 << 26  # a longer line is no record, and nothing of it is kept
# of zstd --long=31, which the Reddit dumps are packed with; the decoder holds as much of the output
ZSTD_WINDOW_BYTES = 1 << 31
OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
COMPRESSED = (*OPENERS, ".zst")
JSON_LINES = re.compile(r"\.(?:jsonl?|ndjson)(?:\.(?:gz|bz2|xz|zst))?$")  # names of files
MAGIC = {
    ".gz": rb"\x1f\x8b",
    ".bz2": rb"BZh",
    ".xz": rb"\xfd7zXZ",
    ".zst": rb"\(\xb5/\xfd|[P-_]\*M\x18",
}
NO_JSON = (ValueError, RecursionError)
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


def _as_cp1252(error):
    """Return bytes that are no UTF-8 as letters of Windows' Western code page.

    The holes of the page are spelt out, so that names stay apart.
    """
    letters = error.object[error.start : error.end].decode("cp1252", "backslashreplace")
    return letters.replace("\\", "%"), error.end  # no escape of JSON


codecs.register_error("cp1252", _as_cp1252)


def check_readable(kind: str, path: Path) -> None:
    """Check that a file is packed as its ending says, and is not UTF-16.

    Parameters
    ----------
    kind : str
        the source, for the message
    path : Path
        of the file

    Raises
    ------
    ValueError
        It is packed in another way, or UTF-16.
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
    """Yield the lines of a file, in blocks of whole lines that each end with a newline.

    A block holds about BLOCK_BYTES, or one line. Memory does not grow with the file.

    Drops counted: truncated_file, where the stream is damaged or cut (what can be unpacked before
    is yielded) or the last line of a file is not whole; broken_json, a line longer than
    MAX_LINE_BYTES.

    Parameters
    ----------
    path : Path
        ``.zst``, ``.gz``, ``.bz2`` and ``.xz`` are unpacked, of any window and any number of
        frames; any other file is plain
    drops : Counter
        of the reasons

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
            yield b"".join([*pending, memoryview(piece)[:end]])  # a slice would copy it once more
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
    """Yield what the lines of a file hold, of whatever type.

    Drops counted: those of :func:`byte_blocks`, and broken_json, a line that is no JSON. Noted:
    those of :func:`parse_json`.

    Parameters
    ----------
    path : Path
        of the file
    drops : Counter
        of the reasons
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
    """Return what one line holds.

    Noted in drops: note_cp1252, a line with bytes that are no UTF-8; they are read as cp1252.

    Parameters
    ----------
    line : bytes
        of JSON
    drops : Counter
        of the notes

    Raises
    ------
    ValueError or RecursionError
        The line is no JSON.
    """
    try:
        return json.loads(line)
    except UnicodeDecodeError:
        record = json.loads(line.decode("utf-8-sig", "cp1252"))
    drops["note_cp1252"] += 1
    return record


def _pieces(path):
    """Yield the content of a file in pieces, and None where it is damaged or cut."""
    with open(path, "rb") as file:
        try:
            yield from _unpacked(file, path.suffix)
        except DAMAGE:
            yield None


def _unpacked(file, suffix):
    """Yield the content in pieces.

    A cut file raises one of DAMAGE, after all that could be unpacked.
    """
    if suffix == ".zst":
        yield from _zstd_pieces(file)
        return
    if suffix in OPENERS:
        file = OPENERS[suffix](file)
    # read() would keep back what it had gathered when the damage shows
    yield from iter(partial(file.read1, BLOCK_BYTES), b"")


def _zstd_pieces(file):
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    # the stream reader of zstandard takes a cut file for a whole one; a frame knows its end
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
