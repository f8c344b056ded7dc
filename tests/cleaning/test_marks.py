"""Cleaning looks for marks first: what they are, and that its time grows with the text."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cleaning import code_lines, email, salutations
from helpers.cleaning import text as cleaning
from helpers.corpus import near_duplicates, personal_names

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
