"""Zulip archives, as the ``zulip-archive`` tool publishes them: one JSON file per topic, one folder per stream.

Layout: ``zulip_json/<id>-<stream>/<topic>.json``, each a list of messages with ``content`` (HTML),
``sender_full_name``, ``timestamp`` and ``id``. The posts table's topic is the stream: a Zulip topic is one
conversation, too narrow to hold an author's topics apart.
"""

import json
import re
import time
from collections import defaultdict
from contextlib import suppress
from functools import partial

from selectolax.lexbor import LexborHTMLParser

from helpers.cleaning.text import EDGE, drop_edge_marks, is_bot, normalise_unicode
from helpers.core import paths
from helpers.core.artifacts import file_stats_fingerprint
from helpers.sources import Part, as_list, list_files, row_part
from helpers.sources.downloads import GIT_URL, clone_repository

TAGS = 5_000  # of one message, twice as many as people write; deeply nested ones cost the parser quadratic time
EARLIEST = 946_684_800  # 2000-01-01: no chat archive is older
USER, CODE, URL = (f"{EDGE}@{name}{EDGE}" for name in ("user", "code", "url"))

# "@Name said:" before a quote, in whatever language: a mention, a link into the archive, a colon
QUOTE_INTRO = re.compile(
    r'(?:<span class="user-mention[^<>]*>[^<>]*</span>|<strong>[^<>]*</strong>)\s*'
    r'(?:<a [^<>]*href="[^"<>]*narrow/[^<>]*>[^<>]*</a>|said|wrote)\s*:\s*(?:<br ?/?>\s*|</p>\s*)*(?=<blockquote)'
)
# of what a link in the text already names
PREVIEW = 'div[class*="message_inline"], div[class*="message_embed"], div[class*="inline-preview"]'
UNSEEN = f"{PREVIEW}, script, style, svg, head, title, iframe, video, audio, object"
QUOTED = "blockquote, pre, div.codehilite"
MENTION = ", ".join(f'span[class^="{kind}-mention"]' for kind in ("user", "user-group", "topic"))
MENTIONED = re.compile(r'class="user-mention[^<>]{0,200}>@?([^<>@]{2,80})</span>')
# what ends a line; every other element is a part of one
BLOCKS = set(
    "body p div br li ul ol dl dt dd tr td th table thead tbody h1 h2 h3 h4 h5 h6 hr pre blockquote".split()
)
FILE_NAME = re.compile(r"[^\s/]{1,200}\.[A-Za-z0-9]{1,5}")


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """One part per stream folder.

    location: a folder at or above ``zulip_json``, or the URL of a git repository that holds one (cloned once,
        shallowly, into ``data/clones/``), or a list of these.
    raw: keep quotes, code blocks and formulas; the markup goes all the same.
    Drops counted: broken_json_file, broken_message, bad_time, bot, too_many_tags, empty.
    Raises ValueError where the location is missing, holds no archive, or cannot be cloned.
    """
    folders = {}
    for place in as_list(location):
        root = clone_repository(str(place)) if GIT_URL.match(str(place)) else paths.resolve(place)
        if not root.is_dir():
            raise ValueError(f"zulip: {place} is not a folder or a git URL")
        for folder, files in _streams(root).items():
            name = folder.name if len(as_list(location)) == 1 else f"{root.name}/{folder.name}"
            # two archives below one root
            folders[folder.relative_to(root).as_posix() if name in folders else name] = (
                folder,
                files,
            )
    return [
        row_part(name, partial(_rows, folder, files, raw), file_stats_fingerprint(folder))
        for name, (folder, files) in folders.items()
    ]


def _rows(folder, files, raw, drops):
    """The posts of the files of one stream folder."""
    topic, latest = stream_name(folder.name), time.time() + 86_400
    for path in files:
        messages = None
        with suppress(ValueError, RecursionError):
            messages = json.loads(path.read_bytes())
        if isinstance(messages, list):
            yield from (_row(message, topic, latest, raw) for message in messages)
        else:
            yield "broken_json_file"


