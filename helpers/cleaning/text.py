"""Cleaning of a post of any source to one line, with placeholders for names, addresses and code.

Placeholders are ``@url @email @user @code @self``. The time of every expression is linear in the
length of the text: repetitions are bounded or possessive, and a look-behind restricts where a match
may begin. So even megabytes of ``a@a@a`` take only seconds.
"""

import re
import unicodedata
from functools import lru_cache
from pathlib import Path

from .email import QUOTE_LINE
from .markup import plain_text

# words that replace removed content
PLACEHOLDERS = ["@user", "@url", "@email", "@code", "@self"]
# a placeholder (group 1), or letters and digits with apostrophes inside: "don't"
WORD = re.compile(rf"({'|'.join(PLACEHOLDERS)})(?!\w)|[^\W_]+(?:['’][^\W_]+)*")
# C0 and C1 controls but tab and newline, soft hyphen, zero-width and direction marks, BOM, lone
# surrogates. Zero-width joiners stay after letters other than a to z, and before emoji: Persian,
# Indic scripts and composed emoji are spelled with them.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
    "|(?<![^\\W\\d_a-zA-Z])[\u200c\u200d](?![\u2600-\u27bf\U0001f300-\U0001faff])"
)
RETWEET = re.compile(r"(?<![\w@])RT @\w{1,40}\b.*", re.S)  # what follows is another's text
# `x = 1` or ``x``; not the old quotation marks `x'. A literal comes first, which re looks for much
# faster than for a position; a look-behind then checks what stands before it
INLINE_CODE = re.compile(r"`(?<![\w`]`)(`?)(?![\s`])[^`\n]{1,400}(?<!\s)`\1(?!`)")
# "[label](https://example.org)", also of an image "![label](...)"
MARKDOWN_LINK = re.compile(r"!?\[([^\[\]\n]{1,300})\]\((?:https?://|/|#)[^\s()]{0,2000}\)")
# the name of a user in the path of a home folder, on Unix and on Windows
HOME = re.compile(
    r"(?<=[\\/]Users[\\/])[\w.-]{2,40}(?: [A-Z][\w-]{1,30}(?=[\\/]))?|(?<=/home/)[\w.-]{2,40}"
)
# "@**Jane Doe**" (Zulip), "@jane", "@jane.doe", "@491701234567" (WhatsApp), "@" before a number
# that is masked, "/u/jane" (Reddit). It begins with a literal as INLINE_CODE does
MENTION = re.compile(
    r"@(?:_?\*\*[^*\n]{1,200}\*\*"
    r"|(?<![\w@/.]@)(?:"
    r"(?!(?:url|email|user|code|self)(?!\w))[^\W\d][\w-]{1,38}+(?:\.[a-z][\w-]{1,38}+)?+"
    r"|\+?\d{7,15}+(?!\w)|\0@user(?=\0)))"
    r"|(?<![\w/])/?u/[\w-]{3,20}(?![\w/])"
)
# a person or a role by number: "<@123456789012345678>", "<@!...>", "<@&...>" (Discord),
# "<@U012AB3CD|jane>", "<!subteam^S012AB3CD>", "<!here>" (Slack)
MENTION_BY_ID = re.compile(
    r"<(?:@(?:[!&]?\d{5,20}|[UW][A-Z\d]{5,20})|!(?:subteam\^\w{5,20}|here|channel|everyone))"
    r"(?:\|[^<>\n]{0,100})?>"
)
# a room by number: "<#123456789012345678>" (Discord), "<#C012AB3CD|>" (Slack)
ROOM_BY_ID = re.compile(r"<#(?:\d{5,20}|[CG][A-Z\d]{5,20})\|?>")
# what Slack shows with another text: "<#C012AB3CD|general>", "<https://example.org|label>",
# "<!date^1392734382^{date}|the 18th>"
SLACK_LABEL = re.compile(
    r"<(?:(#)[CG][A-Z\d]{5,20}|(?:https?://|mailto:|!date\^)[^\s<>|]{1,2000})\|([^<>\n]{1,300})>"
)
# mark on both sides of a placeholder: in "the `x`s of" it keeps the placeholder apart from the "s"
EDGE = "\0"
# marks between a word and a placeholder, or before a word: they become a blank
FUSED = re.compile(r"\0(?<!\0\0)(?:\0*+(?=\w)|(?<=\w\0)\0*+(?=@))")

NOTHING = "(?!)"  # an expression that nothing matches
# names that are everyday words too, such as "will": masked only as part of a full name, because in
# "Will it work?" the word is no name
EVERYDAY = set(Path(__file__).with_name("everyday.txt").read_text("utf-8").split())
FIRST_NAMES = set(Path(__file__).with_name("first_names.txt").read_text("utf-8").split())
# words before a surname: "Yves Le Bot"
SURNAME_WORDS = set("de den der la le ten van".split())

