"""Names of authors: what is one author's name, how it is shown, and its pseudonym.

Names that differ only in case, in white space, in characters that nobody sees, or in the form that
Unicode gives to the same letters ("é" as one character or as two, full-width letters) are one
author's, but for ids whose case tells people apart. Otherwise one person would be two authors, whom
a comparison then finds to be alike.

A pseudonym is a keyed hash of a name, which nobody can compute without the key. The key is kept, so
that a name has the same pseudonym in all runs on a machine. Beside it lies the one folder where
names are kept, see :func:`names_folder`.
"""

import hmac
import os
import re
import secrets
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

import yaml

from ..core import paths
from ..core.artifacts import atomic_write, lock, make_folder
from .text import normalise_unicode

KEY_BYTES = 32
# what nobody sees in a name: C0 and C1 controls but tab and line ends, interlinear marks, and the
# characters that Unicode calls default-ignorable, such as zero-width marks and variation selectors
UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\u2800\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# an id of Salesforce, of which "005A0000001AbCd" and "005A0000001ABcd" are two people's
ID_WITH_CASE = re.compile(r"\d[0-9A-Za-z]{14}")
# names that stand for nobody, or for many people; the file says how they are written
NO_AUTHORS = yaml.safe_load(Path(__file__).with_name("no_authors.yaml").read_text("utf-8"))
UNKNOWN_AUTHORS = set(NO_AUTHORS["unknown"])
DELETED_WORDS = set(NO_AUTHORS["deleted"].split())
ACCOUNT_WORDS = set(NO_AUTHORS["account"].split())
MISSING_VALUES = set(NO_AUTHORS["missing"].split())
# the number of a deleted account: "42", "1a2b3c4d"
ACCOUNT_NUMBER = re.compile(r"\d+|[0-9a-f]{4,}")


@lru_cache(maxsize=100_000)
def same_author(name: str) -> str:
    """Return what the names of one author have in common, "" for a name that nobody can see.

    It is Unicode's NFKC_Casefold, which is made to compare identifiers, with white space collapsed
    and without UNSEEN characters. An ID_WITH_CASE keeps its case. Lone surrogates count as
    :func:`escape_surrogates` writes them.
    """
    name = UNSEEN.sub("", escape_surrogates(name))
    if ID_WITH_CASE.fullmatch(name.strip()):
        return name.strip()
    name = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", name).casefold())
    # NFKC makes capital letters of some symbols, such as the sign for a trade mark
    name = unicodedata.normalize("NFKC", name.casefold())
    return " ".join(name.split())


@lru_cache(maxsize=100_000)
def author_name(name: str) -> str:
    """Return a name as the posts table shows it: with normalised Unicode and single blanks.

    Unlike :func:`same_author` it keeps case, and letters of other widths.
    """
    return " ".join(normalise_unicode(escape_surrogates(name)).split())


@lru_cache(maxsize=100_000)
def is_placeholder(name: str) -> bool:
    """Return whether a name stands for nobody or for many people: "[deleted]", "null", "Guest".

    Only a whole name counts. The words of programs for a missing value count only as programs write
    them, because "Null" and "Nan" are names of people; "0" may be the number of an account.
    """
    if name.strip(" \t()[]{}<>") in MISSING_VALUES:
        return True
    words = re.sub(r"[\W_]+", " ", same_author(name)).split()
    if " ".join(words) in UNKNOWN_AUTHORS:
        return True
    kinds = [word for word in words if not ACCOUNT_NUMBER.fullmatch(word)]
    if DELETED_WORDS.isdisjoint(kinds):
        return False
    return DELETED_WORDS.union(ACCOUNT_WORDS).issuperset(kinds)


def escape_surrogates(name: str) -> str:
    r"""Return a name with each lone surrogate as an escape such as ``\ud800``.

    No file can hold a lone surrogate; without it, two names would become one.
    """
    if name.isascii():
        return name
    return name.encode("utf-8", "backslashreplace").decode()


def joined_names(authors: Counter) -> dict[str, str]:
    """Return the names of those authors who have several, each with the name to show for it.

    That is the author's most frequent name, as :func:`author_name` gives it; of equally frequent
    ones the first in the order of their letters.

    Parameters
    ----------
    authors : Counter
        Number of posts of each name, as the source has it.
    """
    names_of_author = Counter(same_author(name) for name in authors)
    joined = [name for name in authors if names_of_author[same_author(name)] > 1]
    posts_of_form = defaultdict(Counter)
    for name in joined:
        posts_of_form[same_author(name)][author_name(name)] += authors[name]
    shown = {author: max(sorted(forms), key=forms.get) for author, forms in posts_of_form.items()}
    return {name: shown[same_author(name)] for name in joined}


def pseudonym_key() -> bytes:
    """Return the secret that turns names into pseudonyms.

    It is the environment variable ``AUTHORBOOK_PSEUDONYM_KEY`` (hexadecimal) where that is set and
    not empty. Otherwise it is the content of a file in the outputs folder, which the first call
    creates.

    Raises
    ------
    ValueError
        Where the key is not hexadecimal, or is shorter than KEY_BYTES.
    """
    digits = os.environ.get("AUTHORBOOK_PSEUDONYM_KEY")
    if digits:
        if not re.fullmatch(rf"([0-9a-fA-F]{{2}}){{{KEY_BYTES},}}", digits):
            raise ValueError(
                f"AUTHORBOOK_PSEUDONYM_KEY must be {KEY_BYTES} or more bytes, hexadecimal"
            )
        return bytes.fromhex(digits)

    path = paths.outputs() / ".pseudonym_key"
    with lock(path.with_suffix(".lock"), path.name):
        if not path.exists():
            with atomic_write(path) as partial_path:
                partial_path.touch(mode=0o600)
                partial_path.write_bytes(secrets.token_bytes(KEY_BYTES))
    secret = path.read_bytes()
    if len(secret) < KEY_BYTES:
        raise ValueError(
            f"{path.name} in the outputs folder is damaged: delete it, and pseudonyms will change"
        )
    return secret


def names_folder() -> Path:
    """Return the folder for what still holds names of people; only its owner may open it.

    A run's own folder holds none where authors are pseudonymised. So the folders of runs may be
    shown to others, and this one and the key may not.
    """
    folder = paths.outputs() / ".names"
    make_folder(folder)
    folder.chmod(0o700)  # it may have been copied here
    return folder


def pseudonymiser(secret: bytes | None) -> Callable[[str], str]:
    """Return the function that maps an author's name to a pseudonym.

    A pseudonym is "u" and 16 hexadecimal digits of the HMAC-SHA256 of what :func:`same_author`
    returns for the name. Where ``secret`` is None, the function is :func:`author_name`.
    """
    if secret is None:
        return author_name
    return partial(_pseudonym, secret)


@lru_cache(maxsize=100_000)
def _pseudonym(secret, author):
    """Return the pseudonym of an author."""
    digest = hmac.new(secret, same_author(author).encode(), "sha256")
    return "u" + digest.hexdigest()[:16]
