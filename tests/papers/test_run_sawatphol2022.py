"""params/sawatphol2022 and its other two corpora, from files to retrieval, at toy sizes."""

import gzip
import json

import pytest

from helpers.core import results
from tests.paper_runs import People, execute, lines, second, write_pairs

FANDOMS = ["Sherlock", "Doctor Who", "Naruto", "Bleach"]
CATEGORIES = ["Books", "Toys_and_Games", "Video_Games", "Grocery", "Beauty", "Office_Products"]
ENCODER = {"model": "tiny", "max_tokens": 32}
SMALL = {
    "documents": {},
    "encoder": ENCODER,
    "baselines": ["bow", "tfidf"],
    "seeds": [0],
    "sampler": {"authors_per_batch": 6, "max_tokens": 32},
    "bases": lambda given: {"supcon": {"temperature": 0.1}},
    "students": lambda given: {"arr": {"temperature": 0.01}},
    "training": {"epochs": 0.1, "lr": 1.0e-3, "eval_every": 1},
    "student_training": {"epochs": 0.05},
}


def reviews(folder):
    """The 5-core files of Amazon's reviews: who writes in all categories, and who wrote once."""
    folder.mkdir()
    people = People()
    for place, category in enumerate(CATEGORIES):
        writers = [(f"A{number}", 3 if number < 30 else 2) for number in range(place % 2, 70)]
        writers += [(f"single{place}-{number}", 1) for number in range(20)]
        written = []
        for author, count in writers:
            for post in range(count):
                review = {
                    "reviewerID": author,
                    "asin": f"B{place}{post}",
                    "overall": 5.0,
                    "reviewText": people.text(author, 14, category),
                    "unixReviewTime": second("2014-01-01") + people.rng.randrange(10**7),
                }
                written.append(review)
        (folder / f"reviews_{category}_5.json.gz").write_bytes(gzip.compress(lines(written)))
    return [folder]


def fiction(folder):
    people = People()
    folder.mkdir()
    write_pairs(folder / "pan", people, 240, "7", FANDOMS)
    write_pairs(folder / "pan20-test", people, 40, "7", FANDOMS)  # authors of training among them
    write_pairs(folder / "pan21-test", people, 40, "9", ["Merlin", "Twilight"])
    return [folder / name for name in ("pan", "pan20-test", "pan21-test")]


@pytest.mark.parametrize(
    "run, write, author_share, topic_share",
    [
        ("sawatphol2022", reviews, 0.3, 0.4),
        ("sawatphol2022_fanfiction", fiction, 0.8, 0.8),
    ],
)
def test_it_runs(tmp_path, monkeypatch, run, write, author_share, topic_share):
    split = {"kind": "cross_topic", "author_share": author_share, "topic_share": topic_share}
    places = [str(place) for place in write(tmp_path / "data")]
    shares = {} if "fan" in run else {"split_settings": {"min_posts": 2, "eval_posts": 2}}
    files = execute(
        run,
        {
            "01_collect": {"location": places, "memory_limit": "1GB", **shares},
            "02_tokenizer": {} if "fan" in run else {"vocabulary": 300},
            "05_arr": SMALL | {"split": split},
        },
        tmp_path / "outputs",
        monkeypatch,
    )
    report = json.loads((files.folder / "documents/cross_topic/split.json").read_text())
    tests = [name for name in report["splits"] if name.startswith("test")]
    rows = results.read_results(files)
    assert set(rows.split) == set(tests)
    assert {"supcon", "supcon_arr", "bow", "tfidf"} <= set(rows.model)
    recalls = rows[(rows.model == "supcon") & (rows.metric == "R@8")]
    size = recalls[recalls.split == "test_cross"].iloc[0]
    cross = report["splits"]["test_cross"]
    assert size.queries + size.targets == cross["posts"]
    if "fan" in run:  # the given files, whole; no text of their authors trains
        assert tests == ["test_cross"] and cross == {"posts": 80, "authors": 40, "topics": 2}
        assert report["unused"]["authors_of_other_splits"] > 0
    else:
        assert len(tests) == 2 and size.targets > size.queries + 5  # distractors
