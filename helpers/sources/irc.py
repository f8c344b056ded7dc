"""Logs of IRC channels: files of a day, or of any time; see :mod:`helpers.sources.irc_lines`.

A line is short, so consecutive lines of one nick are one post. The posts table's topic is the
channel. Many nicks are no names that a reader of the corpus could find, "felix" or "jane_42": they
are masked here, in the texts of all channels that are read together.
"""

import re
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ..cleaning.addresses import mask_addresses
from ..cleaning.code_lines import SENTENCE, is_code, is_program_output
from ..cleaning.text import drop_edge_marks, is_bot, normalise_unicode
from ..cleaning.user_names import (
    mask_first_names,
    mask_user_names,
    maskable_user_names,
    words_of,
)
from ..core.artifacts import file_stats_fingerprint, fingerprint_of
from ..core.files import bare_path, check_readable
from . import Part, existing_paths, list_files, row_part
from .irc_lines import PATH_DATE, date_in_path, read_lines

NICK_FORMS = ("exact", "marks", "status")
OPENING = 586_000_000  # July 1988, before IRC opened, in seconds UTC
LOG_SUFFIXES = (".log", ".weechatlog", ".irclog")
MAX_JOIN_SECONDS = 86_400
MIN_WORDS_TO_TELL = 100_000  # words of all channels, from which on common words are told
COMMON_USES = 5  # of a common word
MAX_WORDS = 1_000_000  # different words that are counted; of more, those that occur once go
# names of files that name no channel: "irc.log", "log.txt"
NO_CHANNEL = set("irc ircd log logs irclog irclogs chat channel messages msg index txt".split())
# services of networks, loggers, and bots of many channels whose names do not say what they are
PROGRAMS = set(
    "chanserv nickserv memoserv operserv hostserv global logger clog clogger rrsagent zakim dalek "
    "geth camelia yoleaux p6eval purl dipsy hugme nopaste pasteling phenny lisppaste infobot "
    "supybot limnoria sopel eggdrop ubottu travis-ci jenkins openstack openstackgerrit "
    "openstackstatus ilogger github gitlab".split()
)
# "svnbot6", "evalbot_r14481", "tellable6"; not Talbot
BOT_NICK = re.compile(r"(?!(?:ab|tal|ca)bot\d*$).*bot[\d_]*$|.*bot[-_]|.*able6$", re.I)
# nicks that networks and web clients give to anybody: "Guest72620", "mib_77hwi1"
GUEST = re.compile(
    r"(?:guest|user|nick|anon|anonymous|unknown|webchat|qwebirc|androuser)[_-]?\d*$|mib_\w+$", re.I
)
# a nick at the start of a line, to whom it is said: "jane: ", "jane, "
ADDRESSEE = re.compile(r"@?([^\s:,]{1,64})([:,])(?:\s+|$)")
# "nick|away", "nick-afk", "nick[work]": what a person is at
STATUS = re.compile(
    r"(?<=\w)(?:\|.*|\[[^\[\]]*\]|[-_.](?:away|afk|gone|out|off|brb|bbl|busy|work|home|mobile|phone"
    r"|laptop|lunch|dinner|zz+|sleep\w*|at[-_]\w+))$",
    re.I,
)
# "/msg jane hi" with a blank before it, "!seen jane", the correction "s/form/from/", and what is
# said to a bot that takes minutes: "Scribe: jane"
COMMAND = re.compile(
    r"\s*/[a-z]+(?:\s|$)|![a-z]\w*(?:\s|$)|s/[^/]+/[^/]*/?[gi]{0,2}$"
    r"|(?:scribe(?:nick)?|agenda|chair|meeting|regrets|present|topic) ?[+-]?:(?:\s|$)",
    re.I,
)
# the start of a quoted line: "> as it says", "[10:15] <", "10:15 -!- jane has left", what a program
# that evaluates code printed ("rakudo 5cca0b4fc: OUTPUT: «"); not the faces
# >:( and >.<
QUOTE = re.compile(
    r"\s*>(?![:=.(<_])|\s*\[?\d\d:\d\d(?::\d\d)?\]?\s+<|.{0,80}\bOUTPUT: ?«"
    r"|.{0,20}(?:-!-|\*\*\*|<--|-->)\s\S{1,64}\s(?:[(\[]|joined|left|has )"
)
# who is quoted: "<jane> said", "[10:15] <@jane> said", and at the start of a line "jane> said"
SPEAKER = re.compile(r"(?:^|<)[@+%&~ ]?([^\s<>]{1,64})>(?=\s\S)")
# options and paths, which a line that is no sentence holds only where it is typed into a shell
SHELL_WORD = re.compile(r"(?:^|\s)(?:-{1,2}[A-Za-z]|[~.]{0,2}/\w|\|\s)")
# a word of code: "$x", "@list", "{", "f(x);", "Foo::Bar", "->"; no face such as ":-]" or "=)"
CODE_WORD = re.compile(
    r"^[$@%&][\w^.:!*]|^\W?[{}]\W?$|[;{]$|\w\(.*\)|\w::\w|^[=-]+>+$|^[!=<>]?={1,2}$|^\|\|$|\w\[.*\]"
)
MIN_CODE_WORDS = 0.5  # share of the words of a line that is code
MAX_TRIGGER_CHARS = 24
STEM_CHARS = 6  # which a misspelt nick shares with the right one
NICK = re.compile(r"[a-z\[\]\\`^{}|_][\w\[\]\\`^{}|-]*")  # in small letters
MIN_STEM_CHARS = 4  # of a nick without the digits at its end
MIN_ANSWERS = 2  # a first word that bots answer so often, and
MIN_ANSWERED = 0.5  # this share of the time, is a command to them: "n: say 1", ".tell jane"


