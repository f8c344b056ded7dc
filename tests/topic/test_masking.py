"""Masks against hand-made cases and a scan of the text character by character."""

import random

import pytest

from helpers.topic.remedies import frequent_words, mask_text

KEEP = frozenset({"the", "in", "don't", "of", "2"})
CASES = [
    ("The cat sat in 1984.", "The *** *** in ####.", "The * * in #."),
    ("don't can't DON'T", "don't ***'* DON'T", "don't *'* DON'T"),
    ("don’t", "***’*", "*’*"),
    ("python3.11 and 2 of 22", "******#.## *** 2 of ##", "*#.# * 2 of #"),
    ("@user asked @users, user", "@user ***** @*****, ****", "@user * @*, *"),
    ("snake_case the_end", "*****_**** the_***", "*_* the_*"),
    ("Größe über İstanbul", "***** **** ********", "* * *"),
    ("  tabs\tand\nlines -- :-)  ", "  ****\t***\n***** -- :-)  ", "  *\t*\n* -- :-)  "),
]


@pytest.mark.parametrize("text, multiple, single", CASES)
def test_masks_of_hand_made_cases(text, multiple, single):
    assert mask_text(text, KEEP) == multiple
    assert mask_text(text, KEEP, "single") == single


def random_text(rng, words=40):
    pieces = "The in cat Zorn's lemma x86 1984 2 ... a.b n't — of @code é".split()
    return "".join(rng.choice(pieces) + rng.choice([" ", ", ", "\n", "-"]) for _ in range(words))


def slow_masked(text, keep):
    """DV-MA word by word: a word is found by looking at one character after the other."""
    words = []
    begin = 0
    while begin < len(text):
        if text.startswith("@code", begin):
            words.append("@code")
        elif not text[begin].isalnum():
            words.append(text[begin])
        else:
            end = begin
            while end < len(text) and is_in_word(text, end):
                end += 1
            words.append(text[begin:end])
        begin += len(words[-1])
    return "".join(
        word if word == "@code" or word.lower() in keep else hidden(word) for word in words
    )


def is_in_word(text, place):
    is_apostrophe = text[place] == "'" and text[place + 1 : place + 2].isalnum()
    return text[place].isalnum() or is_apostrophe


def hidden(word):
    letters = ["*" if letter.isalpha() else letter for letter in word]
    return "".join("#" if letter.isdigit() else letter for letter in letters)


def test_masks_of_random_texts():
    rng = random.Random(0)
    for _ in range(200):
        text = random_text(rng)
        assert mask_text(text, KEEP) == slow_masked(text, KEEP)
        assert len(mask_text(text, KEEP)) == len(text), "lengths stay"
        assert mask_text(mask_text(text, KEEP), KEEP) == mask_text(text, KEEP)


def test_frequent_words():
    texts = ["The the THE cat", "a cat, a dog @user @user @user @user", "zebra don't don't"]
    assert frequent_words(texts, 1) == {"the"}
    # of equally frequent ones the first by the alphabet
    assert frequent_words(iter(texts), 2) == {"the", "a"}
    everything = frequent_words(texts, 99)
    assert everything == {"the", "cat", "a", "dog", "zebra", "don't"}
    assert [mask_text(text, everything) for text in texts] == texts
