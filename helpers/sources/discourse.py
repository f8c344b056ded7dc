"""Exports of Discourse forums: JSON as the public API gives it.

A file holds a topic (``/t/<id>.json``, with its posts in ``post_stream``), a list of topics or of
posts, or a topic or a post per line. Of a post ``cooked`` (HTML), ``username``, ``created_at`` and
``id`` are read. The posts table's topic is the category of the forum: a topic of Discourse is one
conversation, too narrow to hold an author's topics apart.
"""

import re
import time
from collections import Counter, defaultdict
from datetime import datetime, timezone
from functools import lru_cache, partial

from ..cleaning.code_lines import is_program_output, without_code
from ..cleaning.text import is_bot, normalise_unicode
from ..cleaning.user_names import (
    mask_first_names,
    mask_user_names,
    maskable_user_names,
    words_of,
)
from ..core.artifacts import file_stats_fingerprint, fingerprint_of
from ..core.files import bare_path, read_pieces
from . import Part, row_part, source_files
from .html_text import MAX_TAGS, Markup, html_text
from .json_lines import NO_JSON, json_records, parse_json
from .timestamps import EARLIEST

MAX_TOPIC_BYTES = 1 << 28  # a larger file of one value is counted as broken_json
LINE_SUFFIXES = (".jsonl", ".ndjson")
MARKUP = Markup(
    unseen="aside.onebox, div.onebox, div.lightbox-wrapper, div.poll, details.elided, "
    "div.video-placeholder-container, div.quote-controls, span.filename, span.informations",
    quoted="aside.quote, div.md-table, table",
    mention="a.mention, span.mention, a.mention-group, span.mention-group",
    code="span.math, div.math, kbd",
    reference="a.inline-onebox, a.inline-onebox-loading, a.onebox, a.attachment, a.lightbox, "
    "a.hashtag-cooked, a.badge-wrapper",
)
# "jane wrote:" before a quote that an import from another forum or a mail left
QUOTE_INTRO = re.compile(
    r"(?:<p>)?[^<>\n]{1,80}\b(?:wrote|said)\s?:\s*(?:<br ?/?>|</p>)?\s*(?=<blockquote)"
)
# BBCode that an import from another forum left: an innermost "[quote=jane]...[/quote]", one that
# never ends, and other marks
BBCODE = re.compile(
    r"\[(quote|code|gist|pastebin|video|img)\b[^\[\]\n]{0,200}\]"
    r"(?:(?!\[(?:quote|code|gist|pastebin|video|img)\b).)*?\[/\1\]",
    re.S | re.I,
)
BBCODE_START = re.compile(r"\[(?:quote|code)(?:=[^\[\]\n]{0,200})?\][^\n]*", re.I)
BBCODE_MARK = re.compile(
    r"\[/?(?:quote|code|video|img|li|ul|ol|list|color|size|spoiler|url|b|i|u)"
    r"(?:=[^\[\]\n]{0,200})?\]",
    re.I,
)
MAX_NESTED = 10
QUOTATION = re.compile(r"[“\"„«][^“”\"„«»]*[”\"“»]")
MIN_QUOTATION = 60  # characters; a shorter one may be a word that is talked about
# a user name in the attributes of a quote
QUOTED_NAME = re.compile(r'data-username="([^"<>]{2,80})"')
TAG = re.compile(r"<[^<>]*>")
REGULAR = 1
MODERATOR_ACTION = 2  # a post with the moderators' colour
WHISPER = 4  # for the staff's eyes only


def parts(
    location: str | list[str],
    *,
    topic: str = "forum",
    categories: dict | None = None,
    raw: bool = False,
) -> list[Part]:
    """Return one part per folder of JSON files, and one per file of JSON lines.

    Which user names are masked depends on all files of the location, so a new file makes all parts
    be read again.

    Drops counted: broken_json (one for the file or the line), broken_record (no topic and no post),
    broken_post (a field is missing or of another type), small_action ("closed the topic"), whisper,
    private (of a private message), hidden, deleted, wiki (edited by anybody), bot (also the forum's
    own user), bad_time (before 1979 or in the future), too_many_tags, truncated_file, empty. Noted:
    note_cp1252.

    Parameters
    ----------
    location : str or list of str
        files or folders (searched recursively for ``.json``, ``.jsonl``, ``.ndjson``), plain or
        packed
    topic : str
        topic of posts without a category
    categories : dict or None
        names of categories by their ids; others are called "category 7"
    raw : bool
        keep quotes, code, links and user names; HTML tags are removed in any case

    Raises
    ------
    ValueError
        A location is missing, two files have the same name, or no file holds a topic or a post.
    """
    if not topic.strip():
        raise ValueError("discourse: topic must be a name, because some posts have no category")
    names = {str(number): str(name) for number, name in (categories or {}).items()}
    files = source_files("discourse", location, _is_export)
    stamp = fingerprint_of([(name, file_stats_fingerprint(path)) for name, path in files.items()])
    groups = defaultdict(list)
    for name, path in files.items():
        is_lines = bare_path(path).suffix.lower() in LINE_SUFFIXES
        groups[name if is_lines else f"{name.rpartition('/')[0] or 'topics'}/"].append(path)
    everything = tuple(files.values())
    return [
        row_part(name, partial(_rows, group, everything, topic, names, raw), stamp)
        for name, group in groups.items()
    ]


