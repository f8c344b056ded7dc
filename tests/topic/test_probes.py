"""Probes of made-up vectors whose content is known, and against scikit-learn and NumPy by hand."""

import numpy as np
import pytest

from helpers.sources.demo import style_truth
from helpers.topic.probes import fit_class_probe, fit_value_probe, habit_targets


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def classes(rng, rows, strength):
    """Vectors (rows, 12) of four unequal classes that tell the class in one direction, or not."""
    target = rng.choice(["a", "b", "c", "d"], rows, p=[0.4, 0.3, 0.2, 0.1])
    vectors = rng.standard_normal((rows, 12))
    centres = np.eye(4, 12) * 5
    return vectors + strength * centres[np.unique(target, return_inverse=True)[1]], target


def values(rng, rows, noise=0.1):
    """Vectors (rows, 8) and three values that are linear in them."""
    vectors = rng.standard_normal((rows, 8))
    weights = np.random.default_rng(9).standard_normal((8, 3))
    return vectors, vectors @ weights + noise * rng.standard_normal((rows, 3))


def halves(rows, end):
    vectors, targets = rows
    return (vectors[:end], targets[:end]), (vectors[end:], targets[end:])


def test_a_class_that_is_there_is_known_and_one_that_is_not_is_guessed(rng):
    authors = np.arange(400)
    encoded = fit_class_probe(classes(rng, 600, 1), classes(rng, 400, 1), authors).value
    absent = fit_class_probe(classes(rng, 600, 0), classes(rng, 400, 0), authors).value
    assert encoded.accuracy > 0.95
    assert abs(absent.accuracy - absent.majority) < 0.08
    train = (rng.standard_normal((5, 3)), np.array(list("xxxyy")))
    test = (train[0], np.array(list("xyyyz")))
    of_train = fit_class_probe(train, test, np.arange(5)).value
    assert of_train.majority == 0.2, "the class that is most frequent where it was fitted"


def test_the_interval_is_over_authors(rng):
    """Rows of an author are copies: twenty authors, not two hundred independent rows."""
    vectors, targets = classes(rng, 20, 0.3)
    train = classes(rng, 600, 0.3)
    copies = (np.repeat(vectors, 10, 0), np.repeat(targets, 10))
    twenty_authors = np.repeat(np.arange(20), 10)
    by_author = fit_class_probe(train, copies, twenty_authors).loc["accuracy"]
    by_row = fit_class_probe(train, copies, np.arange(200)).loc["accuracy"]
    assert by_author.low < by_author.value == by_row.value < by_author.high
    row_width = by_row.high - by_row.low
    assert by_author.high - by_author.low == pytest.approx(np.sqrt(10) * row_width, rel=0.25)


def test_shuffled_targets_score_as_chance(rng):
    train, test = classes(rng, 600, 1), classes(rng, 400, 1)
    assert fit_class_probe(train, test, np.arange(400), control=3).value.accuracy < 0.5
    sides = halves(values(rng, 600), 400)
    assert fit_value_probe(*sides).value.correlation > 0.9
    shuffled = [fit_value_probe(*sides, control=seed).value.correlation for seed in range(20)]
    assert abs(np.mean(shuffled)) < 0.15  # one varies by 0.2


def test_correlations_of_values_are_those_of_numpy(rng):
    (fit, fit_values), (test, test_values) = halves(values(rng, 500, noise=2.0), 300)
    scores = fit_value_probe((fit, fit_values), (test, test_values)).value
    # the ridge is weak, so this is nearly the same
    solved, *_ = np.linalg.lstsq(np.c_[fit, np.ones(300)], fit_values, rcond=None)
    predicted = np.c_[test, np.ones(200)] @ solved
    by_hand = [np.corrcoef(predicted[:, i], test_values[:, i])[0, 1] for i in range(3)]
    assert scores.correlation == pytest.approx(np.mean(by_hand), abs=0.02)


def test_habits_are_those_of_the_authors_asked_for_in_their_order():
    table = style_truth(seed=0, authors=5)
    habits = habit_targets(table, ["demo-0004", "demo-0002"])
    row = table.set_index("author").loc["demo-0002"]
    assert habits["style"].shape[0] == 2 and habits["hour"].shape == (2, 2)
    odds = np.exp(habits["style"][1])
    assert odds.min() > 0 and np.isclose(odds, row["british"] / (1 - row["british"])).any()
    peaks = np.exp(2j * np.pi / 24 * np.array([row["hour_peak"], row["hour_peak2"]]))
    mean = (1 - row["hour_share2"]) * peaks[0] + row["hour_share2"] * peaks[1]
    assert habits["hour"][1] == pytest.approx([mean.real, mean.imag])
    with pytest.raises(KeyError, match="u1"):
        habit_targets(table, ["demo-0001", "u1"])
