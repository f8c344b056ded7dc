"""A process is killed, or the disk becomes full; started again, it ends as an undisturbed one.

The kill comes right before a file is opened for writing, renamed or deleted, or a folder made, with
each signal in turn. `make test` disturbs calls of the library; `make torture` more of them, and the
command of a run of four stages, alone or with its kernel.
"""

import os
import random
import re
import shutil

import pytest

from helpers.core import paths
from tests.faults import comparison
from tests.faults.processes import HOOK, SIGNALS, Fault, moments_of, run_call, run_command

SEED = int(os.environ.get("AUTHORBOOK_TORTURE_SEED", "0"))
QUICK = 2  # tries of each call and each fault in `make test`
MANY = 30  # the same in `make torture`
CHAINS = 10  # runs, each of which is killed several times before it may end
KILLS = 3  # of one run
COMMAND = ["helpers.runs", "small"]
FULL = re.compile(r"No space left on device|disk is full|File too large|[Ee]rror 28|[Ee]rrno 27")


def drawn(moments, count, seed):
    """Return moments at random: of all names as many, a name's moments alike."""
    rng = random.Random(f"{SEED} {seed}")
    names = {}
    for moment in moments:
        names.setdefault(moment.rpartition(" ")[0], []).append(moment)
    chosen = rng.sample(sorted(names), min(count, len(names)))
    return [rng.choice(names[name]) for name in chosen]


def kills(moments, count):
    chosen = drawn(moments, count, "kills")
    return [Fault(at, str(int(SIGNALS[n % 3]))) for n, at in enumerate(chosen)]


def full_disks(moments, count):
    """Return full disks: at a moment, and by the size of a file."""
    rng = random.Random(f"{SEED} sizes")
    faults = []
    for number, at in enumerate(drawn([m for m in moments if "open " in m], count, "full")):
        if number % 2:
            faults.append(Fault(at))
        else:
            faults.append(Fault(max_bytes=int(10 ** rng.uniform(1.5, 5))))
    return faults


@pytest.fixture(scope="module", params=["training", "accounts"])
def call(request, tmp_path_factory):
    """The name of a call, its folder, and the contents and moments of an undisturbed one."""
    folder = tmp_path_factory.mktemp(request.param)
    ended = run_call(request.param, folder / "undisturbed")
    assert ended.code == 0, ended.output
    contents = comparison.contents(folder / "undisturbed" / "calls")
    return request.param, folder, contents, moments_of(folder / "undisturbed")


def check_made_again(call, fault):
    name, folder, reference, _ = call
    folder = folder / "outputs"
    broken = run_call(name, folder, fault)
    after_fault = comparison.contents(folder / "calls")
    again = run_call(name, folder)
    assert again.code == 0, f"{fault}: {again.output[-500:]}"
    assert comparison.differences(reference, comparison.contents(folder / "calls")) == [], fault
    if fault.do == "full":
        assert broken.code in (0, 1), broken.output[-300:]
        assert broken.code == 0 or FULL.search(broken.output), broken.output[-300:]
    if broken.code == 0:
        assert comparison.differences(reference, after_fault) == [], f"{fault} ended well"
    shutil.rmtree(folder)


@pytest.mark.parametrize("faults", [kills, full_disks])
def test_a_disturbed_call_ends_as_undisturbed(call, faults):
    for fault in faults(call[3], QUICK):
        check_made_again(call, fault)


@pytest.mark.torture
@pytest.mark.parametrize("faults", [kills, full_disks])
def test_many_disturbed_calls(call, faults):
    for fault in faults(call[3], MANY)[QUICK:]:
        check_made_again(call, fault)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project with a run of four stages on a tenth of the demo."""
    folder = tmp_path_factory.mktemp("kills") / "project"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("helpers", "notebooks"):
        shutil.copytree(paths.ROOT / name, folder / name, ignore=ignored)
    shutil.copytree(HOOK.with_name("small"), folder / "params" / "small")
    return folder


@pytest.fixture(scope="module")
def undisturbed(project):
    folder = project.parent / "undisturbed"
    ended = run_command(COMMAND, folder, project)
    assert ended.code == 0, ended.output
    return comparison.contents(folder / "small"), moments_of(folder)


def check_continued(folder, reference, project):
    ended = run_command(COMMAND, folder, project)
    assert ended.code == 0, ended.output[-500:]
    assert comparison.differences(reference, comparison.contents(folder / "small")) == []


@pytest.mark.torture
@pytest.mark.parametrize("number", range(CHAINS))
def test_a_killed_run_ends_as_one_that_nobody_killed(number, undisturbed, project, tmp_path):
    reference, moments = undisturbed
    folder = tmp_path / "outputs"
    size = len(moments) // KILLS
    for count in range(KILLS):
        (at,) = drawn(moments[count * size :][:size], 1, f"chain {number} {count}")
        targets = ("parent", "all")[(number + count) % 2]
        kill = Fault(at, str(int(SIGNALS[(number + count) % 3])), targets)
        ended = run_command(COMMAND, folder, project, kill)
        print(kill, "->", ended.code)
    check_continued(folder, reference, project)
