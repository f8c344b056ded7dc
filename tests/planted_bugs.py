"""Planted bugs: each is put into a copy of what is staged, where a test of its room must catch it.

    python tests/planted_bugs.py [WORD ...]     those whose file holds one of the words

Prints a line for each bug: the first test that failed, or MISSED. The exit code is 1 if one was
missed. A bug is code that still runs and gives wrong results.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[1]
TIME_LIMIT = 600  # seconds
FIRST_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.M)


BUGS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))


def plant(bug: dict[str, str], tree: Path) -> str:
    """Return the name of the first test of a tree that fails by a bug, or "MISSED"."""
    file, tests, right, wrong = bug.values()
    path = tree / "helpers" / file
    code = path.read_text("utf-8")
    if code.count(right) != 1:
        raise ValueError(f"{file} holds {right!r} {code.count(right)} times, not once")
    path.write_text(code.replace(right, wrong), "utf-8")
    command = [sys.executable, "-m", "pytest", f"tests/{tests}", "-x", "-q", "--tb=no", "-rfE"]
    environment = os.environ | {
        "AUTHORBOOK_OUTPUTS": str(tree / "outputs" / "test"),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(tree),
        "TQDM_DISABLE": "1",
    }
    try:
        done = subprocess.run(
            [*command, "-p", "no:cacheprovider"],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
        )
    finally:
        path.write_text(code, "utf-8")
    failed = FIRST_FAILED.search(done.stdout)
    return failed[1] if failed else "MISSED"


def main() -> int:
    """Plant the bugs whose files hold a word of the command line; return 1 if one was missed."""
    words = sys.argv[1:] or [""]
    chosen = [bug for bug in BUGS if any(word in bug["file"] for word in words)]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        subprocess.run(["git", "checkout-index", "-a", f"--prefix={tree}/"], cwd=ROOT, check=True)
        for bug in tqdm(chosen, unit="bug"):
            failed = plant(bug, tree)
            missed += failed == "MISSED"
            print(f"{bug['file']}: {bug['wrong']!r}: {failed}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} bugs were caught")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
