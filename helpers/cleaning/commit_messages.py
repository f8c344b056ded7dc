"""The prose of commit messages: no trailers, footnotes, code and lists of files."""

import re

from .code_lines import is_code, without_code

# "Change-Id: I0a1b", "Signed-off-by: Jane Doe", "Fixes bug 1257949", "Implements: blueprint x",
# "bp/x", "Part of blueprint x": who did what, and which bug or plan it belongs to
TRAILER = re.compile(
    r"\s*(?:[A-Za-z]+(?:-[A-Za-z]+)+ ?:\s*\S"  # "Signed-off-by: Jane", "Closes-Bug: #1257949"
    r"|(?:(?:{verbs}|{issues})[ :/#-]*)*(?:{issues})[ :/#-]*\S*\s*{partly}\s*$"  # "for bp x"
    r"|(?:reported|suggested|tested|reviewed|found|requested)[ -]by ?: *\S"
    r"|(?:(?:{verbs})[ :/#-]*)+#?(?:lp)?\d{{5,}}\W*$"  # "Fixes 1257949"
    r"|(?:cc|author|date|link|commit|merge|change[- ]?id) ?: *\S"
    r"|(?:[A-Z][A-Za-z]+Impact|CVE-\d+\S*)\s*:?.{{0,80}}$)".format(
        verbs="partial(?:ly)?|part|partly|closes?|closing|fix(?:es|ed)?|resolves?|related?|relates"
        "|addresses|implements?|completes?|supports?|for|of|see|the|this|to",
        partly=r"(?:\(?part(?:ly|ial|ially)?\)?)?",
        issues="blueprint|bp|bugs?|lp|story|task|issue|bugzilla|coverity|id|number",
    ),
    re.I,
)
# a sentence that says nothing but which bug or plan a commit belongs to: "This is part of blueprint
# x.", "This should resolve bug 934464.", "* Fixes bugs 1 and 2"
REFERENCE = re.compile(
    r"(?:\A|(?<=[.!?]\s)|(?<=\n\n)|^[ \t]{{0,8}}[-*+][ \t])\s{{0,3}}"
    r"(?:(?:this|it|the|an?|and|also|should|will|is|as|in|of|for|to|on|{about})\s{{1,3}}){{0,12}}"
    r"(?:{bug}|{plan})(?:\s?(?:,|&|\band\b)\s{{0,3}}(?:{bug}|{plan}|#?\d{{4,}})){{0,9}}"
    r"[ \t]{{0,3}}(?:\.(?=\s|$)[ \t]{{0,3}}|{end})".format(
        about="patch|change|commit|part(?:ly|ial|ially)?|first|second|last|step|towards|work"
        "|fix(?:es|ed|ing)?|resolv(?:es?|ing)|clos(?:es?|ing)|address(?:es|ing)?|relate[sd]"
        "|implement(?:s|ing|ation)?|complet(?:es?|ing)|support(?:s|ing)?|launchpad|see",
        bug=r"(?:bugs?|lp|launchpad)[\s:#]{1,3}(?:lp[\s:#]{0,3})?\d{4,}",
        end=r"$(?=\Z|\n(?:\Z|\n|[ \t]{0,8}[-*+]|(?-i:[A-Z])))",
        plan=r"(?:blueprints?|bp)[\s:/]{1,3}[\w./-]{0,80}\w",
    ),
    re.I | re.M,
)
# program text that :mod:`helpers.cleaning.code_lines` takes for prose: "[cache]" in a file of
# settings, "size = 5", a line of a log, of a traceback, of an exception, of ``git log --oneline``
HEADING = re.compile(
    r"\[[\w:.-]+\]$|File \"[^\"]+\", line \d|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):\S"
)
SETTING = re.compile(r"[\w.-]+\s?=\s?\S*[^\s.]$")
EXCEPTION = re.compile(r"[\w.]{0,80}[A-Z]\w{0,60}(?:Error|Exception|Warning|NotFound|Match): \S")
LOGGED = re.compile(r"(?:[-*]\s?)?(?=[a-f]{0,39}\d)(?=\d{0,39}[a-f])[0-9a-f]{7,40} (\S)")
# a line that goes on with an exception: it begins with a small letter, a quotation or a bracket
CONTINUED = re.compile(r"[a-z\"'({\[<]")
# "[1] https://example.org/x", "[1]: ...", a line that is an address
FOOTNOTE = re.compile(r"\s*(?:\[\w{1,9}\]:?|\(?\d{1,2}[.)])?\s*(?:https?|ftp)://\S+\s*$")
# "62e88623d977", "I5563360b43c4b648f5b035099b0e1d2e71d32503": a commit, or a change under review
HASH = re.compile(r"\bI?(?=[a-f]{0,39}\d)(?=\d{0,39}[a-f])[0-9a-f]{7,40}\b")
# where a list of files follows that a merge could not join: "Conflicts:", "# Conflicts:"
CONFLICTS = re.compile(r"\s*#?\s*Conflicts:?\s*$", re.I)
# "Co-authored-by: Jane Doe <jane@example.org>"
NAMED_PERSON = re.compile(r"^[ \t]*[A-Za-z]+-by:[ \t]*([^<>\n]{3,80}?)[ \t]*<", re.I | re.M)
INDENTED = re.compile(r"(?:\t| {4,})\S")
LIST_ITEM = re.compile(r"\s*(?:[-*+o]|\d{1,2}[.)])\s")


