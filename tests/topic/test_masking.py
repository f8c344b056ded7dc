"""Masks against hand-made cases and a scan of the text character by character."""

import random
from functools import partial

import pyarrow.parquet as pq
import pytest

from helpers.topic.masking import frequent_words, mask_posts, mask_text

KEEP = frozenset({"the", "in", "don't", "of", "2"})
CASES = [
    ("The cat sat in 1984.", "The *** *** in ####.", "The * * in #."),
    ("don't can't DON'T", "don't ***'* DON'T", "don't *'* DON'T"),
    ("don’t", "***’*", "*’*"),
    ("python3.11 and 2 of 22", "******#.## *** 2 of ##", "*#.# * 2 of #"),
    (
        "@user asked @users: see @url, user",
        "@user ***** @*****: *** @url, ****",
        "@user * @*: * @url, *",
    ),
    ("snake_case the_end", "*****_**** the_***", "*_* the_*"),
    ("Größe über İstanbul", "***** **** ********", "* * *"),
    ("  tabs\tand\nlines -- :-)  ", "  ****\t***\n***** -- :-)  ", "  *\t*\n* -- :-)  "),
    ("", "", ""),
]


@pytest.mark.parametrize("text, multiple, single", CASES)
def test_masks_of_hand_made_cases(text, multiple, single):
    assert mask_text(text, KEEP) == multiple
    assert mask_text(text, KEEP, "single") == single


def random_text(rng, words=40):
    pieces = [
        "The",
        "in",
        "cat",
        "Zorn's",
        "lemma",
        "x86",
        "1984",
        "2",
        "...",
        "a.b",
        "n't",
        "—",
        "of",
        "@code",
        "é",
    ]
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
    assert frequent_words(iter(texts), 2) == {"the", "a"}, (
        "of equally frequent ones the first by the alphabet"
    )
    assert frequent_words(texts, 4) == {"the", "a", "cat", "don't"}
    assert frequent_words(texts, 0) == frozenset()
    everything = frequent_words(texts, 99)
    assert everything == {"the", "cat", "a", "dog", "zebra", "don't"}
    assert [mask_text(text, everything) for text in texts] == texts


class TestTable:
    ROWS = [(f"a{n // 5}", 1000 + n, "x/y", f"The cat number {n} sat") for n in range(20)] + [
        ("b", 1, "x", "the of")
    ]

    def test_only_the_text_changes(self, write_posts, tmp_path):
        posts = write_posts(self.ROWS)
        mask_posts(posts, tmp_path / "masked.parquet", partial(mask_text, keep=KEEP))
        before, after = (pq.ParquetFile(path) for path in (posts, tmp_path / "masked.parquet"))
        assert after.schema_arrow == before.schema_arrow
        old, new = before.read(), after.read()
        assert new.drop(["text"]).equals(old.drop(["text"]))
        assert new["text"].to_pylist() == [
            mask_text(text, KEEP) for text in old["text"].to_pylist()
        ]
        assert new["text"][17].as_py() == "The *** ****** ## ***"
        assert old["text"][-1] == new["text"][-1], "its words are kept"

    def test_it_is_whole_or_not_there(self, write_posts, tmp_path):
        def dies(text):
            if "15" in text:
                raise KeyboardInterrupt
            return text

        with pytest.raises(KeyboardInterrupt):
            mask_posts(write_posts(self.ROWS), tmp_path / "masked.parquet", dies)
        assert [path.name for path in tmp_path.iterdir()] == ["posts.parquet"]

    def test_no_posts(self, write_posts, tmp_path):
        mask_posts(write_posts([]), tmp_path / "masked.parquet", str.upper)
        assert pq.read_table(tmp_path / "masked.parquet").num_rows == 0

    def test_in_place(self, write_posts):
        posts = write_posts(self.ROWS)
        mask_posts(posts, posts, str.upper)
        assert pq.read_table(posts)["text"][0].as_py() == "THE CAT NUMBER 0 SAT"


def test_unknown_kind():
    with pytest.raises(ValueError, match="kind 'DV-MA': one of multiple, single"):
        mask_text("a", KEEP, "DV-MA")
