"""Logs of IRC: what is read of each layout, what is dropped and why, and which nicks are masked."""

import gzip
from collections import Counter
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from helpers.sources import COLUMNS, irc, irc_lines, open_source
from tests.factories import read_source

DAY = 1_331_078_400  # 2012-03-07, midnight UTC
MORNING = DAY + 10 * 3600 + 15 * 60  # 10:15


def log(folder, text, name="perl/2012/2012-03-07"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(folder, **options):
    rows, drops = read_source("irc", folder, **options)
    return rows.to_numpy().tolist(), drops


def texts(folder, **options):
    return [row[3] for row in read(folder, **options)[0]]


LAYOUTS = {
    "brackets": (
        "2012-03-07",
        "[10:15] <jane> Hello there\n\n[10:16] *** joe joined\n[10:16] * joe waves\n",
        {"event": 1, "action": 1},
    ),
    "mirc": (
        "#perl.20120307.log",
        "Session Start: Wed Mar 07 00:00:00 2012\nSession Ident: #perl\n"
        "[10:15] <@jane> Hello \x0304,01there\x0f\n[10:16] * Joins: joe (~joe@example.org)\n"
        "[10:16] * joe is now known as joe|away\n[10:16] * joe waves at all\n",
        {"event": 3, "action": 1, "unread_line": 1},
    ),
    "irssi": (
        "#perl.log",
        "--- Log opened Tue Mar 06 23:00:00 2012\n"
        "23:59 -!- joe [~joe@example.org] has joined #perl\n"
        "--- Day changed Wed Mar 07 2012\n10:15 < jane> Hello there\n10:16  * joe waves\n",
        {"event": 3, "action": 1},
    ),
    "weechat": (
        "irc.freenode.#perl.weechatlog",
        "2012-03-07 10:15:00\t@jane\tHello there\n"
        "2012-03-07 10:16:00\t-->\tjoe (~joe@example.org) has joined #perl\n"
        "2012-03-07 10:16:00\t--\tMode #perl [+v joe] by jane\n"
        "2012-03-07 10:16:30\t *\tjoe waves\n",
        {"event": 2, "action": 1},
    ),
    "znc": (
        "#perl_20120307.log",
        "[10:15:00] <jane> Hello there\n[10:16:00] *** Joins: joe (~joe@example.org)\n"
        "[10:16:01] * joe waves\n[10:16:02] -joe- a notice\n",
        {"event": 2, "action": 1},
    ),
    "eggdrop": (
        "perl.log.07Mar2012",
        "[00:00] --- Wed Mar  7 2012\n[10:15] <jane> Hello there\n"
        "[10:16] joe (~joe@example.org) joined #perl.\n[10:16] Action: joe waves\n",
        {"event": 2, "action": 1},
    ),
    "iso": (
        "#perl.log",
        "2012-03-07T11:15:00+01:00 <jane> Hello there\n2012-03-07T10:16:00  *** joe has joined\n",
        {"event": 1},
    ),
    "xchat": (
        "#perl.log",
        "**** BEGIN LOGGING AT Mon Mar  5 10:15:00 2012\nMar 07 10:15:00 <jane>\tHello there\n"
        "Mar 07 10:16:00 *\tjoe (~joe@example.org) has joined #perl\n",
        {"event": 2},
    ),
    "half days": ("#perl.2012-03-07.log", "[10:15 AM] <jane> Hello there\n", {}),
    "page": (
        "perl/20120307.html",
        "<title>logs</title>\n<ol>\n"
        ' <li id="l-1"><a href="#l-1">#</a> Session Start: Wed Mar 07 00:00:00 2012</li>\n'
        ' <li _a="jane"><a href="#l-2">#</a> [10:15] &lt;jane&gt; Hello <b>there</b></li>\n'
        ' <li><a href="#l-3">#</a> [10:16] * Quits: joe (~joe@example.org) (&quot;x&quot;)</li>\n'
        "</ol>\n",
        {"event": 2},
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_tells_nick_time_channel_and_text(tmp_path, layout):
    name, text, expected_drops = LAYOUTS[layout]
    log(tmp_path / "perl", text, name)
    rows, drops = read(tmp_path)
    assert rows == [["jane", MORNING, "perl", "Hello there"]]
    assert drops == expected_drops


def test_lines_of_one_nick_are_one_post(tmp_path):
    text = (
        "[10:15] <jane> one\n[10:15] <jane_> two\n[10:16] *** joe joined\n[10:18] <Jane> three\n"
        "[10:19] <joe> four\n[10:19] <jane> five\n[10:59] <jane> six\n"
    )
    log(tmp_path, text)
    rows, drops = read(tmp_path)
    assert [row[3] for row in rows] == ["one\ntwo\nthree", "four", "five", "six"]
    assert rows[0][:3] == ["jane", MORNING, "perl"]
    assert drops == {"event": 1, "note_joined_line": 2}
    assert len(texts(tmp_path, join_seconds=0)) == 5
    assert len(texts(tmp_path, join_seconds=3600)) == 3


def test_every_line_is_a_post_or_joined_or_counted(tmp_path):
    lines = [
        "[10:15] <jane> one",
        "[10:15] <jane> two",
        "",
        "   ",
        "[10:16] *** joe left",
        "[10:16] * joe waves",
        "[10:17] <joe>",
        "[10:17] <evalbot_12> 3",
        "[10:17] <Guest7120> hello",
        "[10:18] <joe> !seen jane",
        "[10:18] <joe> /msg nickserv identify secret",
        "[10:18] <joe> s/teh/the/",
        "[10:18] <joe> evalbot: 1 + 2",
        "[10:18] <joe> ScribeNick: jane",
        "[10:19] <joe> > as they say",
        "[10:19] <joe> [10:15] <jane> one",
        "[10:19] <joe> jane> one",
        "[10:19] <joe> 10:15 -!- jack [~j@example.org] has quit",
        "[10:19] <joe> jane, rakudo-moar 577a04ae4: OUTPUT: «3␤»",
        "[10:20] <joe> my $x = f(3);",
        "[10:20] <joe> panda install ./path",
        "[25:61] <joe> never",
        "no time",
        "[10:21] <joe> \u202e\x00\x02",
        "[10:22] <joe> " + "x" * 20_000,
        "[10:23] <joe> done now",
    ]
    log(tmp_path, "\n".join(lines))
    rows, drops = read(tmp_path)
    assert [row[3] for row in rows] == ["one\ntwo", "done now"]
    assert drops == {
        "note_joined_line": 1,
        "event": 1,
        "action": 1,
        "empty": 2,
        "bot": 1,
        "guest": 1,
        "command": 5,
        "quote": 5,
        "code": 2,
        "bad_time": 1,
        "unread_line": 1,
        "long_line": 1,
    }
    assert len(rows) + sum(drops.values()) == len([line for line in lines if line.strip()])


def test_raw_keeps_what_is_removed(tmp_path):
    log(tmp_path, "[10:15] <joe> jane: /me <jane> f(x);\n[10:30] <jane> !seen joe\n")
    assert texts(tmp_path, raw=True) == ["jane: /me <jane> f(x);", "!seen joe"]


def test_nicks_are_masked(tmp_path):
    text = (
        "[10:15] <jane_42> hi\n[10:16] <joe> JANE_42: ask felix, or jane_42's friend [felix]\n"
        "[10:17] <felix_> joe, see http://felix.example.org and felix.py, as felix wrote\n"
        "[10:18] <mo> joe: mo: it is no mo\n[10:19] <jane_42> joe++ @joe joey\n"
    )
    log(tmp_path, text)
    assert texts(tmp_path)[1:] == [
        "@user: ask @user, or @user's friend @user",
        "@user, see @url and @self.py, as @self wrote",
        "@user: @user: it is no mo",
        "@user++ @joe joey",
    ]


def test_a_nick_that_is_misspelt_is_masked_where_it_is_spoken_to(tmp_path, monkeypatch):
    monkeypatch.setattr(irc, "MIN_WORDS_TO_TELL", 20)
    often = "".join(f"[10:0{number}] <jane> note: this one stays\n" for number in range(8))
    words = ["Unfortunately", "TL;DR", "src/foo.c", "simon_sibling", "simon_sibl"]
    lines = [f"[10:{number}] <jane> {word}: it does\n" for number, word in enumerate(words, 10)]
    event = "[09:00] *** simon_sibling joined\n"
    log(tmp_path, f"{event}{often}{''.join(lines)}[10:25] <jane> ask simon_sibl\n")
    got = texts(tmp_path, join_seconds=0)
    assert got[0] == "note: this one stays"
    assert got[-6:-3] == [f"{word}: it does" for word in words[:3]]
    assert got[-3:] == ["@user: it does", "@user: it does", "ask simon_sibl"]
    monkeypatch.setattr(irc, "MIN_WORDS_TO_TELL", 10**6)
    irc._survey.cache_clear()
    assert texts(tmp_path, join_seconds=0)[-2] == "simon_sibl: it does", "too few words tell"


def test_nicks_of_other_channels_and_years_are_masked(tmp_path):
    log(tmp_path, "[10:15] <felix> hi\n", "ruby/2011/2011-03-07")
    log(tmp_path, "[10:15] <jane> felix said so\n")
    names = [part.name for part in open_source("irc", str(tmp_path))]
    assert names == ["perl/2012", "ruby/2011"]
    assert texts(tmp_path) == ["@user said so", "hi"]


def test_a_last_name_is_masked_with_a_first_name_that_is_a_nick(tmp_path):
    log(tmp_path, "[10:15] <robin> hi\n[10:16] <jane> much like Robin Williams\n")
    assert texts(tmp_path)[1] == "much like @user"


def test_a_nick_is_masked_without_its_number(tmp_path):
    log(tmp_path, "[10:15] <felix42> hi\n[10:16] <jane> Felix said so\n")
    assert texts(tmp_path)[1] == "@user said so"


@pytest.mark.parametrize(
    "event",
    [
        "*** felix joined",
        "*** Joins: felix (~m@example.org)",
        "* felix waves",
        "* Quits: felix (~m@example.org) (bye)",
        "-!- felix [~m@example.org] has joined #perl",
        "*** felix_ is now known as felix|away",
    ],
)
def test_nicks_that_never_speak_are_masked(tmp_path, event):
    log(tmp_path, f"[10:15] {event}\n[10:16] <jane> felix may know\n")
    assert texts(tmp_path) == ["@user may know"]


def test_a_nick_that_is_a_common_word_is_masked_only_where_it_is_spoken_to(tmp_path):
    uses = "".join(f"[11:{minute}] <joe> a module is fine\n" for minute in range(10, 59)) * 2
    log(tmp_path, f"[10:15] <module> hi\n{uses}[12:15] <jane> module: what is a module\n")
    assert texts(tmp_path)[-1] == "@user: what is a module"


def test_a_first_word_that_bots_answer_is_a_command(tmp_path):
    asked = "[10:15] <jane> m: say 1\n[10:15] <camelia> 1\n[10:16] <jane> well: no\n"
    log(tmp_path, asked * 3 + "[10:17] <joe> m: say 2\n[10:17] <joe> joe: hm\n")
    rows, drops = read(tmp_path)
    assert drops["command"] == 4 and drops["bot"] == 3
    assert rows[-1][3] == "@user: hm"


def test_more_bots_can_be_named(tmp_path):
    log(tmp_path, "[10:15] <Aloha> no clue\n[10:16] <jane> aloha: seen joe\n[10:17] <jane> hm\n")
    assert read(tmp_path, bots=["aloha"]) == (
        [["jane", MORNING + 120, "perl", "hm"]],
        {"bot": 1, "command": 1},
    )


@pytest.mark.parametrize(
    "nick", "ChanServ evalbot_r14481 dalek svnbot6 tellable6 discord-raku-bot buubot_backup".split()
)
def test_programs(nick):
    assert irc.is_program(nick)


@pytest.mark.parametrize(
    "nick", "jane talbot abbot Cabot2 robotics bottle [Coke] jenkinson".split()
)
def test_people(nick):
    assert not irc.is_program(nick)


@pytest.mark.parametrize(
    ("nick", "exact", "marks", "status"),
    [
        ("jane_", "jane_", "jane", "jane"),
        ("jane`_", "jane`_", "jane", "jane"),
        ("jane|away", "jane|away", "jane|away", "jane"),
        ("jane_afk_", "jane_afk_", "jane_afk", "jane"),
        ("jane[work]", "jane[work]", "jane[work]", "jane"),
        ("[Coke]", "[Coke]", "[Coke]", "[Coke]"),
        ("___", "___", "___", "___"),
        ("jane_42", "jane_42", "jane_42", "jane_42"),
    ],
)
def test_nicks_of_one_person(nick, exact, marks, status):
    forms = [irc.same_nick(nick, nick_forms) for nick_forms in irc.NICK_FORMS]
    assert forms == [exact, marks, status]


@pytest.mark.parametrize(
    ("path", "channel"),
    [
        ("logs/perl6/2012/2012-03-07", "perl6"),
        ("logs/#perl6/2012-03-07.log.gz", "perl6"),
        ("logs/freenode_##c++_20120307.log", "c++"),
        ("logs/irc.freenode.#Perl.weechatlog", "perl"),
        ("logs/perl/irc.log", "perl"),
        ("logs/chan.log.20120307", "chan"),
        ("perl/2012/03/07.log", "perl"),
    ],
)
def test_channels_of_paths(path, channel):
    assert irc.channel_name(Path(path)) == channel


def test_the_channel_can_be_named(tmp_path):
    log(tmp_path, "[10:15] <jane> hi\n")
    assert read(tmp_path, channel="all")[0][0][2] == "all"


def test_dates_of_paths():
    dates = {
        "a/2012/03/07.log": "2012-03-07",
        "2012/2012-03-08": "2012-03-08",
        "c.07Mar2012": "2012-03-07",
        "c.20121345.log": "None",
        "c.log": "None",
    }
    assert {path: str(irc_lines.date_in_path(Path(path))) for path in dates} == dates


def test_times_are_in_the_zone(tmp_path):
    log(tmp_path, "[10:15] <jane> winter\n")
    log(tmp_path, "[10:15] <jane> summer\n", "perl/2012/2012-07-07")
    berlin = ZoneInfo("Europe/Berlin")
    expected = [datetime(2012, month, 7, 10, 15, tzinfo=berlin).timestamp() for month in (3, 7)]
    assert [row[1] for row in read(tmp_path, zone="Europe/Berlin")[0]] == expected


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("0001-01-01 10:15:00 <jane> hi", "bad_time"),
        ("9999-12-31 23:59:59 <jane> hi", "bad_time"),
        ("2012-02-31 10:15:00 <jane> hi", "bad_time"),
        ("2012-03-07T10:15:00+99:99 <jane> hi", "bad_time"),
        ("10:15 <jane> hi", "no_date"),
    ],
)
def test_forged_times(tmp_path, line, reason):
    log(tmp_path, f"{line}\n2012-03-07 10:15:00 <joe> hi\n", "perl.log")
    rows, drops = read(tmp_path)
    assert len(rows) == 1 and drops == {reason: 1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"zone": "Mars/Base"}, "no time zone 'Mars/Base'"),
        ({"zone": "../../etc/passwd"}, "no time zone"),
        ({"join_seconds": -1}, "join_seconds is -1"),
        ({"nick_forms": "all"}, "valid: exact, marks, status"),
    ],
)
def test_options_are_checked(tmp_path, options, message):
    log(tmp_path, "[10:15] <jane> hi\n")
    with pytest.raises(ValueError, match=message):
        open_source("irc", str(tmp_path), **options)


