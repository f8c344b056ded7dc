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
    r"\s*(?:[<\[(]\s*\d+[.:]\d{2,}[^\])>]{0,30}[\])>]"
    r"|(?:[A-Z][a-z]{2}\s+)?\d{1,2}\s\d\d:\d\d:\d\d\s"
    r"|[A-Z][a-z]{2}\s+\d{1,2}\s\d\d:\d\d:\d\d\s|\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d"
    r"|\[?\d\d:\d\d:\d\d[.,\]]|\[(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL|NOTICE)\s*\]"
    r"|(?:INFO|WARNING|ERROR|DEBUG|FATAL|BUG|KASAN|UBSAN|[EW]): "
    r"|[A-Z][a-z]+[A-Z]\w{0,40}:\s|\w{0,40}(?:[Ee]rror|[Ee]xception)(?: message)?:\s"
    r"|(?:Call [Tt]race|RIP|RSP|EIP|Code|RAX|RDX|RBP|R\d\d|CPU|PC|LR|Modules linked in"
    r"|Hardware name|Workqueue|Oops|Tainted|CR2|FS|PKRU|pc|lr|sp|x\d+)\s?:\s"
    r"|sudo \S|==\d+==|</?(?:TASK|IRQ|NMI)>|#\d+\s+(?:0x|\w+ \()|\? ?\w+\+0x"
    r"|\w[\w.]*\+0x[\da-f]+/0x|-- \S.*(?:\.\.\.|: \S+|!)\s*$|\w[\w/.-]{0,30}\[\d{2,}\]:\s"
    r"|\S{1,40}@\S{1,40}[:~].{0,60}[#$]\s"
    r"|[^\s/]{0,60}(?:/[^\s/:]{0,60}){2,9}:(?:\s|\S{0,60}\s))"
)
# "make -j4", "./configure --prefix=/usr", with few words of a sentence
COMMAND = re.compile(r"\s*(?:\./\w|[\w./+-]{2,40}(?: [^\s-]\S{0,60}){0,4} --?[A-Za-z])")
# "systemctl restart thing": a program, then some words that are no sentence
SHELL = re.compile(
    r"\s*(?:apt(?:-get)?|brew|cat|cd|chmod|chown|cmake|cp|dmesg|dnf|docker|echo|export|git|grep|ip"
    r"|ifconfig|insmod|ls|make|man|mkdir|modprobe|mount|mv|pip3?|ping|python3?|rm|scp|ssh|systemctl"
    r"|tar|wget|yum|add-apt-repository)(?: [^\s.,;:!?]\S{0,60}){1,6}(?<![.,;:!?])\s*$"
)
# a line of a source that is quoted with its marks: '"the text of a manual "'
QUOTED_LINE = re.compile(r"\s*\".{30,}\"\s*$")
# what is no line of the author: "---8<---", "[image: x.png]", and roff, the source of manuals
FOREIGN = re.compile(
    r"\s*(?:[-=~]{0,80}\s?(?:8<|>8|%<)|\[image:|\.[A-Z]{1,2}(?:\s|$)|\.\\\"|.{0,200}\\f[BIRP]"
    r"|\S.{0,99}[);]\s*//\s)"
)

