"""Galleries and fusions: scores of several models against the weighted mean; weights against trying all."""

import numpy as np
import pytest
from scipy import optimize, sparse

from helpers.evaluation import fusion
from helpers.evaluation.fusion import Fusion, fit_weights
from helpers.evaluation.gallery import Gallery, open_gallery
from helpers.evaluation.ranking import evaluate_ranking
from helpers.evaluation.trials import Trials
from tests.factories import LookUp, one_token_samples, unit_rows

SAMPLES = one_token_samples(np.arange(60) % 30)
TRIALS = Trials(SAMPLES[:30], SAMPLES[30:])


def member(seed, help=0.0, dim=6, thin=False):
    """Rows of both samples of an author that are alike by ``help``."""
    rows = unit_rows(60, dim, seed=seed)
    rows[30:] += help * rows[:30]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return LookUp(sparse.csr_matrix(rows) if thin else rows)


def dense(model):
    return model.rows.toarray() if sparse.issparse(model.rows) else model.rows


def scores(model, trials=TRIALS):
    return np.concatenate(
        [block.copy() for _, block in open_gallery(model, trials.targets).scores(trials.queries)]
    )


MEMBERS = {"a": member(0, 0.8), "b": member(1, 0.2, 40, thin=True), "c": member(2, 0.1, 3)}


def test_a_gallery_embeds_its_targets_and_the_last_queries_once():
    model = member(5)
    gallery = Gallery(model, TRIALS.targets)
    for _ in range(3):
        list(gallery.scores(TRIALS.queries))
    assert model.calls == 30 + 30
    assert (
        np.concatenate([block.copy() for _, block in gallery.scores(TRIALS.targets)])
        .diagonal()
        .tolist()
        == [1] * 30
    )
    assert model.calls == 30 + 30
    half = TRIALS.queries[np.arange(15)]
    assert np.array_equal(
        *(next(one.scores(half))[1].copy() for one in (gallery, Gallery(model, TRIALS.targets)))
    )


@pytest.mark.parametrize("nested", [False, True])
def test_fused_scores_are_the_weighted_mean_of_sparse_and_dense_members(nested):
    parts = {
        name: dense(model)[:30].astype(float) @ dense(model)[30:].T
        for name, model in MEMBERS.items()
    }
    model = Fusion(MEMBERS, {"a": 2, "b": 1, "c": 1})
    if nested:
        both = Fusion({name: MEMBERS[name] for name in "ab"}, {"a": 2, "b": 1})
        model = Fusion({"both": both, "c": MEMBERS["c"]}, {"both": 3, "c": 1})
    wanted = parts["a"] / 2 + parts["b"] / 4 + parts["c"] / 4
    np.testing.assert_allclose(scores(model), wanted, atol=2e-6)
    pairs = np.array([[0, 0], [3, 20], [29, 1]])
    listed = open_gallery(model, TRIALS.targets).pair_scores(TRIALS.queries, pairs)
    np.testing.assert_allclose(listed, wanted[tuple(pairs.T)], atol=2e-6)


def test_a_member_without_weight_is_not_asked():
    silent = member(7)
    model = Fusion({"a": MEMBERS["a"], "silent": silent}, {"a": 1, "silent": 0})
    assert (scores(model) == scores(MEMBERS["a"])).all() and silent.calls == 0


