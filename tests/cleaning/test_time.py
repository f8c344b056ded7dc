"""The time of cleaning grows with the text, however hostile the text is."""

import time

import pytest

from helpers.cleaning import email, salutations
from helpers.cleaning import text as cleaning
from helpers.cleaning.code_lines import without_trailers
from helpers.corpus import personal_names

HOSTILE_PIECES = ["a@", "a@a.", ".", "a.", "a.de", "a.de----", "(", "<", "[at]", "a at ", "at "]
HOSTILE_PIECES += ["www.", "wwww.", "://", "http:// ", "http://<", "URL:", "mailto:", "a dot "]
HOSTILE_PIECES += ["+1", "+1 2", "555-1234", "1.", "tel 1 ", "tel: 123456", "@**", "u/", "`a"]
HOSTILE_PIECES += ["\0", "\n", "\n>", "> ", "\nJane", "\n\nPS", "Jane ", "best ", "-", "\u0131."]
HOSTILE_PIECES += ["\n--\n", "\na:", "\nOn 1:1 jd@x.org wrote:", "a", " ", "&", "!a", "a!b!"]
HOSTILE_PIECES += ["a -b ", "a -b /x ", "{a", "1 ", "R.app ", "regards, a ", "a,\n", "a at b dot "]
HOSTILE_PIECES += ["\n-- \n", "\n\nTel:", "\nOn wrote", "\nSent from ", "\niPhone"]
HOSTILE_PIECES += ["-----BEGIN PGP MESSAGE-----\n", "\nIn article <1@x>", "In article <1@x> "]
HOSTILE_PIECES += ["\nJane Doe writes:", "In <a@b) writes "]
HOSTILE_PIECES += ["<!--", "<div ", "<p><", "<code>", "=3D\n", "\\u2019", "[quote=", "â€"]
HOSTILE_PIECES += ["&amp;", "Jane said:\n", "[a](", "<@1", "tg://a?b", "<#C12345|", "+49 8", "{a}!"]
HOSTILE_PIECES += ["0151 23", "06 12 ", "(02) 99", "0049 (1", "0"]
HOSTILE_PIECES += ["\n\n", "this\n\n", "this is part of ", "bug  ", "bp/a, ", "* ", "\t"]
SMALL_CHARS = 12_000


def seconds_of(text):
    """The processor time of cleaning a text."""
    began = time.process_time()
    clean_all(text)
    return time.process_time() - began


def clean_all(text):
    """Do all that is done to a text."""
    names = {("jane",): False, ("jane", "doe"): False}
    cleaning.clean_post(text, "Jane Doe")
    salutations.mask_salutations(text)
    email.own_paragraphs(text)
    without_trailers(text)
    personal_names.mask_known_names(names, {words[0] for words in names}, text)


@pytest.mark.parametrize("piece", HOSTILE_PIECES, ids=repr)
def test_four_times_the_text_takes_four_times_as_long(piece):
    small = piece * (SMALL_CHARS // len(piece))
    times = []
    for _ in range(6):  # the least time counts; quadratic time would be sixteen times as long
        times.append((seconds_of(small), seconds_of(4 * small)))
        of_small, of_large = map(min, zip(*times))
        if of_large < 9 * of_small:
            break
    assert of_large < 9 * of_small
