"""Verification: distances, maps and thresholds, the decision of dev on test, copied pairs."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score

from helpers.core.paths import Run
from helpers.encoders.baselines import fit_on_documents
from helpers.evaluation import verification
from helpers.evaluation.bootstrap import resample_weights
from helpers.evaluation.calibration import fit_calibration
from helpers.evaluation.models import Model, as_model
from helpers.evaluation.verification import (
    GRID,
    METRICS,
    apply_thresholds,
    best_thresholds,
    evaluate_documents,
    evaluate_verification,
    fit_decision,
    pan_metrics,
    threshold_surface,
    to_scores,
    trial_similarities,
    verification_metrics,
    verification_trials,
)
from helpers.tokens.document_sets import DocumentConfig, make_documents
from tests.factories import LookUp, one_token_samples, store_in_memory, unit_rows
from tests.oracles import slow_pan_metrics


class TestSimilarities:
    pairs = pd.DataFrame({"first": [0, 5, 2, 5], "second": [3, 4, 2, 0]})

    def test_each_pair_is_that_of_its_documents(self):
        rows = unit_rows(7, 4)
        rows[4] = 0  # a text that says nothing
        trials = verification_trials(one_token_samples(range(7)), self.pairs)
        model = LookUp(rows)
        cosines = (rows[self.pairs["first"]].astype(float) * rows[self.pairs.second]).sum(1)
        found = trial_similarities(model, trials)
        np.testing.assert_allclose(found, cosines, atol=1e-6)
        assert found[1] == 0 and found[2] == 1 and model.calls == 5, (
            "documents in no pair are not embedded"
        )
        raw = trial_similarities(LookUp(9 * rows, unit=False), trials)
        apart = 9 * (rows[self.pairs["first"]] - rows[self.pairs.second])
        np.testing.assert_allclose(raw, -np.linalg.norm(apart, axis=1), atol=1e-5)
        alone = as_model(LookUp(9 * rows, unit=False))
        np.testing.assert_array_equal(trial_similarities(alone, trials), raw)
        np.testing.assert_array_equal(trial_similarities(alone.members[0], trials), raw)

    def test_documents_are_posts_of_a_store_and_labels_come_from_its_authors(self):
        store = store_in_memory([2, 3, 2])
        trials = verification_trials(store, self.pairs)
        author = np.repeat([0, 1, 2], [2, 3, 2])
        assert (
            trials.same.tolist()
            == (author[self.pairs["first"]] == author[self.pairs.second]).tolist()
        )
        assert trials.queries.first[trials.pairs].tolist() == self.pairs.to_numpy().tolist()


class TestEvaluate:
    @pytest.fixture
    def sides(self):
        """Dev and test documents of 40 authors, whose two texts are alike."""
        authors = np.arange(80) % 40
        rows = unit_rows(40, 8)[authors] + 0.8 * unit_rows(80, 8, seed=1)
        model = LookUp((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))
        documents = one_token_samples(authors)

        def draw(low, high):
            two = pd.DataFrame(
                {"first": np.arange(low, high), "second": 40 + np.roll(np.arange(low, high), 1)}
            )
            one = pd.DataFrame({"first": np.arange(low, high), "second": 40 + np.arange(low, high)})
            return verification_trials(documents, pd.concat([one, two]))

        return model, draw(0, 20), draw(20, 40)

    def test_it_is_the_decision_of_dev_on_test(self, sides):
        model, dev, test = sides
        topics = np.arange(40) % 3 == 0
        table, scored = evaluate_verification(model, dev, test, same_topic=topics)
        decide, _ = fit_decision(trial_similarities(model, dev), dev.same)
        scores = decide(trial_similarities(model, test))
        assert (
            scored["test"].score.tolist() == scores.tolist()
            and scored["dev"].same.tolist() == dev.same.tolist()
        )
        for name, value in pan_metrics(scores, test.same).items():
            assert table.value[name] == pytest.approx(value)
        hard = test.same != topics
        assert table.value["hardest_AUC"] == pytest.approx(
            roc_auc_score(test.same[hard], scores[hard])
        )
        assert (
            table.value["dev_overall"]
            == pan_metrics(decide(trial_similarities(model, dev)), dev.same)["overall"]
        )
        ends = table.loc[["AUC", "F1", "c@1", "F_0.5u", "Brier", "overall", "hardest_AUC"]]
        assert ((ends.low <= ends.value) & (ends.value <= ends.high)).all() and (
            ends.low < ends.high
        ).any()
        assert table.loc[["n_unanswered", "dev_overall"], ["low", "high"]].isna().all(axis=None)

    def test_intervals_are_those_of_copied_pairs(self, sides):
        """A pair is there as often as its author was drawn, of two authors the product."""
        table, scored = evaluate_verification(*sides, resamples=20, seed=3)
        test, score, drawn = sides[2], scored["test"].score.to_numpy(), []
        for times in resample_weights(np.arange(20, 40), 20, seed=3):
            one, other = times[test.queries.authors[test.pairs.T] - 20]
            rows = np.repeat(np.arange(40), np.where(test.same, one, one * other))
            drawn.append([pan_metrics(score[rows], test.same[rows])[name] for name in METRICS])
        wanted = np.percentile(drawn, [2.5, 97.5], axis=0)
        np.testing.assert_allclose(table.loc[list(METRICS), ["low", "high"]].T, wanted)

    def test_a_paired_difference_is_that_of_copied_pairs(self, sides):
        """PAN's metrics of the pairs of the drawn authors, by both models."""
        model, dev, test = sides
        noise = unit_rows(80, 8, seed=9)
        other = LookUp((model.rows + noise) / np.linalg.norm(model.rows + noise, axis=1)[:, None])
        both = [
            evaluate_verification(part, dev, test, resamples=0)[1]["test"]
            for part in (model, other)
        ]
        table = verification_metrics(*both, resamples=20, seed=3)
        assert table.index.tolist() == [f"{name}_difference" for name in METRICS]
        ours, theirs = (part.score.to_numpy() for part in both)

        def difference(rows):
            metrics = [pan_metrics(part[rows], test.same[rows]) for part in (ours, theirs)]
            return [metrics[0][name] - metrics[1][name] for name in METRICS]

        np.testing.assert_allclose(table.value, difference(np.arange(40)))
        drawn = []
        for times in resample_weights(np.arange(20, 40), 20, seed=3):
            one, two = times[test.queries.authors[test.pairs.T] - 20]
            drawn.append(difference(np.repeat(np.arange(40), np.where(test.same, one, one * two))))
        wanted = np.percentile(drawn, [2.5, 97.5], axis=0)
        np.testing.assert_allclose(table[["low", "high"]].T, wanted, atol=1e-12)
        with pytest.raises(ValueError, match="not measured on the same pairs"):
            verification_metrics(both[0], both[1][::-1].reset_index(drop=True))

    def test_settings(self, sides):
        table, scored = evaluate_verification(
            *sides, definition="pan20", decision="shift", resamples=0
        )
        model, dev, test = sides
        decide, _ = fit_decision(trial_similarities(model, dev), dev.same, "pan20", "shift")
        assert scored["test"].score.tolist() == decide(trial_similarities(model, test)).tolist()
        alone = pan_metrics(scored["test"].score, test.same, "pan20")
        assert table.value["overall"] == pytest.approx(alone["overall"])
        assert table[["low", "high"]].isna().all(axis=None)


