"""Change the posts of a corpus before its release, to see how far each change keeps authors apart.

Each change is made to samples of authors, on the side that it concerns: that of the corpus, or also
that of the posts which somebody else knows, where the corpus shows how they were changed.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from ..core.artifacts import folder_lock
from ..core.paths import Run
from ..corpus.collect import CollectConfig, collect, parts_folder
from ..tokens.batch import Samples
from ..topic.masking import frequent_words, mask_text
from .columns import column_types
from .encoder import AuthorEncoder
from .reading import OwnPosts, has_hours, tokenise_posts
from .samples import (
    MIN_POSTS,
    distant_halves,
    in_memory,
    spread_posts,
    texts_of,
    whole_accounts,
)

KEPT_WORDS = 1000  # most frequent words of the corpus, which stay where rarer ones are masked
SHORT_WORDS = 8  # words that a shortened post keeps
FEW_POSTS = 4  # posts of each author, where few are released


def read_uncleaned_posts(
    run: Run,
    location: str,
    encoder: AuthorEncoder,
    names: np.ndarray,
    columns: dict | None = None,
) -> OwnPosts:
    """Read posts as :func:`helpers.accounts.reading.read_posts` does, but clean nothing.

    Names, addresses, quotes, code, signatures and passages that several posts share stay. What is
    made of the posts is deleted from the run's folder in the end.

    Parameters
    ----------
    run : Run
        the run whose folder takes the files that are made
    location : str
        path of the file
    encoder : AuthorEncoder
        its tokenizer makes the tokens
    names : (N,) str
        pseudonyms of the authors to keep; one with fewer than MIN_POSTS posts is left out
    columns : dict, optional
        kind ("author", "text", "time", "topic") -> column of the file; missing kinds are guessed

    Returns
    -------
    The posts of these authors, whose order may be another one
    """
    columns = column_types(location, columns or {})
    config = CollectConfig(
        source="table",
        location=[str(location)],
        columns=columns,
        raw=True,
        near_duplicate=0,
        strip_signatures=False,
    )
    with folder_lock(run.folder):
        try:
            card = collect(run, config, quiet=True)
            kept_store, kept_names = _posts_of(run, encoder, names)
        finally:
            _delete_posts(run)
    hours = has_hours(columns, kept_store)
    return OwnPosts(kept_store, kept_names, hours, card, run.folder / "vectors.safetensors")


def _posts_of(run, encoder, names):
    """Return a store in memory of the posts of named authors, and their names in order."""
    store = tokenise_posts(run, encoder.tokenizer)
    all_names = np.asarray(store.author_names(), object)
    is_kept = np.isin(all_names, names) & (store.posts_per_author() >= MIN_POSTS)
    accounts = np.flatnonzero(is_kept)
    kept_store = in_memory(spread_posts(store, accounts)).store
    return kept_store, all_names[accounts]


def _delete_posts(run):
    """Delete all that a run holds of posts that are not cleaned."""
    shutil.rmtree(parts_folder(run), ignore_errors=True)
    for path in run.folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif not path.name.startswith(".lock"):
            path.unlink()


def with_changed_texts(samples: Samples, change: Callable[[str], str], tokenizer) -> Samples:
    """Change the text of every post; hours, times and topics stay.

    Parameters
    ----------
    samples : Samples
        of any number of authors
    change : callable
        returns the new text of a text
    tokenizer : Tokenizer
        has made the tokens of the store
    """
    store = in_memory(samples).store
    texts = texts_of(store, np.arange(store.posts), tokenizer)
    tokens = tokenizer.encode([change(text) for text in texts])
    lengths = [len(tokens_of_post) for tokens_of_post in tokens]
    changed_store = replace(
        store,
        tokens=np.concatenate(tokens).astype(np.uint16),
        post_offsets=np.cumsum([0, *lengths]),
    )
    return whole_accounts(changed_store)


def mask_rare_words(known: Samples, released: Samples, tokenizer) -> tuple[Samples, Samples]:
    """Mask all but the KEPT_WORDS most frequent words of the released posts, in both samples.

    The letters of a masked word become ``*`` and its digits ``#``, see
    :func:`helpers.topic.masking.mask_text`. Who compares masked posts with others masks these, too.

    Parameters
    ----------
    known, released : Samples
        posts known elsewhere, and those of the corpus
    tokenizer : Tokenizer
        has made the tokens of both
    """
    store = in_memory(released).store
    texts = texts_of(store, np.arange(store.posts), tokenizer)
    change = partial(mask_text, keep=frequent_words(texts, KEPT_WORDS))
    sides = [with_changed_texts(samples, change, tokenizer) for samples in (known, released)]
    return sides[0], sides[1]


def first_words(text: str, words: int = SHORT_WORDS) -> str:
    """Cut a text after its first words.

    Parameters
    ----------
    text : str
        text to cut
    words : int
        number of words, as blanks part them, that stay
    """
    return " ".join(text.split()[:words])


def same_authors(
    posts: OwnPosts, names: np.ndarray, side_posts: int
) -> tuple[Samples, Samples] | None:
    """Return the first and the last posts of named authors, in the order of their names.

    Parameters
    ----------
    posts : OwnPosts
        of these authors and perhaps others
    names : (N,) str
        names of the authors
    side_posts : int
        number of first and of last posts

    Returns
    -------
    Both samples; None where an author is missing or has fewer than twice so many posts
    """
    first, last = distant_halves(posts.store, side_posts, side_posts)
    row_of_name = {name: row for row, name in enumerate(posts.names[first.authors])}
    if not all(name in row_of_name for name in names):
        return None
    rows = np.array([row_of_name[name] for name in names])
    return first[rows], last[rows]
