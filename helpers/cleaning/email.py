"""What the author of an e-mail wrote: the body without quotes, attributions, signatures, footers, code and forwards.

Everything works line by line with bounded look-ahead, so the cost is linear in the length of the body.
"""

import re

from helpers.cleaning.code_lines import without_code
from helpers.cleaning.email_words import (
    CONTACT,
    DISCLAIMER,
    FIELD,
    HEADER,
    JUNK,
    LONE_FIELD,
    OPENING,
    QUOTING,
    RESERVED,
    VERB,
)  # fmt: skip

# also "RT> ", "|>" and "#>", and the R prompt, whose lines are code
QUOTE = re.compile(r"\s*(?:[A-Za-z]{0,4}>|[|:#%}\]!*+&~]{1,2}\s?>|\|\s)")
MARKER = re.compile(
    r"\s{0,3}([^\w\s\"'(<\[`.,$@\\/-]{1,2})"
)  # of a quote's lines, whatever a news reader put there
# the head of a signed text up to its blank line, and a signature, key or message as a whole
PGP = re.compile(
    r"^-----BEGIN PGP SIGNED.*\n?(?:[^\S\n]*\S.*\n?)*(?:[^\S\n]*\n)?|^-----BEGIN PGP(?s:.*?)(?:^-----END PGP.*\n?|\Z)"
    r"|^-----END PGP.*\n?", re.M)  # fmt: skip
SCRUBBED = re.compile(
    r"(?:An embedded|An HTML|A non-text|An embedded message).{0,60}was scrubbed\.\.\."
)
NEXT_PART = re.compile(r"-{6,} next part -{6,}\s*$")
DELIMITER = re.compile(r"-- ?$|\s*--\s?\d?$")
RULE = re.compile(r"\s*([-_=*~#+.])\1{3,}[-_=*~#+.\s]*$")
FOOTER = re.compile(
    r"mailing list|mailman/listinfo|posting[- ]guide|commented, minimal, self-contained", re.I
)
FORWARD = re.compile(r"\s*-{2,}\s?[^\W\d_][^\d]{4,50}?-{2,}\s*$")
DIGEST = re.compile(r"\s*(?:Message: \d+\s*$|Send \S+ mailing list submissions to|Today's Topics:)")
# "On Mon, 2 Jul 2007, X wrote:", joined from up to four lines. It counts as one where a quote follows, or where an
# address, or a date after an opening word, leaves no doubt
ATTRIBUTION = re.compile(
    rf"\S.{{0,500}}(?<!\w){VERB}(?:\b.{{0,60}})?\s?[:;]\s*(?:\.\.\.)?\s*$", re.I
)
DATE = re.compile(r"\d{4}|\d{1,2}[:.]\d\d|\d[-/.]\d")
ADDRESS = re.compile(r"\S@\S|\sat\s\S+\.|<[^>]{1,200}>|\bat \.\.\.")
# "In article <1@x> jd@example.org (Jane) writes:", also without the colon
ARTICLE = re.compile(
    r"\s*(?:In|From) (?:(?:the )?article:?(?:\s*$|\s\S{0,200}@)|message <|<[^\s<>]{1,200}@)", re.I
)
ARTICLE_END = re.compile(rf"(?:\b(?:{VERB[3:-1]}|write|say)\b.{{0,80}}|:)\s*$", re.I)
PROSE = re.compile(r"\s*(?![^\s]+[^\s.]\s*$)[^\W\d_A-Z]")
MOTTO = re.compile(r"~\s?[^\W\d][^.!?]{3,40}$")
QUOTATION = re.compile(r"[\"“].{20,300}[\"”]")


def own_paragraphs(body: str) -> str:
    """The lines an author wrote, without what was quoted, pasted or appended. May be empty."""
    body = body.expandtabs(8)
    if re.search("^-----BEGIN PGP", body, re.M):
        body = re.sub("^- (?=-)", "", PGP.sub("", body), flags=re.M)
    lines = [line.rstrip("\r") for line in body.split("\n")]
    lines = _without_quotes(_without_appended(_without_fields(lines)))
    paragraphs = _paragraphs([line for line in lines if not JUNK.match(line)])
    lines = "\n\n".join(text for text in paragraphs if not _disclaims(text)).split("\n")
    lines = _without_signature(without_code(_without_signature(lines)))
    return "\n\n".join(_paragraphs(lines))


def _paragraphs(lines):
    return [text.strip("\n") for text in re.split(r"\n\s*\n", "\n".join(lines)) if text.strip()]


def _disclaims(paragraph):
    words = {word.lower() for word in DISCLAIMER.findall(paragraph)}
    return len(words) >= 3 and bool(words & {"confidential", "vertraulich", "confidencial"})


def _without_fields(lines):
    """Cut header fields at the top of the body, and below it those that begin no sentence."""
    top = next(
        (i for i, line in enumerate(lines) if line.strip() and not FIELD.match(line)), len(lines)
    )
    if sum(map(bool, map(str.strip, lines[:top]))) > 1:
        lines = lines[top:]
    return [line for line in lines if not LONE_FIELD.match(line)]


def _without_appended(lines):
    """Cut at attachments, forwarded mails and digests; take list footers and notes on scrubbed parts out."""
    kept, i = [], 0
    while i < len(lines):
        line = lines[i]
        if NEXT_PART.match(line) or DIGEST.match(line):
            break
        if FORWARD.match(line) and any(HEADER.match(after) for after in lines[i + 1 : i + 5]):
            break
        if (
            HEADER.match(line)
            and not QUOTE.match(line)
            and sum(map(bool, map(HEADER.match, lines[i + 1 : i + 5]))) > 1
        ):
            break
        if (
            SCRUBBED.match(line)
            or RULE.match(line)
            and any(FOOTER.search(after) for after in lines[i + 1 : i + 3])
        ):
            while i < len(lines) and lines[i].strip():  # to the end of the paragraph
                i += 1
            continue
        kept.append(line)
        i += 1
    return kept


