"""The script that measures the encoder that ships: its rows, and its measures against a loop."""

import numpy as np
import pandas as pd
import pytest
import ship

from helpers.accounts.samples import halves
from helpers.core import results
from tests.factories import posts_table


def test_recall_in_an_open_world_is_that_of_a_loop():
    scores = np.random.default_rng(0).normal(size=(40, 40)) + 3 * np.eye(40)
    answers = []
    for row in range(40):  # every second query has no account of its own
        targets = [column for column in range(40) if row % 2 == 0 or column != row]
        best = max(targets, key=lambda column: scores[row, column])
        answers.append((scores[row, best], best == row))
    most_right = 0
    for threshold, _ in answers:
        right = [own for score, own in answers if score >= threshold]
        if sum(right) >= 0.9 * len(right):
            most_right = max(most_right, sum(right))
    assert 0 < most_right < 20
    assert ship.open_world(scores).value["open_R@P90"] == most_right / 20


@pytest.fixture(scope="module")
def posts(invented, tmp_path_factory):
    """The invented posts as a posts table, in a folder of its own."""
    frame = pd.read_csv(invented, parse_dates=["written"]).rename(
        columns={"nick": "author", "message": "text"}
    )
    times = frame.written.dt.tz_convert("UTC").astype("datetime64[s, UTC]")
    rows = zip(frame.author, times.astype("int64"), frame.room, frame.text)
    path = tmp_path_factory.mktemp("ship") / "posts.parquet"
    return posts_table(path, sorted(rows), row_group_size=1000)


def test_rows_of_all_models_are_recorded(encoder, posts, tmp_path):
    tokens = posts.parent / "tokens"  # the same for both
    ship.measure(encoder, posts, "test", "open_small", tmp_path / "results", tokens)
    rows = results.read_results(tmp_path / "results")
    assert {"open_small", "open_small_hours", "open_small_alone", "tfidf_subword_gallery"} <= set(
        rows.model
    )
    assert {"MRR", "found", "Cllr", "false_per_10000", "open_R@P90"} <= set(
        rows[rows.model == "open_small"].metric
    )
    assert set(rows[rows.base != ""].metric) == {"MRR_difference", "R@8_difference"}
    names = dict(zip(rows.model, rows.label))
    assert (
        names["open_small_alone"] == "open-small, no gallery"
        and names["open_small_hours"] == "open-small, hours"
    )
    assert names["tfidf_subword_gallery"] == "TF-IDF subword, s-norm"


def test_calibration_is_recorded_by_posts_and_accounts(encoder, posts, tmp_path, monkeypatch):
    monkeypatch.setattr(ship, "SIZES", (8, 10_000))
    store = ship.store_as_in_use(encoder, posts, posts.parent / "tokens")
    model = encoder.model(True, False)
    ship.measure_sizes(encoder, store, "test", tmp_path / "results")
    rows = results.read_results(tmp_path / "results").set_index(["label", "metric"])
    assert set(rows.index.get_level_values(0)) == {"8 posts, 40 accounts", "8 posts, all accounts"}
    assert rows.targets["8 posts, 40 accounts", "Cllr"] == 40
    first, last = halves(store, 8, 8)
    scores = model.score_matrix(first, last, ship.MAX_TOKENS)
    llr = encoder.uses["gallery"].llr(scores, 8, 8, len(first))
    same = np.log2(1 + np.exp(-llr.diagonal())).mean()
    different = np.log2(1 + np.exp(llr[~np.eye(len(llr), dtype=bool)])).mean()
    value = rows.value["8 posts, all accounts", "Cllr"]
    np.testing.assert_allclose(value, (same + different) / 2, atol=1e-4)
