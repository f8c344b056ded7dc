"""The author's own text of a post that is HTML, as chats and forums publish it."""

import re
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser

from ..cleaning.text import EDGE, drop_edge_marks, normalise_unicode

# most tags of a post, twice as many as people write; deeply nested tags cost quadratic time
MAX_TAGS = 5_000
USER = f"{EDGE}@user{EDGE}"
CODE = f"{EDGE}@code{EDGE}"
URL = f"{EDGE}@url{EDGE}"
# elements whose text nobody sees, or is not the author's
UNSEEN = "script, style, svg, head, title, iframe, video, audio, object"
QUOTED = "blockquote, pre"
# elements that end a line; any other element is part of a line
BLOCKS = set(
    "body p div br li ul ol dl dt dd tr td th table thead tbody h1 h2 h3 h4 h5 h6 hr pre "
    "blockquote".split()
)
SELECTOR_MARK = re.compile(r"[^\w-]")
# "screenshot.png"
FILE_NAME = re.compile(r"[^\s/]{1,200}\.[A-Za-z0-9]{1,5}")


@dataclass(frozen=True)
class Markup:
    """CSS selectors of what a program adds to posts, beside what all programs do; "" for none.

    Attributes
    ----------
    unseen : str
        previews and the like, whose text is not the author's
    quoted : str
        quotes and blocks of code
    mention : str
        mentions of users and groups
    code : str
        inline code and formulas
    reference : str
        links whose text the program wrote, such as names of channels and titles of pages
    """

    unseen: str = ""
    quoted: str = ""
    mention: str = ""
    code: str = ""
    reference: str = ""


def html_text(content: str, markup: Markup, raw: bool = False) -> str:
    """Return the text of a post, with a line per block element; it may be empty.

    Quotes and code blocks are removed. Inline code and formulas become ``@code``, a mention becomes
    ``@user``, an emoji its ``:name:``, a link its text where that is prose, else ``@url``. Unclosed
    and stray tags are tolerated.

    Parameters
    ----------
    content : str
        HTML of the post, with at most MAX_TAGS tags
    markup : Markup
        selectors of the program that published it
    raw : bool
        keep quotes, code, formulas and links
    """
    body = LexborHTMLParser(content).body
    if body is None:  # a frameset
        return ""
    if raw:
        _replace(body, _joined(UNSEEN, markup.unseen), "\n")
        _replace(body, "span.katex-html", " ")
    else:
        _replace(body, _joined(UNSEEN, markup.unseen, QUOTED, markup.quoted), "\n")
        _replace(body, markup.code, CODE)
        _replace(body, "code", CODE)
    _replace(body, markup.mention, USER)
    for emoji in body.css("img.emoji"):
        emoji.replace_with(emoji.attributes.get("alt") or "")
    if not raw:
        _replace(body, markup.reference, URL)
        _replace_addresses(body)
    inline_tags = {node.tag for node in body.css("*")} - BLOCKS
    # a tag such as "o:p" holds marks that mean something in a selector
    body.unwrap_tags([SELECTOR_MARK.sub(r"\\\g<0>", tag) for tag in inline_tags])
    body.merge_text_nodes()
    lines = [" ".join(line.split()) for line in body.text(separator="\n").split("\n")]
    return normalise_unicode(drop_edge_marks("\n".join(filter(None, lines))))


def _joined(*selectors):
    """Return one CSS selector for what any of several matches; "" matches nothing."""
    return ", ".join(filter(None, selectors))


def _replace(body, selector, text):
    """Replace the elements that a CSS selector matches by a text, in place."""
    if not selector:
        return
    for node in body.css(selector):
        node.replace_with(text)


def _replace_addresses(body):
    """Replace the links whose text is no prose by ``@url``, in place."""
    for link in body.css("a"):
        text = " ".join(link.text().split())
        if text and not _is_prose(text, link.attributes.get("href") or ""):
            link.replace_with(URL)


def _is_prose(text, target):
    """Return whether a link's text is words, not an address, file name, channel or identifier."""
    if text.startswith("#") or "://" in text:
        return False
    if "uploads/" in target and FILE_NAME.fullmatch(text):
        return False
    words = [word.strip("\"'(),.;:!?*") for word in text.split()]
    return any(word.replace("-", "").replace("'", "").isalpha() for word in words)
