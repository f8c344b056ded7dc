"""A quick test for words in a text, before an expression that ignores case is tried."""

import re
from collections.abc import Iterable

# Letters that re.I takes for "i" and "s", and lower() does not. The one for "k" lower() makes a "k"
AMBIGUOUS = re.compile("[\u0130\u0131\u017f]")


def may_hold(text: str, words: Iterable[str]) -> bool:
    """Return whether an expression that ignores case may find one of these words in a text.

    Parameters
    ----------
    text : str
        A post or a part of one.
    words : iterable of str
        Words in ASCII and in lower case.
    """
    lower_case = text.lower()
    for word in words:
        if word in lower_case:
            return True
    return not text.isascii() and AMBIGUOUS.search(text) is not None
