"""What became of every try: held, refused or a defect; one line of a journal for each test.

*Held*: the answer, or the bytes, of a try without a fault. *Refused*: one clear sentence and no
answer. *Defect*: everything else, such as a traceback, another answer, a file left over.
"""

import json
import os
from collections import Counter
from functools import cache
from pathlib import Path

import pandas as pd

JOURNAL_VARIABLE = "AUTHORBOOK_TORTURE_JOURNAL"
COLUMNS = ["tries", "held", "refused", "defects"]
# kind of a try, by the module of its test; what a passed test without counts of its own stands for
KINDS = {
    "test_kills": ("kills of a run of four stages", "held"),
    "test_calls": ("kills of library calls", "held"),
    "test_commands": ("kills of commands", "held"),
    "test_full_disk": ("full disk", "held"),
    "test_damage": ("damaged files", "held"),
    "test_artifacts": ("deleted files", "held"),
    "test_two_at_once": ("two at once", "held"),
    "test_tables": ("hostile tables", "held"),
    "test_attacks": ("pickle and YAML attacks", "refused"),
    "test_properties": ("properties", "held"),
    "test_words": ("wrong input", "refused"),
    "test_parameters": ("wrong parameters", "refused"),
    "test_whole": ("kills of the whole of make reproduce", "held"),
}


class Tries:
    """Counts what became of the tries of one test.

    Attributes
    ----------
    counts : number of tries by "held" and "refused"
    defects : one line for each defect
    """

    def __init__(self):
        self.counts = Counter()
        self.defects = []

    def held(self, number=1):
        """Count tries with the right answer."""
        self.counts["held"] += number

    def refused(self, number=1):
        """Count tries that ended in a clear sentence."""
        self.counts["refused"] += number

    def defect(self, line):
        """Note a defect; the test goes on with its other tries, and fails at its end."""
        self.defects.append(line)

    def check(self):
        """Fail where there was a defect."""
        assert not self.defects, "\n".join([f"{len(self.defects)} defects", *self.defects])


def kind_of(module):
    """Return the kind of a module's tries, and what a passed test of it stands for."""
    return KINDS.get(module, (module.removeprefix("test_").replace("_", " "), "held"))


def write_line(module, test, tries, outcome, seconds):
    """Append what became of a test's tries to the journal, if there is one.

    Parameters
    ----------
    module : name of the test's module
    test : name of the test
    tries : Tries, None for a test without counts of its own, which is one try
    outcome : "passed", "failed", "skipped" or "xfailed"
    seconds : how long the test took
    """
    journal = os.environ.get(JOURNAL_VARIABLE)
    if not journal:
        return
    kind, stands_for = kind_of(module)
    counts = Counter()
    defects = []
    if tries:
        counts.update(tries.counts)
        defects += tries.defects
    if outcome in ("failed", "xfailed") and not defects:
        defects.append(outcome)
    if outcome == "passed" and not counts:
        counts[stands_for] += 1
    line = {"kind": kind, "test": test, **counts, "defects": defects}
    line |= {"outcome": outcome, "seconds": round(seconds, 1)}
    with open(journal, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def is_to_do(test):
    """Return whether a test has not passed yet, by the journal of a `make torture` that goes on."""
    return test not in passed_before(os.environ.get(JOURNAL_VARIABLE, ""))


@cache
def passed_before(journal):
    """Return the names of the tests that passed, by a journal as it was at the start."""
    return {line["test"] for line in read_journal(journal) if line["outcome"] == "passed"}


def read_journal(path):
    """Return the lines of a journal; of a test that ran again, the last one."""
    lines = {}
    if Path(path).is_file():
        for text in Path(path).read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            lines[line["test"]] = line
    return list(lines.values())


def summary(lines):
    """Return a table of tries by kind, in the order of KINDS, with a row of sums."""
    rows = []
    for line in lines:
        held = line.get("held", 0)
        refused = line.get("refused", 0)
        defects = len(line["defects"])
        rows.append([line["kind"], held + refused + defects, held, refused, defects])
    table = pd.DataFrame(rows, columns=["kind", *COLUMNS]).groupby("kind").sum()
    order = [kind for kind, _ in KINDS.values() if kind in table.index]
    order += sorted(set(table.index) - set(order))
    table = table.loc[order]
    table.loc["all"] = table.sum()
    return table[table.tries > 0]
