"""A run of four stages is killed and started again: it ends as a run that nobody killed.

Kills come at moments of files, drawn from those of the undisturbed run, and at moments of the
clock, with each signal in turn, of the command alone or of its kernel as well.
"""

import json
import os
import random
import shutil
import time

import pytest
from filelock import FileLock

from tests.faults import comparison
from tests.faults.processes import SIGNALS, TARGETS, Kill, moments_of, run_command

SEED = int(os.environ.get("AUTHORBOOK_TORTURE_SEED", "0"))
CHAINS = 10  # runs, each of which is killed several times before it may end
KILLS = 3  # of one run
COMMAND = ["helpers.runs", "small"]


@pytest.fixture(scope="session")
def undisturbed(project, shared_folder):
    """The contents, the moments and the seconds of a run that nobody killed."""
    record = shared_folder / "undisturbed.json"
    with FileLock(f"{record}.lock"):
        if not record.exists():
            folder = shared_folder / "undisturbed"
            began = time.monotonic()
            ended = run_command(COMMAND, folder, project=project)
            seconds = time.monotonic() - began
            assert ended.code == 0, ended.output
            found = comparison.contents(folder / "small")
            record.write_text(json.dumps([found, moments_of(folder), seconds]))
    return json.loads(record.read_text())


def kills_of_chain(number, moments, seconds):
    """Return the kills of one run, in the order of the run.

    Every second kill comes at a moment of a file: of all names of moments, each is as likely.
    """
    rng = random.Random(f"{SEED} {number}")
    places = sorted(rng.random() for _ in range(KILLS))
    kills = []
    before = 0.0
    for count, place in enumerate(places, number * KILLS):
        do = SIGNALS[count % len(SIGNALS)]
        targets = TARGETS[count // len(SIGNALS) % len(TARGETS)]
        if count % 2:
            # the start of the command comes again
            kills.append(Kill("", max(2 + (place - before) * seconds, 1), do, targets))
        else:
            near = moments[int(before * len(moments)) :][: max(len(moments) // KILLS, 1)]
            names = sorted({moment.rpartition(" ")[0] for moment in near})
            name = rng.choice(names)
            at = rng.choice([moment for moment in near if moment.rpartition(" ")[0] == name])
            kills.append(Kill(at, 0.0, do, targets))
            place = max(place, moments.index(at) / len(moments))
        before = place
    return kills


def continue_run(words, wrong, folder, reference, project, tries, count=1):
    """Give the command of the run again, note what came of so many faults, and delete the run.

    ``wrong`` are lines about the command that had the faults.
    """
    ended = run_command(COMMAND, folder, project=project)
    lines = [*wrong, *comparison.differences(reference, comparison.contents(folder / "small"))]
    if ended.code:
        lines.insert(0, f"ended with {ended.code}: {ended.output[-500:]}")
    if lines:
        tries.defect(f"{words}: {lines[:5]}")
    else:
        tries.held(count)
    shutil.rmtree(folder)


@pytest.mark.torture
@pytest.mark.parametrize("number", range(CHAINS))
def test_a_killed_run_ends_as_one_that_nobody_killed(number, undisturbed, project, tmp_path, tries):
    reference, moments, seconds = undisturbed
    folder = tmp_path / "outputs"
    made = []
    for kill in kills_of_chain(number, moments, seconds):
        ended = run_command(COMMAND, folder, kill, project)
        print(kill, "->", ended.code, ended.killed)
        if ended.killed:
            made.append(kill)
    words = "; ".join(map(str, made))
    continue_run(words, [], folder, reference, project, tries, len(made))
