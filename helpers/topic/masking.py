"""Topic taken out of the text itself, before the tokenizer: what ARR is compared with (sawatphol2022).

Text distortion (Stamatatos 2017): words outside the k most frequent ones are masked, their length or place is left.
A word is a run of letters and digits, with apostrophes inside; case does not matter to whether it is frequent.
"""

import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from helpers.cleaning.text import PLACEHOLDERS
from helpers.core.artifacts import atomic_write
from helpers.core.progress import progress_bar

# a placeholder of cleaning is one word that stands for any content: group 1, never masked and never counted
WORD = re.compile(rf"({'|'.join(PLACEHOLDERS)})(?!\w)|[^\W_]+(?:['’][^\W_]+)*")
MARKS = {
    "multiple": ((re.compile(r"\d"), "#"), (re.compile(r"[^\W\d_]"), "*")),
    "single": ((re.compile(r"\d+"), "#"), (re.compile(r"[^\W\d_]+"), "*")),
}


def frequent_words(texts: Iterable[str], k: int) -> frozenset[str]:
    """The k most frequent words of training texts, lower-cased; of equally frequent ones the first by the alphabet.

    Fewer where the texts hold fewer. Raises ValueError for a negative k.
    """
    if k < 0:
        raise ValueError(f"k {k}: must be at least 0")
    counts = Counter(
        match[0].lower() for text in texts for match in WORD.finditer(text) if not match[1]
    )
    return frozenset(heapq.nsmallest(k, counts, key=lambda word: (-counts[word], word)))


def mask_text(text: str, keep: frozenset[str], kind: str = "multiple") -> str:
    """Mask every word that is not in ``keep``; punctuation, spaces and placeholders stay.

    kind: "multiple" (DV-MA), each letter becomes ``*`` and each digit ``#``; "single" (DV-SA), each run of them. Raises
    ValueError for another kind.
    """
    if kind not in MARKS:
        raise ValueError(f"kind {kind!r}: one of {', '.join(MARKS)}")

    def masked(match: re.Match) -> str:
        word = match[0]
        if match[1] or word.lower() in keep:
            return word
        for pattern, mark in MARKS[kind]:
            word = pattern.sub(mark, word)
        return word

    return WORD.sub(masked, text)


def mask_posts(
    posts_path: str | Path, out_path: str | Path, change: Callable[[str], str]
) -> dict[str, int]:
    """Write a posts table with every text changed, whole or not at all: same columns, rows, order and row groups.

    change: text -> text, such as ``partial(mask, keep=words)``. Only one row group is in memory. Returns the numbers of
    ``posts`` and of those ``changed``. Raises ValueError where the table has no column ``text``.
    """
    with pq.ParquetFile(posts_path) as table:
        schema, changed = table.schema_arrow, 0
        if "text" not in schema.names:
            raise ValueError(f"{posts_path} has no column text: {', '.join(schema.names)}")
        column = schema.get_field_index("text")
        field = schema.field(column)
        with (
            atomic_write(out_path) as partial,
            pq.ParquetWriter(partial, schema, compression="zstd") as writer,
        ):
            for group in progress_bar(range(table.num_row_groups), desc="masking", unit="group"):
                rows = table.read_row_group(group)
                before = rows["text"].to_pylist()
                after = [change(text) for text in before]
                changed += sum(old != new for old, new in zip(before, after))
                writer.write_table(
                    rows.set_column(column, field, pa.array(after, field.type)), max(len(rows), 1)
                )
        return {"posts": table.metadata.num_rows, "changed": changed}
