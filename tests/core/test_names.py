"""Names: one scheme, at most 28 letters, for every identifier, config and stored result."""

import itertools
from types import SimpleNamespace

import nbformat
import pytest
from bs4 import BeautifulSoup

from helpers.core import paths, results
from helpers.core.names import (
    GLOSSARY,
    INSIDE,
    MAX_LETTERS,
    NAMES,
    describe,
    distinct,
    label,
    name_of,
)
from helpers.encoders.baselines import BASELINES
from helpers.encoders.parts import FEATURES
from helpers.encoders.stream import PRESETS, StreamConfig
from helpers.losses import LOSSES

STORED = sorted(paths.ROOT.glob("outputs/open/draw-*/results.csv"))


@pytest.mark.parametrize(
    "identifier, name",
    [
        ("tfidf_char", "TF-IDF char 2-5"),
        ("TPS", "TPS"),
        ("fused", "Fusion (pairs)"),
        ("test_cross", "test, unseen topics"),
        ("MRR", "MRR"),
        ("not_in_the_map", "not in the map"),
        (8, "8"),
    ],
)
def test_label(identifier, name):
    assert label(identifier) == name


def test_no_name_is_an_identifier_or_long():
    assert not [name for name in NAMES.values() if "_" in name or len(name) > MAX_LETTERS]


def test_every_baseline_and_loss_has_a_name():
    assert {*BASELINES, *LOSSES, *FEATURES} <= {*NAMES}
    assert {*LOSSES} <= {*INSIDE}


def experiment(
    loss="supcon", kind="authors", start="", max_posts=16, window="prefix", seed=0, **encoder
):
    settings = {
        "post": "text_cnn",
        "join_posts": False,
        "features": "TPS",
        "time": "hour",
        "pooling": "khan2021",
        "model": "tiny",
    } | encoder
    return SimpleNamespace(
        encoder=SimpleNamespace(**settings),
        loss=SimpleNamespace(name=loss),
        start=start,
        seed=seed,
        sampler=SimpleNamespace(kind=kind, min_posts=1, max_posts=max_posts, window=window),
    )


DOCUMENT = {"post": "transformer", "join_posts": True}
LONG_MODEL = "someone/a-very-long-name-of-a-model"
NORMED = {"norm": "s-norm"}
WITH_LSA = {"system": "Stream+LSA"}
FUSION = {"system": "Fusion"}
CONTINUED = {"max_posts": 1, "window": "random", "seed": 2, "start": "a1b2"}
EQUAL = FUSION | {"note": "equal weights"}
PRETRAINED = {"post": "transformer", "pooling": "mean", "features": "T", "model": "minilm"}


@pytest.mark.parametrize(
    "config, options, name",
    [
        (experiment(), {}, "Stream TPS"),
        (experiment("arcface", pooling="iur", features="T"), {}, "IUR T"),
        (experiment(pooling="iur", features="T"), {}, "IUR T (SupCon)"),
        (experiment("topk", pooling="luar"), {}, "LUAR-pool TPS (top-k)"),
        (experiment("topk", features="TP", max_posts=8, seed=2), {}, "Stream TP (top-k)"),
        (experiment("topk"), NORMED, "Stream TPS (top-k), s-norm"),
        (experiment("topk"), WITH_LSA, "Stream+LSA TPS (top-k)"),
        (experiment(features="T"), EQUAL, "Fusion T, equal weights"),
        (experiment("topk"), EQUAL, "Fusion TPS (top-k), equal"),
        (experiment(**PRETRAINED), {}, "MiniLM, fine-tuned"),
        (experiment("topk", **PRETRAINED), {}, "MiniLM (top-k)"),
        (experiment(**PRETRAINED | {"features": "TPS"}), {}, "MiniLM TPS, fine-tuned"),
        (experiment(**PRETRAINED), NORMED, "MiniLM, s-norm"),
        (experiment(**PRETRAINED), FUSION, "Fusion MiniLM"),
        (experiment(**PRETRAINED), WITH_LSA, "MiniLM+LSA"),
        (experiment("arcface", pooling="iur", features="TP"), WITH_LSA, "IUR+LSA TP"),
        (experiment("arcface", pooling="iur", features="TP"), FUSION, "Fusion IUR TP"),
        (experiment("modified_contrastive", **DOCUMENT), {}, "Transformer (mod-contr.)"),
        (experiment("mll", **DOCUMENT, model=LONG_MODEL), {}, "a-very-long-name-of-a-… (CE)"),
    ],
)
def test_the_name_of_an_experiment(config, options, name):
    assert name_of(config, **options) == name


