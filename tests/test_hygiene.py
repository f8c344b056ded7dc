"""What holds for every committed notebook, run and module, whichever there are."""

import ast
import json
import re
import subprocess
import sys

import nbformat
import pytest
import yaml

from helpers.core import paths
from tests.toy_runs import KERNELSPEC

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))

MARKERS = {"NBVAL_CHECK_OUTPUT", "NBVAL_SKIP", "NBVAL_RAISES_EXCEPTION", "NBVAL_IGNORE_OUTPUT"}
# a folder of somebody's machine, not an address
MACHINE_PATH = re.compile(
    r"(?<![\w.:/~-])(?:/(?:home|Users|root|tmp|work|mnt|var/folders)/[\w.-]|[A-Z]:\\\\?Users\\)"
)

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def is_parameters(cell):
    return "parameters" in cell.metadata.get("tags", [])


def tree(source):
    """The syntax tree of a cell, IPython's own lines aside."""
    lines = (
        "pass" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines()
    )
    return ast.parse("\n".join(lines))


@each_notebook
def test_parameters_are_declared_found_and_read(path):
    import papermill

    cells = code_cells(path)
    (number,) = [number for number, cell in enumerate(cells) if is_parameters(cell)]
    body = tree(cells[number].source).body
    # IPython reads a lone line `run: str = ...` as the magic %run
    assert 1 < len(body) <= 12 and all(isinstance(node, ast.AnnAssign) for node in body)
    declared = [node.target.id for node in body]
    seen = papermill.inspect_notebook(str(path))
    assert declared == list(seen), "papermill misses one: one line each, no second `=`"
    assert "run" in declared and all(seen[name]["help"] for name in declared), (
        "comments are missing"
    )
    # start(globals()) uses the run, and checks all others: only a mention after it says that they
    # matter
    used = {"run"}
    for cell in cells[number + 1 :]:
        for node in ast.walk(tree(cell.source)):
            if isinstance(node, ast.Name):
                used.add(node.id)
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                used.add(node.value)  # settings["lr"]
    assert set(declared) <= used, "declared, but read in no later cell"


@each_notebook
def test_it_was_published(path):
    """It was run in order, without errors, and nothing of an editor or of a machine is in it."""
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    assert book.metadata.kernelspec == KERNELSPEC
    assert set(book.metadata) <= {"kernelspec", "language_info"}
    assert {key for cell in book.cells for key in cell.metadata} <= {"tags"}
    cells = [cell for cell in code_cells(path) if cell.source.strip()]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in book.cells:
        outputs = cell.get("outputs", [])
        assert "error" not in [output.output_type for output in outputs]
        for output in outputs:
            for kind in [kind for kind in output.get("data", {}) if kind.startswith("image/")]:
                del output["data"][kind]
        assert not MACHINE_PATH.findall(cell.source + json.dumps(outputs, ensure_ascii=False))


@each_notebook
def test_its_answer_is_checked(path):
    """Every statement of the first cell has a line of its own that says True, for nbval."""
    for cell in code_cells(path):
        lines = [line.strip() for line in cell.source.splitlines() if "NBVAL" in line]
        markers = {line.removeprefix("# ") for line in lines}
        assert markers <= MARKERS, "a marker is the whole comment"
        assert cell.outputs or "NBVAL_CHECK_OUTPUT" not in markers, "so nothing is checked"
    cells = nbformat.read(path, as_version=4).cells
    titles = [cell.source.partition("\n")[0] for cell in cells]
    check = cells[titles.index("## The answer, checked") + 1]
    assert "# NBVAL_CHECK_OUTPUT" in check.source.splitlines()
    lines = "".join(output.get("text", "") for output in check.outputs).splitlines()
    assert lines and all(line.endswith("True") for line in lines)