class TestRawTexts:
    """PAN's baseline, on documents whose WordPiece loses case, accents, blanks and emoji."""

    WORDS = "Élan élan NAÏVE naive don't (sic) \U0001f642 Straße the of".split()
    BLANKS = [" ", "  ", "\n", "\u00a0", "... "]
    PAIRS = pd.DataFrame(combinations(range(8), 2), columns=["first", "second"])

    @pytest.fixture
    def texts(self):
        rng = np.random.default_rng(0)
        texts = {"train": [], "dev": [], "test": []}
        for split in texts:
            for _ in range(8):
                words = zip(rng.choice(self.WORDS, 30), rng.choice(self.BLANKS, 30))
                texts[split].append("".join(word + blank for word, blank in words).strip())
        return texts

    @pytest.fixture
    def wordpiece(self, tmp_path):
        """The folder of a tokenizer that writes lower case without accents."""
        from transformers import BertConfig, BertTokenizerFast

        folder = tmp_path / "model"
        folder.mkdir()
        letters = "abcdefghijklmnopqrstuvwxyzß'().,"
        continued = [f"##{letter}" for letter in letters]
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        (folder / "vocab.txt").write_text("\n".join([*special, *letters, *continued]))
        BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
        BertConfig().save_pretrained(folder)
        return str(folder)

    @pytest.fixture
    def measure(self, texts, wordpiece, tmp_path, monkeypatch, write_posts):
        """Return the documents, the baseline and its pairs of test, with raw texts or without."""
        monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
        files = Run("pan")
        files.posts.mkdir(parents=True)
        for split, authors in (("train", "ab"), ("dev", "cd"), ("test", "ef")):
            author = np.repeat(list(authors), 4)
            rows = [(author[n], n, "x", text) for n, text in enumerate(texts[split])]
            write_posts(rows, f"pan/posts/{split}.parquet")
        pairs = self.PAIRS.assign(same_topic=False)

        def measured(raw_texts, max_tokens):
            config = DocumentConfig(max_chars=0, model=wordpiece, raw_texts=raw_texts)
            documents = make_documents(files, config)
            encoder = fit_on_documents("tfidf_4grams", documents, max_tokens)
            judged = {"dev": pairs, "test": pairs}
            _, scored = evaluate_documents(
                encoder, documents, judged, max_tokens, decision="shift", resamples=0
            )
            return documents, encoder, scored["test"]

        return measured

    def similarities(self, train, test):
        """Those of the vectoriser of PAN's script, fitted and asked on texts."""
        vectoriser = TfidfVectorizer(analyzer="char", ngram_range=(4, 4), max_features=3000)
        rows = vectoriser.fit(train).transform(test).toarray()
        return (rows[self.PAIRS["first"]] * rows[self.PAIRS.second]).sum(1)

    def test_the_baseline_reads_whole_texts_as_they_were_written(self, texts, measure):
        expected = self.similarities(texts["train"], texts["test"])
        documents, encoder, scored = measure(raw_texts=True, max_tokens=5)
        np.testing.assert_allclose(scored.similarity, expected, atol=3e-6)
        assert scored["same"].sum() == 12
        assert encoder.tokenizer is documents.raw.tokenizer
        subwords = fit_on_documents("tfidf_subword", documents, max_tokens=5)
        assert subwords.tokenizer is documents.tokenizer, "it counts the tokens of the documents"

    def test_a_member_of_a_model_reads_what_it_was_fitted_on(self, texts, measure):
        documents, encoder, scored = measure(raw_texts=True, max_tokens=5)
        pairs = self.PAIRS.assign(same_topic=False)
        judged = {"dev": pairs, "test": pairs}
        _, alone = evaluate_documents(
            as_model(encoder), documents, judged, 5, decision="shift", resamples=0
        )
        np.testing.assert_array_equal(alone["test"].similarity, scored.similarity)
        subwords = fit_on_documents("tfidf_subword", documents, max_tokens=5)
        both = Model.fuse({"raw": encoder, "tokens": subwords})
        with pytest.raises(ValueError, match="some members read raw texts"):
            evaluate_documents(both, documents, judged, 5, decision="shift", resamples=0)

    def test_else_it_reads_what_wordpiece_left_of_them(self, texts, measure):
        documents, _, scored = measure(raw_texts=False, max_tokens=1000)
        spelt = {}
        for split, store in documents.stores.items():
            tokens = np.split(store.tokens, store.post_offsets[1:-1])
            spelt[split] = [documents.tokenizer.decode(ids) for ids in tokens]
        expected = self.similarities(spelt["train"], spelt["test"])
        np.testing.assert_allclose(scored.similarity, expected, atol=3e-6)
        raw = self.similarities(texts["train"], texts["test"])
        assert np.abs(scored.similarity - raw).mean() > 0.02, "the two can be told apart"


