"""Answers about a file: each pair once, who cannot be judged, decisions, and wrong links."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from helpers.accounts import answers, page
from helpers.accounts.answers import LIKELY, LINKED, NOT_LINKED, STATES, Question, match
from helpers.accounts.decisions import JOINER, listed_decisions, merge_accounts
from helpers.accounts.gallery import NOBODY, UNJUDGED
from helpers.accounts.page import sentences
from helpers.accounts.samples import texts_of
from helpers.accounts.scoring import are_equal
from helpers.accounts.validation import link_errors, split_half_trials
from helpers.evaluation.detection import DetectionCosts
from tests.accounts.shared import subset_of_accounts

COSTS = DetectionCosts(prior=0.3, false_accept=3)


@pytest.fixture
def calibrated(choice, monkeypatch):
    monkeypatch.setattr(answers.validation, "choose_calibration", lambda *_: choice)


def decisions(*rows):
    frame = pd.DataFrame(rows, columns=["account_a", "account_b", "decision"])
    return frame.assign(who="me", when="", note="a note")


def test_each_pair_stands_once_with_the_lower_probability(answer):
    queries = answer.queries
    ranking = answer.gallery.rank(answer.gallery.accounts(queries), queries, 100, answer.costs)
    chance = {(row.query, row.target): row.probability for row in ranking.itertuples()}
    best = ranking[(ranking["rank"] <= 5) & (ranking.target != NOBODY)]
    expected = {frozenset(pair) for pair in zip(best["query"], best.target)}
    pairs = answer.pairs
    assert {frozenset(pair) for pair in zip(pairs.account_a, pairs.account_b)} == expected
    assert len(pairs) == len(expected)
    for pair in pairs.itertuples():
        both = [
            chance[pair.account_a, pair.account_b],
            chance[pair.account_b, pair.account_a],
        ]
        assert pair.probability == pytest.approx(min(both))
    assert {pairs.account_a[0], pairs.account_b[0]} == {"demo-0003", "newcomer"}


def test_one_account_is_asked_with_the_prior_and_the_wrong_links_of_all(answer, mine, calibrated):
    queries = answer.queries
    assert (answer.pairs.state == LINKED).any(), "links that nobody asks about are not wrong"
    alone = match(mine, question=Question(accounts=("demo-0005",)))
    everybody = answer.gallery.estimate_prior(answer.gallery.accounts(queries), queries)
    assert alone.costs.prior == pytest.approx(everybody) and alone.queries == ["demo-0005"]
    assert alone.errors == answer.errors


def test_states_follow_the_probability_and_the_accounts(answer):
    threshold = answer.costs.min_probability
    for pair in answer.pairs.itertuples():
        if pair.reason:
            assert pair.state == UNJUDGED
        elif pair.probability >= threshold:
            assert pair.state == LINKED
        elif pair.probability >= 0.5:
            assert pair.state == LIKELY
        else:
            assert pair.state == NOT_LINKED
    order = answer.pairs.state.map(STATES.index)
    assert order.is_monotonic_increasing


def test_queries_of_equal_ratios_are_found():
    low = -np.inf
    rows = [[2.0, 2.0005, low], [2.0, 1.0, low], [0.5, low, low], [0.0, 0.0, 0.0], [np.nan] * 3]
    assert are_equal(np.array(rows), -3.0).tolist() == [True, False, False, True, False]
    assert not are_equal(np.array(rows), 0.0)[3], "all unlikely is an answer"


def test_a_rejected_pair_does_not_come_back_and_an_accepted_one_is_one_account(mine):
    said = decisions(
        ("demo-0003", "newcomer", "same"),
        ("demo-0001", "demo-0002", "different"),
        ("nobody", "demo-0002", "same"),
        ("demo-0004", "demo-0005", "later"),
    )
    few = subset_of_accounts(mine, [*range(10), len(mine.names) - 1])
    answer = match(few, question=Question(k=100), decisions=said)
    assert answer.unknown == ["nobody"]
    (sentence,) = sentences("unknown", page.numbers(answer))
    assert sentence.endswith("were not used: nobody.")
    joint = f"demo-0003{JOINER}newcomer"
    assert answer.joint_names == {"demo-0003": joint, "newcomer": joint}
    assert joint in answer.queries and len(answer.queries) == len(few.names) - 1
    pairs = {frozenset(pair) for pair in zip(answer.pairs.account_a, answer.pairs.account_b)}
    count = len(answer.queries)
    assert frozenset(["demo-0001", "demo-0002"]) not in pairs
    assert len(pairs) == count * (count - 1) // 2 - 1
    later = answer.pairs[answer.pairs.decision == "later"]
    assert later[["account_a", "account_b", "note"]].to_numpy().tolist() == [
        ["demo-0004", "demo-0005", "a note"]
    ]


def test_merged_posts_are_in_the_order_of_their_times(mine, encoder):
    chain = [("demo-0001", "demo-0002"), ("demo-0002", "demo-0005"), ("demo-0001", "unknown")]
    rows = decisions(*[(*pair, "same") for pair in chain])
    merged, joint_names = merge_accounts(mine, listed_decisions(rows, mine.names, mine.names))
    name = JOINER.join(["demo-0001", "demo-0002", "demo-0005"])
    assert set(joint_names.values()) == {name} and len(merged.names) == len(mine.names) - 2
    expected = []
    for member in name.split(JOINER):
        row = list(mine.names).index(member)
        posts = np.arange(*mine.store.author_offsets[row : row + 2])
        texts = texts_of(mine.store, posts, encoder.tokenizer)
        expected += zip(mine.store.time[posts], texts)
    row = list(merged.names).index(name)
    posts = np.arange(*merged.store.author_offsets[row : row + 2])
    assert texts_of(merged.store, posts, encoder.tokenizer) == [
        text for _, text in sorted(expected, key=lambda post: post[0])
    ]


def errors_of(llr, costs, gallery=None, **settings):
    gallery = llr if gallery is None else gallery
    return link_errors(SimpleNamespace(gallery=gallery, ratios={"own": llr}), costs, **settings)


def test_link_errors_are_those_of_ranking_each_half(mine):
    gallery, older = split_half_trials(mine)
    errors = errors_of(gallery.llr(gallery.scores(older), older), COSTS)
    names = list(gallery.names)
    ranking = gallery.rank(older, [f"half of {name}" for name in names], len(names), COSTS)
    ranking = ranking[ranking.target != NOBODY]
    llr = ranking.pivot(index="target", columns="query", values="llr")
    ratios = np.exp(llr.loc[names, [f"half of {name}" for name in names]].to_numpy())

    def chance(ratio, others):
        share = COSTS.prior / len(others)
        return share * ratio / (1 - COSTS.prior + share * sum(others))

    def is_linked(query, target, left_out):
        of_query = [ratios[row, query] for row in range(len(names)) if row not in left_out(query)]
        of_target = [
            ratios[target, row] for row in range(len(names)) if row not in left_out(target)
        ]
        ratio = ratios[target, query]
        lower = min(chance(ratio, of_query), chance(ratio, of_target))
        return lower >= COSTS.min_probability

    found = set()
    wrong = set()
    wrong_alone = set()
    for query, target in np.ndindex(ratios.shape):
        if is_linked(query, target, lambda row: []):
            (found if query == target else wrong).add(query)
        if query != target and is_linked(query, target, lambda row: [row]):
            wrong_alone.add(query)
    expected = [len(names), len(found), len(wrong - found), len(wrong_alone)]
    assert [errors[n] for n in ("accounts", "right", "wrong", "wrong_alone")] == expected
    assert len(found) > 0
    probability = ranking.set_index(["query", "target"]).probability
    own = probability["half of demo-0001", "demo-0001"]
    row = names.index("demo-0001")
    assert own == pytest.approx(chance(ratios[row, row], ratios[:, row]), rel=1e-4)


def test_the_share_of_wrong_links():
    ratios = np.full((100, 100), -9.0)
    ratios[np.arange(60), np.arange(60)] = 9.0  # right
    ratios[60, 61] = ratios[61, 60] = 12.0  # both wrong, whether their own is there or not
    errors = errors_of(ratios, DetectionCosts(prior=0.1, false_accept=1))
    counts = [errors[name] for name in ("right", "wrong", "wrong_alone")]
    assert counts == [60, 2, 2]
    assert errors["wrong_share"] == pytest.approx((0.2 + 1.8) / (6 + 0.2 + 1.8))
    # Clopper-Pearson by its definition: two or fewer of 100 have a probability of 5%
    bound = errors["most_wrong_share"]
    highest = (bound * 6.0 - 0.2 * (1 - bound)) / (0.9 * (1 - bound)) / 100
    assert binom.cdf(2, 100, highest) == pytest.approx(0.05)
    assert errors_of(np.full((30, 30), -9.0), COSTS)["wrong_share"] is None
    assert errors_of(np.full((29, 29), -9.0), COSTS) is None


class Accounts(list):
    def columns(self, names):
        return np.array([self.index(name) if name in self else -1 for name in names])


def test_a_link_of_a_half_with_what_may_be_one_persons_is_not_counted_as_wrong():
    ratios = np.full((40, 40), -9.0)
    np.fill_diagonal(ratios, 9.0)
    ratios[3, 5] = ratios[5, 3] = ratios[7, 8] = ratios[8, 7] = 12.0
    together = pd.DataFrame({"a": [5, 9], "b": [3, "elsewhere"]})
    assert errors_of(ratios, COSTS, Accounts(range(40)))["wrong_alone"] == 4
    found = errors_of(ratios, COSTS, Accounts(range(40)), together=together)
    assert found["wrong_alone"] == 2


def test_of_two_lists_an_account_has_one_partner_in_the_test_as_well():
    ratios = np.full((40, 40), -9.0)
    np.fill_diagonal(ratios, 9.0)
    ratios[0, 1] = 12.0
    costs = DetectionCosts(prior=0.5, false_accept=10)
    of_one, of_two = (errors_of(ratios, costs, are_two=are_two) for are_two in (False, True))
    assert (of_one["right"], of_one["wrong"]) == (38, 1)
    assert (of_two["right"], of_two["wrong"]) == (38, 0), "nobody is given away twice"
    assert of_one["wrong_alone"] == of_two["wrong_alone"] == 1
