"""The whole of ``make reproduce`` is killed and started again: ``make torture FULL=1``.

What was made stays in ``outputs/torture/whole``, so that a test that was stopped goes on there.
"""

import json
import os
import random
import shutil
import time

import pytest

from helpers.core import artifacts, paths
from tests.faults import comparison
from tests.faults.processes import SIGNALS, TARGETS, Kill, run_command
from tests.faults.test_kills import SEED

FOLDER_VARIABLE = "AUTHORBOOK_TORTURE_WHOLE"  # the folder of this test; unset without FULL=1
CHAINS = 2
KILLS = 5  # of one run
COMMAND = ["helpers.runs", "demo", "--jobs", "2"]
LIMIT_SECONDS = 7200

pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(FOLDER_VARIABLE not in os.environ, reason="make torture FULL=1 runs it"),
]


@pytest.fixture(scope="module")
def folder():
    """The folder of this test, emptied where it was made by other code."""
    folder = paths.resolve(os.environ[FOLDER_VARIABLE])
    code = [folder.parent / "code", artifacts.file_stats_fingerprint(paths.ROOT / "helpers")]
    if code[0].exists() and code[0].read_text() != code[1]:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    code[0].write_text(code[1])
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


@pytest.mark.parametrize("number", range(CHAINS))
def test_make_reproduce_ends_as_undisturbed(number, folder, references, tries):
    reference, seconds = references
    outputs = folder / f"killed{number}"
    record = folder / f"kills{number}.json"
    made = json.loads(record.read_text()) if record.exists() else []
    rng = random.Random(f"{SEED} whole {number}")
    kills = []
    for count in range(KILLS):
        after = rng.uniform(5, 2 * seconds / KILLS)
        kills.append(Kill("", after, SIGNALS[count % 3], TARGETS[(number + count) % 2]))
    for kill in kills[len(made) :]:
        ended = run_command(COMMAND, outputs, kill, limit=LIMIT_SECONDS)
        made.append(f"{kill}: {'killed' if ended.killed else 'had ended'}")
        record.write_text(json.dumps(made))
    ended = run_command(COMMAND, outputs, limit=LIMIT_SECONDS)
    found = comparison.contents(outputs / "demo")
    lines = comparison.differences(
        reference, {name: found[name] for name in found if name in reference}
    )
    if ended.code:
        lines.insert(0, f"ended with {ended.code}: {ended.output[-500:]}")
    if lines:
        tries.defect(f"{made}: {lines[:5]}")
    else:
        tries.held(sum("killed" in line for line in made))
