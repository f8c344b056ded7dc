"""Topic taken out of the text itself, before the tokenizer: what ARR is compared with.

This is text distortion (Stamatatos 2017), as in sawatphol2022: words outside the k most frequent
ones are masked, and only their length or their place is left. A word is a run of letters and
digits, with apostrophes inside. Words are counted and compared in lower case. A placeholder of
cleaning, such as "@url", is never masked and never counted.
"""

import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..cleaning.text import WORD
from ..core.artifacts import atomic_write
from ..core.progress import progress_bar
from ..corpus.posts_table import ROW_GROUP_POSTS

# what replaces what in a masked word: "don't4u2" becomes "***'*#*#" (multiple) or "*'*#*#" (single)
MARKS = {
    "multiple": ((re.compile(r"\d"), "#"), (re.compile(r"[^\W\d_]"), "*")),
    "single": ((re.compile(r"\d+"), "#"), (re.compile(r"[^\W\d_]+"), "*")),
}


def frequent_words(texts: Iterable[str], k: int) -> frozenset[str]:
    """Return the k most frequent words of training texts, lower-cased; fewer where there are fewer.

    Of equally frequent words those that come first in the alphabet are taken.

    Parameters
    ----------
    texts : iterable of str
        training texts
    k : int
        number of words
    """
    counts = Counter()
    for text in texts:
        counts.update(word[0].lower() for word in WORD.finditer(text) if not word[1])
    by_frequency = [(-count, word) for word, count in counts.items()]
    return frozenset(word for _, word in heapq.nsmallest(k, by_frequency))


def mask_text(text: str, keep: frozenset[str], kind: str = "multiple") -> str:
    """Mask every word that is not in ``keep``; punctuation, spaces and placeholders stay.

    Parameters
    ----------
    text : str
        text to mask
    keep : frozenset of str
        words that stay, lower-cased
    kind : str
        "multiple" (DV-MA): each letter becomes ``*`` and each digit ``#``; "single" (DV-SA): each
        run of them does

    Raises
    ------
    ValueError
        If the kind is another.
    """
    if kind not in MARKS:
        raise ValueError(f"kind {kind!r}: one of {', '.join(MARKS)}")
    return WORD.sub(partial(_mask_word, keep=keep, marks=MARKS[kind]), text)


# the replacement of one match of WORD, whose group 1 is a placeholder
def _mask_word(match, keep, marks):
    word = match[0]
    is_placeholder = match[1] is not None
    if is_placeholder or word.lower() in keep:
        return word
    for pattern, mark in marks:
        word = pattern.sub(mark, word)
    return word


def mask_posts(posts_path: str | Path, out_path: str | Path, change: Callable[[str], str]) -> None:
    """Write a copy of a posts table in which every text is changed.

    Columns and order stay. After an error ``out_path`` is as it was before.

    Parameters
    ----------
    posts_path : str or Path
        posts table to read
    out_path : str or Path
        posts table to write, which may be the same file
    change : callable
        returns the new text of a text, such as ``partial(mask_text, keep=words)``
    """
    posts = pq.read_table(posts_path)
    texts = progress_bar(posts["text"].to_pylist(), desc="masking", unit="post")
    changed = pa.array([change(text) for text in texts], posts.field("text").type)
    column = posts.schema.get_field_index("text")
    with atomic_write(out_path) as path:
        pq.write_table(
            posts.set_column(column, posts.field("text"), changed),
            path,
            ROW_GROUP_POSTS,
            compression="zstd",
        )