def trials(size=200, seed=0):
    """Scores with many ties, some of them unanswered."""
    rng = np.random.default_rng(seed)
    same = rng.random(size) < 0.4
    return np.round((rng.random(size) + 0.5 * same) / 1.5, 1), same


class TestThresholds:
    def test_by_hand(self):
        answers = apply_thresholds([0, 0.2, 0.4, 0.5, 0.6, 0.8, 1], 0.4, 0.6)
        assert answers == pytest.approx([0, 0.25, 0.5, 0.5, 0.5, 0.75, 1])

    @pytest.mark.parametrize(
        "lower, upper", [(0.470, 0.553), (0.1, 0.3), (0.7, 0.7), (0, 1), (0, 0), (1, 1)]
    )
    def test_only_what_lies_between_is_unanswered_and_order_stays(self, lower, upper):
        near = [np.nextafter(edge, side) for edge in (lower, upper) for side in (0, 1)]
        scores = np.sort(
            np.concatenate(
                [np.random.default_rng(0).random(1000), near, [lower, upper, 0, 1, 1e-300]]
            )
        )
        answers = apply_thresholds(scores, lower, upper)
        np.testing.assert_array_equal(answers == 0.5, (lower <= scores) & (scores <= upper))
        np.testing.assert_array_equal(answers < 0.5, scores < lower)
        assert (np.diff(answers) >= 0).all() and answers.min() >= 0 and answers.max() <= 1

    def test_in_the_middle_nothing_changes(self):
        scores = np.random.default_rng(0).random(1000)
        np.testing.assert_allclose(apply_thresholds(scores, 0.5, 0.5), scores, atol=1e-15)

    def test_the_surface_finds_a_known_best(self, monkeypatch):
        """Below 0.3 all are different, above 0.6 all the same, and between it is a toss-up."""
        scores = np.linspace(0.005, 0.995, 120)
        same = np.where(scores < 0.6, (np.arange(120) % 2 == 0) & (scores > 0.3), True)
        grid = np.round(np.arange(0.1, 1, 0.1), 1)
        monkeypatch.setattr(verification, "GRID", grid)
        surface = threshold_surface(scores, same)
        assert len(surface) == 45 and (surface.lower <= surface.upper).all()
        lower, upper = best_thresholds(surface)
        scored = {
            (low, high): slow_pan_metrics(apply_thresholds(scores, low, high), same, "pan21")[
                "overall"
            ]
            for low in grid
            for high in grid
            if low <= high
        }
        assert scored[lower, upper] == pytest.approx(max(scored.values())) == surface.overall.max()
        assert (lower, upper) == max(scored, key=scored.get) and lower >= 0.3

    def test_of_equal_ones_the_fewest_unanswered(self):
        surface = pd.DataFrame(
            {
                "lower": [0.2, 0.3, 0.1],
                "upper": [0.6, 0.5, 0.5],
                "overall": [0.8, 0.8, 0.7],
                "n_unanswered": [4, 2, 0],
            }
        )
        assert best_thresholds(surface) == (0.3, 0.5)


