"""Removal of the lines of a text that are program text, console output or tables of numbers."""

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
