"""Normalised scores against a loop over pairs."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.encoders.baselines import fit_baseline
from helpers.encoders.tfidf import TfidfEncoder
from helpers.evaluation import score_norm
from helpers.evaluation.fusion import Fusion
from helpers.evaluation.gallery import Gallery
from helpers.evaluation.ranking import evaluate_ranking, ranking_trials
from helpers.evaluation.score_norm import FittedOnTargets, Normalised, adapted
from helpers.tokens.tokenizer import Bytes
from tests.factories import HabitCounts, LookUp


@pytest.fixture
def trials(make_store):
    store = make_store([40] * 30, topics=4, habits=True)
    numbered = {
        "tokens": np.arange(store.posts, dtype="u2"),
        "post_offsets": np.arange(store.posts + 1),
    }
    return ranking_trials(replace(store, **numbered), posts=8)


def all_scores(gallery, queries):
    return np.concatenate([block.copy() for _, block in gallery.scores(queries)])


def z(score, others):
    others = np.array(others, np.float64)
    return (score - others.mean()) / others.std()


def test_gallery_normalisation_is_that_of_a_loop(trials):
    model = HabitCounts(hours=True)
    raw = all_scores(Gallery(model, trials.targets), trials.queries)
    among = all_scores(Gallery(model, trials.targets), trials.targets)
    made = Normalised(model).gallery(trials.targets)
    expected = [[z(raw[q, t], raw[q]) + z(raw[q, t], [among[other, t] for other in range(30) if other != t])
                 for t in range(30)] for q in range(30)]  # fmt: skip
    np.testing.assert_allclose(all_scores(made, trials.queries), expected, atol=1e-4)
    pairs = np.array([[3, 4], [0, 0], [29, 1], [3, 4]])
    np.testing.assert_allclose(
        made.pair_scores(trials.queries, pairs), np.array(expected)[tuple(pairs.T)], atol=1e-4
    )
    assert (
        made.pair_scores(trials.queries, pairs[:1])[0] == made.pair_scores(trials.queries, pairs)[0]
    )


def test_drawn_targets_stand_for_all(trials):
    model, drawn = HabitCounts(hours=True), np.isin(np.arange(30), [*range(0, 30, 2), 3, 5, 11, 17])
    raw = all_scores(Gallery(model, trials.targets), trials.queries)
    among = all_scores(Gallery(model, trials.targets), trials.targets)
    made = Normalised(model, None, drawn).gallery(trials.targets)
    others = [[other for other in np.flatnonzero(drawn) if other != t] for t in range(30)]
    expected = [
        [z(raw[q, t], raw[q, drawn]) + z(raw[q, t], among[others[t], t]) for t in range(30)]
        for q in range(30)
    ]
    np.testing.assert_allclose(all_scores(made, trials.queries), expected, atol=1e-4)
    pairs = np.array([[3, 4], [29, 1]])
    np.testing.assert_allclose(
        made.pair_scores(trials.queries, pairs), np.array(expected)[tuple(pairs.T)], atol=1e-4
    )
    own = np.full(30, -1)
    own[7] = 3  # that query is target 3 itself, and not measured against itself
    expected[7] = [
        z(raw[7, t], among[others[3], 3]) + z(raw[7, t], among[others[t], t]) for t in range(30)
    ]
    itself = np.concatenate([block.copy() for _, block in made.scores(trials.queries, own)])
    np.testing.assert_allclose(itself, expected, atol=1e-4)


def test_cohort_normalisation_is_that_of_a_loop(trials, make_store, monkeypatch):
    monkeypatch.setattr(score_norm, "CLOSEST", 5)
    model, cohort = (
        HabitCounts(hours=True),
        ranking_trials(make_store([20] * 12, topics=4, habits=True), 8).queries,
    )
    raw = all_scores(Gallery(model, trials.targets), trials.queries)
    close = {side: np.sort(all_scores(Gallery(model, cohort), samples))[:, -5:]
             for side, samples in (("q", trials.queries), ("t", trials.targets))}  # fmt: skip
    expected = [
        [z(raw[q, t], close["q"][q]) + z(raw[q, t], close["t"][t]) for t in range(30)]
        for q in range(30)
    ]
    made = Normalised(model, cohort).gallery(trials.targets)
    np.testing.assert_allclose(all_scores(made, trials.queries), expected, rtol=1e-4, atol=1e-4)
    pairs = np.array([[3, 4], [0, 0], [29, 1]])
    np.testing.assert_allclose(
        made.pair_scores(trials.queries, pairs), np.array(expected)[tuple(pairs.T)], rtol=1e-4
    )


def test_a_hub_is_a_hub_no_more(trials):
    """A target that resembles every query outranks all own targets, until its scores are measured against itself."""
    store = trials.queries.store
    rows = (
        np.eye(store.authors, dtype=np.float32)[
            np.repeat(np.arange(store.authors), store.posts_per_author())
        ]
        + 0.5
    )
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[trials.targets.first[7]] = 1 / np.sqrt(store.authors)
    rows[trials.queries.first] += 2 * rows[trials.targets.first[7]]
    raw, mended = (evaluate_ranking(model, trials, resamples=0)[0].value["R@1"]
                   for model in (LookUp(rows), Normalised(LookUp(rows))))  # fmt: skip
    assert raw < 0.2 and mended > 0.9


def test_a_model_that_says_nothing_takes_no_part(trials):
    constant = LookUp(np.ones((trials.queries.store.posts, 4), np.float32) / 2)
    assert (all_scores(Normalised(constant).gallery(trials.targets), trials.queries) == 0).all()
    model = Normalised(HabitCounts(hours=True))
    both = Fusion({"a": model, "b": Normalised(constant)}, {"a": 1.0, "b": 1.0})
    alone = all_scores(model.gallery(trials.targets), trials.queries)
    np.testing.assert_allclose(
        all_scores(both.gallery(trials.targets), trials.queries), alone / 2, atol=1e-5
    )


def test_large_galleries_are_measured_against_some(trials, monkeypatch):
    model = HabitCounts(hours=True)
    whole = Normalised(model).gallery(trials.targets).of_targets
    monkeypatch.setattr(score_norm, "REFERENCE", 20)
    some = Normalised(model).gallery(trials.targets).of_targets
    assert 0.5 < np.median(some[1] / whole[1]) < 2 and (some != whole).any()


def test_what_is_fitted_on_targets_sees_them_alone(trials):
    fitted = []

    class Spy(HabitCounts):
        def fit(self, samples, max_tokens):
            fitted.append((samples, max_tokens))
            return self

    model = Normalised(FittedOnTargets(lambda: Spy(hours=True)))
    scores = all_scores(model.gallery(trials.targets, 9), trials.queries)
    assert scores.shape == (30, 30) and fitted == [(trials.targets, 9)]
    assert model.gallery(trials.targets, 9) is model.gallery(trials.targets, 9) and len(fitted) == 1
    others = [trials.targets[:size] for size in range(2, 2 + score_norm.KEPT)]
    for targets in others:
        assert model.gallery(targets, 9).targets is targets
    model.gallery(trials.targets, 9)
    assert len(fitted) == 2 + score_norm.KEPT, "old galleries are let go"


def test_adapted_counting_learns_words_that_training_lacked(make_store):
    """Words that only the gallery's accounts use tell them apart, once the idf is the gallery's own."""
    words = Bytes()
    store = make_store([40] * 30, topics=4, vocabulary=256)
    trials, train = (
        ranking_trials(store, posts=8),
        make_store([40] * 5, topics=4, vocabulary=256, seed=1),
    )
    fitted = TfidfEncoder("tfidf_subword", words).fit(ranking_trials(train, 8).targets, 32)
    made = adapted("tfidf_subword", fitted, words).gallery(trials.targets)
    own = TfidfEncoder("tfidf_subword", words).fit(trials.targets, 32)
    np.testing.assert_array_equal(
        all_scores(made, trials.queries),
        all_scores(Normalised(own).gallery(trials.targets), trials.queries),
    )
    assert adapted("lsa", fitted, words).model is fitted


def test_adapted_topics_are_those_that_the_gallery_lists(make_store):
    """Accounts of a community whose rooms training did not know, each at home in one of them."""
    store, train = make_store([40] * 6, topics=7), make_store([40] * 5, topics=4)
    store.topic[:] = np.repeat(np.arange(6), 40)
    trials, known = ranking_trials(store, posts=8), fit_baseline("topics", train, Bytes(), posts=8)
    own = all_scores(adapted("topics", known, Bytes()).gallery(trials.targets), trials.queries)
    assert (own.argmax(1) == np.arange(6)).all()
    before = all_scores(Normalised(known).gallery(trials.targets), trials.queries)
    assert not before[3:].any(), "rooms 3 to 5 are not known to training"


def test_a_gallery_of_two_accounts_can_be_adapted_to(make_store):
    words, store = Bytes(), make_store([40] * 2, topics=4, vocabulary=256, habits=True)
    trials = ranking_trials(store, posts=8)
    for name in ("tfidf_char", "tfidf_word", "tfidf_subword"):
        model = adapted(name, TfidfEncoder(name, words), words)
        assert np.isfinite(all_scores(model.gallery(trials.targets), trials.queries)).all()
