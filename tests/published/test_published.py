"""The published tables against independent readings of the papers; ours beside them."""

from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from helpers import published as papers
from helpers.core.names import row_name
from helpers.encoders.stream import stream_config
from helpers.training.experiment import Experiment

CAPTIONS = pd.read_csv(papers.FOLDER / "captions.csv")


def test_every_table_is_indexed_and_says_what_it_shows():
    for paper, number in zip(CAPTIONS.paper, CAPTIONS.table):
        frame = papers.published_table(paper, number)
        assert frame.index.is_unique
        assert frame.attrs["caption"].startswith(f"{paper} Table {number}. ")
        assert papers.show_published(paper, number).to_html().count("<tr") > len(frame)


def test_sums_of_columns():
    """Sums of a second transcription of the papers."""
    sums = yaml.safe_load(Path(__file__).with_name("sums.yaml").read_text("utf-8"))
    for name, expected in sums.items():
        paper, number = name.split()
        table = papers.published_table(paper, int(number)).select_dtypes("number")
        np.testing.assert_allclose(table.sum(), expected, atol=1e-9, err_msg=name)


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


def test_only_measured_rows_are_named_and_tested_sizes_are_a_column():
    index = pd.MultiIndex.from_tuples([("1", 8), ("1-8", 8)])
    ours = pd.DataFrame({"MRR": [0.1, 0.2], "R@4": 0.3, "R@8": 0.4}, index)
    table = papers.named(papers.side_by_side(ours, papers.published_table("khan2021", 3)))
    assert table.index.tolist() == ["1 (averaged)", "1-8"] and table["tested on"].tolist() == [8, 8]
    assert list(table)[1:] == ["MRR published", "MRR ours", "R@4 published", "R@4 ours", "R@8 ours"]


def test_rows_have_names_for_people():
    names = {("khan2021", "TPS", "topk"): "Stream TPS (top-k)", ("1", 8): "1 (averaged)"}
    names |= {"beta31": "Beta(3, 1)", ("sentencepiece", 4096): "SentencePiece, 4,096"}
    assert {key: row_name(key) for key in names} == names
    page = papers.show_published("khan2021", 2).to_html()
    assert "TF-IDF word" in page and "tfidf_word" not in page
