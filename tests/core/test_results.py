"""The one tidy table: rows are replaced as a whole, stale ones left out; what people see of it."""

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from helpers.core import paths
from helpers.core.artifacts import write_json
from helpers.core.results import COLUMNS, export, read_results, record, wide_results
from helpers.runs import summary

NAN = float("nan")
RANKING = {"protocol": "ranking", "split": "test"}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    return paths.Run("demo")


def metrics(**values):
    """metric=value or metric=(value, low, high); a metric's name may have _at_ for @."""
    rows = {
        name.replace("_at_", "@"): value if isinstance(value, tuple) else (value, NAN, NAN)
        for name, value in values.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=["value", "low", "high"])


def ranked(run, model, values, **about):
    record(run, metrics(**values), model=model, **RANKING | about)


def test_what_is_recorded_is_read_to_the_last_digit(run):
    value = 0.1 + 0.2
    assert list(read_results(run).columns) == COLUMNS and read_results(run).empty
    about = {"label": "a, b", "queries": np.int64(7), "seconds": 1.5, "device": "cpu"}
    ranked(run, "NA", {"MRR": (value, 1 / 3, 2 / 3), "R_at_8": 0.5}, **about)
    frame = read_results(run)
    assert frame["value"].tolist() == [value, 0.5] and frame["low"][0] == 1 / 3
    assert frame.loc[
        0, ["model", "label", "base", "metric", "queries", "seed", "seconds", "experiment"]
    ].tolist() == ["NA", "a, b", "", "MRR", 7, 0, 1.5, ""]
    assert frame["low"].isna().tolist() == [False, True] and frame["targets"].isna().all()
    pd.testing.assert_frame_equal(read_results(run.results), frame)  # a folder by its path
    export(run)
    table = run.folder / "results.csv"
    pd.testing.assert_frame_equal(read_results(table), frame)
    record(run, metrics(MRR=0.5), model="other", **RANKING)
    table.unlink()
    export(run)
    assert len(read_results(table)) == len(read_results(run)) == 3


def test_the_rows_of_one_measurement_are_replaced_and_no_others(run):
    record(run, metrics(MRR=0.1, old=1.0), model="m", **RANKING)
    keys = (
        {"seed": 1},
        {"base": "b"},
        {"split": "dev"},
        {"protocol": "x"},
        {"model": "n"},
        {"seed": None},
        {"max_tokens": 128},
    )
    for key in keys:
        record(run, metrics(MRR=0.5), **{"model": "m", **RANKING, **key})
    record(run, metrics(MRR=0.2), model="m", **RANKING)
    record(run, metrics(MRR=0.6), model="m", seed=None, **RANKING)
    frame = read_results(run)
    assert len(frame) == 8 and "old" not in set(frame["metric"])
    assert len(list(run.results.iterdir())) == 8, "a file a measurement"


def test_results_of_earlier_models_and_data_are_left_out(run):
    write_json(run.models / "m" / "training.json", {"fingerprint": "new"})
    write_json(run.tokens / "test" / "store.json", {"fingerprint": "tokens"})
    rows = {
        "m": ("new", "tokens"),
        "old": ("old", "tokens"),
        "baseline": ("", "tokens"),
        "older": ("", "before"),
    }
    for model, (experiment, data) in rows.items():
        ranked(run, model, {"MRR": 0.5, "R_at_8": 0.5}, experiment=experiment, data=data)
    assert read_results(run)["model"].unique().tolist() == ["m", "baseline"]
    assert len(read_results(run.results)) == 8
    page = summary.results_html(run)
    assert "baseline" in page and "older" not in page


def test_wide_has_a_row_a_model_and_the_best_first(run):
    record(run, metrics(MRR=0.1, R_at_8=0.5), model="bow", queries=9, **RANKING)
    record(run, metrics(MRR=0.7), model="stream", seed=7, **RANKING)
    record(run, metrics(MRR=0.9), model="stream", protocol="ranking", split="dev")
    record(run, metrics(EER=0.2), model="b", protocol="linking", split="test")
    record(run, metrics(EER=0.1), model="a", protocol="linking", split="test")
    record(run, metrics(EER=0.3), model="c", protocol="linking", split="test")
    frame = wide_results(read_results(run), "ranking")
    known = ["split", "model", "MRR", "R@8", "seed", "queries"]
    assert list(frame.columns) == known, "what nobody knows is no column"
    assert frame["model"].tolist() == ["stream", "bow", "stream"]
    assert frame["split"].tolist() == ["test", "test", "dev"]
    assert frame["MRR"].tolist() == [0.7, 0.1, 0.9] and frame["seed"].tolist() == [7, 0, 0]
    linking = wide_results(read_results(run), "linking")
    assert linking["model"].tolist() == ["a", "b", "c"], "an error rate: the lowest first"