# what follows the name of a bot: "bot-x", "bot 2", "bot (x)", "bot for x"; not "Bot, Jan" and "Bot
# Ond"
PROGRAM_WORDS = (
    "accounts?|actions?|admin|app|automation|build(?:er|s)?|by|ci|classroom|copilot|daemon"
    "|enterprise|for|from|import(?:er)?|merge|mirror|notif[a-z]*|of|pages|runner|security"
    "|server|services?|support|sync|system|team|user|web"
)
AFTER_BOT = rf"(?:$|[^\w\s,'’]|[_\d]|\s[^\w\s]|\s\d|\s(?i:{PROGRAM_WORDS})(?:$|\W))"
# names of programs and gateways: "build-bot", "rustbot", "AutoModerator", "noreply", "GitHub",
# "github-actions"; not "GitHub Fan". DuckDB can read it too: nothing looks ahead or behind
BOT = re.compile(
    # the branch "[a-z0-9]Bot" must not ignore case, or it would match Talbot; the others do
    rf"(?:(?:^|[\W_\d])(?i:bots?)|[a-z0-9]Bots?|(?i:(?:^|[\W_])(?:no|do[-_. ]?not)[-_. ]?reply"
    r"|mailer[-_]daemon|^auto[-_ ]?mod(?:erator)?"
    r"|^(?:rustbot|bors|homu|rust-?highfive|triagebot|rfcbot|dependabot|craterbot|autotldr"
    rf"|bugzilla|postmaster))){AFTER_BOT}"
    r"|^(?i:git(?:hub|lab)|jenkins|jira|zulip)"
    rf"(?:\d*(?:$|[\[(<+:/])|[-_\s]+(?i:{PROGRAM_WORDS})(?:$|[\W_\d]))"
)
# whole names of well-known bots that do not say "bot" as a word: "Dyno", "Dyno#3861", "Slackbot",
# "@appservice-irc:matrix.org"; not "Dyno Smith", nor dyno@example.org
BOT_NAMES = Path(__file__).with_name("bots.txt").read_text("utf-8").split("\n")[:-1]
BOT_NAME_WORDS = [[re.escape(word) for word in name.split()] for name in BOT_NAMES]
BOT_NAME = re.compile(
    rf"@?(?:{'|'.join('[-_. ]?'.join(words) for words in BOT_NAME_WORDS)})(?:#\d{{4}}|:\S+)?", re.I
)
# whole texts that chat programs write in place of a person's, in lower case: "<Media omitted>"
NOTICES = set(Path(__file__).with_name("notices.txt").read_text("utf-8").splitlines())
MAX_NOTICE_CHARS = 300
# such texts with a file or a number: "IMG-20240213-WA0001.jpg (file attached)" (WhatsApp), "Started
# a call that lasted 12 minutes." (Discord)
NOTICE = re.compile(
    r".{1,200}\.\w{2,5} \((?:file attached|datei angehängt|archivo adjunto|arquivo anexado"
    r"|fichier joint|file allegato|bestand bijgevoegd)\)"
    r"|started a call that lasted [\w ]{1,30}\."
)
# the host of an address: "@example.org", " at example.org"
HOST = re.compile(r"(?<=\S)(?:@|\sat\s+(?=\S+\.)).*", re.S)
# an address of a mailing list itself: "r-help-owner@example.org"
LIST_ADDRESS = re.compile(r"-(?:request|bounces|owner)(?:\+\S{0,200})?(?:@|\sat\s+\S+\.)", re.I)
# the number before the name in an address that hides a person's own, of GitHub and GitLab:
# "5+jane@users.noreply.github.com", "5-jane@users.noreply.gitlab.com"
USER_NUMBER = re.compile(r"^\s*\d+[+-](?=\S+?(?:@|\sat\s+)users\.noreply\.)")

