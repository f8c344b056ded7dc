"""MUD's tokenised streams: decoded with the model that made the ids, times from weekdays."""

import io
from datetime import UTC, datetime

import numpy as np
import pytest
import sentencepiece

from tests.factories import read_source as read
from tests.factories import write_lines

TEXTS = ["the sky is blue today", "the sea is blue as well", "who asks why the sky is blue"]


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    model = io.BytesIO()
    options = {"vocab_size": 25, "pad_id": 0, "bos_id": -1, "eos_id": 1, "unk_id": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS * 30), model_writer=model, minloglevel=2, **options
    )
    path = tmp_path_factory.mktemp("model") / "25_unigram.model"
    path.write_bytes(model.getvalue())
    return path


def author(**changes):
    posts = {"syms": [["\u2581a", "\u2581b"], ["\u2581c", "d"]], "day": [2, 2], "hour": [0, 23]}
    return {"author_id": 7, **posts, "minute": [0, 59], "action_type": [12, 0]} | changes


def write(folder, *records, name="queries0.json"):
    return write_lines(folder / name, records)


@pytest.mark.parametrize("name", ["queries0.json", "part.json.gz"])
def test_rows(tmp_path, name):
    write(tmp_path, author(), author(author_id=8, action_type=["news", 3]), name=name)
    rows, drops = read("mud", tmp_path)
    midnight = datetime(2015, 7, 1, tzinfo=UTC).timestamp()  # a Wednesday
    late = midnight + 24 * 3600 - 60
    assert rows.values.tolist() == [
        ["7", midnight, "12", "a b"],
        ["7", late, "0", "cd"],
        ["8", midnight, "news", "a b"],
        ["8", late, "3", "cd"],
    ]
    assert rows["time"].dtype == "int64" and drops == {}


def test_ids_are_decoded_by_their_model(tmp_path, pieces):
    model = sentencepiece.SentencePieceProcessor(model_file=str(pieces))
    record = author(
        syms=model.encode(TEXTS), day=[0] * 3, hour=[1] * 3, minute=[1] * 3, action_type=[1] * 3
    )
    path = write(tmp_path, record, record | {"syms": model.encode(TEXTS, out_type=str)})
    assert read("mud", path, pieces=str(pieces))[0]["text"].tolist() == TEXTS * 2
    with pytest.raises(ValueError, match="name the model's file as `pieces`"):
        read("mud", path)
    with pytest.raises(ValueError, match="absent.model is missing"):
        read("mud", path, pieces=str(tmp_path / "absent.model"))
    with pytest.raises(ValueError, match="no SentencePiece model"):
        read("mud", path, pieces=str(path))


def test_weekdays_keep_order_weekday_hour_and_minute(tmp_path):
    rng = np.random.default_rng(0)
    gaps = rng.exponential(40 * 3600, 300).astype(int) // 60 * 60
    true = 1_436_000_000 // 60 * 60 + np.cumsum(gaps)
    when = [datetime.fromtimestamp(moment, UTC) for moment in true.tolist()]
    record = author(
        syms=[["x"]] * 300,
        action_type=[1] * 300,
        day=[moment.weekday() for moment in when],
        hour=[moment.hour for moment in when],
        minute=[moment.minute for moment in when],
    )
    rows, drops = read("mud", write(tmp_path, record))
    times = rows["time"].to_numpy()
    week = 7 * 86_400
    assert drops == {} and (np.diff(times) >= 0).all() and ((times - true) % week == 0).all()
    # weeks of silence are lost and nothing else: shorter gaps are exact
    assert (np.diff(times) == np.diff(true) % week).all() and (np.diff(true) > week).any()
    assert 0 <= times[0] - datetime(2015, 7, 1, tzinfo=UTC).timestamp() < week


def test_every_drop_is_counted(tmp_path, pieces):
    times = {"hour": (-1, 60), "minute": (60, "3"), "day": (True, -1)}
    records = [3, {}, author(author_id=None), author(hour=[1]), author(syms="a b")]
    records += [author(syms=[["a"]]), author(syms=[[25], [1]]), author(action_type=[1, None])]
    lost = {
        "broken_json": ["{", "[" * 100_000],
        "bad_record": records,
        "bad_time": [author(**{name: [0, bad]}) for name in times for bad in times[name]],
        "empty": [author(syms=[["\u2581"], ["a"]]), author(action_type=["", 1])],
    }
    path = write(tmp_path, author(), "", *(record for group in lost.values() for record in group))
    rows, drops = read("mud", path, pieces=str(pieces))
    assert drops == {reason: len(group) for reason, group in lost.items()}
    # of authors with a bad time or an empty post the other post stays
    assert len(rows) == 2 + len(lost["bad_time"]) + len(lost["empty"])


def test_time_begins_at_the_epoch(tmp_path):
    rows, drops = read("mud", write(tmp_path, author(day=[5, 400])), epoch="2016-12-31")
    saturday = datetime(2016, 12, 31, tzinfo=UTC).timestamp()
    assert rows["time"].tolist() == [saturday] and drops == {"bad_time": 1}
