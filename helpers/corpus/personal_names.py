"""Names of people in texts: whom a letter greets, who signs it, and everybody whom the corpus knows.

A name that headers, mentions, greetings or signatures tell is masked in all texts of the corpus. A word of a name
alone is masked only where the corpus itself says that it is a name: it is hardly ever written in lower case. So
"will", "mark" and "may" stay, and so do names of places and firms that nobody of the corpus bears.
"""

import re
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import duckdb
import pyarrow as pa

from helpers.cleaning.text import EVERYDAY

LONGEST = 4  # words of a name
HEARD = 3  # so often a name is greeted or signed with before it counts as known
LOWER = 0.1  # so often, of its capitalised uses, a name may be written in lower case
NAME = r"[^\W\d_a-z][^\W\d_A-Z]{1,20}(?:-[^\W\d_a-z][^\W\d_A-Z]{1,20})?"
# what is capitalised where a name would stand
NOBODY = "|".join(Path(__file__).with_name("nobody.txt").read_text("utf-8").split())
NOBODY = rf"(?!(?:{NOBODY})\b)"
TITLE = r"(?:(?:Prof(?:essor)?|Dr|Mrs?|Ms)\b\.? ?)"
GREETING = re.compile(
    rf"\A\s*(?:(?i:hi|hello|hey|dear|g'day|hallo|hola|thanks|thank you|good (?:morning|evening|afternoon))[ ,]+)"
    rf"((?:{TITLE}{{0,2}}{NOBODY}{NAME}(?: ?, | and | & | )?){{1,5}})(?<! )(?=\s*(?:[,:;!.–(-]|\n|\Z))"
    rf"|\A\s*((?:{NOBODY}{NAME}(?: and | )?){{1,4}})(?<! )(?=\s*(?:,[ \t]*\n|--))"
)
# after words that close a letter, on a line of its own, or in lower case where nothing else can stand
CLOSED = r"(?i:regards|cheers|thanks|thank you|thx)\b"
SIGNED = re.compile(
    rf"(?:(?:(?<!\w)(?i:{CLOSED}|sincerely|yours|greetings|wishes|best|hth|helps|advance|saludos|ciao|luck)\b"
    rf"[ \t]*(?:[,.!;:)]*\s*\n|[,!]?)|\n[ \t]*(?:\n|--?[ \t]*(?=\w))|[.!?][ \t]*\n|\n[^\n]{{0,30}},[ \t]*\n"
    rf"|\b{CLOSED}[^\n.?]{{0,40}}(?:\n|, ))[\s–—/~-]*"
    rf"((?:{NOBODY}{NAME}|[A-Z]\.?)(?:[ \t]+(?:{NAME}|[A-Z]{{1,20}}\.?)){{0,3}})"
    rf"|(?:\n\n|,\n|sincerely\n|(?:\A|\n)(?i:kind |best |many |warm )?{CLOSED},?\s)((?i:{NOBODY})[a-z]{{3,12}}))[.,]?"
    rf"[\s-]*\Z"
)
CLOSES = re.compile(
    r"\b(?:regards|cheers|wishes|helps|ciao|sincerely|yours|cu)[,.!]? $|\s--?$", re.I
)  # who signs
TAIL = 200  # characters that SIGNED looks at
POSTSCRIPT = re.compile(r"\n[ \t]{0,9}[Pp]\.? ?[Ss]\b|\Z")
# no part of a path, an address or an identifier
WORD = re.compile(r"(?<![\w@./:\\$#])[^\W\d_]++(?![\w(]|[./:@]\w)")
SURNAME = re.compile(
    rf" (?:[A-Z]\. )?{NOBODY}{NAME}(?!\w)"
)  # after a first name inside of a sentence
INSIDE = re.compile(r"(?<![\w.])(?!thanks|regards|cheers|wishes|best|you)[a-z]+ $")
LETTERS = re.compile(
    r"(?<![^\W\d_])(?<!\?)[^\W\d_]++(?!\?)"
)  # of words in which archives lost no letter to "?"
COMPOUND = re.compile(r"\w- | -\w")
BETWEEN = {" ", ". ", ".", "-", ", ", "' "}
MIDDLE = re.compile(r"(?<=[\w,;] )[^\W\d_]{3,}+(?![\w(]|[./:@]\w)")  # a word that opens no sentence


def mask_salutations(text: str) -> tuple[str, list[str]]:
    """A text with ``@user`` for whom it greets at its start and ``@self`` for who signs it, and these names."""
    heard = []
    if greeted := GREETING.match(text[:TAIL]):
        start, end = greeted.span(greeted.lastindex)
        heard += re.split(r"\s*(?:,|&|\band\b)\s*", text[start:end])
        text = f"{text[:start]}@user{text[end:]}"
    for stop in [match.start() for match in POSTSCRIPT.finditer(text)][:-3:-1]:
        tail = text[max(stop - TAIL, 0) : stop]
        if signed := SIGNED.search(tail):
            start, end = signed.span(signed.lastindex)
            heard.append(tail[start:end])
            text = f"{text[: stop - len(tail)]}{tail[:start]}@self{tail[end:]}{text[stop:]}"
    return text, [name for name in heard if name]


