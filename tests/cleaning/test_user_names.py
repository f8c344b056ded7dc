"""User names in texts: which are masked, and which are words like others."""

from collections import Counter

import pytest

from helpers.cleaning.user_names import (
    mask_first_names,
    mask_user_names,
    maskable_user_names,
    words_of,
)

NAMES = frozenset({"felix", "jane_42", "[coke]"})


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("ask Felix or JANE_42's friend", "ask @user or @user's friend"),
        ("felix++ and (jane_42)", "@user++ and (@user)"),
        ("[felix] said, [Coke] too", "@user said, @user too"),
        ("felixes stay, so do jane_421 and xfelix", "felixes stay, so do jane_421 and xfelix"),
        ("lol@felix, jane_42|felix, Felix-ish", "lol@@user, @user|@user, @user-ish"),
        ("@felix is a mention", "@felix is a mention"),
        ("", ""),
    ],
)
def test_user_names_are_masked(text, masked):
    assert mask_user_names(text, "jane", NAMES) == masked


def test_the_own_name_is_self():
    assert mask_user_names("I am Felix", "felix", NAMES) == "I am @self"


def test_forms_of_a_name_are_masked():
    masked = mask_user_names("see felix__", "jane", NAMES, lambda word: word.rstrip("_"))
    assert masked == "see @user"


def test_common_words_are_no_names():
    posts = Counter({"felix": 100, "perl": 2, "mo": 50, "will": 50, "1234": 5, "joe": 1})
    words = Counter(words_of("perl " * 199 + "Felix " * 99 + "joe mo will 1234"))
    assert maskable_user_names(posts, words) == {"felix", "joe"}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Thanks Larry, as James D. Doe said", "Thanks @user, as @user said"),
        ("Hi Larry Wall!", "Hi @user!"),
        ("larry and Parrot and Will it", "larry and Parrot and Will it"),
        ("James::Module, Larry.pm, $James", "James::Module, Larry.pm, $James"),
        ("Jamestown", "Jamestown"),
        ("Don't ask. Don’t. Don's idea", "Don't ask. Don’t. @user's idea"),
        ("morning audrey, hi, james!", "morning @user, hi @user!"),
        ("hi will, hi jamestown", "hi will, hi jamestown"),
    ],
)
def test_first_names_are_masked(text, masked):
    assert mask_first_names(text) == masked


def test_long_texts_cost_little():
    text = "James " * 100_000 + "[" * 100_000 + "a_" * 100_000
    assert len(mask_first_names(mask_user_names(text, "jane", NAMES))) < len(text)
