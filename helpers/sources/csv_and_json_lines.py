"""Rows of text files that people made, CSV and JSON lines: long, broken, cut, in two encodings.

Files may be packed, and far larger than memory. Of a damaged or cut file everything before the
damage is read.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path

import msgspec

from ..core.files import counted_damage, open_text

# a longer line is read in pieces, which are broken rows
MAX_LINE_BYTES = 1 << 26
JSON_LINES = re.compile(r"\.(?:jsonl?|ndjson)(?:\.(?:gz|bz2|xz|zst))?$")  # "RC_2012-03.json.zst"
# a broken row of more lines is an error: a quote that is never closed swallowed them
MAX_ROW_LINES = 1000
# A row is noted if lines in it, more than half of them, would be rows by themselves, and have so
# many delimiters together (in a file of four columns, three lines): a quote that was left open may
# have swallowed them. Lines of prose seldom have just as many commas as a row: of 2,451 mails none
# is noted, of 86,113 commit messages, which hold lists and code, 2, in a file of two columns 49.
MIN_SWALLOWED_DELIMITERS = 8
# a first line that ends with a carriage return alone, as all lines of the file then do
RETURN_ENDS_LINE = re.compile(rb"[^\r\n]*\r(?!\n)")
DELIMITERS = ",;\t|"  # letters that may part the values of a row
# a first line that names the delimiter, as Excel reads and writes it
DELIMITER_LINE = re.compile(r'"?sep=([^\w\s"]|\t)"?\s*', re.IGNORECASE)
BROKEN = ["broken row"]  # in place of a row
FIRST_LINES = 9  # of which one is the header; those before it may be blank
QUOTED = re.compile(r'"[^"]*"')
# all backslashes of a value that ``mysql --batch`` has written, and what they stand for
ESCAPED_VALUE = re.compile(r"(?:[^\\]|\\[ntr0\\])*+")
ESCAPE = re.compile(r"\\(.)")
ESCAPED = {"n": "\n", "t": "\t", "r": "\n", "0": "", "\\": "\\"}
QUOTED_VALUE = re.compile(r'"(?:[^"]|"")*+"')
csv.field_size_limit(MAX_LINE_BYTES)


def csv_rows(path: Path, drops: Counter) -> Iterator[list[str]]:
    """Yield the rows of a CSV file, its header first; blank lines are skipped.

    The delimiter is the one of DELIMITERS that the header has most of, or the one that a first line
    such as ``sep=;`` names.

    In a file with tabs, a line with as many tabs as the header is a row as it stands where its
    quotes are none of CSV, since ``mysql --batch`` never quotes a value. It writes line ends and
    tabs within values with a backslash; they are read as what they stand for.

    A carriage return alone ends a row only where the first line of the file ends with one.
    Elsewhere it is a blank of its value, which pandas and other writers leave without quotes.

    Drops counted: broken_row (a row with more or fewer values than the header, and each line that
    an open quote swallowed), truncated_file. Noted: note_rows_in_quotes, a row that seems to hold
    others, see MIN_SWALLOWED_DELIMITERS; note_cp1252, a row with bytes that are not UTF-8, which
    are read as cp1252.

    Parameters
    ----------
    path : Path
        path of the file, which :func:`helpers.core.files.open_text` unpacks
    drops : Counter
        number of drops of this file by reason, increased in place

    Raises
    ------
    ValueError
        A quote is not closed up to the end of the file, or in MAX_ROW_LINES.
    """
    with open_text(path) as file:
        lines = _csv_lines(file, drops)
        head = list(islice(lines, FIRST_LINES))
        delimiter = _take_delimiter(head)
        lines = chain(head, lines)
        if delimiter == "\t":
            lines = _with_quotes_of_csv(lines)
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        n_columns = 0  # of the header, which is not read yet
        while True:
            first_line = reader.line_num + 1
            row = _next_row(reader, n_columns, drops)
            if row is None:
                return
            if not row:
                continue
            holds_rows = row is BROKEN or _holds_rows(row, n_columns, delimiter)
            if row is BROKEN or n_columns not in (0, len(row)):
                drops["broken_row"] += reader.line_num + 1 - first_line if holds_rows else 1
                continue
            if holds_rows:
                drops["note_rows_in_quotes"] += 1
            n_columns = len(row)
            row = _without_surrogates(row, drops)
            if delimiter == "\t":
                row = list(map(_without_escapes, row))
            yield row


def _csv_lines(file, drops):
    """Yield the lines of a file with a line feed as their only line end; count damage."""
    with counted_damage(drops):
        if not RETURN_ENDS_LINE.match(file.buffer.peek(1)):
            file.reconfigure(newline="\n")
        while line := file.readline(MAX_LINE_BYTES):
            yield line.rstrip("\r\n").replace("\r", " ") + "\n"


def _take_delimiter(lines):
    """Return the delimiter that the first line with text tells; make a line that names it blank."""
    header = next(filter(str.strip, lines), "")
    named = DELIMITER_LINE.fullmatch(header)
    if named:
        lines[lines.index(header)] = "\n"
        return named[1]
    return max(DELIMITERS, key=QUOTED.sub("", header).count)


def _with_quotes_of_csv(lines):
    """Yield the lines of a file with tabs, changed so that CSV reads all quotes of texts as text.

    Lines that are one row of CSV together stay. Others are rows by themselves if each has as many
    tabs as the header: their quotes are the text's.
    """
    n_tabs = 0  # of the header, which is not read yet
    for group in _groups_with_even_quotes(lines):
        n_tabs = n_tabs or QUOTED.sub("", group[0]).count("\t")
        are_rows = '"' in group[0] and all(line.count("\t") == n_tabs for line in group)
        if are_rows and not _is_one_row(group, n_tabs + 1):
            group = map(_quote_values, group)
        yield from group


def _groups_with_even_quotes(lines):
    """Yield lists of lines, each with an even number of quotes, as whole rows of CSV have it."""
    group = []
    n_quotes = 0
    for line in lines:
        group.append(line)
        n_quotes += line.count('"')
        if n_quotes % 2 == 0 or len(group) == MAX_ROW_LINES:
            yield group
            group = []
            n_quotes = 0
    if group:
        yield group


def _is_one_row(lines, n_columns):
    """Return whether lines with tabs are one row of CSV, and nothing else."""
    reader = csv.reader(lines, delimiter="\t", strict=True)
    try:
        return len(next(reader)) == n_columns and reader.line_num == len(lines)
    except csv.Error:
        return False


def _quote_values(line):
    """Return a line with tabs in which each value that begins with a quote is quoted as in CSV."""
    values = line.removesuffix("\n").split("\t")
    for i, value in enumerate(values):
        if value.startswith('"') and not QUOTED_VALUE.fullmatch(value):
            values[i] = '"' + value.replace('"', '""') + '"'
    return "\t".join(values) + "\n"


def _next_row(reader, n_columns, drops):
    """Return the next row, BROKEN where a quote in it is wrong, None at the end of the file."""
    first_line = reader.line_num + 1
    try:
        return next(reader, None)
    except csv.Error as error:
        is_end = "end of data" in str(error)
    if is_end and drops["truncated_file"]:
        return None
    if is_end or n_columns == 0 or reader.line_num - first_line >= MAX_ROW_LINES:
        raise ValueError(f"the row that begins in line {first_line} has a quote that is not closed")
    return BROKEN


def _holds_rows(row, n_columns, delimiter):
    """Return whether most of the lines within a row are rows, too."""
    lines = [line for value in row for line in value.split("\n")[1:-1]]
    n_rows = sum(line.count(delimiter) == n_columns - 1 for line in lines)
    return n_rows * (n_columns - 1) >= MIN_SWALLOWED_DELIMITERS and 2 * n_rows > len(lines)


def _without_surrogates(row, drops):
    """Return the values of a row; bytes that are not UTF-8 are read as cp1252."""
    try:
        "".join(row).encode()
    except UnicodeEncodeError:
        drops["note_cp1252"] += 1
        return [value.encode("utf-8", "surrogateescape").decode("utf-8", "cp1252") for value in row]
    return row


def _without_escapes(value):
    """Return a value with what escapes stand for, if all its backslashes are those of escapes."""
    if "\\" not in value or not ESCAPED_VALUE.fullmatch(value):
        return value
    return ESCAPE.sub(_escaped, value)


def _escaped(escape):
    """Return what an escape stands for."""
    return ESCAPED[escape[1]]


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
        path of the file, which :func:`helpers.core.files.open_text` unpacks
    kind : type
        a :class:`msgspec.Struct` of the fields to read and their strict types, or dict
    drops : Counter
        number of drops by reason, increased in place
    misfit : str
        reason under which a line of another kind is counted

    Raises
    ------
    OSError
        The file cannot be read at all.
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
    """Yield the lines of a file as bytes, up to its end or damage; a long one in pieces."""
    with open_text(path) as file, counted_damage(drops):
        if file.encoding == "utf-8-sig":
            yield from iter(partial(file.buffer.readline, MAX_LINE_BYTES), b"")
        else:
            yield from (line.encode() for line in file)


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
