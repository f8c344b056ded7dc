"""The part of an e-mail's body that its author wrote: no quotes, signatures, footers, forwards.

Of a post that may be a mail or not only what is plainly appended is cut (:func:`without_appended`).

All functions work line by line and look only a few lines ahead, so the time is linear in the length
of the body.
"""

import re
import sys

from .code_lines import without_code

# header fields of a forwarded mail, in the languages of mail programs: "From: Jane", "Betreff: x"
HEADER = re.compile(
    r"\W{0,3}(?:From|Von|De|Van|Da|Fra|Från|Od|Sent|Date|Gesendet|Datum|Envoy[ée]|Enviado|Verzonden"
    r"|Inviato|Sendt|Skickat|Data|Fecha|Dato|To|An|À|A|Para|Aan|Till|Til|Cc|Subject|Betreff|Objet"
    r"|Asunto|Assunto|Onderwerp|Oggetto|Emne|Ämne|Reply-To|Message-ID)\W{0,2}\s?:\s*\S",
)
# the verb of an attribution, such as "Jane Doe wrote:"
VERB = (
    r"(?:wrote|writes|said|says|schrieb|schrieben|(?:es|[ée?])crit|[ée]crivait|escribi[óo?]"
    r"|escribe|ha scritto|scrisse|scritto|escreveu|schreef|skrev|skriver|napsal|napisał(?:\(a\))?"
    r"|pisze|kirjoitti|написал|пишет)"
)
# the first word of an attribution, before a date or a name
OPENING = re.compile(
    r"\s*-{0,2}\s?(?:On|Am|Le|El|Il|Op|Em|Den|Dne|Dnia|At|Quoting|Citando|Zitat von|Quoth)\s"
)
# attributions without a verb: "Quoting Jane Doe:" and "2012/3/7 Jane Doe <jd@example.org>:"
QUOTING = re.compile(
    r"\s*(?:(?:Quoting|Citando|Zitat von)\s.{1,200}|\d{4}[-/]\d\d?[-/]\d\d?[\s,].{1,200}>):$"
)
# contact data on business cards and in lines that programs append: "Tel", "www.", "(555) 123-4567"
CONTACT = re.compile(
    r"\b(?:tel|phone|fax|mobile|cell|office|e-?mail|skype|universit\w*|dep(?:t\b|artment)"
    r"|institut\w*|faculty|lab|ph\.?\s?d|professor|school of|college|laborator\w*|p\.?o\.? box"
    r"|street|avenue)\b|https?://|www\.|\S@\S+\.\w|\w at [\w-]+\.\w"
    r"|\w\.(?:com|org|net|edu|gov|ac\.uk|de|ch|fr)\b|views expressed|\+\d[\d\s().-]{6,}"
    r"|\(\d{3}\)\s?\d{3}|\d{3}-\d{4}",
    re.I,
)
# the start of lines that mail programs, lists and phones add: "Sent from my phone", and the line in
# place of a part that a list removed: "[[HTML version {{dropped:3}}]]"
JUNK = re.compile(
    r"\s*(?:\[\[alternative HTML version deleted\]\]|Sent via "
    r"|Sent from (?:my|the \S+ mailing list) |View this message in context|Get your (?:free|own)"
    r"|Do you Yahoo|(?:Please )?consider the environment|\[?snip\]?\s*$|<snip>"
    r"|Enviado (?:de|desde) mi|Von meinem \w+ gesendet|Evite imprimir|\[cid:"
    r"|.{0,200}\{\{dropped:\d)",
    re.I,
)
# the last line of a post where phones and mail programs add it, in their owner's language:
# "Get Outlook for Android", "Inviato da iPhone"
DEVICE = (
    r"(?:i(?:Phone|Pad)|Android|Samsung|Galaxy|Huawei|Xiaomi|Nokia|BlackBerry|Windows|Yahoo"
    r"|Outlook|Gmail|Mail|Proton|Tapatalk|Smartphone|Handy|mobile)"
)
PHONE_LINE = re.compile(
    r"\s*(?:Sent from my .{1,60}|Get Outlook for .{1,60}|Von meinem .{1,60} gesendet"
    r"|Gesendet von meinem .{1,60}"
    r"|Enviado (?:de|desde) mi .{1,60}|Enviado do meu .{1,60}|Envoyé de mon .{1,60}"
    r"|Inviato dal mio .{1,60}|Ver(?:stuurd|zonden) vanaf mijn .{1,60}|[发發]自我的.{1,60}"
    r"|(?:Sent (?:from|via|with)|Gesendet (?:von|mit)|Enviado (?:de|desde|con)"
    r"|Envoyé (?:de|depuis)|Inviato da|Ver(?:stuurd|zonden) (?:vanaf|met|via)|Wysłan[eo] z"
    r"|Skickat från|Sendt fra|Odesláno z|Отправлено (?:с|из)|Надіслано з)"
    rf" .{{0,20}}{DEVICE}.{{0,60}}"
    rf"|.{{0,20}}{DEVICE}.{{0,20}}(?:から送信|에서 보냄))\.?\s*",
    re.I,
)
# what WhatsApp adds to a message that was changed, in the language of the phone
EDITED = re.compile(
    r"\u200e?<(?:This message was edited|Diese Nachricht wurde bearbeitet"
    r"|Se edit[óo] este mensaje|Esta mensagem foi editada|Ce message a été modifié"
    r"|Questo messaggio è stato modificato|Dit bericht is bewerkt)\.?>\Z"
)
# a paragraph with three different such words, one of them CONFIDENTIAL, is a disclaimer
DISCLAIMER = re.compile(
    r"confidential|vertraulich|confidencial|recipient|destinatario|privileged|in error|por error"
    r"|by mistake|unauthori|disclos|disseminat|forbidden",
    re.I,
)
CONFIDENTIAL = {"confidential", "vertraulich", "confidencial"}
# the start of a quoted line: "> ", "JD> ", "|>", "#> ", "| "; also the R prompt "> ", whose lines
# are code
QUOTE = re.compile(r"\s*(?:[A-Za-z]{0,4}>|[|:#%}\]!*+&~]{1,2}\s?>|\|\s)")
# the header of a signed text, from "-----BEGIN PGP SIGNED MESSAGE-----" to its blank line; a whole
# signature, key or encrypted message, from its BEGIN to its END; a lone END
PGP = re.compile(
    r"^-----BEGIN PGP SIGNED.*\n?(?:[^\S\n]*\S.*\n?)*(?:[^\S\n]*\n)?"
    r"|^-----BEGIN PGP(?s:.*?)(?:^-----END PGP.*\n?|\Z)|^-----END PGP.*\n?",
    re.M,
)
# a quoted line of a post of any source
QUOTE_LINE = re.compile(r"^[ \t]*+>(?![:=.(<_]).*$", re.M)  # not the faces >:( and >.<
# a list's note on an attachment that it removed: "An HTML attachment was scrubbed..."
SCRUBBED = re.compile(r"(?:An embedded|An HTML|A non-text).{0,60}was scrubbed\.\.\.")
# "-------------- next part --------------", below which attachments follow
NEXT_PART = re.compile(r"-{6,} next part -{6,}\s*$")
# "----- Forwarded message -----"
FORWARD = re.compile(r"\s*-{2,}\s?[^\W\d_][^\d]{4,50}?-{2,}\s*$")
# the first lines of a digest and of its messages: "Today's Topics:", "Message: 3"
DIGEST = re.compile(r"\s*(?:Message: \d+\s*$|Send \S+ mailing list submissions to|Today's Topics:)")
# a line drawn of one mark, "______", and words of the footer that a list writes below it
RULE = re.compile(r"\s*([-_=*~#+.])\1{3,}[-_=*~#+.\s]*$")
FOOTER = re.compile(
    r"mailing list|mailman/listinfo|posting[- ]guide|commented, minimal, self-contained"
    r"|you received this message because you are subscribed|^to unsubscribe (?:send|from)\b",
    re.I,
)
# an attribution, the sentence that says who is quoted: "On Mon, 2 Jul 2007, Jane Doe wrote:". It
# may take up to four lines. _says_who_is_quoted says what else it needs
ATTRIBUTION = re.compile(
    rf"\S.{{0,500}}(?<!\w){VERB}(?:\b.{{0,60}})?\s?[:;]\s*(?:\.\.\.)?\s*$", re.I
)
MAX_ATTRIBUTION_LINES = 4
MAX_ATTRIBUTION_CHARS = 500
# a year, "10:15" or "7/2"
DATE = re.compile(r"\d{4}|\d{1,2}[:.]\d\d|\d[-/.]\d")
# "jd@example.org", "jd at example.org", "<jd>", "at ..."
ADDRESS = re.compile(r"\S@\S|\sat\s\S+\.|<[^>]{1,200}>|\bat \.\.\.")
# the line "-- " above a signature
DELIMITER = re.compile(r"-- ?$|\s*--\s?\d?$")
# most lines of a signature below it, and in a post that may be no mail, where lines are short
MAX_SIGNATURE_LINES = 20
MAX_SHORT_SIGNATURE_LINES = 8
MAX_SIGNATURE_CHARS = 80
# a line that begins in lower case and goes on, as within a sentence
PROSE = re.compile(r"\s*(?![^\s]+[^\s.]\s*$)[^\W\d_A-Z]")
# a quotation in a signature, or its last line with the author: "~ Mark Twain"
MOTTO = re.compile(r"^[\"“](?s:.{20,300})[\"”]\Z|\s~\s?[^\W\d][^.!?+*|()~]{3,40}\Z", re.M)