@dataclass(frozen=True)
class Settings:
    """Options of :func:`parts`, by their names."""

    zone: ZoneInfo
    join_seconds: int
    nick_forms: str
    bots: frozenset
    raw: bool


@dataclass(frozen=True)
class Survey:
    """What all files of a location tell about nicks.

    Attributes
    ----------
    nicks : frozenset
        nicks of all who speak, act, join or leave, as :func:`same_nick` has them, in lower case
    masked : frozenset
        those that are masked anywhere in a text; the others only where a line is said to them
    triggers : frozenset
        first words of lines that bots answer
    programs : frozenset
        nicks of bots, in lower case
    common_words : frozenset
        words that are used COMMON_USES times or more; empty where MIN_WORDS_TO_TELL words or fewer
        cannot tell which are common
    beginnings : frozenset
        the first STEM_CHARS characters of nicks
    """

    nicks: frozenset
    masked: frozenset
    triggers: frozenset
    programs: frozenset
    common_words: frozenset = frozenset()
    beginnings: frozenset = frozenset()


def parts(
    location: str | list[str],
    *,
    channel: str = "",
    zone: str = "UTC",
    join_seconds: int = 180,
    nick_forms: str = "marks",
    bots: list[str] | None = None,
    raw: bool = False,
) -> list[Part]:
    """Return one part per channel and year, or per channel where its files have no date.

    The channel is in the name of a file, beside the date, or else in that of the nearest folder:
    ``perl/2012-03-07.log``, ``#perl.20120307.log``, ``freenode.#perl.weechatlog``. Which nicks are
    masked depends on all files of the location, so a new file makes all parts be read again.

    Drops counted, of lines: event (joins, modes, topics, dates), action ("* jane waves"), bot,
    guest (a nick that a network gives to anybody), command (of a client, or answered by a bot),
    quote, code, empty, no_date, bad_time (no such time, before IRC or in the future), long_line,
    unread_line (no time, or another layout); truncated_file. Noted: note_joined_line, a line that
    was joined to the one before it; note_cp1252, lines with bytes that are not UTF-8.

    Parameters
    ----------
    location : str or list of str
        files or folders (searched recursively for files with a date in their names and for
        ``.log``, ``.weechatlog``, ``.irclog``), plain or packed
    channel : str
        topic of all posts; empty: told by names of files and folders
    zone : str
        time zone of the logs, such as Europe/Berlin
    join_seconds : int
        longest time between two lines of one post; 0: only lines of one second, or of one minute
        where the log has no seconds
    nick_forms : str
        which nicks are one author's, beside those that differ in case: "exact", no others; "marks",
        those that differ in underscores and backticks at their end; "status", also in what follows
        a ``|``, stands in brackets, or is a word such as "-away" at their end
    bots : list of str or None
        nicks of further bots
    raw : bool
        keep quotes, commands, code and nicks in the texts

    Raises
    ------
    ValueError
        A location is missing, or is a file without a line of a log, or an option has a wrong value.
    """
    if not 0 <= join_seconds <= MAX_JOIN_SECONDS:
        raise ValueError(
            f"irc: join_seconds is {join_seconds}: a number from 0 to {MAX_JOIN_SECONDS}"
        )
    if nick_forms not in NICK_FORMS:
        raise ValueError(f"irc: nick_forms is {nick_forms!r}; valid: {', '.join(NICK_FORMS)}")
    settings = Settings(
        zone=_zone(zone),
        join_seconds=join_seconds,
        nick_forms=nick_forms,
        bots=frozenset(map(str.casefold, bots or [])),
        raw=raw,
    )
    files = tuple(_log_files(location, settings.zone))
    groups = defaultdict(list)
    for path in files:
        topic = channel or channel_name(path)
        day = date_in_path(path)
        name = f"{topic}/{day.year}" if day else topic
        groups[topic, name].append((str(day), path))
    stamp = fingerprint_of([(str(path), file_stats_fingerprint(path)) for path in files])
    irc_parts = []
    for (topic, name), dated_files in sorted(groups.items()):
        own_files = [path for _, path in sorted(dated_files)]
        rows = partial(_rows, topic, own_files, files, settings)
        irc_parts.append(row_part(name, rows, stamp))
    return irc_parts


