"""Cleaning common to all sources: one post in, one line out, what tells topic or name replaced.

Placeholders are ``@url @email @user @code @self``. Every expression is linear in the text:
repetitions are bounded or possessive, and where a token may start is pinned by a look-behind, so
that megabytes of ``a@a@a`` cost seconds.
"""

import html
import re
import unicodedata
from functools import lru_cache
from pathlib import Path

# what stands for content that is removed
PLACEHOLDERS = ["@user", "@url", "@email", "@code", "@self"]
# letters and digits, apostrophes inside; group 1: a placeholder, which stands for any content
WORD = re.compile(rf"({'|'.join(PLACEHOLDERS)})(?!\w)|[^\W_]+(?:['’][^\W_]+)*")
ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# C0/C1 controls but tab and newline, soft hyphen, zero-width and direction marks, BOM, lone
# surrogates. The zero-width joiners stay where they join: Persian, Indic scripts and composed emoji
# are spelled with them.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
    "|(?<![^\\W\\d_a-zA-Z])[\u200c\u200d](?![\u2600-\u27bf\U0001f300-\U0001faff])"
)
QUOTE_LINE = re.compile(r"^[ \t]*+>(?![:=.(<_]).*$", re.M)  # not the faces >:( and >.<
# not the quotes of `this' kind
INLINE_CODE = re.compile(r"(?<![\w`])(`{1,2})(?![\s`])[^`\n]{1,400}(?<!\s)\1(?!`)")
BARE_TLD = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|tv|eu|uk|us|ca|au|nz|de|at|ch|fr|it|es|pt|nl|be|lu"
    "|dk|se|no|fi|pl|cz|sk|hu|ro|bg|gr|tr|ru|ua|il|za|br|ar|cl|co|mx|jp|cn|tw|hk|kr|sg|th|ie|si|hr"
    "|rs|ee|lv|lt|ir"
)
# R.app, Std.Dev and as.is are no addresses: these need a path
TLD = BARE_TLD + "|dev|app|me|in|my|id|is"
MARKDOWN_LINK = re.compile(r"!?\[([^\[\]\n]{1,300})\]\((?:https?://|/|#)[^\s()]{0,2000}\)")
URL = re.compile(
    r"<?(?:URL:\s?)?\b(?:(?:https?|ftp|file|git|ssh)://|www\.(?=[\w-]))[^\s<>\"]++>?"
    r"|(?<![\w.@/-])(?:[A-Za-z0-9-]{1,63}\.){1,4}"
    rf"(?:(?:{TLD})/[^\s<>\"]*+|(?:{BARE_TLD})(?![\w.-]*\w))",
    re.I,
)
DOMAIN = rf"(?:[\w-]{{1,63}}\.){{1,5}}(?:{TLD})(?![\w-])"
EMAIL = re.compile(
    rf"(?<![\w.+%-])(?:mailto:\s?)?[\w.+%-]++(?:@(?:[\w-]{{1,63}}\.){{1,5}}[A-Za-z]{{2,24}}"
    rf"|(?:\s{{1,3}}at\s{{1,3}}(?!www\.)|\s?[(\[<{{]\s?(?:at|AT|@)\s?[)\]>}}]\s?){DOMAIN}"
    r"|\s{1,3}(?:at|AT|@)\s{1,3}[\w-]{1,63}(?:\s(?:dot|DOT)\s[\w-]{1,63}){1,5}|\sat\s\.\.\.)"
)
# with a country's code, or grouped as in North America, or after a word that says so; no date,
# version, address of a computer or row of numbers
PHONE = re.compile(
    r"(?=[(+\dTtPpFfMmCcHh])(?:(?<![\w+/.-])(?=\+(?:[^\d\n]{0,3}\d){8})\+\d{1,3}[ .-]?"
    r"(?:\(0?\d{1,4}\)|\d{1,4})(?:[ ./-]{1,2}\d{2,5}){1,5}(?![\w.]*\d)"
    r"|(?<![\w+/.-])\+\d{10,14}(?!\w)"
    r"|(?<![\w+/.,-])(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[.-])\d{3}[.-]\d{4}(?![\w-]|[.,]\d)"
    r"|(?<!\w)(?i:tel|telephone|phone|fax|mobile|cell|handy)(?:[.:]\s?|[.:]?\s)"
    r"\(?[\d+][\d ()./-]{5,20}\d(?!\w))"
    r"(?:,?\s?(?:x|ext\.?)\s?\d{1,6}(?!\w))?"
)
PHONE_LIKE = re.compile(r"\d{2}[ ).-]{0,2}\d{2}")
# the name of a user in the path of a folder
HOME = re.compile(
    r"(?<=[\\/]Users[\\/])[\w.-]{2,40}(?: [A-Z][\w-]{1,30}(?=[\\/]))?|(?<=/home/)[\w.-]{2,40}"
)
MENTION = re.compile(
    r"@_?\*\*[^*\n]{1,200}\*\*"
    r"|(?<![\w@/.])@(?!(?:url|email|user|code|self)(?!\w))[A-Za-z_][\w-]{1,38}+"
    r"|(?<![\w/])/?u/[\w-]{3,20}(?![\w/])"
)
# placeholders are put in between two of these, so that the `x`s of a text do not become one word
# with their neighbours
EDGE = "\0"
FUSED = re.compile(r"(?<=\w)\0+(?=@)|\0+(?=\w)")

