"""Contributions add up to the score, whatever the member, and posts are escaped where they become HTML."""

import re

import numpy as np
import pytest

from helpers.accounts.contributions import OFFSET, contributions, dividing_line, scores_by_member
from helpers.accounts.gallery import AccountGallery
from helpers.accounts.highlight import highlight
from helpers.accounts.samples import MAX_TOKENS
from helpers.accounts.topic_words import topic_words, without_words
from helpers.sources import demo_lexicon


@pytest.fixture(scope="module")
def taken_apart(gallery):
    return contributions(gallery, gallery.accounts(["newcomer"]), "demo-0003", "newcomer")


def test_contributions_add_up(gallery, taken_apart):
    found = gallery.rank(gallery.accounts(["newcomer"]), ["newcomer"], len(gallery)).set_index(
        "target"
    )
    score = found.score["demo-0003"]
    assert abs(taken_apart.contribution.sum() - score) < 1e-5 * max(
        1, abs(score)
    )  # scores are rounded to 2**-20
    sums = scores_by_member(taken_apart)
    assert sums.member.iloc[-1] == "All members"
    np.testing.assert_allclose(sums.contribution.iloc[-1], taken_apart.contribution.sum())


def test_a_feature_is_worth_what_its_removal_costs(gallery, taken_apart, encoder):
    """Of TF-IDF of subwords: the product without the ten features is smaller by what they are said to contribute."""
    place = list(name for name, weight in gallery.model.weights.items() if weight).index(
        "tfidf_subword"
    )
    part, weight = gallery.scored.parts[place]
    column, own = gallery.columns(["demo-0003", "newcomer"])
    query = gallery.accounts(["newcomer"])
    slope, _ = dividing_line(part, query, column, own)
    one, other = (
        part.inner.encoder(query.batch(slice(0, 1), MAX_TOKENS)),
        part.inner.rows[column],
    )
    product = one.multiply(other).tocoo()
    strongest = np.argsort(-product.data)[:10]
    without = (one @ other.T).toarray()[0, 0] - product.data[strongest].sum()
    mine = taken_apart[
        (taken_apart.member == "tfidf_subword") & (taken_apart.feature != OFFSET)
    ]
    told = mine.contribution.nlargest(10).sum()
    fall = weight * slope * ((one @ other.T).toarray()[0, 0] - without)
    assert told >= fall - 1e-6 and told < 1.2 * fall  # pairs of one spelling are listed together


def test_every_member_is_there_with_its_offset(gallery, taken_apart):
    used = {name for name, weight in gallery.model.weights.items() if weight}
    assert set(taken_apart.member) == used
    assert set(taken_apart[taken_apart.feature == OFFSET].member) == used
    assert taken_apart[taken_apart.member == "hours"].feature.str.contains("h UTC").any()


def test_of_two_accounts_alone(encoder):
    small = AccountGallery.of(
        encoder, [["I like tea, a lot.", "Tea again!"], ["no semicolons; ever"]], ["tea", "semi"]
    )
    query = small.queries([["Tea is what I like!"]])
    parts = contributions(small, query, "tea")
    assert abs(parts.contribution.sum() - small.rank(query).score[0]) < 1e-5


def roomy(encoder, count=24):
    """Accounts of two rooms, of which the first speaks of kilns; two of them also say "forsooth" and "glaze" alike."""
    rng = np.random.default_rng(0)
    words = "the a some never always green red two three want like well so but then maybe old new".split()
    posts, rooms = [], []
    for account in range(count):
        said = [" ".join(rng.choice(words, 6)) for _ in range(16)]
        rooms.append(["clay" if account % 2 == 0 or post % 8 == 0 else "tea" for post in range(16)])
        for post in range(16):
            if rooms[-1][post] == "clay" and post % 4 == 0:
                said[post] += " kiln"
            if account < 2 and post % 2 == 0:
                said[post] += " forsooth"
            if post % 5 == 0:
                said[post] += " yonder"
        posts.append(said)
    return AccountGallery.of(
        encoder, posts, [f"account {each}" for each in range(count)], topics=rooms
    )


def test_topic_words_are_of_the_room_and_of_neither_account(encoder):
    """kiln is the room's; forsooth, as often there, is theirs; yonder is everybody's everywhere."""
    rooms = roomy(encoder)
    query = rooms.accounts(["account 0"])
    assert topic_words(rooms, query, "account 1", "account 0") == ["kiln"]
    assert topic_words(rooms, query, "account 2", "account 0") == ["kiln"]
    alone = rooms.without_accounts([name for name in rooms.names if name != "account 1"])
    assert topic_words(alone, query, "account 1") == [], (
        "nobody else to say what is the room's"
    )


def test_topic_words_of_the_demo_are_those_that_were_planted(gallery):
    planted = {word for topic in demo_lexicon.TOPICS.values() for kind in topic.values() for name in kind
               for word in name.split()}  # fmt: skip
    told = topic_words(gallery, gallery.accounts(["newcomer"]), "demo-0003", "newcomer")
    assert told and set(told) <= planted


def test_what_remains_without_words_is_the_score_of_posts_that_lack_them(encoder):
    posts = [
        ["I like kilns and tea, a lot.", "Kiln, again!"],
        ["no kiln; ever", "kiln well; maybe", "kiln"],
    ]
    small = AccountGallery.of(encoder, posts, ["one", "other"])
    bare = [[re.sub("(?i)kiln", "", post) for post in each] for each in posts]
    rest = without_words(small, small.accounts(["one"]), "other", ["kiln"], "one")
    plain = encoder.encode(
        [[re.sub(r"(?i)\bkiln\b", "", post) or " " for post in each][:2] for each in posts]
    )
    whole = small.rank(small.accounts(["one"]), ["one"]).score[0]
    assert rest.score < whole and abs(
        rest.score - encoder.similarity(plain, plain)[0, 1]
    ) < 0.15 * abs(whole)
    outside = without_words(small, small.accounts(["one"]), "other", ["kiln"])
    assert abs(outside.score - rest.score) < 1e-4, (
        "asked from outside, one stays in the gallery as it is"
    )
    untouched = without_words(small, small.accounts(["one"]), "other", ["unsaid"], "one")
    assert abs(untouched.score - whole) < 1e-5


def test_words_of_the_topic_are_underlined_and_escaped(encoder):
    gallery = AccountGallery.of(
        encoder, [["the kiln & <b>kilns</b>, kiln"], ["a kiln then"]], ["a", "b"]
    )
    query = gallery.accounts(["a"])
    html = highlight(
        contributions(gallery, query, "b", "a"), query, encoder.tokenizer, 5, ["kiln"]
    )
    marked = re.findall(r"<span style=\"[^\"]*underline dotted\">([^<]*)</span>", html)
    assert "".join(marked).replace(" ", "") == "kilnkiln"
    assert re.sub("<[^>]*>", "", html).strip() == "the kiln &amp; &lt;b&gt;kilns&lt;/b&gt;, kiln"


def test_posts_are_escaped(encoder):
    hostile = AccountGallery.of(
        encoder, [["<img src=x onerror=alert(1)> tea & tea"], ["<b>tea</b> then"]], ["a", "b"]
    )
    query = hostile.queries([["<img src=y> tea & coffee"]])
    html = highlight(contributions(hostile, query, "a"), query, encoder.tokenizer)
    assert "<img" not in html and "&lt;" in html and html.count("<p>") == 1
