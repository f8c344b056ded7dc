"""Removal of what mails of developers hold beside prose: patches, who approved them, and logs."""

import re
from itertools import pairwise

from .code_lines import without_code
from .commit_messages import FOOTNOTE, HASH, without_blocks

# the first line of a patch: "diff --git a/x b/x", "Index: x", "@@ -1,2 +1,3 @@"
DIFF = re.compile(r"diff (?:--?\w|[ab]/)|Index: \S|@@+ -\d")
# the first of the two lines that name the files of a patch, and the second
OLD_FILE = re.compile(r"(?:---|\*\*\*) \S")
NEW_FILE = re.compile(r"(?:\+\+\+|---) \S")
# lines of a patch without a mark before them: "index 62e88623d977..0a1b2c3d4", "new file mode"
DIFF_HEADER = re.compile(
    r"(?:index [\da-f]{4,}|(?:new|deleted) file|(?:old|new) mode|(?:dis)?similarity index"
    r"|(?:rename|copy) (?:from|to)|Binary files|GIT binary|(?:literal|delta) \d+|={20,})"
)
DIFF_MARKS = ("+", "-", " ", "\t", "@", "\\", "!", "*")
# " src/a.c | 10 ++--", " 2 files changed, 12 insertions(+)", " create mode 100644 src/a.c"
DIFFSTAT = re.compile(
    r"\s*(?:\S.{0,200}\s\|\s+(?:\d+ ?[+-]*|Bin(?: .*)?)\s*$|\d+ files? changed(?:,|$)"
    r"|(?:create|delete) mode \d{6}\s|mode change \d{6} |rename \S.{0,200}\(\d+%\)"
    r"|\d+ insertions?\(\+\)|\d+ deletions?\(-\))"
)
# "Signed-off-by: Jane Doe", "Cc: stable", "Fixes: 62e88623d977", also without the name
CREDIT = re.compile(
    r"\s*(?:[A-Z]\w+(?:-\w+){0,3}-(?:[Bb]y|[Tt]o)|(?i:cc|to|fixes|link|closes|message-id|change-id"
    r"|patchwork|bugzilla|commit|branch|tree|base-commit|cover-letter|lore|url|prerequisite-\S+))"
    r"\s?:(?:\s|$)|\s*(?:R-?b|A-?b|T-?b|S-?o-?b)\b"
)
# "Jane Doe (3):" above the list of her changes, "[1/2] mm: a subject", "0a1b2c3 mm: a subject"
SHORTLOG = re.compile(
    r"(?:[^\W\d_][^\n()]{2,50}\(\d{1,4}\):\s*$|\s*\[(?:PATCH )?\d+/\d+\]\s|\s*\[?@code\]?[:,]?\s"
    r"|\s*\[(?:RFC )?PATCH\b)"
)
# lines of logs: "[   12.345678] BUG:", "Jul  2 10:15:00 host", "10:15:00.123", "[INFO] [UHD]",
# "RIP: 0010:", "==123== Invalid read", "#0  0x00007f in main", "-- Loading firmware image: x"
LOG = re.compile(
    r"\s*(?:[<\[(]\s*\d+[.:]\d{2,}[^\])>]{0,30}[\])>]|(?:[A-Z][a-z]{2}\s+)?\d{1,2}\s\d\d:\d\d:\d\d\s"
    r"|[A-Z][a-z]{2}\s+\d{1,2}\s\d\d:\d\d:\d\d\s|\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d"
    r"|\[?\d\d:\d\d:\d\d[.,\]]|\[(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL|NOTICE)\s*\]"
    r"|(?:INFO|WARNING|ERROR|DEBUG|FATAL|BUG|KASAN|UBSAN): "
    r"|(?:Call [Tt]race|RIP|RSP|EIP|Code|RAX|RDX|RBP|R\d\d|CPU|PC|LR|Modules linked in"
    r"|Hardware name|Workqueue|Oops|Tainted|CR2|FS|PKRU|pc|lr|sp|x\d+)\s?:\s"
    r"|==\d+==|#\d+\s+(?:0x|\w+ \()|\? ?\w+\+0x|\w[\w.]*\+0x[\da-f]+/0x|</?(?:TASK|IRQ|NMI)>"
    r"|-- \S.*(?:\.\.\.|: \S+|!)\s*$|\w[\w/.-]{0,30}\[\d{2,}\]:\s"
    r"|\S{1,40}@\S{1,40}[:~].{0,60}[#$]\s"
    r"|[^\s/]{0,60}(?:/[^\s/]{0,60}){2,9}:\s)"
)
# a part of a text that stands in another one: "8< ----", "---8<---", "~~~"
SCISSORS = re.compile(r"\s*[-=~]{0,80}\s?(?:8<|>8|%<)[-=~\s8<>%]*")


def has_patch(text: str) -> bool:
    """Return whether a text holds a patch that is not quoted.

    Parameters
    ----------
    text : str
        body of a mail
    """
    lines = text.split("\n")
    return any(_begins_patch(line, following) for line, following in pairwise([*lines, ""]))


def without_patches(text: str) -> str:
    """Return a text without the patches that are not quoted, and the lists of files they change.

    Parameters
    ----------
    text : str
        body of a mail, with its quotes
    """
    lines = text.split("\n")
    kept_lines = []
    in_patch = False
    for line, following in pairwise([*lines, ""]):
        if _begins_patch(line, following):
            in_patch = True
        elif in_patch and not _continues_patch(line):
            in_patch = False
        if not in_patch and not DIFFSTAT.match(line):
            kept_lines.append(line)
    return "\n".join(kept_lines)


def _begins_patch(line, following):
    """Return whether a patch begins with a line, which another one follows."""
    if DIFF.match(line):
        return True
    return OLD_FILE.match(line) is not None and NEW_FILE.match(following) is not None


def _continues_patch(line):
    """Return whether a line within a patch still belongs to it."""
    if line.rstrip() == "--":  # the line above a signature
        return False
    return not line or line.startswith(DIFF_MARKS) or DIFF_HEADER.match(line) is not None


def without_records(text: str) -> str:
    """Return the prose of a mail's own text: no trailers, lists of changes, logs and code.

    Names of commits become "@code".

    Parameters
    ----------
    text : str
        text of a mail without quotes and patches
    """
    lines = HASH.sub("@code", text).split("\n")
    kept_lines = [line for line in lines if not _is_record(line)]
    paragraphs = "\n".join(without_code(without_blocks(kept_lines)))
    return re.sub(r"\n\s*\n", "\n\n", paragraphs).strip()


def _is_record(line):
    """Return whether a line is a trailer, an address, a line of a list of changes, or of a log."""
    return any(kind.match(line) for kind in (CREDIT, FOOTNOTE, SHORTLOG, LOG, SCISSORS))
