"""The prose of commit messages: no trailers, footnotes, code and lists of files."""

import re

from .code_lines import is_code, without_code

# "Change-Id: I0a1b", "Signed-off-by: Jane Doe", "Fixes bug 1257949", "Implements: blueprint x",
# "bp/x", "Part of blueprint x": who did what, and which bug or plan it belongs to
TRAILER = re.compile(
    r"\s*(?:[A-Za-z]+(?:-[A-Za-z]+)+ ?:\s*\S"  # "Signed-off-by: Jane", "Closes-Bug: #1257949"
    r"|(?:(?:{verbs}|{issues})[ :/#-]*)*(?:{issues})[ :/#-]*\S*\s*$"  # "part of blueprint x"
    r"|(?:(?:{verbs})[ :/#-]*)+#?(?:lp)?\d{{5,}}\W*$"  # "Fixes 1257949"
    r"|(?:cc|author|date|link|commit|merge|change[- ]?id) ?: *\S"
    r"|(?:[A-Z][A-Za-z]+Impact|CVE-\d+\S*)\s*:?.{{0,80}}$)".format(
        verbs="partial(?:ly)?|part|partly|closes?|closing|fix(?:es|ed)?|resolves?|related?|relates"
        "|addresses|implements?|completes?|supports?|for|of|see|the|this|to",
        issues="blueprint|bp|bugs?|lp|story|task|issue|bugzilla|coverity|id|number",
    ),
    re.I,
)
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
    for line in HASH.sub("@code", body).expandtabs(4).splitlines():
        if CONFLICTS.match(line):
            in_conflicts = True
        elif in_conflicts and line.strip() and not line.startswith((" ", "#")):
            in_conflicts = False
        if in_conflicts or TRAILER.match(line) or FOOTNOTE.match(line):
            continue
        lines.append(line)
    return "\n".join(without_code(without_blocks(lines)))


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
