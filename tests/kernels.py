"""What nbval does here beside its own: kernels that start for sure, and a look at every figure.

A kernel's ports are free when they are chosen, not when it takes them: of two that start at once
one may die of it. So kernels start one at a time, and once more where one does not answer.
"""

import os
import re
import warnings

import nbval.plugin
import pytest
from filelock import FileLock

from helpers.runs.report import PLOTLY

ATTEMPTS = 3


class RunningKernel(nbval.plugin.RunningKernel):
    """A kernel that has answered; raises RuntimeError where none of three did."""

    def __init__(self, *args: object, **options: object) -> None:
        folder = os.environ.get("AUTHORBOOK_OUTPUTS", "outputs")
        os.makedirs(folder, exist_ok=True)
        with FileLock(os.path.join(folder, ".kernels.lock")):
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    return super().__init__(*args, **options)
                except RuntimeError as error:
                    if attempt == ATTEMPTS:
                        raise
                    warnings.warn(
                        f"kernel {attempt} of {ATTEMPTS} did not start: {error}", stacklevel=2
                    )


nbval.plugin.RunningKernel = RunningKernel


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Run a cell, then check the texts of the figures that it shows."""
    result = yield
    for output in getattr(item, "test_outputs", None) or []:
        figure = output.get("data", {}).get(PLOTLY)
        if figure:
            check_figure(figure)
    return result


def check_figure(figure):
    """Raise AssertionError where a figure has no title, or shows an identifier."""
    title = figure["layout"].get("title", {}).get("text")
    assert title, "a figure without a finding, which is also what a screen reader says"
    for text in shown(figure):
        assert "_" not in text, f"a figure shows the identifier {text}"


def shown(figure):
    """Every text of a figure that a reader sees: title, panels, axes with their ticks, legend."""
    layout = figure["layout"]
    yield layout.get("title", {}).get("text") or ""
    yield from (note.get("text") or "" for note in layout.get("annotations", []))
    for axis in (layout[name] for name in layout if re.fullmatch(r"[xy]axis\d*", name)):
        yield (axis.get("title") or {}).get("text") or ""
        yield from (str(text) for text in axis.get("ticktext") or [])
    for trace in figure["data"]:
        yield trace.get("name") or ""
        for axis in "xy":
            yield from (value for value in list(trace.get(axis) or []) if isinstance(value, str))
