"""A call of the library is killed, or the disk becomes full; made again, it ends as undisturbed.

The kill comes right before a file is opened for writing, renamed or deleted, or a folder made.
"""

import random
import shutil

import pytest

from tests.faults import comparison
from tests.faults.processes import SIGNALS, FullDisk, Kill, moments_of, run_call
from tests.faults.test_kills import FULL, SEED

CALLS = ("training", "accounts")
QUICK = 2  # tries of each call and each fault in `make test`
MANY = 30  # the same in `make torture`


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


def check_made_again(call, fault):
    """Make a call with a fault and then without: it ends as undisturbed."""
    name, folder, reference, _ = call
    folder = folder / "outputs"
    broken = run_call(name, folder, fault)
    after_fault = comparison.contents(folder / "calls")
    again = run_call(name, folder)
    assert again.code == 0, f"{fault}: {again.output[-500:]}"
    assert comparison.differences(reference, comparison.contents(folder / "calls")) == [], fault
    if isinstance(fault, FullDisk):
        assert broken.code in (0, 1), broken.output[-300:]
        assert broken.code == 0 or FULL.search(broken.output), broken.output[-300:]
    if broken.code == 0:
        assert comparison.differences(reference, after_fault) == [], f"{fault} ended well"
    shutil.rmtree(folder)


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


@pytest.mark.parametrize("faults", [kills, full_disks])
def test_a_disturbed_call_ends_as_undisturbed(call, faults):
    for fault in faults(call[3], QUICK):
        check_made_again(call, fault)


@pytest.mark.torture
@pytest.mark.parametrize("faults", [kills, full_disks])
def test_many_disturbed_calls(call, faults):
    for fault in faults(call[3], MANY)[QUICK:]:
        check_made_again(call, fault)
