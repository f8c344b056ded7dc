"""Two lists of accounts: partners are found, nobody is an answer, strangers are not linked."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.accounts import answers, page, reading, scoring
from helpers.accounts.answers import LEAST_PROBABILITY, LINKED, match
from helpers.accounts.encoder import ENOUGH
from helpers.accounts.gallery import LINK_COSTS, UNJUDGED
from helpers.accounts.signs import evidence
from helpers.accounts.validation import CalibrationChoice
from helpers.core.paths import Run
from helpers.evaluation.matching import as_pairs
from helpers.evaluation.scores import as_rows
from helpers.sources import COLUMNS, open_source
from tests.accounts.shared import subset_of_accounts
from tests.oracles import slow_candidates

ONLY_A = range(0, 30)  # numbers of invented accounts
IN_BOTH = range(30, 66)
ONLY_B = range(66, 100)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two files of invented accounts, of which IN_BOTH have their older posts in the first one."""
    rows = []
    for part in open_source("demo", "", seed=7, authors=100, posts=5600):
        rows += part.read(Counter())
    frame = pd.DataFrame(rows)[COLUMNS]
    number = pd.factorize(frame.author, sort=True)[0]
    is_older = frame.time < frame.groupby("author").time.transform("median")
    in_both = np.isin(number, IN_BOTH)
    frame["time"] = pd.to_datetime(frame.time, unit="s", utc=True)
    folder = tmp_path_factory.mktemp("lists")
    frame[np.isin(number, ONLY_A) | in_both & is_older].to_csv(folder / "a.csv", index=False)
    frame[np.isin(number, ONLY_B) | in_both & ~is_older].to_csv(folder / "b.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def posts(encoder, files, tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path_factory.mktemp("outputs")))
    both = [
        reading.read_posts(Run(name), str(files / f"{name}.csv"), encoder, pseudonymise=False)
        for name in "ab"
    ]
    yield both
    patch.undo()


@pytest.fixture(scope="module")
def matched(posts):
    return match(*posts)


def names_of(pairs):
    return list(pairs[["account_a", "account_b"]].itertuples(index=False, name=None))


def linked_of(answer):
    return answer.pairs[answer.pairs.state == LINKED]


def nobody_of(answer, letter):
    accounts = answer.accounts[answer.accounts.list == letter]
    return accounts.set_index("account").nobody.dropna()


def test_most_partners_are_found(matched):
    linked = linked_of(matched)
    right = linked.account_a == linked.account_b
    assert right.sum() >= 0.6 * len(IN_BOTH) and (~right).sum() <= 1
    assert 0.3 < matched.costs.prior < 0.8
    assert matched.pairs.probability.max() <= matched.highest_probability < 1
    assert matched.pairs.probability.min() >= LEAST_PROBABILITY
    nobody = nobody_of(matched, "A")
    only_a = ~nobody.index.isin(nobody_of(matched, "B").index)
    assert (nobody[only_a] > 0.5).mean() > 0.5, "nobody is an answer"
    assert (nobody[~only_a] < 0.5).mean() > 0.8


def test_the_sum_of_an_account_s_probabilities_is_one(matched):
    sums = matched.pairs.groupby("account_a").probability.sum() + nobody_of(matched, "A")
    assert sums.max() <= 1 + 1e-6
    assert (sums.dropna() > 0.7).all(), "but pairs below a hundredth, and what the cap takes"


def test_strangers_are_not_linked(posts):
    """Of two lists with nobody in common at most 1 account in 200 is linked."""
    only_a = np.flatnonzero(~np.isin(posts[0].names, posts[1].names))
    only_b = np.flatnonzero(~np.isin(posts[1].names, posts[0].names))
    sides = [subset_of_accounts(posts[0], only_a), subset_of_accounts(posts[1], only_b)]
    assert min(len(only_a), len(only_b)) >= ENOUGH
    assert len(linked_of(match(*sides))) <= min(len(only_a), len(only_b)) / 200


@pytest.fixture
def calibrated(posts, matched, monkeypatch):
    """The encoder of ``matched`` is not fitted again."""
    choice = CalibrationChoice(matched.galleries[0].encoder, 0)
    monkeypatch.setattr(answers.validation, "choose_calibration", lambda *_: choice)


@pytest.fixture(scope="module")
def whole(matched):
    return answers.log_odds_of_pairs(matched.galleries, ([], []))


def test_the_order_of_the_lists_does_not_matter(posts, matched, calibrated, whole, monkeypatch):
    swapped = answers.log_odds_of_pairs(matched.galleries[::-1], ([], []))
    np.testing.assert_allclose(swapped.toarray(), whole.toarray().T, atol=1e-9)
    monkeypatch.setattr(answers, "log_odds_of_pairs", lambda *_: swapped)  # costly
    reverse = match(*posts[::-1])
    columns = {"account_a": "account_b", "account_b": "account_a"}
    columns |= {"posts_a": "posts_b", "posts_b": "posts_a"}
    swapped = reverse.pairs.rename(columns=columns)[matched.pairs.columns]
    order = {"by": ["account_a", "account_b"], "ignore_index": True}
    pd.testing.assert_frame_equal(swapped.sort_values(**order), matched.pairs.sort_values(**order))
    pd.testing.assert_series_equal(nobody_of(reverse, "B"), nobody_of(matched, "A"))
    assert {reverse.fitted_list, matched.fitted_list} == {"A", "B"}


def test_accounts_of_few_posts_cannot_be_judged(posts, matched, calibrated, whole, monkeypatch):
    """The same name may be of few posts in one list only."""
    name = names_of(linked_of(matched))[0][0]
    counts = matched.accounts[matched.accounts.account == name].posts
    monkeypatch.setattr(answers, "MIN_POSTS_TO_JUDGE", counts.max())
    monkeypatch.setattr(answers, "log_odds_of_pairs", lambda *_: whole)  # costly
    answer = match(*posts)
    accounts, pairs = answer.accounts, answer.pairs
    assert (accounts.problem != "").tolist() == (accounts.posts < counts.max()).tolist()
    few = pairs[["posts_a", "posts_b"]].min(axis=1) < counts.max()
    assert few.any() and not few.all()
    assert (pairs.state == UNJUDGED).tolist() == few.tolist()
    assert (pairs.reason != "").tolist() == few.tolist()


def test_few_accounts_are_refused(posts):
    few = subset_of_accounts(posts[1], np.arange(ENOUGH - 1))
    with pytest.raises(ValueError, match="list B has .* ask `python -m helpers mine`"):
        match(posts[0], few)


def test_large_lists_are_matched_by_their_nearest_pairs(matched, whole, monkeypatch):
    monkeypatch.setattr(answers, "FULL_GALLERY", 10)
    monkeypatch.setattr(answers, "NEAREST", 12)
    near = answers.log_odds_of_pairs(matched.galleries, ([], []))
    np.testing.assert_allclose(whole.toarray()[near.coords], near.data, atol=1e-3)
    assert near.nnz < whole.nnz / 2
    different = [rows[::3] for rows in near.coords]
    sides = zip(matched.galleries, different)
    names = [gallery.names[rows] for gallery, rows in sides]
    left = answers.log_odds_of_pairs(matched.galleries, names)
    assert set(zip(*left.coords)) == set(zip(*near.coords)) - set(zip(*different))


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 9), st.integers(1, 12))
def test_the_nearest_pairs_are_those_of_a_loop(seed, rows, columns, nearest):
    rng = np.random.default_rng(seed)
    sides = [as_rows(rng.integers(0, 3, (size, 4)).astype(float)) for size in (rows, columns)]
    expected = slow_candidates((sides[0] @ sides[1].T).numpy(), nearest)
    assert [tuple(pair) for pair in scoring.near_pairs(*sides, nearest)] == expected


