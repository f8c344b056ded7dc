"""Masking of user names and nicks, which people also write without an ``@``, and of first names.

A name of one word, "felix" or "jane_42", is masked anywhere in a text, in upper or lower case,
unless it is a common word: then only a source knows where it is a name. An archive of user names
does not tell what its people are called, so first names come from a list, ``first_names.txt``.
"""

import re
from collections import Counter
from collections.abc import Callable
from functools import partial

from .text import EVERYDAY, FIRST_NAMES, PLACEHOLDERS

# letters of user names, not behind the "@" of a mention but in "lol@jane"; a bracket may also stand
# around one: "[jane]"
WORD = re.compile(r"(?<!\w)(?<!(?<!\w)@)[\w\[\]\\`^{}|-]{1,64}+")
# what joins a user name to another word: "jane|joe", "jane-ish"
JOINT = re.compile(r"([-|])")
AROUND_NAME = "[]{}|^\\-"
MIN_CHARS = 3
CAPITALISED_FIRST_NAMES = {name.title() for name in FIRST_NAMES - EVERYDAY}
CAPITALISED = re.compile(r"[A-Z][a-z]+")
# a first name, with the initial and the last name that may follow: "Jane", "Jane D. Doe"
FIRST_NAME = re.compile(
    rf"(?<![\w@/.:$-])(?:{'|'.join(sorted(CAPITALISED_FIRST_NAMES))})"
    r"(?: [A-Z]\.)?(?: [A-Z][a-z]+(?:-[A-Z][a-z]+)?)?(?![\w(/:@]|\.\w|['’]t\b)"  # not "Don't"
)
# a first name in lower case that is greeted or thanked: "morning jane"
GREETED = re.compile(
    r"(?<!\w)(hi|hello|hey|heya|howdy|morning|evening|night|thanks|thx|bye|ciao|welcome|o/),? "
    rf"(?:{'|'.join(sorted(FIRST_NAMES - EVERYDAY))})(?![\w(/:@]|\.\w)",
    re.I,
)
# a name that occurs more often than this for each post of its owner, and FREE_MENTIONS, is a common
# word: "perl" who said hello once
MENTIONS_PER_POST = 5
FREE_MENTIONS = 20


def words_of(text: str) -> list[str]:
    """Return the words of a text that may be user names, in lower case."""
    return [word.casefold() for word in WORD.findall(text)]


def maskable_user_names(posts: Counter, words: Counter) -> frozenset[str]:
    """Return the user names that are no common words.

    Parameters
    ----------
    posts : Counter
        number of posts of each user name, in lower case
    words : Counter
        number of uses of each word in all posts, as :func:`words_of` returns them
    """
    return frozenset(name for name in posts if _is_maskable(name, words[name], posts[name]))


def _is_maskable(name, mentions, posts):
    """Return whether a user name is long enough, has a letter, and is rarely used as a word."""
    if len(name) < MIN_CHARS or not any(char.isalpha() for char in name):
        return False
    if name in EVERYDAY or f"@{name}" in PLACEHOLDERS:
        return False
    return mentions <= FREE_MENTIONS + MENTIONS_PER_POST * posts


def mask_user_names(
    text: str, own_name: str, names: frozenset[str], person_of: Callable[[str], str] = str
) -> str:
    """Return a text with ``@user`` for user names and ``@self`` for the author's own.

    Parameters
    ----------
    text : str
        a post; words after an ``@`` stay
    own_name : str
        the author's user name in lower case
    names : frozenset of str
        user names in lower case, see :func:`maskable_user_names`
    person_of : function
        called with a word, returns the user name that it is a form of
    """
    replacement = partial(_replacement, own_name=own_name, names=names, person_of=person_of)
    return WORD.sub(replacement, text)


def _replacement(match, own_name, names, person_of):
    """Return what stands for a word: a placeholder where it is a user name, or holds one."""
    for word in (match[0], match[0].strip(AROUND_NAME)):
        mask = _mask(word, own_name, names, person_of)
        if mask:
            return mask
    parts = JOINT.split(match[0])
    return "".join(_mask(part, own_name, names, person_of) or part for part in parts)


def _mask(word, own_name, names, person_of):
    """Return the placeholder for a user name, "" for any other word."""
    name = person_of(word).casefold()
    if name not in names:
        return ""
    return "@self" if name == own_name else "@user"


def mask_first_names(text: str) -> str:
    """Return a text with ``@user`` for first names of a list, and for the last names after them.

    Names in lower case are masked only where they are greeted; everyday words stay.
    """
    # to look for all names at once takes ten times as long as to see that there is none
    if not CAPITALISED_FIRST_NAMES.isdisjoint(CAPITALISED.findall(text)):
        text = FIRST_NAME.sub("@user", text)
    return GREETED.sub(r"\1 @user", text)
