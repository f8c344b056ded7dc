"""MUD, the Reddit posts of Khan et al. 2021 as their authors released them: already tokenised, one author a line.

What is assumed, after the code that wrote and reads the files (noa/naacl2021): each line is a JSON object with
``author_id`` and five lists of one length, one element a post, in the order in which the posts were made:

===========  ========================================================================================
syms         the post's subwords: ids of a SentencePiece model, or the pieces themselves
hour         0 to 23
minute       0 to 59
day          0 to 6, Monday is 0: a weekday, so the date of a post is not known
action_type  the number of the subreddit; the posts table's topic is that number as text
===========  ========================================================================================

Hour and day were taken in the time zone of the machine that wrote the files, which is not recorded; they count as UTC.
``author_id`` counts the authors of one archive: two that do not belong together must not be read in one run.
"""

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

import sentencepiece

from helpers.cleaning.text import normalise_unicode
from helpers.core import paths
from helpers.sources import Part, file_parts, source_files
from helpers.sources.json_lines import JSON_LINES, json_records
from helpers.sources.timestamps import EARLIEST, LATEST

DAY, WEEK = 86_400, 7 * 86_400
LISTS = ["syms", "day", "hour", "minute", "action_type"]
DAYS = ("weekday", "count")


def parts(
    location: str | list[str],
    *,
    pieces: str = "",
    epoch: str = "2015-07-01",
    day: str = "weekday",
    raw: bool = False,
) -> list[Part]:
    """One part per file.

    location: a file, a folder (searched recursively for ``.json``, ``.jsonl``, ``.ndjson``, plain or compressed), or
        a list of these. Unpack the released ``.tar.gz`` first.
    pieces: the SentencePiece model whose ids ``syms`` holds, to decode them; not needed where they are pieces.
    epoch: ISO date of the first day, UTC; that of MUD is 2015-07-01.
    day: "weekday": each post lies at the first moment, not before the author's previous post, that has its weekday,
        hour and minute. Order, weekday, hour and minute are right; a silence is shortened by whole weeks, so dates of
        different authors cannot be compared, and a split by time says nothing.
        "count": ``day`` counts the days since ``epoch``, for files whose dates were kept.
    raw: accepted for all sources; subwords have no markup of their own to remove.
    Drops counted: truncated_file, broken_json and bad_record (an author each: no ``author_id``, a list is missing or
    of another length, an id the model lacks); bad_time and empty (a post each: no author, topic or text). Noted:
    note_cp1252, lines with bytes that are no UTF-8.
    Raises ValueError where a location or the model is missing, ``epoch`` is no date of 1979 to 2100, ``day`` is
    neither, two files have the same name, or ids are read without a model.
    """
    if day not in DAYS:
        raise ValueError(f"mud: day must be one of {', '.join(DAYS)}, not {day!r}")
    begin = -1
    with suppress(ValueError):
        begin = int(datetime.strptime(epoch, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
    if not EARLIEST <= begin <= LATEST:
        raise ValueError(f"mud: epoch must be a date such as 2015-07-01, not {epoch!r}")
    model = _model(paths.resolve(pieces)) if pieces else None
    named = source_files("mud", location, lambda path: JSON_LINES.search(path.name))
    return file_parts(named, partial(_rows, model=model, begin=begin, weekday=day == "weekday"))


def _rows(path, drops, model, begin, weekday):
    """The posts of one file. model: a SentencePieceProcessor or None. begin: midnight of the first day, [s, UTC]."""
    for record in json_records(path, drops):
        if not _is_readable(record, model):
            yield "bad_record"
            continue
        times, author = (
            _times(record, begin, weekday),
            normalise_unicode(str(record["author_id"])).strip(),
        )
        for post, when, topic in zip(record["syms"], times, record["action_type"], strict=True):
            topic, text = (
                normalise_unicode(each).strip() for each in (str(topic), _text(post, model))
            )
            if when is None:
                yield "bad_time"
            else:
                yield (author, when, topic, text) if author and topic and text else "empty"


def _is_readable(record, model):
    """Whether a record can be read. Raises ValueError where it holds ids and there is no model."""
    if not isinstance(record, dict) or type(record.get("author_id")) not in (int, str):
        return False
    lists = [record.get(name) for name in LISTS]
    if not all(isinstance(each, list) and len(each) == len(lists[0]) for each in lists):
        return False
    for post in record["syms"]:
        kinds = (
            {str}
            if isinstance(post, str)
            else set(map(type, post))
            if isinstance(post, list)
            else {None}
        )
        if kinds == {int}:
            if model is None:
                raise ValueError(
                    "mud: syms are the ids of a SentencePiece model; name the model's file as `pieces`"
                )
            if not (0 <= min(post) and max(post) < model.get_piece_size()):
                return False
        elif not kinds <= {str}:
            return False
    return all(type(topic) in (int, str) for topic in record["action_type"])


def _text(post, model):
    if post and isinstance(post[0], int):
        return model.decode(post)
    return "".join(post).replace("\u2581", " ")  # the mark that stands for a blank in pieces


def _times(record, begin, weekday):
    """Seconds since 1970 UTC of each post, None where a number is out of range."""
    start = (begin // DAY + 3) % 7  # 1970-01-01 was a Thursday
    previous = begin
    for day, hour, minute in zip(record["day"], record["hour"], record["minute"], strict=True):
        clock = (
            all(type(number) is int for number in (day, hour, minute))
            and 0 <= hour < 24
            and 0 <= minute < 60
        )
        if not clock or not 0 <= day < (7 if weekday else LATEST // DAY):
            yield None
            continue
        when = begin + day * DAY + hour * 3600 + minute * 60
        if weekday:
            when = previous + (when - start * DAY - previous) % WEEK
            previous = when
        yield when if when <= LATEST else None


def _model(path):
    if not path.is_file():
        raise ValueError(f"mud: the SentencePiece model {path} is missing")
    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError) as error:
        raise ValueError(f"mud: {path} is no SentencePiece model: {error}") from None
