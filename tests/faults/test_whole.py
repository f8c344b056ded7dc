"""The whole of ``make reproduce`` is killed and started again: ``make torture FULL=1``.

What was made stays in ``outputs/torture/whole``, so that a test that was stopped goes on there.
"""

import json
import os
import random
import time

import pytest

from helpers.core import paths
from tests.faults import comparison
from tests.faults.processes import SIGNALS, TARGETS, Kill, run_command
from tests.faults.test_kills import SEED

FOLDER_VARIABLE = "AUTHORBOOK_TORTURE_WHOLE"  # the folder of this test; unset without FULL=1
CHAINS = 3
KILLS = 5  # of one run
COMMAND = ["helpers.runs", "demo", "--jobs", "2"]
LIMIT_SECONDS = 7200

pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(FOLDER_VARIABLE not in os.environ, reason="make torture FULL=1 runs it"),
]


@pytest.fixture(scope="module")
def folder():
    """The folder of this test; ``torture.py`` empties it where the code has changed."""
    folder = paths.resolve(os.environ[FOLDER_VARIABLE])
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def references(folder):
    """The contents of two undisturbed runs, and the seconds of the second.

    What differs between them, such as the seconds in a notebook about speed, is not compared.
    """
    contents = []
    for name in ("first", "second"):
        record = folder / f"{name}.json"
        if not record.exists():
            began = time.monotonic()
            ended = run_command(COMMAND, folder / name, limit=LIMIT_SECONDS)
            assert ended.code == 0, ended.output
            found = comparison.contents(folder / name / "demo")
            record.write_text(json.dumps([found, time.monotonic() - began]))
        contents.append(json.loads(record.read_text()))
    (first, _), (second, seconds) = contents
    return {name: second[name] for name in second if first.get(name) == second[name]}, seconds


def kills_of_chain(number, seconds):
    """Return the kills of one run, some seconds after each start."""
    rng = random.Random(f"{SEED} whole {number}")
    kills = []
    for count in range(KILLS):
        after = rng.uniform(5, 2 * seconds / KILLS)
        kills.append(Kill("", after, SIGNALS[count % 3], TARGETS[(number + count) % 2]))
    return kills


def killed_run(number, folder, reference, seconds):
    """Kill a run, go on to its end, and return the kills that were made and what is not equal."""
    outputs = folder / f"killed{number}"
    record = folder / f"kills{number}.json"
    made = json.loads(record.read_text()) if record.exists() else []
    for kill in kills_of_chain(number, seconds)[len(made) :]:
        ended = run_command(COMMAND, outputs, kill, limit=LIMIT_SECONDS)
        made.append(f"{kill}: {'killed' if ended.killed else 'had ended'}")
        record.write_text(json.dumps(made))
    ended = run_command(COMMAND, outputs, limit=LIMIT_SECONDS)
    found = comparison.contents(outputs / "demo")
    compared = {name: found[name] for name in found if name in reference}
    lines = comparison.differences(reference, compared)
    if ended.code:
        lines.insert(0, f"ended with {ended.code}: {ended.output[-500:]}")
    return made, lines


def test_make_reproduce_ends_as_undisturbed(folder, references, tries):
    """One test, so that no two runs share the processors."""
    reference, seconds = references
    for number in range(CHAINS):
        made, lines = killed_run(number, folder, reference, seconds)
        if lines:
            tries.defect(f"{made}: {lines[:5]}")
        else:
            tries.held(sum(line.endswith(": killed") for line in made))
