r"""Posts that a file holds encoded, or as markup, as their readers saw them.

Exports of mail, forums and editors leave HTML, BBCode, quoted-printable
(``=E2=80=99``), escapes of JSON (``\u2019``), or UTF-8 read as Windows-1252 (``â€™``) in posts. Two
people whose posts are so look alike. A post is decoded only where it plainly is such a text: the
telltale stands in it, and nothing that this encoding would have written otherwise. So program code
and prose about markup stay. The time of every expression is linear, as in
:mod:`helpers.cleaning.text`.
"""

import html
import json
import quopri
import re

from .email import without_appended

MAX_LAYERS = 3  # encodings within one another that are decoded: "&amp;amp;lt;" has three

# an HTML entity: "&amp;", "&#39;", "&#x27;"
ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")

# elements that end a line
BLOCKS = (
    "p|div|br|li|ul|ol|dl|dt|dd|tr|table|thead|tbody|h[1-6]|hr|pre|blockquote|html|body|head|title"
)
# all elements of HTML that a post may hold, those of Teams ("at", "emoji"), and those of Word:
# "o:p", "st1:place", "w:sdt"
ELEMENTS = (
    f"{BLOCKS}|a|abbr|acronym|address|article|aside|audio|b|base|big|button|caption|center|cite"
    "|code|col|colgroup|del|details|dfn|dir|em|figcaption|figure|font|footer|form|header|i|iframe"
    "|img|ins|kbd|label|link|main|map|mark|meta|nav|nobr|object|picture|q|s|samp|script|section"
    "|small|source|span|strike|strong|style|sub|summary|sup|svg|td|tfoot|th|time|tt|u|var|video"
    "|wbr|xml|at|attachment|codeblock|emoji|systemeventmessage|(?:o|v|w|m|st\\d):\\w{1,40}"
)
# group 1 is the slash of an end tag, group 2 the element; also comments, as Word writes them:
# "<!--[if gte mso 9]>", "<![endif]-->"
TAG = re.compile(
    rf"<(/?)({ELEMENTS})(?:\s[^<>]*|/)?>|<!(?:--|\[)[^<>]*>|<[!?](?:doctype|xml)\b[^<>]*>", re.I
)
# a tag of no element of HTML, such as "<String>": the post is no HTML, where it would be "&lt;"
NO_ELEMENT = re.compile(rf"</?(?!(?:{ELEMENTS})[\s/>])[a-z][\w-]*+(?:\s[^<>]*)?>", re.I)
# a post that begins with "<p>text" or with "<div class='x'>"
PAGE_START = re.compile(
    rf"\s*<(?:!doctype|(?!br|hr|pre)(?:{BLOCKS}|span|article|aside|attachment|figure|section)"
    r"(?:\s[^<>]+>|>\s*<|>(?=\S)))",
    re.I,
)
# "<br />", "text.<br>" or the end of "<b>text</b>": the tags of a post that is else plain text.
# Where one stands behind a quotation mark or bracket, the post is about HTML, or code
TEXT_TAG = re.compile(
    r"<(?:br\s?/>|br>(?:(?<=[\w.,;:!?)]<br>)|(?=\r?\n|\Z))"
    r"|(?<=[^\s>]<)/(?:a|b|big|em|font|i|s|small|strike|strong|sub|sup|u)>)",
    re.I,
)
QUOTED_TAG = re.compile(r"[\"'`(=]</?[a-z]", re.I)
CODE_ELEMENT = re.compile(r"<code(?:\s[^<>]*)?>([^<>`\n]{1,400})</code>", re.I)
BLOCK = re.compile(BLOCKS, re.I)
# an element whose text nobody sees, or that is a quote or code, without another such one in it
HIDDEN = re.compile(
    r"<(aside|attachment|audio|blockquote|codeblock|emoji|head|iframe|object|pre|script|style|svg"
    r"|systemeventmessage|title|video|xml)(?:\s[^<>]*)?>(?:(?!</?\1[\s/>]).)*+</\1\s*>",
    re.I | re.S,
)
MAX_NESTED = 20  # quotes within quotes that are left out
# a mention in Teams: '<at id="0">Anna Ash</at>'
MENTION = re.compile(r"<at(?:\s[^<>]*)?>[^<>]{0,200}</at>", re.I)

