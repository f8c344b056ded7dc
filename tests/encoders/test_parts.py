"""Time features against Python's own calendar, and what they must not depend on."""

from datetime import UTC, datetime

import numpy as np
import torch

from helpers.encoders.parts import ContinuousTime, TopicEmbedding
from helpers.tokens.batch import Batch


def batch_at(*rows):
    times = torch.tensor(rows)
    hours = times // 3600 % 24
    tokens = torch.zeros(*times.shape, 1, dtype=torch.long)
    return Batch(tokens, hours, hours * 0, hours >= 0, torch.arange(len(rows)), times)


def at(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def test_day_and_week_turn_with_the_calendar():
    """Monday, 00:00 UTC is where both begin; a day is a seventh of the week."""
    moments = [
        "2021-03-01T00:00:00",
        "2021-03-01T06:00:00",
        "2021-03-04T12:00:00",
        "1969-12-29T00:00:00",
    ]
    cosines, sines = ContinuousTime()(batch_at([at(moment) for moment in moments]))[:, :8].split(
        4, 1
    )
    for row, moment in enumerate(moments):
        when = datetime.fromisoformat(moment)
        day = (when.hour + when.minute / 60) / 24
        week = (when.weekday() + day) / 7
        turns = 2 * np.pi * np.array([day, 2 * day, week, 2 * week])
        np.testing.assert_allclose(cosines[row], np.cos(turns), atol=1e-5)
        np.testing.assert_allclose(sines[row], np.sin(turns), atol=1e-5)


def test_a_gap_is_to_the_post_before_and_the_first_post_has_none():
    clock, start = ContinuousTime(), at("2021-03-01T00:00:00")
    gaps = clock(batch_at([start, start + 60, start + 60, start + 10**9]))[:, 8:]
    assert not gaps[0].any()
    share = np.log1p(60) / np.log1p(365 * 86_400)
    waves = np.pi * share * np.arange(1, 5)
    np.testing.assert_allclose(gaps[1], np.concatenate([np.cos(waves), np.sin(waves)]), atol=1e-6)
    np.testing.assert_allclose(gaps[2, :4], 1, atol=1e-6)
    np.testing.assert_allclose(
        gaps[3, :4], np.cos(np.pi * np.arange(1, 5)), atol=1e-6
    )  # no longer than a year
    later = clock(batch_at([start + 7 * 86_400 * n for n in range(4)]))
    np.testing.assert_allclose(later[0, :8], later[3, :8], atol=1e-5)


def test_hidden_topics_train_the_row_of_other():
    batch = batch_at([0] * 1000, [1] * 1000)
    for share, trained in ((0.0, False), (0.5, True)):
        feature = TopicEmbedding(6, 3, share)
        feature(batch).sum().backward()
        assert feature.embedding.weight.grad[-1].any() == trained
    hidden = (feature(batch) == feature.embedding.weight[-1]).all(1).float().mean()
    assert 0.45 < hidden < 0.55
    assert torch.equal(feature.eval()(batch), feature.embedding.weight[:1].expand(2000, 3))


def test_a_topic_beyond_the_list_is_other():
    feature, batch = TopicEmbedding(6, 3), batch_at([0] * 3, [1] * 3)
    batch.topics[:, 0], batch.topics[:, 1], batch.topics[:, 2] = 4, 5, 9
    rows = feature(batch).view(2, 3, 3)
    assert torch.equal(rows[:, 1], rows[:, 2]) and not torch.equal(rows[:, 0], rows[:, 1])
    assert torch.equal(rows[0, 1], feature.embedding.weight[-1])
