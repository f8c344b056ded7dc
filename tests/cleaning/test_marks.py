"""Cleaning looks for marks first: its results are those of expressions tried everywhere."""

import importlib.util
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cleaning import code_lines, email, salutations
from helpers.cleaning import text as cleaning
from helpers.core import paths
from helpers.corpus import near_duplicates, personal_names

_spec = importlib.util.spec_from_file_location(
    "old_cleaning", paths.ROOT / "benchmarks" / "old_cleaning.py"
)
old_cleaning = importlib.util.module_from_spec(_spec)  # tries every expression everywhere
_spec.loader.exec_module(old_cleaning)

NAMES = [
    "",
    "Jane Doe",
    "jane_doe",
    "J. B. Doe",
    "jd@example.org",
    "Ian Kiss",
    "Will May",
    "\u0130an",
    "\u00c9lodie Ng",
]
# pieces of addresses, and what nearly is one
MARKS = (
    "@|.|://|www.|Www.| at | AT | dot | DOT |at|AT|[at]|(at)| @ |...|mailto:|mailto: |URL:|<URL: "
)
HOSTS = (
    "example|x|a-b|com|org|de|in|is|info|COM|http|HTTPS|ftp|\u017f\u017fh|F\u0131le|git|x.in/|a.de"
)
BRACKETS = (
    "(|)|[|]|<|>|{|}|'|\"|`|``|```|](|\\|/|/home/|Users/|u/|/u/|!|a!b!c|@**|**|@_**|&amp;|&#46;"
)
NUMBERS = "1|12|123|4567|555|+49|+1|(555)|tel: |phone:|Fax |mobile |cell. |x12|ext. 4"
NUMBERS += "|\u0661\u0662|-|_|+|%"
GREETINGS = "Jane|Doe|JANE|doe|Hi Jane,|Hello |Thanks|cheers|Best regards,|regards,|\nJane"
GREETINGS += "|\njane|P.S.|\nPS |--|-- |\u2013|~|,|;|:|?|J.|\n> |>|>:(|url|email|user|self"
ODD = ["\u2024", "\u3002", "\uff0e", "\u0130", "\u0131", "\u017f", "\u212a", "e\u0301", "\u00e9"]
ODD += ["\0", "\u200b", "\u200d", "\u00ad", "\ud800", "\u00a0", "\u2003", "\u2028", "\x1f", "|"]
BLANKS = [" ", "  ", "\n", "\n\n", "\t"]
RUNS = ["a" * 70, "9" * 15, "." * 5, "-" * 5, "@" * 3, "a." * 6, "a@" * 3, "www." * 3, "://" * 3]
PIECES = [*f"{MARKS}|{HOSTS}|{BRACKETS}|{NUMBERS}|{GREETINGS}".split("|"), *ODD, *BLANKS, *RUNS]
HOSTILE = st.lists(
    st.one_of(st.sampled_from(PIECES), st.sampled_from(BLANKS), st.text(max_size=3)), max_size=60
).map("".join)
# lines that mail programs, news readers and consoles write, and what nearly is one
MAIL_LINES = [
    "> a quote",
    "| a quote",
    ">From here",
    "On Mon, 2 Jul 2007, Jane Doe wrote:",
    "On Mon, 2 Jul 2007 at 10:15, Jane",
    "Doe <jd@example.org> wrote:",
    "jd@example.org (Jane Doe) writes",
    "Jane Doe wrote: ...",
    "wrote;",
    "In article <1@x> jd@example.org (Jane) writes: no",
    "\u0130n article <1@x>, Jane Doe",
    "-- ",
    "---",
    "______",
    "-----Original Message-----",
    "From: Jane Doe",
    "Subject: it",
    "Lines: 12",
    "[[alternative HTML version deleted]]",
    "a {{dropped:3}}",
    "\u017fent from my phone",
    "This mail is confidential, privileged, for the recipient",
    "R-help mailing list",
    "x <- c(1, 2)",
    "print(x)",
    "[1] 0.5 0.7",
    "Error in f(x) : no",
    "Error in a line",
    "a    b    c",
    "gcc -O2 -c src/a.c",
    "cc a -b -c d /e",
    "Traceback",
    "see http://example.org/a",
    "a/b/c",
    "123 456 789 1",
    "So it is: as I said.",
    "we see that it works.",
    "Best regards,",
    "Jane Doe",
    "Tel: 555-1234",
    "\u00e9t\u00e9 \u00ab12\u00bb",
    "...",
    ":",
    "",
    "",
    "   ",
]
MAIL = st.lists(
    st.one_of(st.sampled_from(MAIL_LINES), st.sampled_from(MAIL_LINES), HOSTILE), max_size=25
).map("\n".join)


