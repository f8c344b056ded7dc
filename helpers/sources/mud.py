"""MUD, the Reddit posts of Khan et al. 2021 as their authors released them: tokenised.

One line holds one author. What is assumed, after the code that wrote and reads the files
(noa/naacl2021): each line is a JSON object with ``author_id`` and five lists of one length, one
element a post, in the order in which the posts were made:

===========  =====================================================================================
syms         the post's subwords: ids of a SentencePiece model, or the pieces themselves
hour         0 to 23
minute       0 to 59
day          0 to 6, Monday is 0: a weekday, so the date of a post is not known
action_type  the number of the subreddit; the posts table's topic is that number as text
===========  =====================================================================================

Hour and day were taken in the time zone of the machine that wrote the files, which is not recorded;
they count as UTC. ``author_id`` counts the authors of one archive: two that do not belong together
must not be read in one run.

Each post lies at the first moment, not before the author's previous post, that has its weekday,
hour and minute. Order, weekday, hour and minute are right; a silence is shortened by whole weeks,
so dates of different authors cannot be compared, and a split by time says nothing.
"""

from functools import partial

import pyarrow as pa
import sentencepiece

from helpers.cleaning.text import normalise_unicode
from helpers.core import paths
from helpers.sources import Part, file_parts, source_files
from helpers.sources.json_lines import JSON_LINES, json_records
from helpers.sources.timestamps import LATEST, unix_seconds

DAY_SECONDS = 86_400
LISTS = ("syms", "day", "hour", "minute", "action_type")
WORD_START = "\u2581"  # the mark that stands for a blank in pieces


def parts(
    location: str | list[str],
    *,
    pieces: str = "",
    epoch: str = "2015-07-01",
    raw: bool = False,
) -> list[Part]:
    """Return one part per file.

    Drops counted: truncated_file, broken_json and bad_record (an author each: no ``author_id``, a
    list is missing or of another length, an id the model lacks); bad_time and empty (a post each:
    no author, topic or text). Noted: note_cp1252, lines with bytes that are no UTF-8.

    Parameters
    ----------
    location : str or list of str
        a file or a folder (searched recursively for ``.json``, ``.jsonl``, ``.ndjson``, plain or
        compressed). Unpack the released ``.tar.gz`` first.
    pieces : str
        the SentencePiece model whose ids ``syms`` holds, to decode them; not needed where they are
        pieces
    epoch : str
        ISO date of the first day, UTC; that of MUD is 2015-07-01. A time of day is left out.
    raw : bool
        accepted for all sources; subwords have no markup of their own to remove

    Raises
    ------
    ValueError
        A location or the model is missing, ``epoch`` is no date of 1979 to 2100, two files have the
        same name, or ids are read without a model.
    """
    first_day = int(unix_seconds(pa.array([epoch]))[0]) // DAY_SECONDS
    if first_day < 0:
        raise ValueError(f"mud: epoch must be a date such as 2015-07-01, not {epoch!r}")
    model = _load_model(paths.resolve(pieces)) if pieces else None
    files = source_files("mud", location, lambda path: JSON_LINES.search(path.name))
    return file_parts(files, partial(_rows, model=model, first_day=first_day))


def _rows(path, drops, model, first_day):
    """Yield the posts of one file. first_day : days since 1970-01-01."""
    for record in json_records(path, drops):
        if not _is_readable(record, model):
            yield "bad_record"
            continue
        author = normalise_unicode(str(record["author_id"])).strip()
        texts = [_text(subwords, model) for subwords in record["syms"]]
        times = _times(record, first_day)
        for time, topic, text in zip(times, record["action_type"], texts, strict=True):
            if time is None:
                yield "bad_time"
            else:
                yield author, time, normalise_unicode(str(topic)).strip(), text


def _is_readable(record, model):
    """Return whether a record can be read.

    Raises ValueError where it holds ids and there is no model.
    """
    if not isinstance(record, dict) or type(record.get("author_id")) not in (int, str):
        return False
    lists = [record.get(name) for name in LISTS]
    if not all(isinstance(values, list) and len(values) == len(lists[0]) for values in lists):
        return False
    if not all(_are_subwords(subwords, model) for subwords in record["syms"]):
        return False
    return all(type(topic) in (int, str) for topic in record["action_type"])


def _are_subwords(subwords, model):
    """Return whether a post is text, a list of pieces, or a list of ids that the model knows."""
    if isinstance(subwords, str):
        return True
    if not isinstance(subwords, list):
        return False
    types = {type(subword) for subword in subwords}
    if types != {int}:
        return types <= {str}
    if model is None:
        raise ValueError(
            "mud: syms are the ids of a SentencePiece model; name the model's file as `pieces`"
        )
    return 0 <= min(subwords) and max(subwords) < model.get_piece_size()


def _text(subwords, model):
    if subwords and isinstance(subwords[0], int):
        text = model.decode(subwords)
    else:
        text = "".join(subwords).replace(WORD_START, " ")
    return normalise_unicode(text).strip()


def _times(record, first_day):
    """Yield the seconds since 1970 UTC of each post, None where a number is out of range."""
    monday = first_day - (first_day + 3) % 7  # 1970-01-01 was a Thursday
    previous = first_day * DAY_SECONDS
    for day, hour, minute in zip(record["day"], record["hour"], record["minute"], strict=True):
        if not (_is_below(7, day) and _is_below(24, hour) and _is_below(60, minute)):
            yield None
            continue
        in_first_week = (monday + day) * DAY_SECONDS + hour * 3600 + minute * 60
        previous += (in_first_week - previous) % (7 * DAY_SECONDS)
        yield previous if previous <= LATEST else None


def _is_below(limit, number):
    return type(number) is int and 0 <= number < limit


def _load_model(path):
    if not path.is_file():
        raise ValueError(f"mud: the SentencePiece model {path} is missing")
    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError) as error:
        raise ValueError(f"mud: {path} is no SentencePiece model: {error}") from None
