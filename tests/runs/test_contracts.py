"""The rooms' contracts hold, and break where a room imports what it may not know."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from helpers.core import paths

# a module that exists in a room, the import that it may not have, the contract that says so
BREAKS = {
    "tokens/batch.py": ("helpers.encoders.base", "A sampler knows no network"),
    "evaluation/ranking.py": ("helpers.losses", "A metric knows no loss"),
    "sources/table.py": ("helpers.evaluation.ranking", "A file reader knows no protocol"),
}


def verdicts(folder):
    """{contract: KEPT or BROKEN} of the package in a folder."""
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", command, "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    lines = dict(re.findall(r"^(.+) (KEPT|BROKEN)$", done.stdout, re.M))
    assert len(lines) == 5 and (done.returncode == 0) == ("BROKEN" not in lines.values()), (
        done.stdout + done.stderr
    )
    return lines


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(
        paths.ROOT / "helpers", tmp_path / "helpers", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(paths.ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_they_hold(copy):
    assert set(verdicts(copy).values()) == {"KEPT"}


def test_they_break(copy):
    for module, (imported, _) in BREAKS.items():
        path = copy / "helpers" / module
        path.write_text(f"import {imported}\n" + path.read_text())
    verdict = verdicts(copy)
    assert [verdict[contract] for _, contract in BREAKS.values()] == ["BROKEN"] * 3
