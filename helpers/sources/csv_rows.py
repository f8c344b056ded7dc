"""Rows of CSV files that people made: of any length, with stray quotes, cut, in two encodings."""

import csv
import re
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path

from ..core.files import open_text
from .json_lines import MAX_LINE_BYTES

# a broken row of more lines is an error: a quote that is never closed swallowed them
MAX_ROW_LINES = 1000
# A row is noted if lines in it, more than half of them, would be rows by themselves, and have so
# many delimiters together (in a file of four columns, three lines): a quote that was left open may
# have swallowed them. Lines of prose seldom have just as many commas as a row: of 2,451 mails none
# is noted, of 86,113 commit messages, which hold lists and code, 2, in a file of two columns 49.
MIN_SWALLOWED_DELIMITERS = 8
# stands for a carriage return within a value, at which csv.reader would end the row; a text that is
# decoded with "surrogateescape" never holds it
BARE_RETURN = "\udc0d"
DELIMITERS = ",;\t|"  # letters that may part the values of a row
# a first line that names the delimiter, as Excel reads and writes it
DELIMITER_LINE = re.compile(r'"?sep=([^\w\s"]|\t)"?\s*', re.IGNORECASE)
# lines that psql draws below the header and at the end of what it prints: "---+---", "(2 rows)"
PSQL_LINE = re.compile(r"-+(?:\+-+)*|\(\d+ rows?\)")
QUOTED = re.compile(r'"[^"]*"')
csv.field_size_limit(MAX_LINE_BYTES)


def csv_rows(
    path: Path, delimiter: str, drops: Counter, first_lines: dict[str, int] | None = None
) -> Iterator[list[str]]:
    """Yield the rows of a CSV file, its header first; blank lines and psql's rules are skipped.

    The delimiter is the one of DELIMITERS that the header has most of, or the one that a first line
    such as ``sep=;`` names.

    Of a row with a stray quote only the first line is dropped: the lines that the open quote
    swallowed are read again.

    A carriage return alone ends a row only where the first line of the file ends with one.
    Elsewhere it is a letter of its value, which pandas and other writers leave without quotes.

    Drops counted: broken_row (a row with a stray quote, or with more or fewer values than the
    header), truncated_file. Noted: note_rows_in_quotes, a row that seems to hold others, see
    MIN_SWALLOWED_DELIMITERS; note_cp1252, a row with bytes that are not UTF-8, which are read as
    cp1252.

    Parameters
    ----------
    path : Path
        path of the file, which :func:`helpers.core.files.read_pieces` unpacks
    delimiter : str
        the letter between two values where the header does not decide
    drops : Counter
        number of drops by reason, increased in place
    first_lines : dict, optional
        takes the number of the line in which the first broken_row begins, and the first
        note_rows_in_quotes

    Raises
    ------
    ValueError
        A quote is not closed and the lines that it swallowed cannot be read again, or a row is too
        long.
    """
    with open_text(path) as file:
        lines = _CsvLines(file, drops)
        lines.delimiter = lines.find_delimiter(delimiter)
        reader = csv.reader(lines, delimiter=lines.delimiter, strict=True)
        n_columns = 0
        while True:
            lines.begin_row()
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error:
                row = None
                if lines.row_lines[-1] is None:  # damaged within a quote: counted already
                    return
            if row == [] or _is_of_psql(row, lines.delimiter):
                continue
            fault = _fault(row, lines, n_columns)
            if fault:
                drops[fault] += 1
                if first_lines is not None:
                    first_lines.setdefault(fault, lines.row_number)
            if fault == "broken_row":
                if row is None or lines.hold_rows(n_columns):
                    lines.read_again()
            else:
                row = _restored(row, drops)
                if not n_columns:  # the header, which psql fills up with blanks
                    row = [name.strip() for name in row]
                n_columns = len(row)
                yield row


def _is_of_psql(row, delimiter):
    """Return whether a row is a line that psql adds to a table whose values bars part."""
    if delimiter != "|" or row is None or len(row) != 1:
        return False
    return PSQL_LINE.fullmatch(row[0].strip()) is not None


