"""A full disk: a command says so in a sentence, and ends as undisturbed once there is space."""

import os
import random
import subprocess

import pytest

from tests.faults.processes import FullDisk, run_command
from tests.faults.test_calls import FULL
from tests.faults.test_commands import command, give_again  # noqa: F401  a fixture
from tests.faults.test_kills import COMMAND, SEED, continue_run, undisturbed  # noqa: F401  a fixture

FULL_MOMENTS = 3  # full disks of the run of four stages, at moments of its files
MAX_BYTES = [2_000, 100_000, 600_000]  # largest file of a run whose files cannot grow
MEGABYTES = ["1m", "3m"]  # of a small file system


def problems(ended):
    """Return what is wrong with the end of a command on a full disk, in words."""
    if ended.code == 0:
        return []
    if ended.code != 1:
        return [f"ended with {ended.code}: {ended.output[-300:]}"]
    if not FULL.search(ended.output):
        return [f"does not say that the disk is full: {ended.output[-300:]}"]
    if "Traceback (most recent call last)" in ended.output:
        return [f"a traceback: {ended.output[-300:]}"]
    return []


@pytest.mark.torture
def test_a_run_on_a_full_disk_goes_on_when_there_is_space(
    undisturbed,  # noqa: F811
    project,
    tmp_path,
    tries,
):
    reference, moments, _ = undisturbed
    rng = random.Random(f"{SEED} full disk")
    names = sorted({moment.rpartition(" ")[0] for moment in moments if "open " in moment})
    faults = [FullDisk(f"{name} 1") for name in rng.sample(names, FULL_MOMENTS)]
    for fault in [*faults, *(FullDisk(max_bytes=size) for size in MAX_BYTES)]:
        folder = tmp_path / "outputs"
        ended = run_command(COMMAND, folder, fault, project)
        wrong = problems(ended)
        if ended.code == 0 and not fault.max_bytes:
            wrong.append("the command ended well although the disk was full")
        continue_run(str(fault), wrong, folder, reference, project, tries)


@pytest.mark.torture
@pytest.mark.parametrize("size", MEGABYTES)
def test_a_run_on_a_small_file_system_goes_on_when_it_grows(
    size,
    undisturbed,  # noqa: F811
    project,
    tmp_path,
    tries,
):
    reference, *_ = undisturbed
    place = tmp_path / "small disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a file system")
    try:
        ended = run_command(COMMAND, place / "outputs", project=project)
        subprocess.run(["mount", "-o", "remount,size=1g", str(place)], check=True)
        continue_run(size, problems(ended), place / "outputs", reference, project, tries)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.torture
def test_a_command_on_a_full_disk_says_so(command, tries):  # noqa: F811
    for size in (500, 20_000, 60_000):
        give_again(command, FullDisk(max_bytes=size), tries, problems)