def _row(message, topic, latest, raw):
    """The values of a post, or the reason for the drop."""
    if not isinstance(message, dict):
        return "broken_message"
    author, content, when = (
        message.get(key) for key in ("sender_full_name", "content", "timestamp")
    )
    if not (
        isinstance(author, str)
        and author.strip()
        and isinstance(content, str)
        and type(when) in (int, float)
    ):
        return "broken_message"
    if not EARLIEST <= when <= latest:  # nan lies nowhere
        return "bad_time"
    if is_bot(author):
        return "bot"
    if content.count("<") > TAGS:
        return "too_many_tags"
    text = html_to_text(content, raw)
    names = normalise_unicode("\n".join([author, *MENTIONED.findall(content)]))
    author = normalise_unicode(author).strip()
    return (author, int(when), topic, text, str(message.get("id", "")), names) if text else "empty"


def html_to_text(content: str, raw: bool = False) -> str:
    """A message's words, a line per block. Quotes, code blocks and images go unless ``raw``.

    Inline code and formulas become ``@code``, a mention ``@user``, a link its text where that is prose and ``@url``
    where not, an emoji its ``:name:``. Unclosed and stray tags are tolerated.
    """
    if not raw and "<blockquote" in content:
        content = QUOTE_INTRO.sub("", content)
    body = LexborHTMLParser(content).body
    if body is None:  # a frameset
        return ""
    for node in body.css(UNSEEN if raw else f"{UNSEEN}, {QUOTED}"):
        node.replace_with("\n")
    for node in body.css("span.katex-html" if raw else "span.katex, math"):
        node.replace_with(" " if raw else CODE)
    for node in body.css(f"{MENTION}, code, img.emoji"):
        if node.tag == "img":
            node.replace_with(node.attributes.get("alt") or "")
        elif node.tag == "span":
            node.replace_with(USER)
        elif not raw:
            node.replace_with(CODE)
    for node in [] if raw else body.css("a"):
        text = " ".join(node.text().split())
        if text and not _is_prose(text, node.attributes):
            node.replace_with(URL)
    body.unwrap_tags(list({node.tag for node in body.css("*")} - BLOCKS))
    body.merge_text_nodes()
    lines = (" ".join(line.split()) for line in body.text(separator="\n").split("\n"))
    return normalise_unicode(drop_edge_marks("\n".join(line for line in lines if line)))


def _is_prose(text, attributes):
    """Whether a link's text was written by a person: no address, file name, channel or dotted identifier."""
    kind, target = (attributes.get(name) or "" for name in ("class", "href"))
    if "stream" in kind or "message-link" in kind or text.startswith("#") or "://" in text:
        return False
    if FILE_NAME.fullmatch(text) and "/user_uploads/" in target:
        return False
    return any(
        word.strip("\"'(),.;:!?*").replace("-", "").replace("'", "").isalpha()
        for word in text.split()
    )


def stream_name(folder: str) -> str:
    """The stream of a folder ``<id>-<name>``; names are percent-encoded with ``.`` (or, in part, ``%``)."""
    name = re.sub(r"^\d+-(?=.)", "", folder)
    try:
        decoded = re.sub(
            rb"[.%]([0-9A-Fa-f]{2})", lambda code: bytes([int(code[1], 16)]), name.encode()
        ).decode()
    except UnicodeError:  # not encoded after all: a plain dot before two digits
        return normalise_unicode(name)
    return decoded.strip() if decoded.isprintable() and decoded.strip() else normalise_unicode(name)


def _streams(root):
    """The JSON files of each stream folder: of those in a ``zulip_json`` at any depth, or in ``root``.

    The name of a stream may hold a slash ("t-compiler/wg-nll"): its folder then lies in another one, whose name is the
    topic, so that all streams of one group have one topic.
    """
    archived = defaultdict(list)
    others = defaultdict(list)
    for path in list_files(root):
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts[:-1])
        if path.suffix != ".json" or hidden:
            continue
        for folder in path.parents:
            if folder.parent.name == "zulip_json":
                archived[folder].append(path)
                break
            if folder.parent == root:
                others[folder].append(path)
    return archived or others
