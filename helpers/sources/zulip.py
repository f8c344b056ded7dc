"""Zulip archives, as the ``zulip-archive`` tool publishes them: one JSON file per topic, one folder per stream.

Layout: ``zulip_json/<id>-<stream>/<topic>.json``, each a list of messages with ``content`` (HTML),
``sender_full_name``, ``timestamp`` and ``id``. The posts table's topic is the stream: a Zulip topic is one
conversation, too narrow to hold an author's topics apart.
"""

import html
import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from helpers.runs import paths
from helpers.runs.artifacts import stamp
from helpers.cleaning.text import EDGE, is_bot, separate, normalise_unicode
from helpers.sources.downloads import clone, is_git_url
from helpers.sources import Part

ROWS = 20_000  # of one frame
EARLIEST = 946_684_800  # 2000-01-01: no chat archive is older

# Attribute values escape "<", so a tag never reaches past the next "<" and the scan is linear. Python's own HTML parser
# is ten times slower, and markup is most of an archive.
TAG = re.compile(r'<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:[^<>"]|"[^"<]*")*+)>|<[!?][^<>]*>')
# "@Name said:" before a quote, in whatever language: a mention, a link into the archive, a colon
QUOTE_INTRO = re.compile(
    r'(?:<span class="user-mention[^<>]*>[^<>]*</span>|<strong>[^<>]*</strong>)\s*'
    r'(?:<a [^<>]*href="[^"<>]*narrow/[^<>]*>[^<>]*</a>|said|wrote)\s*:\s*(?:<br ?/?>\s*|</p>\s*)*(?=<blockquote)'
)
BLOCKS = set("p div br li ul ol dl dt dd tr td th table thead tbody h1 h2 h3 h4 h5 h6 hr pre blockquote".split())
NEVER = {"script", "style", "svg", "head", "title", "iframe", "video", "audio", "object"}
VOID = {"br", "hr", "img", "input", "wbr", "meta", "link"}
FILE_NAME = re.compile(r"[^\s/]{1,200}\.[A-Za-z0-9]{1,5}")


def parts(location: str | list[str], *, raw: bool = False) -> list[Part]:
    """One part per stream folder.

    location: a folder at or above ``zulip_json``, or the URL of a git repository that holds one (cloned once,
        shallowly, into ``data/clones/``), or a list of these.
    raw: keep quotes, code blocks and formulas; the markup goes all the same.
    Drops counted: broken_json_file, broken_message, bad_time, bot, empty.
    Raises ValueError where the location is missing, holds no archive, or cannot be cloned.
    """
    locations = [location] if isinstance(location, str | Path) else location
    found = {}
    for place in locations:
        root = clone(str(place)) if is_git_url(str(place)) else paths.resolve(place)
        if not root.is_dir():
            raise ValueError(f"zulip: {place} is not a folder or a git URL")
        for folder in _streams(root):
            name = folder.name if len(locations) == 1 else f"{root.name}/{folder.name}"
            if name in found:  # two archives below one root
                name = folder.relative_to(root).as_posix()
            found[name] = Part(name, lambda drops, folder=folder: read(folder, drops, raw), stamp(folder))
    return list(found.values())


def read(folder: Path, drops: Counter, raw: bool = False) -> Iterator[pd.DataFrame]:
    """The posts of one stream folder in frames of about ROWS rows."""
    topic = stream_name(folder.name)
    latest = time.time() + 86_400
    rows = []
    for path in sorted(folder.glob("*.json")):
        try:
            messages = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            messages = None
        if not isinstance(messages, list):
            drops["broken_json_file"] += 1
            continue
        for message in messages:
            row = _row(message, latest, raw)
            if isinstance(row, str):
                drops[row] += 1
            else:
                rows.append(row)
        if len(rows) >= ROWS:
            yield _frame(rows, topic)
            rows = []
    if rows:
        yield _frame(rows, topic)


def _row(message, latest, raw):
    """(author, time, text, id), or the reason for the drop."""
    if not isinstance(message, dict):
        return "broken_message"
    author, content, when = (message.get(key) for key in ("sender_full_name", "content", "timestamp"))
    if not (isinstance(author, str) and author.strip() and isinstance(content, str)):
        return "broken_message"
    if type(when) not in (int, float):
        return "broken_message"
    if not EARLIEST <= when <= latest:  # nan lies nowhere
        return "bad_time"
    if is_bot(author):
        return "bot"
    text = html_to_text(content, raw)
    return (normalise_unicode(author).strip(), int(when), text, str(message.get("id", ""))) if text else "empty"


def _frame(rows, topic):
    frame = pd.DataFrame(rows, columns=["author", "time", "text", "id"]).astype({"time": "int64"})
    frame.insert(2, "topic", topic)
    return frame


