"""Lists of settings as experiments, and the choice among their trainings by a score."""

from types import SimpleNamespace

import pytest

from helpers.encoders.stream import StreamConfig
from helpers.tokens.samplers import AuthorSampler
from helpers.training.model_selection import dev_recall, experiments_of, select_best, settings_grid
from tests.factories import TopicShares


def test_every_combination_once():
    assert settings_grid({"a": 1}) == [{"a": 1}] and settings_grid({}) == [{}]
    assert settings_grid({"a": [1, 2], "b": 3, "c": [4, 5]}) == [
        {"a": a, "b": 3, "c": c} for a in (1, 2) for c in (4, 5)
    ]
    with pytest.raises(ValueError, match="parameter 'b' need to be a non-empty"):
        settings_grid({"a": 1, "b": []})


def test_experiments_of_lists_in_loss_and_training():
    made = experiments_of(
        StreamConfig(features="T"),
        AuthorSampler(),
        "arr",
        {"temperature": [0.1, 0.5]},
        {"steps": 3, "lr": [0.1, 0.2]},
    )
    assert [
        (experiment.loss.settings["temperature"], experiment.training.lr) for experiment in made
    ] == [
        (0.1, 0.1),
        (0.1, 0.2),
        (0.5, 0.1),
        (0.5, 0.2),
    ]
    assert {experiment.loss.settings["targets"] for experiment in made} == {"paper"}, (
        "settings are complete, so equal ones are equal"
    )
    with pytest.raises(ValueError, match="unknown setting 'warmth'.*temperature"):
        experiments_of(
            StreamConfig(), AuthorSampler(), "arr", {"warmth": 1}, {"steps": 1, "lr": 0.1}
        )


def test_the_first_of_the_best_is_chosen_and_one_alone_is_not_scored():
    made = experiments_of(
        StreamConfig(), AuthorSampler(), "supcon", {}, {"steps": 1, "lr": [0.1, 0.2, 0.3]}
    )
    scores = {0.1: 0.4, 0.2: 0.7, 0.3: 0.7}

    def train_one(experiment):
        return SimpleNamespace(encoder=experiment.training.lr, seed=experiment.seed)

    best = select_best(made, 5, train_one, scores.get)
    assert best.encoder == 0.2 and best.seed == 5
    assert select_best(made[:1], 0, train_one, None).encoder == 0.1


def test_recall_on_dev_is_one_where_authors_have_a_topic_each(make_store):
    store = make_store([4, 4, 4], topics=4)
    store.topic[:] = [0] * 4 + [1] * 4 + [2] * 4
    assert dev_recall(store)(TopicShares(4)) == 1