def _is_export(path):
    """Return whether a file of a folder may hold posts, by its name."""
    is_json = bare_path(path).suffix.lower() in (".json", *LINE_SUFFIXES)
    return is_json and not path.name.startswith(".")


def _posts(path, drops):
    """Yield the posts of a file, each with the topic that holds it, or {} where none does."""
    for record in _records(path, drops):
        values = record if isinstance(record, list) else [record]
        for value in values:
            if not isinstance(value, dict):
                drops["broken_record"] += 1
                continue
            stream = value.get("post_stream")
            posts = stream.get("posts") if isinstance(stream, dict) else value.get("latest_posts")
            if isinstance(posts, list):
                yield from ((post, value) for post in posts)
            elif "cooked" in value:
                yield value, {}
            else:
                drops["broken_record"] += 1


def _records(path, drops):
    """Yield the JSON values of a file: one, or one per line."""
    if bare_path(path).suffix.lower() in LINE_SUFFIXES:
        yield from json_records(path, drops)
        return
    content = b""
    try:
        for piece in read_pieces(path):
            content += piece
            if len(content) > MAX_TOPIC_BYTES:
                break
        yield parse_json(content, drops)
    except (*NO_JSON, EOFError):
        drops["broken_json"] += 1


@lru_cache(maxsize=1)
def _user_names(files):
    """Return the user names of all files that can be masked; kept, since all parts need them."""
    posts = Counter()
    words = Counter()
    for path in files:
        for post, _ in _posts(path, Counter()):
            if _is_complete(post):
                posts[post["username"].strip().casefold()] += 1
                words.update(words_of(TAG.sub(" ", post["cooked"])))
    return maskable_user_names(posts, words)


def _rows(files, everything, default_topic, categories, raw, drops):
    """Yield the posts of files, and the reasons of drops."""
    user_names = _user_names(everything)
    latest = time.time() + 86_400
    for path in files:
        for post, topic in _posts(path, drops):
            reason = _drop_reason(post, topic, latest)
            if reason:
                yield reason
                continue
            author = post["username"].strip()
            text = _text(post["cooked"], raw)
            if not raw:
                # first names first, because what follows one may be a last name
                text = mask_first_names(text)
                text = mask_user_names(text, author.casefold(), user_names)
            category = post.get("category_id", topic.get("category_id"))
            name = default_topic
            if category is not None:
                name = categories.get(str(category), f"category {category}")
            yield author, _time(post), name, text, str(post.get("id", "")), _names(post)


def _is_complete(post):
    """Return whether a value is a post with an author and a text."""
    if not isinstance(post, dict):
        return False
    author = post.get("username")
    return isinstance(author, str) and author.strip() != "" and isinstance(post.get("cooked"), str)


def _drop_reason(post, topic, latest):
    """Return why a post is dropped, "" where it is not."""
    if not _is_complete(post) or not isinstance(post.get("created_at"), str):
        return "broken_post"
    kind = post.get("post_type", REGULAR)
    if kind == WHISPER:
        return "whisper"
    if kind not in (REGULAR, MODERATOR_ACTION):
        return "small_action"
    if topic.get("archetype") == "private_message":
        return "private"
    if post.get("hidden") or post.get("cooked_hidden"):
        return "hidden"
    if post.get("deleted_at") or post.get("user_deleted") or topic.get("deleted_at"):
        return "deleted"
    if post.get("wiki"):
        return "wiki"
    user_id = post.get("user_id")
    if is_bot(post["username"]) or isinstance(user_id, int) and user_id < 0:
        return "bot"
    seconds = _time(post)
    if seconds is None or not EARLIEST <= seconds <= latest:
        return "bad_time"
    if post["cooked"].count("<") > MAX_TAGS:
        return "too_many_tags"
    return ""


def _time(post):
    """Return when a post was written in seconds since 1970 UTC, None where it says no time."""
    try:
        moment = datetime.fromisoformat(post["created_at"])
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return int(moment.timestamp())


def _text(cooked, raw):
    """Return the author's own text of a post."""
    if raw:
        return html_text(cooked, MARKUP, raw)
    if "<blockquote" in cooked:
        cooked = QUOTE_INTRO.sub("", cooked)
    text = html_text(cooked, MARKUP)
    if "[" in text:
        text = _without_bbcode(text)
    lines = [line for line in text.split("\n") if not _is_pasted(line)]
    return "\n".join(without_code(lines))


def _is_pasted(line):
    """Return whether a line is output of a program, or a long quotation and nothing else."""
    return is_program_output(line) or len(line) >= MIN_QUOTATION and QUOTATION.fullmatch(line)


def _without_bbcode(text):
    """Return a text without the quotes and code of BBCode, and without its other marks."""
    for _ in range(MAX_NESTED):
        text, n_removed = BBCODE.subn("\n", text)
        if not n_removed:
            break
    return BBCODE_MARK.sub("", BBCODE_START.sub("", text))


def _names(post):
    """Return the names of people that a post names: of its author, and of those it quotes."""
    names = [post["username"], *QUOTED_NAME.findall(post["cooked"])]
    display_name = post.get("name")
    if isinstance(display_name, str):
        names.append(display_name)
    return normalise_unicode("\n".join(names))
