"""The time of cleaning grows with the text, however hostile the text is."""

import time

import pytest

from helpers.cleaning import email, salutations
from helpers.cleaning import text as cleaning
from helpers.corpus import personal_names

HOSTILE_PIECES = ["a@", "a@a.", ".", "a.", "a.de", "a.de----", "(", "<", "[at]", "a at ", "at "]
HOSTILE_PIECES += ["www.", "wwww.", "://", "http:// ", "http://<", "URL:", "mailto:", "a dot "]
HOSTILE_PIECES += ["+1", "+1 2", "555-1234", "1.", "tel 1 ", "tel: 123456", "@**", "u/", "`a"]
HOSTILE_PIECES += ["\0", "\n", "\n>", "> ", "\nJane", "\n\nPS", "Jane ", "best ", "-", "\u0131."]
HOSTILE_PIECES += ["\n--\n", "\na:", "\nOn 1:1 jd@x.org wrote:", "a", " ", "&", "!a", "a!b!"]
HOSTILE_PIECES += ["a -b ", "a -b /x ", "{a", "1 ", "R.app ", "regards, a ", "a,\n"]
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
    personal_names.mask_known_names(names, {words[0] for words in names}, text)


@pytest.mark.parametrize("piece", HOSTILE_PIECES, ids=repr)
def test_four_times_the_text_takes_four_times_as_long(piece):
    small = piece * (SMALL_CHARS // len(piece))
    clean_all(small)
    for _ in range(3):  # quadratic time would be sixteen times as long, in each attempt
        ratio = seconds_of(clean_all, 4 * small) / seconds_of(clean_all, small)
        if ratio < 9:
            break
    assert ratio < 9
