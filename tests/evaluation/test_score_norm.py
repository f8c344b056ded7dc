"""Normalised scores against a loop over pairs."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.encoders.tfidf import TfidfEncoder
from helpers.evaluation import lists
from helpers.evaluation import scores as score_norm
from helpers.evaluation.models import Member, Model, as_model, with_as_norm, with_s_norm
from helpers.evaluation.ranking import ranking_trials
from helpers.evaluation.scores import LEAST_SPREAD
from helpers.tokens.tokenizer import Bytes
from tests.factories import HabitCounts, LookUp

MODEL = HabitCounts(hours=True)
SOME = np.sort([*range(0, 30, 2), 3, 5, 11, 17])
PAIRS = np.array([[3, 4], [0, 0], [29, 1], [3, 4]])


@pytest.fixture
def trials(make_store):
    store = make_store([40] * 30, topics=4, habits=True)
    numbers = np.arange(store.posts + 1)
    return ranking_trials(
        replace(store, tokens=numbers[:-1].astype("u2"), post_offsets=numbers), posts=8
    )


def all_scores(model, queries, targets, own_column=None):
    blocks = as_model(model).scores(queries, targets, own_column=own_column)
    return np.concatenate([block for _, block in blocks])


def z(score, others, nearest=None, least=0.0):
    """A score in spreads of the nearest others, which spread at least by a share of all."""
    others = np.array(others, np.float64)
    near = np.sort(others)[::-1][:nearest]
    return (score - near.mean()) / max(near.std(), least * others.std())


def normed(scores, of_queries, of_targets, **near):
    """Scores, pair by pair; the lists hold what each query and each target is compared with."""
    return np.array(
        [
            [
                z(score, of_query, **near) + z(score, of_target, **near)
                for score, of_target in zip(row, of_targets)
            ]
            for row, of_query in zip(scores, of_queries)
        ]
    )


@pytest.mark.parametrize("normaliser", ["s_norm", "as_norm"])
@pytest.mark.parametrize("drawn", [np.arange(30), SOME], ids=["all", "some"])
def test_galleries_normalise_as_in_a_loop(trials, normaliser, drawn, monkeypatch):
    """Query 7 is target 3 itself, and not measured against itself."""
    monkeypatch.setattr(score_norm, "NEIGHBOUR_SHARE", 0.2)
    sides = (trials.queries, trials.targets)
    raw = all_scores(MODEL, *sides)
    among = all_scores(MODEL, trials.targets, trials.targets)
    others = [drawn[drawn != t] for t in range(30)]
    of_targets = [among[t, others[t]] for t in range(30)]
    of_queries = [*raw[:, drawn]]
    of_queries[7] = of_targets[3]
    expected = normed(raw, of_queries, of_targets)
    if normaliser == "as_norm":
        among = normed(among, of_targets, of_targets)
        near_targets = [among[t, others[t]] for t in range(30)]
        near_queries = [*expected[:, drawn]]
        near_queries[7] = near_targets[3]
        near = {"nearest": round(0.2 * len(drawn)), "least": LEAST_SPREAD}
        expected = normed(expected, near_queries, near_targets, **near)

    member = Member("some", MODEL, normaliser, reference=np.isin(np.arange(30), drawn))
    own_column = np.where(np.arange(30) == 7, 3, -1)
    scores = all_scores(member, *sides, own_column)
    np.testing.assert_allclose(scores, expected, atol=1e-4)
    listed = as_model(member).pair_scores(*sides, PAIRS)
    np.testing.assert_allclose(listed, expected[tuple(PAIRS.T)], atol=1e-4)
    assert as_model(member).pair_scores(*sides, PAIRS[:1])[0] == listed[0], "each pair alone"
    gallery, rows = member.opened(*sides, 32)
    for query, target, own in [(3, 4, -1), (29, 1, -1), (7, 5, 3)]:
        slope, offset = gallery.line(rows[query : query + 1], target, own)
        line = slope * raw[query, target] + offset
        assert line == pytest.approx(expected[query, target], abs=1e-3)


def test_cohort_normalisation_is_that_of_a_loop(trials, make_store, monkeypatch):
    monkeypatch.setattr(score_norm, "NEAREST", 5)
    cohort = ranking_trials(make_store([20] * 12, topics=4, habits=True), 8).queries
    sides = (trials.queries, trials.targets)
    near = [all_scores(MODEL, samples, cohort) for samples in sides]
    expected = normed(all_scores(MODEL, *sides), *near, nearest=5)
    made = as_model(Member("cohort", MODEL, "as_norm", cohort=cohort))
    np.testing.assert_allclose(all_scores(made, *sides), expected, rtol=1e-4, atol=1e-4)
    listed = made.pair_scores(*sides, PAIRS)
    np.testing.assert_allclose(listed, expected[tuple(PAIRS.T)], rtol=1e-4)


def test_a_target_that_asks_knows_no_score_with_itself(trials):
    sides = (trials.targets, trials.targets, np.arange(30))
    scores = all_scores(with_as_norm(MODEL), *sides)
    expected = score_norm.neighbour_norm(all_scores(with_s_norm(MODEL), *sides))
    off = ~np.eye(30, dtype=bool)
    np.testing.assert_allclose(scores[off], expected[off], atol=1e-4)


def test_two_lists_normalise_each_other_as_in_a_loop(monkeypatch):
    monkeypatch.setattr(score_norm, "NEIGHBOURS", 5)
    monkeypatch.setattr(score_norm, "NEIGHBOUR_SHARE", 1)
    scores = np.random.default_rng(3).normal(size=(40, 25)).astype(np.float32)
    expected = normed(scores, scores, scores.T, nearest=5, least=LEAST_SPREAD)
    found = lists._values_of_ways(scores, scores)[lists.AS_LIST]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_model_that_says_nothing_takes_no_part(trials):
    constant = LookUp(np.ones((trials.queries.store.posts, 4), np.float32) / 2)
    sides = (trials.queries, trials.targets)
    assert (all_scores(with_s_norm(constant), *sides) == 0).all()
    model = with_s_norm(MODEL)
    both = Model.fuse({"a": model, "b": with_s_norm(constant)})
    np.testing.assert_allclose(all_scores(both, *sides), all_scores(model, *sides) / 2, atol=1e-5)


def test_counting_of_the_gallery_learns_words_that_training_lacked(make_store):
    """Words that only the gallery's accounts use tell them apart by the gallery's own idf."""
    trials = ranking_trials(make_store([40] * 30, topics=4, vocabulary=256), posts=8)
    train = ranking_trials(make_store([40] * 5, topics=4, vocabulary=256, seed=1), posts=8)
    fitted, own = [TfidfEncoder("tfidf_subword", Bytes()) for _ in range(2)]
    fitted.fit(train.targets, 32)
    own.fit(trials.targets, 32)
    sides = (trials.queries, trials.targets)
    expected = all_scores(Member("own", own, "s_norm"), *sides)
    np.testing.assert_array_equal(all_scores(with_s_norm(fitted), *sides), expected)
    assert with_s_norm(MODEL).encoder is MODEL, "only what counts is fitted again"
