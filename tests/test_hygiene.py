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
from helpers.runs.stages import read_stages

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
RUNS = sorted(path for path in paths.PARAMS.glob("*") if any(path.glob("*.yaml")))
MODULES = sorted((paths.ROOT / "helpers").rglob("*.py"))
MARKERS = {"NBVAL_CHECK_OUTPUT", "NBVAL_SKIP", "NBVAL_RAISES_EXCEPTION", "NBVAL_IGNORE_OUTPUT"}
# a folder of somebody's machine, not an address
MACHINE_PATH = re.compile(
    r"(?<![\w.:/~-])(?:/(?:home|Users|root|tmp|work|mnt|var/folders)/[\w.-]|[A-Z]:\\\\?Users\\)"
)

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
each_module = pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: path.relative_to(paths.ROOT).as_posix()
)


def code_cells(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def tree(source):
    """The syntax tree of a cell, IPython's own lines aside."""
    lines = (
        "pass" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines()
    )
    return ast.parse("\n".join(lines))


def parameter_cells(cells):
    return [
        number for number, cell in enumerate(cells) if "parameters" in cell.metadata.get("tags", [])
    ]


@each_notebook
def test_parameters_are_declared_found_and_read(path):
    import papermill

    cells = code_cells(path)
    (number,) = parameter_cells(cells)  # exactly one
    body = tree(cells[number].source).body
    assert len(body) > 1, "IPython reads a lone line `run: str = ...` as the magic %run"
    assert all(isinstance(node, ast.AnnAssign) and node.value is not None for node in body), (
        "annotate every parameter"
    )
    declared = [node.target.id for node in body]
    seen = papermill.inspect_notebook(str(path))
    assert declared == list(seen), (
        "papermill does not see all parameters: one line each, no second `=`"
    )
    without_comment = [name for name in declared if not seen[name]["help"]]
    assert not without_comment, "a parameter without a comment"
    assert "run" in declared
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
def test_it_was_run_in_order_without_errors(path):
    cells = [cell for cell in code_cells(path) if cell.source.strip()]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [
        output for cell in cells for output in cell.outputs if output.output_type == "error"
    ]


@each_notebook
def test_its_metadata_is_the_same_everywhere(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    assert book.metadata.kernelspec == kernel
    assert set(book.metadata) <= {"kernelspec", "language_info"}, (
        "papermill, widgets or an editor left something"
    )
    assert {key for cell in book.cells for key in cell.metadata} <= {"tags"}
    ids = [cell.id for cell in book.cells]
    assert len(ids) == len(set(ids))


@each_notebook
def test_it_holds_no_folder_of_a_machine(path):
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            for kind in [kind for kind in output.get("data", {}) if kind.startswith("image/")]:
                del output["data"][kind]
        assert not MACHINE_PATH.findall(cell.source)
        assert not MACHINE_PATH.findall(json.dumps(cell.get("outputs", []), ensure_ascii=False))


@each_notebook
def test_what_prose_cites_is_checked(path):
    for cell in code_cells(path):
        lines = [line.strip() for line in cell.source.splitlines() if "NBVAL" in line]
        assert {line.removeprefix("# ") for line in lines} <= MARKERS, (
            "a marker is the whole comment"
        )
        if "# NBVAL_CHECK_OUTPUT" in lines:
            assert cell.outputs and cell.execution_count, "nothing is stored, so nothing is checked"
            assert not [o for o in cell.outputs if o.get("name") == "stderr"], (
                "warnings differ between machines"
            )


@each_notebook
def test_its_answer_is_checked(path):
    """Every statement of the first cell has a line of its own that says True.

    nbval compares it in make test.
    """
    cells = nbformat.read(path, as_version=4).cells
    (heading,) = [
        number
        for number, cell in enumerate(cells)
        if cell.source.startswith("## The answer, checked")
    ]
    check = cells[heading + 1]
    assert check.cell_type == "code" and "# NBVAL_CHECK_OUTPUT" in check.source.splitlines()
    lines = "".join(output.get("text", "") for output in check.outputs).splitlines()
    assert lines and all(line.endswith("True") for line in lines)
    assert "**Question.**" in cells[0].source and "**Answer.**" in cells[0].source


@each_notebook
def test_it_stays_readable(path):
    for cell in code_cells(path):
        most = 25 if "parameters" in cell.metadata.get("tags", []) else 20
        assert len(cell.source.splitlines()) <= most, cell.source.splitlines()[0]
        for output in cell.outputs:
            kinds = output.get("data", {})
            assert not any("widget" in kind or "plotly" in kind for kind in kinds), (
                "GitHub draws pictures alone, see docs/publish.py"
            )
            assert "image/png" not in kinds or output.metadata["image/png"]["alt"]
    first = nbformat.read(path, as_version=4).cells[0]
    assert first.cell_type == "markdown" and re.match(r"# \S", first.source)


@each_notebook
def test_it_imports_at_the_front_doors(path):
    imports = [
        node.module
        for cell in code_cells(path)
        for node in ast.walk(tree(cell.source))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("helpers")
    ]
    assert all(name.count(".") == 1 or name == "helpers.sources.demo" for name in imports), imports
    assert len(imports) == len(set(imports)) <= 8


@each_notebook
def test_it_shows_and_does_not_build(path):
    book = nbformat.read(path, as_version=4)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    (number,) = parameter_cells(cells)
    assert len(tree(cells[number].source).body) <= 12, "more than 12 parameters"
    lines = [line for cell in cells for line in cell.source.splitlines()]
    assert not [line for line in lines if len(line) > 100], "lines over 100 characters"
    assert len([cell for cell in book.cells if cell.cell_type == "markdown"]) >= len(cells), (
        "more code than words"
    )


def prose(path):
    """The Markdown of a notebook, by heading of the second level.

    "" holds what stands before the first one.
    """
    cells = [
        cell.source
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "markdown"
    ]
    parts = re.split(r"^## (.+)$", "\n".join(cells), flags=re.M)
    return dict(zip(["", *parts[1::2]], parts[::2]))


@each_notebook
def test_it_asks_answers_links_and_ends_with_exercises(path):
    parts = prose(path)
    assert all(f"**{name}.**" in parts[""] for name in ("Question", "Answer"))
    assert {"Exercises", "References"} <= set(parts), "sections of their own"
    assert "](https://" in parts[""] + parts["References"], "papers are linked where they are named"
    assert len(re.findall(r"^\d\. ", parts["Exercises"], re.M)) >= 3
    assert re.search(r"^\* ", parts["References"], re.M), "a list"


@each_notebook
def test_its_links_lead_somewhere(path):
    text = "\n".join(prose(path).values())
    links = [
        link
        for link in re.findall(r"\]\(([^)\s]+)\)", text)
        if not link.startswith(("http", "#", "attachment:"))
    ]
    assert not [link for link in links if not (path.parent / link).exists()]


def test_the_first_notebook_leads_to_every_other():
    text = "\n".join(prose(NOTEBOOKS[0]).values())
    assert NOTEBOOKS[0].stem == "00_start_here"
    assert not [path.name for path in NOTEBOOKS[1:] if f"]({path.name})" not in text]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_params_are_known_to_their_notebooks(run):
    assert read_stages(run.name)  # raises where a name is unknown or a notebook is missing


def test_there_is_no_mark_of_a_gpu_or_of_a_local_build_in_the_pins():
    pins = (paths.ROOT / "constraints.txt").read_text().split()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins), (
        "name==version only, no +cpu, no address"
    )
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
    assert [normal(name) for name in conda] == ["python", "pip"], (
        "all else comes from pip, at the pinned versions"
    )
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
    heavy = (
        "sklearn",
        "scipy.stats",
        "scipy.optimize",
        "transformers",
        "accelerate",
        "torch._dynamo",
        "plotly",
        "umap",
    )
    code = (
        f"import sys; from helpers import AuthorEncoder; e = AuthorEncoder.load('open-small'); "
        f"print(e.encode([['a post']]).shape[0], [m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1 []"


@each_module
def test_a_module_names_no_folder_of_a_machine_and_not_its_own_package(path):
    """The package is ``helpers`` in a checkout, ``authorbook`` where it is installed."""
    text = path.read_text(encoding="utf-8")
    assert not MACHINE_PATH.findall(text)
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imported.add(node.module.partition(".")[0])
    assert not imported & {"helpers", "authorbook"}, (
        "import it relatively: from ..room import module"
    )
