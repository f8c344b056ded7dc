"""Kernels for nbval, started one at a time and once more where one does not answer.

A kernel's ports are free when they are chosen, not when it takes them: of two that start at once
one may die of it.
"""

import os
import warnings

import nbval.plugin
from filelock import FileLock

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
