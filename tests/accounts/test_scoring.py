"""Own weights and the calibration among neighbours."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from helpers.accounts import scoring
from helpers.accounts.encoder import ENOUGH, AuthorEncoder
from helpers.accounts.gallery import LINK_COSTS
from helpers.accounts.samples import distant_halves
from helpers.evaluation.calibration import (
    MAX_PRIOR,
    MIN_PRIOR,
    estimate_prior,
    fit_log_odds,
)


def test_distant_halves_are_the_first_and_the_last_posts(make_store):
    store = make_store([3, 8, 21, 200])
    first, last = distant_halves(store, 4, 32)
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


def test_log_odds_are_those_of_the_pairs_as_they_are():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(40_000, 2))
    log_odds = 1.5 * features[:, 0] - 0.5 * features[:, 1] - 3
    same = rng.random(len(features)) < 1 / (1 + np.exp(-log_odds))
    weights, intercept = fit_log_odds(features, same)
    np.testing.assert_allclose([*weights, intercept], [1.5, -0.5, -3], atol=0.1)
    weights, _ = fit_log_odds(features, same, np.array([1, 1e-6]))
    assert abs(weights[1]) < 1e-6 < weights[0], "a prior without spread keeps the weight at 0"
    with pytest.raises(ValueError, match="both are needed"):
        fit_log_odds(features, np.ones(len(features), bool))


@pytest.mark.parametrize("share", [0.02, 0.2, 0.45])
def test_the_estimated_prior_is_the_likeliest_one(share):
    rng = np.random.default_rng(2)
    has_target = rng.random(4000) < share
    mean = np.where(has_target, 2.0, -2.0)
    log_odds = rng.normal(mean, 2.0)  # log-likelihood ratios of two normals 4 apart, spread 2
    estimated = estimate_prior(log_odds)

    def loss(prior):
        return -np.log(1 - prior + prior * np.exp(log_odds)).sum()

    likeliest = minimize_scalar(loss, (0, 1), (0, 1), method="bounded").x
    assert estimated == pytest.approx(likeliest, abs=1e-3)
    assert estimated == pytest.approx(share, abs=0.03)


def test_an_estimated_prior_has_bounds():
    assert estimate_prior(np.full(50, -9.0)) == pytest.approx(MIN_PRIOR)
    assert estimate_prior(np.full(50, 9.0)) == pytest.approx(MAX_PRIOR)


def test_an_own_fit_ranks_and_is_bounded_by_its_accounts(encoder, mine):
    own = encoder.calibrated_on(mine.store, mine.hours)
    use = own.uses["gallery_hours"]
    assert {member["normaliser"] for member in use.members} == {"as_norm", "s_norm"}
    assert use.calibration.weights == [1.0], "the members' weights are those of log-odds"
    gallery = mine.gallery(own)
    ranking = gallery.rank(gallery.accounts(["newcomer"]), ["newcomer"], len(gallery))
    assert ranking.target[0] == "demo-0003"
    compared = len(gallery)
    lowest, highest = use.bounds(compared)
    assert highest == pytest.approx(np.log(use.accounts + 1) + np.log(compared - 1))
    assert ranking.llr.dropna().between(lowest, highest).all()


def test_without_own_weights_members_keep_theirs_among_each_other(encoder, mine):
    near = encoder.fusion(True)
    fitted = scoring.fit_gallery_scoring(near, mine.store, ENOUGH)
    for normaliser in ("as_norm", "s_norm"):
        weights = [
            member["weight"] for member in fitted.members if member["normaliser"] == normaliser
        ]
        shipped = np.array([member.weight for member in near.members])
        used = shipped > 0
        ratio = np.array(weights)[used] / shipped[used]
        np.testing.assert_allclose(ratio, ratio[0])


@pytest.mark.parametrize("own_weights", [False, True])
def test_scores_that_say_nothing_are_no_evidence(encoder, mine, monkeypatch, own_weights):
    first, last = distant_halves(mine.store, *scoring.HALF_POSTS)
    of_others = last[np.roll(np.arange(len(last)), 1)]
    monkeypatch.setattr(scoring, "distant_halves", lambda *_: (first, of_others))
    use = scoring.fit_gallery_scoring(encoder.fusion(True), mine.store, ENOUGH, own_weights)
    scores = np.array([-9.0, 0.0, 9.0])
    np.testing.assert_allclose(use.llr(scores, 16, 16, targets=use.accounts), 0, atol=1e-12)


def test_weights_below_0_in_sum_are_evidence_where_they_tell_accounts_apart(
    encoder, mine, monkeypatch
):
    # of Spanish posts the weight of s-norm was further below 0 than that of AS-norm above
    monkeypatch.setattr(scoring, "_fit", lambda features, *_: (np.array([2.1, -2.3]), 1.8))
    use = scoring.fit_gallery_scoring(encoder.fusion(True), mine.store, ENOUGH)
    assert sum(member["weight"] for member in use.members) == pytest.approx(-0.2)
    model = encoder.with_config("gallery_hours", use).model(True, True)
    first, last = distant_halves(mine.store, *scoring.HALF_POSTS)
    scores = model.score_matrix(first, last, scoring.MAX_TOKENS)
    assert (scores.diagonal() > np.median(scores, 1)).mean() > 0.8
    llr = use.llr(scores, 16, 16, targets=len(scores))
    assert llr.diagonal().max() > 0 > llr.diagonal().min()


def test_the_prior_of_few_queries_is_not_estimated(encoder, gallery):
    few = gallery.accounts(list(gallery.names[:3]))
    assert gallery.estimate_prior(few, list(gallery.names[:3])) == LINK_COSTS.prior
    everybody = gallery.estimate_prior(gallery.targets, list(gallery.names))
    assert MIN_PRIOR <= everybody < 0.3, "two of 41 accounts are one person's"


def test_nobody_is_linked_where_every_account_has_another_author(encoder, mine):
    gallery = mine.gallery(encoder).without_accounts(["newcomer"])
    prior = gallery.estimate_prior(gallery.targets, list(gallery.names))
    costs = LINK_COSTS.model_copy(update={"prior": prior})
    ranking = gallery.rank(gallery.targets, list(gallery.names), 1, costs)
    assert not ranking.linked.any()


def test_the_encoder_that_ships_joins_both_normalisations():
    encoder = AuthorEncoder.load("open-small")
    for use in ("gallery", "gallery_hours"):
        members = encoder.uses[use].members
        near = [member["weight"] for member in members if member["normaliser"] == "as_norm"]
        whole = [member["weight"] for member in members if member["normaliser"] == "s_norm"]
        assert min(near) >= 0 >= max(whole) and sum(near) > 1


@pytest.mark.parametrize(
    "gain, own_spread", [(2.0, scoring.WEIGHT_SPREADS[-1]), (0.8, scoring.WEIGHT_SPREADS[0])]
)
def test_own_weights_are_used_where_they_surely_rank_left_out_accounts_higher(gain, own_spread):
    # scores of the model, by AS-norm and by s-norm, and of two members; the first knows more
    features = np.random.default_rng(0).normal(size=(120, 30, 4))
    features[:, 0] += [2.0, 0.0, gain, 0.0]
    is_candidate = np.ones(features.shape[:2], bool)
    likelihoods = [
        log_softmax(scoring._left_out_log_odds(features, is_candidate, spread), 1)[:, 0].mean()
        for spread in scoring.WEIGHT_SPREADS
    ]
    assert np.argmax(likelihoods) == len(likelihoods) - 1, "likelihoods alone choose own weights"
    assert scoring._best_spread(features, is_candidate) == own_spread
