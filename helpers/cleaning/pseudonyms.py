"""Pseudonyms: a keyed hash of a name, the same in every run on one machine, and not to be guessed without the key."""

import hmac
import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

from helpers.cleaning.text import normalise_unicode
from helpers.core import paths

BYTES = 32  # of the key


def pseudonym_key() -> bytes:
    """The secret that turns names into pseudonyms: ``$AUTHORBOOK_PSEUDONYM_KEY`` (hex), else a file made once.

    Raises ValueError where it is not hexadecimal or shorter than BYTES.
    """
    if digits := os.environ.get("AUTHORBOOK_PSEUDONYM_KEY"):
        if not re.fullmatch(rf"([0-9a-fA-F]{{2}}){{{BYTES},}}", digits):
            raise ValueError(f"AUTHORBOOK_PSEUDONYM_KEY must be {BYTES} or more bytes, hexadecimal")
        return bytes.fromhex(digits)
    path = paths.outputs() / ".pseudonym_key"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        partial = path.with_name(
            f"{path.name}.{os.getpid()}"
        )  # whole before it has the name that others look for
        with os.fdopen(
            os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
        ) as file:
            file.write(secrets.token_bytes(BYTES))
        with suppress(FileExistsError):
            os.link(partial, path)
        partial.unlink()
    secret = path.read_bytes()
    if len(secret) < BYTES:
        raise ValueError(
            f"{path.name} in the outputs folder is damaged: delete it, and pseudonyms will change"
        )
    return secret


def pseudonymiser(secret: bytes | None) -> Callable[[str], str]:
    """author -> "u" and 16 hexadecimal digits of HMAC-SHA256 of the name in lower case; without a key the name itself.

    Names from several sources that differ in case alone are one author.
    """
    if secret is None:
        return normalise_unicode

    @lru_cache(maxsize=None)
    def pseudonym(author):
        name = author.strip().lower().encode("utf-8", "replace")
        return "u" + hmac.new(secret, name, "sha256").hexdigest()[:16]

    return pseudonym
