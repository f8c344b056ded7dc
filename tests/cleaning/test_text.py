"""The cleaning that all sources share, code among sentences, names in greetings."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cleaning import text as cleaning
from helpers.cleaning.code_lines import is_code, without_code
from helpers.cleaning.salutations import mask_salutations
from helpers.cleaning.text import clean_post, is_bot, is_notice, mask_mentions
from tests.cleaning.examples import EXAMPLES


@pytest.mark.parametrize(("text", "expected"), EXAMPLES["clean_post"])
def test_clean(text, expected):
    assert clean_post(text) == expected


@pytest.mark.parametrize("kind", EXAMPLES["telephones"])
def test_numbers_that_begin_with_0_are_masked_where_they_are_of_telephones(kind):
    for number in EXAMPLES["telephones"][kind]:
        cleaned = "@user" if kind == "masked" else " ".join(number.split())
        assert clean_post(f"call {number}, or (ask)") == f"call {cleaned}, or (ask)"


def test_what_a_program_wrote_in_place_of_a_person_is_a_notice():
    for text in EXAMPLES["notices"]:
        assert is_notice(text) and not is_notice(f"{text} Why?"), text


def test_a_second_cleaning_changes_no_placeholder():
    for text in ("a `b` c@d.org http://x.org @you", "[t](http://x.org)", "caf\u00e9 &amp;amp;lt;"):
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
    assert [name for name in EXAMPLES["bots"] if not is_bot(name)] == []
    assert [name for name in EXAMPLES["people"] if is_bot(name)] == []


ADDRESS_PIECES = (
    "+ 1 12 555 4567 - . ( ) / tel: phone Fax x12 at AT dot @ a.org de www. WWW. :// ftp 06 020 "
    "00151 345678 [at] < URL: in/ ... \u0661 \u017f\u017fh \u0130n \u0131o"
)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from([" ", " ", "\n", *ADDRESS_PIECES.split(" ")]), max_size=12))
def test_no_address_or_number_is_skipped(pieces):
    """A text that an expression matches passes the test that comes before it."""
    text = "".join(pieces)
    for kind in ("EMAIL", "URL", "PHONE"):
        if getattr(cleaning, kind).search(text):
            assert getattr(cleaning, f"{kind}_LIKE").search(text)


def test_program_text_is_told_from_sentences():
    code = ["x <- 3", "library(lme4)", "}", "# a comment", "  12.5  13.1  0.001 ***"]
    code += ["[1] 0.1 0.2 and more words than six in this line", "fit = lmer(y ~ x,"]
    prose = ["I think that is right.", "Thanks!", "", "HTH,", "Größe spielt keine Rolle;"]
    prose += ["(see the manual for more on this)", "1. Yes, so"]
    assert [line for line in code if not is_code(line)] == []
    assert [line for line in prose if is_code(line)] == []


def test_a_paragraph_of_output_goes_and_the_sentences_stay():
    lines = ["I tried this and it fails, so what now?", "", "fit <- lm(y ~ x,", "   data = d)"]
    lines += ["summary(fit)", "", "Thanks!"]
    assert [line for line in without_code(lines) if line] == [lines[0], lines[-1]]


@pytest.mark.parametrize(("text", "expected"), EXAMPLES["salutations"])
def test_greetings_and_signatures(text, expected):
    assert mask_salutations(text)[0] == expected


def test_whom_a_letter_names():
    _, names = mask_salutations("Hi Jane and Jack,\nok.\n\nCheers, Bob Lee")
    assert names == ["Jane", "Jack", "Bob Lee"]
