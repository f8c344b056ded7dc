"""Models: normalised scores against a loop over pairs, fused ones against the weighted mean."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, sparse

from helpers.encoders.tfidf import TfidfEncoder
from helpers.evaluation import lists
from helpers.evaluation import models as model_module
from helpers.evaluation import scores as score_norm
from helpers.evaluation.models import (
    Member,
    Model,
    as_model,
    fit_weights,
)
from helpers.evaluation.ranking import evaluate_ranking, ranking_trials
from helpers.evaluation.scores import LEAST_SPREAD
from helpers.evaluation.systems import System
from helpers.evaluation.trials import Trials
from helpers.tokens.tokenizer import Bytes
from tests.factories import HabitCounts, LookUp, one_token_samples, unit_rows

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


def normed_member(encoder, norm="s-norm"):
    return System.counting("lsa", encoder).normed_scorer(norm)


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
    scores = all_scores(normed_member(MODEL, "AS-norm"), *sides)
    expected = score_norm.neighbour_norm(all_scores(normed_member(MODEL), *sides))
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
    assert (all_scores(normed_member(constant), *sides) == 0).all()
    model = normed_member(MODEL)
    both = Model.fuse({"a": model, "b": normed_member(constant)})
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
    np.testing.assert_array_equal(all_scores(normed_member(fitted), *sides), expected)
    assert normed_member(MODEL).encoder is MODEL, "only what counts is fitted again"


SAMPLES = one_token_samples(np.arange(60) % 30)
TRIALS = Trials(SAMPLES[:30], SAMPLES[30:])


def member(seed, help=0.0, dim=6, kind=np.asarray):
    """Rows of both samples of an author that are alike by ``help``."""
    rows = unit_rows(60, dim, seed=seed)
    rows[30:] += help * rows[:30]
    return LookUp(kind(rows / np.linalg.norm(rows, axis=1, keepdims=True)))


def scores(model, trials=TRIALS):
    return as_model(model).score_matrix(trials.queries, trials.targets)


MEMBERS = {"a": member(0, 0.8), "b": member(1, 0.2, 40, sparse.csr_matrix), "c": member(2, 0.1, 3)}


def weights_of(model):
    return {member.name: member.weight for member in model.members}


def weighted(systems, weights):
    members = Model.fuse(systems).members
    return Model.mean([replace(part, weight=w) for part, w in zip(members, weights, strict=True)])


def test_fused_scores_are_the_weighted_mean_of_sparse_and_dense_members():
    silent = member(7)
    model = weighted(MEMBERS | {"silent": silent}, [2, 1, 1, 0])
    assert weights_of(model) == {"a": 0.5, "b": 0.25, "c": 0.25, "silent": 0}
    wanted = np.zeros((30, 30))
    for name, encoder in MEMBERS.items():
        rows = sparse.csr_matrix(encoder.rows).toarray().astype(float)
        wanted += weights_of(model)[name] * rows[:30] @ rows[30:].T
    np.testing.assert_allclose(scores(model), wanted, atol=2e-6)
    pairs = np.array([[0, 0], [3, 20], [29, 1]])
    listed = model.pair_scores(TRIALS.queries, TRIALS.targets, pairs)
    np.testing.assert_allclose(listed, wanted[tuple(pairs.T)], atol=2e-6)
    assert silent.calls == 0, "a member without weight is not asked"


def test_fitted_weights_are_those_of_the_most_likely_own_targets():
    """Against a slow search of the same likelihood."""
    model = fit_weights(MEMBERS, TRIALS)
    assert sum(weights_of(model).values()) == pytest.approx(1)
    own = np.stack([scores(encoder).astype(float) for encoder in MEMBERS.values()])
    spread = own.std((1, 2), ddof=1)
    apart = own / spread[:, None, None]

    def loss(shares):
        mixed = np.tensordot(shares, apart, 1)
        likelihood = np.mean(np.log(np.exp(mixed).sum(1)) - mixed.diagonal())
        return likelihood + model_module.RIDGE * np.sum(shares**2)

    found = optimize.minimize(lambda x: loss(x**2), np.ones(3), method="Nelder-Mead", tol=1e-9)
    shares = np.array([*model.shares.values()])
    assert shares == pytest.approx(found.x**2 / np.sum(found.x**2), abs=2e-3)
    weights = shares / spread
    assert [*weights_of(model).values()] == pytest.approx(weights / weights.sum())
    mrr = [
        evaluate_ranking(system, TRIALS, resamples=0)[0].value["MRR"]
        for system in (model, *MEMBERS.values())
    ]
    assert mrr[0] > max(mrr[1:])


def test_a_member_that_says_nothing_or_the_contrary_has_no_weight():
    noise = {f"noise {seed}": member(seed) for seed in range(20, 24)}
    rows = MEMBERS["a"].rows
    wrong = LookUp(np.concatenate([-rows[:30], rows[30:]]))
    shares = fit_weights(MEMBERS | noise | {"wrong": wrong}, TRIALS).shares
    assert shares["wrong"] == 0 and shares["a"] > 3 * max(shares[name] for name in noise)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_vectors_that_are_no_numbers_are_refused(kind):
    rows = unit_rows(60, 6)
    rows[37, 2] = np.nan
    with pytest.raises(ValueError, match="LookUp: the vector of sample 7 is not finite"):
        scores(LookUp(kind(rows)), Trials(TRIALS.targets, TRIALS.targets))
