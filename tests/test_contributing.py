"""Who follows the examples of CONTRIBUTING.md passes the tests of the registries."""

import os
import re
import runpy
import shutil
import sys

from helpers.core import paths
from tests.forks import Fork

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


def run_module(folder, name, arguments):
    """Run a module as ``python -m`` does in a folder; what is of that folder is imported anew."""
    for imported in list(sys.modules):
        if imported.partition(".")[0] in ("helpers", "tests"):
            del sys.modules[imported]
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


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
    arguments = ["-rp", "-p", "no:cacheprovider", "-k", CHOSEN, *TESTS]
    variables = {"PYTHONPATH": str(folder)}
    fork = Fork(tmp_path, run_module, folder, "pytest", arguments, variables=variables)
    code = fork.wait()
    shown = fork.printed()
    assert code == 0, shown[-3000:] + fork.errors()[-1000:]
    passed = re.findall(r"^PASSED (\S+)$", shown, re.M)
    assert len([name for name in passed if "[nca]" in name]) >= 8
    assert len([name for name in passed if "[max]" in name]) >= 1
    assert "tests/core/test_names.py::test_every_baseline_and_loss_has_a_name" in passed
