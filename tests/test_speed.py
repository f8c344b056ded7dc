"""The comparisons of benchmarks/speed.py: their ways, their rows, and what a ratio is."""

import importlib
import runpy
import sys
import tempfile

import pandas as pd
import pytest

from helpers.core import paths
from tests.forks import Fork

FOLDER = paths.ROOT / "benchmarks"


def run_script(arguments):
    """Run the script as Python would: its folder is where it imports from."""
    sys.argv = arguments
    sys.path.insert(0, str(FOLDER))
    runpy.run_path(arguments[0], run_name="__main__")


class Popen:
    """What a test needs of subprocess.Popen: a script in a fork that has imported torch."""

    def __init__(self, folder, command, env, **_):
        arguments = [str(argument) for argument in command[1:]]
        self.fork = Fork(tempfile.mkdtemp(dir=folder), run_script, arguments, variables=env)

    def communicate(self, timeout=None):
        self.returncode = self.fork.wait(timeout)
        return self.fork.printed(), self.fork.errors()


@pytest.fixture(scope="module")
def speed():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        module = importlib.import_module("speed")
        yield module


def test_a_ratio_is_that_of_rates_in_the_same_repeat(speed):
    # the second repeat of both was disturbed
    took = {"loop": [4.0, 8.0, 4.0], "here": [1.0, 1.6, 2.0]}
    amounts = {"loop": 10, "here": 20}
    rows = []
    for way, amount in amounts.items():
        for repeat, seconds in enumerate(took[way]):
            rows.append(("c", "s", way, repeat, seconds, seconds / 2, amount, "MB"))
    frame = pd.DataFrame(rows, columns=speed.COLUMNS)
    table = speed.ratios(frame.assign(threads=2)).set_index("way")
    assert table.loc["here", ["value", "low", "high", "rate"]].tolist() == [8.0, 4.0, 10.0, 12.5]
    assert speed.ratios(frame.assign(threads=1)).rate.tolist() == [5.0, 25.0], "of processor time"
    assert (table.loc["loop", ["value", "low", "high"]] == 1).all() and (table.repeats == 3).all()


def test_the_command_says_what_it_does_not_know_and_writes_what_it_measured(tmp_path):
    table = tmp_path / "new" / "speed.csv"
    command = [sys.executable, FOLDER / "speed.py", "--out", table, "--repeats", "1"]
    wrong = Popen(tmp_path, [*command, "rankin"], {})
    _, errors = wrong.communicate()
    assert wrong.returncode == 2 and "no comparison rankin: one of training" in errors
    done = Popen(tmp_path, [*command, "start"], {})
    printed, errors = done.communicate()
    assert done.returncode == 0 and "first embedding" in printed, errors[-1000:]
    assert list(pd.read_csv(table).way) == ["import torch", "first embedding"]