def _without_quotes(lines):
    marker = _marker(lines)
    quoted = [QUOTE.match(line) is not None or marker(line) for line in lines]
    for i in range(1, len(lines) - 1):
        if quoted[i] and lines[i].startswith(">From ") and not quoted[i - 1] and not quoted[i + 1]:
            quoted[i], lines[i] = (
                False,
                lines[i][1:],
            )  # mbox escapes an author's own line that starts with "From "
        # the tail of a quoted line that a mail program wrapped: short, in the middle of a quote, no sentence of its own
        tail = quoted[i - 1] and quoted[i + 1] and not quoted[i] and len(lines[i - 1]) >= 60
        words = lines[i].strip()
        if (
            tail
            and words
            and (words[0].islower() or " " not in words)
            and len(words) <= 32 - 7 * words.endswith(".")
        ):
            quoted[i] = True
    kept, i = [], 0
    while i < len(lines):
        length = 1 if quoted[i] else _attribution(lines, quoted, i)
        if not length:
            kept.append(lines[i])
        i += length or 1
    return kept


def _marker(lines):
    """Whether a line begins as those do that follow an attribution: one that ends with "writes:", or "In article"."""
    marks = {":", "}"} if sum(line.lstrip()[:2] in (": ", "} ") for line in lines) > 2 else set()
    for i, line in enumerate(lines):
        ends = ATTRIBUTION.match(line.strip()[-600:])
        if (
            ARTICLE.match(line)
            or ends
            and ADDRESS.search(" ".join(lines[max(i - 1, 0) : i + 1])[-900:])
        ):
            after = next(
                (
                    each
                    for each in lines[i + 1 : i + 5]
                    if each.strip() and not ARTICLE_END.search(each)
                ),
                "",
            )
            marks |= {mark[1] for mark in [MARKER.match(after)] if mark}
    return lambda line: (mark := MARKER.match(line)) is not None and mark[1] in marks


def _attribution(lines, quoted, i):
    """How many lines from line i on say who is quoted: 0 to 4."""
    if not lines[i].strip():
        return 0
    if ARTICLE.match(lines[i]):
        ends = (n for n, line in enumerate(lines[i : i + 3], 1) if ARTICLE_END.search(line[-300:]))
        return next(ends, 1 if "@" in lines[i] else 0)
    joined = ""
    for length in range(1, 5):
        if i + length > len(lines) or quoted[i + length - 1] or not lines[i + length - 1].strip():
            return 0
        joined += " " + lines[i + length - 1].strip()
        if len(joined) > 500:
            return 0
        if not joined.rstrip(" .").endswith((":", ";")):
            continue
        if not (ATTRIBUTION.match(joined.strip()) or QUOTING.match(joined)):
            return 0
        after = next(
            (j for j in range(i + length, min(i + length + 4, len(lines))) if lines[j].strip()),
            None,
        )
        before_quote = after is not None and quoted[after]
        address = ADDRESS.search(joined)
        dated = DATE.search(joined) and OPENING.match(joined.strip())
        if address or dated or before_quote and length == 1:
            return length
        return 0
    return 0


def _without_signature(lines):
    """Cut from a "-- " on, and the closing lines that hold titles, addresses and numbers."""
    cut, below = None, 0
    for i in range(len(lines) - 1, -1, -1):
        if DELIMITER.match(lines[i]) and (below <= 15 or _is_card(lines[i + 1 :], False, 99)):
            cut = i
        elif lines[i].strip():
            below += 1
            if below > 40:  # more is not a signature: somebody draws lines with dashes
                break
    above = lines[:cut]  # what stands below a rule and under nothing is the message
    lines = (
        above
        if any(map(str.strip, above))
        else [line for line in lines if not DELIMITER.match(line)]
    )
    for _ in range(8):  # paragraphs
        while lines and (not lines[-1].strip(" -") or RULE.match(lines[-1])):
            lines.pop()
        start = (
            next(
                (
                    i
                    for i in range(len(lines) - 1, -1, -1)
                    if not lines[i].strip() or RULE.match(lines[i])
                ),
                -1,
            )
            + 1
        )
        block = lines[start:]
        # paragraphs at the very end; a lone one is the message itself
        if start == 0 or len(block) > 16:
            return lines
        motto = (
            len(block) > 1
            and MOTTO.match(block[-1].strip())
            or QUOTATION.fullmatch(" ".join(block).strip())
        )
        if not motto and not _is_card(block, len(block) <= 6 and RULE.match(lines[start - 1])):
            return lines
        lines = lines[:start]
    return lines


def _is_card(block, ruled, sentences=1):
    """Whether lines hold an address or stand below a rule, are short, and are no prose of more sentences."""
    if not ruled and not any(CONTACT.search(line) for line in block):
        return False
    if any(RESERVED.search(line) for line in block):
        return True
    ends = sum(line.rstrip().endswith((".", "?", "!", ":")) for line in block)
    sentence = len(block) == 1 and len(block[0].split()) > 5 and (ends or not ruled)
    # most lines run on in lower case, as sentences do and business cards do not, but for addresses
    prose = sum(PROSE.match(line) is not None for line in block[1:]) * 2 > max(len(block) - 1, 1)
    return max(map(len, block)) <= 100 and ends <= sentences and not sentence and not prose
