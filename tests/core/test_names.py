"""Names: one scheme, at most 28 letters, for every identifier, config and stored result."""

import itertools
from types import SimpleNamespace

import pytest

from helpers.core.names import INSIDE, MAX_LETTERS, NAMES, describe, name_of
from helpers.encoders.baselines import BASELINES
from helpers.encoders.parts import FEATURES
from helpers.encoders.stream import PRESETS, StreamConfig
from helpers.losses import LOSSES


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
    assert options or describe(config).startswith(name)


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