def test_every_config_has_a_short_name():
    """Each preset with each loss and feature: alone, s-normed, in either fusion."""
    ways = [{}, NORMED, WITH_LSA, EQUAL]
    for preset, loss, features, way in itertools.product(PRESETS.values(), LOSSES, FEATURES, ways):
        encoder = StreamConfig(
            **preset | {"features": "T" if preset.get("join_posts") else features}
        )
        config = experiment(loss)
        config.encoder = encoder
        assert len(name_of(config, **way)) <= MAX_LETTERS, name_of(config, **way)


@pytest.mark.parametrize(
    "config, words",
    [
        (
            experiment(),
            "Stream TPS: convolutions over tokens, attention over posts; text, hour and topic; "
            "supervised contrastive loss (SupCon); samples of up to 16 posts",
        ),
        (
            experiment("topk", features="TP", time="continuous", **CONTINUED),
            "Stream TP (top-k): convolutions over tokens, attention over posts; text and hour; "
            "time as sines and cosines; top-k loss; single posts; random windows of tokens; "
            "seed 2; continued from another training",
        ),
        (
            experiment("contrastive", "pairs", max_posts=1, **DOCUMENT | {"model": "minilm"}),
            "MiniLM (contrastive): transformer MiniLM; contrastive loss; batches of pairs",
        ),
    ],
)
def test_describe(config, words):
    assert describe(config) == words


def test_rows_of_one_name_are_told_apart():
    assert distinct(["a", "b"], [0, 0]) == ["a", "b"]
    assert distinct(["a", "a", "b"], [0, 1, 0]) == ["a, seed 0", "a, seed 1", "b"]
    assert distinct(["a", "a", "a"], [0, 0, None]) == ["a", "a (2)", "a (3)"]


def test_the_glossary_says_a_sentence_of_each_term():
    assert all(
        (sentence[0].isupper() or sentence.startswith(("all-MiniLM", "s-norm")))
        and sentence.endswith(".")
        for sentence in GLOSSARY.values()
    )


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.parent.name)
def test_every_stored_result_has_a_name_of_today(path):
    frame = results.read_results(path)
    assert not [name for name in frame.label.unique() if len(name) > MAX_LETTERS or "_" in name]
    assert not frame.label.str.contains(r", seed \d").any(), "the seed is a column"
    assert {"hardest AUC", "dev overall"}.isdisjoint(frame.metric), "metrics of older tables"


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.parent.name)
def test_no_two_stored_rows_have_one_name(path):
    said = "label training_authors base protocol split max_tokens sample_size metric seed".split()
    assert not results.read_results(path).duplicated(said).any()


@pytest.mark.parametrize(
    "path", sorted(paths.NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem
)
def test_names_of_a_notebook_are_short(path):
    """The tables of systems; names of figures are checked where notebooks run (kernels.py)."""
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            for table in BeautifulSoup(data.get("text/html", ""), "html.parser").find_all("table"):
                heads = [cell.text for cell in table.find_all("th")]
                if "system" in heads:
                    column = heads.index("system")
                    cells = [row.find_all(["th", "td"]) for row in table.find_all("tr")[1:]]
                    names = [row[column].text for row in cells if len(row) > column]
                    assert not [name for name in names if len(name) > MAX_LETTERS]
