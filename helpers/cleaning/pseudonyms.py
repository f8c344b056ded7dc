"""Pseudonyms of authors: keyed hashes of their names, which nobody can compute without the key.

The key is kept, so that a name has the same pseudonym in all runs on a machine. Beside it lies the
one folder where names are kept, see :func:`names_folder`.
"""

import hmac
import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path

from ..core import paths
from ..core.artifacts import make_folder
from .author_names import author_name, same_author

KEY_BYTES = 32


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
    if not path.exists():
        _write_key(path)
    secret = path.read_bytes()
    if len(secret) < KEY_BYTES:
        raise ValueError(
            f"{path.name} in the outputs folder is damaged: delete it, and pseudonyms will change"
        )
    return secret


def _write_key(path):
    """Write a random key that only the file's owner may read, unless somebody else wrote one."""
    make_folder(path.parent)
    # complete before it gets the name that other processes look for
    partial_path = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    partial_path.touch(mode=0o600)
    partial_path.write_bytes(secrets.token_bytes(KEY_BYTES))
    with suppress(FileExistsError):
        os.link(partial_path, path)
    partial_path.unlink()


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

    A pseudonym is "u" and 16 hexadecimal digits of the HMAC-SHA256 of what
    :func:`~helpers.cleaning.author_names.same_author` returns for the name. Where ``secret`` is
    None, the function is :func:`~helpers.cleaning.author_names.author_name`.
    """
    if secret is None:
        return author_name
    return partial(_pseudonym, secret)


@lru_cache(maxsize=100_000)
def _pseudonym(secret, author):
    """Return the pseudonym of an author."""
    digest = hmac.new(secret, same_author(author).encode(), "sha256")
    return "u" + digest.hexdigest()[:16]
