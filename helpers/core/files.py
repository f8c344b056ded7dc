"""Files that a user names: read whatever packs and encodes them, written so that nothing is lost.

A file may be far larger than memory.
"""

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from backports import zstd

# the window of zstd --long=31, which the Reddit dumps use; as much of the output stays in memory
ZSTD_OPTIONS = {zstd.DecompressionParameter.window_log_max: 31}
OPENERS = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": partial(zstd.open, options=ZSTD_OPTIONS),
}
# first bytes of packed files, as expressions; zstd files may begin with a skippable frame
MAGIC = {
    ".gz": rb"\x1f\x8b",
    ".bz2": rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)",
    ".xz": rb"\xfd7zXZ\x00",
    ".zst": rb"\(\xb5/\xfd|[P-_]\*M\x18",
    ".zip": rb"PK\x03\x04",
    ".xls": rb"\xd0\xcf\x11\xe0",
    ".parquet": rb"PAR1",
}
MAGIC_BYTES = 10
# endings of files of Excel, LibreOffice, Numbers and Word
OFFICE_FILES = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers", ".docx", ".doc", ".odt")
# the mark at the start of a text -> its encoding; that of UTF-32 begins with that of UTF-16
ENCODINGS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# errors of the libraries that unpack, for a damaged or cut file
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, zstd.ZstdError)


def _as_cp1252(error):
    """Return bytes that are not UTF-8 as letters of Windows-1252, and where decoding goes on.

    A byte that means nothing there either becomes "%x81", so that two names that differ in it stay
    different.
    """
    letters = error.object[error.start : error.end].decode("cp1252", "backslashreplace")
    return letters.replace("\\", "%"), error.end  # a backslash would begin an escape of JSON


codecs.register_error("cp1252", _as_cp1252)


def bare_path(path: Path) -> Path:
    """Return the path without the ending of a packed file: posts.csv for posts.csv.gz."""
    if path.suffix.lower() in OPENERS:
        return path.with_suffix("")
    return path


def check_readable(path: Path) -> None:
    """Check that a file holds what its ending says, and text of a known encoding if it is no table.

    Parameters
    ----------
    path : Path
        path of the file; an empty file passes

    Raises
    ------
    ValueError
        There is no such file, it is of an office program or packed in another way than its ending
        says, or its text is UTF-16 without a mark.
    """
    if not path.exists():
        raise ValueError(f"{path} is missing")
    if not path.is_file():
        raise ValueError(f"{path} is a folder or a device: name a file")
    ending = path.suffix.lower()
    if ending in OFFICE_FILES:
        raise ValueError(
            f"{path} is a spreadsheet or a document of an office program: save its posts as CSV "
            "UTF-8 (in a spreadsheet File > Save As), then name that file"
        )
    content = _content_type(path)
    expected = ending if ending in MAGIC and path.stat().st_size else None
    if content != expected:
        raise ValueError(
            f"{path} holds {content or 'no packed file'}, and not what its ending says: rename it, "
            "unpack it, download it again or, if it is a spreadsheet of Excel, save it as CSV "
            "UTF-8 (File > Save As)"
        )
    if ending != ".parquet":
        with open_text(path) as file, counted_damage(Counter()):
            if b"\0" in file.buffer.peek(2)[:2] and file.encoding == "utf-8-sig":
                raise ValueError(f"{path} is no text, or UTF-16 without a mark: save it as UTF-8")


def open_text(path: Path) -> io.TextIOWrapper:
    """Open a file as text with the line ends that it has; bytes that are not UTF-8 are surrogates.

    How a file is packed is told from its first bytes: as one of OPENERS, or not at all. A mark at
    the start tells UTF-16 and UTF-32.

    Parameters
    ----------
    path : Path
        path of the file
    """
    content = OPENERS.get(_content_type(path), open)(path, "rb")
    encoding = "utf-8-sig"
    with suppress(*DAMAGE):  # whoever reads the file will meet it
        head = content.peek(4)
        encoding = next((ENCODINGS[mark] for mark in ENCODINGS if head.startswith(mark)), encoding)
    return io.TextIOWrapper(content, encoding, errors="surrogateescape", newline="")


@contextmanager
def counted_damage(drops: Counter) -> Iterator[None]:
    """Let a block that reads a file end where the file is damaged or cut; count truncated_file.

    Parameters
    ----------
    drops : Counter
        number of drops by reason, increased in place

    Raises
    ------
    OSError
        The file cannot be read at all.
    """
    try:
        yield
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno:  # the disk's error, not the content's
            raise
        drops["truncated_file"] += 1


def _content_type(path):
    """Return the ending of MAGIC that a file's first bytes tell, None for any other content."""
    with open(path, "rb") as file:
        head = file.read(MAGIC_BYTES)
    for ending, magic in MAGIC.items():
        if re.match(magic, head):
            return ending
    return None


def check_target(path: str | Path, inputs: Iterable[str | Path] = (), force: bool = False) -> None:
    """Check, before the work begins, that a file which a user named may be written.

    Parameters
    ----------
    path : str or Path
        path of the file to write
    inputs : iterable of str or Path
        files that are read, none of which is ever replaced, by whatever path or link
    force : bool
        replace an existing file, but for the inputs

    Raises
    ------
    ValueError
        The path is one of the inputs, a folder, or an existing file; or its folder is missing or
        cannot be written to.
    """
    path = Path(path)
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise ValueError(f"{path.parent} is no folder to write to: make it, or name another one")
    if not path.exists():
        return
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file")
    for source in inputs:
        if Path(source).exists() and path.samefile(source):
            raise ValueError(f"{path} is the file to read: name another file to write")
    if not force:
        raise ValueError(f"{path} exists: name another file, or replace it with --force")


@contextmanager
def write_target(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path, which becomes the file that a user named when the block ends.

    Only its owner may read the file. If the block raises, an existing file stays as it was. Unlike
    :func:`helpers.core.artifacts.atomic_write`, this touches no file beside it.
    """
    path = Path(path)
    descriptor, partial_name = tempfile.mkstemp(".partial", f".{path.name}.", path.parent)
    os.close(descriptor)
    try:
        yield Path(partial_name)
        os.replace(partial_name, path)
    finally:
        Path(partial_name).unlink(missing_ok=True)
