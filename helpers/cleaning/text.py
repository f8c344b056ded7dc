"""Cleaning of a post of any source to one line, with placeholders for names, addresses and code.

Placeholders are ``@url @email @user @code @self``. The time of every expression is linear in the
length of the text: repetitions are bounded or possessive, and a look-behind restricts where a match
may begin. So even megabytes of ``a@a@a`` take only seconds.
"""

import html
import re
import unicodedata
from functools import lru_cache
from pathlib import Path

# words that replace removed content
PLACEHOLDERS = ["@user", "@url", "@email", "@code", "@self"]
# a placeholder (group 1), or letters and digits with apostrophes inside: "don't"
WORD = re.compile(rf"({'|'.join(PLACEHOLDERS)})(?!\w)|[^\W_]+(?:['’][^\W_]+)*")
# an HTML entity: "&amp;", "&#39;", "&#x27;"
ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# C0 and C1 controls but tab and newline, soft hyphen, zero-width and direction marks, BOM, lone
# surrogates. Zero-width joiners stay after letters other than a to z, and before emoji: Persian,
# Indic scripts and composed emoji are spelled with them.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
    "|(?<![^\\W\\d_a-zA-Z])[\u200c\u200d](?![\u2600-\u27bf\U0001f300-\U0001faff])"
)
QUOTE_LINE = re.compile(r"^[ \t]*+>(?![:=.(<_]).*$", re.M)  # not the faces >:( and >.<
# `x = 1` or ``x``; not the old quotation marks `x'
INLINE_CODE = re.compile(r"(?<![\w`])(`{1,2})(?![\s`])[^`\n]{1,400}(?<!\s)\1(?!`)")
BARE_TLD = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|tv|eu|uk|us|ca|au|nz|de|at|ch|fr|it|es|pt|nl|be|lu"
    "|dk|se|no|fi|pl|cz|sk|hu|ro|bg|gr|tr|ru|ua|il|za|br|ar|cl|co|mx|jp|cn|tw|hk|kr|sg|th|ie|si|hr"
    "|rs|ee|lv|lt|ir"
)
# endings that are also parts of other names (R.app, Std.Dev, as.is): they need a path to count
TLD = BARE_TLD + "|dev|app|me|in|my|id|is"
# "[label](https://example.org)", also of an image "![label](...)"
MARKDOWN_LINK = re.compile(r"!?\[([^\[\]\n]{1,300})\]\((?:https?://|/|#)[^\s()]{0,2000}\)")
# "https://example.org/x", "www.example.org", "<URL: http://...>", "example.org/x", "example.org"
URL = re.compile(
    r"<?(?:URL:\s?)?\b(?:(?:https?|ftp|file|git|ssh)://|www\.(?=[\w-]))[^\s<>\"]++>?"
    r"|(?<![\w.@/-])(?:[A-Za-z0-9-]{1,63}\.){1,4}"
    rf"(?:(?:{TLD})/[^\s<>\"]*+|(?:{BARE_TLD})(?![\w.-]*\w))",
    re.I,
)
# "mail.example.org"
DOMAIN = rf"(?:[\w-]{{1,63}}\.){{1,5}}(?:{TLD})(?![\w-])"
# "jd@example.org", "jd at example.org", "jd [at] example.org", "jd at example dot org", "jd at ..."
EMAIL = re.compile(
    rf"(?<![\w.+%-])(?:mailto:\s?)?[\w.+%-]++(?:@(?:[\w-]{{1,63}}\.){{1,5}}[A-Za-z]{{2,24}}"
    rf"|(?:\s{{1,3}}at\s{{1,3}}(?!www\.)|\s?[(\[<{{]\s?(?:at|AT|@)\s?[)\]>}}]\s?){DOMAIN}"
    r"|\s{1,3}(?:at|AT|@)\s{1,3}[\w-]{1,63}(?:\s(?:dot|DOT)\s[\w-]{1,63}){1,5}|\sat\s\.\.\.)"
)
# "uunet!mcvax!jane", "{ucbvax,decwrl}!sun!jane", "...!uunet!jane", also before "@example.org": a
# path of hosts to a user, as mail had it before there were domains; no "no!no!no" or "done!thanks"
UUCP = re.compile(
    r"(?<![\w!.}/:=@-])(?!([a-z\d.-]{1,64})!\1!)"
    r"(?:(?:\{[\w,.-]{1,99}\}|\.{2,3})!|[a-z\d][a-z\d.-]{0,64}+![a-z\d.-]{1,64}+!)"
    r"(?:[a-z\d.-]{1,64}+!){0,9}[\w%-]++(?:[.+@%-]\w++){0,9}"
)
# a "!" within a word: a text without one holds no path
UUCP_LIKE = re.compile(r"!(?<=[\w.}]!)\w")
# a telephone number with a country's code ("+44 20 7946 0958"), grouped as in North America
# ("(555) 123-4567"), or after a word such as "phone:"; no date, version, IP address or row of
# numbers. A number is matched whole or not at all
PHONE = re.compile(
    r"(?=[(+\dTtPpFfMmCcHh])(?:(?<![\w+/.-])(?=\+(?:[^\d\n]{0,3}\d){8})\+\d{1,3}[ ./-]?"
    r"(?:\(\d{1,5}\) ?\d{0,8}|\d{1,4})(?:-\d(?!\d))?(?:[ ./-]{1,2}\d{2,8}){1,5}+"
    r"(?![\w.]*\d|[/-]\d| \d\d)"
    r"|(?<![\w+/.-])\+(?:\d{10,14}|\d{1,3} ?\(\d{1,5}\) ?\d{6,12}|\d{2,3}[ .-]\d{7,12})"
    r"(?![\w.]*\d|[/-]\d| \d\d)"
    r"|(?<![\w+/.,-])(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[.-])\d{3}[.-]\d{4}(?!(?!x\d)[\w-]|[.,]\d)"
    r"|(?<!\w)(?i:tel|telephone|phone|fax|mobile|cell|handy)(?:[.:]\s?|[.:]?\s)"
    r"\(?[\d+](?:[ ()./-]{0,5}\d){5,19}+(?!(?!x\d|[Ee]xt)\w|[ ()./-]{1,5}\d\d))"
    r"(?:,?\s?(?:x|[Ee]xt\.?)\s?\d{1,6}(?!\w))?"
)
# four digits in a row or nearly so: a text without them holds no telephone number
PHONE_LIKE = re.compile(r"\d{2}[ ).-]{0,2}\d{2}")
# the name of a user in the path of a home folder, on Unix and on Windows
HOME = re.compile(
    r"(?<=[\\/]Users[\\/])[\w.-]{2,40}(?: [A-Z][\w-]{1,30}(?=[\\/]))?|(?<=/home/)[\w.-]{2,40}"
)
# "@**Jane Doe**" (Zulip), "@jane", "/u/jane" (Reddit)
MENTION = re.compile(
    r"@_?\*\*[^*\n]{1,200}\*\*"
    r"|(?<![\w@/.])@(?!(?:url|email|user|code|self)(?!\w))[A-Za-z_][\w-]{1,38}+"
    r"|(?<![\w/])/?u/[\w-]{3,20}(?![\w/])"
)
# mark on both sides of a placeholder: in "the `x`s of" it keeps the placeholder apart from the "s"
EDGE = "\0"
# marks between a word and a placeholder: they become a blank
FUSED = re.compile(r"(?<=\w)\0+(?=@)|\0+(?=\w)")

