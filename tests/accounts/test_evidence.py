"""Contributions add up to the score, whatever the member, and posts are escaped where they become HTML."""

import numpy as np
import pytest

from helpers.accounts import evidence
from helpers.accounts.gallery import AccountGallery


@pytest.fixture(scope="module")
def taken_apart(gallery):
    return evidence.contributions(gallery, gallery.accounts(["newcomer"]), "demo-0003", "newcomer")


def test_contributions_add_up(gallery, taken_apart):
    found = gallery.rank(gallery.accounts(["newcomer"]), ["newcomer"], len(gallery)).set_index("target")
    score = found.score["demo-0003"]
    assert abs(taken_apart.contribution.sum() - score) < 1e-5 * max(1, abs(score))  # scores are rounded to 2**-20
    sums = evidence.by_member(taken_apart)
    assert sums.member.iloc[-1] == "all members"
    np.testing.assert_allclose(sums.contribution.iloc[-1], taken_apart.contribution.sum())


def test_a_feature_is_worth_what_its_removal_costs(gallery, taken_apart, encoder):
    """Of TF-IDF of subwords: the product without the ten features is smaller by what they are said to contribute."""
    place = list(name for name, weight in gallery.model.weights.items() if weight).index("tfidf_subword")
    part, weight = gallery.scored.parts[place]
    column, own = gallery.columns(["demo-0003", "newcomer"])
    query = gallery.accounts(["newcomer"])
    slope, _ = evidence.line(part, query, column, own)
    one, other = part.inner.encoder(query.batch(slice(0, 1), evidence.MAX_TOKENS)), part.inner.rows[column]
    product = one.multiply(other).tocoo()
    strongest = np.argsort(-product.data)[:10]
    without = (one @ other.T).toarray()[0, 0] - product.data[strongest].sum()
    mine = taken_apart[(taken_apart.member == "tfidf_subword") & (taken_apart.feature != evidence.OFFSET)]
    told = mine.contribution.nlargest(10).sum()
    fall = weight * slope * ((one @ other.T).toarray()[0, 0] - without)
    assert told >= fall - 1e-6 and told < 1.2 * fall  # pairs of one spelling are listed together


def test_every_member_is_there_with_its_offset(gallery, taken_apart):
    used = {name for name, weight in gallery.model.weights.items() if weight}
    assert set(taken_apart.member) == used
    assert set(taken_apart[taken_apart.feature == evidence.OFFSET].member) == used
    assert taken_apart[taken_apart.member == "hours"].feature.str.contains("h UTC").any()


def test_of_two_accounts_alone(encoder):
    small = AccountGallery.of(encoder, [["I like tea, a lot.", "Tea again!"], ["no semicolons; ever"]], ["tea", "semi"])
    query = small.queries([["Tea is what I like!"]])
    parts = evidence.contributions(small, query, "tea")
    assert abs(parts.contribution.sum() - small.rank(query).score[0]) < 1e-5


def test_posts_are_escaped(encoder):
    hostile = AccountGallery.of(encoder, [["<img src=x onerror=alert(1)> tea & tea"], ["<b>tea</b> then"]], ["a", "b"])
    query = hostile.queries([["<img src=y> tea & coffee"]])
    html = evidence.highlighted(evidence.contributions(hostile, query, "a"), query, encoder.tokenizer)
    assert "<img" not in html and "&lt;" in html and html.count("<p>") == 1
