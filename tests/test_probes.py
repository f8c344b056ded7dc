"""Probes of made-up vectors whose content is known, and against scikit-learn and NumPy by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

from helpers.topic.probes import author_means, habits, probe, two_samples
from helpers.sources.demo import truth


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def classes(rng, rows, told):
    """Vectors (rows, 12) of four unequal classes that tell the class in one direction, or not at all."""
    target = rng.choice(["a", "b", "c", "d"], rows, p=[0.4, 0.3, 0.2, 0.1])
    vectors = rng.standard_normal((rows, 12))
    centres = np.eye(4, 12) * 5
    return vectors + told * centres[np.unique(target, return_inverse=True)[1]], target


def test_a_class_that_is_there_is_found_and_one_that_is_not_is_guessed(rng):
    there = probe(*classes(rng, 600, 1), *classes(rng, 400, 1), "classes")
    absent = probe(*classes(rng, 600, 0), *classes(rng, 400, 0), "classes")
    assert there["accuracy"] > 0.95 and there["classes"] == 4 and there["rows"] == 400
    assert abs(absent["accuracy"] - absent["majority"]) < 0.08


def test_the_majority_is_that_of_the_fitted_rows(rng):
    vectors = rng.standard_normal((5, 3))
    assert probe(vectors, list("xxxyy"), vectors, list("xyyyz"), "classes")["majority"] == 0.2


def test_the_interval_is_over_authors(rng):
    """Rows of an author are copies: twenty authors, not two hundred independent rows."""
    once, own = classes(rng, 20, 0.3)
    fit = classes(rng, 600, 0.3)
    of_authors, of_rows = (
        probe(*fit, np.repeat(once, 10, 0), np.repeat(own, 10), "classes", authors=authors)
        for authors in (np.repeat(np.arange(20), 10), np.arange(200))
    )
    width = [found["accuracy_high"] - found["accuracy_low"] for found in (of_authors, of_rows)]
    assert of_authors["accuracy_low"] < of_authors["accuracy"] == of_rows["accuracy"] < of_authors["accuracy_high"]
    assert width[0] == pytest.approx(np.sqrt(10) * width[1], rel=0.25)
    assert "accuracy_low" not in probe(*fit, once, own, "classes")


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_shuffled_targets_score_as_chance(rng, kind):
    if kind == "classes":
        fit, test = classes(rng, 600, 1), classes(rng, 400, 1)
        assert probe(*fit, *test, kind, control=3)["accuracy"] < 0.5
    else:
        vectors, values = made(rng, 600)
        assert probe(vectors[:400], values[:400], vectors[400:], values[400:], kind)["correlation"] > 0.9
        sides = vectors[:400], values[:400], vectors[400:], values[400:], kind
        assert abs(np.mean([probe(*sides, control=seed)["correlation"] for seed in range(20)])) < 0.15  # one varies by 0.2


def made(rng, rows, noise=0.1):
    vectors = rng.standard_normal((rows, 8))
    values = vectors @ np.random.default_rng(9).standard_normal((8, 3)) + noise * rng.standard_normal((rows, 3))
    return vectors, values


def test_scores_of_values_are_those_of_scikit_learn(rng):
    vectors, values = made(rng, 500, noise=2.0)
    found = probe(vectors[:300], values[:300], vectors[300:], values[300:], "values")
    solved, *_ = np.linalg.lstsq(np.c_[vectors[:300], np.ones(300)], values[:300], rcond=None)  # weak ridge: nearly this
    predicted = np.c_[vectors[300:], np.ones(200)] @ solved
    assert found["R2"] == pytest.approx(r2_score(values[300:], predicted), abs=0.02)
    by_hand = [np.corrcoef(predicted[:, i], values[300:, i])[0, 1] for i in range(3)]
    assert found["correlation"] == pytest.approx(np.mean(by_hand), abs=0.02)
    assert found["values"] == 3


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_scale_and_shift_of_dimensions_do_not_matter(rng, kind):
    if kind == "classes":
        (a, x), (b, y) = classes(rng, 200, 0.4), classes(rng, 100, 0.4)
    else:
        (a, x), (b, y) = made(rng, 200), made(rng, 100)
    scale, shift = np.logspace(-3, 3, a.shape[1]), np.arange(a.shape[1])
    one, other = probe(a, x, b, y, kind), probe(a * scale + shift, x, b * scale + shift, y, kind)
    assert one == pytest.approx(other, abs=1e-3)


def test_a_constant_embedding_knows_nothing(rng):
    _, values = made(rng, 60)
    found = probe(np.ones((40, 4)), values[:40], np.ones((20, 4)), values[40:], "values")
    assert found["correlation"] == 0 and found["R2"] <= 0


def test_bad_input_is_named(rng):
    vectors = rng.standard_normal((4, 2))
    with pytest.raises(ValueError, match="classes, values"):
        probe(vectors, [1, 2, 1, 2], vectors, [1, 2, 1, 2], "colours")
    with pytest.raises(ValueError, match="as many of both"):
        probe(vectors, [1, 2, 1], vectors, [1, 2, 1, 2], "classes")
    with pytest.raises(ValueError, match="1 class"):
        probe(vectors, [1, 1, 1, 1], vectors, [1, 2, 1, 2], "classes")
    with pytest.raises(ValueError, match="the same V"):
        probe(vectors, vectors[:, 0], vectors, vectors, "values")
    with pytest.raises(ValueError, match="differ among"):
        probe(vectors, vectors, vectors, np.ones((4, 2)), "values")


@pytest.mark.parametrize("rows, most, size", [(10, 3, 3), (10, 8, 5), (7, 99, 3), (1, 5, 0)])
def test_two_samples_share_nothing(rows, most, size):
    one, other = two_samples(rows, most)
    assert len(one) == len(other) == size and len({*one, *other}) == 2 * size <= rows
    assert (np.diff(one) > 0).all() and (np.diff(other) > 0).all()


def test_means_are_of_an_authors_own_rows():
    means = author_means([[1.0, 0], [3, 0], [0, 5]], ["b", "b", "a"])
    assert list(means.index) == ["a", "b"] and means.to_numpy().tolist() == [[0, 5], [2, 0]]


def test_habits_are_those_of_the_authors_asked_for_in_their_order():
    table = truth(seed=0, authors=5)
    found = habits(table, ["demo-0004", "demo-0002"])
    row = table.set_index("author").loc["demo-0002"]
    assert found["style"].shape[0] == 2 and found["hour"].shape == (2, 2)
    odds = row["british"] / (1 - row["british"])
    assert np.exp(found["style"][1]).min() > 0 and np.isclose(np.exp(found["style"][1]), odds).any()
    peaks = np.exp(2j * np.pi / 24 * np.array([row["hour_peak"], row["hour_peak2"]]))
    mean = (1 - row["hour_share2"]) * peaks[0] + row["hour_share2"] * peaks[1]
    assert found["hour"][1] == pytest.approx([mean.real, mean.imag])
    with pytest.raises(ValueError, match="1 authors are not"):
        habits(pd.DataFrame(table), ["demo-0001", "u1"])
