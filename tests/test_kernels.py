"""Under nbval a kernel that does not start is started again, and figures are looked at."""

from types import SimpleNamespace

import nbformat
import pytest
from nbval.kernel import RunningKernel as Original

from helpers.runs.report import PLOTLY
from tests.kernels import RunningKernel, pytest_runtest_call


@pytest.mark.parametrize("failures", [0, 2])
def test_a_kernel_that_dies_at_its_start_is_started_again(monkeypatch, tmp_path, failures):
    calls = []

    def start(self, name):
        calls.append(name)
        if len(calls) <= failures:
            raise RuntimeError("Kernel died before replying to kernel_info")

    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    monkeypatch.setattr(Original, "__init__", start)
    monkeypatch.setattr("warnings.warn", lambda *args, **options: None)
    RunningKernel("python3")
    assert calls == ["python3"] * (failures + 1)


def test_a_kernel_that_never_starts_is_a_failure(monkeypatch, tmp_path):
    def start(self, name):
        raise RuntimeError("no kernel")

    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    monkeypatch.setattr(Original, "__init__", start)
    monkeypatch.setattr("warnings.warn", lambda *args, **options: None)
    with pytest.raises(RuntimeError, match="no kernel"):
        RunningKernel("python3")


def test_nbval_starts_kernels_so(monkeypatch):
    import nbval.plugin

    assert nbval.plugin.RunningKernel is RunningKernel


@pytest.mark.parametrize(
    "title, name, is_shown",
    [
        ("a finding", "Stream TPS", True),
        ("", "Stream TPS", False),
        ("tfidf_word is first", "Stream TPS", False),
        ("a finding", "a" * 29, False),
    ],
)
def test_nbval_looks_at_the_texts_of_a_figure(title, name, is_shown):
    figure = {"data": [{"name": name}], "layout": {"title": {"text": title}}}
    outputs = [
        nbformat.v4.new_output("stream", text="words"),
        nbformat.v4.new_output("display_data", {PLOTLY: figure}),
    ]
    run = pytest_runtest_call(SimpleNamespace(test_outputs=outputs))
    next(run)
    with pytest.raises(StopIteration if is_shown else AssertionError):
        next(run)