def own_paragraphs(body: str) -> str:
    """Return the paragraphs that an author wrote, without quotes, code, signatures and attachments.

    The result may be empty.
    """
    body = without_pgp(body.expandtabs(8))
    lines = [line.rstrip("\r") for line in body.split("\n")]
    lines = _without_quotes(_without_appended(lines))

    paragraphs = _paragraphs([line for line in lines if not JUNK.match(line)])
    lines = "\n\n".join(text for text in paragraphs if not _disclaims(text)).split("\n")

    lines = _without_signature(without_code(_without_signature(lines)))
    return "\n\n".join(_paragraphs(lines))


def without_pgp(text: str) -> str:
    """Return a text without signatures, keys and encrypted messages of PGP."""
    if not re.search("^-----BEGIN PGP", text, re.M):
        return text
    return re.sub("^- (?=-)", "", PGP.sub("", text), flags=re.M)


def without_appended(text: str) -> str:
    """Return a post of any source without what mail programs and phones append to it.

    Left out are PGP, quoted lines at the end, the last line where a phone added it ("Sent from my
    phone"), a signature of MAX_SHORT_SIGNATURE_LINES below "-- ", WhatsApp's mark of a changed
    message, the footer of a list, and all from the beginning of a mail that is answered or
    forwarded on. If that mail is quoted with ">", only the line "On ... wrote:" above it is left
    out, since the author may go on below.

    Parameters
    ----------
    text : str
        A post, of which nobody knows whether it was a mail.
    """
    text = EDITED.sub("", without_pgp(text).rstrip()).rstrip()
    if "\n" not in text:
        return text
    lines = text.split("\n")
    kept_lines = _above_signature(
        _above_answered_mail(lines), MAX_SHORT_SIGNATURE_LINES, MAX_SIGNATURE_CHARS
    )
    is_cut = len(kept_lines) < len(lines)
    while kept_lines:
        last_line = kept_lines[-1]
        is_added = PHONE_LINE.fullmatch(last_line) or QUOTE_LINE.match(last_line)
        if last_line.strip() and not is_added and not (is_cut and _is_rule(last_line)):
            break
        kept_lines.pop()
    return "\n".join(kept_lines)


