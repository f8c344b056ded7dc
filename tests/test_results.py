"""The results table: the best first, and nothing of models or data that are gone."""

import json

import pytest

from helpers.runs import paths
from helpers.runs import results


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))


@pytest.mark.usefixtures("outputs")
def test_the_results_are_aligned_and_the_best_is_first():
    run = paths.Run("demo")
    assert results.text(run) == "no metrics"
    run.metrics.mkdir(parents=True)
    for name, row in {
        "a": {"model": "bow", "protocol": "ranking", "MRR": 0.1, "R@8": 0.5, "R@1": 0.25, "queries": 100},
        "b": {"model": "stream", "protocol": "ranking", "MRR": 0.75, "R@8": 1.0, "R@1": 0.5, "seed": 7},
        "c": {"model": "<b>", "protocol": "linking", "AUC": 0.5, "F_0.5u": 0.25},
        "d": {"model": "new", "base": "bow", "protocol": "R@8 gained", "gain": 0.5, "low": 0.25, "high": 1.0,
              "seeds": 2},
    }.items():
        (run.metrics / f"{name}.json").write_text(json.dumps(row))
    assert results.text(run).splitlines() == [
        "R@8 gained",
        "model  base   gain   high    low  seeds",
        "-----  ----  -----  -----  -----  -----",
        "new    bow   0.500  1.000  0.250      2",
        "",
        "linking",
        "model    AUC  F_0.5u",
        "-----  -----  ------",
        "<b>    0.500   0.250",
        "",
        "ranking",
        "model     MRR    R@1    R@8  queries  seed",
        "------  -----  -----  -----  -------  ----",
        "stream  0.750  0.500  1.000              7",
        "bow     0.100  0.250  0.500      100",
    ]
    assert "&lt;b&gt;</td>" in results.html(run)


@pytest.mark.usefixtures("outputs")
def test_results_of_earlier_models_and_data_are_left_out():
    run = paths.Run("demo")
    for folder, fingerprint in ((run.models / "m", "new"), (run.models / "gone", None), (run.tokens / "test", "tokens")):
        folder.mkdir(parents=True)
        if fingerprint:
            name = "store.json" if folder.parent == run.tokens else "training.json"
            (folder / name).write_text(json.dumps({"fingerprint": fingerprint}))
    run.metrics.mkdir(parents=True)
    rows = {"m": ("new", "tokens"), "old": ("old", "tokens"), "baseline": (None, "tokens"), "older": (None, "before")}
    for name, (training, data) in rows.items():
        row = {"model": name, "protocol": "ranking", "MRR": 0.5, "data": data} | ({"training": training} if training else {})
        (run.metrics / f"{name}.json").write_text(json.dumps(row))
    told = results.text(run)
    assert "2 results of earlier models or data are left out" in told and "2 results of earlier" in results.html(run)
    assert [line.split()[0] for line in told.splitlines()[3:5]] == ["baseline", "m"]
