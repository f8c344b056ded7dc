"""The rooms' contracts hold: none imports what it may not know."""

import os
import re
import subprocess
import sys

from helpers.core import paths


def test_the_contracts_hold():
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", command, "--no-cache"],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(paths.ROOT)},
    )
    verdicts = dict(re.findall(r"^(.+) (KEPT|BROKEN)$", done.stdout, re.M))
    assert len(verdicts) == 5 and set(verdicts.values()) == {"KEPT"}, done.stdout + done.stderr