# mail addresses, web addresses and telephone numbers
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
# a telephone number that begins with 0: "0151/2345678", "07700 900123", "020 7946 0123",
# "(02) 9999 0123", "06 12 34 56 78", "01512345678", "0049 (0)151 2345678". Ten digits in a row are
# one only after 06 and 07, as mobile numbers begin: most others are ISBNs
NATIONAL_PHONE = (
    r"(?<![\w+/.,=#$-])(?<!\d[\s:])(?:"
    r"0[1-9](?:\d{1,2}(?: | ?[/-] ?)\d{6,8}|\d{2,3}(?: | ?[/-] ?)\d{5,7})(?:-\d{1,4})?"
    r"|0[1-9](?:\d{0,3}[ -]\d{3,4}[ -]\d{4}|\d{1,3}[ -]\d{3}[ -]\d{3})"
    r"|\(0[1-9]\d{0,4}\) ?(?:\d{3,4}[ -]\d{3,5}|\d{5,8})"
    r"|0(?!1.02|\d.00.00)[1-9](?:(?: \d\d){4}|(?:\.\d\d){4})"
    r"|0(?!12345)(?:[67]\d{8}|[1-9]\d{9}|1[5-7]\d{9})"
    r"|\(?00(?!\d{6}[ -]\d{8})[1-9]\d(?:[ ()/-]{0,2}\d){8,11}+"
    r")(?!(?!x\d)\w|\.\w|[,:]\d|[ -]{1,3}\d| ?/ ?[1-9]|\n\d)"
)
# a telephone number with a country's code ("+44 20 7946 0958"), grouped as in North America
# ("(555) 123-4567"), after a word such as "phone:", or as above; no date, version, IP address or
# row of numbers. A number is matched whole or not at all
PHONE = re.compile(
    r"(?=[(+\dTtPpFfMmCcHh])(?:(?<![\w+/.-])(?=\+(?:[^\d\n]{0,3}\d){8})\+\d{1,3}[ ./-]?"
    r"(?:\(\d{1,5}\) ?\d{0,8}|\d{1,4})(?:-\d(?!\d))?(?:[ ./-]{1,2}\d{2,8}){1,5}+"
    r"(?![\w.]*\d|[/-]\d| \d\d)"
    r"|(?<![\w+/.-])\+(?:\d{10,14}|\d{1,3} ?\(\d{1,5}\) ?\d{6,12}|\d{2,3}[ .-]\d{7,12})"
    r"(?![\w.]*\d|[/-]\d| \d\d)"
    r"|(?<![\w+/.,-])(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[.-])\d{3}[.-]\d{4}(?!(?!x\d)[\w-]|[.,]\d)"
    r"|(?<!\w)(?i:tel|telephone|phone|fax|mobile|cell|handy)(?:[.:]\s?|[.:]?\s)"
    r"\(?[\d+](?:[ ()./-]{0,5}\d){5,19}+(?!(?!x\d|[Ee]xt)\w|[ ()./-]{1,5}\d\d)"
    rf"|{NATIONAL_PHONE})"
    r"(?:,?\s?(?:x|[Ee]xt\.?)\s?\d{1,6}(?!\w))?"
)
# a user of Telegram, by number or name, also where it is a link's target: "tg://user?id=12345"
TELEGRAM_USER = re.compile(
    r"\[[^\[\]\n]{1,300}\]\(tg://\w{1,20}\?[\w=&-]{1,200}+\)|tg://\w{1,20}\?[\w=&-]{1,200}+"
)
# what an EMAIL, a URL and a PHONE hold, and few texts do: the others need not be tried
EMAIL_LIKE = re.compile(r"@(?<=[\w.+%-]@)|[\s(\[<{](?:at|AT|@)[\s)\]>}]")
URL_LIKE = re.compile(rf"://|www\.|\.(?:{TLD})(?!\w)", re.I)
PHONE_LIKE = re.compile(r"\d(?:[^\d\n]{0,5}\d){4}")


def clean_post(text: str, author: str = "") -> str:
    """Return a post as one line, in NFC and without markup, quotes, code and invisible characters.

    Placeholders replace addresses, telephone numbers, mentions of people, the author's own name and
    inline code. No string raises an error. A post of quotes and code blocks alone becomes empty.

    Parameters
    ----------
    text : str
        A post, see :func:`helpers.cleaning.markup.plain_text` for what of it is decoded.
    author : str, display name or address of the writer
        Its occurrences become ``@self``, see :func:`mask_mentions`; empty: nothing is masked.
    """
    return clean_plain_text(plain_text(text), author)


def clean_plain_text(text: str, author: str = "") -> str:
    """Return a post as :func:`clean_post` does, of a text without the markup of an export.

    Parameters
    ----------
    text : str
        Result of :func:`helpers.cleaning.markup.plain_text`.
    author : str
        As :func:`clean_post` takes it.
    """
    text = normalise_unicode(text)
    if "`" in text:
        # a fence that is never closed runs to the end, as the chat clients show it
        text = " ".join(text.split("```")[::2])
        text = INLINE_CODE.sub("\0@code\0", text)
    if ">" in text:
        text = QUOTE_LINE.sub("", text)
    if "RT @" in text:
        text = RETWEET.sub("", text)
    if "](" in text:
        text = MARKDOWN_LINK.sub(_link_label, text)
    if "<" in text:
        text = MENTION_BY_ID.sub("\0@user\0", text)
        text = ROOM_BY_ID.sub("\0@url\0", text)
        text = SLACK_LABEL.sub(r"\1\2", text)
    text = mask_addresses(text)
    if "Users" in text or "/home/" in text:
        text = HOME.sub("\0@user\0", text)
    if "@" in text or "u/" in text:
        text = MENTION.sub("\0@user\0", text)
    if author:
        text = mask_mentions(text, author)
    return " ".join(drop_edge_marks(text).split())


