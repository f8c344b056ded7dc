"""``authorbook`` commands are killed and given again: files and words end as undisturbed."""

import random
import shutil

import pytest

from tests.factories import write_demo_csv
from tests.faults import comparison
from tests.faults.processes import SIGNALS, TARGETS, Kill, moments_of, run_command
from tests.faults.test_kills import SEED

# command: how often it is killed
COMMANDS = {"encode": 6, "mine": 6}


def arguments_of(command, file, folder):
    """Return the words of a command on a file."""
    more = {"encode": [str(folder / "out.parquet")], "mine": []}
    return ["helpers.accounts", command, str(file), *more[command], "--run", "own"]


def made_by(folder, ended):
    """Return what a command left and said, without the lines about kept or continued work."""
    found = comparison.contents(folder / "own")
    out = folder / "out.parquet"
    if out.exists():
        found["out"] = comparison.shared_bytes(out).hex()
    return found | {"words": ended.output}


@pytest.mark.torture
@pytest.mark.parametrize("command", COMMANDS)
def test_a_killed_command_ends_as_one_that_nobody_killed(command, tmp_path, tries):
    file = tmp_path / "posts.csv"
    write_demo_csv(file, evader="demo-0003", accounts=36, posts=900)
    folder = tmp_path / "outputs"
    ended = run_command(arguments_of(command, file, folder), folder)
    assert ended.code == 0, ended.output
    reference = made_by(folder, ended)
    moments = moments_of(folder)
    shutil.rmtree(folder)

    rng = random.Random(f"{SEED} {command}")
    names = sorted({moment.rpartition(" ")[0] for moment in moments})
    for number in range(COMMANDS[command]):
        at = f"{rng.choice(names)} 1"
        targets = TARGETS[number // 3 % 2]
        kill = Kill(at, do=SIGNALS[number % 3], targets=targets)
        killed = run_command(arguments_of(command, file, folder), folder, kill)
        again = run_command(arguments_of(command, file, folder), folder)
        lines = comparison.differences(reference, made_by(folder, again))
        if again.code:
            lines.insert(0, f"ended with {again.code}: {again.output[-500:]}")
        if lines:
            tries.defect(f"{command}, {kill} (made: {killed.killed}): {lines[:4]}")
        else:
            tries.held()
        shutil.rmtree(folder)
