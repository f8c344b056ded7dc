"""Rows of text files that people made, CSV and JSON lines: long, broken, cut, in two encodings.

Files may be packed, and far larger than memory. Of a damaged or cut file everything before the
damage is read.
"""

import csv
import json
import re
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from ..core.files import open_text

# a longer line of JSON is skipped and counted as broken_json, a longer row of CSV is an error
MAX_LINE_BYTES = 1 << 26
JSON_LINES = re.compile(r"\.(?:jsonl?|ndjson)(?:\.(?:gz|bz2|xz|zst))?$")  # "RC_2012-03.json.zst"
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
# a first line that ends with a carriage return alone, as all lines of the file then do
RETURN_ENDS_LINE = re.compile(rb"[^\r\n]*\r(?!\n)")
DELIMITERS = ",;\t|"  # letters that may part the values of a row
# a first line that names the delimiter, as Excel reads and writes it
DELIMITER_LINE = re.compile(r'"?sep=([^\w\s"]|\t)"?\s*', re.IGNORECASE)
# lines that psql draws below the header and at the end of what it prints: "---+---", "(2 rows)"
PSQL_LINE = re.compile(r"\s*(?:-+(?:\+-+)*|\(\d+ rows?\))\s*")
QUOTED = re.compile(r'"[^"]*"')
csv.field_size_limit(MAX_LINE_BYTES)


