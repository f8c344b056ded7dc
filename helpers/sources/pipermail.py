"""Mailman's monthly text archives (pipermail): mbox-like files, plain or gzipped.

They are read from disk or downloaded from a list's archive page. The posts table's topic is the
name of the list: that of the folder, on disk or on the web, that holds its monthly files.
"""

import http.client
import re
import urllib.parse
import urllib.request
from collections import Counter
from contextlib import suppress
from functools import partial

from ..cleaning.email import SCRUBBED, own_paragraphs
from ..cleaning.email_headers import decode_header, parse_headers
from ..cleaning.text import is_bot, mask_mentions
from ..core import paths
from ..core.artifacts import atomic_write, file_stats_fingerprint
from ..core.files import read_pieces
from ..core.messages import printable
from . import Part, as_list, existing_path, list_files, row_part

MAX_MESSAGE_BYTES = 1 << 24  # a larger message is dropped as too_large
TIMEOUT = 60  # seconds without an answer after which a download fails
MAX_FILE_BYTES = 1 << 28  # largest page or file: it is held in memory
WEB_ADDRESS = re.compile(r"https?://", re.I)
# the target of href="2012-March.txt.gz"
LINK = re.compile(r"""href\s*=\s*["']([^"'<>]{1,500})["']""", re.I)
# the ending of a monthly file: "2012-March.txt.gz"
MONTH = re.compile(r"\.(?:txt|mbox)(?:\.gz)?$")
# The line above a message: "From jd at example.org  Mon Jul  2 10:15:00 2007". A line of a body may
# begin with "From " too, so the separator must also have a date, and stand between a blank line (or
# the start of the file) and a header. The literal "From " comes first, and look-behinds then check
# what is before it: re finds a literal a hundred times faster than a position.
SEPARATOR = re.compile(
    rb"From (?:(?<=\AFrom )|(?<=\n\nFrom ))[^\n]{0,300}?"
    rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +[A-Z][a-z]{2} +\d{1,2} +\d{1,2}:\d\d:\d\d +"
    rb"(?:[A-Z+-][A-Z\d]{1,4} +)?\d{4}[ \t]*\n(?=[A-Za-z][A-Za-z\d-]{0,60}:)"
)
LINE_WITH_TEXT = re.compile(rb"^.*\S", re.M)


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """Return one part per monthly file, which is held in memory while it is read.

    Drops counted: broken_file (a file of a folder without a message), truncated_file (what precedes
    the damage is kept), too_large, broken_header (no sender or no date), bad_date, bot, scrubbed
    (the archive kept only a link to a removed part), empty (also where only quotes and a signature
    are there). Noted: lines_before_messages, and see
    :func:`helpers.cleaning.email_headers.decode_header`.

    Parameters
    ----------
    location : str or list of str
        a folder (searched recursively for ``.txt``, ``.txt.gz``, ``.mbox``), a file, or the http(s)
        address of a list's archive page or of one monthly file. Downloads are kept in
        ``data/downloads/``; a part is downloaded when it is read.
    raw : bool
        keep the whole body: quotes, signatures and the author's own name

    Raises
    ------
    ValueError
        A location is missing, a file without a message, a page that cannot be fetched, or two files
        have the same list and month.
    """
    months = {}
    for place in as_list(location):
        for path, url in _month_files(place):
            name = f"{path.parent.name}/{MONTH.sub('', path.name)}"
            # the first is read: 2012-March.txt, not 2012-March.txt.gz
            first_path, _ = months.setdefault(name, (path, url))
            if first_path.parent != path.parent:
                raise ValueError(
                    f"pipermail: {first_path} and {path} are both {name}; rename one of the folders"
                )

    mail_parts = []
    for name, (path, url) in months.items():
        stamp = "" if url else file_stats_fingerprint(path)
        mail_parts.append(row_part(name, partial(_rows, path, url, raw), stamp))
    return mail_parts


def _month_files(place):
    """Return the path of each monthly file at a place, and its address, None for one on disk."""
    if WEB_ADDRESS.match(str(place)):
        return [(_download_path(url), url) for url in _month_urls(str(place))]
    root = existing_path("pipermail", place)
    if root.is_dir():
        return [(path, None) for path in list_files(root) if MONTH.search(path.name)]
    if not SEPARATOR.search(_content(root, Counter())):
        raise ValueError(
            f"pipermail: {root} is no mailbox: it has no line 'From ...' with a date, and a header "
            "below it"
        )
    return [(root, None)]


