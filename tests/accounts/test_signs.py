"""Contributions add up to the score; words of the topic are marked, and texts are escaped."""

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.accounts.gallery import AccountGallery
from helpers.accounts.samples import MAX_TOKENS
from helpers.accounts.signs import OFFSET, contributions, highlight, part_of_words, topic_words


@pytest.fixture(scope="module")
def parts(gallery):
    return contributions(gallery, gallery.accounts(["newcomer"]), "demo-0003", "newcomer")


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


def test_words_have_the_part_of_the_features_that_hold_them():
    rows = [("lsa", " tea", 2.0), ("lsa", " Tea time", 1.0), ("lsa", " team", 4.0)]
    parts = pd.DataFrame([*rows, ("hours", "5 h UTC", 8.0)])
    parts.columns = ["member", "feature", "contribution"]
    assert part_of_words(parts, ["tea", "c++"]) == 3


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
def test_contributions_of_any_gallery_add_up(encoder, seed, accounts, kind, hours, equal, unknown):
    rng = np.random.default_rng(seed)
    posts = invented_posts(rng, accounts, kind, equal, unknown)
    times = None
    if hours:
        times = [[int(second) for second in rng.integers(10**9, 2e9, len(own))] for own in posts]
    names = [f"a{number}" for number in range(accounts)]
    gallery = AccountGallery.of(encoder, posts, names, times)
    check_sum(gallery, "a0", "a1")
    check_sum(gallery, names[-1], "a0")


def check_sum(gallery, name, target):
    """Compare with the score of a query that is ranked alone, and among all others."""
    query = gallery.accounts([name])
    total = contributions(gallery, query, target, name).contribution.sum()
    alone = gallery.rank(query, [name], len(gallery))
    among_all = gallery.rank(gallery.targets, list(gallery.names), len(gallery))
    for ranking in (alone, among_all):
        row = ranking[(ranking["query"] == name) & (ranking.target == target)]
        np.testing.assert_allclose(total, row.score.item(), rtol=1e-4, atol=1e-3)


def test_words_of_the_topic_are_underlined_and_escaped(encoder):
    posts = [["the kiln & <x>kilns</x>, kiln"], ["a kiln then, <b>tea</b>"]]
    gallery = AccountGallery.of(encoder, posts, ["a", "b"])
    query = gallery.accounts(["a"])
    html = highlight(contributions(gallery, query, "b", "a"), query, encoder.tokenizer, 5, ["kiln"])
    marked = re.findall(r"<span style=\"[^\"]*underline dotted\">([^<]*)</span>", html)
    assert "".join(marked).replace(" ", "") == "kilnkiln"
    assert re.sub("<[^>]*>", "", html).strip() == "the kiln &amp; &lt;x&gt;kilns&lt;/x&gt;, kiln"


def gallery_of_rooms(encoder, count=24):
    """Accounts of two rooms; the first speaks of kilns, and two accounts say "forsooth" alike."""
    rng = np.random.default_rng(0)
    words = "the a some never always green red two three want like well so but then old".split()
    posts = []
    rooms = []
    for account in range(count):
        texts = [rng.choice(words, 6).tolist() for _ in range(16)]
        rooms.append(["clay" if account % 2 == 0 or post % 8 == 0 else "tea" for post in range(16)])
        for post in range(16):
            if rooms[-1][post] == "clay" and post % 4 == 0:
                texts[post].insert(3, "kiln")
            if account < 2 and post % 2 == 0:
                texts[post].insert(3, "forsooth")
            if post % 5 == 0:
                texts[post].insert(3, "yonder")
        posts.append([" ".join(of_post) for of_post in texts])
    names = [f"account {number}" for number in range(count)]
    return AccountGallery.of(encoder, posts, names, topics=rooms)


def test_topic_words_are_of_the_room_and_of_neither_account(encoder):
    """kiln is the room's; forsooth, as often there, is theirs; yonder is everybody's everywhere."""
    gallery = gallery_of_rooms(encoder)
    query = gallery.accounts(["account 0"])
    assert topic_words(gallery, query, "account 1", "account 0") == ["kiln"]
    assert topic_words(gallery, query, "account 2", "account 0") == ["kiln"]
    alone = AccountGallery(encoder, gallery.accounts(["account 1"]), ["account 1"])
    assert topic_words(alone, query, "account 1") == [], "nobody else to say what is the room's"