def _zone(name):
    """Return a time zone by its name."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, ZoneInfoNotFoundError):  # a name of none, or of no file
        raise ValueError(
            f"irc: there is no time zone {name!r}; valid: names such as Europe/Berlin"
        ) from None


def _log_files(location, zone):
    """Return the logs of a location, each once; a damaged one in a folder is counted when read."""
    files = {}
    for root in existing_paths("irc", location):
        paths = [root]
        if root.is_dir():
            paths = [path for path in list_files(root) if _is_log(path)]
        else:
            _check_log(root, zone)
        for path in paths:
            files[path.resolve()] = path
    return list(files.values())


def _check_log(path, zone):
    """Check that a file holds a line of a log."""
    check_readable(path)
    for line in read_lines(path, zone, Counter()):
        if line.kind in ("spoken", "action", "event"):
            return
    raise ValueError(
        f"irc: {path} is no log: no line of it begins with a date and a time, or with a time, such "
        "as [10:15] <nick>"
    )


def _is_log(path):
    """Return whether a file of a folder is a log, by its name."""
    if path.name.startswith("."):
        return False
    return bare_path(path).suffix.lower() in LOG_SUFFIXES or date_in_path(path) is not None


def channel_name(path: Path) -> str:
    """Return the channel of a log in lower case, from its name or that of its folder.

    Folders whose names are numbers, such as years, are passed over.
    """
    for name in (bare_path(path).name, *path.parts[-2::-1]):
        name = PATH_DATE.sub("", name).lower()
        name = re.sub(r"\.(?:log|weechatlog|irclog|html?|txt)(?=\.|$)", "", name)
        name = re.sub(r"^[^#]*#+", "", name).strip(" ._-")
        if name and not name.replace("-", "").isdigit() and name not in NO_CHANNEL:
            return normalise_unicode(name)
    return "irc"


def same_nick(nick: str, nick_forms: str = "marks") -> str:
    """Return what the nicks of one person have in common; case is kept.

    Parameters
    ----------
    nick : str
        a nick, or a word of a text
    nick_forms : str
        the option of :func:`parts`
    """
    if nick_forms == "exact":
        return nick
    common = nick.rstrip("_`")
    if nick_forms == "status":
        common = STATUS.sub("", common).rstrip("_`")
    return common or nick


def is_program(nick: str) -> bool:
    """Return whether a nick is a bot's or a service's, as far as its name says so."""
    known_name = nick.rstrip("0123456789_").casefold()
    return is_bot(nick) or known_name in PROGRAMS or BOT_NICK.match(nick) is not None


@lru_cache(maxsize=1)
def _survey(files, settings):
    """Return the :class:`Survey` of files; it is kept, since all parts of a location need it."""
    spoken = Counter()
    words = Counter()
    uses = Counter()
    answers = Counter()
    programs = set(settings.bots)
    last_word = ""
    for path in files:
        for line in read_lines(path, settings.zone, Counter()):
            nick = same_nick(line.nick, settings.nick_forms).casefold()
            spoken[nick] += 0
            if line.kind != "spoken":
                continue
            if _is_program(line.nick, settings):
                programs.add(line.nick.casefold())
                answers[last_word] += 1
                last_word = ""
                continue
            spoken[nick] += 1
            last_word = line.text.partition(" ")[0][:MAX_TRIGGER_CHARS]
            uses[last_word] += 1
            words.update(words_of(line.text))
        if len(words) > MAX_WORDS:
            words = Counter({word: count for word, count in words.items() if count > 1})
    spoken.pop("", None)  # of lines without a nick
    nicks = frozenset(spoken)
    masked = maskable_user_names(_with_stems(spoken), words)
    triggers = {word for word in answers if _is_trigger(word, answers[word], uses[word])}
    # "jane:" is a person where she says more than is said to her, "m:" is not
    addressed = {word for word in triggers if spoken[word[:-1].casefold()] > uses[word]}
    common_words = frozenset()
    if words.total() > MIN_WORDS_TO_TELL:
        common_words = frozenset(word for word, count in words.items() if count >= COMMON_USES)
    commands = frozenset(triggers - addressed)
    beginnings = frozenset(nick[:STEM_CHARS] for nick in nicks if len(nick) >= STEM_CHARS)
    return Survey(nicks, masked, commands, frozenset(programs), common_words, beginnings)


def _with_stems(spoken):
    """Return numbers of lines by nick, also for nicks without their digits: "jane42" is jane."""
    counts = Counter(spoken)
    for nick, lines in spoken.items():
        stem = nick.rstrip("0123456789_-")
        if stem != nick and len(stem) >= MIN_STEM_CHARS:
            counts[stem] += lines
    return counts


def _is_program(nick, settings):
    """Return whether a nick is a bot's, also one that the option ``bots`` names."""
    return is_program(nick) or nick.casefold() in settings.bots


