"""A call of the library is killed, or the disk becomes full; made again, it ends as undisturbed.

The kill comes right before a file is opened for writing, renamed or deleted, or a folder made.
"""

import random
import re
import shutil

import pytest

from tests.faults import comparison
from tests.faults.processes import SIGNALS, FullDisk, Kill, moments_of, run_call
from tests.faults.test_kills import SEED

CALLS = ("training", "accounts")
QUICK = 2  # tries of each call and each fault in `make test`
MANY = 30  # the same in `make torture`
FULL = re.compile(r"No space left on device|disk is full|File too large|[Ee]rror 28|[Ee]rrno 27")


@pytest.fixture(scope="module", params=CALLS)
def call(request, tmp_path_factory):
    """The name of a call, its folder, and the contents and moments of an undisturbed one."""
    folder = tmp_path_factory.mktemp(request.param)
    ended = run_call(request.param, folder / "undisturbed")
    assert ended.code == 0, ended.output
    contents = comparison.contents(folder / "undisturbed" / "calls")
    return request.param, folder, contents, moments_of(folder / "undisturbed")


def drawn(moments, count, seed):
    """Return moments at random: of all names as many, a name's moments alike."""
    rng = random.Random(f"{SEED} {seed}")
    names = {}
    for moment in moments:
        names.setdefault(moment.rpartition(" ")[0], []).append(moment)
    chosen = rng.sample(sorted(names), min(count, len(names)))
    return [rng.choice(names[name]) for name in chosen]


def make_again(call, folder, fault, tries):
    """Make a call with a fault and then without, and note what became of it."""
    name, _, reference, _ = call
    broken = run_call(name, folder, fault)
    found = comparison.contents(folder / "calls")
    again = run_call(name, folder)
    lines = comparison.differences(reference, comparison.contents(folder / "calls"))
    if again.code:
        lines.insert(0, again.output[-500:])
    if isinstance(fault, FullDisk) and broken.code not in (0, 1):
        lines.insert(0, f"ended with {broken.code}: {broken.output[-300:]}")
    if isinstance(fault, FullDisk) and broken.code == 1 and not FULL.search(broken.output):
        lines.insert(0, f"does not say that the disk is full: {broken.output[-300:]}")
    if broken.code == 0 and comparison.differences(reference, found):
        lines.insert(0, "ended well, but not with all files")
    shutil.rmtree(folder)
    if lines:
        tries.defect(f"{name}, {fault}: {lines[:5]}")
    else:
        tries.held()


def kills(moments, count):
    """Return kills at moments of a call, each signal in turn."""
    chosen = drawn(moments, count, "kills")
    return [Kill(at, do=SIGNALS[n % 3], targets="parent") for n, at in enumerate(chosen)]


def full_disks(moments, count):
    """Return full disks: at a moment, and by the size of a file."""
    rng = random.Random(f"{SEED} sizes")
    faults = []
    for number, at in enumerate(drawn([m for m in moments if "open " in m], count, "full")):
        if number % 2:
            faults.append(FullDisk(at))
        else:
            faults.append(FullDisk(max_bytes=int(10 ** rng.uniform(1.5, 5))))
    return faults


def test_a_killed_call_ends_as_undisturbed(call, tries):
    for fault in kills(call[3], QUICK):
        make_again(call, call[1] / "outputs", fault, tries)


def test_a_call_on_a_full_disk_ends_as_undisturbed(call, tries):
    for fault in full_disks(call[3], QUICK):
        make_again(call, call[1] / "outputs", fault, tries)


@pytest.mark.torture
def test_many_killed_calls(call, tries):
    for fault in kills(call[3], MANY)[QUICK:]:
        make_again(call, call[1] / "outputs", fault, tries)


@pytest.mark.torture
def test_many_full_disks(call, tries):
    for fault in full_disks(call[3], MANY)[QUICK:]:
        make_again(call, call[1] / "outputs", fault, tries)
