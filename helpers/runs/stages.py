"""The stages of a run, which ``params/<run>/`` lists, and a fingerprint of the inputs of each.

``params/<run>/<notebook>.yaml`` holds the flat parameters of one notebook;
``<notebook>.<variant>.yaml`` holds what differs in one more execution of it. Only ``make train``
runs ``<notebook>.gpu<...>.yaml``. Every execution is a stage: the executed notebook and a small
JSON with its inputs are in ``outputs/<run>/notebooks/``.
"""

import ast
import re
import typing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from helpers.core import artifacts, paths
from helpers.core.parameters import check, unknown

ENSURED = re.compile(r'ensure\(\w+, "(\w+)"')
REGISTRY = re.compile(r"(import_module|resolve_name)\(")  # looks modules of its room up by name
TABLE_SUFFIXES = (".csv", ".yaml")


@dataclass(frozen=True)
class Stage:
    """One execution of one notebook.

    Parameters
    ----------
    run : str
        its name
    name : str
        of the notebook, and of the variant where there is one: "03_train.T"
    notebook : str
        the source, without its suffix
    parameters : dict
        name -> value
    fingerprint : str
        of the code, the parameters, the input files and the stages before
    needs : tuple of str
        notebooks that must have run before: those it calls :func:`ensure` for
    """

    run: str
    name: str
    notebook: str
    parameters: dict
    fingerprint: str
    needs: tuple[str, ...] = ()

    @property
    def output(self) -> Path:
        """Return the path of the executed notebook."""
        return paths.Run(self.run).notebooks / f"{self.name}.ipynb"

    @property
    def sidecar(self) -> Path:
        """Return the path of the JSON that says what the executed notebook was made from."""
        return self.output.with_suffix(".json")

    @property
    def progress_file(self) -> Path:
        """Return the path of what its progress bar says while it runs."""
        return self.output.with_suffix(".progress")

    @property
    def is_current(self) -> bool:
        """Tell whether the executed notebook is there and was made from just this."""
        return self.output.exists() and artifacts.is_current(self.sidecar, self.fingerprint)


def stages(run: str) -> list[Stage]:
    """Return the stages of a run: notebooks by name, each first as it is, then its variants.

    Raises
    ------
    ValueError
        on an unknown run, a missing notebook, bad YAML, or a parameter that the notebook does not
        declare
    """
    stages_of_run = []
    for path in _parameter_files(run):
        notebook, _, variant = path.stem.partition(".")
        where = f"params/{run}/{path.name}"
        if path.suffix != ".yaml":
            raise ValueError(f"{where}: rename it to {path.stem}.yaml")
        if variant and (not stages_of_run or stages_of_run[-1].notebook != notebook):
            raise ValueError(f"{where} is a variant of {notebook}.yaml, which does not exist")

        if not variant:
            cells = _code_cells(notebook, where)
            base_values = {}
            earlier = [
                stage.fingerprint
                for stage in stages_of_run
                if not stage.notebook.startswith("00_")  # which leaves nothing
            ]
        values = base_values | _read_parameters(path, where, cells)
        if not variant:
            base_values = values
        parameters = values | {"run": run}

        made_from = (_code_of(cells), parameters, _location_stats(parameters), earlier)
        fingerprint = artifacts.fingerprint_of(made_from)
        needs = tuple(ENSURED.findall("\n".join(cell.source for cell in cells)))
        stages_of_run.append(Stage(run, path.stem, notebook, parameters, fingerprint, needs))
    return stages_of_run


def _parameter_files(run):
    """Return the YAML files of a run by notebook and variant, but those for ``make train``."""
    folder = paths.PARAMS / paths.Run(run).name
    files = sorted(folder.glob("*.y*ml"), key=lambda path: path.stem.partition("."))
    if not files:
        runs = sorted(path.name for path in paths.PARAMS.glob("*") if any(path.glob("*.yaml")))
        raise ValueError(
            f"no run {run!r}: params/{run}/ holds no YAML file. The runs are: "
            f"{', '.join(runs) or 'none'}. For a new one, copy params/demo to params/{run} and "
            "edit it."
        )
    return [path for path in files if ".gpu" not in path.stem]


def _code_cells(notebook, where):
    import nbformat

    path = paths.NOTEBOOKS / f"{notebook}.ipynb"
    if not path.exists():
        names = ", ".join(sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb")))
        raise ValueError(
            f"{where}: there is no notebook {notebook!r}; the notebooks are: {names or 'none'}"
        )
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def _read_parameters(path, where, cells):
    """Read one YAML file, checked against the names and types that the notebook declares."""
    try:
        parameters = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{where} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(parameters, dict):
        kind = type(parameters).__name__
        raise ValueError(f"{where} must hold lines of `name: value`, not a {kind}")
    if "run" in parameters:
        raise ValueError(f"{where} sets 'run', which is the name of its folder: remove that line")

    defaults = {}
    for cell in cells:
        if "parameters" in cell.metadata.get("tags", []):
            # annotated assignments, as the notebook itself runs them
            exec(cell.source, {**vars(typing)}, defaults)
    declared = defaults.get("__annotations__", {})
    try:
        if message := unknown(map(str, parameters), declared):
            raise ValueError(message)
        # the notebook itself knows which lists may be empty
        check(defaults | parameters, may_be_empty=declared)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return parameters


def _location_stats(parameters):
    """Return a fingerprint of the files of each ``location``: changed ones are read again."""
    locations = parameters.get("location") or []
    if isinstance(locations, str):
        locations = [locations]
    return [artifacts.file_stats_fingerprint(paths.resolve(location)) for location in locations]


def _code_of(cells):
    """Return what a notebook runs: its cells, and all helpers modules that they lead to."""
    sources = [cell.source for cell in cells]
    lines = "\n".join(sources).splitlines()
    python = "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))

    modules = {}
    waiting = imported_files(python)
    while waiting:
        path = waiting.pop()
        name = path.relative_to(paths.ROOT).as_posix()
        if name in modules:
            continue
        code = path.read_text(encoding="utf-8")
        tables = [path.with_suffix(suffix) for suffix in TABLE_SUFFIXES]
        texts = [table.read_text(encoding="utf-8") for table in tables if table.exists()]
        modules[name] = [_code_fingerprint(code), *texts]
        waiting |= imported_files(code)
        if REGISTRY.search(code):
            waiting.update(path.parent.glob("*.py"))
    return sources, sorted(modules.items())


def imported_files(code: str) -> set[Path]:
    """Return the files of the helpers modules that Python source imports, and of their rooms.

    How notebooks are run and shown is left out: it does not change what they find.
    """
    files = set()
    for name in _imported_names(code):
        module = paths.ROOT / "helpers"
        for part in name.split(".")[1:]:
            module /= part
            files |= {module.with_suffix(".py"), module / "__init__.py"}
    return {file for file in files if file.exists() and file.parent.name != "runs"}


@cache
def _imported_names(code):
    """Return the helpers modules, and names in them, that Python source imports at any depth."""
    names = set()
    for node in ast.walk(_parse(code)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in names if name.startswith("helpers.")}


@cache
def _code_fingerprint(code):
    """Return a fingerprint of Python source that a changed comment does not change."""
    return artifacts.fingerprint_of(ast.dump(_parse(code)))


@cache
def _parse(code):
    try:
        return ast.parse(code)
    except SyntaxError:  # the kernel will say so, better
        return ast.Module([], [])
