"""One rule for what is one author's name, and the pseudonyms that follow from it."""

import hashlib
import hmac
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.cleaning.authors import (
    author_name,
    is_placeholder,
    joined_names,
    pseudonymiser,
    same_author,
)
from tests.cleaning.examples import EXAMPLES

UNSEEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u061c\u115f\u3164\ufe0f\U000e0041\x00\x07"
BLANKS = " \t\n\u00a0\u2003\u3000\u202f"
names = st.text(st.characters(codec="utf-8"), max_size=12)
keys = st.binary(min_size=32, max_size=40)


@st.composite
def other_form(draw, name):
    """A name in another form: cases, Unicode forms, unseen marks, blanks of other kinds."""
    name = unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"])), name)
    pieces = []
    for letter in name:
        if letter in BLANKS:
            letter = draw(st.text(st.sampled_from(BLANKS), min_size=1, max_size=3))
        pieces += [draw(st.text(st.sampled_from(UNSEEN), max_size=2)), letter]
    blanks = draw(st.text(st.sampled_from(BLANKS), max_size=2))
    return draw(st.sampled_from([str, str.lower, str.casefold]))(blanks + "".join(pieces) + blanks)


@given(names.flatmap(lambda name: st.tuples(st.just(name), other_form(name))), keys)
def test_the_form_of_a_name_splits_nobody(forms, key):
    name, form = forms
    assert same_author(name) == same_author(form)
    assert pseudonymiser(key)(name) == pseudonymiser(key)(form)


@given(names, names, keys)
def test_a_pseudonym_is_a_function_of_key_and_normalised_name(name, other_name, key):
    pseudonym = pseudonymiser(key)
    digest = hmac.new(key, same_author(name).encode(), hashlib.sha256).hexdigest()
    assert pseudonym(name) == "u" + digest[:16]
    is_same = same_author(name) == same_author(other_name)
    assert (pseudonym(name) == pseudonym(other_name)) == is_same
    assert pseudonymiser(key + b"x")(name) != pseudonym(name)


@given(st.text(max_size=12))
def test_a_name_is_normalised_once_and_can_be_stored(name):
    for normalised in (same_author(name), author_name(name)):
        normalised.encode()
        assert normalised == " ".join(normalised.split())
    assert same_author(same_author(name)) == same_author(author_name(name)) == same_author(name)


@pytest.mark.torture
def test_every_character_is_normalised_once():
    for number in range(0x110000):
        name = f"A{chr(number)}\u0345"
        assert same_author(same_author(name)) == same_author(name), hex(number)


@pytest.mark.parametrize("name, author", EXAMPLES["names"])
def test_names(name, author):
    assert same_author(name) == author


def test_the_most_frequent_form_is_shown():
    names = {"Jane Doe": 3, "jane doe": 2, "JANE  DOE": 1, "Ame\u0301lie": 1, "Amélie": 1, "Bo": 9}
    shown = {"Jane Doe": "Jane Doe", "jane doe": "Jane Doe", "JANE  DOE": "Jane Doe"}
    shown |= {"Ame\u0301lie": "Amélie", "Amélie": "Amélie"}
    assert joined_names(Counter(names)) == shown
    assert joined_names(Counter(dict(reversed(names.items())))) == shown
    assert joined_names(Counter({"b": 2, "B": 2, "a": 1})) == {"b": "B", "B": "B"}
    assert joined_names(Counter()) == {}


def test_names_that_stand_for_many_people_are_placeholders():
    assert [name for name in EXAMPLES["placeholders"] if not is_placeholder(name)] == []


def test_names_of_one_account_are_no_placeholders():
    """ "Null" and "Nan" are people's names; a number may be the name of an account."""
    assert [name for name in EXAMPLES["accounts"] if is_placeholder(name)] == []