# "[b]", "[url=https://example.org]", "[/quote]"; the texts of others, and what is no text
# Older forums number their tags: "[b:1a2b3c4d]".
BBCODE_TAG = re.compile(
    r"\[(/?)(b|i|u|s|quote|code|url|img|email|size|color|font|center|left|right|list|spoiler"
    r"|youtube|video|media|attach|attachment|sub|sup|indent|table|tr|td)"
    r"(?:=[^\[\]\n]{0,500})?(?::[\w:]{1,16})?\]|\[/?(\*)(?::[\w:]{1,16})?\]",
    re.I,
)
BBCODE_HIDDEN = re.compile(
    r"\[(quote|code|img|youtube|video|media|attach|attachment)(?:=[^\[\]\n]{0,500})?"
    r"(?::[\w:]{1,16})?\](?:(?!\[/?\1\b).)*+\[/\1(?::[\w:]{1,16})?\]",
    re.I | re.S,
)

# A post as phpBB stores it: all of it in <t> (plain text) or <r>, where each BBCode is an element
# with what was typed in <s> and <e>: "<B><s>[b]</s>bold<e>[/b]</e></B>"
XML_POST = re.compile(r"\s*<([rt])>.*</\1>\s*", re.S)
XML_TAG = re.compile(r"</?[A-Za-z]\w{0,30}(?:\s[^<>]*|/)?>")

# a quote as Skype exports it, whose source and end are elements in it
SKYPE_QUOTE = re.compile(r"<quote(?:\s[^<>]*)?>(?:(?!</?quote[\s>]).)*+</quote>", re.S)

# the line above a quote in the plain text of a forum: "Originally Posted by Jane View Post", "Quote
# from: Jane on May 2, 2009", "Jane, on 02 May 2009 - 10:15 AM, said:", "Zitat von Jane"
QUOTE_WORD = r"(?:(?:quote|zitat|citation|cita|citazione|citaat|цитата):?\s*)"
QUOTE_HEADER = re.compile(
    rf"\s*{QUOTE_WORD}?(?:originally posted by|quote from:|zitat von|ursprünglich von"
    r"|geschrieben von|envoyé par|citation de|iniciado por|originalmente (?:escrito|publicado) por"
    r"|originariamente inviato da|oorspronkelijk geplaatst door|сообщение от)\s+\S.{0,80}"
    r"|\s*\S.{0,60}, on .{4,40}, said:\s*",
    re.I,
)
QUOTE_WORD_ALONE = re.compile(rf"\s*{QUOTE_WORD}", re.I)
# ":)" as phpBB stores it: <!-- s:) --><img src="{SMILIES_PATH}/icon.gif" alt=":)" /><!-- s:) -->
SMILEY = re.compile(
    r"<!-- s(\S{1,30}) --><img src=.\{SMILIES_PATH\}[^<>\n]{0,300}><!-- s\S{1,30} -->"
)
# the lines around a quote in the plain text of XenForo: "Jane said:", "Click to expand..."
SAID = re.compile(r"\s*\S.{0,60}\ssaid:\s*(?:↑\s*)?")
BLANK_LINE = re.compile(r"\s*")
SAID_END = re.compile(r"\s*Click to expand(?:\.\.\.|…)\s*")

# what each of the two below holds, and few other texts do
QP_BYTE = re.compile(
    r"=(?:[c-fC-F][\da-fA-F]=[89abAB]|(?:92|B4|[EF][\dA-F])[a-z]|3D[\"'\s]|20$|\r?\n)", re.M
)
# UTF-8 of a character beyond ASCII in quoted-printable: "=E2=80=99"
QP_CHARACTER = re.compile(r"(?:=[c-f][\da-f](?:=[89ab][\da-f]){1,3})+", re.I)
# other telltales: "don=92t", "f=FCr", "href=3D", " =3D ", "text.=20" at the end of a line, a line
# that is broken within a word or has the full length
QP_MARK = re.compile(
    r"[a-z]=(?:92|B4|E[\dA-F]|F[13-6A-C])[a-z]|=3D[\"']|\s=3D\s|(?:^|[-.,;:!?)])=20$"
    r"|^[^\n]{75}=\r?\n[ \t]?\S|^[^\n]{67,74}[a-z,.]=\r?\n[a-z]",
    re.M,
)
# an equals sign that quoted-printable would have written as "=3D"
NO_QP = re.compile(r"=(?![\da-fA-F]{2}|\s|\Z)")
# also where the lines of a mail were joined
SOFT_BREAK = re.compile(r"=(?:[ \t]*\r?\n|\s|\Z)")