def _fault(row, lines, n_columns):
    """Return the reason to drop or note a row, "" where there is none.

    ``row`` is None where it cannot be parsed; ``n_columns`` is 0 for the header.
    """
    if row is None or n_columns not in (0, len(row)):
        n_lines = len(lines.row_lines)
        if not n_columns or not lines.row_lines[-1] or n_lines > MAX_ROW_LINES:
            raise ValueError(
                f"the row that begins in line {lines.row_number} has a quote that is not closed"
            )
        return "broken_row"
    if lines.hold_rows(len(row)):
        return "note_rows_in_quotes"
    return ""


class _CsvLines:
    """Iterate over the lines of a CSV file; the lines of a broken row can be read again.

    The end of the file and damage to it end the iteration.
    """

    def __init__(self, file, drops):
        self.file = file
        self.delimiter = ""
        self.drops = drops
        self.pending = deque()  # lines that are to be read again
        self.row_lines = []  # lines of the row being read; "" is the file's end, None damage
        self.row_chars = 0
        self.row_number = 1  # number, in the file, of the row's first line
        self.return_ends_line = None  # whether it does without a line feed, by the first line

    def __iter__(self):
        return self

    def __next__(self):
        line = self.pending.popleft() if self.pending else self.read_line()
        self.row_lines.append(line)
        if not line:
            raise StopIteration
        self.row_chars += len(line)
        if self.row_chars > MAX_LINE_BYTES:
            raise ValueError(
                f"the row that begins in line {self.row_number} is over {MAX_LINE_BYTES:,} "
                "characters; an open quote?"
            )
        return line

    def find_delimiter(self, usual):
        """Return the delimiter that the first lines of the file tell, else the usual one.

        The header stays to be read; blank lines and one that names the delimiter do not.
        """
        line = self.read_line()
        while line and not line.strip("\r\n"):
            self.row_number += 1
            line = self.read_line()
        named = DELIMITER_LINE.fullmatch(line or "")
        if named:
            self.row_number += 1
            return named[1]
        self.pending.append(line)
        header = QUOTED.sub("", line or "")
        return max(usual + DELIMITERS, key=header.count)

    def read_line(self):
        """Return the next line, "" at the end of the file, None where it is damaged (counted).

        A carriage return within the line is BARE_RETURN.
        """
        try:
            line = self.file.readline(MAX_LINE_BYTES + 1)
            if self.return_ends_line is None:
                self.return_ends_line = line.endswith("\r")
            if self.return_ends_line or not line.endswith("\r"):
                return line
            return self.continue_line(line)
        except EOFError:
            self.drops["truncated_file"] += 1
            return None

    def continue_line(self, piece):
        """Return a line whose first piece ends with a carriage return, to its line feed."""
        pieces = [piece]
        n_chars = len(piece)
        while piece.endswith("\r") and n_chars <= MAX_LINE_BYTES:
            piece = self.file.readline(MAX_LINE_BYTES + 1)
            pieces.append(piece)
            n_chars += len(piece)
        line = "".join(pieces)
        value_end = len(line.rstrip("\r\n"))
        return line[:value_end].replace("\r", BARE_RETURN) + line[value_end:]

    def begin_row(self):
        """Count the lines of the last row as read, and begin a new row."""
        self.row_number += len(self.row_lines)
        self.row_lines = []
        self.row_chars = 0

    def read_again(self):
        """Count only the first line of the row as read; the lines after it are read again."""
        self.pending.extendleft(reversed(self.row_lines[1:]))
        del self.row_lines[1:]

    def hold_rows(self, n_columns):
        """Return whether most lines between the first and the last of the row are rows, too."""
        inner_lines = self.row_lines[1:-1]
        n_rows = 0
        for line in inner_lines:
            values = next(csv.reader([line], delimiter=self.delimiter), [])
            if len(values) == n_columns:
                n_rows += 1
        enough = n_rows * (n_columns - 1) >= MIN_SWALLOWED_DELIMITERS
        return enough and 2 * n_rows > len(inner_lines)


def _restored(row, drops):
    """Return the values of a row with the letters that surrogates stand for.

    These are carriage returns, and bytes that are not UTF-8, which are read as cp1252.
    """
    if _is_utf8(row):
        return row
    row = [value.replace(BARE_RETURN, "\r") for value in row]
    if _is_utf8(row):
        return row
    drops["note_cp1252"] += 1
    return [value.encode("utf-8", "surrogateescape").decode("utf-8", "cp1252") for value in row]


def _is_utf8(row):
    """Return whether no value of a row holds a surrogate."""
    try:
        "".join(row).encode()
    except UnicodeEncodeError:
        return False
    return True
