"""Removal of what mails of developers hold beside prose: patches, who approved them, and logs."""

import re
from itertools import groupby, pairwise
from operator import itemgetter

from .code_lines import PLAIN_WORD, is_code, without_code
from .commit_messages import FOOTNOTE, HASH, LIST_ITEM, without_blocks

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
    r"|sudo \S|==\d+==|</?(?:TASK|IRQ|NMI)>|#\d+\s+(?:0x|\w+ \()|\? ?\w+\+0x"
    r"|\w[\w.]*\+0x[\da-f]+/0x|-- \S.*(?:\.\.\.|: \S+|!)\s*$|\w[\w/.-]{0,30}\[\d{2,}\]:\s"
    r"|\S{1,40}@\S{1,40}[:~].{0,60}[#$]\s"
    r"|[^\s/]{0,60}(?:/[^\s/]{0,60}){2,9}:\s)"
)
# "make -j4", "./configure --prefix=/usr", with few words of a sentence
COMMAND = re.compile(r"\s*(?:\./\w|[\w./+-]{2,40}(?: [^\s-]\S{0,60}){0,4} --?[A-Za-z])")
# a line of a source that is quoted with its marks: '"the text of a manual "'
QUOTED_LINE = re.compile(r"\s*\".{30,}\"\s*$")
# a part of a text that stands in another one: "8< ----", "---8<---", "~~~"
SCISSORS = re.compile(r"\s*[-=~]{0,80}\s?(?:8<|>8|%<)[-=~\s8<>%]*")

RECORDS = (CREDIT, FOOTNOTE, SHORTLOG, LOG, QUOTED_LINE, SCISSORS)
# a line of a greeting or a farewell: "Best regards,"
FAREWELL = re.compile(r"[^\d=:<>/\[\]{}|_]{1,30}")
# words of which a line of a sentence holds at least one
FUNCTION_WORD = re.compile(
    r"\b(?:the|an?|i|i'm|you|your|we|it|its|is|are|was|were|be|been|to|and|or|that|this|these|my|have"
    r"|has|had|not|can|do|does|if|but|so|of|for|with|there|they|would|should|will|when|what|which)\b",
    re.I,
)
MIN_RUN_LINES = 3  # so many lines of a paragraph that are no prose are left out


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


def prose_lines(lines: list[str]) -> list[str]:
    """Return the lines of prose: no trailers, lists of changes, logs, output, tables and code.

    Names of commits become "@code". A paragraph is left out where half of its lines or more are no
    prose, and so are one or two lines between two such paragraphs.

    Parameters
    ----------
    lines : list of str
        lines of a mail without quotes and patches
    """
    lines = without_blocks([HASH.sub("@code", line) for line in lines])
    paragraphs = []
    for has_text, group in groupby(lines, key=_has_text):
        if has_text:
            paragraphs.append(list(group))
    is_output = [_is_output(paragraph) for paragraph in paragraphs]
    kept_lines = []
    for i, paragraph in enumerate(paragraphs):
        is_between = 0 < i < len(paragraphs) - 1 and is_output[i - 1] and is_output[i + 1]
        if is_output[i] or is_between and len(paragraph) <= 2:
            continue
        kept_lines += [*_without_runs(paragraph), ""]
    return without_code(kept_lines)


def _has_text(line):
    """Return whether a line is not blank."""
    return bool(line.strip())


def _is_output(paragraph):
    """Return whether half of the lines of a paragraph or more, and two at least, are no prose."""
    if len(paragraph) == 1:
        return _is_record(paragraph[0]) or is_code(paragraph[0])
    if len(paragraph) <= 3 and all(FAREWELL.fullmatch(line) for line in paragraph):
        return False
    prose = _are_prose(paragraph)
    return prose.count(False) >= 2 and 2 * prose.count(False) >= len(prose)


def _without_runs(paragraph):
    """Return a paragraph without its records, and without runs of lines that are no prose."""
    kept_lines = []
    for is_prose, group in groupby(zip(_are_prose(paragraph), paragraph), key=itemgetter(0)):
        run = [line for _, line in group]
        if is_prose or len(run) < MIN_RUN_LINES:
            kept_lines += [line for line in run if not _is_record(line)]
    return kept_lines


def _are_prose(paragraph):
    """Return, for each line of a paragraph, whether it reads like a part of a sentence."""
    prose = []
    for number, line in enumerate(paragraph):
        text = line.strip()
        words = len(PLAIN_WORD.findall(text))
        if _is_record(line) or is_code(line):
            prose.append(False)
        elif LIST_ITEM.match(line) or text[0].islower() and number:
            prose.append(words >= 2)
        elif text.endswith((".", "?", "!", ",", ";")) and words >= 2:
            prose.append(True)
        else:
            prose.append(words >= 4 and FUNCTION_WORD.search(text) is not None)
    return prose


def _is_record(line):
    """Return whether a line is a trailer, an address, a line of a list of changes, or of a log."""
    if any(kind.match(line) for kind in RECORDS):
        return True
    return COMMAND.match(line) is not None and len(PLAIN_WORD.findall(line)) < 4