def mask_addresses(text: str) -> str:
    """Return a text with placeholders for mail addresses, web addresses and telephone numbers.

    The time is linear in the length of the text.

    Parameters
    ----------
    text : str
        A post. Each placeholder gets a mark on both sides, see EDGE.
    """
    if "!" in text:
        text = UUCP.sub("\0@email\0", text)
    if EMAIL_LIKE.search(text):
        text = EMAIL.sub("\0@email\0", text)
    if "tg://" in text:
        text = TELEGRAM_USER.sub("\0@user\0", text)
    if URL_LIKE.search(text):
        text = URL.sub(_url_placeholder, text)
    if PHONE_LIKE.search(text):
        text = PHONE.sub("\0@user\0", text)
    return text


def _url_placeholder(match):
    """Return a placeholder for a web address, then the punctuation that is the sentence's."""
    address = match[0].rstrip(">)]}.,;:!?'*_")
    tail = match[0][len(address) :]
    if match[0].startswith("<") and tail.endswith(">"):
        return "\0@url\0"
    if tail.startswith(")") and "(" in address:
        tail = tail[1:]
    return "\0@url\0" + tail


def is_notice(text: str) -> bool:
    """Return whether a program wrote a whole text, such as "<Media omitted>"."""
    if len(text) > MAX_NOTICE_CHARS:
        return False
    line = normalise_unicode(text).strip().casefold()
    return line.strip("<>[]().") in NOTICES or NOTICE.fullmatch(line) is not None


def _link_label(match):
    """Return a link's label where it is a word or several, else a placeholder for an address."""
    label = match[1]
    if " " in label or label.isalpha():
        return label
    return "\0@url\0"


def normalise_unicode(text: str) -> str:
    """Return a text in NFC, without controls, zero-width marks and lone surrogates."""
    # no character that Python calls printable is invisible
    if not text.replace("\n", "").replace("\t", "").isprintable():
        text = INVISIBLE.sub("", text)
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", text)


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
    return _name_expression(author).sub("@self", text)


@lru_cache(maxsize=10_000)
def _name_expression(author):
    """Return the expression of an author's name; it matches nothing where that cannot be masked."""
    name = re.split(r"@|\sat\s", USER_NUMBER.sub("", author).strip())[0].strip().strip("'\"")[:80]
    parts = re.split(r"[\s_]+", name)
    # others leave initials out: "neil gandler"
    full_parts = [part for part in parts if len(part.strip(".")) > 1]
    forms = [NOTHING]
    if len(name) >= 4 and re.search(r"[\W_\d]", name):  # otherwise the name is one word, see below
        forms.append(_any_case(parts))
        if len(full_parts) > 1:
            forms.append(_any_case(full_parts))
    for word in re.split(r"[\W_]+", name):
        if len(word) >= 3 and word.isalpha() and word.casefold() not in EVERYDAY:
            forms += [word[0].upper() + word[1:], word.upper(), word.capitalize()]
    return re.compile(r"(?<![\w@])(?:" + "|".join(forms) + r")(?!\w)")


def _any_case(parts):
    """Return the expression of the parts of a name in upper or lower case."""
    return "(?i:" + r"[\s_]+".join(re.escape(part) for part in parts) + ")"


@lru_cache(maxsize=100_000)
def is_bot(author: str) -> bool:
    """Return whether an author is no person: a bot, a gateway (GitHub) or a mailing list.

    "bot" counts only as a word of its own or in camel case, so Abbott, Talbot and Cabot are people,
    and so are "Bot Ond", "Jan Bot" and "GitHub Fan". Of an address only the part before the ``@``
    counts: people have addresses such as ``5+jane@users.noreply.github.com``.
    """
    name = HOST.sub("", author.strip())
    words = name.split()
    if len(words) > 1 and words[-1] in ("Bot", "Bots"):
        if words[-2].casefold() in FIRST_NAMES - EVERYDAY | SURNAME_WORDS:
            return False
    is_named = BOT_NAME.fullmatch(author.strip()) or BOT.search(name)
    return bool(is_named or LIST_ADDRESS.search(author))