@settings(max_examples=300, deadline=None)
@given(HOSTILE, st.sampled_from(NAMES))
def test_a_post_is_cleaned_as_by_expressions_alone(text, author):
    assert cleaning.clean_post(text, author) == old_cleaning.clean_post(text, author)
    assert salutations.mask_salutations(text) == old_cleaning.mask_salutations(text)
    assert cleaning.normalise_unicode(text) == old_cleaning.normalise_unicode(text)
    assert cleaning.drop_edge_marks(text) == old_cleaning.drop_edge_marks(text)
    assert cleaning.mask_mentions(text, author) == old_cleaning.mask_mentions(text, author)


@settings(max_examples=200, deadline=None)
@given(MAIL)
def test_a_mail_is_cleaned_as_by_expressions_alone(body):
    assert email.own_paragraphs(body) == old_cleaning.own_paragraphs(body)


@settings(max_examples=100, deadline=None)
@given(HOSTILE)
def test_letters_are_counted_one_by_one(text):
    letters = sum(char.isalpha() or char == " " for char in text)
    assert code_lines._count_letters(text) == letters


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*"aB1. ,-'@(_/\n", "jane ", "Doe", "DOE ", "\u0130 ", "x"])))
def test_names_are_looked_for_at_every_word(pieces):
    names = {("jane",): False, ("doe",): True, ("jane", "doe"): False, ("x", "b", "doe"): True}
    second_words = personal_names.words_after_first(names)
    text = "".join(pieces)
    starts = personal_names._starts_of_words(text, {"jane", "doe", "x"})
    masked = personal_names.mask_known_names(text, names, second_words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(personal_names, "_name_starts", lambda text, second_words: starts)
        assert masked == personal_names.mask_known_names(text, names, second_words)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=["a", " ", "\n", "\t", "\u00a0", "\u2028", "\x1f", "\u3000", "\x85"]))
def test_normal_text_has_single_blanks_for_white_space(text):
    import duckdb

    query = f"SELECT {near_duplicates.NORMAL} FROM (SELECT $text AS text)"
    assert duckdb.execute(query, {"text": text}).fetchall()[0][0] == " ".join(text.split())


HOSTILE_PIECES = ["a@", "a@a.", ".", "a.", "a.de", "a.de----", "(", "<", "[at]", "a at ", "at "]
HOSTILE_PIECES += ["www.", "wwww.", "://", "http:// ", "http://<", "URL:", "mailto:", "a dot "]
HOSTILE_PIECES += ["+1", "+1 2", "555-1234", "1.", "tel 1 ", "tel: 123456", "@**", "u/", "`a"]
HOSTILE_PIECES += ["\0", "\n", "\n>", "> ", "\nJane", "\n\nPS", "Jane ", "best ", "-", "\u0131."]
HOSTILE_PIECES += ["\n--\n", "\na:", "\nOn 1:1 jd@x.org wrote:", "a", " ", "&", "!a", "a!b!"]
SMALL_CHARS = 25_000


def seconds_of(clean, text):
    """The least processor time of three."""
    took = []
    for _ in range(3):
        began = time.process_time()
        clean(text)
        took.append(time.process_time() - began)
    return min(took)


def clean_all(text):
    """Do all that is done to a text."""
    names = {("jane",): False, ("jane", "doe"): False}
    cleaning.clean_post(text, "Jane Doe")
    salutations.mask_salutations(text)
    email.own_paragraphs(text)
    personal_names.mask_known_names(text, names, personal_names.words_after_first(names))


@pytest.mark.parametrize("piece", HOSTILE_PIECES, ids=repr)
def test_four_times_the_text_takes_four_times_as_long(piece):
    small = piece * (SMALL_CHARS // len(piece))
    clean_all(small)
    for _ in range(3):  # quadratic time would be sixteen times as long, in each attempt
        ratio = seconds_of(clean_all, 4 * small) / seconds_of(clean_all, small)
        if ratio < 9:
            break
    assert ratio < 9
