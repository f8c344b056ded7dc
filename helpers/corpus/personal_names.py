"""Masking of the names of people in all texts of a corpus.

Names from headers, mentions, greetings and signatures are known names, and are masked in all texts.
A single word of a name is masked only where the corpus hardly ever writes it in lower case, or
where it is a first name that people greet and sign with, and stands as a person's name does ("as
Mark said"). So "will", "mark" and "may" stay, and so do names of places and firms that nobody in
the corpus has.

What a single post alone shows is masked before: its greeting and its signature in
``cleaning/salutations.py``, mentions in ``cleaning/text.py``.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from duckdb import DuckDBPyConnection

from ..cleaning.salutations import PERSON
from ..cleaning.text import EVERYDAY

# the words of each name, in lower case, and whether its words must be capitalised to be masked
MaskedNames = dict[tuple[str, ...], bool]
MAX_NAME_WORDS = 4  # further words of a name are ignored
MIN_SALUTATIONS = 3  # a name from salutations is known once so many posts greet or sign with it
MAX_LOWER_CASE = 0.1  # a word with more lower-case uses per capitalised use is a common word
# A common word is one for many authors, too: so large a share of them, but at least and at most so
# many, write it in lower case. For some in a chat Jane is "doe", and that is a name.
LOWER_CASE_AUTHORS = 0.1
MIN_AUTHORS = 3
MAX_AUTHORS = 10
MIN_LOWER_CASE = 10  # with fewer, these uses may all be the full name itself: "neil gandler"
# A mention may hold two words, and its second one stays, "@user Doe". It is a surname where so many
# mentions stand before it, and where these are so large a share of its uses.
MIN_MENTIONED = 3
MIN_MENTIONED_SHARE = 0.5
AFTER_MENTION = r"(?:^|[\s\"(])@user (\p{Lu}\pL+)"  # for DuckDB
# a common word is a first name where so many posts greet or sign with it or so many full names
# begin with it, and where it has at most so many uses in lower case for each of these
MIN_FIRST_NAMES = 2
MAX_LOWER_CASE_OF_FIRST = 10
# words that no person's name holds: a sender whose name has one is an organisation
ORGANISATIONS = frozenset(
    "association center centre college committee company computer department engineering for"
    " foundation group inc institute laboratory network news of school sciences services society"
    " software student support systems team university users".split()
)
# names of months, weekdays and seasons: "in April" names nobody
CALENDAR = frozenset(
    "january february march april may june july august september october november december monday"
    " tuesday wednesday thursday friday saturday sunday spring summer autumn winter".split()
)
# a word that is no part of a path, an address, an identifier or "don't", in archives also "don?t"
WORD = re.compile(r"(?<![\w@./:\\$#])[^\W\d_]++(?![\w(]|[./:@]\w|['’?][tT]\b)")
# the same as WORD for DuckDB, with a following "'t"; a typographic apostrophe would make it three
# times slower
COUNTED_WORD = r"""(?:^|[\s"(])(\pL+(?:'t)?)"""
# a word that is not cut by a "?", which archives write for a letter that they lost
LETTERS = re.compile(r"(?<![^\W\d_])(?<!\?)[^\W\d_]++(?!\?)")
# "Jane Doe" and "Doe, Dr. Jane" are full names, "rust_fan" and "jane" are not
FULL_NAME = re.compile(r"[^\d_@/]+[\s,][^\d_@/]+")
# a star, an emoji ... beside a name; no quotation mark, dash or other punctuation
SIGN = r"[^\w\s\x00-\xbf\u2000-\u206f\u3000-\u303f]"
# a nick at the start of a line, as chats and bridges write it, "<jane> hi", "[jane] hi", "**jane**
# hi" or "jane: hi"; or any word that is no part of a path, an address or a call
NICK = re.compile(
    r"^(?P<first><[^\s<>]{2,40}>|\[[^\s\[\]]{2,40}\]|\*\*[^\s*]{2,40}\*\*|[^\s<>:]{2,40}(?=: ))"
    rf"|(?<![\w@./:\\$])@?{SIGN}{{0,4}}\w[\w.+-]{{1,43}}+(?:#\d{{4}})?{SIGN}{{0,4}}"
    r"(?![\w(]|[/:@]\w)",
    re.M,
)
SIGNS = re.compile(rf"^{SIGN}+|{SIGN}+$")
JOINTS = ("", "_", ".", "-")  # between the words of a full name that is written as one word
MIN_FIRST_LETTERS = 3  # of its first word: "A. Long" is no "along"
NUMBER = re.compile(r"#\d{4}$")  # behind a name of Discord
PART = re.compile(rf"(?:(?!{SIGN})[^<>\[\]*-])+")  # of a word with hyphens
# what may stand behind a name: an address, pronouns
BESIDE_NAME = re.compile(r"\s*<[^<>]*@[^<>]*>\s*$|\s*\([^()]*\)\s*$")
# a nick that is no word: with a digit, an underline, a dot, or a capital letter after a small one
NO_WORD = re.compile(r"[\d_.+]|[^\W\d_A-Z][A-Z]")
# what may stand between the words of a name
NAME_GAPS = {" ", ". ", ".", "-", ", ", "' "}
# a hyphen beside the blank that stands for a name
COMPOUND = re.compile(r"\w- | -\w")
# what stands before a first name within a sentence, and what may then follow it as a surname
BEFORE_FIRST_NAME = re.compile(r"(?<![\w.])(?!thanks|regards|cheers|wishes|best|you)[a-z]+ $")
SURNAME = re.compile(rf" (?:[A-Z]\. )?{PERSON}(?!\w)")
# what stands before and after a name that is a common word too: "as Mark", "But Mark", not "the
# Mark", "in Rich"; "Mark's", "Mark.", not "Mark II", "Mark.txt"
BEFORE_NAME = re.compile(
    r"(?<![\w.@])(?!(?:an?|the|th[eio]se?|this|that|my|your|our|his|her|their|its|no|any|each|every"
    r"|some|in|on|of|last|next|late|early|many|all) )(?:(?:[a-z]+|But|And|As|If|When|Since|So|Or"
    r"|Thanks|Cheers|Regards),?|Hi|Hello|Dear) $"
)
AFTER_NAME = re.compile(r"['’]s?(?!\w)|[.:](?!\S)|(?![\w(./:@'’-]| [A-Z(])")
# what stands before the name in a signature
BEFORE_SIGNATURE = re.compile(
    r"\b(?:regards|cheers|wishes|helps|ciao|sincerely|yours|cu)[,.!]? $|\s--?$", re.I
)


def bare_name(name: str) -> str:
    """Return a name without what people and programs write around it.

    ``"Doe, Jane" <jane@example.org>``, ``@JaneDoe`` and ``Jane Doe (she/her)`` hold a name as well.

    Parameters
    ----------
    name : str
        of an author, as a source writes it
    """
    return BESIDE_NAME.sub("", name).strip(" \"'").removeprefix("@")


def nicks_of(people: Iterable[str]) -> dict[str, bool]:
    """Return the names of one word with a letter, in lower case, and whether each is no word.

    Signs beside a word, such as stars, may be part of the name, and may not. First and last word of
    a full name are such a name where they are joined, as in "JaneDoe" and "jane_doe". Names with
    "@" are left out.

    Parameters
    ----------
    people
        Names of authors and those in headers and mentions.
    """
    nicks = {}
    for name in people:
        plain = SIGNS.sub("", name)
        if FULL_NAME.fullmatch(name):
            words = LETTERS.findall(name.lower())
            if len(words) > 1 and len(words[0]) >= MIN_FIRST_LETTERS:
                nicks |= {joint.join((words[0], words[-1])): True for joint in JOINTS}
        elif re.fullmatch(r"(?=\S*[^\W\d_])[^\s@]{2,40}", name):
            # whoever else is called so, in whatever order: once no word, always none
            nicks[plain.lower()] = bool(nicks.get(plain.lower()) or NO_WORD.search(plain))
            if plain != name:
                nicks[name.lower()] = True
    return nicks


def words_in(text: str) -> list[str]:
    """Return all words of a text, digits and "_" included, alike for upper and lower case.

    Parameters
    ----------
    text : str
        A post, or a name.
    """
    return re.findall(r"\w+", text.casefold())


def words_of_names(first_words: set[str], nicks: dict[str, bool]) -> set[str]:
    """Return a word of :func:`words_in` of each name, the longest: no other text holds a name.

    Parameters
    ----------
    first_words
        The first words of names, see :func:`mask_known_names`.
    nicks
        Result of :func:`nicks_of`.
    """
    return {max(words_in(name), key=len) for name in first_words.union(nicks)}


def mask_nicks(nicks: dict[str, bool], text: str) -> str:
    """Return a text with ``@user`` for nicks after "@" or at a line's start, or that are no words.

    Parameters
    ----------
    nicks
        Result of :func:`nicks_of`.
    text : str
        A post, or a topic.
    """
    return NICK.sub(partial(_masked_nick, nicks), text)


def _masked_nick(nicks, match):
    """Return what takes the place of a match of NICK."""
    word = match[0].strip("<>[]*").rstrip(".-")
    bare = word.removeprefix("@")
    is_written_as_nick = match["first"] or bare != word
    for name in (bare, NUMBER.sub("", bare), SIGNS.sub("", bare)):
        is_no_word = nicks.get(name.lower())
        if is_no_word or (is_written_as_nick and is_no_word is not None):
            return match[0].replace(word, "@user")
    return PART.sub(partial(_masked_part, nicks), match[0])


def _masked_part(nicks, match):
    """Return what takes the place of a part of a word, as in "dm-jane7" or "jane7-san"."""
    return "@user" if nicks.get(match[0].lower()) else match[0]


def names_to_mask(
    connection: DuckDBPyConnection,
    people: Iterable[str],
    salutations: Counter,
    parts: list[Path],
) -> MaskedNames:
    """Return the names to mask, as words in lower case, and whether each must be capitalised.

    A full name, and its first and last word as a name, must be capitalised only where all their
    words are common ones, with MIN_LOWER_CASE uses in lower case or more. Words of full names and
    of names from salutations are also masked alone, in upper or lower case, unless they are common
    ones. A common word must be capitalised; it is masked alone only if it is a first name, see
    :func:`_first_names`, and only where :func:`_stands_as_name` holds. A common word is an everyday
    word, or one that many authors write in lower case, and not seldom: MAX_LOWER_CASE of its other
    uses. A surname that mostly follows a mention is masked, too, see MIN_MENTIONED.

    Parameters
    ----------
    connection : DuckDBPyConnection
        does the work
    people
        Names of authors and those in headers and mentions.
    salutations : Counter
        How often each name is greeted or signed with.
    parts : list of Path
        Parquet files with a column ``text``.
    """
    names = _words_of_names(people, salutations)
    salutation_words = Counter()  # capitalised uses that are not counted below: masked by then
    for name, count in salutations.items():
        salutation_words.update(dict.fromkeys(names.get(name, ()), count))
    common_words = set(EVERYDAY)
    frequent_words = set(EVERYDAY)
    lower_case = Counter()
    mentioned = _count_after_mentions(connection, parts)
    surnames = set()
    words = sorted(set(mentioned).union(*names.values()))
    full_names = {(of_name[0], of_name[-1]) for of_name in names.values() if len(of_name) > 1}
    for word, low, high, is_common in _count_letter_case(connection, words, full_names, parts):
        lower_case[word] = low
        if is_common and low > MAX_LOWER_CASE * (high + salutation_words[word]):
            common_words.add(word)
            if low >= MIN_LOWER_CASE:
                frequent_words.add(word)
        if mentioned.get(word, 0) >= MIN_MENTIONED_SHARE * (low + high):
            surnames.add(word)

    identifying = identifying_words(names, salutations) | surnames - CALENDAR
    first_names = _first_names(names.values(), salutations, lower_case)
    masked = {(word,): False for word in identifying - common_words}
    masked |= {(word,): True for word in identifying & common_words & first_names}
    for words in names.values():
        if len(words) > 1:
            masked[words] = frequent_words.issuperset(words)
            first_and_last = (words[0], words[-1])
            masked[first_and_last] = frequent_words.issuperset(first_and_last)
    return masked


def _words_of_names(people, salutations):
    """Return, by known name, its words in lower case; names with "@" are left out.

    Those of ``salutations`` with MIN_SALUTATIONS or more are known too.
    """
    names = {name for name in people if "@" not in name}
    names.update(name for name, count in salutations.items() if count >= MIN_SALUTATIONS)
    return {name: tuple(LETTERS.findall(name.lower()))[:MAX_NAME_WORDS] for name in names}


def _count_after_mentions(connection, parts):
    """Return how often a mention stands before a word, by word in lower case, see MIN_MENTIONED."""
    rows = connection.execute(
        """
        WITH words AS (
            SELECT unnest(regexp_extract_all(text, $word, 1)) AS word FROM read_parquet($parts))
        SELECT lower(word) AS name, count(*) AS number FROM words
        GROUP BY name HAVING number >= $least""",
        {
            "parts": [str(part) for part in parts],
            "word": AFTER_MENTION,
            "least": MIN_MENTIONED,
        },
    )
    return dict(rows.fetchall())


def _count_letter_case(connection, words, full_names, parts):
    """Return how often a corpus writes words in lower case and otherwise, and if many authors do.

    Uses in lower case within one of ``full_names`` (pairs of words) do not count: a chat writes
    "jane doe".
    """
    connection.register("name_words", pa.table({"word": pa.array(words, pa.string())}))
    pairs = pa.array([" ".join(pair) for pair in full_names], pa.string())
    connection.register("full_names", pa.table({"pair": pairs}))
    return connection.execute(
        """
        WITH posts AS (
            SELECT author, regexp_extract_all(text, $word, 1) AS words FROM read_parquet($parts)),
        words AS (
            SELECT author, unnest(words) AS word, unnest(words[2:]) AS next,
                unnest(list_prepend('', words)) AS previous FROM posts),
        uses AS (
            SELECT author, lower(word) AS name, name = word
                AND lower(previous || ' ' || word) NOT IN (FROM full_names)
                AND coalesce(lower(word || ' ' || next), '') NOT IN (FROM full_names) AS is_low,
                name != word AS is_high
            FROM words WHERE name IN (FROM name_words)),
        authors AS (SELECT count(DISTINCT author) AS number FROM posts)
        SELECT name, countif(is_low) AS low, countif(is_high),
            count(DISTINCT author) FILTER (is_low)
                >= greatest(least($share * any_value(authors.number), $most), $least)
        FROM uses, authors GROUP BY name""",
        {
            "parts": [str(part) for part in parts],
            "word": COUNTED_WORD,
            "share": LOWER_CASE_AUTHORS,
            "least": MIN_AUTHORS,
            "most": MAX_AUTHORS,
        },
    ).fetchall()


def _first_names(names, salutations, lower_case):
    """Return words that are used as first names, see MIN_FIRST_NAMES.

    ``names`` are the words of each name, ``lower_case`` is a Counter of words in lower case.
    """
    uses = Counter(first for first, _ in {(words[0], words[-1]) for words in names if words[1:]})
    for name, count in salutations.items():
        uses.update(dict.fromkeys(name.lower().split()[:1], count))
    return {
        word
        for word, count in uses.items()
        if count >= MIN_FIRST_NAMES and lower_case[word] <= MAX_LOWER_CASE_OF_FIRST * count
    }


def identifying_words(people: Iterable[str], salutations: Counter) -> set[str]:
    """Return the words of three letters or more of names of people, in lower case.

    Names of one word, such as user names, are left out unless they occur in salutations. So are
    names of ORGANISATIONS and the words of the CALENDAR.

    Parameters
    ----------
    people
        Known names.
    salutations : Counter
        How often each name is greeted or signed with.
    """
    words = set()
    for name in people:
        if name in salutations or FULL_NAME.fullmatch(name.strip()):
            name_words = LETTERS.findall(name.lower())
            if ORGANISATIONS.isdisjoint(name_words):
                words.update(word for word in name_words if len(word) > 2)
    return words - CALENDAR


def mask_known_names(names: MaskedNames, first_words: set[str], text: str) -> str:
    """Return a text with ``@user`` for every known name, or ``@self`` for one that signs the text.

    Of several names that begin at one word, the longest is masked. A first name alone within a
    sentence is masked with the capitalised word after it, its surname.

    Parameters
    ----------
    names
        Words of each name in lower case, and whether they must be capitalised.
    first_words
        The first words of these names.
    text : str
        A post.
    """
    words = list(WORD.finditer(text))
    pieces = []
    end = 0  # where the name before ends
    for number, word in enumerate(words):
        if word.start() < end or word[0].lower() not in first_words:
            continue
        matches = words[number : number + MAX_NAME_WORDS]
        length = _name_length(text, matches, names)
        if length == 0:
            continue

        before = text[end : word.start()]
        end = matches[length - 1].end()
        if length == 1 and BEFORE_FIRST_NAME.search(before[-20:]):
            surname = SURNAME.match(text, end)
            if surname:
                end = surname.end()
        pieces += [before, "@self" if _signs(before, text, end) else "@user"]
    return "".join(pieces) + text[end:]


def _name_length(text, matches, names):
    """Return how many of these words, from the first on, make the longest known name, or 0."""
    words = tuple(match[0].lower() for match in matches)
    for length in range(len(words), 0, -1):
        must_be_capitalised = names.get(words[:length])
        if must_be_capitalised is not None:
            if _is_name(text, matches[:length], must_be_capitalised):
                return length
    return 0


def _is_name(text, matches, must_be_capitalised):
    """Return whether words of a text, which are those of a known name, are used as this name."""
    if must_be_capitalised and any(match[0][0].islower() for match in matches):
        return False
    gaps = {text[left.end() : right.start()] for left, right in pairwise(matches)}
    if not gaps <= NAME_GAPS:
        return False
    if len(matches) > 1:
        return True
    if must_be_capitalised and not _stands_as_name(text, matches[0]):
        return False
    # a single word in a compound with a hyphen names a thing: Kenward-Roger
    start, end = matches[0].span()
    around = text[max(start - 2, 0) : start] + " " + text[end : end + 2]
    return not COMPOUND.search(around)


def _stands_as_name(text, match):
    """Return whether a common word stands within a sentence as the name of a person does.

    In capitals it is emphasis: "you WILL see".
    """
    if match[0].isupper():
        return False
    before = text[max(match.start() - 20, 0) : match.start()]
    return bool(BEFORE_NAME.search(before) and AFTER_NAME.match(text, match.end()))


def _signs(before, text, end):
    """Return whether a name signs a text: it follows a farewell, or is the last sentence alone.

    ``before`` is the text before the name, ``end`` the place in the text where the name ends.
    """
    if BEFORE_SIGNATURE.search(before[-20:]):
        return True
    return before.endswith((". ", "! ", "? ")) and not text[end:].strip(". ")