def _above_answered_mail(lines):
    """Return the lines above an answered or forwarded mail, without attributions of quotes."""
    quoted = [line.lstrip().startswith(">") for line in lines]
    kept_lines = []
    end = 0  # of the last attribution
    for i, line in enumerate(lines):
        if i < end:
            continue
        if i and _begins_footer(line, lines[i + 1 : i + 3]):
            break
        if _begins_mail(line, lines[i + 1 : i + 5]):
            if FORWARD.match(line) or any(map(str.strip, kept_lines)):
                break
        if OPENING.match(line):
            end = i + _attribution_length(lines, quoted, i)
        elif not quoted[i] and any(quoted[i + 1 : i + 2]) and ATTRIBUTION.match(line.lstrip()):
            end = i + 1  # "Jane wrote:" right above a quote
        if end <= i:
            kept_lines.append(line)
            continue
        following = _first_text(lines, end)
        if following is None or not quoted[following]:
            break
    return kept_lines


def _above_signature(lines, max_lines, max_chars=sys.maxsize):
    """Return the lines above the first "-- " with few lines of text below it, none of them long.

    One above which nothing stands begins no signature: what follows is the message.
    """
    begin = next((i for i, line in enumerate(lines) if line.strip()), 0)
    end = len(lines)
    n_lines = 0
    for i in reversed(range(begin + 1, len(lines))):
        if DELIMITER.match(lines[i]):
            end = i
        elif lines[i].strip():
            n_lines += 1
        if n_lines > max_lines or len(lines[i]) > max_chars:
            break
    return lines[:end]


