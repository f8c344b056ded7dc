"""Make ``speeches.parquet``, the table of the run ``cortes``, from a table of ParlaMint-ES.

    python params/cortes/make_table.py TABLE

TABLE is a Parquet file with one row for each paragraph of a speech: author, time, topic (heading of
the debate) and text, as ``NOTICE`` describes it. Authors get pseudonyms under a key that is made
here and not kept. Headings name people ("PREGUNTAS - DEL DIPUTADO DON ..."), so only the kind of
debate that stands before the first dash is kept as the topic.
"""

import os
import re
import secrets
import sys
from pathlib import Path

import duckdb
import pandas as pd

from helpers.cleaning.authors import pseudonym_key, pseudonymiser

MIN_POSTS = 16  # paragraphs of a speaker
MAX_POSTS = 96  # of a speaker with more, this many are kept, evenly spaced in time
MAX_CHARS = 600  # about 128 subwords; longer paragraphs are cut at the end of a word
MIN_OF_A_KIND = 400  # paragraphs; rarer kinds of debate are joined as OTHER
OTHER = "Otros"
TABLE = Path(__file__).with_name("speeches.parquet")


def kind_of_debate(heading: str) -> str:
    """Return what precedes the first " - " of a heading: "Preguntas". "" where it is a date."""
    kind = heading.strip(" -").split(" - ")[0].strip(" :.")
    if re.fullmatch(r"[\d-]*", kind):
        return ""
    return kind.capitalize()


def shortened(text: str) -> str:
    """Cut a text at the last word that ends within MAX_CHARS characters."""
    if len(text) <= MAX_CHARS:
        return text
    return text[: MAX_CHARS + 1].rsplit(maxsplit=1)[0]


def main(path: str) -> None:
    """Choose paragraphs, shorten them, and write the table."""
    os.environ["AUTHORBOOK_PSEUDONYM_KEY"] = secrets.token_hex(32)
    speeches = pd.read_parquet(path)
    speeches = speeches.sort_values(["author", "time"], ignore_index=True)
    grouped = speeches.groupby("author")
    position = grouped.cumcount()
    count = grouped["text"].transform("size")
    kept = count.clip(upper=MAX_POSTS)
    is_chosen = (position + 1) * kept // count > position * kept // count
    chosen = speeches[is_chosen & (count >= MIN_POSTS)].copy()

    pseudonym = pseudonymiser(pseudonym_key())
    chosen["author"] = [pseudonym(author) for author in chosen["author"]]
    chosen["topic"] = [kind_of_debate(heading) for heading in chosen["topic"]]
    size = chosen.groupby("topic")["text"].transform("size")
    chosen.loc[(size < MIN_OF_A_KIND) | (chosen["topic"] == ""), "topic"] = OTHER
    chosen["text"] = [shortened(text) for text in chosen["text"]]
    query = "SELECT author, time AS day, topic, text FROM chosen ORDER BY author, time, text"
    options = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 19"
    duckdb.sql(f"COPY ({query}) TO '{TABLE}' ({options})")
    print(TABLE.stat().st_size, "bytes,", len(chosen), "paragraphs,", chosen["author"].nunique())
    print(chosen["topic"].value_counts().to_string())


if __name__ == "__main__":
    main(sys.argv[1])
