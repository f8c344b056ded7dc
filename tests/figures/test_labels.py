"""The one label map: every identifier of the code has words."""

import re
from types import SimpleNamespace

import nbformat
import pytest

from helpers.figures import published as papers
from helpers.figures.labels import LABELS, describe, label
from helpers.runs import paths


@pytest.mark.parametrize("identifier, words", [
    ("tfidf_char", "TF-IDF, characters 2-5"), ("TPS", "text + hour + topic"), ("fused", "late fusion"),
    ("test_cross", "test, across topics"), ("MRR", "MRR"), ("not_in_the_map", "not in the map"), (8, "8"),
])  # fmt: skip
def test_label(identifier, words):
    assert label(identifier) == words


def test_no_word_is_an_identifier():
    assert not [words for words in LABELS.values() if "_" in words]


def test_rows_of_published_tables_have_words():
    for paper, number, level in (("khan2021", 1, "loss"), ("khan2021", 2, "model"), ("khan2021", 4, "sizes"),
                                 ("sawatphol2022", 2, "model"), ("sawatphol2022", 1, "split")):  # fmt: skip
        assert set(papers.table(paper, number).index.get_level_values(level)) <= {*LABELS, "train", "uniform"}


def experiment(loss="supcon", kind="authors", start="", max_posts=16, window="prefix", seed=0, **encoder):
    settings = {"post": "text_cnn", "join_posts": False, "features": "TPS", "time": "hour", "pooling": "khan2021",
                "model": "tiny"} | encoder  # fmt: skip
    return SimpleNamespace(encoder=SimpleNamespace(**settings), loss=SimpleNamespace(name=loss), start=start, seed=seed,
                           sampler=SimpleNamespace(kind=kind, min_posts=1, max_posts=max_posts, window=window))  # fmt: skip


@pytest.mark.parametrize("config, words", [
    (experiment(), "stream, text + hour + topic, supervised contrastive"),
    (experiment("arcface", pooling="iur", features="T"), "IUR, text, ArcFace"),
    (experiment(features="T", seed=2), "stream, text, supervised contrastive, seed 2"),
    (experiment("topk", features="TP", max_posts=8), "stream, text + hour, top-k, 1-8 posts"),
    (experiment("topk", features="T", max_posts=1), "stream, text, top-k, single posts"),
    (experiment("topk", features="T", window="random"), "stream, text, top-k, random windows"),
    (experiment("topk", time="continuous", features="TP"), "stream, text + hour, continuous time, top-k"),
    (experiment("topk", time="continuous", features="T"), "stream, text, top-k"),
    (experiment("contrastive", "pairs", max_posts=1, post="transformer", join_posts=True, model="minilm"),
     "transformer minilm, contrastive, pairs"),
    (experiment("mll", start="a1b2c3", post="transformer", pooling="mean"),
     "mean of posts, transformer, text + hour + topic, softmax cross-entropy, continued"),
])  # fmt: skip
def test_describe(config, words):
    assert describe(config) == words


def shown(figure):
    """Every text of a figure that a reader sees: title, panels, axes with their ticks, legend."""
    layout = figure["layout"]
    yield layout.get("title", {}).get("text") or ""
    yield from (note.get("text") or "" for note in layout.get("annotations", []))
    for axis in (layout[name] for name in layout if re.fullmatch(r"[xy]axis\d*", name)):
        yield from [(axis.get("title") or {}).get("text") or "", *map(str, axis.get("ticktext") or [])]
    for trace in figure["data"]:
        yield trace.get("name") or ""
        yield from (value for axis in "xy" for value in list(trace.get(axis) or []) if isinstance(value, str))


def identifiers(text):
    """The names of the code in a text: what has an underscore, and what the map has words for that say it otherwise."""
    said = " ".join(LABELS.values())
    known = {name for name in LABELS if name not in said} - {"fused"}  # "fused with ..." is a word
    return [word for word in re.split(r"[\s,():;<>&]+", text) if "_" in word or word in known]


def test_an_identifier_is_seen():
    assert identifiers("supcon is best, tfidf_word (khan2021)") == ["supcon", "tfidf_word", "khan2021"]
    assert not identifiers("stream, text + hour, fused with blind ARR, late fusion of TF-IDF")


@pytest.mark.parametrize("path", sorted(paths.NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_figure_of_a_notebook_shows_an_identifier(path):
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            if figure := output.get("data", {}).get("application/vnd.plotly.v1+json"):
                assert not [text for text in shown(figure) if identifiers(text)]
                assert figure["layout"]["title"]["text"], "a finding, which is also what a screen reader says"
                assert "image/png" in output["data"], "GitHub draws no plotly figure"