# names that are everyday words too, such as "will": masked only as part of a full name, because in
# "Will it work?" the word is no name
EVERYDAY = set(Path(__file__).with_name("everyday.txt").read_text("utf-8").split())
# names of programs and gateways: "build-bot", "rustbot", "AutoModerator", "noreply@x", "[deleted]"
BOT = re.compile(
    # the branch "[a-z0-9]Bot" must not ignore case, or it would match Talbot; the others do
    r"(?:^|[\W_\d])(?i:bots?)(?:[\W_\d]|$)|[a-z0-9]Bots?(?:[\W_\d]|$)"
    r"|(?i:^auto[-_ ]?mod(?:erator)?\b|^github\b|^gitlab\b|^zulip$|^postmaster\b|^bugzilla|^jira\b"
    r"|^jenkins\b|(?:^|[\W_])(?:no|do[-_. ]?not)[-_. ]?reply|mailer[-_]daemon"
    r"|^\[?(?:deleted|removed)\]?$|-(?:request|bounces|owner)(?:@|\sat\s|$)"
    r"|^(?:rustbot|bors|homu|rust-?highfive|triagebot|rfcbot|dependabot|craterbot|autotldr)"
    r"(?:@|\W|$))"
)


def clean_post(text: str, author: str = "") -> str:
    """Return a post as one line, in NFC and without quotes, code and invisible characters.

    Placeholders replace addresses, telephone numbers, mentions of people, the author's own name and
    inline code. No string raises an error. A post of quotes and code blocks alone becomes empty.

    Parameters
    ----------
    text : str
        A post, with its Markdown and HTML entities.
    author : str, display name or address of the writer
        Its occurrences become ``@self``, see :func:`mask_mentions`; empty: nothing is masked.
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
    if "!" in text and UUCP_LIKE.search(text):
        text = UUCP.sub("\0@email\0", text)
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
    """Return a link's label where it is a word or several, else a placeholder for an address."""
    label = match[1]
    if " " in label or label.isalpha():
        return label
    return "\0@url\0"