class TestMaps:
    def dev(self, size=2000):
        rng = np.random.default_rng(0)
        same = rng.random(size) < 0.5
        return rng.standard_normal(size) - 5 - 1.5 * ~same, same

    def test_a_score_is_monotone_and_right(self):
        similarities, same = self.dev(40_000)
        fitted = fit_calibration(similarities, same, prior=0.5)
        scores = to_scores(fitted, np.linspace(-20, 0, 200))
        assert (np.diff(scores) > 0).all() and scores.min() >= 0 and scores.max() <= 1
        given = to_scores(fitted, similarities)
        for low in (0.1, 0.4, 0.7):
            chosen = (low <= given) & (given < low + 0.2)
            assert same[chosen].mean() == pytest.approx(given[chosen].mean(), abs=0.05)

    def test_each_pair_is_scored_alone(self):
        similarities, same = self.dev()
        fitted = fit_calibration(similarities, same, prior=0.5)
        alone = np.array([to_scores(fitted, similarities[[row]])[0] for row in range(50)])
        np.testing.assert_array_equal(
            to_scores(fitted, np.append(similarities[:50], [1e6, -1e6]))[:50], alone
        )


class TestDecision:
    same = np.random.default_rng(1).random(400) < 0.5
    similarity = np.random.default_rng(2).normal(0.4 * same, 0.3)

    @pytest.mark.parametrize("kind", ["calibrated", "shift"])
    def test_it_is_learned_on_dev_and_judges_each_pair_alone(self, kind):
        dev, test = slice(0, 200), slice(200, 400)
        decide, (lower, upper) = fit_decision(self.similarity[dev], self.same[dev], kind=kind)
        scores = decide(self.similarity[test])
        assert 0 < lower <= upper < 1 and ((0 <= scores) & (scores <= 1)).all()
        assert np.array_equal(
            np.concatenate([decide(self.similarity[[number]]) for number in range(200, 400)]),
            scores,
        )
        plain = np.clip(self.similarity[dev], 0, 1)
        if kind == "calibrated":
            fitted = fit_calibration(self.similarity[dev], self.same[dev], prior=0.5)
            plain = to_scores(fitted, self.similarity[dev])
        surface = threshold_surface(plain, self.same[dev])
        best = pan_metrics(decide(self.similarity[dev]), self.same[dev])["overall"]
        assert best == pytest.approx(surface.overall.max())
        assert best >= pan_metrics(plain, self.same[dev])["overall"]
        assert pan_metrics(scores, self.same[test])["AUC"] > 0.75


def test_the_grid_holds_the_identity():
    assert 0.5 in GRID and len(GRID) == 49
