"""Program text, console output and tables of numbers among sentences, line by line."""

import re
from itertools import groupby

CODE = re.compile(
    r"\s*(?:[\w.$\[\]\"',]+\s*(?:<<?-|->>?)\s*\S|\[\d*,?\d*\]|[+]\s|[}\])]+[;,]?\s*$|\$ |.*[{}]\s*$"
    r"|[^;]*[=()\[\]{}][^;]*;\s*$"
    r"|(?:library|require|source|install\.packages|sessionInfo|str|summary|set\.seed|print|plot|data|rm|attach)\("
    r"|[\w.]+\([^()]*[\w\"'=]+\)?\s*[,{;]\s*$|[\w.]+\(.*\)\s*$|[\w.:]+\([^)]*$|[\w.]+ ?= ?[\w.]+\("
    r"|.*[^\s.):*-]\s{4,}\S"  # columns
    r"|(?:function|for|if|while)\s?\(|Error(?: in .*)?:\s|Error in |Warning message|Traceback|\s+at \S+\("
    r"|Call:\s*$|(?:Random|Fixed) effects:|Formula: |Number of obs|Linear mixed model"
    r"|Correlation of Fixed|attached base packages|other attached|loaded via)"
)
# console output, comments and crash logs, however many words they hold
SURELY_CODE = re.compile(
    r"\s*(?:\[\d+,?\]\s|\[,\d+\]|#(?!\d)|[\w.$\[\]\"']{1,60}\s*<-\s*[\w.:]+\(|0x[0-9a-f]{6}|\d+:\s+\w+\("
    r"|\S{0,40}[$\[][^<]{0,80}[\w\])]\s*<-\s|(?:[\w.-]{1,40}:\s?)?[~/]\S{0,99}(?: [\w.-]{1,32})?[$%]\s"  # also prompts
    r"|(?:Error|Fehler|Errore|Warning message|In addition).{0,20}\s?in [\w.:]+\s?\(|R version \d|Platform:|locale:"
    r"|LC_\w+=|Loading required package|The following object|attached base|other attached|loaded via|Called from: \w"
    r"|Browse\[\d|Loaded \w+ runtime|Path to \w+ shared|(?:Generalized l|L)inear mixed model fit by|AIC\s+BIC"
    r"|Estimate\s+Std|\(Intr\)|(?:\* )?checking .*\.\.\.|\* (?:[Ii]nstalling \*|using (?:log|R |session)|removing)"
    r"|\* this is package|\*\* \w|.{0,300}\s-\w\S*\s(?:\S+\s)?-\w\S*\s.*/\w|mkdir \S|ERROR: |In file included from"
    r"|[A-Z]{4,8}: -[IL]|[^\s:]{0,200}[./][^\s:]{1,200}:\d+(?::\d+)?:\s|[\w./-]{1,60}\.[chyfR](?::\s*[/<]|-\s{2})"
    r"|[-dl](?:[r-][w-][x-]){3}\s|(?:\S*/)?(?:gcc|g\+\+|ld|make|config\S*)(?:\[\d\])?(?:[-.\d]*\s-|:\s))"
)
SENTENCE = re.compile(
    r"[,:;]$|[.!?](?:\s|$)|\b(?:the|an?|i|you|we|it|is|are|was|be|to|and|that|this|my|have|not|can|do|if|but)\b",
    re.I,
)
WEB = re.compile(r"<?(?:https?|ftp)://\S+")
CODE_LIKE = re.compile(r"(?!.*\.\s*$).*?(?:[=(){}\[\]$~|\"]|<-|::|\w_\w)")
PLAIN_WORD = re.compile(r"(?<![\w.$(\"'/:=])[^\W\d_]{2,}(?=[\s,;:?!)]|\.(?:\s|$)|$)")


def without_code(lines: list[str]) -> list[str]:
    """The lines that are sentences, with the blank ones."""
    code = [is_code(line) for line in lines]
    for order in (range(1, len(lines)), range(len(lines) - 2, -1, -1)):
        step = order.step
        for i in order:  # a statement's other lines: arguments, brackets, strings
            code[i] |= (
                code[i - step] and CODE_LIKE.match(lines[i]) is not None and _words(lines[i]) < 5
            )
    # in a paragraph that is half code or more, what holds no sentence is output
    for blank, group in groupby(range(len(lines)), key=lambda i: not lines[i].strip()):
        numbers = list(group)
        if not blank and 2 * sum(code[i] for i in numbers) >= len(numbers):
            for i in numbers:
                code[i] |= SENTENCE.search(lines[i].strip()) is None
    return [line for line, drop in zip(lines, code, strict=True) if not drop]


def _words(line):
    """Number of plain words: not followed by a bracket or a dot within a name, not quoted."""
    return len(PLAIN_WORD.findall(line))


def is_code(line: str) -> bool:
    """True for a line that is program, console output or a table of numbers rather than a sentence."""
    text = WEB.sub("", line).strip()
    if (
        not text or text.endswith("):") and not SURELY_CODE.match(line)
    ):  # the end of a sentence, before an example
        return False
    if SURELY_CODE.match(line):
        return True
    statement = line[:400].partition("#")[0]
    if CODE.match(statement):
        return _words(statement) < 6
    letters = sum(char.isalpha() or char == " " for char in text)
    path = text.count("/") > 1 and "://" not in text and not _words(text)
    return len(text) >= 8 and (path or letters < 0.6 * len(text))