def test_fitted_weights_are_those_of_the_most_likely_own_targets():
    """Against a slow search of the same likelihood."""
    fitted, told = fit_weights(MEMBERS, TRIALS)
    assert sum(fitted.values()) == pytest.approx(1) and sum(told.values()) == pytest.approx(1)
    own = {name: scores(model).astype(float) for name, model in MEMBERS.items()}
    spread = {name: part.std(ddof=1) for name, part in own.items()}
    apart = np.stack([own[name] / spread[name] for name in MEMBERS])

    def loss(shares):
        mixed = np.tensordot(shares, apart, 1)
        return np.mean(np.log(np.exp(mixed).sum(1)) - mixed.diagonal()) + fusion.RIDGE * np.sum(
            shares**2
        )

    slow = (
        optimize.minimize(lambda root: loss(root**2), np.ones(3), method="Nelder-Mead", tol=1e-9).x
        ** 2
    )
    assert list(told.values()) == pytest.approx(slow / slow.sum(), abs=2e-3)
    weights = np.array([told[name] / spread[name] for name in MEMBERS])
    assert list(fitted.values()) == pytest.approx(weights / weights.sum())
    model = Fusion.fit(MEMBERS, TRIALS)
    assert model.weights == pytest.approx(fitted) and model.shares == pytest.approx(told)
    alone = [
        evaluate_ranking(member, TRIALS, resamples=0)[0].value["MRR"] for member in MEMBERS.values()
    ]
    assert evaluate_ranking(model, TRIALS, resamples=0)[0].value["MRR"] > max(alone)


def test_a_member_that_says_nothing_or_the_contrary_has_no_weight():
    noise = {f"noise {seed}": member(seed) for seed in range(20, 24)}
    wrong = LookUp(np.concatenate([-dense(MEMBERS["a"])[:30], dense(MEMBERS["a"])[30:]]))
    shares = fit_weights(MEMBERS | noise | {"wrong": wrong}, TRIALS)[1]
    assert shares["wrong"] == 0 and shares["a"] > 3 * max(shares[name] for name in noise)


def test_few_queries_choose_the_weights(monkeypatch):
    monkeypatch.setattr(fusion, "MAX_QUERIES", 10)
    models = {name: member(seed, 0.5) for seed, name in enumerate("xy")}
    first = Trials(TRIALS.queries[:10], TRIALS.targets[:10])
    assert fit_weights(models, TRIALS) == fit_weights(models, first)
    assert models["x"].calls == 40


def test_weights_without_sense_are_refused():
    for weights, message in (
        ({"a": 1}, "fusion of a, b has weights for a"), ({"a": 1, "b": -1}, "none below 0"),
        ({"a": 0, "b": 0}, "and one above"), ({"a": 1, "b": np.nan}, "fusion weights"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            Fusion({name: MEMBERS[name] for name in "ab"}, weights)


def test_nothing_to_compare_and_vectors_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="the gallery is empty: there are no targets"):
        Gallery(MEMBERS["a"], SAMPLES[:0])
    for model in (MEMBERS["a"], Fusion({"a": MEMBERS["a"]}, {"a": 1})):
        with pytest.raises(
            ValueError, match="ranks need a query and targets of two authors, not 0 queries"
        ):
            evaluate_ranking(model, Trials(SAMPLES[:0], SAMPLES[30:]))
        with pytest.raises(
            ValueError, match="no samples to embed: an empty gallery, or no queries"
        ):
            list(open_gallery(model, TRIALS.targets).scores(SAMPLES[:0]))
        with pytest.raises(ValueError, match="ranks need .* not 1 queries and targets of 1"):
            evaluate_ranking(model, Trials(SAMPLES[:1], SAMPLES[30:31]))
    with pytest.raises(ValueError, match="ranks need"):
        fit_weights(MEMBERS, Trials(SAMPLES[:0], SAMPLES[30:]))
    for members in (lambda: Fusion({}, {}), lambda: fit_weights({}, TRIALS)):
        with pytest.raises(ValueError, match="fusion"):
            members()
    for bad, thin in [(bad, thin) for bad in (np.nan, np.inf, -np.inf) for thin in (False, True)]:
        rows = unit_rows(60, 6)
        rows[37, 2] = bad
        broken = LookUp(sparse.csr_matrix(rows) if thin else rows)
        with pytest.raises(
            ValueError, match=r"LookUp: the vector of sample 7 \(author 7\) is not finite"
        ):
            Gallery(broken, TRIALS.targets)
