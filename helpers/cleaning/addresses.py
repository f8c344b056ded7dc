"""Masking of mail addresses, web addresses and telephone numbers in a post.

The expressions EMAIL, URL and PHONE say what an address or a number is. To try one of them at every
character would take most of the time of cleaning. So a mark is looked for that each of them holds
and few words do: an ``@`` or the word "at"; ``://``, or a full stop before the ending of a domain;
a plus sign, or digits in a row. An expression is tried only where a word with such a mark begins,
from left to right, and the result is the same as that of its ``sub``.
"""

import re
import string

from .letter_case import may_hold

BARE_TLD = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|tv|eu|uk|us|ca|au|nz|de|at|ch|fr|it|es|pt|nl|be|lu"
    "|dk|se|no|fi|pl|cz|sk|hu|ro|bg|gr|tr|ru|ua|il|za|br|ar|cl|co|mx|jp|cn|tw|hk|kr|sg|th|ie|si|hr"
    "|rs|ee|lv|lt|ir"
)
# endings that are also parts of other names (R.app, Std.Dev, as.is): they need a path to count
TLD = BARE_TLD + "|dev|app|me|in|my|id|is"
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
# a user of Telegram, by number or name, also where it is a link's target: "tg://user?id=12345"
TELEGRAM_USER = re.compile(
    r"\[[^\[\]\n]{1,300}\]\(tg://\w{1,20}\?[\w=&-]{1,200}+\)|tg://\w{1,20}\?[\w=&-]{1,200}+"
)
# four digits in a row or nearly so: a text without them holds no telephone number
PHONE_LIKE = re.compile(r"\d{2}[ ).-]{0,2}\d{2}")

# The first letters of a host, with what makes it one: "example.o", "example dot "
HOST = r"[\w-]{1,63}(?:\.[\w-]|\s(?:dot|DOT)\s)"
# What stands between the name and the host of an EMAIL: an "@", or "at" as a word of its own, which
# "..." may follow instead of a host. Each begins with letters that are quickly looked for
BEFORE_HOST = rf"(?=(?:\s{{1,3}}|\s?[)\]>}}]\s?)(?:{HOST}|\.\.\.))"
EMAIL_MARKS = {
    "@": re.compile(rf"@(?:(?={HOST})|{BEFORE_HOST})"),
    "at": re.compile(rf"at(?<=[\s(\[<{{]at){BEFORE_HOST}"),
    "AT": re.compile(rf"AT(?<=[\s(\[<{{]AT){BEFORE_HOST}"),
}
# the name in an EMAIL (group 1) with what may stand before it, at the end of a text
MAIL_NAME = re.compile(r"(?<![\w.+%-])(?:mailto:\s?)?([\w.+%-]++)\Z")

# A URL up to its "://" or to the "." of its "www.", at the end of a text. Its groups begin where
# the URL begins without "<", and without "URL:" too
SCHEME = re.compile(r"<?((?:URL:\s?)?)\b((?:https?|ftp|file|git|ssh|www)\Z)", re.I)
SCHEME_MARK = re.compile(r"://(?=[^\s<>\"])")
MAX_SCHEME_CHARS = 12  # of "<URL: https", and of the character before it
# The full stop of "www.", or before what may be the ending of a domain (group 1). The expression of
# a URL ignores case, and then four letters beyond ASCII count as "i", "k" or "s"
URL_DOT = re.compile(
    r"\.(?:(?=([A-Za-z\u0130\u0131\u017f\u212a]{2,4}+)(?:/|(?![.-]{0,3}\w)))"
    r"|(?<=[wW]{3}\.)(?=[\w-]))"
)
ENDINGS = frozenset(TLD.split("|"))
# the labels of a domain but the last, at the end of a text
LABELS = re.compile(r"(?<![\w.-])[\w.-]++\Z")
MAX_LABELS_CHARS = 256  # of four labels, each with its full stop

# the plus sign of a number with a country's code
PLUS = re.compile(r"\+(?=(?:[^\d\n]{0,3}\d){8})")
# the last mark of a number as in North America: "1 (555) 123-4567", "555.123.4567"
LOCAL_HYPHEN = re.compile(r"-(?<=\d{3}-)(?=\d{4})")
LOCAL_DOT = re.compile(r"\.(?<=\d{3}\.)(?=\d{4})")
MAX_LOCAL_CHARS = 11  # before this mark
MIN_LOCAL_CHARS = 7
# the words before a number, without the letter "i", the first character of such a number, and its
# word at the end of a text
NUMBER_WORDS = ("tel", "phone", "fax", "mob", "cell", "handy")
NUMBER = re.compile(r"[\d+](?<=[.:\s(][\d+])(?=(?:[ ()./-]{0,5}\d){5})")
NUMBER_WORD = re.compile(
    r"(?:tel|telephone|phone|fax|mobile|cell|handy)(?:[.:]\s?|[.:]?\s)\(?\Z", re.I
)
MAX_WORD_CHARS = 12  # of "telephone: ("


