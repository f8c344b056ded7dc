"""Tokenizers: nothing is lost, ids fit 16 bits, training repeats itself and is done once."""

import random
import string

import pytest

from helpers.cleaning.text import PLACEHOLDERS
from helpers.tokens import tokenizer
from helpers.tokens.tokenizer import (
    Bytes,
    SentencePiece,
    SpellingSentencePiece,
    load_tokenizer,
    prepare_text,
    sample_texts,
)

WORDS = (
    "the of to and a in is it you that he was for on are with as I his they be at one have this "
    "lm() Well, tidy-verse don't naïve π"
).split()
TRICKY = [
    "the naïve one",
    "the  two   spaces.  And",
    "  in front",
    "behind  ",
    "a\n\nparagraph\n",
    "tab\tbed",
    "",
    " ",
    "THE The the",
    "don't!!! (they) -- ...",
    "@user and @url, @self.",
    "word@userword @email\n@code",
]


def texts(count=800, seed=0):
    rng = random.Random(seed)
    between = [" ", " ", " ", "  ", "\n", ". ", "!\n\n", "\t", " @user ", " (", ") ", " -- "]
    made = []
    for _ in range(count):
        words = [rng.choice(WORDS) + rng.choice(between) for _ in range(rng.randint(1, 30))]
        letters = rng.choices(string.ascii_letters + string.digits + ".,!?'", k=12)
        made.append("".join(words + letters))
    return made


@pytest.fixture(scope="module")
def trained():
    return SentencePiece.train(texts(), 400)


def test_unknown_characters_are_spelt_with_known_ones(trained):
    trained.fingerprint = "any"
    spelling = SpellingSentencePiece.of(trained)
    read, meant, unknown = spelling.encode(
        ["“the naïve ｃａｆé – … Łast”", '"the naïve cafe - ... Last"', "мир the"]
    )
    assert read.tolist() == meant.tolist() and spelling.fingerprint == "any"
    assert unknown.tolist() == trained.encode(["мир the"])[0].tolist()
    assert spelling.encode(["naïve π"])[0].tolist() == trained.encode(["naïve π"])[0].tolist()


def test_nothing_is_lost(trained):
    for text in [*TRICKY, *texts(100, seed=2)]:
        (ids,) = trained.encode([text])
        assert 0 not in ids, "an unknown character: the test text is wrong"
        assert trained.decode(ids) == text


def test_placeholders_are_single_tokens(trained):
    for name in PLACEHOLDERS:
        for text in (name, f"the {name}.", f"x{name}y"):
            (ids,) = trained.encode([text])
            assert list(map(trained.piece, ids)).count(name) == 1, text


def test_training_repeats_itself_and_says_what_would_do(trained):
    assert SentencePiece.train(texts(), 400).model == trained.model
    for count, vocabulary, advice in ((0, 300, "take more texts"), (300, 5000, "take .* or fewer")):
        with pytest.raises(ValueError, match=advice):
            SentencePiece.train(texts(count), vocabulary)


@pytest.mark.parametrize("text", [*TRICKY, "smile 😀👩‍👩‍👧", "\x00\x7f", "e\u0301"], ids=repr)
def test_bytes_lose_nothing(text):
    (ids,) = Bytes().encode([text])
    assert ids.tolist() == list(text.encode()) and Bytes().decode(ids) == text


def test_a_lone_surrogate_does_not_stop_bytes():
    (ids,) = Bytes().encode(["a\udc80b"])
    assert Bytes().decode(ids) == "a?b"


def test_a_sample_is_drawn_without_replacement_whatever_the_order_of_the_table(write_posts):
    rows = [(f"a{n % 7}", n, "x", f"text {n}") for n in range(500)]
    posts = write_posts(rows, row_group_size=64)
    sample = sample_texts(posts, 100, 1)
    assert len(set(sample)) == 100 and set(sample) <= {f"text {n}" for n in range(500)}
    assert sample_texts(posts, 10, 1) == sample[:10]
    assert set(sample_texts(posts, 100, 2)) != set(sample)
    assert sample_texts(write_posts(rows[::-1], "other.parquet"), 100, 1) == sample


class TestPrepare:
    @pytest.fixture
    def posts(self, write_posts):
        return write_posts([(f"a{n % 7}", n, "x", text) for n, text in enumerate(texts())])

    @pytest.fixture
    def trainings(self, monkeypatch):
        done, train = [], SentencePiece.train
        monkeypatch.setattr(
            tokenizer.SentencePiece, "train", lambda *args: done.append(args[1]) or train(*args)
        )
        return done

    def test_it_is_kept_and_trained_again_only_for_other_settings(
        self, posts, write_posts, tmp_path, trainings
    ):
        folder = tmp_path / "tokenizer"
        rows = [(f"a{n % 7}", n, "x", text) for n, text in enumerate(texts()[1:])]
        fewer = write_posts(rows, "fewer.parquet")
        first = prepare_text(folder, "sentencepiece", 350, posts)
        second = prepare_text(folder, "sentencepiece", 350, posts)
        assert len(trainings) == 1 and second.model == first.model == load_tokenizer(folder).model
        settings = {"vocabulary": 350, "posts": posts}
        for changed in ({"vocabulary": 320}, {"posts": fewer}, {"seed": 1}):  # one after the other
            settings |= changed
            trainings.clear()
            made = prepare_text(folder, "sentencepiece", **settings)
            assert len(trainings) == 1, changed
            assert made.vocabulary == settings["vocabulary"] == load_tokenizer(folder).vocabulary

    @pytest.mark.parametrize(
        ("kind", "damage"),
        [("sentencepiece", "missing"), ("sentencepiece", "middle"), ("bytes", "longer")],
    )
    def test_a_damaged_model_is_refused_and_made_again(self, posts, tmp_path, kind, damage):
        folder = tmp_path / "tokenizer"
        whole = prepare_text(folder, kind, 350, posts).model
        data = bytearray(whole)
        if damage == "middle":
            data[len(data) // 2] ^= 1
        (folder / "tokenizer.model").unlink()
        if damage != "missing":
            (folder / "tokenizer.model").write_bytes(data + b"\0" * (damage == "longer"))
        with pytest.raises(ValueError, match="tokenizer.model is (missing|damaged): look"):
            load_tokenizer(folder)
        assert prepare_text(folder, kind, 350, posts).model == whole == load_tokenizer(folder).model
