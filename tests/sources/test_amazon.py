"""Reviews by category, and what is dropped and why."""

from tests.factories import read_source as read
from tests.factories import write_lines as write


def review_of(author="A1", text="good book", time=1_400_000_000, **more):
    return {"reviewerID": author, "reviewText": text, "unixReviewTime": time, **more}


def test_authors_times_and_categories(tmp_path):
    write(tmp_path / "reviews_Books_5.json.gz", [review_of(asin="B1")])
    write(
        tmp_path / "All_Beauty.jsonl",
        [review_of(asin="B2", title="T"), review_of("A2", "one<br />two<BR>three<b>")],
    )
    write(tmp_path / "Pet_Supplies_5.json", [review_of("A3")])
    write(tmp_path / "meta_Books.json.gz", [{"asin": "B1", "title": "no review"}])
    (tmp_path / "notes.txt").write_text("no reviews")
    rows, drops = read("amazon", tmp_path)
    assert rows[["author", "time", "topic", "text"]].values.tolist() == [
        ["A1", 1_400_000_000, "All_Beauty", "good book"],
        ["A2", 1_400_000_000, "All_Beauty", "one\ntwo\nthree<b>"],
        ["A3", 1_400_000_000, "Pet_Supplies", "good book"],
        ["A1", 1_400_000_000, "Books", "good book"],
    ]
    assert rows["time"].dtype == "int64" and not drops


def test_every_loss_has_a_reason(tmp_path):
    no_reviews = ["[1]", {}, {"user_id": "A", "text": "x", "timestamp": 1}]
    no_authors = [review_of(author) for author in (None, " ", 7)]
    bad_times = [None, True, -1, 0, float("nan")]
    times = ["1400000000", 1_400_000_000_000, *bad_times]
    reviews = [review_of("good"), "{'reviewerID': 'A'}", *no_reviews, *no_authors]
    reviews += [review_of(text=" <br/> "), *[review_of(time=time) for time in times]]
    rows, drops = read("amazon", write(tmp_path / "Books.json", reviews))
    # seconds as text, and milliseconds, are times, too
    assert rows["time"].tolist() == [1_400_000_000] * 3
    assert drops == {"broken_json": 1, "bad_review": 6, "empty": 1, "bad_time": 5}
    assert len(rows) + sum(drops.values()) == len(reviews)
