"""Mailman's monthly text archives (pipermail): mbox-like files, plain or gzipped, from disk or from a list's page.

The posts table's topic is the list, named after the folder (or the web page's folder) that holds its months.
"""

import gzip
import re
import urllib.parse
import zlib
from functools import partial
from itertools import pairwise

from helpers.cleaning.email import SCRUBBED, own_paragraphs
from helpers.cleaning.email_headers import decode_header, parse_headers
from helpers.cleaning.text import is_bot, mask_mentions
from helpers.core import paths
from helpers.core.artifacts import file_stats_fingerprint
from helpers.sources import Part, as_list, existing_path, list_files, row_part
from helpers.sources.downloads import download, fetch_bytes, same_host_links

PIECE, LONGEST = 1 << 20, 1 << 24  # bytes read at a time, and of a message
MONTH = re.compile(r"\.(?:txt|mbox)(?:\.gz)?$")
# A body line may begin with "From " too: a separator also has a date, stands after a blank line, before a header.
# The word comes first: re finds a literal a hundred times faster than a place.
SEPARATOR = re.compile(
    rb"From (?:(?<=\AFrom )|(?<=\n\nFrom ))[^\n]{0,300}?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +[A-Z][a-z]{2} +\d{1,2} +"
    rb"\d{1,2}:\d\d:\d\d +(?:[A-Z+-][A-Z\d]{1,4} +)?\d{4}[ \t]*\n(?=[A-Za-z][A-Za-z\d-]{0,60}:)"
)


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """One part per monthly file.

    location: a folder (searched recursively for ``.txt``, ``.txt.gz``, ``.mbox``), a file, the http(s) address of a
        list's archive page or of one monthly file, or a list of these. Downloads are kept in ``data/downloads/``;
        a part is downloaded when it is read.
    raw: keep the whole body.
    Drops counted: broken_file, truncated_file (what precedes the damage is kept), too_large, broken_header,
        bad_date, bot, scrubbed (the archive kept a link only), empty. Noted: see
        :func:`helpers.cleaning.email_headers.decode_header`.
    Raises ValueError where a location is missing, a page cannot be fetched, or two files have the same list and month.
    """
    months = {}
    for place in as_list(location):
        for path, url in (
            _pages(str(place)) if re.match(r"https?://", str(place), re.I) else _files(place)
        ):
            name = f"{path.parent.name}/{MONTH.sub('', path.name)}"
            other = months.get(name, (path,))[0]
            if other.parent != path.parent:
                raise ValueError(
                    f"pipermail: {other} and {path} are both {name}; rename one of the folders"
                )
            if (
                other == path or path.suffix != ".gz"
            ):  # 2012-March.txt goes before 2012-March.txt.gz
                months[name] = path, url
    return [
        row_part(name, partial(_rows, path, url, raw), "" if url else file_stats_fingerprint(path))
        for name, (path, url) in months.items()
    ]


def _rows(path, url, raw, drops):
    messages = -1
    for messages, message in enumerate(_messages(download(path, url), drops)):
        yield (
            "too_large"
            if message is None
            else _row(decode_header(message, drops), path.parent.name, raw)
        )
    if messages < 0:
        yield "broken_file"


def _messages(path, drops):
    """The messages of a file as bytes, None for one of more than LONGEST; of the file a few messages are in memory."""
    rest, too_large = b"", False
    for piece in _pieces(path, drops):
        rest = (rest + piece).replace(b"\r\n", b"\n")
        starts = list(SEPARATOR.finditer(rest))
        if too_large and starts:
            yield None
            too_large = False
        for one, following in pairwise(starts):
            yield rest[one.end() : following.start()]
        rest = rest[starts[-1].start() :] if starts else rest
        if (
            len(rest) > LONGEST
        ):  # what may be the start of a separator is kept, but is not that of a file
            rest, too_large = b"x" + rest[-1000:], True
    if too_large:
        yield None
    elif first := SEPARATOR.match(rest):
        yield rest[first.end() :]


def _pieces(path, drops):
    """A plain or gzipped file a piece at a time; of a cut or damaged one what comes before the damage."""
    with open(path, "rb") as file:
        file, piece = gzip.open(file) if file.peek(2)[:2] == b"\x1f\x8b" else file, bytearray()
        try:
            while more := file.read1(
                PIECE
            ):  # read() would keep back what it had gathered when the damage shows
                piece += more
                if len(piece) >= PIECE:
                    yield bytes(piece)
                    piece.clear()
        except (EOFError, zlib.error, gzip.BadGzipFile):
            drops["truncated_file"] += 1
        yield bytes(piece)


def _row(text, topic, raw):
    """The values of a post, or the reason for the drop."""
    message = parse_headers(text)
    if not (message.name or message.address) or message.date is None:
        return "broken_header"
    if message.time is None:
        return "bad_date"
    if is_bot(message.address or message.name) or is_bot(message.name):
        return "bot"
    text = (message.body if raw else own_paragraphs(message.body)).strip()
    if not text:
        return "scrubbed" if not raw and SCRUBBED.search(message.body) else "empty"
    # who reads the table knows the address only
    text = text if raw else mask_mentions(text, message.name)
    return message.author, message.time, topic, text, message.id, message.names


def _files(place):
    root = existing_path("pipermail", place)
    found = (
        [root] if root.is_file() else [path for path in list_files(root) if MONTH.search(path.name)]
    )
    return [(path, None) for path in found]


def _pages(url):
    """(local file, URL) of each month of a list's archive page, or of the one month that is meant."""
    if MONTH.search(urllib.parse.urlsplit(url).path):
        urls = [url]
    else:
        url = url.rstrip("/") + "/"
        links = re.findall(
            r"""href\s*=\s*["']([^"'<>]{1,500})["']""",
            fetch_bytes(url).decode("utf-8", "replace"),
            re.I,
        )
        urls = same_host_links(url, [link for link in links if MONTH.search(link)])
        if not urls:
            raise ValueError(f"pipermail: no monthly text archives at {url}")
    for each in urls:
        *_, folder, file = urllib.parse.unquote(urllib.parse.urlsplit(each).path).split("/")
        safe = [re.sub(r"[^\w.-]", "-", part).lstrip(".") or "list" for part in (folder, file)]
        yield paths.ROOT / "data" / "downloads" / safe[0] / safe[1], each
