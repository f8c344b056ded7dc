"""Mailman's monthly text archives (pipermail): mbox-like files, plain or gzipped, from disk or from a list's page.

The posts table's topic is the list, named after the folder (or the web page's folder) that holds its months.
"""

import email.parser
import re
import urllib.parse
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from helpers.runs import paths
from helpers.runs.artifacts import stamp
from helpers.cleaning.text import is_bot, mask_name, normalise_unicode
from helpers.sources.downloads import fetched, get
from helpers.cleaning.email_headers import decoded, seconds, sender
from helpers.cleaning.email import SCRUBBED, own_words
from helpers.sources import Part, frame

MONTH = re.compile(r"\.(?:txt|mbox)(?:\.gz)?$")
# A body line may begin with "From " too: a separator also has a date, stands after a blank line, before a header.
SEPARATOR = re.compile(
    rb"(?:\A|(?<=\n\n))From [^\n]{0,300}?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +[A-Z][a-z]{2} +\d{1,2} +"
    rb"\d{1,2}:\d\d:\d\d +(?:[A-Z+-][A-Z\d]{1,4} +)?\d{4}[ \t]*\n(?=[A-Za-z][A-Za-z\d-]{0,60}:)"
)


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """One part per monthly file.

    location: a folder (searched recursively for ``.txt``, ``.txt.gz``, ``.mbox``), a file, the http(s) address of a
        list's archive page or of one monthly file, or a list of these. Downloads are kept in ``data/downloads/``;
        a part is downloaded when it is read.
    raw: keep the whole body.
    Drops counted: broken_file, broken_header, bad_date, bot, scrubbed (the archive kept a link only), empty.
    Raises ValueError where a location is missing, a page cannot be fetched, or two files have the same list and month.
    """
    found = {}
    for place in [location] if isinstance(location, str | Path) else location:
        remote = re.match(r"https?://", str(place), re.I)
        months = _pages(str(place)) if remote else ((path, None) for path in _files(paths.resolve(place)))
        for path, url in months:
            name = f"{path.parent.name}/{MONTH.sub('', path.name)}"
            known = found.get(name, (path,))[0]
            if known.parent != path.parent:
                raise ValueError(f"pipermail: {known} and {path} are both {name}; rename one of the folders")
            if known == path or path.suffix != ".gz":  # 2012-March.txt goes before 2012-March.txt.gz
                found[name] = path, url
    return [
        Part(name, lambda drops, path=path, url=url: read(fetched(path, url), drops, raw), "" if url else stamp(path))
        for name, (path, url) in found.items()
    ]


def read(path: Path, drops: Counter, raw: bool = False) -> Iterator[pd.DataFrame]:
    """The posts of one monthly file, as one frame."""
    messages = _messages(path)
    if not messages:
        drops["broken_file"] += 1
    yield from frame((_row(message, raw) for message in messages), path.parent.name, drops)


def _messages(path):
    """The messages of a file as bytes; none where it is no archive."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        # a cut or damaged file yields what comes before the damage; decompress() would yield nothing
        unzip, data = zlib.decompressobj(wbits=31), memoryview(data)
        pieces = []
        try:
            for start in range(0, len(data), 1 << 16):
                pieces.append(unzip.decompress(data[start : start + (1 << 16)]))
        except zlib.error:
            pass
        data = b"".join(pieces)
    data = data.replace(b"\r\n", b"\n")
    found = list(SEPARATOR.finditer(data))
    ends = [match.start() for match in found[1:]] + [len(data)]
    return [data[match.end() : end] for match, end in zip(found, ends, strict=False)]


def _row(message, raw):
    """(author, time, text, id), or the reason for the drop."""
    try:
        text = message.decode("utf-8")
    except UnicodeDecodeError:  # per message: a month mixes the encodings of its writers
        text = message.decode("cp1252", errors="replace")
    head, _, body = text.partition("\n\n")
    fields = email.parser.HeaderParser().parsestr(head + "\n\n")
    name, address = sender(decoded(fields.get("From", "")))
    if not (name or address) or "Date" not in fields:
        return "broken_header"
    when = seconds(fields["Date"])
    if when is None:
        return "bad_date"
    # The address is the identity: on a busy list two people called "David" or "J. Smith" are common, and a label
    # that mixes two people cannot be learnt, while a person with two addresses only counts as two people. The price
    # is a split history when somebody moves; the name stays hidden in the text either way.
    author = address or name
    if is_bot(author) or is_bot(name):
        return "bot"
    body = normalise_unicode(body)
    if not raw:
        words = own_words(body)
        if not words:
            return "scrubbed" if SCRUBBED.search(body) else "empty"
        body = mask_name(words, name)  # who reads the table knows the address only
    if not body.strip():
        return "empty"
    return normalise_unicode(author), when, body.strip(), normalise_unicode(decoded(fields.get("Message-ID", "")).strip("<> "))


def _files(path):
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ValueError(f"pipermail: {path} is missing")
    return sorted(file for file in path.rglob("*") if MONTH.search(file.name) and file.is_file())


def _pages(url):
    """(local file, URL) of each month of a list's archive page, or of the one month that is meant."""
    if MONTH.search(urllib.parse.urlsplit(url).path):
        urls = [url]
    else:
        url = url.rstrip("/") + "/"
        links = re.findall(r"""href\s*=\s*["']([^"'<>]{1,500})["']""", get(url).decode("utf-8", "replace"), re.I)
        urls = list(dict.fromkeys(urllib.parse.urljoin(url, link) for link in links if MONTH.search(link)))
        if not urls:
            raise ValueError(f"pipermail: no monthly text archives at {url}")
    for each in urls:
        *_, folder, file = urllib.parse.unquote(urllib.parse.urlsplit(each).path).split("/")
        safe = [re.sub(r"[^\w.-]", "-", part).lstrip(".") or "list" for part in (folder, file)]
        yield paths.ROOT / "data" / "downloads" / safe[0] / safe[1], each
