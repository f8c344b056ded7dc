"""Names of people in the texts of a corpus: which are known, and their places in a text.

A name that headers, mentions, greetings or signatures tell is masked in all texts of the corpus. A
word of a name alone is masked only where the corpus itself says that it is a name: it is hardly
ever written in lower case. So "will", "mark" and "may" stay, and so do names of places and firms
that nobody of the corpus bears.
"""

import re
import time
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa

from helpers.cleaning.salutations import PERSON
from helpers.cleaning.text import EVERYDAY

# the words in lower case of a name, and whether it must be capitalised
MaskedNames = dict[tuple[str, ...], bool]
MAX_NAME_WORDS = 4
MIN_SALUTATIONS = 3  # so often a name is greeted or signed with before it counts as known
MAX_LOWER_CASE = 0.1  # so often, of its capitalised uses, a name may be written in lower case
# no part of a path, an address or an identifier
WORD = re.compile(r"(?<![\w@./:\\$#])[^\W\d_]++(?![\w(]|[./:@]\w)")
# of words in which archives lost no letter to "?"
LETTERS = re.compile(r"(?<![^\W\d_])(?<!\?)[^\W\d_]++(?!\?)")
# "Jane Doe" with a title is a full name, "rust_fan" a user name
FULL_NAME = re.compile(r"[^\d_@/]+[\s,][^\d_@/]+")
# a word that opens no sentence
INNER_WORD = re.compile(r"(?<=[\w,;] )[^\W\d_]{3,}+(?![\w(]|[./:@]\w)")
# what may stand between the words of a name
NAME_GAPS = {" ", ". ", ".", "-", ", ", "' "}
COMPOUND = re.compile(r"\w- | -\w")
# after a first name inside of a sentence
BEFORE_FIRST_NAME = re.compile(r"(?<![\w.])(?!thanks|regards|cheers|wishes|best|you)[a-z]+ $")
SURNAME = re.compile(rf" (?:[A-Z]\. )?{PERSON}(?!\w)")
# before the name of who signs
BEFORE_SIGNATURE = re.compile(
    r"\b(?:regards|cheers|wishes|helps|ciao|sincerely|yours|cu)[,.!]? $|\s--?$", re.I
)


def words_of_names(people: Iterable[str], salutations: Counter) -> dict[str, tuple[str, ...]]:
    """Return the words, in lower case, of each known name.

    Parameters
    ----------
    people
        Names that authors, headers and mentions tell.
    salutations : Counter, how often each name is greeted or signed with
        Names of MIN_SALUTATIONS and more are known.
    """
    names = {name for name in people if "@" not in name}
    names.update(name for name, count in salutations.items() if count >= MIN_SALUTATIONS)
    return {name: tuple(LETTERS.findall(name.lower()))[:MAX_NAME_WORDS] for name in names}


def count_letter_case(words: list[str], part: Path) -> dict:
    """Write how often a part of the corpus writes words in lower case, and how often otherwise.

    Parameters
    ----------
    words : list of str
        Words in lower case.
    part
        Path of a Parquet file with a column ``text``.

    Returns
    -------
    dict: ``words``, the path of a table with columns ``name``, ``low`` and ``high``; ``seconds``.
    """
    began = time.perf_counter()
    table = str(part.with_suffix(".words"))
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("name_words", pa.table({"word": pa.array(words, pa.string())}))
        connection.sql(
            """
            WITH words AS (
                SELECT unnest(regexp_extract_all(text, '(?:^|[\\s"(])(\\pL+)', 1)) AS word
                FROM read_parquet($part))
            SELECT lower(word) AS name, count(*) FILTER (word = name) AS low,
                   count(*) FILTER (word != name) AS high
            FROM words WHERE name IN (FROM name_words) GROUP BY 1""",
            params={"part": str(part)},
        ).write_parquet(table)
    return {"words": table, "seconds": time.perf_counter() - began}


