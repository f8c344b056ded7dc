"""Zulip archives, as the ``zulip-archive`` tool publishes them.

There is one folder per stream and one JSON file per topic in it:
``zulip_json/<id>-<stream>/<topic>.json``. A file is a list of messages with ``content`` (HTML),
``sender_full_name``, ``timestamp`` and ``id``. The posts table's topic is the stream: a Zulip topic
is one conversation, too narrow to hold an author's topics apart.
"""

import json
import re
import time
from collections import defaultdict
from contextlib import suppress
from functools import partial

from ..cleaning.text import is_bot, normalise_unicode
from ..core import paths
from ..core.artifacts import file_stats_fingerprint
from . import Part, as_list, list_files, row_part
from .downloads import GIT_URL, clone_repository
from .html_text import MAX_TAGS, Markup, html_text

EARLIEST = 946_684_800  # 2000-01-01: no chat archive is older

# "@Name said:" before a quote, in whatever language: a mention, a link into the archive, a colon
QUOTE_INTRO = re.compile(
    r"(?:<span class=\"user-mention[^<>]*>[^<>]*</span>|<strong>[^<>]*</strong>)\s*"
    r"(?:<a [^<>]*href=\"[^\"<>]*narrow/[^<>]*>[^<>]*</a>|said|wrote)\s*:"
    r"\s*(?:<br ?/?>\s*|</p>\s*)*(?=<blockquote)"
)
MARKUP = Markup(
    unseen=", ".join(
        f'div[class*="{kind}"]' for kind in ("message_inline", "message_embed", "inline-preview")
    ),
    quoted="div.codehilite",
    mention=", ".join(f'span[class^="{kind}-mention"]' for kind in ("user", "user-group", "topic")),
    code="span.katex, math",
    reference='a[class*="stream"], a[class*="message-link"]',
)
# "Jane Doe" in <span class="user-mention" ...>@Jane Doe</span>
MENTIONED = re.compile(r'class="user-mention[^<>]{0,200}>@?([^<>@]{2,80})</span>')
# ".20" or "%20" in the name of a folder
ENCODED_BYTE = re.compile(rb"[.%]([0-9A-Fa-f]{2})")


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """Return one part per stream folder.

    Drops counted: broken_json_file (one for the file), broken_message (a field is missing or of
    another type), bad_time (before 2000 or in the future), bot, too_many_tags, empty.

    Parameters
    ----------
    location : str or list of str
        a folder at or above ``zulip_json``, or the URL of a git repository that holds one (cloned
        once, shallowly, into ``data/clones/``)
    raw : bool
        keep quotes, code, formulas and links; HTML tags are removed in any case

    Raises
    ------
    ValueError
        A location is missing, holds no archive, or cannot be cloned.
    """
    places = as_list(location)
    zulip_parts = {}
    for place in places:
        if GIT_URL.match(str(place)):
            root = clone_repository(str(place))
        else:
            root = paths.resolve(place)
        if not root.is_dir():
            raise ValueError(f"zulip: {place} is not a folder or a git URL")
        for folder, files in _streams(root).items():
            name = folder.name if len(places) == 1 else f"{root.name}/{folder.name}"
            if name in zulip_parts:  # the root holds several archives
                name = folder.relative_to(root).as_posix()
            rows = partial(_rows, stream_name(folder.name), files, raw)
            zulip_parts[name] = row_part(name, rows, file_stats_fingerprint(folder))
    return list(zulip_parts.values())


def _streams(root):
    """Return the JSON files of each stream folder, by the folder's path.

    Stream folders are those in a ``zulip_json`` at any depth; without one, those in the root. A
    stream's name may hold a slash ("t-compiler/wg-nll"): its folder then lies in another one
    ("t-compiler"), which counts as the stream folder, so all streams of a group have one topic.
    """
    archived = defaultdict(list)
    in_root = defaultdict(list)
    for path in list_files(root):
        folders = path.relative_to(root).parts[:-1]
        if path.suffix != ".json" or any(name.startswith(".") for name in folders):
            continue
        for folder in path.parents:
            if folder.parent.name == "zulip_json":
                archived[folder].append(path)
                break
            if folder.parent == root:
                in_root[folder].append(path)
    return archived or in_root


def _rows(topic, files, raw, drops):
    """Yield a post, or the reason of a drop, per message of a stream; a broken file is one drop."""
    latest = time.time() + 86_400
    for path in files:
        messages = None
        with suppress(ValueError, RecursionError):
            messages = json.loads(path.read_bytes())
        if not isinstance(messages, list):
            yield "broken_json_file"
            continue
        for message in messages:
            yield _row(message, topic, latest, raw)


def _row(message, topic, latest, raw):
    """Return the values of the post that a message is, or the reason why it is dropped."""
    if not isinstance(message, dict):
        return "broken_message"
    author = message.get("sender_full_name")
    content = message.get("content")
    seconds = message.get("timestamp")
    if not (isinstance(author, str) and author.strip() and isinstance(content, str)):
        return "broken_message"
    if type(seconds) not in (int, float):
        return "broken_message"
    if not EARLIEST <= seconds <= latest:  # also drops nan
        return "bad_time"
    if is_bot(author):
        return "bot"
    if content.count("<") > MAX_TAGS:
        return "too_many_tags"
    text = html_to_text(content, raw)
    names = normalise_unicode("\n".join([author, *MENTIONED.findall(content)]))
    return author.strip(), int(seconds), topic, text, str(message.get("id", "")), names


def html_to_text(content: str, raw: bool = False) -> str:
    """Return the text of a message, with a line per block element; it may be empty.

    What becomes of its elements is said by :func:`helpers.sources.html_text.html_text`; the words
    before a quote, "@Name said:", are removed too.

    Parameters
    ----------
    content : str
        HTML of the message
    raw : bool
        keep quotes, code, formulas and links
    """
    if not raw and "<blockquote" in content:
        content = QUOTE_INTRO.sub("", content)
    return html_text(content, MARKUP, raw)


def stream_name(folder: str) -> str:
    """Return the name of the stream of a folder ``<id>-<name>``.

    Bytes of the name may be encoded with ``.`` or ``%``: ".20" or "%20" is a blank. A name that
    cannot be decoded is returned as it is.
    """
    name = re.sub(r"^\d+-(?=.)", "", folder)
    decoded = ""
    with suppress(UnicodeError):  # not encoded after all: a plain dot before two digits
        decoded = ENCODED_BYTE.sub(_decoded_byte, name.encode()).decode().strip()
    if decoded and decoded.isprintable():
        return decoded
    return normalise_unicode(name)


def _decoded_byte(code):
    """Return the byte that a match of ENCODED_BYTE stands for."""
    return bytes.fromhex(code[1].decode())
