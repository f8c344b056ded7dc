"""Zulip archives, as the ``zulip-archive`` tool publishes them.

There is one folder per stream and one JSON file per topic in it:
``zulip_json/<id>-<stream>/<topic>.json``. A file is a list of messages with ``content`` (HTML),
``sender_full_name``, ``timestamp`` and ``id``. The posts table's topic is the stream: a Zulip topic
is one conversation, too narrow to hold an author's topics apart.
"""

import json
import re
from collections import defaultdict
from contextlib import suppress
from functools import partial
from urllib.parse import unquote

import msgspec
from selectolax.lexbor import LexborHTMLParser

from ..cleaning.text import EDGE, drop_edge_marks, is_bot, normalise_unicode
from ..core.artifacts import file_stats_fingerprint
from . import Part, as_list, existing_path, list_files
from .table_columns import unix_seconds

# most tags of a post, twice as many as people write; deeply nested tags cost quadratic time
MAX_TAGS = 5_000

# "@Name said:" before a quote, in whatever language: a mention, a link into the archive, a colon
QUOTE_INTRO = re.compile(
    r"(?:<span class=\"user-mention[^<>]*>[^<>]*</span>|<strong>[^<>]*</strong>)\s*"
    r"(?:<a [^<>]*href=\"[^\"<>]*narrow/[^<>]*>[^<>]*</a>|said|wrote)\s*:"
    r"\s*(?:<br ?/?>\s*|</p>\s*)*(?=<blockquote)"
)
# "Jane Doe" in <span class="user-mention" ...>@Jane Doe</span>
MENTIONED = re.compile(r'class="user-mention[^<>]{0,200}>@?([^<>@]{2,80})</span>')
# the dot of ".20" in the name of a folder, where it stands for "%"
ENCODING_DOT = re.compile(r"\.(?=[0-9A-Fa-f]{2})")

# CSS selectors of elements whose text nobody sees, or that are previews of what others wrote
UNSEEN = (
    "script, style, svg, head, title, iframe, video, audio, object, div[class*='message_inline'], "
    "div[class*='message_embed'], div[class*='inline-preview']"
)
QUOTED = "blockquote, pre, div.codehilite"
CODE = "span.katex, math, code"
MENTION = (
    "span[class^='user-mention'], span[class^='user-group-mention'], span[class^='topic-mention']"
)
# elements that begin and end a line; any other element is part of a line
BLOCKS = (
    "p, div, br, li, ul, ol, dl, dt, dd, tr, td, th, table, thead, tbody, h1, h2, h3, h4, h5, h6, "
    "hr, pre, blockquote"
)


class ChatMessage(msgspec.Struct):
    """The fields of a message that are read."""

    sender_full_name: str
    content: str
    timestamp: int | float
    id: object = ""


def parts(location: str | list[str]) -> list[Part]:
    """Return one part per stream folder.

    Drops counted: broken_json_file (one for the file), broken_message (a field is missing or of
    another type), bad_time (not between 1979 and 2100), bot, too_many_tags, empty.

    Parameters
    ----------
    location : str or list of str
        a folder at or above ``zulip_json``

    Raises
    ------
    ValueError
        A location is missing or holds no archive.
    """
    zulip_parts = []
    for place in as_list(location):
        for folder, files in _streams(existing_path("zulip", place)).items():
            rows = partial(_rows, stream_name(folder.name), files)
            zulip_parts.append(Part(str(folder), rows, file_stats_fingerprint(folder)))
    return zulip_parts


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


def _rows(topic, files, drops):
    """Yield a post, or the reason of a drop, per message of a stream; a broken file is one drop."""
    for path in files:
        messages = None
        with suppress(ValueError, RecursionError):
            messages = json.loads(path.read_bytes())
        if not isinstance(messages, list):
            yield "broken_json_file"
            continue
        for message in messages:
            yield _row(message, topic)


def _row(message, topic):
    """Return the values of the post that a message is, or the reason why it is dropped."""
    try:
        message = msgspec.convert(message, ChatMessage)
    except msgspec.ValidationError:
        return "broken_message"
    author = message.sender_full_name.strip()
    if not author:
        return "broken_message"
    if is_bot(author):
        return "bot"
    if message.content.count("<") > MAX_TAGS:
        return "too_many_tags"
    time = unix_seconds(message.timestamp)
    names = [author, *MENTIONED.findall(message.content)]
    return author, time, topic, message_text(message.content), str(message.id), names


def message_text(content: str) -> str:
    """Return the text of a message, with a line per block element; it may be empty.

    Quotes, the words before them ("@Name said:") and code blocks are removed. Inline code and
    formulas become ``@code``, a mention becomes ``@user``, an emoji its ``:name:``, a link its text
    where that is prose, else ``@url``. Unclosed and stray tags are tolerated.

    Parameters
    ----------
    content : str
        HTML of the message, with at most MAX_TAGS tags
    """
    body = LexborHTMLParser(QUOTE_INTRO.sub("", content)).body
    if body is None:  # a frameset
        return ""
    _replace(body.css(UNSEEN), "\n")
    _replace(body.css(QUOTED), "\n")
    _replace(body.css(CODE), f"{EDGE}@code{EDGE}")
    _replace(body.css(MENTION), f"{EDGE}@user{EDGE}")
    for emoji in body.css("img.emoji"):
        emoji.replace_with(emoji.attributes.get("alt") or "")
    _replace(filter(_shows_address, body.css("a")), f"{EDGE}@url{EDGE}")
    for block in body.css(BLOCKS):
        block.insert_before("\n")
        block.insert_after("\n")
    lines = [" ".join(line.split()) for line in body.text().split("\n")]
    return normalise_unicode(drop_edge_marks("\n".join(filter(None, lines))))


def _replace(nodes, text):
    """Replace elements by a text, in place."""
    for node in nodes:
        node.replace_with(text)


def _shows_address(link):
    """Return whether a link's text is no words: an address, file name, channel or identifier."""
    text = link.text().strip()
    if text.startswith("#") or "://" in text:
        return True
    words = [word.strip("\"'(),.;:!?*").replace("-", "").replace("'", "") for word in text.split()]
    return bool(words) and not any(word.isalpha() for word in words)


def stream_name(folder: str) -> str:
    """Return the name of the stream of a folder ``<id>-<name>``.

    Bytes of the name may be encoded with ``.`` or ``%``: ".20" or "%20" is a blank. A name that
    cannot be decoded is returned as it is.
    """
    name = re.sub(r"^\d+-(?=.)", "", folder)
    decoded = ""
    with suppress(UnicodeError):  # not encoded after all: a plain dot before two digits
        decoded = unquote(ENCODING_DOT.sub("%", name), errors="strict").strip()
    if decoded and decoded.isprintable():
        return decoded
    return normalise_unicode(name)
