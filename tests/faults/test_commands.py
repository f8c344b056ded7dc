"""``authorbook`` commands are killed and given again: files and words end as undisturbed."""

import random
import shutil

import pytest

from tests.factories import write_demo_csv
from tests.faults import comparison
from tests.faults.processes import SIGNALS, TARGETS, Kill, moments_of, run_command
from tests.faults.test_kills import SEED

COMMANDS = ("encode", "mine")
KILLS = 6  # of each


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


@pytest.fixture(params=COMMANDS)
def command(request, tmp_path):
    """Name and words of a command, its outputs, and what it leaves and says undisturbed."""
    file = tmp_path / "posts.csv"
    write_demo_csv(file, evader="demo-0003", accounts=36, posts=900)
    folder = tmp_path / "outputs"
    words = arguments_of(request.param, file, folder)
    ended = run_command(words, folder)
    assert ended.code == 0, ended.output
    reference = made_by(folder, ended)
    moments = moments_of(folder)
    shutil.rmtree(folder)
    return request.param, words, folder, reference, moments


def give_again(command, fault, tries, problems_of):
    """Give a command with a fault and without; ``problems_of`` says what was wrong with it."""
    name, words, folder, reference, _ = command
    broken = run_command(words, folder, fault)
    again = run_command(words, folder)
    lines = comparison.differences(reference, made_by(folder, again))
    lines = [*problems_of(broken), *lines]
    if again.code:
        lines.insert(0, f"ended with {again.code}: {again.output[-500:]}")
    if lines:
        tries.defect(f"{name}, {fault}: {lines[:5]}")
    else:
        tries.held()
    shutil.rmtree(folder)


@pytest.mark.torture
def test_a_killed_command_ends_as_one_that_nobody_killed(command, tries):
    name, *_, moments = command
    rng = random.Random(f"{SEED} {name}")
    names = sorted({moment.rpartition(" ")[0] for moment in moments})
    for number in range(KILLS):
        targets = TARGETS[number // 3 % 2]
        kill = Kill(f"{rng.choice(names)} 1", do=SIGNALS[number % 3], targets=targets)
        give_again(command, kill, tries, lambda ended: [])
