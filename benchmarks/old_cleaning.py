"""Cleaning that tries every expression at every character: what helpers/cleaning must equal.

It is how posts were cleaned before marks were looked for first. Tests and benchmarks hold the
faster way against it; nothing else needs it. The expressions that say what an address is are those
of helpers/cleaning.
"""

import re
import unicodedata
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from unittest import mock

from helpers.cleaning import addresses, code_lines, email, salutations
from helpers.cleaning import text as cleaning
from helpers.cleaning.markup import plain_text

INLINE_CODE = re.compile(r"(?<![\w`])(`{1,2})(?![\s`])[^`\n]{1,400}(?<!\s)\1(?!`)")
FUSED = re.compile(r"(?<=\w)\0+(?=@)|\0+(?=\w)")
SIGNATURE_END = re.compile(r"\n[ \t]{0,9}[Pp]\.? ?[Ss]\b|\Z")


def clean_post(text, author=""):
    """What :func:`helpers.cleaning.text.clean_post` returns."""
    text = normalise_unicode(plain_text(text))
    if "`" in text:
        text = " ".join(text.split("```")[::2])
        text = INLINE_CODE.sub("\0@code\0", text)
    if ">" in text:
        text = cleaning.QUOTE_LINE.sub("", text)
    if "](" in text:
        text = cleaning.MARKDOWN_LINK.sub(cleaning._link_label, text)
    if "!" in text and addresses.UUCP_LIKE.search(text):
        text = addresses.UUCP.sub("\0@email\0", text)
    if "." in text or "://" in text or " dot " in text.lower():
        text = addresses.EMAIL.sub("\0@email\0", text)
        text = addresses.URL.sub(addresses._url_placeholder, text)
    if addresses.PHONE_LIKE.search(text):
        text = addresses.PHONE.sub("\0@user\0", text)
    if "Users" in text or "/home/" in text:
        text = cleaning.HOME.sub("\0@user\0", text)
    if "@" in text or "u/" in text:
        text = cleaning.MENTION.sub("\0@user\0", text)
    if author:
        text = mask_mentions(text, author)
    return " ".join(drop_edge_marks(text).split())


def normalise_unicode(text):
    """What :func:`helpers.cleaning.text.normalise_unicode` returns."""
    if text.isascii() and text.isprintable():
        return text
    return unicodedata.normalize("NFC", cleaning.INVISIBLE.sub("", text))


def drop_edge_marks(text):
    """What :func:`helpers.cleaning.text.drop_edge_marks` returns."""
    if "\0" not in text:
        return text
    return FUSED.sub(" ", text).replace("\0", "")


def mask_mentions(text, author):
    """What :func:`helpers.cleaning.text.mask_mentions` returns."""
    expression = name_expression(author)
    if expression is None:
        return text
    return expression.sub("@self", text)


@lru_cache(maxsize=100_000)
def name_expression(author):
    """The compiled expression of an author's name; None where nothing can be masked."""
    name = re.split(r"@|\sat\s", author.strip())[0].strip().strip("'\"")[:80]
    forms = []
    if len(name) >= 4 and re.search(r"[\W_\d]", name):
        parts = re.split(r"[\s_]+", name)
        full_parts = [part for part in parts if len(part.strip(".")) > 1]
        forms.append(any_case(parts))
        if 1 < len(full_parts) < len(parts):
            forms.append(any_case(full_parts))
    words = {word for word in re.split(r"[\W_]+", name) if len(word) >= 3 and word.isalpha()}
    words = {word for word in words if word.casefold() not in cleaning.EVERYDAY}
    for word in sorted(sorted(words), key=len, reverse=True):
        capitalised = {word[:1].upper() + word[1:], word.upper(), word.capitalize()}
        forms += [re.escape(form) for form in sorted(capitalised)]
    if not forms:
        return None
    return re.compile(r"(?<![\w@])(?:" + "|".join(forms) + r")(?!\w)")


def any_case(parts):
    """The expression of the parts of a name in upper or lower case."""
    return "(?i:" + r"[\s_]+".join(re.escape(part) for part in parts) + ")"


def mask_salutations(text):
    """What :func:`helpers.cleaning.salutations.mask_salutations` returns."""
    names = []
    greeting = salutations.GREETING.match(text[: salutations.MAX_SALUTATION_CHARS])
    if greeting:
        start, end = greeting.span(greeting.lastindex)
        names += salutations.BETWEEN_NAMES.split(text[start:end])
        text = f"{text[:start]}@user{text[end:]}"
    ends = [match.start() for match in SIGNATURE_END.finditer(text)]
    for end in reversed(ends[-2:]):
        tail_start = max(end - salutations.MAX_SALUTATION_CHARS, 0)
        tail = text[tail_start:end]
        signature = salutations.SIGNATURE.search(tail)
        if not signature and "egards," in tail:
            signature = salutations.REGARDS.search(tail)
        if signature:
            name_start, name_end = signature.span(signature.lastindex)
            names.append(tail[name_start:name_end])
            masked_tail = f"{tail[:name_start]}@self{tail[name_end:]}"
            text = text[:tail_start] + masked_tail + text[end:]
    for signature in reversed(list(salutations.INNER_SIGNATURE.finditer(text))):
        names.append(signature[1])
        text = f"{text[: signature.start(1)]}@self{text[signature.end(1) :]}"
    return text, [name for name in names if name]


def own_paragraphs(body):
    """What :func:`helpers.cleaning.email.own_paragraphs` returns."""
    with every_expression():
        return email.own_paragraphs(body)


def always(line):
    """True, whatever the line."""
    return True


@contextmanager
def every_expression():
    """Try every line of a mail against every expression, whatever its letters say."""
    with ExitStack() as stack:
        for module in (email, code_lines):
            for name in vars(module):
                if name.startswith("_may_"):
                    stack.enter_context(mock.patch.object(module, name, always))
        yield