def without_trailers(body: str) -> str:
    """Return the prose of a message: its lines but trailers, footnotes, code and lists of files.

    Names of commits become "@code".

    Parameters
    ----------
    body : str
        a commit message without its first line
    """
    lines = []
    in_conflicts = False
    output = ""
    for line in REFERENCE.sub("", body.expandtabs(4)).splitlines():
        text = line.strip()
        if CONFLICTS.match(text):
            in_conflicts = True
        elif in_conflicts and text and not line.startswith((" ", "#")):
            in_conflicts = False
        output = kind_of_output(text, lines[-1].strip() if lines else "", output)
        text = HASH.sub("@code", text)
        if in_conflicts or output or TRAILER.match(text) or FOOTNOTE.match(text):
            continue
        lines.append(HASH.sub("@code", line.rstrip()))
    return "\n".join(without_code(without_blocks(lines)))


def kind_of_output(text: str, last: str, output: str) -> str:
    """Say whether a line is output of a program or part of a file of settings.

    Parameters
    ----------
    text : str
        a line of a message, without blanks at its ends
    last : str
        the last line before it that was kept
    output : str
        what the line before it is, as this function returns it

    Returns
    -------
    "" for prose, "exception", or "lines"
    """
    if output == "exception" and CONTINUED.match(text):
        return "exception"
    begins = bool(output) or not last or last.endswith(":")
    if (begins or last.endswith(".")) and EXCEPTION.match(text):
        return "exception"
    if HEADING.match(text) or (begins and SETTING.match(text)):
        return "lines"
    logged = LOGGED.match(text)
    # a paragraph may begin with the name of a commit: "0a1b2c3d added a cache"
    if logged and begins and (logged[1].isupper() or output or last.endswith(":")):
        return "lines"
    return ""


def without_blocks(lines: list[str]) -> list[str]:
    """Return lines without code: indented blocks that follow a blank line and are no list.

    An indented line that goes on with a list's item, or with a sentence, stays.

    Parameters
    ----------
    lines : list of str
        lines of a message, tabs expanded
    """
    kept = []
    in_block = False
    in_list = False
    for line in lines:
        if LIST_ITEM.match(line):
            in_list = True
        elif line.strip() and not line.startswith(" "):
            in_list = False
        after_blank = not kept or not kept[-1].strip()
        if not line.strip():
            kept.append(line)
        elif INDENTED.match(line) and not in_list and (in_block or after_blank or is_code(line)):
            in_block = True
        else:
            in_block = False
            kept.append(line)
    return kept