def results_tables(run):
    """Title, head and rows of every table of results on the page, as lists of words."""
    page = BeautifulSoup(summary.results_html(run), "html.parser").find(id="results")
    tables = []
    for block in page.find_all("details"):
        rows = [line.find_all(["th", "td"]) for line in block.find_all("tr")]
        cells = [[words(str(cell)) for cell in row] for row in rows]
        tables.append([words(str(block.summary)), *cells])
    return tables


def test_results_for_people(run):
    assert "No results yet" in summary.results_html(run)
    record(run, metrics(MRR=(0.1, 0.05, 0.2), R_at_8=0.5), model="bow", queries=100, **RANKING)
    record(run, metrics(MRR=(0.75, 0.7, 0.8), R_at_8=1.0), model="stream", seed=7, **RANKING)
    record(run, metrics(MRR=(0.65, 0.6, 0.7)), model="stream", base="bow", **RANKING)
    record(run, metrics(EER=0.25), model="<b>", protocol="<img src=x>", split="test")
    assert results_tables(run) == [
        ["<img src=x> 1 row", ["system", "split", "EER", "seed"], ["<b>", "test", "0.250", "0"]],
        [
            "ranking 2 rows",
            ["system", "split", "MRR", "R@8", "seed", "queries"],
            ["Stream", "test", "0.750 (0.700-0.800)", "1.000", "7", ""],
            ["BoW", "test", "0.100 (0.050-0.200)", "0.500", "0", "100"],
        ],
        [
            "ranking: differences from base 1 row",
            ["system", "split", "base", "MRR", "seed"],
            ["Stream", "test", "BoW", "+0.650 (0.600 to 0.700)", "0"],
        ],
    ]
    ranked(run, "c_1", {"MRR": 0.5}, label="words for c")
    page = summary.results_html(run)
    assert "words for c" in page and "c_1" not in page, "an identifier only where no words are"
    assert '<td class="word">&lt;b&gt;</td>' in page and "<img" not in page


def words(page):
    return " ".join(BeautifulSoup(page, "html.parser").text.split())


def test_the_first_screen_says_what_did_not_come_out_as_published(run):
    topics = {"protocol": "retrieval, leak_aware", "split": "test_cross", "base": "mll"}
    difference = metrics(R_at_8_difference=(-0.2, -0.3, -0.1))
    record(run, difference, model="mll_arr", label="<i>ARR</i>", **topics)
    pairs = {"protocol": "verification", "split": "test"}
    record(run, metrics(AUC=(0.7, 0.65, 0.75)), model="contrastive", **pairs)
    record(run, metrics(AUC=(0.6, 0.55, 0.64)), model="tfidf_4grams", **pairs)
    ranked(run, "lsa", {"MRR": (0.6, 0.55, 0.65), "R_at_8": 0.75}, label="LSA", targets=100)
    page = words(summary.results_html(run))
    assert "LSA ranks best of 1 systems: MRR 0.600 (0.550-0.650)" in page
    assert "The other way: R@8 of a softmax over authors on unseen topics, with ARR" in page
    assert (
        "R@8 0.372 against 0.322; this run: R@8 -0.200 (-0.300 to -0.100), retrieval, leak-aware"
        in page
    )
    assert "1 of 2 comparisons with the papers came out as published" in page
    soup = BeautifulSoup(summary.results_html(run), "html.parser")
    measured, not_measured = soup.find(id="verdicts").find_all("table")
    ids = [row.td.text for row in measured.find_all("tr")[1:]]
    assert ids == ["R15", "S12"], "what did not come out stands first"
    assert all(row.find_all("td")[-1].text for row in not_measured.find_all("tr")[1:])


def test_a_table_of_differences_has_only_paired_ones_each_in_its_column(run):
    ranked(run, "ours", {"MRR": 0.5, "R_at_1": 0.4})
    paired = {"MRR_difference": (0.1, 0.05, 0.15), "R_at_1_difference": (-0.2, -0.3, 0.1)}
    for base in ("theirs", "others"):
        ranked(run, "ours", paired, base=base)
    table = summary.difference_table(read_results(run), ["base"], ["R@1", "MRR"])
    assert list(table.columns) == ["R@1", "MRR"] and list(table.index) == ["others", "theirs"]
    assert table.loc["theirs"].tolist() == ["-0.200 (-0.300 to 0.100)", "+0.100 (0.050 to 0.150)"]