RECORDS = (CREDIT, FOOTNOTE, SHORTLOG, LOG, QUOTED_LINE, FOREIGN)
# a line of a greeting or a farewell: "Best regards,"
FAREWELL = re.compile(r"[^\d=:<>/\[\]{}|_]{1,30}")
# words of which a line of a sentence holds at least one
FUNCTION_WORD = re.compile(
    r"\b(?:the|an?|i|i'm|you|your|we|it|its|is|are|was|were|be|been|to|and|or|that|this|these|my"
    r"|have|has|had|not|can|do|does|if|but|so|of|for|with|there|they|would|should|will|when|what"
    r"|which)\b",
    re.I,
)
# marks and digits of which commands and output hold one
TECHNICAL = re.compile(r"[/\\_=|<>{}\[\]~$#*\d]|--")
# words of somebody who speaks
SPEECH = re.compile(r"\b(?:i|i'm|i've|i'd|we|my|our|me|us|you|thanks?|cheers|regards)\b|\?", re.I)
# the heading with which the text of a manual begins
MANUAL = re.compile(r"\s*(?:NAME|SYNOPSIS|DESCRIPTION|COLOPHON|Name|Synopsis)\s*$")
# the end of a sentence in a line
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_a-z])")
MAX_WRAPPED_CHARS = 150  # a longer line is a paragraph that nobody has wrapped
MIN_DENSE_WORDS = 8  # a line of so many words or more, of which most are no plain ones, is output
LONG_OUTPUT = 2  # the level of a paragraph with MIN_RUN_LINES lines that are no prose, or more
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
    prose, or where all are indented. The text ends where long output or a page of a manual begins:
    what stands below it is seldom prose alone.

    Parameters
    ----------
    lines : list of str
        lines of a mail without quotes and patches
    """
    lines = without_blocks([HASH.sub("@code", line) for line in lines])
    paragraphs = []
    for has_text, group in groupby(lines, key=_has_text):
        if has_text:
            paragraphs.append(_sentences(group))
    levels = _output_levels(paragraphs)
    indented = [_is_indented(paragraph) for paragraph in paragraphs]
    kept_lines = []
    for number, paragraph in enumerate(paragraphs):
        if levels[number] == LONG_OUTPUT:
            break
        if levels[number] or indented[number] and not all(indented):
            continue
        kept_lines += [*_without_runs(paragraph), ""]
    return without_code(kept_lines)


def _sentences(lines):
    """Return lines, of which long ones, which nobody has wrapped, are parted after sentences."""
    sentences = []
    for line in lines:
        if len(line) <= MAX_WRAPPED_CHARS:
            sentences.append(line)
        else:
            sentences += SENTENCE_END.split(line)
    return sentences


def _has_text(line):
    """Return whether a line is not blank."""
    return bool(line.strip())


def _is_indented(paragraph):
    """Return whether all lines, two or more, are indented, and the first one begins no list."""
    if len(paragraph) < 2 or LIST_ITEM.match(paragraph[0]):
        return False
    return all(line.startswith("  ") for line in paragraph)


def _is_farewell(paragraph):
    """Return whether a paragraph may be a greeting or a farewell: some short lines of letters."""
    return len(paragraph) <= 3 and all(FAREWELL.fullmatch(line) for line in paragraph)


def _output_levels(paragraphs):
    """Return of each paragraph how much output it is: 0 if none, 1 for a line, LONG_OUTPUT."""
    levels = [_output_level(paragraph) for paragraph in paragraphs]
    single = [len(paragraph) == 1 and not _is_farewell(paragraph) for paragraph in paragraphs]
    no_prose = [
        is_single and not _are_prose(paragraph)[0]
        for is_single, paragraph in zip(single, paragraphs, strict=True)
    ]
    for is_run, group in groupby(range(len(paragraphs)), key=no_prose.__getitem__):
        numbers = list(group)
        if is_run and len(numbers) >= MIN_RUN_LINES:
            for number in numbers:
                levels[number] = LONG_OUTPUT
    return levels


def _output_level(paragraph):
    """Return how much output a paragraph is, by the share of its lines that are no prose."""
    if MANUAL.match(paragraph[0]):
        return LONG_OUTPUT
    prose = _are_prose(paragraph)
    n_others = prose.count(False)
    if len(paragraph) == 1:
        line = paragraph[0]
        is_technical = n_others and TECHNICAL.search(line) and len(PLAIN_WORD.findall(line)) < 4
        return int(bool(is_technical or _is_record(line) or is_code(line)))
    if n_others < 2 or 2 * n_others < len(prose) or _is_farewell(paragraph):
        return 0
    return LONG_OUTPUT if n_others >= MIN_RUN_LINES else 1


def _without_runs(paragraph):
    """Return a paragraph without records and code, what goes on below them, and runs of no prose.

    A line below a record or code goes on with it unless somebody speaks there.
    """
    kept_lines = []
    below_record = False
    for is_prose, group in groupby(zip(_are_prose(paragraph), paragraph), key=itemgetter(0)):
        run = [line for _, line in group]
        is_run = not is_prose and len(run) >= MIN_RUN_LINES
        for line in run:
            if is_run or _is_record(line) or is_code(line):
                below_record = True
            elif not below_record or SPEECH.search(line):
                below_record = False
                kept_lines.append(line)
    return kept_lines


def _are_prose(paragraph):
    """Return, for each line of a paragraph, whether it reads like a part of a sentence."""
    return [_is_prose(line, number > 0) for number, line in enumerate(paragraph)]


def _is_prose(line, goes_on):
    """Return whether a line reads like a part of a sentence, which may go on from a line above."""
    text = line.strip()
    words = len(PLAIN_WORD.findall(text))
    if _is_record(line) or is_code(line) or text.endswith(("...", "…")) and words < 6:
        return False
    if LIST_ITEM.match(line):
        return words >= 2 and FUNCTION_WORD.search(text) is not None
    if goes_on and text[0].islower():
        return words >= 2
    if text.endswith((".", "?", "!", ",", ";")) and not TECHNICAL.search(text):
        return words >= 2
    return words >= 4 and 2 * words >= len(text.split()) and bool(FUNCTION_WORD.search(text))


def _is_record(line):
    """Return whether a line is a trailer, an address, a line of a list of changes, or of a log."""
    if any(kind.match(line) for kind in RECORDS):
        return True
    words = len(PLAIN_WORD.findall(line))
    if MIN_DENSE_WORDS <= len(line.split()) and 2 * words < len(line.split()):
        return True
    if SHELL.match(line) and not FUNCTION_WORD.search(line):
        return True
    return COMMAND.match(line) is not None and words < 4
