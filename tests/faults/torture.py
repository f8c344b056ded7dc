"""Run every try of tests/faults, and summarise them by kind: ``make torture``.

The journal, the summary (CSV and JSON) and, with ``--full``, the runs of ``make reproduce`` that
are killed are in ``outputs/torture``. With ``--full`` tests that passed with the same code are not
run again. ``--page`` writes the last summary for docs/reliability.md, the page that
``docs/render.py`` makes.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import pandas as pd  # noqa: E402

from helpers.core import artifacts, paths  # noqa: E402  the folder of this script comes first
from tests.faults import tries  # noqa: E402

TEMPLATE = paths.ROOT / "docs" / "templates" / "parts" / "torture.md"
NO_TESTS = 5  # exit code of pytest where nothing was to do
# the tests of this folder, all of them; of other folders those that make test leaves out
TESTS = (["tests/faults"], ["tests", "--ignore", "tests/faults", "-m", "torture"])
OPTIONS = ["--torture", "-n", "2", "--dist", "worksteal", "-q", "-rf"]


def main():
    """Run the tests and print the summary; return 1 where there was a defect."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--full", action="store_true", help="also kill the whole make reproduce")
    parser.add_argument("--seed", type=int, default=0, help="of kills, damage and examples")
    parser.add_argument("--page", action="store_true", help="write the last summary to the docs")
    options = parser.parse_args()
    folder = (paths.outputs() / "torture").absolute()
    if options.page:
        return write_page(folder)
    folder.mkdir(parents=True, exist_ok=True)
    journal = folder / ("journal-full.jsonl" if options.full else "journal.jsonl")
    begin_journal(journal, keep=options.full, seed=options.seed)
    began = time.monotonic()
    code = run_tests(folder, journal, options)
    seconds = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    minutes = {"minutes": seconds / 60, "processor_minutes": (used.ru_utime + used.ru_stime) / 60}
    table = tries.summary(tries.read_journal(journal))
    print(f"\n{table.to_string()}\n")
    print("{minutes:.0f} minutes, {processor_minutes:.0f} of a processor".format(**minutes))
    print(folder / "summary.csv")
    table.to_csv(folder / "summary.csv")
    artifacts.write_json(folder / "summary.json", minutes | {"seed": options.seed})
    for line in tries.read_journal(journal):
        for defect in line["defects"]:
            print(f"{line['outcome']} {line['test']}: {defect[:1000]}")
    return code


def begin_journal(journal, keep, seed):
    """Delete the journal of other code or of another seed; without ``keep`` any journal."""
    stamp = journal.with_suffix(".code")
    parts = [paths.ROOT / name for name in ("helpers", "notebooks", "params", "tests")]
    code = artifacts.fingerprint_of(seed, [code_fingerprint(part) for part in parts])
    if not keep or not stamp.exists() or stamp.read_text() != code:
        journal.unlink(missing_ok=True)
        shutil.rmtree(journal.parent / "whole", ignore_errors=True)
    stamp.write_text(code)


def code_fingerprint(folder):
    """Return a hash of a folder's sources."""
    names = sorted(folder.rglob("*"))
    files = [name for name in names if name.suffix in (".py", ".yaml", ".ipynb", ".csv")]
    return artifacts.fingerprint_of([artifacts.file_fingerprint(file) for file in files])


def run_tests(folder, journal, options):
    """Run the tests in two processes, and return an exit code."""
    variables = os.environ | {
        tries.JOURNAL_VARIABLE: str(journal),
        "AUTHORBOOK_TORTURE_SEED": str(options.seed),
        "AUTHORBOOK_OUTPUTS": str(folder / "outputs"),
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "passive",
        "TQDM_DISABLE": "1",
    }
    if options.full:
        variables["AUTHORBOOK_TORTURE_WHOLE"] = str(folder / "whole")
    more = ["--basetemp", str(folder / "temporary"), f"--hypothesis-seed={options.seed}"]
    codes = []
    for words in TESTS:
        command = [sys.executable, "-m", "pytest", *words, *OPTIONS, *more]
        codes.append(subprocess.run(command, cwd=paths.ROOT, env=variables).returncode)
    shutil.rmtree(folder / "temporary", ignore_errors=True)
    return int(any(code not in (0, NO_TESTS) for code in codes))


def write_page(folder):
    """Write the last summary where the template of docs/reliability.md includes it."""
    table = pd.read_csv(folder / "summary.csv", index_col="kind")
    about = artifacts.read_json(folder / "summary.json")
    lines = ["| kind | tries | held | refused | defects |", "|---|---|---|---|---|"]
    for kind, row in table.iterrows():
        lines.append("| " + " | ".join([kind, *(f"{number:,}" for number in row)]) + " |")
    minutes = "{minutes:.0f} minutes, {processor_minutes:.0f} of a processor".format(**about)
    lines += ["", f"It took {minutes}.", ""]
    TEMPLATE.write_text("\n".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