@each_notebook
def test_it_shows_and_does_not_build(path):
    code = "\n".join(cell.source for cell in code_cells(path))
    imports = re.findall(r"^\s*from (helpers[\w.]*) import", code, re.M)
    assert all(name.count(".") == 1 or name == "helpers.sources.demo" for name in imports), imports
    assert len(imports) == len(set(imports)) <= 8
    for cell in code_cells(path):
        lines = cell.source.splitlines()
        assert len(lines) <= (25 if is_parameters(cell) else 20), lines[0]
        assert not [line for line in lines if len(line) > 100]
        for output in cell.outputs:
            kinds = " ".join(output.get("data", {}))
            assert "widget" not in kinds and "plotly" not in kinds, "GitHub draws pictures alone"
            assert "image/png" not in kinds or output.metadata["image/png"]["alt"]


def prose(path):
    cells = nbformat.read(path, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "markdown"]


@each_notebook
def test_it_asks_answers_links_and_ends_with_exercises(path):
    cells = prose(path)
    text = "\n".join(cells)
    assert re.match(r"# \S", cells[0]) and len(cells) >= len(code_cells(path))
    assert "**Question.**" in cells[0] and "**Answer.**" in cells[0]
    exercises, references = re.split(r"^## (?:Exercises|References)$", text, flags=re.M)[1:]
    assert len(re.findall(r"^\d\. ", exercises, re.M)) >= 3
    assert re.search(r"^\* ", references, re.M) and "](https://" in cells[0] + references
    links = re.findall(r"\]\((?!http|#|attachment:)([^)\s]+)\)", text)
    assert not [link for link in links if not (path.parent / link).exists()]


def test_the_first_notebook_leads_to_every_other():
    text = "\n".join(prose(NOTEBOOKS[0]))
    assert NOTEBOOKS[0].stem == "00_start_here"
    assert not [path.name for path in NOTEBOOKS[1:] if f"]({path.name})" not in text]


def test_there_is_no_mark_of_a_gpu_or_of_a_local_build_in_the_pins():
    pins = (paths.ROOT / "constraints.txt").read_text().split()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins), "no +cpu, no address"
    names = [normal(pin) for pin in pins]
    assert len(names) == len(set(names))


def normal(requirement):
    """The name of a requirement as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower().split("==")[0]


def test_conda_users_get_the_same_set():
    import tomllib

    project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    notebooks, *dev = extras["dev"]
    assert notebooks == "authorbook[notebooks]", "make setup installs what the notebooks need"
    wanted = [*project["dependencies"], *extras["notebooks"], *dev]
    pins = {normal(pin) for pin in (paths.ROOT / "constraints.txt").read_text().split()}
    assert {normal(name) for name in wanted} <= pins, "not pinned in constraints.txt"
    environment = yaml.safe_load((paths.ROOT / "environment.yml").read_text())
    *conda, pip = environment["dependencies"]
    assert [normal(name) for name in conda] == ["python", "pip"], "all else comes from pip, pinned"
    first, *listed, last = pip["pip"]
    assert (first, last) == ("-c constraints.txt", "-e .[dev]")
    assert sorted(map(normal, listed)) == sorted(map(normal, wanted))
    version = re.search(r"==?([\d.]+)", conda[0])[1]
    assert (3, 11) <= tuple(map(int, version.split("."))) < (3, 14)


def test_one_version_is_named_everywhere():
    import helpers

    cited = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text("utf-8"))["version"]
    newest = re.search(r"^## (\S+)", (paths.ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)[1]
    assert helpers.__version__ == cited == newest


def test_a_first_embedding_waits_for_nothing_that_it_does_not_use():
    """scikit-learn and what it brings take as long as torch, and serve fitting only.

    benchmarks/speed.py has the seconds.
    """
    heavy = "sklearn scipy.stats scipy.optimize transformers accelerate torch._dynamo plotly umap"
    code = (
        "import sys; from helpers import AuthorEncoder; e = AuthorEncoder.load('open-small'); "
        f"print(len(e.encode([['a post']])), {set(heavy.split())} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1 set()"