def names_to_mask(
    names: dict[str, tuple[str, ...]], salutations: Counter, letter_case: list[dict]
) -> MaskedNames:
    """Return the names to mask, as words in lower case, and whether each must be capitalised.

    A full name is masked in any case, but where all its words are common ones, only capitalised.
    Single words are taken from full names, and from those of salutations.

    Parameters
    ----------
    names
        Words of each name, see :func:`words_of_names`.
    salutations : Counter
        How often each name is greeted or signed with.
    letter_case : list of dict
        What :func:`count_letter_case` returned of their words in every part.
    """
    salutation_words = Counter()  # capitalised uses that are masked already
    for name, count in salutations.items():
        salutation_words.update(dict.fromkeys(names.get(name, ()), count))
    rows = duckdb.execute(
        """SELECT name, sum(low)::BIGINT, sum(high)::BIGINT FROM read_parquet(?)
           GROUP BY name HAVING sum(low) > 0""",
        [[part["words"] for part in letter_case]],
    ).fetchall()
    common_words = set(EVERYDAY)
    for word, low, high in rows:
        if low > MAX_LOWER_CASE * (high + salutation_words[word]):
            common_words.add(word)

    masked = {(word,): False for word in identifying_words(names, salutations) - common_words}
    for words in names.values():
        if len(words) > 1:
            masked[words] = common_words.issuperset(words)
            first_and_last = (words[0], words[-1])
            masked[first_and_last] = common_words.issuperset(first_and_last)
    return masked


def identifying_words(people: Iterable[str], salutations: Counter) -> set[str]:
    """Return the words, in lower case, of three letters and more of names.

    A lone user name is not taken apart.

    Parameters
    ----------
    people
        Names.
    salutations : Counter
        How often each name is greeted or signed with; these are no user names.
    """
    words = set()
    for name in people:
        if name in salutations or FULL_NAME.fullmatch(name.strip()):
            words.update(word for word in LETTERS.findall(name.lower()) if len(word) > 2)
    return words


def share_with_names(texts: list[str], words: set[str]) -> float:
    """Return the share of texts with a capitalised word of a known name inside a sentence."""
    with_name = 0
    for text in texts:
        inner_words = [word for word in INNER_WORD.findall(text) if word[0].isupper()]
        with_name += any(word.lower() in words for word in inner_words)
    return round(with_name / max(len(texts), 1), 4)


def mask_known_names(text: str, names: MaskedNames, first_words: frozenset[str]) -> str:
    """Return a text with ``@user`` for every known name, ``@self`` where it signs the text.

    Of names that begin with the same word, the longest counts.

    Parameters
    ----------
    text : str
        A post.
    names
        Words in lower case of each name, and whether it must be capitalised.
    first_words
        The first words of the names.
    """
    if first_words.isdisjoint(WORD.findall(text.lower())):
        return text
    matches = list(WORD.finditer(text))
    pieces = []
    end = 0  # of the name before
    i = 0
    while i < len(matches):
        length = 0
        if matches[i][0].lower() in first_words:
            length = _name_length(text, matches[i : i + MAX_NAME_WORDS], names)
        if length == 0:
            i += 1
            continue

        before = text[end : matches[i].start()]
        end = matches[i + length - 1].end()
        if length == 1 and BEFORE_FIRST_NAME.search(before[-20:]):
            surname = SURNAME.match(text, end)
            if surname:
                end = surname.end()
        pieces += [before, "@self" if _signs(before, text, end) else "@user"]
        while i < len(matches) and matches[i].start() < end:
            i += 1
    return "".join(pieces) + text[end:]


def _name_length(text, matches, names):
    """Return how many of a text's next words are a known name, the longest there is; else 0."""
    words = tuple(match[0].lower() for match in matches)
    for length in range(len(words), 0, -1):
        must_be_capitalised = names.get(words[:length])
        if must_be_capitalised is not None:
            if _is_name(text, matches[:length], must_be_capitalised):
                return length
    return 0


def _is_name(text, matches, must_be_capitalised):
    """Return whether these words of a text, which are those of a known name, stand for it."""
    if must_be_capitalised and any(match[0][0].islower() for match in matches):
        return False
    gaps = {text[left.end() : right.start()] for left, right in pairwise(matches)}
    if not gaps <= NAME_GAPS:
        return False
    if len(matches) > 1:
        return True
    # a lone word in a compound is the name of a thing: Kenward-Roger
    start, end = matches[0].span()
    around = text[max(start - 2, 0) : start] + " " + text[end : end + 2]
    return not COMPOUND.search(around)


def _signs(before, text, end):
    """Return whether a name after a text signs: after a farewell, or alone at the end."""
    if BEFORE_SIGNATURE.search(before[-20:]):
        return True
    return before.endswith((". ", "! ", "? ")) and not text[end:].strip(". ")