def test_the_evidence_adds_up_to_the_score(matched):
    best = matched.pairs.iloc[0]
    found = evidence(matched, (best.account_a, best.account_b))
    first, second = matched.galleries
    pair = [first.columns([best.account_a]), second.columns([best.account_b])]
    forward = second.model.score_matrix(first.targets[pair[0]], second.targets, 128)
    back = first.model.score_matrix(second.targets[pair[1]], first.targets, 128)
    score = (forward[0, pair[1]] + back[0, pair[0]]) / 2
    assert found["score"] == pytest.approx(score, abs=2e-4)
    assert sum(found["systems"].values()) == pytest.approx(found["score"])
    assert found["of_words"] + found["of_hours"] == pytest.approx(found["score"])


def test_of_each_account_one_pair_is_shown(matched):
    pairs = matched.pairs.head(5).assign(
        account_a=list("ppqrs"),
        account_b=list("xyxzw"),
        state=[LINKED, *["not linked"] * 3, LINKED],
        decision=["", "", "", "later", ""],
    )
    assert list(page.shown_pairs(replace(matched, pairs=pairs)).index) == [0, 3, 4]


MATRICES = st.tuples(
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(0, 2**32 - 1),
    st.sampled_from([None, 0.3, 1]),
)


def scores_of(drawn):
    rows, columns, seed, overlap = drawn
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1, (rows, columns)).round(1)
    partners = rng.integers(0, min(rows, columns) + 1)
    scores[np.arange(partners), np.arange(partners)] += 6
    return rng, scores, overlap


def linked_pairs(scores, overlap):
    probability, _ = scoring.match_pairs(as_pairs(2 * scores - 4), overlap or 0.0)
    return np.argwhere(probability.toarray() >= LINK_COSTS.min_probability)


@given(MATRICES)
def test_nobody_has_two_partners_or_a_forbidden_one_whatever_the_order(drawn):
    rng, scores, overlap = scores_of(drawn)
    is_forbidden = rng.random(scores.shape) < 0.3
    scores[is_forbidden] = -np.inf
    linked = linked_pairs(scores, overlap)
    assert not is_forbidden[tuple(linked.T)].any()
    for side in linked.T:
        assert len(set(side)) == len(side)
    rows = rng.permutation(scores.shape[0])
    columns = rng.permutation(scores.shape[1])
    shuffled = linked_pairs(scores[rows][:, columns], overlap)
    again = np.stack([rows[shuffled[:, 0]], columns[shuffled[:, 1]]], 1)
    assert set(map(tuple, again)) == set(map(tuple, linked))