def html_to_text(content: str, raw: bool = False) -> str:
    """A message's words. Quotes, code blocks, formulas and images go unless ``raw``.

    Inline code becomes ``@code``, a mention ``@user``, a link its text where that is prose and ``@url`` where not,
    an emoji its ``:name:``. Unclosed and stray tags are tolerated.
    """
    if not raw and "<blockquote" in content:
        content = QUOTE_INTRO.sub("", content)
    out, position = [], 0
    skip, depth = None, 0  # inside this element nothing is kept
    link = None  # the attributes of the open link, and where in `out` its text starts
    for match in TAG.finditer(content):
        if skip is None and match.start() > position:
            out.append(html.unescape(content[position : match.start()]))
        position = match.end()
        closing, name, attributes = match[1], (match[2] or "").lower(), match[3] or ""
        if skip is not None:
            if name == skip and not attributes.endswith("/"):
                depth += -1 if closing else 1
                if depth == 0:
                    skip = None
        elif name == "a":
            if link is not None:
                out[link[1] :] = [_link_text("".join(out[link[1] :]), link[0], raw)]
            link = None if closing else (attributes, len(out))
        elif name in BLOCKS:
            out.append("\n")
            if not closing and name not in VOID and _dropped(name, attributes, raw):
                skip, depth = name, 1
        elif not closing and name not in VOID:
            instead = _replaced(name, attributes, raw)
            if instead is not None:
                out.append(instead)
                skip, depth = name, 1
        elif name == "img" and "emoji" in attributes:
            out.append(_attribute(attributes, "alt"))
    if skip is None:
        out.append(html.unescape(content[position:]))
    lines = (" ".join(line.split()) for line in "".join(out).split("\n"))
    return normalise_unicode(separate("\n".join(line for line in lines if line)))


def _dropped(name, attributes, raw):
    """True for block elements whose content is not the author's prose."""
    if name == "div" and ("message_inline" in attributes or "message_embed" in attributes):
        return True  # previews of what a link in the text already names
    return not raw and (name in ("blockquote", "pre") or name == "div" and "codehilite" in attributes)


def _replaced(name, attributes, raw):
    """What stands for an inline element, or None where its text is kept."""
    if name == "span" and "class=" in attributes:
        kind = _attribute(attributes, "class")
        if kind.startswith(("user-mention", "user-group-mention", "topic-mention")):
            return f"{EDGE}@user{EDGE}"
        if kind.startswith("katex-html") or kind.startswith("katex") and not raw:
            return " "
        return None
    if name == "code":
        return None if raw else f"{EDGE}@code{EDGE}"
    return "" if name in NEVER or name in ("math", "annotation") and not raw else None


def _link_text(text, attributes, raw):
    """A link's text where a person wrote it; ``@url`` for addresses, file names, channels and dotted identifiers."""
    text = " ".join(text.split())
    if raw or not text:
        return text
    if "stream" in _attribute(attributes, "class") or "message-link" in attributes or text.startswith("#"):
        return f"{EDGE}@url{EDGE}"
    if "://" in text or FILE_NAME.fullmatch(text) and "/user_uploads/" in attributes:
        return f"{EDGE}@url{EDGE}"
    prose = any(word.strip("\"'(),.;:!?*").replace("-", "").replace("'", "").isalpha() for word in text.split())
    return text if prose else f"{EDGE}@url{EDGE}"


def _attribute(attributes, name):
    found = re.search(rf'\b{name}="([^"]*)"', attributes)
    return html.unescape(found[1]) if found else ""


def stream_name(folder: str) -> str:
    """The stream of a folder ``<id>-<name>``; names are percent-encoded with ``.`` (or, in part, ``%``)."""
    name = re.sub(r"^\d+-(?=.)", "", folder)
    try:
        data = re.sub(rb"[.%]([0-9A-Fa-f]{2})", lambda code: bytes([int(code[1], 16)]), name.encode())
        decoded = data.decode()
    except UnicodeError:  # not encoded after all: a plain dot before two digits
        return normalise_unicode(name)
    return decoded.strip() if decoded.isprintable() and decoded.strip() else normalise_unicode(name)


def _streams(root):
    """The stream folders below ``root``: those of every ``zulip_json``, or its own."""
    archives = [root] if root.name == "zulip_json" else []
    for place, folders, _ in os.walk(root):
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
        if "zulip_json" in folders:
            archives.append(Path(place) / "zulip_json")
            folders.remove("zulip_json")
        elif Path(place) in archives:
            folders.clear()
    folders = [folder for archive in archives or [root] for folder in sorted(archive.iterdir()) if folder.is_dir()]
    return [folder for folder in folders if any(folder.glob("*.json"))]
