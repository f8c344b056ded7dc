"""params/tyo2021 and tyo2021_pan21 from PAN's files of pairs to verification, at toy sizes."""

import json

import pandas as pd
import pytest

from helpers.core import results
from helpers.evaluation.document_pairs import given_pairs
from tests.paper_runs import People, execute, write_pairs

TINY = {"preset": "tyo2021", "model": "tiny", "dim": 16, "max_tokens": 64}
SHORT = {"steps": 2, "warmup": 1, "eval_every": 1}


def only(row):
    """Of the configurations one, with a small transformer."""

    def change(configurations):
        configuration = configurations[row]
        encoder = configuration.get("encoder", {"unit": False}) | TINY
        return {row: configuration | {"encoder": encoder}}

    return change


FEW = {"dev": 20, "test": 20}


@pytest.mark.parametrize(
    "run, split, row, pairs",
    [
        ("tyo2021", "authors", "Row 12", FEW),
        ("tyo2021", "pairs", "Row 12", FEW | {"kind": "given"}),
        ("tyo2021_pan21", "given", "Final model", {}),
    ],
)
def test_it_runs(tmp_path, monkeypatch, run, split, row, pairs):
    people = People()
    places = ["train", "pan21-test"] if run == "tyo2021_pan21" else ["train"]
    write_pairs(tmp_path / "train", people, 160, "7", ["Sherlock", "Doctor Who", "Naruto"])
    write_pairs(tmp_path / "pan21-test", people, 60, "9", ["Merlin", "Twilight"], repeats=True)
    files = execute(
        run,
        {
            "01_collect": {
                "location": [str(tmp_path / place) for place in places],
                "split": split,
            },
            "02_tokenizer": {"kind": "bytes", "vocabulary": 256},
            "10_verify": {
                "documents": {"model": "tiny"},
                "pairs": pairs,
                "sampler": {"authors_per_batch": 8},
                "training": SHORT,
                "max_tokens": 64,
                "configurations": only(row),
            },
        },
        tmp_path / "outputs",
        monkeypatch,
    )
    made = json.loads((files.posts / "split.json").read_text())
    assert "pairs_whole" in [check for check, *_ in made["promises"]]
    assert min(part["posts"] for part in made["splits"].values()) >= 20
    if run == "tyo2021" and split == "pairs":
        test = pd.read_parquet(files.posts / "test.parquet", columns=["author", "topic", "id"])
        assert len(test) == 2 * len(given_pairs(test))
    rows = results.read_results(files).query("model == @row").set_index("metric")
    assert {"AUC", "F1", "c@1", "F_0.5u", "Brier", "overall"} <= set(rows.index)
    if run == "tyo2021_pan21":  # the given test, whole
        assert made["splits"]["test"]["posts"] == 120 and set(rows.queries) == {60}
