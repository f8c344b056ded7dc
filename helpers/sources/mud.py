"""MUD, the Reddit posts of Khan et al. 2021, in the tokenised form in which they were released.

One line holds one author. The layout is inferred from the code that wrote and reads the files
(noa/naacl2021): each line is a JSON object with ``author_id`` and five lists of equal length, with
one element per post, in the order in which the posts were made:

===========  =====================================================================================
syms         the post's subwords: a list of ids of a SentencePiece model or of pieces, or a text
hour         0 to 23
minute       0 to 59
day          0 to 6, Monday is 0: a weekday, so the date of a post is not known
action_type  the number of the subreddit; the posts table's topic is that number as text
===========  =====================================================================================

Hour and day were taken in the time zone of the machine that wrote the files, which is not recorded;
here they count as UTC. ``author_id`` numbers the authors of one archive, so archives that do not
belong together must not be read in one run: their numbers would be mixed up.

The splits of IUR (Andrews and Bishop 2019) come in the same layout, in two files: 16 posts of each
account to look for it, and 16 later ones to find it by. With the option ``in_order`` the posts of
the second file are dated after those of the first.

A post is dated to the first moment at or after the author's previous post that has its weekday,
hour and minute. So order, weekday, hour and minute are right, but gaps between posts are shortened
by whole weeks: dates of different authors cannot be compared, and a split by time is meaningless.
"""

from functools import partial

import msgspec
import sentencepiece

from ..cleaning.text import normalise_unicode
from ..core import paths
from . import Part, file_parts, source_files
from .csv_and_json_lines import JSON_LINES, json_records
from .table_columns import LATEST, unix_seconds

DAY_SECONDS = 86_400
FILE_WEEKS = 1000  # between the dates of two files; khan2021's accounts have 1,000 posts at most
WORD_START = "\u2581"  # stands for a blank in SentencePiece's pieces


class Account(msgspec.Struct):
    """An author and the lists of what is known of each post."""

    author_id: int | str
    syms: list[str | list[int | str]]
    day: list
    hour: list
    minute: list
    action_type: list[int | str]

    def __post_init__(self):
        """Raise ValueError, which makes the record a misfit, where the lists differ in length."""
        lists = [self.syms, self.day, self.hour, self.minute, self.action_type]
        if len(set(map(len, lists))) > 1:
            raise ValueError("the lists differ in length")


def parts(
    location: str | list[str],
    *,
    pieces: str = "",
    epoch: str = "2015-07-01",
    in_order: list[str] | None = None,
) -> list[Part]:
    """Return one part per file.

    Drops of whole authors: truncated_file, broken_json, bad_record (no ``author_id``, a list is
    missing or of another length, or an id that the model lacks). Drops of single posts: bad_time,
    empty (no author, topic or text). Noted: note_cp1252, lines with bytes that are not UTF-8.

    Parameters
    ----------
    location : str or list of str
        a file or a folder (searched recursively for ``.json``, ``.jsonl``, ``.ndjson``, plain or
        compressed). Unpack the released ``.tar.gz`` first.
    pieces : str
        path of the SentencePiece model that decodes the ids in ``syms``; not needed where ``syms``
        holds pieces
    epoch : str
        ISO date (UTC) from which posts are dated; MUD: 2015-07-01. A time of day is ignored
    in_order : list of str
        names of all files, the earliest first: posts of each file are dated FILE_WEEKS after those
        of the file before, so that a record of up to that many posts ends before it

    Raises
    ------
    ValueError
        A location or the model is missing, ``epoch`` is no date between 1979 and 2100, two files
        have the same name, ``in_order`` does not name each file once, or, while a part is read,
        ``syms`` holds ids and there is no model.
    """
    first_day = unix_seconds(epoch) // DAY_SECONDS
    if first_day < 0:
        raise ValueError(f"mud: epoch must be a date such as 2015-07-01, not {epoch!r}")
    model = _load_model(paths.resolve(pieces)) if pieces else None
    files = source_files("mud", location, JSON_LINES.search)
    names = sorted(path.name for path in files.values())
    first_days = dict.fromkeys(names, first_day)
    if in_order is not None:
        if sorted(in_order) != names:
            raise ValueError(
                f"mud: in_order must name each file once; the files are {', '.join(names)}"
            )
        for place, name in enumerate(in_order):
            first_days[name] += 7 * FILE_WEEKS * place
    return file_parts(files, partial(_rows, model=model, first_days=first_days))


def _rows(path, drops, model, first_days):
    """Yield the posts of one file, and the reasons of drops.

    ``first_days`` holds for each file's name its first day, in days since 1970-01-01.
    """
    first_day = first_days[path.name]
    for account in json_records(path, Account, drops, "bad_record"):
        if not all(_are_subwords(subwords, model) for subwords in account.syms):
            yield "bad_record"
            continue
        author = str(account.author_id).strip()
        texts = [_text(subwords, model) for subwords in account.syms]
        times = _times(account, first_day)
        for time, topic, text in zip(times, account.action_type, texts, strict=True):
            yield author, time, normalise_unicode(str(topic)).strip(), text


def _are_subwords(subwords, model):
    """Return whether a post is text, a list of pieces, or a list of ids that the model knows.

    Raises ValueError where it is a list of ids and there is no model.
    """
    types = {type(subword) for subword in subwords}
    if types != {int}:
        return types <= {str}
    if model is None:
        raise ValueError(
            "mud: syms are the ids of a SentencePiece model; name the model's file as `pieces`"
        )
    return 0 <= min(subwords) and max(subwords) < model.get_piece_size()


def _text(subwords, model):
    """Return the text of a post's subwords: ids, pieces, or a text of pieces."""
    if subwords and isinstance(subwords[0], int):
        text = model.decode(subwords)
    else:
        text = "".join(subwords).replace(WORD_START, " ")
    return normalise_unicode(text).strip()


def _times(account, first_day):
    """Yield each post's time in seconds since 1970 UTC, or -1 where a number is out of range."""
    monday = first_day - (first_day + 3) % 7  # 1970-01-01 was a Thursday
    previous = first_day * DAY_SECONDS
    for day, hour, minute in zip(account.day, account.hour, account.minute, strict=True):
        if not (_is_below(7, day) and _is_below(24, hour) and _is_below(60, minute)):
            yield -1
            continue
        in_first_week = (monday + day) * DAY_SECONDS + hour * 3600 + minute * 60
        previous += (in_first_week - previous) % (7 * DAY_SECONDS)
        yield previous if previous <= LATEST else -1


def _is_below(limit, number):
    """Return whether a value is an integer from 0 to below the limit."""
    return type(number) is int and 0 <= number < limit


def _load_model(path):
    """Return the SentencePiece model in a file."""
    if not path.is_file():
        raise ValueError(f"mud: the SentencePiece model {path} is missing")
    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError) as error:
        raise ValueError(f"mud: {path} is no SentencePiece model: {error}") from None