def _is_trigger(word, answers, uses):
    """Return whether a first word is a command, from how often bots answered it."""
    if not word or answers < MIN_ANSWERS or answers < MIN_ANSWERED * uses:
        return False
    return word.endswith((":", ",")) or not word[:1].isalnum()


@dataclass
class _Post:
    """Lines of one nick that may go on."""

    key: str
    nick: str
    time: int
    last_time: int
    texts: list[str] = field(default_factory=list)


def _rows(topic, paths, files, settings, drops):
    """Yield the posts of a channel, and the reasons of drops."""
    survey = _survey(files, settings)
    latest = time.time() + 86_400
    post = None
    for path in paths:
        for line in read_lines(path, settings.zone, drops):
            nick = same_nick(line.nick, settings.nick_forms)
            key = nick.casefold()
            if post and line.kind == "spoken" and not _goes_on(post, key, line, settings):
                yield post.nick, post.time, topic, "\n".join(post.texts)
                post = None
            text, reason = _text_or_reason(line, key, survey, settings, latest)
            if reason:
                yield reason
                continue
            if post:
                drops["note_joined_line"] += 1
            else:
                post = _Post(key, nick, line.time, line.time)
            post.texts.append(text)
            post.last_time = line.time
    if post:
        yield post.nick, post.time, topic, "\n".join(post.texts)


