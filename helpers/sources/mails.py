"""Whole mails as they were sent (RFC 5322, MIME): who wrote one, when, and its text."""

import email
import email.errors
import email.policy
import email.utils
import re
from collections import Counter
from email.message import EmailMessage
from functools import lru_cache
from typing import NamedTuple

from ..cleaning.email_headers import Message, decode_bytes, decode_header, message_of, sender_of
from .html_text import MAX_TAGS, Markup, html_text

# the parser asks for the same few headers of a mail again and again, so what they mean is kept
POLICY = email.policy.default.clone(
    header_factory=lru_cache(maxsize=256)(email.policy.default.header_factory)
)
MAX_HEADER_CHARS = 10_000  # of a longer header only the beginning is read
# what the parser of the standard library raises for broken mails, beside its own errors
PARSER_ERRORS = (
    email.errors.MessageError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
# codecs of host names: their time is quadratic
SLOW_CODECS = {"idna", "punycode"}
# "[L] [PATCH v2 1/3] a subject", not "Re: [PATCH] a subject"
PATCH_SUBJECT = re.compile(
    r"(?:\[[^\[\]]{0,80}\]\s*){0,3}\[[^\[\]]{0,80}\b(?:PATCH|PULL|AUTOSEL)(?:v?\d+)?\b", re.I
)
REPLY_SUBJECT = re.compile(
    r"(?:\[[^\[\]]{0,80}\]\s*){0,3}(?:re|aw|antw|sv|vs|odp)\s?(?:\[\d+\])?:", re.I
)
LIST_ID = re.compile(r"<?([^<>\s]{1,200})>?\s*$")


class Mail(NamedTuple):
    """A mail whose parts and encodings are read.

    Attributes
    ----------
    message : Message
        sender, date, Message-ID and text
    subject : str
    list_id : str
        name of the list that sent it, such as "dev.example.org", "" where no header says it
    people : list of str
        names of those whom the headers To and Cc name
    is_automatic : bool
        a header says that a program sent it
    problem : str
        reason why there is no text: "no_text" or "too_many_tags"; "" where there is one
    """

    message: Message
    subject: str
    list_id: str
    people: list[str]
    is_automatic: bool
    problem: str

    @property
    def is_reply(self) -> bool:
        """Whether the subject says that this mail answers another one."""
        return REPLY_SUBJECT.match(self.subject) is not None

    @property
    def is_patch(self) -> bool:
        """Whether the subject says that this mail is a patch or asks to pull changes."""
        return PATCH_SUBJECT.match(self.subject) is not None


def parse_mail(data: bytes, notes: Counter, raw: bool = False) -> Mail | None:
    """Return a mail, None where the parser of the standard library fails.

    The text is that of the first part text/plain. Where there is none, or only blank, it is that of
    the first part text/html, see :func:`helpers.sources.html_text.html_text`.

    Parameters
    ----------
    data : bytes
        the mail, with its headers
    notes : Counter
        increased in place where a text is not in the encoding that it names, nor in UTF-8, see
        :func:`helpers.cleaning.email_headers.decode_header`
    raw : bool
        keep the quotes and the code of HTML
    """
    try:
        parsed = email.message_from_bytes(data, policy=POLICY)
        fields = _fields(parsed)
        body, problem = _body(parsed, notes, raw)
        sender = _sender(fields)
        people = _names(fields.get("to", "")) + _names(fields.get("cc", ""))
    except PARSER_ERRORS:
        return None
    message = message_of(sender, fields.get("date"), fields.get("message-id", ""), body)
    list_id = LIST_ID.search(fields.get("list-id", ""))
    return Mail(
        message,
        decode_bytes(fields.get("subject", "")),
        list_id[1].lower() if list_id else "",
        people,
        fields.get("auto-submitted", "no").strip().lower() != "no",
        problem,
    )


def _fields(parsed):
    """Return the first value of each header, by its name in lower case."""
    fields = {}
    for name, value in parsed.raw_items():
        value = str(value)[:MAX_HEADER_CHARS]
        if not value.isascii():  # bytes beyond ASCII, which no header may hold
            value = decode_header(value.encode("utf-8", "surrogateescape"), Counter())
        fields.setdefault(name.lower(), value)
    return fields


def _sender(fields):
    """Return name and address of the author, the address in lower case.

    Lists that rewrite the sender ("Jane Doe via dev <dev@example.org>") keep the author's address
    in another header. Where they do not, the address is "".
    """
    name, address = _name_and_address(fields.get("from", ""))
    list_addresses = set(re.findall(r"mailto:([^<>?\s]+)", fields.get("list-post", "").lower()))
    if address not in list_addresses or not address:
        return name, address
    name = re.sub(r"\s+via\s.*", "", name)
    for header in ("x-original-from", "reply-to"):
        pairs = email.utils.getaddresses([fields.get(header, "")])
        authors = {author.lower() for _, author in pairs if "@" in author} - list_addresses
        if len(authors) == 1:
            return name, authors.pop()
    return name, ""


def _name_and_address(value):
    """Return name and address of a From header; "" for what is absent."""
    value = " ".join(value.split())
    name, address = email.utils.parseaddr(value)
    if "@" in address:
        return decode_bytes(name), address.lower()
    return sender_of(decode_bytes(value))


def _names(value):
    """Return the names of a header that lists people."""
    pairs = email.utils.getaddresses([" ".join(value.split())])
    return [decode_bytes(name) for name, _ in pairs if name]


def _body(parsed: EmailMessage, notes, raw):
    """Return the text of a mail, and the reason why there is none."""
    plain = parsed.get_body(("plain",))
    if plain is not None:
        text = _decoded(plain, notes)
        if text.strip():
            return text, ""
    page = parsed.get_body(("html",))
    if page is None:
        return "", "no_text" if plain is None else ""
    content = _decoded(page, notes)
    if content.count("<") > MAX_TAGS:
        return "", "too_many_tags"
    return html_text(content, Markup(), raw), ""


def _decoded(part, notes):
    """Return the content of a part as text; a wrong or unknown encoding counts as UTF-8."""
    content = part.get_payload(decode=True) or b""
    charset = part.get_content_charset("utf-8")
    try:
        if charset in SLOW_CODECS:
            raise LookupError(charset)
        text = content.decode(charset)
    except (LookupError, ValueError):
        text = decode_header(content, notes)
    return text.replace("\r\n", "\n")