def words_of_names(people: Iterable[str], heard: Counter) -> dict[str, tuple[str, ...]]:
    """The words, in lower case, of names: people, whom authors, headers and mentions tell, and heard HEARD times."""
    every = {name for name in people if "@" not in name} | {
        name for name, count in heard.items() if count >= HEARD
    }
    return {name: tuple(LETTERS.findall(name.lower()))[:LONGEST] for name in every}


def count_letter_case(words: list[str], part: Path) -> dict:
    """Write how often the column text of a Parquet file holds words in lower case, ``low``, and otherwise, ``high``."""
    began, written = time.perf_counter(), str(part.with_suffix(".words"))
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("name_words", pa.table({"word": pa.array(words, pa.string())}))
        connection.sql(
            """
            WITH words AS (
                SELECT unnest(regexp_extract_all(text, '(?:^|[\\s"(])(\\pL+)', 1)) AS word FROM read_parquet($part))
            SELECT lower(word) AS name, count(*) FILTER (word = name) AS low, count(*) FILTER (word != name) AS high
            FROM words WHERE name IN (FROM name_words) GROUP BY 1""",
            params={"part": str(part)},
        ).write_parquet(written)
    return {"words": written, "seconds": time.perf_counter() - began}


def names_to_mask(names: dict[str, tuple[str, ...]], heard: Counter, used: list[dict]) -> dict:
    """The names to mask, each a tuple of words in lower case; the value says whether it must be capitalised to count.

    names: as :func:`words_of_names` gives them. used: what :func:`count_letter_case` wrote of their words in every part. A full name is
    masked in any case, but where all its words are common ones, only capitalised. Single words are taken from names of
    several words, and from those that were heard.
    """
    masked_before = Counter()
    for name, count in heard.items():
        masked_before.update(dict.fromkeys(names.get(name, ()), count))
    rows = duckdb.execute("SELECT name, sum(low)::BIGINT, sum(high)::BIGINT FROM read_parquet(?) GROUP BY 1 "
                          "HAVING sum(low) > 0", [[part["words"] for part in used]]).fetchall()  # fmt: skip
    lower = {word for word, low, high in rows if low > LOWER * (high + masked_before[word])}
    masked = {(word,): False for word in words_of(names, heard) - EVERYDAY - lower}
    for words in names.values():
        for form in {words, (words[0], words[-1])} if len(words) > 1 else ():
            masked[form] = all(word in EVERYDAY or word in lower for word in form)
    return masked


def words_of(people: Iterable[str], heard: Counter) -> set[str]:
    """The words of three letters and more, in lower case, of names of people; a lone user name is not taken apart."""
    whole = (
        name
        for name in people
        if name in heard or re.fullmatch(r"[^\d_@/]+[\s,][^\d_@/]+", name.strip())
    )
    return {word for name in whole for word in LETTERS.findall(name.lower()) if len(word) > 2}


def share_with_names(texts: Iterable[str], words: set[str]) -> float:
    """Share of the texts that hold, inside a sentence, a capitalised word of a known name that is no everyday word."""
    holds = [
        any(word[0].isupper() and word.lower() in words for word in MIDDLE.findall(text))
        for text in texts
    ]
    return round(sum(holds) / max(len(holds), 1), 4)


def mask_known_names(text: str, names: dict, starts: frozenset[str]) -> str:
    """A text with ``@user`` for every known name, the longest first. starts: the first words of the names."""
    if starts.isdisjoint(WORD.findall(text.lower())):
        return text
    found, pieces, end, i = list(WORD.finditer(text)), [], 0, 0
    words = [match[0].lower() for match in found]
    while i < len(words):
        sizes = range(LONGEST, 0, -1) if words[i] in starts else ()
        if size := next((n for n in sizes if _is_name(text, found, words, i, n, names)), 0):
            before = text[end : found[i].start()]
            if (
                size == 1
                and INSIDE.search(before[-20:])
                and (more := SURNAME.match(text, found[i].end()))
            ):
                size += len(WORD.findall(more[0]))
            end = found[i + size - 1].end()
            closes = (
                CLOSES.search(before[-20:])
                or before.endswith((". ", "! ", "? "))
                and not text[end:].strip(". ")
            )
            pieces += before, "@self" if closes else "@user"
        i += size or 1
    return "".join(pieces) + text[end:]


def _is_name(text, found, words, i, size, names):
    proper = names.get(tuple(words[i : i + size])) if i + size <= len(words) else None
    matches = found[i : i + size]
    between = (text[a.end() : b.start()] in BETWEEN for a, b in zip(matches, matches[1:]))
    if (
        proper is None
        or not all(between)
        or proper
        and any(match[0][0].islower() for match in matches)
    ):
        return False
    # a lone word in a compound is the name of a thing: Kenward-Roger
    start, end = matches[0].start(), matches[-1].end()
    return size > 1 or not COMPOUND.search(
        text[max(start - 2, 0) : start] + " " + text[end : end + 2]
    )
