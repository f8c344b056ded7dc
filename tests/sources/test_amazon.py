"""Reviews by category, and what is dropped and why."""

from tests.factories import read_source as read
from tests.factories import write_lines as write


def review_of(author="A1", text="good book", time=1_400_000_000, **more):
    return {"reviewerID": author, "reviewText": text, "unixReviewTime": time, **more}


def test_authors_times_and_categories(tmp_path):
    write(tmp_path / "reviews_Books_5.json.gz", [review_of(asin="B1")])
    write(tmp_path / "All_Beauty.jsonl", [review_of(asin="B2", title="T"), review_of("A2")])
    write(tmp_path / "Pet_Supplies_5.json", [review_of("A3")])
    write(tmp_path / "meta_Books.json.gz", [{"asin": "B1", "title": "no review"}])
    (tmp_path / "notes.txt").write_text("no reviews")
    rows, drops = read("amazon", tmp_path)
    assert rows[["author", "time", "topic", "text"]].values.tolist() == [
        ["A1", 1_400_000_000, "All_Beauty", "good book"],
        ["A2", 1_400_000_000, "All_Beauty", "good book"],
        ["A3", 1_400_000_000, "Pet_Supplies", "good book"],
        ["A1", 1_400_000_000, "Books", "good book"],
    ]
    assert rows["time"].dtype == "int64" and not drops


def test_every_loss_has_a_reason(tmp_path):
    reviews = [
        review_of("good"),
        "{'reviewerID': 'A'}",
        "[1]",
        {},
        review_of(None),
        review_of(" "),
        review_of(7),
        review_of(text=" <br/> "),
        review_of(time=None),
        review_of(time="1400000000"),
        review_of(time=True),
        review_of(time=-1),
        review_of(time=0),
        review_of(time=1_400_000_000_000),
        review_of(time=float("nan")),
        {"user_id": "A", "text": "x", "timestamp": 1},
    ]
    rows, drops = read("amazon", write(tmp_path / "Books.json", reviews))
    # seconds as text, and milliseconds, are times, too
    assert rows["time"].tolist() == [1_400_000_000] * 3
    assert drops == {"broken_json": 1, "bad_review": 6, "empty": 1, "bad_time": 5}
    assert len(rows) + sum(drops.values()) == len(reviews)


def test_line_breaks_and_hostile_text(tmp_path):
    reviews = [
        review_of(text="one<br />two<BR>three<broken>"),
        review_of("\ud800B", "x\x00\ud800y"),
        review_of("\ud800"),
    ]
    rows, drops = read("amazon", write(tmp_path / "Books.json", reviews))
    # two authors whose names hold no text stay two
    assert rows["author"].tolist() == ["A1", "\\ud800B", "\\ud800"] and drops == {}
    assert rows["text"].tolist()[:2] == ["one\ntwo\nthree<broken>", "xy"]
