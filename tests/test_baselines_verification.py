"""The baselines of verification against scikit-learn, against counting by hand, and on texts of known authors."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity

from helpers.evaluation.ngrams import (
    ALPHABET, PPM, cosines, cross_entropies, fit_compression, fit_ngrams, fit_shift,
)  # fmt: skip
from helpers.evaluation.verification import pan_metrics

WORDS = "the sea is calm and the wind blows over old stones while nobody asks why this road has no end".split()


def pairs(size=60, words=120, seed=0):
    """Texts of authors who each prefer some of the words."""
    rng = np.random.default_rng(seed)
    taste = rng.dirichlet(np.full(len(WORDS), 0.5), size)

    def text(author):
        return " ".join(rng.choice(WORDS, words, p=taste[author]))

    same = np.arange(size) % 2 == 0
    a = rng.permutation(size)
    b = np.where(same, a, np.roll(a, 1))
    return pd.DataFrame({"text_a": [text(each) for each in a], "text_b": [text(each) for each in b], "same": same})


def naive_probability(text, order, context, byte):
    """PPM-C from the definition: every context is looked for in the whole text."""
    left, excluded = 1.0, set()
    for length in range(min(order, len(context)), -1, -1):
        tail = context[len(context) - length :]
        followers = [text[at + length] for at in range(len(text) - length) if text[at : at + length] == tail]
        followers = [each for each in followers if each not in excluded]
        if followers:
            different = set(followers)
            if byte in different:
                return left * followers.count(byte) / (len(followers) + len(different))
            left *= len(different) / (len(followers) + len(different))
            excluded |= different
    return left / (256 - len(excluded))


class TestPPM:
    def test_it_is_that_of_counting(self):
        text, other = "abracadabra, abraham!", "abraxas ham, cadillac"
        for order in (0, 1, 3, 5):
            model, data = PPM(text, order), other.encode()
            for end in range(len(data)):
                wanted = naive_probability(text.encode(), order, data[:end], data[end])
                assert model.probability(data[:end], data[end]) == pytest.approx(wanted)

    def test_probabilities_add_up(self):
        model = PPM("abracadabra, the sea ä is calm")
        for context in (b"", b"abr", b"abrac", b"xyz", b"the s", "ä".encode()):
            assert sum(model.probability(context, byte) for byte in range(ALPHABET)) == pytest.approx(1)

    def test_by_hand(self):
        """After "a": b, c, d once each; after nothing: a 3, b, c, d 1 of 6, with 4 different."""
        model = PPM("abacad", order=1)
        assert model.probability(b"a", ord("b")) == pytest.approx(1 / 6)
        assert model.probability(b"a", ord("a")) == pytest.approx(3 / 6 * 3 / 4)
        assert model.probability(b"a", ord("z")) == pytest.approx(3 / 6 * 1 / 4 / 252)
        assert model.probability(b"z", ord("b")) == pytest.approx(1 / 10)

    def test_cross_entropy(self):
        assert PPM("").cross_entropy("abc") == pytest.approx(8), "nothing is known: all bytes alike"
        model = PPM("abacad", order=1)
        assert model.cross_entropy("ab") == pytest.approx((math.log2(10 / 3) + math.log2(6)) / 2)
        assert math.isnan(model.cross_entropy(""))
        text = " ".join(np.random.default_rng(0).choice(WORDS, 400))
        assert PPM(text).cross_entropy(text) < PPM(text).cross_entropy(text[::-1]) / 2


class TestNgrams:
    def test_the_cosine_is_that_of_scikit_learn(self):
        table = pairs()
        vectorizer = fit_ngrams([*table.text_a[:20], *table.text_b[:20]])
        rows = [vectorizer.transform(table[name]) for name in ("text_a", "text_b")]
        found = cosines(vectorizer, table)
        np.testing.assert_allclose(found, np.diag(cosine_similarity(*rows)), atol=1e-6)
        reference = TfidfVectorizer(analyzer="char", ngram_range=(4, 4), max_features=3000)
        reference.fit([*table.text_a[:20], *table.text_b[:20]])
        assert vectorizer.vocabulary_ == reference.vocabulary_, "of the training texts alone"
        assert found.min() >= 0 and found.max() <= 1

    def test_a_pair_is_scored_alone_and_unknown_texts_are_zero(self):
        table = pairs()
        vectorizer = fit_ngrams([*table.text_a, *table.text_b])
        more = pd.concat([table, pd.DataFrame({"text_a": ["", "1234567"], "text_b": ["the sea", "the sea"]})])
        assert cosines(vectorizer, more)[-2:].tolist() == [0, 0]
        np.testing.assert_array_equal(cosines(vectorizer, more)[:60], cosines(vectorizer, table))

    def test_the_shift_is_of_dev_alone_and_beats_none(self):
        dev, test = pairs(120), pairs(120, seed=1)
        vectorizer = fit_ngrams([*dev.text_a, *dev.text_b])
        grid = np.linspace(0.1, 0.9, 17)
        shift = fit_shift(cosines(vectorizer, dev), dev.same, grid=grid)
        cosine = cosines(vectorizer, test)
        scores = shift(cosine)
        assert pan_metrics(scores, test.same)["overall"] > pan_metrics(cosine, test.same)["overall"] + 0.02
        order = np.argsort(cosine)
        assert (np.diff(scores[order]) >= 0).all()
        np.testing.assert_array_equal(shift(cosine[:5]), scores[:5])


class TestCompression:
    def test_features(self):
        table = pd.DataFrame({"text_a": ["abacad", "xyz"], "text_b": ["abab", "xyz"]})
        one, other = PPM("abacad").cross_entropy("abab"), PPM("abab").cross_entropy("abacad")
        found = cross_entropies(table)
        assert found[0] == pytest.approx([(one + other) / 2, abs(one - other)]) and found[1, 1] == 0
        cut = cross_entropies(table, characters=2)
        assert cut[0] == pytest.approx([PPM("ab").cross_entropy("ab"), 0])
        with pytest.raises(ValueError, match="1 of 2 pairs hold an empty text"):
            cross_entropies(table.assign(text_a=["abacad", ""]))

    def test_it_tells_authors_apart_and_scores_pairs_alone(self):
        dev, test = pairs(60), pairs(60, seed=1)
        score = fit_compression(cross_entropies(dev), dev.same)
        features = cross_entropies(test)
        found = score(features)
        assert roc_auc_score(test.same, found) > 0.85
        np.testing.assert_allclose(score(features[:7]), found[:7], rtol=1e-12)