def _month_urls(url):
    """Return the addresses of the monthly files of an archive page, or a file's own address.

    The number of links that leave the page's host is printed.
    """
    if MONTH.search(urllib.parse.urlsplit(url).path):
        return [url]
    url = url.rstrip("/") + "/"
    urls = {}
    links_out = []
    for link in LINK.findall(fetch_bytes(url).decode("utf-8", "replace")):
        if not MONTH.search(link):
            continue
        with suppress(ValueError):  # not a valid address: counted as leaving the host
            link = urllib.parse.urljoin(url, link)
        if same_host(url, link):
            urls[link] = None
        else:
            links_out.append(link)
    if links_out:
        print(
            f"{url}: {len(links_out)} links that leave its host are not followed, "
            f"such as {printable(links_out[0])}"
        )
    if not urls:
        raise ValueError(f"pipermail: no monthly text archives at {url}")
    return list(urls)


def _download_path(url):
    """Return the path for the download of a monthly file, safe against names such as ".."."""
    names = urllib.parse.unquote(urllib.parse.urlsplit(url).path).split("/")
    safe_names = [re.sub(r"[^\w.-]", "-", name).lstrip(".") or "list" for name in names[-2:]]
    return paths.data().joinpath("downloads", *safe_names)


def same_host(url: str, target: str) -> bool:
    """Return whether a target is an http(s) address on the host of ``url``.

    Parameters
    ----------
    url : str
        an http(s) address
    target : str
        address that is compared with ``url``; any text, valid or not
    """
    try:
        address = urllib.parse.urlsplit(target)
    except ValueError:  # not a valid address
        return False
    is_web = address.scheme in ("http", "https") and address.hostname is not None
    return is_web and address.hostname == urllib.parse.urlsplit(url).hostname


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Redirect handler that follows a redirect only within the host that the user named."""

    def redirect_request(self, request, answer, code, message, headers, target):
        if not same_host(request.full_url, target):
            raise ValueError(
                f"it leads to {target}, which is another host or no http(s) address; "
                "if that is what you want, give it as the location"
            )
        return super().redirect_request(request, answer, code, message, headers, target)


def fetch_bytes(url: str) -> bytes:
    """Return the bytes at an http(s) address, read into memory.

    Raises
    ------
    ValueError
        They are missing, cut off or more than MAX_FILE_BYTES; the message names the address.
    """
    try:
        if not same_host(url, url):
            raise ValueError("only http(s) addresses are fetched")
        request = urllib.request.Request(url, headers={"User-Agent": "authorbook"})
        with urllib.request.build_opener(_SameHost).open(request, timeout=TIMEOUT) as answer:
            content = answer.read(MAX_FILE_BYTES + 1)
            if len(content) > MAX_FILE_BYTES:
                raise ValueError(
                    f"it is larger than {MAX_FILE_BYTES:,} bytes; "
                    "download it yourself and give the file"
                )
            if answer.length:
                raise ValueError(
                    f"it was cut off {answer.length:,} bytes before its end; try again"
                )
    # OSError includes the errors of urllib
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ValueError(f"cannot fetch {url}: {error or type(error).__name__}") from None
    return content


def _rows(path, url, raw, drops):
    """Yield a post or the reason of a drop per message of a file; download the file if needed."""
    if url and not path.exists():
        with atomic_write(path) as partial_path:
            partial_path.write_bytes(fetch_bytes(url))
    content = _content(path, drops)
    separators = list(SEPARATOR.finditer(content))
    if not separators:
        yield "broken_file"
        return
    lines_before = LINE_WITH_TEXT.findall(content[: separators[0].start()])
    if lines_before:
        drops["note_lines_before_messages"] += len(lines_before)
    ends = [separator.start() for separator in separators[1:]] + [len(content)]
    for separator, end in zip(separators, ends):
        if end - separator.start() > MAX_MESSAGE_BYTES:
            yield "too_large"
            continue
        message = content[separator.end() : end]
        yield _row(decode_header(message, drops), path.parent.name, raw)


def _content(path, drops):
    """Return the content of a file up to its damage, with the line ends of Unix."""
    pieces = []
    try:
        for piece in read_pieces(path):
            pieces.append(piece)
    except EOFError:
        drops["truncated_file"] += 1
    return b"".join(pieces).replace(b"\r\n", b"\n")


def _row(text, topic, raw):
    """Return the values of the post that a message is, or the reason why it is dropped."""
    message = parse_headers(text)
    if not (message.name or message.address) or message.date is None:
        return "broken_header"
    if message.time is None:
        return "bad_date"
    if is_bot(message.address) or is_bot(message.name):
        return "bot"
    text = message.body.strip()
    if not raw:
        text = own_paragraphs(message.body).strip()
        if not text and SCRUBBED.search(message.body):
            return "scrubbed"
        # here, because later steps know only the author's address, not the name
        text = mask_mentions(text, message.name)
    return message.author, message.time, topic, text, message.id, message.names
