"""PAN's pairs and their truth: as pairs, dissolved into texts, and what is dropped."""

from collections import Counter

import pytest

from helpers.sources import open_source
from tests.factories import read_source as read
from tests.factories import write_lines as write


def pair(key, texts=("one text", "another text"), fandoms=("F", "G")):
    return {"id": key, "fandoms": list(fandoms), "pair": list(texts)}


def truth(key, *authors):
    return {"id": key, "same": authors[0] == authors[1], "authors": list(authors)}


def corpus(folder, pairs, truths, names=("pairs.jsonl", "truth.jsonl")):
    for name, records in zip(names, (pairs, truths)):
        write(folder / name, records)
    return folder


@pytest.mark.parametrize(
    "names", [("x-small.jsonl", "x-small-truth.jsonl"), ("pairs.jsonl.gz", "truth.jsonl.gz")]
)
def test_dissolved_into_texts(tmp_path, names):
    pairs = [pair("p"), pair("q", ["one text", "third"], ["F", "H"])]
    folder = corpus(tmp_path, pairs, [truth("q", "1", "2"), truth("p", "1", "1")], names)
    file = f"{folder.name}/{names[0]}"
    rows, drops = read("pan", folder)
    assert rows.values.tolist() == [
        ["1", 0, "F", "one text", f"{file}/p/a"],
        ["1", 0, "G", "another text", f"{file}/p/b"],
        ["2", 0, "H", "third", f"{file}/q/b"],
    ]
    assert rows["time"].dtype == "int64" and drops == {"duplicate": 1}


def test_every_loss_has_a_reason(tmp_path):
    pairs = ["{", {"id": "p", "pair": ["a", "b"]}, pair("n", ["a", 3]), pair("e", ["  ", "e"])]
    pairs += [pair(name) for name in ("good", "good", "nowhere", "liar", "half", "blank")]
    truths = [
        truth("blank", " ", "\ud800"),
        truth("good", "1", "2"),
        truth("e", "1", "3"),
        truth("more", "1", "1"),
    ]
    truths += [{"id": "half", "same": True}, {"id": "liar", "same": True, "authors": ["1", "2"]}]
    rows, drops = read("pan", corpus(tmp_path, pairs, truths))
    lost = {"broken_json": 1, "bad_pair": 2, "duplicate_id": 1, "empty": 2}
    assert drops == lost | {"missing_truth": 3, "bad_truth": 2}
    assert [name.split(".jsonl/")[1] for name in rows.id] == ["e/b", "good/a", "good/b", "blank/b"]


def test_ids_tell_the_folder_and_differ_between_years(tmp_path):
    for year in ("2020", "2021"):
        (tmp_path / year).mkdir()
        corpus(tmp_path / year, [pair("p", [f"{year} a", f"{year} b"])], [truth("p", "1", "2")])
    drops = Counter()
    places = [str(tmp_path / year) for year in ("2020", "2021")]
    ids = [post.id for part in open_source("pan", places) for post in part.read(drops)]
    assert ids == [f"{year}/pairs.jsonl/p/{side}" for year in ("2020", "2021") for side in "ab"]
    assert read("pan", tmp_path / "2020/pairs.jsonl")[0].id[0] == "pairs.jsonl/p/a"
    (tmp_path / "x/2020").mkdir(parents=True)
    with pytest.raises(ValueError, match="2020 have the same name; rename one"):
        open_source("pan", [places[0], str(tmp_path / "x/2020")])


def test_duplicates_belong_to_an_author(tmp_path):
    pairs = [pair(str(number), ["same words", f"text {number}"]) for number in range(5)]
    truths = [truth(str(number), "1", "1") for number in range(5)]
    rows, drops = read("pan", corpus(tmp_path, pairs, truths))
    assert len(rows) == 6 and drops == {"duplicate": 4} and rows.text.is_unique
    corpus(tmp_path, pairs, [truth(str(number), f"a{number}", f"b{number}") for number in range(5)])
    assert len(read("pan", tmp_path)[0]) == 10


def test_nothing_to_read(tmp_path):
    write(tmp_path / "pairs.jsonl", [pair("p")])
    with pytest.raises(ValueError, match="truth.jsonl, the truth of .* is missing"):
        open_source("pan", str(tmp_path))


def test_a_text_of_several_pairs_stays_in_each_where_it_is_asked_for(tmp_path):
    same = ("one text", "another text")
    pairs = [pair("p", same), pair("q", same), pair("r", ("twice", "twice"))]
    corpus(tmp_path, pairs, [truth("p", 1, 2), truth("q", 1, 2), truth("r", 3, 3)])
    frame, drops = read("pan", tmp_path, keep_repeats=[tmp_path.name])
    names = [name.split(".jsonl/")[1] for name in frame.id]
    assert names == ["p/a", "p/b", "q/a", "q/b", "r/a"]
    assert drops == {"duplicate": 1}  # a pair of a text with itself
