"""Two lists of accounts: partners are found, nobody is an answer, and decisions are heeded."""

import re
from collections import Counter
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from helpers.accounts import list_matching, match_page, match_report, reading, scoring
from helpers.accounts.answer_text import percent
from helpers.accounts.answers import LINKED
from helpers.accounts.decided_pairs import DecidedPairs
from helpers.accounts.encoder import ENOUGH, OWN_LIST_ACCOUNTS
from helpers.accounts.list_matching import COLUMNS, TwoLists, decide, match_lists
from helpers.accounts.match_page import MatchWords
from helpers.accounts.pair_evidence import list_pair_evidence
from helpers.core.paths import Run
from helpers.evaluation.candidates import all_candidates
from helpers.evaluation.matching import MatchConfig
from helpers.sources import open_source
from tests.accounts.subsets import subset_of_accounts

ONLY_A = range(0, 30)  # numbers of invented accounts
IN_BOTH = range(30, 66)
ONLY_B = range(66, 100)
CONFIG = MatchConfig(2.0, -4.0)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two files of invented accounts, of which IN_BOTH have their older posts in the first one."""
    frames = []
    for part in open_source("demo", "", seed=7, authors=100, posts=7000):
        frames.extend(part.read(Counter()))
    frame = pd.concat(frames, ignore_index=True)
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
    yield list_matching.without_shared_passages(*both, encoder.kinds)
    patch.undo()


@pytest.fixture(scope="module")
def own_calibration(encoder, posts):
    return list_matching.calibrated_on_list(encoder, *posts)


@pytest.fixture(scope="module")
def own_encoder(own_calibration):
    return own_calibration[0]


@pytest.fixture(scope="module")
def lists(own_encoder, posts):
    return TwoLists.of(own_encoder, *posts)


@pytest.fixture(scope="module")
def matched(lists):
    return match_lists(lists)


def rows_of(lists, pairs):
    """names of pairs -> rows in lists A and B"""
    names = [list(lists.galleries[letter].names) for letter in "ab"]
    return np.array([[names[0].index(a), names[1].index(b)] for a, b in pairs], int).reshape(-1, 2)


def decided_as(lists, same=(), different=()):
    return DecidedPairs(rows_of(lists, same), rows_of(lists, different), 0)


def names_of(pairs):
    return list(pairs[["account_a", "account_b"]].itertuples(index=False, name=None))


def test_most_partners_are_found(matched):
    linked = matched.pairs[matched.pairs.linked]
    right = linked.account_a == linked.account_b
    assert list(matched.pairs.columns) == COLUMNS
    assert right.sum() >= 0.6 * len(IN_BOTH) and (~right).sum() <= 1
    assert 0.3 < matched.overlap < 0.8
    assert matched.pairs.probability.min() >= list_matching.LEAST_PROBABILITY
    only_a = ~matched.nobody["a"].index.isin(matched.nobody["b"].index)
    assert (matched.nobody["a"][only_a] > 0.5).mean() > 0.5, "nobody is an answer"
    assert (matched.nobody["a"][~only_a] < 0.5).mean() > 0.8


def test_the_order_of_the_lists_does_not_matter(own_encoder, posts, matched):
    reverse = match_lists(TwoLists.of(own_encoder, *posts[::-1]))
    swapped = reverse.pairs.rename(
        columns={
            "account_a": "account_b",
            "account_b": "account_a",
            "posts_a": "posts_b",
            "posts_b": "posts_a",
        }
    )
    order = ["account_a", "account_b"]
    pd.testing.assert_frame_equal(
        swapped[COLUMNS].sort_values(order, ignore_index=True),
        matched.pairs.sort_values(order, ignore_index=True),
    )
    pd.testing.assert_series_equal(reverse.nobody["b"], matched.nobody["a"])


def test_own_calibration_does_not_depend_on_the_order_of_the_lists(encoder, posts, own_calibration):
    fitted, letter, accounts = own_calibration
    reverse, reverse_letter, _ = list_matching.calibrated_on_list(encoder, *posts[::-1])
    use = encoder.use(True, True)
    assert accounts >= ENOUGH and {letter, reverse_letter} == {"a", "b"}
    assert fitted.uses[use] == reverse.uses[use] != encoder.uses[use]
    few = [subset_of_accounts(side, np.arange(ENOUGH - 1)) for side in posts]
    assert list_matching.calibrated_on_list(encoder, *few) == (encoder, "", 0)


def test_few_accounts_give_all_their_posts_to_the_fit(own_calibration, posts):
    encoder, letter, accounts = own_calibration
    counts = posts["ab".index(letter)].store.posts_per_author()
    assert (counts >= 2 * scoring.LIST_POSTS).sum() < accounts < OWN_LIST_ACCOUNTS
    assert encoder.uses[encoder.use(True, posts[0].hours)].match.accounts == accounts


def test_decisions_are_heeded(lists, matched):
    linked = names_of(matched.pairs[matched.pairs.linked])
    wrong = (lists.galleries["a"].names[0], linked[1][1])
    decided = decided_as(lists, same=[wrong], different=linked[2:4])
    changed = match_lists(lists, decided)
    of_known = changed.pairs[changed.pairs.known]
    assert names_of(of_known) == [wrong] and (of_known.probability == 1).all()
    new_pairs = changed.pairs[~changed.pairs.known]
    assert wrong[0] not in set(new_pairs.account_a) and wrong[1] not in set(new_pairs.account_b)
    assert wrong[0] not in changed.nobody["a"] and wrong[1] not in changed.nobody["b"]
    assert not set(linked[2:4]) & set(names_of(changed.pairs))
    assert linked[0] in names_of(new_pairs[new_pairs.linked]), "others stay"


def test_somebody_must_be_left(lists):
    partner = lists.galleries["b"].names[0]
    everybody = [(name, partner) for name in lists.galleries["a"].names]
    with pytest.raises(ValueError, match="nobody is left to match"):
        match_lists(lists, decided_as(lists, same=everybody))


def test_strangers_are_not_linked(own_encoder, posts):
    """Of two lists with nobody in common at most 1 account in 200 is linked."""
    store_names = posts[0].names
    only_a = np.flatnonzero(np.isin(store_names, np.setdiff1d(store_names, posts[1].names)))
    only_b = np.flatnonzero(~np.isin(posts[1].names, store_names))
    sides = [subset_of_accounts(posts[0], only_a), subset_of_accounts(posts[1], only_b)]
    strangers = match_lists(TwoLists.of(own_encoder, *sides))
    assert min(len(only_a), len(only_b)) >= ENOUGH
    assert strangers.pairs.linked.sum() <= min(len(only_a), len(only_b)) / 200


def test_few_accounts_are_refused(encoder, posts):
    few = subset_of_accounts(posts[1], np.arange(ENOUGH - 1))
    with pytest.raises(ValueError, match="list B has .* ask `python -m helpers mine`"):
        TwoLists.of(encoder, posts[0], few)


def test_large_lists_are_matched_by_their_nearest_pairs(lists, matched, monkeypatch):
    monkeypatch.setattr(list_matching, "FULL_GALLERY", 10)
    monkeypatch.setattr(list_matching, "NEAREST", 12)
    near = lists.candidates()
    monkeypatch.undo()
    whole = lists.candidates()
    scores = np.full(lists.sizes, -np.inf)
    scores[tuple(whole.pairs.T)] = whole.scores
    np.testing.assert_allclose(scores[tuple(near.pairs.T)], near.scores, atol=1e-3)
    assert len(near) < len(whole) / 2


def test_the_evidence_adds_up_to_the_score(lists, matched):
    best = matched.pairs.iloc[0]
    parts = lists.evidence(best.account_a, best.account_b)
    pair = lists.pairs_of(rows_of(lists, [(best.account_a, best.account_b)]))
    np.testing.assert_allclose(parts.contribution.sum(), lists.pair_scores(pair)[0], atol=2e-4)
    evidence = list_pair_evidence(lists, best.account_a, best.account_b)
    assert evidence.score == pytest.approx(parts.contribution.sum())
    assert sum(evidence.systems.values()) == pytest.approx(evidence.score)


@pytest.fixture(scope="module")
def record(lists, matched):
    """What the page says, with hostile names in place of those of list A."""
    shown = matched.pairs.assign(account_a="<b>" + matched.pairs.account_a + '</b>",=1')
    words = MatchWords(["a.csv", "b.csv"], ["Read."], ["Trusted."], "matches.csv", "open-small")
    patch = pytest.MonkeyPatch()
    patch.setattr(match_page, "MAX_SHOWN", 3)
    yield match_page.match_record(lists, matched, shown, words)
    patch.undo()


def test_every_number_of_the_page_is_that_of_the_table(matched, record):
    page = match_page.render_matches(record)
    body = re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.S)
    words = " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())
    table = matched.pairs.set_index(["account_a", "account_b"])
    assert len(record["pairs"]) == 3
    for pair in record["pairs"]:
        a = re.fullmatch('<b>(.*)</b>",=1', pair["a"])[1]
        row = table.loc[(a, pair["b"])]
        assert pair["state"] == LINKED and row.linked
        assert (pair["posts_a"], pair["posts_b"]) == (row.posts_a, row.posts_b)
        text = percent(row.probability)
        assert f"{pair['a']} and {pair['b']} : linked, probability {text}" in words
        assert f"likelihood ratio is {row.llr:.2f}." in words
    linked = int(matched.pairs.linked.sum())
    assert f"{linked} pairs are linked." in words
    likely = int((matched.pairs.linked | (matched.pairs.probability >= 0.5)).sum())
    assert f"{likely - 3} more pairs are linked or likely: matches.csv has all" in words
    for sentence in [*record["sentences"], "Read.", "Trusted."]:
        assert sentence in words
    for letter in "ab":
        nobody = matched.nobody[letter]
        alone = int((nobody > 0.5).sum())
        counts = f"{len(nobody) - linked:,} of {len(nobody):,} accounts of list {letter.upper()}, "
        assert f"{counts}{alone:,} of them probably without a partner" in words


def test_hostile_names_are_only_text_and_decisions_keep_them(record):
    page = match_page.render_matches(record)
    assert "<b>" not in page.replace("<b>1</b>", "").replace("<b>2</b>", "").replace("<b>3</b>", "")
    pair = record["pairs"][0]
    assert f'data-a="{escape(pair["key_a"])}" data-b="{escape(pair["key_b"])}"' in page
    assert pair["key_a"].startswith("<b>") and "default-src 'none'" in unescape(page)


def test_a_page_without_pairs_asks_for_no_decision(lists, matched):
    nothing = replace(matched, pairs=matched.pairs.head(0))
    words = MatchWords(["a.csv", "b.csv"], ["Read."], ["Trusted."], "matches.csv", "open-small")
    page = match_page.render_matches(match_page.match_record(lists, nothing, nothing.pairs, words))
    assert "No pair is linked." in page and "say so with --overlap" in page
    assert "Decide at each pair" not in page and "Your decision" not in page


def test_of_each_account_one_pair_is_shown_and_known_ones_are_not():
    pairs = pd.DataFrame(
        {
            "account_a": list("ppqrs"),
            "account_b": list("xyxzw"),
            "probability": [0.95, 0.04, 0.03, 0.02, 1.0],
            "linked": [True, False, False, False, True],
            "known": [False, False, False, False, True],
        }
    )
    assert list(match_page.pairs_to_read(pairs).index) == [0, 3]
    assert len(match_page.pairs_to_read(pairs.head(0))) == 0


def test_the_table_is_short_and_escaped(matched):
    new_pairs = matched.pairs[~matched.pairs.known]
    many = pd.concat([new_pairs] * (match_report.MAX_ROWS // len(new_pairs) + 1))
    lines = match_report.table(many).splitlines()
    assert len(lines) == match_report.MAX_ROWS + 2
    assert lines[-1] == f"... and {len(many) - match_report.MAX_ROWS} more"
    hostile = matched.pairs.head(1).assign(account_a="a\x1b[2Jb")
    assert "\x1b" not in match_report.table(hostile)
    assert "No pair" in match_report.table(matched.pairs.head(0))


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


def linked_pairs(candidates, overlap):
    _, linked = decide(candidates, CONFIG, overlap)
    return candidates.pairs[linked]


@given(MATRICES)
def test_no_forbidden_pair_is_linked_and_nobody_has_two_partners(drawn):
    rng, scores, overlap = scores_of(drawn)
    is_forbidden = rng.random(scores.shape) < 0.3
    candidates = all_candidates(scores).without(np.argwhere(is_forbidden))
    linked = linked_pairs(candidates, overlap)
    assert not is_forbidden[tuple(linked.T)].any()
    for side in linked.T:
        assert len(set(side)) == len(side)


@given(MATRICES)
def test_another_order_gives_the_same_links(drawn):
    rng, scores, overlap = scores_of(drawn)
    rows = rng.permutation(scores.shape[0])
    columns = rng.permutation(scores.shape[1])
    links = linked_pairs(all_candidates(scores), overlap)
    shuffled = linked_pairs(all_candidates(scores[rows][:, columns]), overlap)
    again = np.stack([rows[shuffled[:, 0]], columns[shuffled[:, 1]]], 1)
    assert set(map(tuple, again)) == set(map(tuple, links))


def test_a_fit_on_few_accounts_supports_no_link_where_few_have_a_partner(rng_scores):
    candidates = all_candidates(rng_scores)
    free, linked = decide(candidates, CONFIG, 0.05)
    assert linked.sum() > 10 and free.probability.max() > 0.99
    few, linked = decide(candidates, replace(CONFIG, accounts=50), 0.05)
    assert not linked.any()
    highest = replace(CONFIG, accounts=50).highest_probability(0.05, 60)
    assert few.probability.max() == highest < 0.75
    many, linked = decide(candidates, replace(CONFIG, accounts=1000), 0.05)
    assert linked.sum() > 10 and many.probability.max() < free.probability.max()


@pytest.fixture
def rng_scores():
    return np.random.default_rng(0).standard_normal((60, 60)) + 8 * np.eye(60)
