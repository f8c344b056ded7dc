"""Models and fusions: scores against the weighted mean; weights against trying all."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, sparse

from helpers.evaluation import models as model_module
from helpers.evaluation.models import (
    Member,
    Model,
    as_model,
    fit_weights,
    member_sets,
    with_as_norm,
    with_s_norm,
)
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
    return as_model(model).score_matrix(trials.queries, trials.targets)


MEMBERS = {"a": member(0, 0.8), "b": member(1, 0.2, 40, thin=True), "c": member(2, 0.1, 3)}


def weights_of(model):
    return {member.name: member.weight for member in model.members}


def test_a_model_embeds_targets_and_queries_once():
    encoder = member(5)
    model = as_model(encoder)
    for _ in range(3):
        scores(model)
    assert encoder.calls == 30 + 30
    assert model.score_matrix(TRIALS.targets, TRIALS.targets).diagonal().tolist() == [1] * 30
    assert encoder.calls == 30 + 30
    half = Trials(TRIALS.queries[np.arange(15)], TRIALS.targets)
    assert np.array_equal(scores(model, half), scores(encoder, half))


def weighted(systems, weights):
    """The weighted mean of systems."""
    members = Model.fuse(systems).members
    return Model.mean([replace(part, weight=w) for part, w in zip(members, weights, strict=True)])


def test_members_of_several_models_embed_once():
    encoder = member(5)
    shared = Member("shared", encoder, "s_norm")
    first = weighted({"shared": shared, "a": MEMBERS["a"]}, [1, 2])
    second = Model.fuse({"renamed": shared})
    np.testing.assert_array_equal(scores(second), scores(shared))
    scores(first)
    assert encoder.calls == 30 + 30


def test_fused_scores_are_the_weighted_mean_of_sparse_and_dense_members():
    parts = {
        name: dense(model)[:30].astype(float) @ dense(model)[30:].T
        for name, model in MEMBERS.items()
    }
    model = weighted(MEMBERS, [2, 1, 1])
    assert weights_of(model) == {"a": 0.5, "b": 0.25, "c": 0.25}
    wanted = parts["a"] / 2 + parts["b"] / 4 + parts["c"] / 4
    np.testing.assert_allclose(scores(model), wanted, atol=2e-6)
    pairs = np.array([[0, 0], [3, 20], [29, 1]])
    listed = model.pair_scores(TRIALS.queries, TRIALS.targets, pairs)
    np.testing.assert_allclose(listed, wanted[tuple(pairs.T)], atol=2e-6)


def test_a_member_without_weight_is_not_asked():
    silent = member(7)
    model = weighted({"a": MEMBERS["a"], "silent": silent}, [1, 0])
    assert (scores(model) == scores(MEMBERS["a"])).all() and silent.calls == 0


def test_members_of_other_reference_targets_share_no_gallery():
    """Of one encoder and one cache: what was measured against all is not what half of them give."""
    whole = Member("whole", MEMBERS["a"], "s_norm")
    reference = np.arange(len(TRIALS.targets)) % 2 == 0
    half = replace(whole, reference=reference)
    fresh = Member("half", MEMBERS["a"], "s_norm", reference=reference)
    assert (scores(Model.fuse({"whole": whole})) != scores(Model.fuse({"half": half}))).any()
    np.testing.assert_array_equal(
        scores(Model.fuse({"half": half})), scores(Model.fuse({"half": fresh}))
    )


def test_fitted_weights_are_those_of_the_most_likely_own_targets():
    """Against a slow search of the same likelihood."""
    model = fit_weights(MEMBERS, TRIALS)
    fitted, told = weights_of(model), model.shares
    assert sum(fitted.values()) == pytest.approx(1) and sum(told.values()) == pytest.approx(1)
    own = {name: scores(model).astype(float) for name, model in MEMBERS.items()}
    spread = {name: part.std(ddof=1) for name, part in own.items()}
    apart = np.stack([own[name] / spread[name] for name in MEMBERS])

    def loss(shares):
        mixed = np.tensordot(shares, apart, 1)
        return np.mean(
            np.log(np.exp(mixed).sum(1)) - mixed.diagonal()
        ) + model_module.RIDGE * np.sum(shares**2)

    slow = (
        optimize.minimize(lambda root: loss(root**2), np.ones(3), method="Nelder-Mead", tol=1e-9).x
        ** 2
    )
    assert list(told.values()) == pytest.approx(slow / slow.sum(), abs=2e-3)
    weights = np.array([told[name] / spread[name] for name in MEMBERS])
    assert list(fitted.values()) == pytest.approx(weights / weights.sum())
    alone = [
        evaluate_ranking(member, TRIALS, resamples=0)[0].value["MRR"] for member in MEMBERS.values()
    ]
    assert evaluate_ranking(model, TRIALS, resamples=0)[0].value["MRR"] > max(alone)


def test_a_member_that_says_nothing_or_the_contrary_has_no_weight():
    noise = {f"noise {seed}": member(seed) for seed in range(20, 24)}
    wrong = LookUp(np.concatenate([-dense(MEMBERS["a"])[:30], dense(MEMBERS["a"])[30:]]))
    shares = fit_weights(MEMBERS | noise | {"wrong": wrong}, TRIALS).shares
    assert shares["wrong"] == 0 and shares["a"] > 3 * max(shares[name] for name in noise)


def test_few_queries_choose_the_weights(monkeypatch):
    monkeypatch.setattr(model_module, "MAX_QUERIES", 10)
    models = {name: member(seed, 0.5) for seed, name in enumerate("xy")}
    first = Trials(TRIALS.queries[:10], TRIALS.targets[:10])
    of_all, of_first = (fit_weights(models, trials) for trials in (TRIALS, first))
    assert weights_of(of_all) == weights_of(of_first) and of_all.shares == of_first.shares
    assert models["x"].calls == 40


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -1], "sum must be above 0"),
        ([0, 0], "sum must be above 0"),
        ([1, np.nan], "fusion weights"),
    ],
)
def test_weights_without_sense_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        weighted({name: MEMBERS[name] for name in "ab"}, weights)


def test_nothing_to_compare_and_vectors_that_are_no_numbers_are_refused():
    for model in (MEMBERS["a"], Model.fuse({"a": MEMBERS["a"]})):
        with pytest.raises(
            ValueError, match="ranks need a query and targets of two authors, not 0 queries"
        ):
            evaluate_ranking(model, Trials(SAMPLES[:0], SAMPLES[30:]))
        for nothing in (Trials(SAMPLES[:0], TRIALS.targets), Trials(TRIALS.queries, SAMPLES[:0])):
            with pytest.raises(ValueError, match="no samples to embed: an empty gallery, or no q"):
                scores(model, nothing)
        with pytest.raises(ValueError, match="ranks need .* not 1 queries and targets of 1"):
            evaluate_ranking(model, Trials(SAMPLES[:1], SAMPLES[30:31]))
    with pytest.raises(ValueError, match="ranks need"):
        fit_weights(MEMBERS, Trials(SAMPLES[:0], SAMPLES[30:]))
    for make in (Model.fuse, lambda members: fit_weights(members, TRIALS)):
        with pytest.raises(ValueError, match="fusion"):
            make({})
    for bad, thin in [(bad, thin) for bad in (np.nan, np.inf, -np.inf) for thin in (False, True)]:
        rows = unit_rows(60, 6)
        rows[37, 2] = bad
        broken = LookUp(sparse.csr_matrix(rows) if thin else rows)
        with pytest.raises(ValueError, match="LookUp: the vector of sample 7 is not finite"):
            scores(broken, Trials(TRIALS.targets, TRIALS.targets))


def test_sums_of_a_stream_have_the_profiles_that_its_letters_allow():
    names = ("tfidf_word", "minilm", "lsa", "lsa_masked", "hours", "topics")
    raw = {name: member(number) for number, name in enumerate(names)}
    normed = {name: with_s_norm(encoder) for name, encoder in raw.items()}
    near = {name: with_as_norm(encoder) for name, encoder in raw.items()}
    stream = member(9)
    wanted = {
        "T": ["lsa"],
        "TP": ["lsa", "hours"],
        "TPS": ["lsa", "hours", "topics"],
    }
    for features, partners in wanted.items():
        late, fused, nearest = member_sets(stream, features, raw, normed, near)
        assert late == {name: raw[name] for name in partners} | {"stream": stream}
        every = ["tfidf_word", "minilm", "lsa", "lsa_masked", *partners[1:], "stream"]
        assert list(fused) == list(nearest) == every
        assert {part.normaliser for part in fused.values()} == {"s_norm"}
        assert {part.normaliser for part in nearest.values()} == {"as_norm"}
        assert fused["lsa"] is normed["lsa"] and nearest["stream"].encoder is stream
