"""The published tables against independent readings of the papers; ours beside them."""

import numpy as np
import pandas as pd
import pytest

from helpers import published as papers
from helpers.encoders.stream import stream_config
from helpers.training.experiment import Experiment

CAPTIONS = pd.read_csv(papers.FOLDER / "captions.csv")


def test_every_table_is_indexed_and_says_what_it_shows():
    for paper, number in zip(CAPTIONS.paper, CAPTIONS.table):
        frame = papers.published_table(paper, number)
        assert frame.index.is_unique
        assert frame.attrs["caption"].startswith(f"{paper} Table {number}. ")
        assert papers.show_published(paper, number).to_html().count("<tr") > len(frame)


@pytest.mark.parametrize(
    "which, row, column, value",
    [
        (("khan2021", 1), ("khan2021", "TPS", "topk"), "MRR", 0.637),
        (("khan2021", 8), "authors", "MUD", 1_071_477),
        (("tyo2021", 0), (False, True), "pairs", 23_131),
        (("tyo2021", 1), "c@1", "value", 0.7594),
        (("sawatphol2022", 3), ("supcon_arr", "Reddit"), "R@8", 0.292),
    ],
)
def test_cells(which, row, column, value):
    assert papers.published_table(*which).loc[row, column] == value


@pytest.mark.parametrize(
    "which, sums",
    [
        (("khan2021", 1), [3.265, 3.722, 4.165]),
        (("khan2021", 2), [1.252, 4.591]),
        (("khan2021", 9), [1.237, 4.463]),
        (("khan2021", 3), [3.789, 4.330]),
        (("khan2021", 4), [-3.262, 3.128, 3.473]),
        (("khan2021", 5), [4.18, 5.14]),
        (("khan2021", 6), [133.6]),
        (("khan2021", 7), [1.136, 1.335, 1.591]),
        (("tyo2021", 2), [2.7, 1143.61, 15.111, 12.785, 13.064, 12.665, 13.408]),
        (("tyo2021", 3), [1.559, 1.398, 1.490, 1.239, 1.421]),
        (("sawatphol2022", 1), [3_672_833, 165_366, 24_446]),
        (("sawatphol2022", 2), [6.861, 5.264]),
        (("sawatphol2022", 3), [6.024, 5.065]),
    ],
)
def test_sums_of_columns(which, sums):
    """Sums of a second transcription of the papers."""
    table = papers.published_table(*which)
    np.testing.assert_allclose(table.select_dtypes("number").sum(), sums, atol=1e-9)


@pytest.mark.parametrize("number", [2, 3])
def test_overall_is_the_mean_of_the_four_metrics(number):
    """What the paper itself computed from its cells; both are rounded to three digits."""
    frame = papers.published_table("tyo2021", number)
    mean = frame[["AUC", "F1", "c@1", "F_0.5u"]].mean(axis=1)
    np.testing.assert_allclose(frame.overall, mean, atol=0.0011)


def test_doubtful_rows_are_red():
    assert papers.DOUBTFUL_COLOUR in papers.show_published("sawatphol2022", 2).to_html()
    assert papers.DOUBTFUL_COLOUR not in papers.show_published("sawatphol2022", 3).to_html()


def test_side_by_side_keeps_published_rows_first():
    measured = pd.DataFrame({"EER": [0.1, 0.2], "AUC": [0.9, 0.8]}, ["iur", "lsa"])
    table = papers.side_by_side(measured, papers.published_table("khan2021", 2))
    assert list(table) == ["EER published", "EER ours", "minDCF", "AUC"]
    assert table.index[0] == "tfidf_word" and table.index[-1] == "lsa" and len(table) == 6
    assert table.loc["iur", ["EER published", "EER ours"]].tolist() == [0.247, 0.1]
    assert np.isnan(table.loc["lsa", "minDCF"]) and np.isnan(table.loc["TP_8", "EER ours"])
    index = pd.MultiIndex.from_tuples([("khan2021", "TPS", "topk"), ("luar", "T", "supcon")])
    measured = pd.DataFrame({"MRR": [0.5, 0.4]}, index)
    table = papers.side_by_side(measured, papers.published_table("khan2021", 1))
    row = table.loc[("khan2021", "TPS", "topk"), ["MRR published", "MRR ours"]]
    assert row.tolist() == [0.637, 0.5] and len(table) == 8


def test_rows_have_names_for_people():
    names = {
        ("khan2021", "TPS", "topk"): "Stream TPS (top-k)",
        ("1", 8): "1 (averaged)",
        "beta31": "Beta(3, 1)",
        ("sentencepiece", 4096): "SentencePiece, 4,096",
    }
    assert {key: papers.row_name(key) for key in names} == names
    page = papers.show_published("khan2021", 2).to_html()
    assert "Khan et al. 2021, Table 2." in page
    assert "TF-IDF word" in page and "tfidf_word" not in page


def test_only_measured_rows_are_named_and_tested_sizes_are_a_column():
    index = pd.MultiIndex.from_tuples([("1", 8), ("1-8", 8)])
    ours = pd.DataFrame({"MRR": [0.1, 0.2], "R@4": 0.3, "R@8": 0.4}, index)
    table = papers.named(papers.side_by_side(ours, papers.published_table("khan2021", 3)))
    assert table.index.tolist() == ["1 (averaged)", "1-8"] and table["tested on"].tolist() == [8, 8]
    assert list(table)[1:] == ["MRR published", "MRR ours", "R@4 published", "R@4 ours", "R@8 ours"]


def test_a_trained_encoder_stands_in_the_row_of_its_features_and_sizes():
    shared = {"loss": {"name": "topk"}, "sampler": {"max_posts": 8}}
    shared["training"] = {"steps": 1, "lr": 1}
    encoders = {
        "first": stream_config("khan2021", features="TP"),
        "again": stream_config("khan2021", features="TP"),
        "luar": stream_config("luar", features="T"),
        "pooled": stream_config("iur"),
    }
    experiments = {name: Experiment.of(shared | {"encoder": encoders[name]}) for name in encoders}
    rows = papers.linking_rows(experiments)
    assert rows == {"TP_8": "first", "iur": "pooled"}
    ours = {"tfidf_word": "tfidf_word", "sentence_encoder": "minilm_joined"}
    baselines = ["tfidf_char", "minilm", "minilm_joined", "tfidf_word"]
    assert papers.linking_rows(experiments, baselines) == rows | ours
    assert rows.keys() <= set(papers.published_table("khan2021", 2).index)