# escapes of JSON, and a run of characters by number
JSON_ESCAPE = re.compile(r"(?:\\u[\da-fA-F]{4})+|\\[nrt\"'/\\]")
# telltales: "text.\nText", "a\n\nb", "a\r\n", "don\u2019t", "\ud83d\ude00", "http:\/\/", "don\'t",
# 'a \"word\" of'
JSON_MARK = re.compile(
    r"\\(?:(?<=(?<!\\)[^\s\d\\\"'(=]\\)(?:n(?:\\n)*(?:[A-Z@>*-]|\\\")|n\\n\w|r\\n(?:\\r\\n)*\w)"
    r"|(?<=[a-z.,!?]\\)u[\da-fA-F]{4}[a-z\s]|u20[01][\da-fA-F][A-Za-z]|u[dD]83[c-eC-E]\\u[dD]"
    r"|(?<=ttp:\\|tps:\\)/\\/|(?<=n\\)'t\b|(?<=[a-z]\\)'(?:s|m|re|ve|ll|d)\b"
    r"|(?<=\s\\)\"\w[^\"\\]{0,200}\\\"(?=[\s.,;:!?)]))"
)
# what stands in program code: another escape, one beside a quotation mark, a text such as ="a"
NO_JSON = re.compile(
    r"\\(?![nrt\"'/\\u])|\\u(?![\da-fA-F]{4})|(?<!\\)[\"']\\|\\[nrt\\][\"']|[=(,\[] ?[\"']|\n"
)
BARE_QUOTE = re.compile(r"(?<!\\)\"")

# UTF-8 read as Windows-1252: "â€™", "cafÃ©", "ðŸ˜€", "Ð¿Ñ€Ð¸"; not "QUÉ´" and "AMANHÃ”"
MOJIBAKE_STARTS = "ÂÃâïðÐÑ"
CONTINUATION = bytes(range(0x80, 0xC0))
TRAIL = f"[{CONTINUATION.decode('latin-1')}{CONTINUATION.decode('cp1252', 'ignore')}]"
MOJIBAKE = re.compile(
    rf"[{MOJIBAKE_STARTS}](?:(?<=[ÂÃ])(?<![A-ZÀ-Þ][A-ZÀ-Þ].){TRAIL}|(?<=[âï]){TRAIL}{{2}}"
    rf"|(?<=â)€\ufffd|(?<=ð){TRAIL}{{3}}|(?<=[ÐÑ]){TRAIL}(?:[ÐÑ]{TRAIL})+)"
)
# controls that are characters in Windows-1252
CONTROLS = {
    number: bytes([number]).decode("cp1252", "ignore") or chr(number)
    for number in range(0x80, 0xA0)
}


def plain_text(text: str) -> str:
    """Return a post as its readers saw it, without the encodings and the markup of an export.

    What mail programs and phones append goes, see :func:`helpers.cleaning.email.without_appended`.
    HTML becomes lines of text, its quotes and blocks of code are left out and inline code stands in
    backticks. A post that is plain text stays as it is, but for its HTML entities.
    """
    for _ in range(MAX_LAYERS):
        decoded = _without_layer(text)
        if decoded == text:
            break
        text = decoded
    return without_appended(_without_forum_quotes(text))


def _without_layer(text):
    """Return a text without the outermost of its encodings and markup."""
    if "\\" in text and _is_json(text):
        text = JSON_ESCAPE.sub(_unescaped, text)
    if "=" in text:
        text = _without_quoted_printable(text)
    if not text.isascii() and any(letter in text for letter in MOJIBAKE_STARTS):
        text = MOJIBAKE.sub(_decoded_again, text)
    if "</" in text and XML_POST.fullmatch(text):
        text = XML_TAG.sub("", text)  # what was typed stays
    if "</quote>" in text:
        text = _without_elements(text, SKYPE_QUOTE)
    if "SMILIES_PATH" in text:
        text = SMILEY.sub(r"\1", text)
    if "<" in text and _is_html(text):
        text = MENTION.sub("@user", CODE_ELEMENT.sub(r"`\1`", text))
        text = TAG.sub(_line_end, _without_elements(text, HIDDEN))
    if "[/" in text and _is_bbcode(text):
        text = BBCODE_TAG.sub("", _without_elements(text, BBCODE_HIDDEN))
    if "&" in text:
        text = ENTITY.sub(_character, text)
    return text


