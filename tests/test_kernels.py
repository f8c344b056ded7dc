"""A kernel that does not start is started again, and the third failure is the test's own."""

import pytest
from nbval.kernel import RunningKernel as Original

from tests.kernels import RunningKernel


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