def _paragraphs(lines):
    """Return the paragraphs of lines as texts, without blank ones."""
    return [text.strip("\n") for text in re.split(r"\n\s*\n", "\n".join(lines)) if text.strip()]


def _disclaims(paragraph):
    """Return whether a paragraph is a disclaimer: "confidential" and two other such words."""
    words = {word.lower() for word in DISCLAIMER.findall(paragraph)}
    return len(words) >= 3 and bool(words & CONFIDENTIAL)


def _without_appended(lines):
    """Cut from the first attachment, forwarded mail or digest on; leave out footers of lists."""
    kept_lines = []
    in_footer = False
    for i, line in enumerate(lines):
        if in_footer and line.strip():  # a footer reaches to the end of its paragraph
            continue
        if NEXT_PART.match(line) or DIGEST.match(line) or _begins_mail(line, lines[i + 1 : i + 5]):
            break
        in_footer = _begins_footer(line, lines[i + 1 : i + 3])
        if not in_footer:
            kept_lines.append(line)
    return kept_lines


def _begins_mail(line, next_lines):
    """Return whether an answered or forwarded mail begins with this line: its header follows."""
    if FORWARD.match(line):
        min_headers = 1
    elif HEADER.match(line) and not QUOTE.match(line):
        min_headers = 2
    else:
        return False
    following_headers = sum(1 for next_line in next_lines if HEADER.match(next_line))
    return following_headers >= min_headers


def _begins_footer(line, next_lines):
    """Return whether a list's footer, or its note on an attachment, begins with this line."""
    if SCRUBBED.match(line):
        return True
    is_ruled = _is_rule(line) or line.rstrip() == "--"
    return is_ruled and any(FOOTER.search(next_line) for next_line in next_lines)


def _without_quotes(lines):
    """Leave out quotes and the attributions above them; lines may be changed in place.

    The rest of a quoted line that a mail program wrapped counts as quoted too.
    """
    quoted = [QUOTE.match(line) is not None for line in lines]
    for i in range(1, len(lines) - 1):
        if quoted[i]:
            # the archive writes an author's own line that starts with "From " as ">From "
            if lines[i].startswith(">From ") and not quoted[i - 1] and not quoted[i + 1]:
                quoted[i] = False
                lines[i] = lines[i][1:]
        elif quoted[i - 1] and quoted[i + 1] and len(lines[i - 1]) >= 60:
            quoted[i] = _is_tail(lines[i].strip())

    kept_lines = []
    end = 0  # of the last attribution
    for i, line in enumerate(lines):
        if i >= end:
            end = i + _attribution_length(lines, quoted, i)
        if i >= end and not quoted[i]:
            kept_lines.append(line)
    return kept_lines


