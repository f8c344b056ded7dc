"""Masking of the names in one post's greeting and signature: who is greeted, and who signs."""

import re
from pathlib import Path

MAX_SALUTATION_CHARS = 200  # of the start and the end of a post that are searched
# a capitalised word, or two with a hyphen: "Jane", "Anne-Marie"
NAME = r"[^\W\d_a-z][^\W\d_A-Z]{1,20}(?:-[^\W\d_a-z][^\W\d_A-Z]{1,20})?"
# capitalised words, such as "All" and "Thanks", that stand where a name would stand
NOT_NAMES = "|".join(Path(__file__).with_name("nobody.txt").read_text("utf-8").split())
NO_OTHER_WORD = rf"(?!(?:{NOT_NAMES})\b)"
PERSON = rf"{NO_OTHER_WORD}{NAME}"
TITLE = r"(?:(?:Prof(?:essor)?|Dr|Mrs?|Ms)\b\.? ?)"

HELLO = (
    r"(?i:hi|hello|hey|dear|g'day|hallo|hola|thanks|thank you|good (?:morning|evening|afternoon))"
)
# "Dear Prof. Doe and Jack," with the names as the group
WITH_HELLO = (
    rf"\A\s*(?:{HELLO}[ ,]+)((?:{TITLE}{{0,2}}{PERSON}(?: ?, | and | & | )?){{1,5}})(?<! )"
    r"(?=\s*(?:[,:;!.–(-]|\n|\Z))"
)
# "Jane and Jack," on a line of its own
WITHOUT_HELLO = rf"\A\s*((?:{PERSON}(?: and | )?){{1,4}})(?<! )(?=\s*(?:,[ \t]*\n|--))"
GREETING = re.compile(f"{WITH_HELLO}|{WITHOUT_HELLO}")
BETWEEN_NAMES = re.compile(r"\s*(?:,|&|\band\b)\s*")

THANKS = r"(?i:regards|cheers|thanks|thank you|thx)\b"
GOODBYE = (
    rf"(?i:{THANKS}|sincerely|yours|greetings|wishes|best|hth|helps|advance|saludos|ciao|luck)\b"
)
# what a signature holds, and few posts do: a line's end, or a farewell, in lower case
SIGNED = re.compile(
    r"\n|regards|cheers|thanks|thank you|thx|sincerely|yours|greetings|wishes|best|hth|helps"
    "|advance|saludos|ciao|luck"
)
# what stands before the name in a signature: words that close a letter ("Best regards,"), the end
# of a paragraph, dashes, a short line that ends with a comma
BEFORE_SIGNATURE = (
    rf"(?:(?<!\w){GOODBYE}[ \t]*(?:[,.!;:)]*\s*\n|[,!]?)|\n[ \t]*(?:\n|--?[ \t]*(?=\w))"
    rf"|[.!?][ \t]*\n|\n[^\n]{{0,30}},[ \t]*\n|\b{THANKS}[^\n.?]{{0,40}}(?:\n|, ))[\s–—/~-]*"
)
FULL_NAME = rf"(?:{PERSON}|[A-Z]\.?)(?:[ \t]+(?:{NAME}|[A-Z]{{1,20}}\.?)){{0,3}}"
# where even a word in lower case is a name: after a blank line, a comma at the end of a line, or
# thanks at the start of a line ("cheers, jane")
BEFORE_LOWER_CASE = rf"(?:\n\n|,\n|sincerely\n|(?:\A|\n)(?i:kind |best |many |warm )?{THANKS},?\s)"
LOWER_CASE_NAME = rf"(?i:{NO_OTHER_WORD})[a-z]{{3,12}}(?:[ \t][a-z]\.)?"
SIGNATURE = re.compile(
    rf"(?:{BEFORE_SIGNATURE}({FULL_NAME})|{BEFORE_LOWER_CASE}[/~]?({LOWER_CASE_NAME}))"
    r"[.,]?[\s-]*\Z"
)
# "regards, otto m." and "regards,\notto meier": after this word even two words are a name
REGARDS = re.compile(
    rf"\b[Rr]egards,\s+((?i:{NO_OTHER_WORD})[a-z]{{2,12}}(?:[ \t][a-z]{{1,14}}\.?)?)[.,]?[\s-]*\Z"
)
# a signature that more text follows: a line that begins with a farewell, then a name on a line of
# its own, then a blank line
INNER_SIGNATURE = re.compile(
    r"\n[ \t]*(?i:(?:many|kind|kindest|best|warm)[ \t]+)?"
    rf"(?i:(?:regards|wishes|cheers|thx|sincerely|hth|yours)\b[^\n]{{0,20}}"
    rf"|(?:thanks|thank you)\b[^\n]{{0,60}})\n(?:[ \t]*\n)?[ \t–—/~-]*({FULL_NAME})[.,]?[ \t]*"
    r"(?=\n[ \t]*\n)"
)
# what a signature may precede, beside the end of the text
POSTSCRIPT = re.compile(r"\n[ \t]{0,9}[Pp]\.? ?[Ss]\b")


def mask_salutations(text: str) -> tuple[str, list[str]]:
    """Return a post with masked names in its greeting and signature, and the list of these names.

    ``@user`` replaces all names in the greeting, ``@self`` the name before the end, the name before
    the last "P.S." and names on a line of their own below a farewell.
    """
    names = []
    greeting = GREETING.match(text[:MAX_SALUTATION_CHARS])
    if greeting:
        start, end = greeting.span(greeting.lastindex)
        names += BETWEEN_NAMES.split(text[start:end])
        text = f"{text[:start]}@user{text[end:]}"

    # from the last to the first, because masking a name shifts only what follows it
    ends = [match.start() for match in POSTSCRIPT.finditer(text)] + [len(text)]
    for end in reversed(ends[-2:]):
        tail_start = max(end - MAX_SALUTATION_CHARS, 0)
        tail = text[tail_start:end]
        if not SIGNED.search(tail.casefold()):
            continue
        signature = SIGNATURE.search(tail) or REGARDS.search(tail)
        if signature:
            name_start, name_end = signature.span(signature.lastindex)
            names.append(tail[name_start:name_end])
            masked_tail = f"{tail[:name_start]}@self{tail[name_end:]}"
            text = text[:tail_start] + masked_tail + text[end:]
    for signature in reversed(list(INNER_SIGNATURE.finditer(text))):
        names.append(signature[1])
        text = f"{text[: signature.start(1)]}@self{text[signature.end(1) :]}"
    return text, [name for name in names if name]