def csv_rows(
    path: Path, drops: Counter, first_lines: dict[str, int] | None = None
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
    if first_lines is None:
        first_lines = {}
    with open_text(path) as file:
        lines = _CsvLines(file, drops)
        delimiter = lines.find_delimiter()
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        n_columns = 0  # of the header, which is not read yet
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
            if row == [] or delimiter == "|" and PSQL_LINE.fullmatch("".join(lines.row_lines)):
                continue
            holds_rows = _hold_rows(lines.row_lines[1:-1], n_columns, delimiter)
            if row is None or n_columns not in (0, len(row)):
                lines.check_quotes_end(n_columns)
                drops["broken_row"] += 1
                first_lines.setdefault("broken_row", lines.row_number)
                if row is None or holds_rows:
                    lines.read_again()
                continue
            if holds_rows:
                drops["note_rows_in_quotes"] += 1
                first_lines.setdefault("note_rows_in_quotes", lines.row_number)
            row = _restored(row, drops)
            if not n_columns:  # psql fills up the names of columns with blanks
                row = [name.strip() for name in row]
            n_columns = len(row)
            yield row


class _CsvLines:
    """Iterate over the lines of a CSV file; the lines of a broken row can be read again.

    The end of the file and damage to it end the iteration.
    """

    def __init__(self, file, drops):
        self.file = file
        self.drops = drops
        self.pending = deque()  # lines that are to be read again
        self.row_lines = []  # lines of the row being read; "" is the file's end, None damage
        self.row_chars = 0
        self.row_number = 1  # number, in the file, of the row's first line

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

    def read_line(self):
        """Return the next line, "" at the end of the file, None where it is damaged (counted).

        A carriage return within the line is BARE_RETURN.
        """
        try:
            line = self.file.readline(MAX_LINE_BYTES + 1)
        except EOFError:
            self.drops["truncated_file"] += 1
            return None
        values = line.rstrip("\r\n")
        return values.replace("\r", BARE_RETURN) + line[len(values) :]

    def find_delimiter(self):
        """Return the delimiter that the first lines of the file tell, a comma where none does.

        The header stays to be read; blank lines and one that names the delimiter do not.
        """
        with suppress(EOFError):  # the first line will tell
            if not RETURN_ENDS_LINE.match(self.file.buffer.peek()):
                self.file.reconfigure(newline="\n")
        for line in self:
            named = DELIMITER_LINE.fullmatch(line)
            if named:
                return named[1]
            if line.strip("\r\n"):
                break
        self.pending.append(self.row_lines.pop())
        header = QUOTED.sub("", self.pending[0] or "")
        return max(DELIMITERS, key=header.count)

    def begin_row(self):
        """Count the lines of the last row as read, and begin a new row."""
        self.row_number += len(self.row_lines)
        self.row_lines = []
        self.row_chars = 0

    def read_again(self):
        """Count only the first line of the row as read; the lines after it are read again."""
        self.pending.extendleft(reversed(self.row_lines[1:]))
        del self.row_lines[1:]

    def check_quotes_end(self, n_columns):
        """Raise ValueError where a broken row reaches too far: n_columns is 0 for the header."""
        if not n_columns or not self.row_lines[-1] or len(self.row_lines) > MAX_ROW_LINES:
            raise ValueError(
                f"the row that begins in line {self.row_number} has a quote that is not closed"
            )


def _hold_rows(lines, n_columns, delimiter):
    """Return whether most of the lines within a row are rows, too."""
    rows = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    n_rows = sum(len(values) == n_columns for values in rows)
    return n_rows * (n_columns - 1) >= MIN_SWALLOWED_DELIMITERS and 2 * n_rows > len(lines)


def _restored(row, drops):
    """Return the values of a row with the letters that surrogates stand for.

    These are carriage returns, and bytes that are not UTF-8, which are read as cp1252.
    """
    row = [value.replace(BARE_RETURN, "\r") for value in row]
    try:
        "".join(row).encode()
    except UnicodeEncodeError:
        drops["note_cp1252"] += 1
        return [value.encode("utf-8", "surrogateescape").decode("utf-8", "cp1252") for value in row]
    return row


def json_records(
    path: Path, kind: type, drops: Counter, misfit: str = "broken_json"
) -> Iterator[object]:
    """Yield the JSON object of each line of a file; blank lines are skipped.

    Drops counted: ``misfit``, a line that is JSON of another kind; broken_json, a line that is no
    JSON or longer than MAX_LINE_BYTES; truncated_file, where the file is damaged or cut (the lines
    before the damage are yielded) or its last line is no JSON and has no newline. Noted:
    note_cp1252, a line with bytes that are not UTF-8; they are read as cp1252.

    Parameters
    ----------
    path : Path
        path of the file, which :func:`helpers.core.files.read_pieces` unpacks
    kind : type
        a :class:`msgspec.Struct` of the fields to read and their strict types, or dict
    drops : Counter
        number of drops by reason, increased in place
    misfit : str
        reason under which a line of another kind is counted

    Raises
    ------
    ValueError
        The file unpacks to far more than its size.
    """
    decoder = msgspec.json.Decoder(kind)
    for line in _lines(path, drops):
        if not line.strip():
            continue
        try:
            record = _record(line, decoder, drops)
        except msgspec.ValidationError:
            drops[misfit] += 1
        except (ValueError, RecursionError):
            if line.endswith(b"\n"):
                drops["broken_json"] += 1
            else:
                drops["truncated_file"] += 1
        else:
            yield record


def _lines(path, drops):
    """Yield the lines of a file up to its end or damage; count damage and lines that are too long.

    Memory does not grow with the file.
    """
    is_cut = False
    is_too_long = False
    with open_text(path) as file:
        try:
            while piece := file.buffer.readline(MAX_LINE_BYTES):
                is_end = piece.endswith(b"\n")
                is_too_long = is_too_long or (not is_end and len(piece) == MAX_LINE_BYTES)
                if not is_too_long:
                    yield piece
                elif is_end:
                    drops["broken_json"] += 1
                    is_too_long = False
        except EOFError:
            is_cut = True
    if is_cut or is_too_long:
        drops["truncated_file"] += 1


def _record(line, decoder, drops):
    """Return the value of one line, of the decoder's type.

    Python's parser reads what the decoder refuses: NaN, lone surrogates, bytes that are not UTF-8.
    """
    try:
        return decoder.decode(line)
    except (ValueError, RecursionError):
        pass
    try:
        value = json.loads(line)
    except UnicodeDecodeError:
        value = json.loads(line.decode("utf-8-sig", "cp1252"))
        drops["note_cp1252"] += 1
    return msgspec.convert(value, decoder.type)
