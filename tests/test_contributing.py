"""Who follows the examples of CONTRIBUTING.md passes the tests of the registries."""

import os
import re
import shutil
import subprocess
import sys

from helpers.core import paths

# a block of code whose first line says where it belongs: a new file, or a place in one
EXAMPLE = re.compile(
    r"^```\w*\n# ([\w/.]+)(?:, (in|above|at the end) ?(\w*))?\n(.*?)^```$", re.M | re.S
)
TESTS = [
    "tests/losses/test_registry.py",
    "tests/losses/test_inspection.py",
    "tests/encoders/test_stream.py",
    "tests/core/test_names.py",
]
# of parametrised tests the cases of both examples; of names the test of every loss
CHOSEN = "[nca] or [max] or every_baseline_and_loss"


def add(example, folder):
    """Put an example into the copy of the package where its first line says."""
    name, relation, registry, code = example
    file = folder / name
    if not relation:
        file.write_text(code)
        return
    text = file.read_text()
    if relation == "at the end":
        file.write_text(text + code)
        return
    line = re.search(rf"^{registry}\b.*= {{\n", text, re.M)
    if relation == "in":
        place = line.end()
        file.write_text(text[:place] + code + text[place:])
    else:
        place = line.start()
        file.write_text(f"{text[:place]}{code}\n\n{text[place:]}")


def test_the_examples_pass_the_tests_of_their_registries(tmp_path):
    folder = tmp_path / "project"
    without = shutil.ignore_patterns("__pycache__")
    for name in ("helpers", "tests"):
        shutil.copytree(paths.ROOT / name, folder / name, ignore=without)
    shutil.copy(paths.ROOT / "pyproject.toml", folder)
    examples = EXAMPLE.findall((paths.ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    assert len(examples) == 6
    for example in examples:
        add(example, folder)
    options = ["-rp", "-p", "no:cacheprovider", "-k", CHOSEN]
    command = [sys.executable, "-m", "pytest", *options, *TESTS]
    variables = os.environ | {"PYTHONPATH": str(folder)}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    for case, number in (("[nca]", 6), ("[max]", 1), ("every_baseline_and_loss", 1)):
        assert len(re.findall(f"^PASSED .*{re.escape(case)}", done.stdout, re.M)) >= number
