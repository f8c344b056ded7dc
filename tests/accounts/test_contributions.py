"""Contributions add up to the score, whatever the member."""

import numpy as np
import pytest

from helpers.accounts.contributions import OFFSET, contributions, scores_by_member
from helpers.accounts.gallery import AccountGallery
from helpers.accounts.samples import MAX_TOKENS


@pytest.fixture(scope="module")
def parts(gallery):
    return contributions(gallery, gallery.accounts(["newcomer"]), "demo-0003", "newcomer")


def test_contributions_add_up(gallery, parts):
    ranking = gallery.rank(gallery.accounts(["newcomer"]), ["newcomer"], len(gallery))
    score = ranking.set_index("target").score["demo-0003"]
    # scores are rounded to 2**-20
    assert abs(parts.contribution.sum() - score) < 1e-5 * max(1, abs(score))
    sums = scores_by_member(parts)
    assert sums.member.iloc[-1] == "All members"
    np.testing.assert_allclose(sums.contribution.iloc[-1], parts.contribution.sum())


def test_a_feature_is_worth_what_its_removal_costs(gallery, parts):
    """Of TF-IDF of subwords: without the ten features the product falls by what they contribute."""
    (member,) = (part for part in gallery.model.members if part.name == "tfidf_subword")
    target_row, query_row = gallery.columns(["demo-0003", "newcomer"])
    opened, query_vector = member.opened(
        gallery.accounts(["newcomer"]), gallery.targets, MAX_TOKENS
    )
    slope, _ = opened.line(query_vector, target_row, query_row)
    target_vector = opened.rows[target_row]
    product = query_vector.multiply(target_vector).tocoo()
    strongest = np.argsort(-product.data)[:10]
    score = (query_vector @ target_vector.T).toarray()[0, 0]
    fall = member.weight * slope * (score - (score - product.data[strongest].sum()))
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
    assert abs(parts.contribution.sum() - small.rank(query).score[0]) < 1e-5
