"""Normalised scores against a loop over pairs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.encoders.base import embed
from helpers.encoders.tfidf import TfidfEncoder
from helpers.evaluation import lists
from helpers.evaluation import scores as score_norm
from helpers.evaluation.models import (
    MAX_KEPT,
    GalleryTfidf,
    Member,
    Model,
    as_model,
    with_as_norm,
    with_s_norm,
)
from helpers.evaluation.ranking import ranking_trials
from helpers.evaluation.scores import cosine
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


def all_scores(model, queries, targets, own_column=None):
    blocks = as_model(model).scores(queries, targets, own_column=own_column)
    return np.concatenate([block for _, block in blocks])


def z(score, others):
    others = np.array(others, np.float64)
    return (score - others.mean()) / others.std()


def test_gallery_normalisation_is_that_of_a_loop(trials):
    model = HabitCounts(hours=True)
    raw = all_scores(model, trials.queries, trials.targets)
    among = all_scores(model, trials.targets, trials.targets)
    made = as_model(with_s_norm(model))
    expected = [
        [
            z(raw[q, t], raw[q])
            + z(raw[q, t], [among[other, t] for other in range(30) if other != t])
            for t in range(30)
        ]
        for q in range(30)
    ]
    np.testing.assert_allclose(
        all_scores(made, trials.queries, trials.targets), expected, atol=1e-4
    )
    pairs = np.array([[3, 4], [0, 0], [29, 1], [3, 4]])
    np.testing.assert_allclose(
        made.pair_scores(trials.queries, trials.targets, pairs),
        np.array(expected)[tuple(pairs.T)],
        atol=1e-4,
    )
    assert (
        made.pair_scores(trials.queries, trials.targets, pairs[:1])[0]
        == made.pair_scores(trials.queries, trials.targets, pairs)[0]
    )


def test_drawn_targets_stand_for_all(trials):
    model, drawn = HabitCounts(hours=True), np.isin(np.arange(30), [*range(0, 30, 2), 3, 5, 11, 17])
    raw = all_scores(model, trials.queries, trials.targets)
    among = all_scores(model, trials.targets, trials.targets)
    made = as_model(Member("drawn", model, "s_norm", reference=drawn))
    others = [[other for other in np.flatnonzero(drawn) if other != t] for t in range(30)]
    expected = [
        [z(raw[q, t], raw[q, drawn]) + z(raw[q, t], among[others[t], t]) for t in range(30)]
        for q in range(30)
    ]
    np.testing.assert_allclose(
        all_scores(made, trials.queries, trials.targets), expected, atol=1e-4
    )
    pairs = np.array([[3, 4], [29, 1]])
    np.testing.assert_allclose(
        made.pair_scores(trials.queries, trials.targets, pairs),
        np.array(expected)[tuple(pairs.T)],
        atol=1e-4,
    )
    own = np.full(30, -1)
    own[7] = 3  # that query is target 3 itself, and not measured against itself
    expected[7] = [
        z(raw[7, t], among[others[3], 3]) + z(raw[7, t], among[others[t], t]) for t in range(30)
    ]
    itself = all_scores(made, trials.queries, trials.targets, own)
    np.testing.assert_allclose(itself, expected, atol=1e-4)


def test_cohort_normalisation_is_that_of_a_loop(trials, make_store, monkeypatch):
    monkeypatch.setattr(score_norm, "NEAREST", 5)
    model, cohort = (
        HabitCounts(hours=True),
        ranking_trials(make_store([20] * 12, topics=4, habits=True), 8).queries,
    )
    raw = all_scores(model, trials.queries, trials.targets)
    close = {
        side: np.sort(all_scores(model, samples, cohort))[:, -5:]
        for side, samples in (("q", trials.queries), ("t", trials.targets))
    }
    expected = [
        [z(raw[q, t], close["q"][q]) + z(raw[q, t], close["t"][t]) for t in range(30)]
        for q in range(30)
    ]
    made = as_model(Member("cohort", model, "as_norm", cohort=cohort))
    np.testing.assert_allclose(
        all_scores(made, trials.queries, trials.targets), expected, rtol=1e-4, atol=1e-4
    )
    pairs = np.array([[3, 4], [0, 0], [29, 1]])
    np.testing.assert_allclose(
        made.pair_scores(trials.queries, trials.targets, pairs),
        np.array(expected)[tuple(pairs.T)],
        rtol=1e-4,
    )


def as_normed_in_a_loop(normed, among, neighbours, drawn):
    """AS-norm (Q, T) of s-normed scores, by loops; ``among`` are those of targets, their own out.

    ``drawn`` holds the numbers of the targets that may be neighbours.
    """

    def z(score, others):
        nearest = np.sort(others)[-neighbours:]
        spread = max(nearest.std(), score_norm.LEAST_SPREAD * others.std())
        return (score - nearest.mean()) / spread

    scores = np.empty(normed.shape)
    for q, t in np.ndindex(normed.shape):
        others_of_target = [among[t, other] for other in drawn if other != t]
        of_query = z(normed[q, t], normed[q, drawn].astype(float))
        scores[q, t] = of_query + z(normed[q, t], np.array(others_of_target, float))
    return scores


@pytest.mark.parametrize("some", [False, True])
def test_neighbours_in_the_gallery_normalise_as_in_a_loop(trials, some, monkeypatch):
    monkeypatch.setattr(score_norm, "NEIGHBOUR_SHARE", 0.2)
    drawn = np.isin(np.arange(30), [*range(0, 30, 2), 3, 5, 11, 17])
    reference = drawn if some else None
    rows = np.flatnonzero(drawn) if some else np.arange(30)
    model = HabitCounts(hours=True)
    s_normed = as_model(Member("s", model, "s_norm", reference=reference))
    sides = (trials.queries, trials.targets)
    normed = all_scores(s_normed, *sides)
    among = all_scores(s_normed, trials.targets, trials.targets, np.arange(30))
    neighbours = round(0.2 * len(rows))
    expected = as_normed_in_a_loop(normed, among, neighbours, rows)

    made = as_model(Member("as", model, "as_norm", reference=reference))
    scores = all_scores(made, *sides)
    np.testing.assert_allclose(scores, expected, atol=1e-4)
    pairs = np.array([[3, 4], [0, 0], [29, 1], [3, 4]])
    np.testing.assert_allclose(made.pair_scores(*sides, pairs), expected[tuple(pairs.T)], atol=1e-4)

    opened, query_rows = made.members[0].opened(*sides, 32)
    raw = all_scores(model, *sides)
    for q, t in pairs:
        slope, offset = opened.line(query_rows[q : q + 1], t, -1)
        assert slope * raw[q, t] + offset == pytest.approx(expected[q, t], abs=1e-3)


def test_a_target_that_asks_knows_no_score_with_itself(trials):
    model = as_model(with_as_norm(HabitCounts(hours=True)))
    own_column = np.arange(30)
    scores = all_scores(model, trials.targets, trials.targets, own_column)
    s_normed = all_scores(
        with_s_norm(HabitCounts(hours=True)), trials.targets, trials.targets, own_column
    )
    expected = score_norm.neighbour_norm(s_normed)
    off = ~np.eye(30, dtype=bool)
    np.testing.assert_allclose(scores[off], expected[off], atol=1e-4)


def test_two_lists_normalise_each_other_as_in_a_loop(monkeypatch):
    scores = np.random.default_rng(3).normal(size=(40, 25)).astype(np.float32)
    expected = np.zeros((40, 25))
    for lines, sums in ((scores, expected), (scores.T, expected.T)):
        for number, line in enumerate(lines.astype(float)):
            nearest = np.sort(line)[-5:]
            spread = max(nearest.std(), score_norm.LEAST_SPREAD * line.std())
            sums[number] += (line - nearest.mean()) / spread
    monkeypatch.setattr(score_norm, "NEIGHBOURS", 5)
    monkeypatch.setattr(score_norm, "NEIGHBOUR_SHARE", 1)
    found = lists._values_of_ways(scores, scores)[lists.AS_LIST]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_model_that_says_nothing_takes_no_part(trials):
    constant = LookUp(np.ones((trials.queries.store.posts, 4), np.float32) / 2)
    sides = (trials.queries, trials.targets)
    assert (all_scores(with_s_norm(constant), *sides) == 0).all()
    model = with_s_norm(HabitCounts(hours=True))
    both = Model.fuse({"a": model, "b": with_s_norm(constant)})
    np.testing.assert_allclose(all_scores(both, *sides), all_scores(model, *sides) / 2, atol=1e-5)


def test_reference_targets_are_a_draw_of_a_fixed_seed():
    chosen = score_norm.reference_targets(1000, None, 300)
    assert len(np.unique(chosen)) == 300 and (np.diff(chosen) > 0).all()
    np.testing.assert_array_equal(chosen, score_norm.reference_targets(1000, None, 300))
    assert (chosen != score_norm.reference_targets(1000, None, 300, seed=1)).any()
    assert abs(chosen.mean() - 500) < 50 and len(set(np.diff(chosen))) > 5, "no even spaces"
    allowed = np.arange(1000) % 2 == 1
    assert (score_norm.reference_targets(1000, allowed, 300) % 2 == 1).all()
    for allowed, everything in ((None, np.arange(4096)), (allowed, np.arange(1, 1000, 2))):
        count = 4096 if allowed is None else 1000
        np.testing.assert_array_equal(score_norm.reference_targets(count, allowed), everything)
    assert len(score_norm.reference_targets(4097)) == 4096


@given(st.integers(2, 60), st.integers(0, 5), st.integers(1, 70), st.integers(0, 10**6))
def test_statistics_are_those_of_a_loop(targets, own, nearest, seed):
    rng = np.random.default_rng(seed)
    scores = score_norm.round_scores(rng.normal(size=(6, targets)))
    own_column = np.where(np.arange(6) < own, rng.integers(0, targets, 6), -1)
    of_all = score_norm.statistics(scores, own_column)
    of_nearest = score_norm.neighbour_statistics(scores, own_column, nearest)
    least = targets - (own_column >= 0).any()
    for number, row in enumerate(scores.astype(float)):
        others = np.delete(row, own_column[number]) if own_column[number] >= 0 else row
        spread = others.std()
        near = np.sort(others)[-min(nearest, least) :]
        expected = [others.mean(), 1 / spread if spread > score_norm.MIN_SPREAD else 0]
        np.testing.assert_allclose(of_all[:, number], expected, rtol=1e-6, atol=1e-6)
        largest = max(near.std(), score_norm.LEAST_SPREAD * spread)
        scale = 1 / largest if largest > score_norm.MIN_SPREAD else 0
        np.testing.assert_allclose(
            of_nearest[:, number], [near.mean(), scale], rtol=1e-6, atol=1e-6
        )


def at_most(monkeypatch, count):
    """Let statistics come from so many targets at most."""
    monkeypatch.setattr(score_norm.reference_targets, "__defaults__", (None, count, 0))


@pytest.mark.parametrize("normaliser", ["s_norm", "as_norm"])
def test_galleries_of_up_to_so_many_targets_are_read_whole(trials, normaliser, monkeypatch):
    """To the last bit, by whichever way they are asked for."""
    sides = (trials.queries, trials.targets)
    encoder = HabitCounts(hours=True)
    scores = all_scores(Member("whole", encoder, normaliser), *sides)
    everyone = Member("everyone", encoder, normaliser, reference=np.ones(30, bool))
    np.testing.assert_array_equal(all_scores(everyone, *sides), scores)
    at_most(monkeypatch, 30)
    np.testing.assert_array_equal(all_scores(Member("bound", encoder, normaliser), *sides), scores)
    at_most(monkeypatch, 29)
    assert (all_scores(Member("some", encoder, normaliser), *sides) != scores).any()


def test_what_is_fitted_on_targets_sees_them_alone(trials, monkeypatch):
    fitted = []

    def fit(self, samples, max_tokens):
        fitted.append((samples, max_tokens))
        encoder = HabitCounts(hours=True)
        return encoder, embed(encoder, samples, max_tokens)

    monkeypatch.setattr(GalleryTfidf, "fit", fit)
    model = as_model(with_s_norm(GalleryTfidf("tfidf_subword", Bytes())))
    for _ in range(2):
        assert model.score_matrix(trials.queries, trials.targets, 9).shape == (30, 30)
    assert fitted == [(trials.targets, 9)]
    for size in range(2, 2 + MAX_KEPT):
        model.score_matrix(trials.queries, trials.targets[:size], 9)
    model.score_matrix(trials.queries, trials.targets, 9)
    assert len(fitted) == 2 + MAX_KEPT, "old galleries are let go"
    (member,) = model.members
    assert len(member.embeddings._kept) == MAX_KEPT


def test_counting_of_the_gallery_learns_words_that_training_lacked(make_store):
    """Words that only the gallery's accounts use tell them apart by the gallery's own idf."""
    words = Bytes()
    store = make_store([40] * 30, topics=4, vocabulary=256)
    train = make_store([40] * 5, topics=4, vocabulary=256, seed=1)
    trials = ranking_trials(store, posts=8)
    sides = (trials.queries, trials.targets)
    fitted = TfidfEncoder("tfidf_subword", words).fit(ranking_trials(train, 8).targets, 32)
    own = TfidfEncoder("tfidf_subword", words).fit(trials.targets, 32)
    np.testing.assert_array_equal(
        all_scores(with_s_norm(fitted), *sides), all_scores(Member("own", own, "s_norm"), *sides)
    )
    lsa = HabitCounts()
    assert with_s_norm(lsa).encoder is lsa


@pytest.mark.parametrize("normaliser", ["none", "s_norm", "as_norm"])
def test_a_line_gives_the_normalised_score_of_a_pair(trials, normaliser):
    cohort = trials.targets[np.arange(5)]
    member = Member("a", HabitCounts(hours=True), normaliser, cohort=cohort)
    scores = all_scores(member, trials.queries, trials.targets)
    gallery, rows = member.opened(trials.queries, trials.targets, 32)
    raw = cosine(rows, gallery.rows, gallery.unit)
    for query, target in ((3, 4), (0, 0), (29, 1)):
        slope, offset = gallery.line(rows[query : query + 1], target, -1)
        normalised = slope * raw[query, target] + offset
        np.testing.assert_allclose(normalised, scores[query, target], atol=1e-5)
