"""Systems: the scores, names and recorded rows of a comparison, against its parts."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from helpers.core.paths import Run
from helpers.core.results import read_results
from helpers.encoders.base import ChunkMean
from helpers.encoders.tfidf import TfidfEncoder
from helpers.evaluation.comparisons import (
    compare_links,
    compare_ranks,
    compare_verified,
    link_systems,
    rank_rows,
    rank_systems,
    verify_systems,
)
from helpers.evaluation.detection import PAPER
from helpers.evaluation.linking import LinkingConfig, linking_metrics, linking_trials, score_linking
from helpers.evaluation.lists import (
    WAYS,
    list_metrics,
    match_drawn_lists,
    match_systems,
    name_of_way,
)
from helpers.evaluation.matching import MatchConfig
from helpers.evaluation.models import (
    GalleryTfidf,
    Member,
    Model,
    as_model,
    fit_weights,
)
from helpers.evaluation.ranking import evaluate_ranking, ranking_differences, ranking_trials
from helpers.evaluation.second_accounts import (
    AccountList,
    record_second_accounts,
    second_account_metrics,
)
from helpers.evaluation.systems import Network, RowSystem, System
from helpers.evaluation.verification import evaluate_documents, verification_metrics
from helpers.tokens.samplers import AuthorSampler
from helpers.tokens.tokenizer import Bytes
from helpers.training.experiment import Experiment
from tests.factories import HabitCounts, one_token_samples

EXPERIMENT = Experiment.of(
    {
        "encoder": {"features": "TP"},
        "loss": {"name": "supcon"},
        "sampler": {},
        "training": {"steps": 1, "lr": 0.1},
    }
)


def network(name, encoder, seed=0):
    about = {"experiment": "", "seed": seed}
    return Network.of(name, SimpleNamespace(encoder=encoder, experiment=EXPERIMENT, about=about))


@pytest.fixture
def trials(make_store):
    return ranking_trials(make_store([40] * 30, topics=4, habits=True), posts=8)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    return Run("run")


def matrix(system, trials):
    return as_model(system.scorer).score_matrix(trials.queries, trials.targets)


def test_systems_score_as_their_parts_and_are_named_after_them(trials):
    counts = HabitCounts(hours=True)
    counting = System.counting("lsa", HabitCounts())
    stream = network("TP-supcon", counts)
    near = stream.normed("AS-norm")
    np.testing.assert_array_equal(
        matrix(near, trials),
        as_model(Member("", counts, "as_norm")).score_matrix(trials.queries, trials.targets),
    )
    cohort = trials.targets[np.arange(10)]
    by_cohort = Member("lsa", counting.scorer.encoder, "as_norm", cohort=cohort)
    np.testing.assert_array_equal(
        matrix(counting.normed("AS cohort", cohort), trials),
        as_model(by_cohort).score_matrix(trials.queries, trials.targets),
    )
    tfidf = System.counting("tfidf_subword", TfidfEncoder("tfidf_subword", Bytes()))
    encoders = [tfidf.normed(norm).scorer.encoder for norm in ("s-norm", "AS-norm")]
    assert isinstance(encoders[0], GalleryTfidf) and encoders[0] is encoders[1]
    assert tfidf.normed("AS cohort", cohort).scorer.encoder is tfidf.scorer.encoder
    members = {"lsa": counting.scorer, "stream": stream.scorer}
    fused = stream.sum_of([counting, stream], "Stream+LSA", trials)
    assert fused.shares == fit_weights(members, trials).shares
    equal = stream.sum_of([counting, stream], "Fusion", trials, 32, "s-norm", "equal weights")
    normed = {name: member.scorer for name, member in zip(members, (counting, stream))}
    normed = {name: Member(name, member.encoder, "s_norm") for name, member in normed.items()}
    expected = Model.fuse(normed).score_matrix(trials.queries, trials.targets)
    np.testing.assert_array_equal(matrix(equal, trials), expected)
    assert [(system.model, system.label) for system in (stream, near, fused, equal)] == [
        ("stream_TP-supcon", "Stream TP"),
        ("near_TP-supcon", "Stream TP, AS-norm"),
        ("fused_TP-supcon", "Stream+LSA TP"),
        ("equal_TP-supcon", "Fusion TP, equal weights"),
    ]
    assert stream.profiles == ["hours"]
    assert counting.normed("s-norm").label == "LSA-WCCN, s-norm"


def test_ranks_are_recorded_and_subtracted(files, trials):
    systems = [System.counting("lsa", HabitCounts()), network("TP", HabitCounts(hours=True))]
    trials.queries.store.meta["fingerprint"] = ""
    ranks = rank_systems(files, systems, "test", trials)
    rows = read_results(files).set_index(["model", "metric"])
    for system in systems:
        table, rank = evaluate_ranking(system.scorer, trials)
        pd.testing.assert_series_equal(ranks[system], rank)
        assert rows.value[system.model].to_dict() == table.value.to_dict()
    gains = compare_ranks(files, [systems[::-1]], ranks, split="test", data="")
    expected = ranking_differences(*[ranks[system] for system in systems[::-1]], resamples=2000)
    row = gains.iloc[0]
    assert row[["value", "low", "high"]].tolist() == expected.loc["MRR_difference"].tolist()
    assert (row.label, row.base, row.split) == ("Stream TP", "LSA-WCCN", "test")


def test_rows_of_a_table_are_ranked_by_their_own_trials(files, make_store):
    """Two sizes of samples; trained on single posts, a network averages their vectors."""
    store = make_store([40] * 30, topics=4, habits=True)
    store.meta["fingerprint"] = ""
    of_single = EXPERIMENT.model_copy(update={"sampler": AuthorSampler(max_posts=1)})
    systems = []
    for experiment, posts in ((of_single, 4), (EXPERIMENT, 8)):
        trained = SimpleNamespace(
            encoder=HabitCounts(), experiment=experiment, about={"experiment": ""}
        )
        trials = ranking_trials(store, posts)
        systems.append(RowSystem.of("khan2021 Table 3", ("1-8", posts), trained, trials))
    single, several = systems
    ranks = rank_rows(files, systems)
    _, averaged = evaluate_ranking(ChunkMean(HabitCounts()), single.trials)
    pd.testing.assert_series_equal(ranks[single], averaged)
    rows = read_results(files).query("metric == 'MRR' and protocol == 'khan2021 Table 3'")
    about = rows.set_index("model")[["label", "sample_size", "queries"]]
    assert about.loc["1-8 4"].tolist() == ["1-8", 4, 30] and about.sample_size["1-8 8"] == 8
    protocol = {"protocol": "khan2021 Table 3", "split": "test"}
    row = compare_ranks(files, [(several, single)], ranks, **protocol).iloc[0]
    assert row.better == (ranks[several] < ranks[single]).sum() and 0 <= row.sign_p <= 1
    recorded = read_results(files).query("base == '1-8 4' and metric == 'MRR_difference'")
    assert recorded.value.tolist() == [row.value] and set(recorded.protocol) == {row.protocol}


def test_links_are_recorded_and_trainings_of_one_system_averaged(files, make_store):
    store = make_store(np.random.default_rng(1).integers(20, 80, 40), topics=4, habits=True)
    config = LinkingConfig(
        topics=2, enrolled=5, accounts=12, min_query_posts=3, query_posts=6, min_target_posts=4
    )
    of_topics = linking_trials(store, config, (4, 1))
    first, second = HabitCounts(hours=True), HabitCounts()
    counting = System.counting("lsa", HabitCounts(hours=True))
    systems = [counting, network("TP", first), network("TP-seed1", second, seed=1)]
    measured = {"split": "test", "max_tokens": 32, "data": ""}
    costs = PAPER
    scored = link_systems(files, systems, of_topics, costs, **measured)
    parts = {model: part.query("target_posts == 4") for model, part in scored.items()}
    direct = [
        score_linking(encoder, of_topics).query("target_posts == 4") for encoder in (first, second)
    ]
    rows = read_results(files).set_index(["model", "metric"])
    assert rows.value["stream_TP", "EER"] == linking_metrics(direct[0]).value["EER"]
    gains = compare_links(files, systems, [counting], parts, costs, **measured)
    expected = linking_metrics(direct, base=[parts["lsa"]]).loc["EER_difference"]
    assert gains[["model", "base"]].to_numpy().tolist() == [["stream_TP", "LSA-WCCN"]]
    assert gains.iloc[0][["value", "low", "high"]].tolist() == expected.tolist()
    row = read_results(files).query("base == 'lsa' and metric == 'EER_difference'").iloc[0]
    assert pd.isna(row.seed)


def test_verified_pairs_are_recorded_once_a_training_and_subtracted(files, make_store):
    """Two trainings have one name; each keeps its pairs, its rows and its fields."""
    store = make_store([6] * 10, topics=4, habits=True)
    listed = pd.DataFrame(combinations(range(60), 2), columns=["first", "second"])
    listed["same_topic"] = listed["first"] % 2 == 0
    pairs = {"dev": listed[1::5], "test": listed[::5]}
    documents = SimpleNamespace(stores=dict.fromkeys(pairs, store), raw=None)
    counting = System.named("lsa", HabitCounts(hours=True), seed=1)
    systems = [counting, *(System.named("net", HabitCounts(), seed=seed) for seed in (1, 2))]
    measured = {"protocol": "verification", "split": "test", "data": ""}
    rule = {"definition": "pan20", "seed": 3}
    scored = verify_systems(
        files, systems, documents, pairs, 16, **rule, decision="shift", **measured
    )
    rows = read_results(files).set_index(["model", "seed", "metric"])
    for system in systems:
        table, direct = evaluate_documents(
            system.scorer, documents, pairs, 16, decision="shift", **rule
        )
        assert scored[system]["test"].score.tolist() == direct["test"].score.tolist()
        ends = rows.loc[system.model, system.training["seed"]]
        assert ends.low[table.index].equals(table.low.rename_axis("metric"))
        assert set(ends.queries) == {354} and set(ends.label) == {system.label}
    gains = compare_verified(files, [(systems[2], counting)], scored, **rule, **measured)
    sides = [scored[system]["test"] for system in (systems[2], counting)]
    expected = verification_metrics(*sides, **rule)
    assert gains.iloc[0][["value", "low", "high"]].tolist() == expected.iloc[0].tolist()
    row = read_results(files).query("base == 'lsa' and metric == 'hardest_AUC_difference'").iloc[0]
    assert (row.model, row.seed, row.queries) == ("net", 2, 354)
    assert row.low == expected.low["hardest_AUC_difference"]
    assert (gains.label[0], gains.base[0]) == ("net", "LSA-WCCN")


def test_each_system_answers_lists_in_as_many_ways_as_it_can(files):
    rng = np.random.default_rng(0)
    systems = [System.named(name, HabitCounts()) for name in ("a", "b")]
    scores = {system.model: rng.normal(size=(30, 30)) + 2 * np.eye(30) for system in systems}
    line = MatchConfig(2.0, -3.0)
    match_systems(files, systems, scores, {"a": line}, split="test")
    rows = read_results(files).query("base == ''")
    assert set(rows.model) == {"b", *(name_of_way("a", way) for way in WAYS)}
    answers = match_drawn_lists(scores["a"], line, 1.0).answers
    for way in ("alone", "matched"):
        own = rows[rows.model == name_of_way("a", way)].set_index("metric").value
        assert own.to_dict() == list_metrics(answers[way]).value.to_dict()


def test_second_accounts_and_gains_are_recorded(files):
    person = np.arange(40) // 2
    samples = one_token_samples(np.arange(40))
    accounts = AccountList(samples, samples, person, np.array([""] * 40, object))
    systems = [System.named(name, HabitCounts()) for name in ("a", "b")]
    rng = np.random.default_rng(0)
    scores = {}
    for system in systems:
        noise = rng.normal(size=(40, 40))
        scores[system.model] = np.float32(noise + noise.T + accounts.same)
    asked = {"protocol": "second_accounts", "split": "all"}
    record_second_accounts(files, systems, [tuple(systems)], scores, accounts, **asked)
    rows = read_results(files).set_index(["model", "base", "metric"])
    expected = second_account_metrics(scores["b"], accounts)
    assert rows.value["b", ""].to_dict() == expected.value.to_dict()
    gain = second_account_metrics(scores["a"], accounts, scores["b"])
    assert rows.low["a", "b"].to_dict() == gain.low.to_dict()
    assert (rows.queries == 40).all() and (rows.targets == 40).all()


def test_a_sum_is_normalised_by_its_members(trials):
    counting = System.counting("lsa", HabitCounts())
    fused = network("TP", HabitCounts(hours=True)).sum_of([counting], "Stream+LSA", trials)
    with pytest.raises(ValueError, match="is a sum: its members are normalised"):
        fused.normed("s-norm")
