"""Erasure against the constrained least-squares problem that it solves; masks against a scan."""

import random

import numpy as np
import pytest

from helpers.encoders.base import embed
from helpers.topic.probes import fit_class_probe, fit_value_probe
from helpers.topic.remedies import Erased, LeaceEraser, frequent_words, mask_text
from tests.factories import LookUp, one_token_samples


def topical(seed=0, rows=400, size=12, topics=4, strength=2.0):
    """Vectors whose mean depends on the topic, and skewed in every direction."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(topics, size=rows)
    mix = rng.normal(size=(size, size))
    noise = rng.normal(size=(rows, size))
    centres = strength * rng.normal(size=(topics, size))
    return (noise + centres[labels]) @ mix + 3, labels


def raw(eraser, vectors):
    return (vectors - eraser.mean) @ eraser.kept.T + eraser.mean


def test_it_is_the_least_change_without_covariance():
    """min E|Ax - x|^2 subject to A cov(x, z) = 0, by Lagrange: A = I - C (C' S^-1 C)^-1 C' S^-1."""
    vectors, labels = topical()
    centred = vectors - vectors.mean(0)
    one_hot = np.eye(4)[labels][:, :3]  # the last class follows from the others
    S = centred.T @ centred / len(vectors)
    C = centred.T @ (one_hot - one_hot.mean(0)) / len(vectors)
    inverse = np.linalg.inv(S)
    expected = np.eye(12) - C @ np.linalg.inv(C.T @ inverse @ C) @ C.T @ inverse
    eraser = LeaceEraser.fit(vectors, labels)
    assert np.allclose(eraser.kept, expected, atol=1e-8)
    erased = raw(eraser, vectors)
    assert np.allclose(erased.mean(0), vectors.mean(0))
    means = [erased[labels == topic].mean(0) for topic in range(4)]
    assert np.allclose(means, means[0]), "every topic has the same mean"


def test_a_probe_finds_nothing_of_the_topic_and_keeps_the_rest():
    vectors, labels = topical(1, 2000)
    # a habit that no topic explains
    habit = np.random.default_rng(5).normal(size=(2000, 1))
    vectors = vectors + habit * np.arange(12)
    train, test = vectors[:1500], vectors[1500:]
    erase = LeaceEraser.fit(train, labels[:1500])

    accuracy, correlation = [], []
    for train_vectors, test_vectors in ((train, test), (erase(train), erase(test))):
        sides = (train_vectors, labels[:1500]), (test_vectors, labels[1500:])
        accuracy.append(fit_class_probe(*sides, np.arange(500)).value.accuracy)
        sides = (train_vectors, habit[:1500]), (test_vectors, habit[1500:])
        correlation.append(fit_value_probe(*sides).value.correlation)
    assert accuracy[0] > 0.8 and accuracy[1] < 0.35
    assert correlation[1] > 0.8 * correlation[0] > 0.6


def test_unit_vectors_and_flat_directions():
    vectors, labels = topical(2)
    flat = np.concatenate([vectors, np.full((400, 2), 7.0)], 1)
    erase = LeaceEraser.fit(flat, labels)
    assert np.allclose(raw(erase, flat)[:, 12:], 7.0), "what does not vary stays"
    out = erase(flat)
    assert out.dtype == np.float32 and np.allclose(np.linalg.norm(out, axis=1), 1, atol=1e-6)
    erased = raw(erase, flat)
    unit = erased / np.linalg.norm(erased, axis=1, keepdims=True)
    assert np.allclose(out, unit, atol=1e-6), "the mean is added again"
    assert not LeaceEraser(np.zeros(2), np.zeros((2, 2)))(np.ones((1, 2))).any()


def test_an_encoder_that_is_erased():
    vectors, labels = topical(6, 60)
    vectors = vectors.astype("f4")
    samples = one_token_samples(np.arange(60))
    erased = Erased.fit(LookUp(vectors), samples, labels)
    expected = LeaceEraser.fit(vectors, labels)(vectors)
    assert erased.dim == 12 and np.allclose(embed(erased, samples), expected, atol=1e-6)
    with pytest.raises(ValueError, match="1 different labels in 3 rows"):
        LeaceEraser.fit(np.ones((3, 2)), [1, 1, 1])


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
