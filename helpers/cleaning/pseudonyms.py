"""Pseudonyms of authors: keyed hashes of their names, which nobody can compute without the key.

The key is kept, so that a name has the same pseudonym in all runs on a machine.
"""

import hmac
import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial

from helpers.cleaning.text import normalise_unicode
from helpers.core import paths
from helpers.core.artifacts import make_folder

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


def pseudonymiser(secret: bytes | None) -> Callable[[str], str]:
    """Return the function that maps an author's name to a pseudonym.

    A pseudonym is "u" and 16 hexadecimal digits of the HMAC-SHA256 of the name in lower case, so
    names that differ only in case are one author. Where ``secret`` is None, the function keeps the
    name, with normalised Unicode.
    """
    if secret is None:
        return normalise_unicode
    return partial(_pseudonym, secret)


@lru_cache(maxsize=100_000)
def _pseudonym(secret, author):
    """Return the pseudonym of an author."""
    name = author.strip().lower().encode("utf-8", "replace")
    return "u" + hmac.new(secret, name, "sha256").hexdigest()[:16]
