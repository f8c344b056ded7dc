"""Models and fusions: scores against the weighted mean; weights against trying all."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, sparse

from helpers.evaluation import models as model_module
from helpers.evaluation.models import Model, as_model, fit_weights
from helpers.evaluation.ranking import evaluate_ranking
from helpers.evaluation.trials import Trials
from tests.factories import LookUp, one_token_samples, unit_rows

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