def _goes_on(post, key, line, settings):
    """Return whether a line belongs to the post before it."""
    return post.key == key and 0 <= line.time - post.last_time <= settings.join_seconds


def _text_or_reason(line, key, survey, settings, latest):
    """Return the text of a line and "", or "" and the reason why it is dropped."""
    if line.kind != "spoken":
        return "", line.kind
    if _is_program(line.nick, settings):
        return "", "bot"
    if GUEST.match(line.nick):
        return "", "guest"
    if not OPENING <= line.time <= latest:
        return "", "bad_time"
    text = line.text
    if not settings.raw:
        if _is_command(text, survey, settings):
            return "", "command"
        if _is_quote(text, survey, settings):
            return "", "quote"
        if _is_program_text(text):
            return "", "code"
        text = mask_nicks(text, key, survey, settings.nick_forms)
    text = normalise_unicode(text).strip()
    if not text:
        return "", "empty"
    return text, ""


def _is_command(text, survey, settings):
    """Return whether a line tells a client or a bot what to do."""
    first_word = text.partition(" ")[0]
    if first_word[:MAX_TRIGGER_CHARS] in survey.triggers or COMMAND.match(text):
        return True
    addressee = first_word.rstrip(":,")
    return addressee.casefold() in survey.programs or (
        addressee != first_word and _is_program(addressee, settings)
    )


def _is_program_text(text):
    """Return whether a line is code, a message of a program, or code typed into one line."""
    if is_program_output(text) or SHELL_WORD.search(text) and not SENTENCE.search(text):
        return True
    words = text.split()
    code_words = [word for word in words if CODE_WORD.search(word)]
    return is_code(text) or len(code_words) >= max(2, MIN_CODE_WORDS * len(words))


def _is_quote(text, survey, settings):
    """Return whether a line quotes another text, or what somebody said."""
    if QUOTE.match(text):
        return True
    speakers = [same_nick(name, settings.nick_forms).casefold() for name in SPEAKER.findall(text)]
    return any(speaker in survey.masked for speaker in speakers)


def mask_nicks(text: str, key: str, survey: Survey, nick_forms: str = "marks") -> str:
    """Return a line with ``@user`` for nicks and first names, ``@self`` for the author's nick.

    Addresses are masked too, since a nick may be a part of one.

    Parameters
    ----------
    text : str
        what is spoken
    key : str
        the author's nick, as in :class:`Survey`
    survey : Survey
        nicks of the channel and of those that are read with it
    nick_forms : str
        the option of :func:`parts`
    """
    text = mask_addresses(text)
    addressees = []
    while match := ADDRESSEE.match(text):
        addressee = same_nick(match[1], nick_forms).casefold()
        if not _is_addressee(addressee, match[2], survey):
            break
        addressees.append(f"@user{match[2]} ")
        text = text[match.end() :]
    text = "".join(addressees) + text
    person_of = partial(same_nick, nick_forms=nick_forms)
    # first names first, because what follows one may be a last name
    text = mask_user_names(mask_first_names(text), key, survey.masked, person_of)
    return drop_edge_marks(text)


def _is_addressee(word, mark, survey):
    """Return whether a first word is a nick, or a rare word that begins like one: misspelt."""
    if word in survey.masked:
        return True
    if mark != ":":
        return False
    is_rare = bool(survey.common_words) and word not in survey.common_words
    is_like_nick = NICK.fullmatch(word) is not None and word[:STEM_CHARS] in survey.beginnings
    return word in survey.nicks or (is_rare and is_like_nick)
