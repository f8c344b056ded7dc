"""JSON lines as the large dumps publish them: plain or compressed, far larger than memory, sometimes cut off."""

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

BLOCK = (
    1 << 18
)  # bytes read at a time: what fits a cache; blocks of 16 MB took half as long again to parse
LONGEST = 1 << 26  # bytes: a longer line is no record, and nothing of it is kept
WINDOW = (
    1 << 31
)  # of zstd --long=31, which the Reddit dumps are packed with; the decoder holds as much of the output
OPEN = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
COMPRESSED = (*OPEN, ".zst")
JSON_LINES = re.compile(r"\.(?:jsonl?|ndjson)(?:\.(?:gz|bz2|xz|zst))?$")  # names of files
MAGIC = {
    ".gz": rb"\x1f\x8b",
    ".bz2": rb"BZh",
    ".xz": rb"\xfd7zXZ",
    ".zst": rb"\(\xb5/\xfd|[P-_]\*M\x18",
}
NO_JSON = (ValueError, RecursionError)
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


def _cp1252(error):
    """Bytes that are no UTF-8 as letters of Windows' Western code page; its holes are spelt out: names stay apart."""
    letters = error.object[error.start : error.end].decode("cp1252", "backslashreplace")
    return letters.replace("\\", "%"), error.end  # no escape of JSON


codecs.register_error("cp1252", _cp1252)


def check_readable(kind: str, path: Path) -> None:
    """Raise ValueError where a file is not packed as its ending says, or is UTF-16. kind: the source."""
    with open(path, "rb") as file:
        head = file.read(6)
        if head and path.suffix in MAGIC and not re.match(MAGIC[path.suffix], head):
            raise ValueError(
                f"{kind}: {path} is not packed as its ending {path.suffix} says: download or rename it"
            )
        file.seek(0)
        with suppress(*DAMAGE):
            head = next(_unpacked(file, path.suffix), b"")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError(f"{kind}: {path} is UTF-16: save it as UTF-8")


def byte_blocks(path: Path, drops: Counter) -> Iterator[bytes]:
    """The lines of a file, in blocks that each end with a newline and hold whole lines, about BLOCK bytes or one line.

    path: ``.zst``, ``.gz``, ``.bz2`` and ``.xz`` are unpacked, of any window and any number of frames; else plain.
    Drops counted: truncated_file, where the stream is damaged or cut (what can be unpacked before is yielded) or the
    last line of a file is not whole; broken_json, a line longer than LONGEST. Memory does not grow with the file.
    Raises OSError where the file cannot be opened.
    """
    tail, size, cut = [], 0, False  # the pieces of a line whose end is not read yet
    with open(path, "rb") as file:
        unpacked = _unpacked(file, path.suffix)
        while True:
            try:
                piece = next(unpacked, None)
            except DAMAGE:
                cut, piece = True, None
            if piece is None:
                break
            end = piece.rfind(b"\n") + 1
            if end and size > LONGEST:
                drops["broken_json"] += 1
                start, size = piece.index(b"\n") + 1, 0
                piece, end = piece[start:], end - start
            if end:
                yield b"".join([*tail, memoryview(piece)[:end]])  # a slice would copy it once more
                tail, size = [], 0
            size += len(piece) - end
            tail = [*tail, piece[end:]] if size <= LONGEST else []
    last = b"".join(tail)
    try:
        parse_json(last, Counter())
    except NO_JSON:
        cut = cut or bool(last.strip()) or size > LONGEST
    else:
        yield last + b"\n"
    if cut:
        drops["truncated_file"] += 1


def json_records(path: Path, drops: Counter) -> Iterator:
    """What the lines of a file hold, of whatever type.

    Drops counted: those of :func:`byte_blocks`, and broken_json, a line that is no JSON. Noted: those of :func:`parse_json`.
    """
    for block in byte_blocks(path, drops):
        for line in filter(bytes.strip, block.split(b"\n")):
            try:
                yield parse_json(line, drops)
            except NO_JSON:
                drops["broken_json"] += 1


def parse_json(line: bytes, drops: Counter):
    """What one line holds; raises one of NO_JSON where it is no JSON.

    Noted in drops: note_cp1252, a line with bytes that are no UTF-8; they are read as cp1252.
    """
    try:
        return json.loads(line)
    except UnicodeDecodeError:
        record = json.loads(line.decode("utf-8-sig", "cp1252"))
        drops["note_cp1252"] += 1
        return record


def _unpacked(file, suffix):
    """The content in pieces. A cut file raises one of DAMAGE, after all that could be unpacked."""
    if suffix == ".zst":
        yield from _zstd(file)
    else:
        file = OPEN[suffix](file) if suffix in OPEN else file
        # read() would keep back what it had gathered when the damage shows
        yield from iter(partial(file.read1, BLOCK), b"")


def _zstd(file):
    decompressor, frame = zstandard.ZstdDecompressor(max_window_size=WINDOW), None
    while piece := file.read(BLOCK // 8):
        while piece:
            # the stream reader of zstandard takes a cut file for a whole one; a frame knows whether it has ended
            frame = frame or decompressor.decompressobj()
            yield frame.decompress(piece)
            piece = frame.unused_data
            frame = None if frame.eof else frame
    if frame:
        raise EOFError("the last frame is cut")