def _without_forum_quotes(text):
    """Return a post without the quotes that a forum's plain text has in it.

    A quote reaches from its header to the next blank line, or to its end mark. Where there is
    neither, nobody can say where the answer begins, and all from the header on is left out.
    """
    lines = text.split("\n")
    ends = [i for i, line in enumerate(lines) if SAID_END.fullmatch(line)]
    last_end = ends[-1] if ends else -1
    kept_lines = []
    end = 0  # of the last quote
    for i, line in enumerate(lines):
        if i < end:
            continue
        end = i + _quote_length(lines, i, last_end)
        if end == i:
            kept_lines.append(line)
        elif kept_lines and QUOTE_WORD_ALONE.fullmatch(kept_lines[-1]):
            kept_lines.pop()
    return "\n".join(kept_lines)


def _quote_length(lines, start, last_end):
    """Return how many lines from ``start`` on are the quote of a forum, 0 for none."""
    if start < last_end and SAID.fullmatch(lines[start]):
        is_end = SAID_END.fullmatch
    elif QUOTE_HEADER.fullmatch(lines[start]):
        is_end = BLANK_LINE.fullmatch
    else:
        return 0
    for i in range(start + 1, len(lines)):
        if is_end(lines[i]):
            return i - start + 1
    return len(lines) - start


def _is_json(text):
    """Return whether a text holds escapes of JSON, and nothing that JSON would have escaped."""
    if not JSON_MARK.search(text) or NO_JSON.search(text):
        return False
    return '\\"' not in text or not BARE_QUOTE.search(text)


def _unescaped(match):
    """Return the characters of an escape of JSON."""
    if match[0] == r"\'":  # of JavaScript
        return "'"
    return json.loads(f'"{match[0]}"').replace("\r", "")


def _without_quoted_printable(text):
    """Return the text of a mail in quoted-printable.

    There every equals sign begins a byte in hexadecimal or breaks a line.
    """
    if NO_QP.search(text) or not QP_BYTE.search(text):
        return text
    if not QP_CHARACTER.search(text) and not QP_MARK.search(text):
        return text
    content = quopri.decodestring(SOFT_BREAK.sub("", text).encode("utf-8", "ignore"))
    return _first_decoded(content, ("utf-8", "cp1252"), text)


def _decoded_again(match):
    """Return the characters of UTF-8 that was read as Windows-1252, or as Latin-1."""
    # of the bytes that Windows-1252 does not know only this one is frequent
    characters = match[0].replace("\ufffd", "\x9d")
    content = b"".join(_byte(character) for character in characters)
    return _first_decoded(content, ("utf-8",), match[0]).translate(CONTROLS)


def _byte(character):
    """Return the byte that Windows-1252 reads as a character, of a control that of Latin-1."""
    try:
        return character.encode("cp1252")
    except UnicodeEncodeError:
        return character.encode("latin-1")


def _first_decoded(content, encodings, default):
    """Return bytes as text in the first encoding that they are valid in, else the default."""
    for encoding in encodings:
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    return default


def _is_html(text):
    """Return whether a text is HTML: it begins so, or has tags of text and no other ones."""
    if PAGE_START.match(text):
        return True
    if not TAG.search(text) or not TEXT_TAG.search(text):
        return False
    return not NO_ELEMENT.search(text) and not QUOTED_TAG.search(text)


def _is_bbcode(text):
    """Return whether a text holds a tag of BBCode and its end."""
    starts = set()
    for tag in BBCODE_TAG.finditer(text.lower()):
        if tag[1] and tag[2] in starts:
            return True
        starts.add(tag[2])
    return False


def _without_elements(text, expression):
    """Return a text with a line break for each element, also for those around another one."""
    for _ in range(MAX_NESTED):
        text, n_elements = expression.subn("\n", text)
        if not n_elements:
            break
    return text


def _line_end(tag):
    """Return a line break for a tag that begins or ends a line, else nothing."""
    if BLOCK.fullmatch(tag[2] or ""):
        return "\n"
    return ""


def _character(match):
    """Return the character of an HTML entity."""
    return html.unescape(match[0])