# names that are everyday words: masked inside the full name only, or "Will it work?" would become
# a signature
EVERYDAY = set(Path(__file__).with_name("everyday.txt").read_text("utf-8").split())
BOT = re.compile(
    # ignoring case would make "[a-z]Bot" fit Talbot, so only the other branches do
    r"(?:^|[\W_\d])(?i:bots?)(?:[\W_\d]|$)|[a-z0-9]Bots?(?:[\W_\d]|$)"
    r"|(?i:^auto[-_ ]?mod(?:erator)?\b|^github\b|^gitlab\b|^zulip$|^postmaster\b|^bugzilla|^jira\b"
    r"|^jenkins\b|(?:^|[\W_])(?:no|do[-_. ]?not)[-_. ]?reply|mailer[-_]daemon"
    r"|^\[?(?:deleted|removed)\]?$|-(?:request|bounces|owner)(?:@|\sat\s|$)"
    r"|^(?:rustbot|bors|homu|rust-?highfive|triagebot|rfcbot|dependabot|craterbot|autotldr)"
    r"(?:@|\W|$))"
)


def clean_post(text: str, author: str = "") -> str:
    """Return a post as one line: NFC, no invisible characters, no quotes or code, no names.

    Placeholders stand for addresses, numbers of telephones, mentions of people and inline code.
    Never raises on a string. Text that holds nothing of its own comes back empty.

    Parameters
    ----------
    text : str
        With the markup of a chat or a mailing list.
    author : str, display name or address of the writer
        Its occurrences become ``@self``, see :func:`mask_mentions`.
    """
    if "&" in text:
        text = ENTITY.sub(_unescape, text)
    text = normalise_unicode(text)
    if "`" in text:
        # a fence that is never closed runs to the end, as the chat clients show it
        text = " ".join(text.split("```")[::2])
        text = INLINE_CODE.sub("\0@code\0", text)
    if ">" in text:
        text = QUOTE_LINE.sub("", text)
    if "](" in text:
        text = MARKDOWN_LINK.sub(_link_label, text)
    if "." in text or "://" in text or " dot " in text.lower():
        text = EMAIL.sub("\0@email\0", text)
        text = URL.sub(_mask_url, text)
    if PHONE_LIKE.search(text):
        text = PHONE.sub("\0@user\0", text)
    if "Users" in text or "/home/" in text:
        text = HOME.sub("\0@user\0", text)
    if "@" in text or "u/" in text:
        text = MENTION.sub("\0@user\0", text)
    if author:
        text = mask_mentions(text, author)
    return " ".join(drop_edge_marks(text).split())


def _unescape(match):
    """Return the character of an HTML entity."""
    return html.unescape(match[0])


def _link_label(match):
    """Return what a link shows where that is words, a placeholder where it is an address."""
    label = match[1]
    if " " in label or label.isalpha():
        return label
    return "\0@url\0"


def _mask_url(match):
    """Return a placeholder, followed by the punctuation that belongs to the sentence."""
    address = match[0].rstrip(">)]}.,;:!?'*_")
    tail = match[0][len(address) :]
    if match[0].startswith("<") and tail.endswith(">"):
        return "\0@url\0"
    if tail.startswith(")") and "(" in address:
        tail = tail[1:]
    return "\0@url\0" + tail


def normalise_unicode(text: str) -> str:
    """Return text that any encoder takes: NFC, no controls, zero-width marks or surrogates."""
    if text.isascii() and text.isprintable():
        return text
    return unicodedata.normalize("NFC", INVISIBLE.sub("", text))


def drop_edge_marks(text: str) -> str:
    """Take the EDGE marks out, with a blank where one parts a placeholder from a word."""
    if EDGE not in text:
        return text
    return FUSED.sub(" ", text).replace(EDGE, "")


def mask_mentions(text: str, author: str) -> str:
    """Replace an author's own name by ``@self``: the name in any case, its words if capitalised.

    Words of fewer than three letters, with digits (pseudonyms), and everyday words stay as they
    are.

    Parameters
    ----------
    text : str
        A post.
    author : str, display name or address
        Of an address the part before the ``@`` counts: people build it from initials and names.
    """
    pattern = _name_pattern(author)
    if pattern is None:
        return text
    return pattern.sub("@self", text)


@lru_cache(maxsize=100_000)
def _name_pattern(author):
    """Return the expression of an author's name and its words; None where nothing is to mask."""
    name = re.split(r"@|\sat\s", author.strip())[0].strip().strip("'\"")[:80]
    forms = []
    if len(name) >= 4 and re.search(r"[\W_\d]", name):  # otherwise the name is one word, see below
        parts = [re.escape(part) for part in re.split(r"[\s_]+", name)]
        forms.append("(?i:" + r"[\s_]+".join(parts) + ")")

    words = {word for word in re.split(r"[\W_]+", name) if len(word) >= 3 and word.isalpha()}
    words = {word for word in words if word.casefold() not in EVERYDAY}
    for word in sorted(sorted(words), key=len, reverse=True):
        capitalised = {word[:1].upper() + word[1:], word.upper()}
        forms += [re.escape(form) for form in sorted(capitalised)]
    if not forms:
        return None
    return re.compile(r"(?<![\w@])(?:" + "|".join(forms) + r")(?!\w)")


@lru_cache(maxsize=100_000)
def is_bot(author: str) -> bool:
    """Return whether an author is a program, a gateway or nobody: "... bot", GitHub, [deleted].

    "bot" counts as a word of its own or in camel case, so Abbott, Talbot and Cabot stay people.
    """
    return BOT.search(author.strip()) is not None
