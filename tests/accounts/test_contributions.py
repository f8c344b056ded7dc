"""Contributions add up to the score, whatever the member."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.accounts.contributions import (
    OFFSET,
    ROUNDING,
    contributions,
    error_bound,
    scores_by_member,
)
from helpers.accounts.gallery import AccountGallery
from helpers.accounts.samples import MAX_TOKENS


@pytest.fixture(scope="module")
def parts(gallery):
    return contributions(gallery, gallery.accounts(["newcomer"]), "demo-0003", "newcomer")


def test_contributions_add_up(gallery, parts):
    ranking = gallery.rank(gallery.accounts(["newcomer"]), ["newcomer"], len(gallery))
    score = ranking.set_index("target").score["demo-0003"]
    query = gallery.accounts(["newcomer"])
    bound = error_bound(gallery, query, "demo-0003", "newcomer")
    # small beside the scores, whatever their scale
    assert abs(parts.contribution.sum() - score) <= bound < 7e-5 * ranking.score.std()
    sums = scores_by_member(parts)
    assert sums.member.iloc[-1] == "All members"
    np.testing.assert_allclose(sums.contribution.iloc[-1], parts.contribution.sum())


def test_a_feature_is_worth_what_its_removal_costs(gallery, parts):
    """Of TF-IDF of subwords: without the ten features the product falls by what they contribute."""
    members = [part for part in gallery.model.members if part.name == "tfidf_subword"]
    target_row, query_row = gallery.columns(["demo-0003", "newcomer"])
    slope = 0
    for member in members:
        opened, query_vector = member.opened(
            gallery.accounts(["newcomer"]), gallery.targets, MAX_TOKENS
        )
        slope += member.weight * opened.line(query_vector, target_row, query_row)[0]
    target_vector = opened.rows[target_row]
    product = query_vector.multiply(target_vector).tocoo()
    strongest = np.argsort(-product.data)[:10]
    score = (query_vector @ target_vector.T).toarray()[0, 0]
    fall = slope * (score - (score - product.data[strongest].sum()))
    of_subwords = parts[(parts.member == "tfidf_subword") & (parts.feature != OFFSET)]
    largest = of_subwords.contribution.nlargest(10).sum()
    assert largest >= fall - 1e-6 and largest < 1.2 * fall  # pairs of one spelling are one


def test_every_member_is_there_with_its_offset(gallery, parts):
    used = {member.name for member in gallery.model.used_members}
    assert set(parts.member) == used
    assert set(parts[parts.feature == OFFSET].member) == used
    assert parts[parts.member == "hours"].feature.str.contains("h UTC").any()


def test_of_two_accounts_alone(encoder):
    posts = [["I like tea, a lot.", "Tea again!"], ["no semicolons; ever"]]
    small = AccountGallery.of(encoder, posts, ["tea", "semi"])
    query = small.queries([["Tea is what I like!"]])
    parts = contributions(small, query, "tea")
    assert error_bound(small, query, "tea") == 2.5 * 2**-20, "without a gallery the slope is 1"
    assert abs(parts.contribution.sum() - small.rank(query).score[0]) <= 2.5 * 2**-20


SYLLABLES = ["tea", "so", "well", "the", "of", "n't", "no", "may", "be", "what", "ing", "er"]
WORDS = ["".join(pair) for pair in product(SYLLABLES, [*SYLLABLES, ",", "; ", "...", "?"])]
KINDS = {  # (posts of an account, words of a post)
    "short": (1, 2),
    "usual": (6, 12),
    "long": (12, 60),
}


def invented_posts(rng, accounts, kind, equal, unknown):
    """Posts of accounts; perhaps all equal, or one account in letters that no encoder knows."""
    posts, words = KINDS[kind]
    texts = []
    for _ in range(accounts):
        counts = rng.integers(1, words + 1, rng.integers(1, posts + 1))
        texts.append([" ".join(rng.choice(WORDS, count)) for count in counts])
    if equal:  # shorter than a passage, which would be removed where several posts share it
        texts = [["tea; so?"]] * accounts
    if unknown:
        texts[-1] = ["\u2603\u16a0\u16a2"]
    return texts


@settings(max_examples=max(4, settings.default.max_examples // 20))
@given(
    seed=st.integers(0, 2**32 - 1),
    accounts=st.sampled_from([2, 3, 29, 31, 42]),
    kind=st.sampled_from(list(KINDS)),
    hours=st.booleans(),
    equal=st.booleans(),
    unknown=st.booleans(),
)
def test_contributions_of_any_gallery_add_up_within_the_bound(
    encoder, seed, accounts, kind, hours, equal, unknown
):
    rng = np.random.default_rng(seed)
    posts = invented_posts(rng, accounts, kind, equal, unknown)
    times = None
    if hours:
        times = [[int(second) for second in rng.integers(10**9, 2e9, len(own))] for own in posts]
    names = [f"a{number}" for number in range(accounts)]
    gallery = AccountGallery.of(encoder, posts, names, times)
    check_sum(gallery, "a0", "a1")
    check_sum(gallery, names[-1], "a0")


def test_contributions_of_an_account_of_very_many_words_add_up(encoder):
    """The sums of single precision that TF-IDF scores are lose digits; ROUNDING holds them."""
    rng = np.random.default_rng(0)
    letters = list("abcdefghijklmnoprstuvw")
    words = ["".join(rng.choice(letters, 6)) for _ in range(3000)]
    posts = [[" ".join(rng.choice(words, 60)) for _ in range(3)] for _ in range(32)]
    posts[:2] = [[" ".join(rng.choice(words, 60)) for _ in range(120)] for _ in range(2)]
    gallery = AccountGallery.of(encoder, posts, [f"a{number}" for number in range(32)])
    check_sum(gallery, "a0", "a1", 5e-5)


def check_sum(gallery, name, target, max_rounding=2e-6):
    """Compare with the score of a query that is ranked alone, and among all others.

    max_rounding : of a member's raw score, so that no mistake of a feature hides in this term
    """
    query = gallery.accounts([name])
    parts = contributions(gallery, query, target, name)
    bound = error_bound(gallery, query, target, name)
    alone = gallery.rank(query, [name], len(gallery))
    among_all = gallery.rank(gallery.targets, list(gallery.names), len(gallery))
    for ranking in (alone, among_all):
        row = ranking[(ranking["query"] == name) & (ranking.target == target)]
        assert abs(parts.contribution.sum() - row.score.item()) <= bound
    largest_rounding = dict.fromkeys(parts.member, 0.0)
    for member in gallery.model.used_members:
        opened, vector = member.opened(query, gallery.targets, MAX_TOKENS)
        slope, _ = opened.line(vector, *gallery.columns([target, name]))
        largest_rounding[member.name] += abs(member.weight) * slope * max_rounding
    rounded = parts[parts.feature == ROUNDING].set_index("member").contribution.abs()
    assert all(rounded[member] <= largest_rounding[member] for member in rounded.index)
