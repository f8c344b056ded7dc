"""Make ``messages.parquet``, the table of the run ``commits``, from clones of nine repositories.

    python params/commits/make_table.py FOLDER

FOLDER holds bare clones of the repositories in PROJECTS, each in a folder of that name, as
``git clone --bare --filter=blob:none https://opendev.org/openstack/nova`` makes them. The commits
that were read are in ``NOTICE``. Authors, persons and last names get pseudonyms under a key that is
made here and not kept, so nobody can make the same table twice, or find a name in it.
"""

import hmac
import os
import secrets
import sys
import tempfile
from pathlib import Path

import duckdb
from people import find_people

from helpers.cleaning.authors import pseudonym_key, pseudonymiser
from helpers.core.paths import Run
from helpers.corpus.collection import CollectConfig, collect

PROJECTS = "nova neutron cinder keystone horizon heat glance swift ironic".split()
MIN_CHARS = 100  # shorter messages hold little of a style
MAX_CHARS = 1000
MIN_POSTS = 8  # of an account
KEY = secrets.token_hex(32)
TABLE = Path(__file__).with_name("messages.parquet")


def hidden(kind: str, word: str) -> str:
    """Return a keyed hash of a word, such as "p0123456789" for a person."""
    if not word:
        return ""
    digest = hmac.new(bytes.fromhex(KEY), f"{kind}\0{word}".encode(), "sha256").hexdigest()
    return kind + digest[:10]


def main(folder: str) -> None:
    """Collect the histories, and write the table with the accounts that have enough posts."""
    os.environ["AUTHORBOOK_PSEUDONYM_KEY"] = KEY
    os.environ["AUTHORBOOK_OUTPUTS"] = tempfile.mkdtemp()
    location = [str(Path(folder) / project) for project in PROJECTS]
    config = CollectConfig(
        source="git", location=location, min_chars=MIN_CHARS, max_chars=MAX_CHARS
    )
    run = Run("commits")
    card = collect(run, config)
    print({name: count for name, count in card.items() if isinstance(count, int)})

    people = find_people(location)
    pseudonym = pseudonymiser(pseudonym_key())
    people["author"] = [pseudonym(author) for author in people["author"]]
    people["person"] = [hidden("p", str(person)) for person in people["person"]]
    people["surname"] = [hidden("s", surname) for surname in people["surname"]]
    query = f"""
        SELECT author, person, surname, time, topic, text
        FROM '{run.folder}/posts.parquet' JOIN people USING (author)
        QUALIFY count(*) OVER (PARTITION BY author) >= {MIN_POSTS}
        ORDER BY author, time, text"""
    options = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 19"
    duckdb.sql(f"COPY ({query}) TO '{TABLE}' ({options})")
    count = "count(*), count(DISTINCT author), count(DISTINCT person)"
    print(TABLE.stat().st_size, duckdb.sql(f"SELECT {count} FROM '{TABLE}'").fetchall())


if __name__ == "__main__":
    main(sys.argv[1])
