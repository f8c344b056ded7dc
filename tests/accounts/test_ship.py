"""The script that measures the encoder that ships: its rows, and its measures against a loop."""

import numpy as np
import ship


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