def _is_tail(text):
    """Return whether a line may be the wrapped end of the quoted line before it.

    Such an end is short, and begins in lower case or is one word.
    """
    if not text:
        return False
    max_chars = 25 if text.endswith(".") else 32
    return len(text) <= max_chars and (text[0].islower() or " " not in text)


def _attribution_length(lines, quoted, start):
    """Return how many lines from ``start`` on are an attribution: 0 to MAX_ATTRIBUTION_LINES.

    It is the sentence of the lines up to the first that ends with a colon. This sentence must pass
    :func:`_says_who_is_quoted`, and none of its lines may be blank or quoted.
    """
    sentence = ""
    for end in range(start, min(start + MAX_ATTRIBUTION_LINES, len(lines))):
        if quoted[end] or not lines[end].strip():
            return 0
        sentence += " " + lines[end].strip()
        if len(sentence) > MAX_ATTRIBUTION_CHARS:
            return 0
        if sentence.rstrip(" .").endswith((":", ";")):
            length = end - start + 1
            # a quote below is enough only for one line: several lines may be the author's own
            # words ("..., as the manual says:"), so they also need an address or a date
            following = _first_text(lines, end + 1)
            before_quote = length == 1 and following is not None and quoted[following]
            return length if _says_who_is_quoted(sentence, before_quote) else 0
    return 0


def _first_text(lines, start):
    """Return the index of the first of four lines from ``start`` on that is not blank, or None."""
    for i in range(start, min(start + 4, len(lines))):
        if lines[i].strip():
            return i
    return None


def _says_who_is_quoted(sentence, before_quote):
    """Return whether a sentence is an attribution.

    It must have the form of one. Besides, a quote must follow it, or it must hold an address, or it
    must begin with a word such as "On" and hold a date.
    """
    if not (ATTRIBUTION.match(sentence.strip()) or QUOTING.match(sentence)):
        return False
    if before_quote or ADDRESS.search(sentence):
        return True
    return bool(DATE.search(sentence) and OPENING.match(sentence.strip()))


def _without_signature(lines):
    """Cut from the line "-- " on, and the last paragraphs that are business cards or mottos."""
    lines = _above_signature(lines, MAX_SIGNATURE_LINES)
    texts = [line for line in lines if line.strip()]
    if texts and DELIMITER.match(texts[0]):  # what stands below it is the message, or a card
        if len(texts) > 2 and _is_card(texts[1:]):
            return []
        lines = lines[lines.index(texts[0]) + 1 :]
    for _ in range(8):  # at most so many last paragraphs are cut
        while lines and (not lines[-1].strip(" -") or _is_rule(lines[-1])):
            lines.pop()
        start = len(lines)
        while start and lines[start - 1].strip() and not _is_rule(lines[start - 1]):
            start -= 1
        # the only paragraph is the message itself
        if start == 0 or not _is_card(lines[start:], _is_rule(lines[start - 1])):
            break
        lines = lines[:start]
    return lines


def _is_rule(line):
    """Return whether a line is drawn of one mark."""
    return RULE.match(line) is not None


def _is_card(block, is_ruled=False):
    """Return whether lines are a business card or end with a quotation.

    A card has contact data, or stands below a drawn line (``is_ruled``), and is no prose.
    """
    if MOTTO.search("\n".join(block).strip()):
        return True
    has_contact = any(CONTACT.search(line) for line in block)
    if len(block) > MAX_SIGNATURE_LINES or not (has_contact or is_ruled and len(block) <= 6):
        return False
    sentence_ends = sum(line.rstrip().endswith((".", "?", "!", ":")) for line in block)
    if sentence_ends > 1 or max(map(len, block)) > 100:
        return False
    if len(block) == 1 and len(block[0].split()) > 5 and (sentence_ends or not is_ruled):
        return False
    # in prose most lines begin in lower case and go on; on a business card half of them do at most
    prose_lines = sum(1 for line in block[1:] if PROSE.match(line))
    return prose_lines * 2 <= max(len(block) - 1, 1)