@pytest.mark.parametrize("content", [b"", b"root:x:0:0\n", b"\0\0\0", b"\x1f\x8b\x08"])
def test_a_file_that_is_no_log_is_named(tmp_path, content):
    path = log(tmp_path, content, "passwd.log")
    with pytest.raises(ValueError, match="passwd.log"):
        open_source("irc", str(path))


def test_damaged_files_of_a_folder_are_counted(tmp_path):
    log(tmp_path, b"", "perl/2012-03-01.log")
    log(tmp_path, b"\0\0\xff\xfe\n" * 3, "perl/2012-03-02.log")
    log(tmp_path, b"[10:15] <jane> " + b"x" * 10_000_000, "perl/2012-03-03.log")
    packed = gzip.compress(b"".join(b"[10:15] <u%d> line %d\n" % (n, n) for n in range(9000)))
    log(tmp_path, packed[: len(packed) // 2], "perl/2012-03-04.log.gz")
    log(
        tmp_path,
        "[10:15] <jane> caf\xe9\r\n[10:15] <joe> \u202ebidi\r\n".encode("cp1252", "ignore"),
    )
    (tmp_path / "perl" / "2012-03-05.log").mkdir()
    rows, drops = read(tmp_path)
    assert [row[3] for row in rows[-2:]] == ["caf\xe9", "bidi"]
    assert {name: drops[name] for name in ("unread_line", "long_line", "truncated_file")} == {
        "unread_line": 3,
        "long_line": 1,
        "truncated_file": 1,
    }
    assert drops["note_cp1252"] == 4


def test_a_part_is_read_again_where_a_file_changed(tmp_path):
    path = log(tmp_path, "[10:15] <jane> hi\n")
    (part,) = open_source("irc", str(tmp_path))
    assert open_source("irc", str(tmp_path))[0].stamp == part.stamp
    path.write_text("[10:15] <jane> hi\n[10:15] <jane> ho\n")
    (changed,) = open_source("irc", str(tmp_path))
    assert changed.name == part.name == "perl/2012" and changed.stamp != part.stamp
    (frame,) = changed.read(Counter())
    assert list(frame) == COLUMNS
