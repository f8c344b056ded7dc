"""Galleries: ranks with an open end, no account against itself, kept, grown and shrunk."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from helpers.accounts.encoder import ENOUGH, MAX_TOKENS
from helpers.accounts.gallery import HABIT_MARGIN, NOBODY, UNDECIDED, UNJUDGED, AccountGallery
from helpers.accounts.habits import (
    DOUBT_OF_OUTSIDERS,
    LIKENESS_WEIGHT,
    MAX_LIKENESS,
    in_common_words,
    likeness_term,
)
from helpers.accounts.samples import halves, texts_of
from helpers.core import paths
from helpers.evaluation.detection import DetectionCosts
from helpers.evaluation.models import Embeddings

POSTS = [["I like tea, a lot.", "Tea again!"], ["no semicolons; ever", "well; maybe"]]


def test_the_returned_account_is_found(gallery):
    found = gallery.rank(gallery.accounts(["newcomer"]), ["newcomer"])
    assert found.target[0] == "demo-0003" and found["rank"][0] == 1
    assert found.target.iloc[-1] == NOBODY and "newcomer" not in set(found.target)
    assert not found.linked.iloc[-1], "nobody is no link"
    with pytest.raises(ValueError, match="1 queries have 2"):
        gallery.rank(gallery.accounts(["newcomer"]), ["a", "b"])


def test_accounts_of_a_gallery_are_not_embedded_again(gallery, monkeypatch):
    names = gallery.names[[5, 2, 9]]
    columns = gallery.columns(names)
    anew = gallery.targets[columns]
    expected = [*gallery.scores(anew, columns), likeness_term(gallery, anew)]
    gallery.scores(gallery.targets, np.arange(len(gallery)))
    monkeypatch.setattr("helpers.evaluation.models.embed", None)
    chosen = gallery.accounts(names)
    found = [*gallery.scores(chosen, columns), likeness_term(gallery, chosen)]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


def test_probabilities_are_those_of_the_formula(gallery):
    everyone = len(gallery)
    costs = DetectionCosts(prior=0.3)
    found = gallery.rank(gallery.accounts(["demo-0005"]), ["demo-0005"], everyone, costs)
    listed = found[found.target != NOBODY]
    assert len(listed) == everyone - 1
    ratios = np.exp(listed.llr.to_numpy())
    weighed = 0.3 / len(ratios) * ratios
    np.testing.assert_allclose(listed.probability, weighed / (0.7 + weighed.sum()), rtol=1e-9)
    np.testing.assert_allclose(found.probability.sum(), 1)
    assert (np.diff(listed.llr) <= 0).all()


def test_ranks_do_not_depend_on_order_batch_or_threads(gallery):
    """But for accounts so close that the rounding of raw scores may change their places."""
    order = np.random.default_rng(0).permutation(len(gallery))
    reordered = {"targets": gallery.targets[order], "names": gallery.names[order]}
    mixed = replace(gallery, **reordered, embeddings=Embeddings())
    queries = sorted(gallery.names)[:3]
    expected = gallery.rank(gallery.accounts(queries), queries, len(gallery))
    expected = expected.set_index(["query", "target"])
    threads = torch.get_num_threads()
    for asked in (queries[::-1], queries[1:2]):
        torch.set_num_threads(threads + 2)
        try:
            found = mixed.rank(mixed.accounts(asked), asked, len(mixed))
        finally:
            torch.set_num_threads(threads)
        found = found.set_index(["query", "target"])
        wanted = expected.loc[asked].reindex(found.index)
        assert len(found) == len(asked) * len(gallery)
        for column, limit in {"score": 1e-3, "llr": 0.02, "probability": 0.002}.items():
            np.testing.assert_allclose(
                found[column].astype(float), wanted[column].astype(float), rtol=0, atol=limit
            )


def test_scores_are_those_of_evaluation(encoder, mine):
    older, newer = halves(mine.store, 8)
    gallery = mine.gallery(newer)
    assert len(gallery) >= ENOUGH and gallery.normalised
    expected = encoder.model(True, mine.hours).score_matrix(older, newer, MAX_TOKENS)
    found = gallery.rank(older[np.arange(3)], None, len(gallery))
    for row in range(3):
        listed = found[(found["query"] == f"query {row}") & (found.target != NOBODY)]
        scores = dict(zip(listed.target, listed.score))
        found_scores = [scores[name] for name in gallery.names]
        np.testing.assert_allclose(found_scores, expected[row], atol=1e-4)


def test_few_accounts_are_compared_each_for_itself(encoder, monkeypatch):
    small = AccountGallery.of(encoder, POSTS, ["tea", "semicolons"])
    assert not small.normalised
    texts = [["Tea is what I like!", "More tea, please."], ["and so on"]]
    assert (small.link(texts).answer == UNJUDGED).all()
    monkeypatch.setattr("helpers.accounts.gallery.MIN_POSTS_TO_JUDGE", 1)
    links = small.link(texts, ["who", "other"])
    assert links["query"].tolist() == ["who", "other"] and links.target[0] == "tea"
    assert set(links.answer) == {UNDECIDED}, "so few accounts say nothing of a stranger"
    assert 0.94 <= links.nobody[0] < 1, "strangers who are all alike do not add up to somebody"
    with pytest.raises(ValueError, match="1 of them different"):
        AccountGallery.of(encoder, POSTS, ["a", "a"])


def test_links_are_the_numbers_of_rank(gallery):
    asked = ["newcomer", "demo-0005"]
    found = gallery.rank(gallery.accounts(asked), asked, 1, DetectionCosts(prior=0.5))
    between = found.probability[found.target != NOBODY].mean()  # one is linked, the other is not
    costs = DetectionCosts(prior=0.5, miss=1 - between, false_accept=between)
    links = gallery.link(gallery.accounts(asked), asked, costs=costs)
    assert links["query"].tolist() == asked
    best = found[found.target != NOBODY].reset_index(drop=True)
    columns = ["target", "probability", "score", "llr", "query_posts", "target_posts"]
    pd.testing.assert_frame_equal(links[columns], best[columns], check_dtype=False)
    assert links.nobody.tolist() == found.probability[found.target == NOBODY].tolist()
    assert links.answer[0] == "demo-0003" != links.answer[1]
    costs = DetectionCosts(prior=0.99, false_accept=1e9)
    likely = gallery.link(gallery.accounts(asked[:1]), asked[:1], costs=costs)
    assert likely.answer[0] == UNDECIDED
    assert likely.nobody[0] < likely.probability[0] < likely.threshold[0]


def test_a_query_without_words_of_its_own_does_not_stop_the_others(gallery, mine, encoder):
    copies = texts_of(mine.store, np.arange(8), encoder.tokenizer)
    texts = [["One is written here.", "So is this."], copies, [""], ["Another one.", "I think."]]
    names = ["first", "copier", "silent", "last"]
    times = [[1_700_000_000] * len(posts) for posts in texts]
    links = gallery.link(texts, names, times)
    assert links["query"].tolist() == names
    assert links.target.isna().tolist() == [False, True, True, False]
    assert (links.answer[1:3] == UNJUDGED).all() and links.nobody[1:3].isna().all()
    alone = gallery.link([copies], times=times[1:2])
    assert alone.answer.tolist() == [UNJUDGED] and alone.probability.isna().all()
    with pytest.raises(ValueError, match="with times"):
        gallery.queries([["a post"]])


SPELLING = {"you": "u", "your": "ur", "are": "r", "to": "2", "for": "4", "the": "da", "this": "dis"}
SPELLING |= {"and": "n", "that": "dat", "with": "w/", "be": "b", "should": "shud", "have": "hav"}


def respell(text):
    return re.sub(r"[a-z]+", lambda word: SPELLING.get(word[0], word[0]), text)


HABITS = {
    "chat spelling": respell,
    "Every Word Capital": str.title,
    "greeting": lambda text: f"Hello all,\n\n{text}\n\nThank you very much in advance!",
}


@pytest.fixture(scope="module")
def committers():
    """48 posts of each of 46 authors of commit messages, oldest first."""
    posts = pd.read_parquet(paths.PARAMS / "commits" / "messages.parquet")
    posts = posts.sort_values("time").groupby("author").tail(48)
    count = posts.author.value_counts()
    names = sorted(count.index[count == 48])[:46]
    return {name: posts.text[posts.author == name].tolist() for name in names}


def test_a_habit_alone_links_nobody(committers, encoder):
    """Of each habit somebody is accused where :mod:`helpers.accounts.habits` has no say."""
    names = list(committers)
    known = [committers[name][:24] for name in names[:40]]
    owners = [0, 1, 3]
    asked = []
    for owner, habit in zip(owners, HABITS.values()):
        people = [owner, *range(40, 46)]  # the owner of the habit, and strangers who take it up
        spelled = [[habit(text) for text in committers[names[row]]] for row in people]
        known[owner] = spelled[0][:24]
        asked += [posts[24:] for posts in spelled]
    gallery = AccountGallery.of(encoder, known, names[:40])
    costs = DetectionCosts(prior=0.5, false_accept=10)
    answers = gallery.link(gallery.queries(asked), costs=costs)
    for owner, habit, number in zip(owners, HABITS, range(3)):
        of_owner, *of_strangers = answers.iloc[7 * number : 7 * (number + 1)].itertuples()
        for stranger in of_strangers:
            assert not (stranger.target == names[owner] and stranger.probability > 0.9), habit
        assert of_owner.target == names[owner]
        # who writes every word with a capital is so unlike all others that an own account is missed
        assert (of_owner.answer == names[owner]) == (habit != "Every Word Capital")


def test_a_ratio_is_hardly_above_that_in_plain_words(gallery):
    """Whatever is the same in spelling and marks, and nothing where words say more."""
    queries = gallery.targets[np.arange(3)]
    low, high = np.full((3, len(gallery)), -4.0), np.full((3, len(gallery)), 4.0)
    words = gallery.llr([low, low], queries)
    by_habit = gallery.llr([high, low], queries)
    assert (words < by_habit).any() and (by_habit <= words + HABIT_MARGIN + 1e-6).all()
    np.testing.assert_array_equal(gallery.llr([low, high], queries), words)


def test_plain_words_are_without_rare_habits(committers, encoder):
    known = list(committers.values())
    known[0] = [respell(text) for text in known[0]]
    gallery = AccountGallery.of(encoder, known, list(committers))
    plain = in_common_words(gallery, gallery.targets)
    texts = texts_of(plain.store, np.arange(plain.store.posts), encoder.tokenizer)
    of_first = " ".join(texts[: plain.count[0]]).split()
    of_others = " ".join(texts[plain.count[0] :]).split()
    assert "the" in of_others and {"to", "is"} <= set(of_others)
    assert not {"da", "dat", "dis"} & set(of_first) and "is" in of_first


def test_likeness_speaks_for_own_accounts_and_against_strangers(committers, encoder):
    older = [posts[:24] for posts in committers.values()]
    newer = [posts[24:] for posts in committers.values()]
    gallery = AccountGallery.of(encoder, older, list(committers))
    added = likeness_term(gallery, gallery.queries(newer))
    assert (added.diagonal() > -1).mean() > 0.8
    assert added.max() < LIKENESS_WEIGHT * MAX_LIKENESS + 1e-4
    of_strangers = added[~np.eye(len(added), dtype=bool)]
    assert (of_strangers < -1).mean() > 0.8
    pairs = np.argwhere(added < -5)[:20]
    of_pairs = likeness_term(gallery, gallery.queries(newer), pairs)
    np.testing.assert_allclose(of_pairs, added[tuple(pairs.T)], atol=1e-4)


def test_two_from_another_place_are_doubted(committers, encoder):
    """Two who write in another way than all others: speeches beside commit messages."""
    speeches = pd.read_parquet(paths.PARAMS / "cortes" / "speeches.parquet")
    speeches = speeches.groupby("author").head(24)
    count = speeches.author.value_counts()
    outsiders = {name: speeches.text[speeches.author == name].tolist() for name in count.index[:2]}
    everybody = {name: posts[:24] for name, posts in committers.items()} | outsiders
    gallery = AccountGallery.of(encoder, list(everybody.values()), list(everybody))
    added = likeness_term(gallery, gallery.targets)
    highest = LIKENESS_WEIGHT * MAX_LIKENESS - DOUBT_OF_OUTSIDERS
    assert added[-2, -1] <= highest and added[-1, -2] <= highest
    pairs = np.array([[47, 46], [46, 47], [0, 47]])
    of_pairs = likeness_term(gallery, gallery.targets, pairs)
    np.testing.assert_allclose(of_pairs, added[tuple(pairs.T)], atol=1e-4)
