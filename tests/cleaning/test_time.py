"""The time of cleaning grows with the text, however hostile the text is."""

import time

import pytest

from helpers.cleaning import email, salutations
from helpers.cleaning import text as cleaning
from helpers.cleaning.code_lines import without_trailers
from helpers.corpus import personal_names
from tests.cleaning.examples import EXAMPLES

SMALL_CHARS = 9_000


def seconds_of(text):
    began = time.process_time()
    clean_all(text)
    return time.process_time() - began


def clean_all(text):
    names = {("jane",): False, ("jane", "doe"): False}
    cleaning.clean_post(text, "Jane Doe")
    salutations.mask_salutations(text)
    email.own_paragraphs(text)
    without_trailers(text)
    personal_names.mask_known_names(names, {words[0] for words in names}, text)


@pytest.mark.parametrize("piece", EXAMPLES["hostile_pieces"], ids=repr)
def test_four_times_the_text_takes_four_times_as_long(piece):
    small = piece * (SMALL_CHARS // len(piece))
    times = []
    for _ in range(6):  # the least time counts; quadratic time would be sixteen times as long
        times.append((seconds_of(small), seconds_of(4 * small)))
        of_small, of_large = map(min, zip(*times))
        if of_large < 9 * of_small:
            break
    assert of_large < 9 * of_small
