"""The cleaning that all sources share."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cleaning import text as cleaning
from helpers.cleaning.text import clean_post, is_bot, is_notice, mask_mentions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://example.org/a?b=1, then", "see @url, then"),
        ("(www.example.org/x)", "(@url)"),
        ("<http://example.org/a_(b)>.", "@url."),
        ("on github.com/owner/name today", "on @url today"),
        ("read [the manual](https://example.org/m) now", "read the manual now"),
        ("write to jane@example.org.", "write to @email."),
        ("jane at example dot org", "@email"),
        ("jane (at) example.org", "@email"),
        ("look at www.example.org, or mail jane at example.org", "look at @url, or mail @email"),
        ("ask @**Jane Doe** or @_**Jane Doe|12** or @jane", "ask @user or @user or @user"),
        ("hi <@123456789012345678>, <@!123456789012345678>", "hi @user, @user"),
        ("&lt;@&amp;123456789012345678&gt; see <#123456789012345678>", "@user see @url"),
        ("<@U012AB3CD>, <@U012AB3CD|jane doe> in <#C012AB3CD|general>", "@user, @user in #general"),
        ("<https://example.org/x|the manual>, <mailto:a@b.org|a@b.org>", "the manual, @email"),
        ("@491701234567 is here, @\u2068+49 170 1234567\u2069 too", "@user is here, @user too"),
        ("[Anna](tg://user?id=12345) or (tg://user?id=12345)", "@user or (@user)"),
        ("call +44 20 7946 0000 or +1 (555) 123-4567 ext. 12.", "call @user or @user."),
        ("(555) 123-4567, 555.123.4567; Tel: 020 7946 0000!", "@user, @user; @user!"),
        ("Fax (555)  123", "@user"),
        ("call +49 89 1234567 or +49 (0)89 1234567-12 now", "call @user or @user now"),
        ("0161 496 0123 / 0161 496 0124", "@user / @user"),
        ("+8 12 15 63 98 14 61 68 70 71", "+8 12 15 63 98 14 61 68 70 71"),
        ("mail uunet!mcvax!jane or {ucbvax,decwrl}!sun!jane.", "mail @email or @email."),
        ("no!no!no, done!thanks, x!=y and vec!(1)", "no!no!no, done!thanks, x!=y and vec!(1)"),
        ("on 2012-03-17, R 2.14.2, 192.168.100.1000", "on 2012-03-17, R 2.14.2, 192.168.100.1000"),
        (
            "0.123 12.345 1e+10 23 45 67, 10+100 200 300",
            "0.123 12.345 1e+10 23 45 67, 10+100 200 300",
        ),
        (
            "in /Users/Jane Doe/x, /Users/jane and so on",
            "in /Users/@user/x, /Users/@user and so on",
        ),
        ("use `f(x)` and ``g``", "use @code and @code"),
        ("before\n```r\nx <- 1\n```\nafter", "before after"),
        ("> quoted\nmine\n  >> deeper", "mine"),
        ("angry >:( but fine", "angry >:( but fine"),
        ("so true RT @jane: what she said\nand more", "so true"),
        (">:( that hurts\n> theirs\n>.< and mine", ">:( that hurts >.< and mine"),
        ("a\u200bb\ufeff \x00c\u00a0d\t\te", "ab c d e"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("", ""),
        (" \n\t ", ""),
    ],
)
def test_clean(text, expected):
    assert clean_post(text) == expected


@pytest.mark.parametrize(
    ("numbers", "is_masked"),
    [
        ("0151 2345678|0151/2345678|0151-2345678|0151 / 2345678|01512345678|(0151) 2345678", True),
        ("0049 151 2345678|00491512345678|0049 (0)151 2345678|(0049) 151 2345678", True),
        ("07700 900123|07700900123|020 7946 0123|(020) 7946 0123|0161 496 0123x12", True),
        ("06 12 34 56 78|06.12.34.56.78|0612345678|03-1234-5678|030 123456-78|0410 123 456", True),
        (
            "01.02.2024 10:00|01-02-2024 10:30|10:05 123 4567|01:15.407127 0151|20240101 123456",
            False,
        ),
        ("00 01 02 03 04 05 06|01 02 03 04 05|01 12 13 14 15 16|02 00 00 00 00", False),
        ("00400000-00401000|00401523 00401170|00000000|0800-1200|0123456789|01234567890", False),
        ("0151234567890|20240102030405|a01512345678|0x01512345678|01512345678_x", False),
        ("0.123456789|0.0712 345678|v0.12.34.56.78|1.012 3456 7890|0.5 0151 2345678", False),
        ("01512345678.png|IMG-0151-2345678|06-21-12-51-59|0142001740|02139-4307", False),
        ("0151 2345678 12|01512345678\n01512345679|612 345 678", False),
    ],
)
def test_numbers_that_begin_with_0_are_masked_where_they_are_of_telephones(numbers, is_masked):
    for number in numbers.split("|"):
        cleaned = "@user" if is_masked else " ".join(number.split())
        assert clean_post(f"call {number}, or (ask)") == f"call {cleaned}, or (ask)"


@pytest.mark.parametrize(
    "text",
    [
        "<Media omitted>",
        "This message was deleted.",
        "<Multimedia omitido>",
        "<Me\u0301dias omis>",
        "Se eliminó este mensaje",
        "Started a thread.",
        "Started a call that lasted 12 minutes.",
        "\u200eIMG-20240213-WA0001.jpg (file attached)",
    ],
)
def test_what_a_program_wrote_in_place_of_a_person_is_a_notice(text):
    assert is_notice(text) and not is_notice(f"{text} Why?")


@pytest.mark.parametrize(
    "text",
    [
        "a `b` c@d.org http://x.org @you",
        "[t](http://x.org)",
        "caf\u00e9 &amp;amp;lt;",
    ],
)
def test_a_second_cleaning_changes_no_placeholder(text):
    once = clean_post(text, "Jane Doe")
    assert clean_post(once, "Jane Doe").count("@") == once.count("@")


def test_own_name_is_masked():
    assert clean_post("Cheers, Jane Doe", "Jane Doe") == "Cheers, @self"
    text = "jane doe here; JANE says hi, Doe too"
    assert clean_post(text, "Jane Doe") == "@self here; @self says hi, @self too"
    assert clean_post("Janet is not doe", "Jane Doe") == "Janet is not doe"
    assert clean_post("Regards, Jane", "jane.doe@example.org") == "Regards, @self"
    assert clean_post("I am edward_7 there", "edward_7") == "I am @self there"
    for address in ("5+jane-d@users.noreply.github.com", "5-jane-d@users.noreply.gitlab.com"):
        assert clean_post("ask jane-d or Jane", address) == "ask @self or @self"
    assert mask_mentions("Élodie écrit", "Élodie Ng") == "@self écrit"


def test_an_own_name_with_an_initial_is_masked_without_it():
    for name in ("NEIL B. GANDLER", "Neil B. Gandler", "neil b gandler"):
        text = "neil gandler, NEIL GANDLER or Neil"
        assert mask_mentions(text, name) == "@self, @self or @self"
    assert mask_mentions("vera mcmoser, Vera McMoser", "Vera McMoser") == "@self, @self"


def test_everyday_words_and_pseudonyms_are_not_masked():
    text = "Will it rain in May? A Member asks"
    assert clean_post(text, "Will May") == clean_post(text, "Member ef55feef") == text
    assert mask_mentions("text", "") == mask_mentions("text", "((") == "text"  # no pattern


def test_bots_are_told_from_people():
    bots = (
        "Random Issue Bot|triageBot|github-actions|AutoModerator|no-reply|MAILER-DAEMON|"
        "49699333+dependabot[bot]@users.noreply.github.com|noreply@github.com|"
        "noreply at example.org|list-owner at example.org|list-bounces+jane=x.org@example.org|"
        "Build Bot <build@example.org>|@release_bot|Issue Bot (staging)|Bot 2|Bot for issues|"
        "Jenkins CI|jira@example.org|Postmaster.X1@example.org|release_bot|RemindMeBot|Dyno|"
        "dyno#3861|MEE6|Carl-bot#1536|YAGPDB.xyz|USLACKBOT|GroupHelpBot|travis-ci|"
        "@appservice-irc:matrix.org|ClueBot NG|list-request@example.org"
    )
    people = (
        "Abbott|John Talbot|Rémi Bottinelli|TALBOT|Cabot Lodge|Robotham|Jane Doe|Zulima|"
        "abbot@example.org|5+jdoe@users.noreply.github.com|jdoe at users.noreply.github.com|"
        "jdoe@noreply.example.org|jdoe@bot.example.org|dog-owner|Jira Patel|GitHub Fan|Bot Ond|"
        "Bot, Jan|Jan Bot|Yves Le Bot|Jenkins Smith|Jenkins, Mary|jenkins.smith@example.org|"
        "Postmaster General|Noreply Jones|Dyno Smith|Dyno 2|Carl|Telegram Sam|Captchaxbot|"
    )
    assert [name for name in bots.split("|") if not is_bot(name)] == []
    assert [name for name in people.split("|") if is_bot(name)] == []


ADDRESS_PIECES = (
    "+ 1 12 555 4567 - . ( ) / tel: phone Fax x12 at AT dot @ a.org de www. WWW. :// ftp"
)
ADDRESS_PIECES += " 06 020 00151 345678"
ADDRESS_PIECES += " [at] < URL: in/ ... \u0661 \u017f\u017fh \u0130n \u0131o"


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from([" ", " ", "\n", *ADDRESS_PIECES.split(" ")]), max_size=12))
def test_no_address_or_number_is_skipped(pieces):
    """A text that an expression matches passes the test that comes before it."""
    text = "".join(pieces)
    for kind in ("EMAIL", "URL", "PHONE"):
        if getattr(cleaning, kind).search(text):
            assert getattr(cleaning, f"{kind}_LIKE").search(text)
