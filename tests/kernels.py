"""What nbval does here beside its own: kernels that start for sure, and a look at every figure.

A kernel's ports are free when they are chosen, not when it takes them: of two that start at once
one may die of it. So kernels start one at a time, and once more where one does not answer.
"""

import os
import warnings

import nbval.plugin
import pytest
from filelock import FileLock

from helpers.runs.report import PLOTLY
from tests.figure_texts import check_figure

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
