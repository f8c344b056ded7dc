"""Names: one scheme, at most 28 letters, for every identifier, config and stored result."""

import itertools
from types import SimpleNamespace

import nbformat
import pytest
from bs4 import BeautifulSoup

from helpers.core import paths, results
from helpers.core.names import (
    INSIDE,
    MAX_LETTERS,
    NAMES,
    describe,
    name_of,
)
from helpers.encoders.baselines import BASELINES
from helpers.encoders.parts import FEATURES
from helpers.encoders.stream import PRESETS, StreamConfig
from helpers.losses import LOSSES

STORED = sorted(paths.ROOT.glob("outputs/open/draw-*/results.csv"))


def test_no_name_is_an_identifier_or_long():
    assert not [name for name in NAMES.values() if "_" in name or len(name) > MAX_LETTERS]


def test_every_baseline_and_loss_has_a_name():
    assert {*BASELINES, *LOSSES, *FEATURES} <= {*NAMES}
    assert {*LOSSES} <= {*INSIDE}


def experiment(
    loss="supcon", kind="authors", start="", max_posts=16, window="prefix", seed=0, **encoder
):
    settings = {"post": "text_cnn", "join_posts": False, "features": "TPS", "time": "hour"}
    settings |= {"pooling": "khan2021", "model": "tiny"} | encoder
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
        (experiment("topk", pooling="luar"), {}, "LUAR-pool TPS (top-k)"),
        (experiment("topk"), NORMED, "Stream TPS (top-k), s-norm"),
        (experiment("topk"), WITH_LSA, "Stream+LSA TPS (top-k)"),
        (experiment("topk"), EQUAL, "Fusion TPS (top-k), equal"),
        (experiment(**PRETRAINED), {}, "MiniLM, fine-tuned"),
        (experiment(**PRETRAINED | {"features": "TPS"}), {}, "MiniLM TPS, fine-tuned"),
        (experiment("arcface", pooling="iur", features="TP"), WITH_LSA, "IUR+LSA TP"),
        (experiment("mll", **DOCUMENT, model=LONG_MODEL), {}, "a-very-long-name-of-a-… (CE)"),
    ],
)
def test_the_name_of_an_experiment(config, options, name):
    assert name_of(config, **options) == name


def test_every_config_has_a_short_name():
    """Each preset with each loss and feature: alone, s-normed, in either fusion."""
    ways = [{}, NORMED, WITH_LSA, EQUAL]
    for preset, loss, features, way in itertools.product(PRESETS.values(), LOSSES, FEATURES, ways):
        if preset.get("join_posts"):
            features = "T"
        encoder = StreamConfig(**preset | {"features": features})
        config = experiment(loss)
        config.encoder = encoder
        assert len(name_of(config, **way)) <= MAX_LETTERS, name_of(config, **way)


def test_describe():
    config = experiment("topk", features="TP", time="continuous", **CONTINUED)
    assert describe(config) == (
        "Stream TP (top-k): convolutions over tokens, attention over posts; text and hour; "
        "time as sines and cosines; top-k loss; single posts; random windows of tokens; "
        "seed 2; continued from another training"
    )


def test_stored_results_have_names_of_today_and_each_row_its_own():
    said = "label training_authors base protocol split max_tokens sample_size metric seed".split()
    assert STORED
    for path in STORED:
        frame = results.read_results(path)
        assert not [name for name in frame.label.unique() if len(name) > MAX_LETTERS or "_" in name]
        assert not frame.label.str.contains(r", seed \d").any(), "the seed is a column"
        assert not frame.duplicated(said).any()


def test_names_in_the_tables_of_notebooks_are_short():
    """Names of figures are checked where notebooks run (kernels.py)."""
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                page = BeautifulSoup(output.get("data", {}).get("text/html", ""), "html.parser")
                names = [name for table in page.find_all("table") for name in systems(table)]
                assert not [name for name in names if len(name) > MAX_LETTERS], path.name


def systems(table):
    """The texts of the column "system" of a table of HTML."""
    heads = [cell.text for cell in table.find_all("th")]
    if "system" not in heads:
        return []
    column = heads.index("system")
    rows = [row.find_all(["th", "td"]) for row in table.find_all("tr")[1:]]
    return [cells[column].text for cells in rows if len(cells) > column]
