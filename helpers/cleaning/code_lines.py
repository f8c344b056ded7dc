"""Removal of lines that are no prose: program text, console output, tables, trailers of commits."""

import re
from itertools import groupby

# lines that are code unless they hold six words or more: "x <- 3", "print(x)", "}", "Call:"
CODE = re.compile(
    r"\s*(?:[\w.$\[\]\"',]+\s*(?:<<?-|->>?)\s*\S|\[\d*,?\d*\]|[+]\s|[}\])]+[;,]?\s*$|\$ "
    r"|.*[{}]\s*$|[^;]*[=()\[\]{}][^;]*;\s*$"
    r"|(?:library|require|source|install\.packages|sessionInfo|str|summary|set\.seed|print|plot"
    r"|data|rm|attach)\("
    r"|[\w.]+\([^()]*[\w\"'=]+\)?\s*[,{;]\s*$|[\w.]+\(.*\)\s*$|[\w.:]+\([^)]*$"
    r"|[\w.]+ ?= ?[\w.]+\("
    r"|.*[^\s.):*-]\s{4,}\S"  # columns
    r"|(?:function|for|if|while)\s?\(|Error(?: in .*)?:\s|Error in |Warning message|Traceback"
    r"|\s+at \S+\(|Call:\s*$|(?:Random|Fixed) effects:|Formula: |Number of obs"
    r"|Linear mixed model|Correlation of Fixed|attached base packages|other attached|loaded via)"
)
# console output, prompts, comments and crash logs, however many words they hold: "[1] 0.5 0.7",
# "~/src$ make all", "# a comment", "Error in f(x) : no such object", "gcc -O2 a.c"
SURELY_CODE = re.compile(
    r"\s*(?:\[\d+,?\]\s|\[,\d+\]|#(?!\d)|[\w.$\[\]\"']{1,60}\s*<-\s*[\w.:]+\(|0x[0-9a-f]{6}"
    r"|\d+:\s+\w+\(|\S{0,40}[$\[][^<]{0,80}[\w\])]\s*<-\s"
    r"|(?:[\w.-]{1,40}:\s?)?[~/]\S{0,99}(?: [\w.-]{1,32})?[$%]\s"  # prompts
    r"|(?:Error|Fehler|Errore|Warning message|In addition).{0,20}\s?in [\w.:]+\s?\(|R version \d"
    r"|Platform:|locale:|LC_\w+=|Loading required package|The following object|attached base"
    r"|other attached|loaded via|Called from: \w|Browse\[\d|Loaded \w+ runtime"
    r"|Path to \w+ shared|(?:Generalized l|L)inear mixed model fit by|AIC\s+BIC|Estimate\s+Std"
    r"|\(Intr\)|(?:\* )?checking .*\.\.\."
    r"|\* (?:[Ii]nstalling \*|using (?:log|R |session)|removing)|\* this is package|\*\* \w"
    r"|mkdir \S|ERROR: |In file included from"
    r"|[A-Z]{4,8}: -[IL]|[^\s:]{0,200}[./][^\s:]{1,200}:\d+(?::\d+)?:\s"
    r"|[\w./-]{1,60}\.[chyfR](?::\s*[/<]|-\s{2})|[-dl](?:[r-][w-][x-]){3}\s"
    r"|(?:\S*/)?(?:gcc|g\+\+|ld|make|config\S*)(?:\[\d\])?(?:[-.\d]*\s-|:\s))"
)
# a command with options and a path, which is surely code too: "cc -O2 -c src/a.c"
COMMAND = re.compile(r"\s*.{0,300}\s-\w\S*\s(?:\S+\s)?-\w\S*\s.*/\w")
# marks and words of which a line of a sentence holds at least one
SENTENCE = re.compile(
    r"[,:;]$|[.!?](?:\s|$)"
    r"|\b(?:the|an?|i|you|we|it|is|are|was|be|to|and|that|this|my|have|not|can|do|if|but)\b",
    re.I,
)
WEB = re.compile(r"<?(?:https?|ftp)://\S+")
# a line that is code where it stands beside a line of code: it holds brackets, "=", "::" or the
# like, and does not end with a full stop
CODE_LIKE = re.compile(r"(?!.*\.\s*$).*?(?:[=(){}\[\]$~|\"]|<-|::|\w_\w)")
# a word of a sentence: no quoted word, and no part of "f(x)", "data.frame" or a path
PLAIN_WORD = re.compile(r"(?<![\w.$(\"'/:=])[^\W\d_]{2,}(?=[\s,;:?!)]|\.(?:\s|$)|$)")

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


def without_code(lines: list[str]) -> list[str]:
    """Return the lines that are not code, output or tables; blank lines stay."""
    code = [is_code(line) for line in lines]
    # the other lines of a statement: arguments, brackets, strings; first downwards, then upwards
    _spread(code, lines, range(1, len(lines)), -1)
    _spread(code, lines, range(len(lines) - 2, -1, -1), 1)

    # in a paragraph that is half code or more, a line without words of a sentence is output
    is_text = [bool(line.strip()) for line in lines]
    for is_paragraph, group in groupby(range(len(lines)), key=is_text.__getitem__):
        numbers = list(group)
        code_lines = sum(code[i] for i in numbers)
        if is_paragraph and 2 * code_lines >= len(numbers):
            for i in numbers:
                code[i] = code[i] or not SENTENCE.search(lines[i].strip())
    return [line for line, is_dropped in zip(lines, code, strict=True) if not is_dropped]


def _spread(code, lines, order, neighbour):
    """Mark as code, in place, the lines that look like code and have a line of code beside them.

    ``code`` says of each line whether it is code. ``order`` is the order in which the lines are
    visited, so marks spread. ``neighbour`` is -1 to look at the line before, 1 at the line after.
    """
    for i in order:
        if code[i + neighbour] and CODE_LIKE.match(lines[i]) and _count_words(lines[i]) < 5:
            code[i] = True


def _count_words(line):
    """Return the number of words that sentences are made of."""
    return len(PLAIN_WORD.findall(line))


def is_code(line: str) -> bool:
    """Return whether a line is program text, console output or numbers rather than a sentence."""
    text = line.strip()
    if "://" in text:
        text = WEB.sub("", line).strip()
    if not text:
        return False
    if SURELY_CODE.match(line) or COMMAND.match(line):
        return True
    if text.endswith("):"):  # "(as the manual says):" ends a sentence before an example
        return False
    statement = line[:400].partition("#")[0]  # without its comment; the start of a line suffices
    if CODE.match(statement):
        return _count_words(statement) < 6
    if len(text) < 8:
        return False
    is_path = text.count("/") > 1 and "://" not in text and not _count_words(text)
    letters = sum(char.isalpha() or char == " " for char in text)
    return is_path or letters < 0.6 * len(text)


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
    for line in REFERENCE.sub("", body.expandtabs(4)).splitlines():
        text = line.strip()
        if CONFLICTS.match(text):
            in_conflicts = True
        elif in_conflicts and text and not line.startswith((" ", "#")):
            in_conflicts = False
        text = HASH.sub("@code", text)
        if not (in_conflicts or TRAILER.match(text) or FOOTNOTE.match(text)):
            lines.append(HASH.sub("@code", line.rstrip()))
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
