"""A run of four stages is killed and started again: it ends as a run that nobody killed.

Kills come at moments of files, drawn from those of the undisturbed run, and at moments of the
clock, with each signal in turn, of the command alone or of its kernel as well.
"""

import os
import random
import re
import shutil
import subprocess
import time

import pytest

from helpers.core import paths
from tests.faults import comparison
from tests.faults.processes import HERE, SIGNALS, TARGETS, FullDisk, Kill, moments_of, run_command

SEED = int(os.environ.get("AUTHORBOOK_TORTURE_SEED", "0"))
CHAINS = 10  # runs, each of which is killed several times before it may end
KILLS = 3  # of one run
COMMAND = ["helpers.runs", "small"]
MAX_BYTES = (2_000, 100_000, 600_000)  # largest file of a run whose files cannot grow
FULL = re.compile(r"No space left on device|disk is full|File too large|[Ee]rror 28|[Ee]rrno 27")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project with a run of four stages on a tenth of the demo."""
    folder = tmp_path_factory.mktemp("kills") / "project"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("helpers", "notebooks"):
        shutil.copytree(paths.ROOT / name, folder / name, ignore=ignored)
    shutil.copytree(HERE / "small", folder / "params" / "small")
    return folder


@pytest.fixture(scope="module")
def undisturbed(project):
    """The contents, the moments and the seconds of a run that nobody killed."""
    folder = project.parent / "undisturbed"
    began = time.monotonic()
    ended = run_command(COMMAND, folder, project)
    seconds = time.monotonic() - began
    assert ended.code == 0, ended.output
    return comparison.contents(folder / "small"), moments_of(folder), seconds


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


def check_continued(folder, reference, project):
    """Give the command of the run again: it ends as a run that nobody disturbed."""
    ended = run_command(COMMAND, folder, project)
    assert ended.code == 0, ended.output[-500:]
    assert comparison.differences(reference, comparison.contents(folder / "small")) == []


@pytest.mark.torture
@pytest.mark.parametrize("number", range(CHAINS))
def test_a_killed_run_ends_as_one_that_nobody_killed(number, undisturbed, project, tmp_path):
    reference, moments, seconds = undisturbed
    folder = tmp_path / "outputs"
    for kill in kills_of_chain(number, moments, seconds):
        ended = run_command(COMMAND, folder, project, kill)
        print(kill, "->", ended.code, ended.killed)
    check_continued(folder, reference, project)


def check_says_so(ended):
    """Of a command on a full disk: it ended well, or with one clear sentence."""
    if ended.code:
        assert ended.code == 1 and FULL.search(ended.output), ended.output[-500:]
        assert "Traceback (most recent call last)" not in ended.output


@pytest.mark.torture
@pytest.mark.parametrize("max_bytes", MAX_BYTES)
def test_a_run_on_a_full_disk_goes_on_when_there_is_space(
    max_bytes, undisturbed, project, tmp_path
):
    reference, *_ = undisturbed
    folder = tmp_path / "outputs"
    check_says_so(run_command(COMMAND, folder, project, FullDisk(max_bytes=max_bytes)))
    check_continued(folder, reference, project)


@pytest.mark.torture
def test_a_run_on_a_small_file_system_goes_on_when_it_grows(undisturbed, project, tmp_path):
    reference, *_ = undisturbed
    place = tmp_path / "small disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a file system")
    try:
        check_says_so(run_command(COMMAND, place / "outputs", project))
        subprocess.run(["mount", "-o", "remount,size=1g", str(place)], check=True)
        check_continued(place / "outputs", reference, project)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
