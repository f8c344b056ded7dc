"""Second accounts: every number against a loop over pairs."""

import numpy as np
import pandas as pd
import pytest

from helpers.evaluation import second_accounts
from helpers.evaluation.models import Member, Model
from helpers.evaluation.scores import neighbour_norm
from helpers.evaluation.second_accounts import (
    METRICS,
    AccountList,
    account_list,
    score_list,
    second_account_metrics,
)
from tests.factories import HabitCounts, one_token_samples


def people_of(person, surname=None):
    names = [f"a{number:03d}" for number in range(len(person))]
    surname = surname or [""] * len(person)
    return pd.DataFrame({"author": names, "person": person, "surname": surname})


def accounts_of(person, surname=None):
    samples = one_token_samples(np.arange(len(person)))
    surname = np.array(surname or [""] * len(person), object)
    return AccountList(samples, samples, np.asarray(person), surname)


@pytest.fixture
def store(make_store, monkeypatch):
    store = make_store([40, 20, 9, 7, 40, 33, 12], habits=True)
    monkeypatch.setattr(
        type(store), "author_names", lambda self: [f"a{number:03d}" for number in range(7)]
    )
    return store


def random_scores(count, seed=0):
    scores = np.random.default_rng(seed).normal(size=(count, count)).astype(np.float32)
    return scores + scores.T


def naive_metrics(scores, accounts, best_pairs, copies):
    """The metrics of a list in which every person stands as often as ``copies`` says."""
    person, surname = accounts.person, accounts.surname
    ranks, partner = [], {}
    for one in range(len(person)):
        rivals = []
        for other in set(range(len(person))) - {one}:
            is_same = person[one] == person[other]
            if is_same or not surname[one] or surname[one] != surname[other]:
                rivals.append(other)
        highest = max(scores[one, other] for other in rivals)
        best = [other for other in rivals if scores[one, other] == highest]
        partner[one] = best[0] if len(best) == 1 else None
        own = [scores[one, other] for other in rivals if person[other] == person[one]]
        wrong = [scores[one, other] for other in rivals if person[other] != person[one]]
        if own:
            rank = 1 + sum(score >= max(own) for score in wrong)
            ranks += [rank] * int(copies[person[one]])
    pairs = []
    for one, other in partner.items():
        if other is not None and one < other and partner[other] == one:
            is_true = person[one] == person[other]
            times = copies[person[one]] * (1 if is_true else copies[person[other]])
            pairs += [(-scores[one, other], is_true)] * int(times)
    truth = [is_true for _, is_true in sorted(pairs, key=lambda pair: pair[0])]
    right = np.cumsum(truth)
    found = max(right[right * 2 >= np.arange(1, len(truth) + 1)], default=0)
    sizes = np.bincount(person)
    true_pairs = copies @ (sizes * (sizes - 1) / 2)
    ranks = np.array(ranks)
    recalls = [(ranks <= k).mean() for k in (1, 8)]
    return [(1 / ranks).mean(), *recalls, np.mean(truth[:best_pairs]), found / true_pairs]


@pytest.mark.parametrize("seed", range(2))
def test_metrics_are_those_of_a_loop(seed, monkeypatch):
    monkeypatch.setattr(second_accounts, "BEST_PAIRS", 5)
    rng = np.random.default_rng(seed)
    person = pd.factorize(rng.integers(0, 25, 40))[0]
    surname = [f"s{number}" if number else "" for number in rng.integers(0, 12, 40)]
    scores = random_scores(40, seed)
    scores = np.where(person[:, None] == person, scores + 2, scores)
    scores[:20] = scores[:20].round(1)  # with ties
    scores = np.maximum(scores, scores.T)
    accounts = accounts_of(person, surname)
    ones = np.ones(max(person) + 1)
    table = second_account_metrics(scores, accounts, resamples=20)
    np.testing.assert_allclose(table.value, naive_metrics(scores, accounts, 5, ones), atol=1e-12)
    assert tuple(table.index) == METRICS and (table.low < table.high).any()
    drawn = np.random.default_rng(5).integers(0, 3, max(person) + 1)  # how often each person is
    monkeypatch.setattr(second_accounts, "BEST_PAIRS", 10_000)
    values = second_accounts._metrics(accounts, scores, drawn[None])
    np.testing.assert_allclose(values[0], naive_metrics(scores, accounts, None, drawn))
    difference = second_account_metrics(scores, accounts, scores, resamples=20)
    assert list(difference.index) == [f"{name}_difference" for name in METRICS]
    assert not difference.to_numpy().any()


def test_a_list_is_scored_both_ways(store):
    people = people_of([0, 0, 1, 1, 2, 3, 4])
    accounts = account_list(store, people, posts=8)
    assert len(accounts) == 6  # the account of 7 posts is left out
    assert accounts.first.count.tolist() == [8] * 6
    raw = score_list(HabitCounts(), accounts)
    np.testing.assert_array_equal(raw, raw.T)
    model = Model.fuse({"a": Member("", HabitCounts(), "s_norm"), "b": HabitCounts(hours=True)})
    apart = [score_list(member, accounts) for member in model.members]
    together = score_list(model, accounts)
    off = ~np.eye(6, dtype=bool)
    np.testing.assert_allclose(together[off], (sum(apart) / 2)[off], atol=1e-5)
    normed = score_list(model, accounts, neighbours=3)
    expected = sum(neighbour_norm(scores, 3) for scores in apart) / 2
    np.testing.assert_allclose(normed[off], expected[off], atol=1e-5)