def mask_addresses(text: str) -> str:
    """Return a text with placeholders for mail addresses, web addresses and telephone numbers.

    The time is linear in the length of the text.

    Parameters
    ----------
    text : str
        A post. Each placeholder gets a mark on both sides, see :data:`helpers.cleaning.text.EDGE`.
    """
    if "!" in text and UUCP_LIKE.search(text):
        text = UUCP.sub("\0@email\0", text)
    if "." in text or "dot" in text or "DOT" in text:
        text = _mask_emails(text)
    if "." in text or "://" in text:
        text = _mask_urls(text)
    return _mask_phones(text)


def _replace(expression, starts, placeholder, text):
    """Return a text with a placeholder for each match of an expression that begins at a start.

    As in ``re.sub``, nothing that another match has reached is looked at again.

    ``starts`` are in order; they are all places where the expression may match. ``placeholder`` is
    a function of a match.
    """
    pieces = []
    end = 0
    for start in starts:
        if start >= end:
            match = expression.match(text, start)
            if match:
                pieces += [text[end:start], placeholder(match)]
                end = match.end()
    if not pieces:
        return text
    return "".join(pieces) + text[end:]


def _mask_emails(text):
    """Return a text with placeholders for mail addresses."""
    marks = []
    for letters, expression in EMAIL_MARKS.items():
        if letters in text:
            marks += [match.start() for match in expression.finditer(text)]
    # without a full stop only a host such as "example dot org" counts
    if not marks or not ("." in text or "://" in text or " dot " in text.lower()):
        return text

    starts = []
    last_mark = 0
    for mark in sorted(marks):
        end = last_mark + len(text[last_mark:mark].rstrip().rstrip("([<{").rstrip())
        # two words, because a blank may follow "mailto:"
        last_blank = max(text.rfind(" ", last_mark, end), last_mark)
        begin = max(text.rfind(" ", last_mark, last_blank), last_mark)
        name = MAIL_NAME.search(text, begin, end)
        if name:
            starts += sorted({name.start(), name.start(1)})
        last_mark = mark
    return _replace(EMAIL, starts, _email_placeholder, text)


def _email_placeholder(match):
    """Return a placeholder for a mail address."""
    return "\0@email\0"


def _mask_urls(text):
    """Return a text with placeholders for web addresses, and for users of Telegram."""
    starts = set()
    if "://" in text:
        text = TELEGRAM_USER.sub("\0@user\0", text)
        for mark in SCHEME_MARK.finditer(text):
            starts.update(_scheme_starts(text, mark.start()))
    for dot in URL_DOT.finditer(text):
        place = dot.start()
        if dot[1] and (dot[1].lower() in ENDINGS or not dot[1].isascii()):
            begin = max(place - MAX_LABELS_CHARS, 0)
            begin = max(text.rfind(" ", begin, place), begin)
            labels = LABELS.search(text, begin, place)
            if labels:
                starts.add(labels.start())
        if text[place - 1] in "wW":
            starts.update(_scheme_starts(text, place))
    return _replace(URL, sorted(starts), _url_placeholder, text)


def _scheme_starts(text, end):
    """Return where a URL may begin that has "://" or the full stop of "www." at this place."""
    scheme = SCHEME.search(text, max(end - MAX_SCHEME_CHARS, 0), end)
    if scheme is None:
        return []
    return [scheme.start(), scheme.start(1), scheme.start(2)]


def _url_placeholder(match):
    """Return a placeholder for a web address, then the punctuation that is the sentence's."""
    address = match[0].rstrip(">)]}.,;:!?'*_")
    tail = match[0][len(address) :]
    if match[0].startswith("<") and tail.endswith(">"):
        return "\0@url\0"
    if tail.startswith(")") and "(" in address:
        tail = tail[1:]
    return "\0@url\0" + tail


def _mask_phones(text):
    """Return a text with placeholders for telephone numbers."""
    # single characters are quickly looked for, and most posts hold no digit
    if text.isascii() and not _has_digit(text):
        return text
    starts = set()
    if "+" in text:
        starts.update(plus.start() for plus in PLUS.finditer(text))
    for expression in (LOCAL_HYPHEN, LOCAL_DOT):
        for mark in expression.finditer(text):
            begin = max(mark.start() - MAX_LOCAL_CHARS, 0)
            starts.update(range(begin, mark.start() - MIN_LOCAL_CHARS + 1))
    if may_hold(text, NUMBER_WORDS):
        for number in NUMBER.finditer(text):
            begin = max(number.start() - MAX_WORD_CHARS, 0)
            word = NUMBER_WORD.search(text, begin, number.start())
            if word:
                starts.add(word.start())
    if not starts or not PHONE_LIKE.search(text):
        return text
    return _replace(PHONE, sorted(starts), _phone_placeholder, text)


def _has_digit(text):
    """Return whether a text holds a digit of ASCII."""
    for digit in string.digits:
        if digit in text:
            return True
    return False


def _phone_placeholder(match):
    """Return a placeholder for a telephone number."""
    return "\0@user\0"
