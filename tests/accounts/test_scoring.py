"""The calibration among neighbours, on drawn lists and on own accounts."""

import numpy as np
import pytest
import torch
import torch.nn.functional as nnf
from scipy.optimize import minimize_scalar
from scipy.special import logit

from helpers.accounts import habits, scoring
from helpers.accounts.gallery import LINK_COSTS
from helpers.accounts.samples import halves, spread_posts
from helpers.evaluation.calibration import (
    BELIEVED_QUERIES,
    MAX_PRIOR,
    MIN_PRIOR,
    USUAL_PRIOR,
    estimate_prior,
)


def test_distant_halves_are_the_first_and_the_last_posts(make_store):
    store = make_store([3, 8, 21, 200])
    first, last = halves(store, 4, 32)
    assert first.authors.tolist() == last.authors.tolist() == [1, 2, 3]
    assert first.count.tolist() == last.count.tolist() == [4, 10, 32]
    assert (first.first - store.author_offsets[first.authors]).tolist() == [0, 0, 0]
    ends = store.author_offsets[last.authors + 1]
    assert (last.first + last.count == ends).all()


def test_candidates_are_the_nearest_but_those_that_may_be_one_person(monkeypatch):
    monkeypatch.setattr(scoring, "NEAREST_OTHERS", 3)
    scores = np.random.default_rng(0).normal(size=(9, 9)).astype(np.float32)
    scores[2, 5] = scores[5, 2] = 9  # each other's nearest
    candidates = scoring._candidates(scores)
    for account in range(9):
        others = [other for other in range(9) if other != account]
        ranked = sorted(others, key=lambda other: -scores[account, other])[:3]
        both_ways = scores + scores.T
        nearest = max(others, key=lambda other: both_ways[account, other])
        back = max(
            (other for other in range(9) if other != nearest),
            key=lambda other: both_ways[nearest, other],
        )
        if back == account:
            ranked = [-1 if other == nearest else other for other in ranked]
        assert candidates[account].tolist() == [account, *ranked]
    assert -1 in candidates[2] and -1 in candidates[5]


@pytest.mark.parametrize("share", [0.02, 0.45])
def test_the_estimated_prior_is_the_likeliest_one(share):
    rng = np.random.default_rng(2)
    has_target = rng.random(4000) < share
    mean = np.where(has_target, 2.0, -2.0)
    log_odds = rng.normal(mean, 2.0)  # log-likelihood ratios of two normals 4 apart, spread 2
    estimated = estimate_prior(log_odds)

    def loss(prior):
        believed = USUAL_PRIOR * np.log(prior) + (1 - USUAL_PRIOR) * np.log(1 - prior)
        likelihood = np.log(1 - prior + prior * np.exp(log_odds)).sum()
        return -likelihood - BELIEVED_QUERIES * believed

    likeliest = minimize_scalar(loss, (0, 1), (0, 1), method="bounded").x
    assert estimated == pytest.approx(likeliest, abs=1e-3)
    assert estimated == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("queries", [40, 100, 500])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.2])
def test_the_estimated_prior_of_few_queries_errs_little(queries, share):
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        has_target = np.arange(queries) < share * queries
        log_odds = rng.normal(np.where(has_target, 5.0, -4.0), 2.0)
        errors.append(logit(estimate_prior(log_odds)) - logit(max(share, MIN_PRIOR)))
    assert -0.5 < np.mean(errors) < 1.8, "towards the usual prior, and less with more queries"
    assert np.mean(np.abs(errors)) < {40: 1.8, 100: 1.0, 500: 0.3}[queries]


def test_an_estimated_prior_has_bounds():
    assert estimate_prior(np.full(500, -9.0)) == pytest.approx(MIN_PRIOR)
    assert estimate_prior(np.full(50, 9.0)) == pytest.approx(MAX_PRIOR)


def test_few_accounts_move_the_line_less(encoder, mine):
    first, last = halves(mine.store, *scoring.OWN_POSTS)
    scores = encoder.model(True, mine.hours).score_matrix(first, last, 128) * 3
    slopes = []
    for count in (2, len(first)):
        rows = np.arange(count)
        fitted = encoder.calibrated_by(scores, first, last, rows, mine.hours)
        own, shipped = (made.uses["gallery_hours"].calibration for made in (fitted, encoder))
        slopes.append(own.weights[0] / shipped.weights[0])
        assert fitted.uses["gallery_hours"].members == encoder.uses["gallery_hours"].members
    assert abs(slopes[0] - 1) < abs(slopes[1] - 1)


def test_scores_that_say_nothing_are_no_evidence(encoder, mine):
    first, last = halves(mine.store, *scoring.OWN_POSTS)
    of_others = last[np.roll(np.arange(len(last)), 1)]
    scores = encoder.model(True, mine.hours).score_matrix(first, of_others, 128)
    rows = np.arange(len(first))
    fitted = encoder.calibrated_by(scores, first, of_others, rows, mine.hours)
    own = fitted.uses["gallery_hours"]
    scores = np.array([-9.0, 0.0, 9.0])
    np.testing.assert_allclose(own.llr(scores, 16, 16, targets=len(first)), 0, atol=1e-12)


def test_the_prior_of_few_queries_is_not_estimated(encoder, gallery):
    few = gallery.accounts(list(gallery.names[:3]))
    assert gallery.estimate_prior(few, list(gallery.names[:3])) == LINK_COSTS.prior
    everybody = gallery.estimate_prior(gallery.targets, list(gallery.names))
    assert MIN_PRIOR <= everybody < 0.3, "two of 41 accounts are one person's"


def test_nobody_is_linked_where_every_account_has_another_author(encoder, mine):
    others = np.flatnonzero(mine.names != "newcomer")
    gallery = mine.gallery(spread_posts(mine.store, others))
    prior = gallery.estimate_prior(gallery.targets, list(gallery.names))
    costs = LINK_COSTS.model_copy(update={"prior": prior})
    ranking = gallery.rank(gallery.targets, list(gallery.names), 1, costs)
    assert not ranking.linked.any()


def test_likeness_equals_a_loop():
    rng = np.random.default_rng(5)
    older, newer, target_older, target_newer = (
        nnf.normalize(torch.rand(count, 6) + 0.1) for count in (4, 4, 3, 3)
    )
    expected = np.empty((4, 3))
    for query, target in np.ndindex(4, 3):
        across = max(older[query] @ target_newer[target], newer[query] @ target_older[target])
        own = min(older[query] @ newer[query], target_older[target] @ target_newer[target])
        expected[query, target] = np.log(float(across / own))
    sides = ((older, newer), (target_older, target_newer))
    np.testing.assert_allclose(habits.log_likeness(*sides), expected, atol=1e-5)
    pairs = rng.integers(0, 3, (5, 2))
    of_pairs = habits.log_likeness(*sides, pairs)
    np.testing.assert_allclose(of_pairs, expected[tuple(pairs.T)], atol=1e-5)


def test_likeness_adds_nothing_to_accounts_with_few_posts(gallery, monkeypatch):
    posts = habits.fewer_posts(gallery.targets, gallery.targets)
    assert posts.tolist() == [
        [min(a, b) for b in gallery.targets.count] for a in gallery.targets.count
    ]
    monkeypatch.setattr(habits, "FEW_POSTS", np.median(posts))
    of_few = posts < habits.FEW_POSTS
    term = habits.likeness_term(gallery, gallery.targets)
    assert term[of_few].max() <= 0 < term[~of_few].max()
