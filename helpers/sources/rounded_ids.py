"""Find ids in a column of authors that were rounded, so that different people look alike.

A float holds whole numbers up to 2**53 and rounds longer ones, a spreadsheet keeps 15 digits.
"""

import re

import pandas as pd

# A number that was rounded: a float beyond 2 ** 53, or as spreadsheets show long numbers (1.2E+17).
# The value may be one of several that "/" joins.
ROUNDED = r"(?:^|/)-?(?:\d(?:[.,]\d+)?[eE]\+\d+|\d{17,}\.0+)(?:/|$)"
FLOAT_BITS = 53  # whole numbers of so many bits are exact as floats
MAX_ROUNDED_SHARE = 0.01  # of a file's rows; with more rounded authors it is refused
# Spreadsheets keep 15 digits of a number and programs that know only floats about 17, so the last
# digit of a long id is 0 then. Of true ids a tenth ends in 0, so this says nothing of a few.
LONG_ID = re.compile(r"\d{16,19}")
MIN_LONG_IDS = 3
MAX_ZERO_SHARE = 0.9
# What became of a float is a multiple of the distance of two floats, half of them an odd one. True
# ids are so by chance in one of 2**40 files; those of chats that count what is written in a
# millisecond are even multiples, as long as little is written.
MIN_CHANCE_BITS = 40
MIN_ODD_SHARE = 0.2
REMEDY = (
    "so different people look alike. Export the ids as text, or take another column; a spreadsheet "
    "keeps them if the column has the format Text before they are read into it"
)


class RoundedIds:
    """Look for rounded numbers in a file's column of authors, whose rows come in batches.

    Parameters
    ----------
    file_columns : list of str
        names of the column, or of several that are joined
    """

    def __init__(self, file_columns: list[str]):
        self.column = ", ".join(map(repr, file_columns))
        self.rows = 0
        self.rounded_rows = 0
        self.rounded = ""  # one of the rounded numbers
        self.long_ids = set()

    def are_rounded(self, authors: pd.Series) -> pd.Series:
        """Return for each author of a batch (N,) whether it is a rounded number, and count them."""
        is_rounded = authors.str.contains(ROUNDED, na=False)
        self.rows += len(authors)
        self.rounded_rows += int(is_rounded.sum())
        for author in authors[is_rounded].head(1):
            self.rounded = author
        self.long_ids.update(filter(LONG_ID.fullmatch, authors.dropna().unique()))
        return is_rounded

    def check(self) -> None:
        """Raise ValueError where many authors of the file are rounded numbers."""
        if self.rounded_rows > MAX_ROUNDED_SHARE * self.rows:
            raise ValueError(
                f"the column {self.column} holds rounded numbers, such as {self.rounded!r}, in "
                f"{self.rounded_rows:,} of {self.rows:,} rows, {REMEDY}"
            )
        if len(self.long_ids) < MIN_LONG_IDS:
            return
        ending_in_zero = [name for name in self.long_ids if name.endswith("0")]
        if len(ending_in_zero) >= MAX_ZERO_SHARE * len(self.long_ids):
            raise ValueError(
                f"the column {self.column} holds ids that seem rounded, such as "
                f"{min(ending_in_zero)!r}: {len(ending_in_zero):,} of {len(self.long_ids):,} long "
                f"ones end in 0, {REMEDY}"
            )
        if were_floats([int(name) for name in self.long_ids]):
            raise ValueError(
                f"the column {self.column} holds ids that seem rounded, such as "
                f"{min(self.long_ids)!r}: a decimal number of a computer could hold every one of "
                f"{len(self.long_ids):,} long ones, {REMEDY}"
            )


def were_floats(ids: list[int]) -> bool:
    """Return whether ids, whole numbers, seem to have been 64-bit floats, which rounded them."""
    spacings = [2 ** max(number.bit_length() - FLOAT_BITS, 0) for number in ids]
    if any(number % spacing for number, spacing in zip(ids, spacings, strict=True)):
        return False
    chance_bits = sum(spacing.bit_length() - 1 for spacing in spacings)
    odd = sum(number // spacing % 2 for number, spacing in zip(ids, spacings, strict=True))
    return chance_bits >= MIN_CHANCE_BITS and odd >= MIN_ODD_SHARE * len(ids)