def _mask_url(match):
    """Return a placeholder for an address, then the punctuation that belongs to the sentence."""
    address = match[0].rstrip(">)]}.,;:!?'*_")
    tail = match[0][len(address) :]
    if match[0].startswith("<") and tail.endswith(">"):
        return "\0@url\0"
    if tail.startswith(")") and "(" in address:
        tail = tail[1:]
    return "\0@url\0" + tail


def normalise_unicode(text: str) -> str:
    """Return a text in NFC, without controls, zero-width marks and lone surrogates."""
    if text.isascii() and text.isprintable():
        return text
    return unicodedata.normalize("NFC", INVISIBLE.sub("", text))


def drop_edge_marks(text: str) -> str:
    """Return a text without EDGE marks, with a blank where one stands at a word's edge."""
    if EDGE not in text:
        return text
    return FUSED.sub(" ", text).replace(EDGE, "")


def mask_mentions(text: str, author: str) -> str:
    """Return a text with ``@self`` for the author's own name.

    The full name is masked in upper and lower case, a word of it alone only where it is
    capitalised. Words with fewer than three letters, words with digits (such as pseudonyms) and
    everyday words are not masked alone.

    Parameters
    ----------
    text : str
        A post.
    author : str, display name or address
        Of an address the part before the ``@`` counts as the name.
    """
    pattern = _name_pattern(author)
    if pattern is None:
        return text
    return pattern.sub("@self", text)


@lru_cache(maxsize=100_000)
def _name_pattern(author):
    """Return the expression of an author's name and its words; None where nothing can be masked."""
    name = re.split(r"@|\sat\s", author.strip())[0].strip().strip("'\"")[:80]
    forms = []
    if len(name) >= 4 and re.search(r"[\W_\d]", name):  # otherwise the name is one word, see below
        parts = re.split(r"[\s_]+", name)
        full_parts = [part for part in parts if len(part.strip(".")) > 1]
        forms.append(_any_case(parts))
        if 1 < len(full_parts) < len(parts):  # others leave initials out: "neil gandler"
            forms.append(_any_case(full_parts))

    words = {word for word in re.split(r"[\W_]+", name) if len(word) >= 3 and word.isalpha()}
    words = {word for word in words if word.casefold() not in EVERYDAY}
    for word in sorted(sorted(words), key=len, reverse=True):
        capitalised = {word[:1].upper() + word[1:], word.upper(), word.capitalize()}
        forms += [re.escape(form) for form in sorted(capitalised)]
    if not forms:
        return None
    return re.compile(r"(?<![\w@])(?:" + "|".join(forms) + r")(?!\w)")


def _any_case(parts):
    """Return the expression of the parts of a name in upper or lower case."""
    return "(?i:" + r"[\s_]+".join(re.escape(part) for part in parts) + ")"


@lru_cache(maxsize=100_000)
def is_bot(author: str) -> bool:
    """Return whether an author is no person: a bot, a gateway (GitHub) or a deleted account.

    "bot" counts only as a word of its own or in camel case, so Abbott, Talbot and Cabot are people.
    """
    return BOT.search(author.strip()) is not None
