"""List the stages of a run, each with a fingerprint of its inputs.

A stage is one execution of one notebook. ``params/<run>/<notebook>.yaml`` holds the parameters of
the notebook, by name; ``<notebook>.<variant>.yaml`` holds those that differ in one more execution
of it. ``<notebook>.gpu<...>.yaml`` is no stage: only ``make train`` runs it. The executed notebook
and a small JSON with its inputs are written to ``outputs/<run>/notebooks/``.
"""

import ast
import re
import typing
from dataclasses import dataclass
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

from ..core import artifacts, paths
from ..core.messages import readable_file
from ..core.parameters import check, read_parameter_file, unknown
from .inventory import (
    files_to_remove,
    find_lost,
    take_inventory,
    with_present_times,
)

ENSURED = re.compile(r'ensure\(\w+, "(\w+)"')  # ensure(run, "01_collect" ...
REGISTRY = re.compile(r"(import_module|resolve_name)\(")  # code that imports modules by name
TABLE_SUFFIXES = (".csv", ".yaml")  # data of a module, in a file of the same stem beside it


@dataclass(frozen=True)
class Stage:
    """One execution of one notebook.

    Parameters
    ----------
    run : str
        name of the run
    name : str
        name of the notebook, followed by a dot and the variant if it is one: "03_train.T"
    notebook : str
        name of the notebook without ``.ipynb``
    parameters : dict
        name of a parameter -> value
    fingerprint : str
        hash of the code, the parameters, the input files and the earlier stages
    needs : tuple of str
        notebooks that must have run before: those that it calls
        :func:`helpers.runs.pipeline.ensure` for
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
        """Return the path of the JSON that holds the inputs of the executed notebook."""
        return self.output.with_suffix(".json")

    @property
    def progress_file(self) -> Path:
        """Return the path of the file that holds the text of its progress bar while it runs."""
        return self.output.with_suffix(".progress")

    @property
    def notes_file(self) -> Path:
        """Return the path of the file in which its kernel notes what it makes."""
        return self.output.with_suffix(".made")

    @property
    def is_current(self) -> bool:
        """Tell whether it was made from the same inputs, and all that it made is still there."""
        if not self.output.exists() or not artifacts.is_current(self.sidecar, self.fingerprint):
            return False
        return not self.lost()

    def lost(self) -> list[str]:
        """Return what it made that is missing or has changed: files, and keys of rows of results.

        The names are those of its inventory, see :mod:`helpers.runs.inventory`.
        """
        sidecars = self.sidecar.parent.glob("*.json")
        others = (_inventory(sidecar) for sidecar in sidecars if sidecar != self.sidecar)
        return find_lost(paths.Run(self.run), _inventory(self.sidecar), others)

    def prepare(self) -> list[str]:
        """Remove what keeps lost files from being made again; return :meth:`lost`."""
        files = paths.Run(self.run)
        lost = self.lost()
        for name in files_to_remove(files, _inventory(self.sidecar), lost):
            (files.folder / name).unlink(missing_ok=True)
        return lost

    def write_sidecar(self, seconds: float) -> None:
        """Write the sidecar, with the inventory of what is noted, and remove the notes.

        Parameters
        ----------
        seconds : float
            how long the execution took
        """
        inventory = take_inventory(paths.Run(self.run), self.notes_file, self.output)
        content = {**vars(self), "seconds": seconds, "inventory": inventory}
        artifacts.write_json(self.sidecar, content)
        self.notes_file.unlink(missing_ok=True)

    def renew_sidecar(self) -> None:
        """Store the present times of its files, which differ where the run's folder was copied."""
        content = artifacts.read_json(self.sidecar)
        present = with_present_times(paths.Run(self.run), content["inventory"])
        if present != content["inventory"]:
            artifacts.write_json(self.sidecar, content | {"inventory": present})


def _inventory(sidecar):
    """Return the inventory in a sidecar, {} where this is missing or damaged."""
    try:
        return artifacts.read_json(sidecar)["inventory"]
    except (ValueError, KeyError, TypeError):
        return {}


def stages(run: str) -> list[Stage]:
    """Return the stages of a run, by notebook; each notebook is followed by its variants.

    A variant has the parameters of its notebook, except those that its own file sets.

    Raises
    ------
    ValueError
        on an unknown run, a missing notebook, a variant without the file of its notebook, invalid
        YAML, or a parameter that the notebook does not declare or that has a wrong type
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
                if not stage.notebook.startswith("00_")  # it writes no file that others read
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
    """Return the YAML files of a run, sorted by notebook and variant, without ``.gpu`` files."""
    paths.check_checkout()
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


# Return the code cells of a notebook; ``where`` names the parameter file in the error.
def _code_cells(notebook, where):
    import nbformat

    path = paths.NOTEBOOKS / f"{notebook}.ipynb"
    if not path.exists():
        names = ", ".join(sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb")))
        raise ValueError(
            f"{where}: there is no notebook {notebook!r}; the notebooks are: {names or 'none'}"
        )
    with readable_file(path):
        cells = nbformat.read(path, as_version=4).cells
        return [cell for cell in cells if cell.cell_type == "code"]


def _read_parameters(path, where, cells):
    """Read one YAML file, and check it against the names and types that the notebook declares."""
    parameters = read_parameter_file(path, where) or {}
    if not isinstance(parameters, dict):
        kind = type(parameters).__name__
        raise ValueError(f"{where} must hold lines of `name: value`, not a {kind}")
    if "run" in parameters:
        raise ValueError(f"{where} sets 'run', which is the name of its folder: remove that line")

    defaults = {}
    for cell in cells:
        if "parameters" in cell.metadata.get("tags", []):
            # the cell holds annotated assignments only, such as `seed: int = 0`
            exec(cell.source, {**vars(typing)}, defaults)
    declared = defaults.get("__annotations__", {})
    try:
        if message := unknown(map(str, parameters), declared):
            raise ValueError(message)
        # any list may be empty here; the notebook itself checks which of them may
        check(defaults | parameters, may_be_empty=declared)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return parameters


def _location_stats(parameters):
    """Return a fingerprint for each path of the parameter ``location``, [] without this parameter.

    It changes with the files, so that changed files are read again.
    """
    locations = parameters.get("location") or []
    if isinstance(locations, str):
        locations = [locations]
    return [artifacts.file_stats_fingerprint(paths.resolve(location)) for location in locations]


def _code_of(cells):
    """Return all code that a notebook runs, to be hashed: its cells and its helpers modules.

    The modules are those that the cells import, directly or through other modules, with their data
    tables.
    """
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
        waiting |= imported_files(code, ".".join(path.parent.relative_to(paths.ROOT).parts))
        if REGISTRY.search(code):
            waiting.update(path.parent.glob("*.py"))
    return sources, sorted(modules.items())


def imported_files(code: str, package: str = "") -> set[Path]:
    """Return the files of the helpers modules that Python source imports, and of their packages.

    The package ``helpers.runs`` is left out: how notebooks are run and shown does not change what
    they find.

    Parameters
    ----------
    code : str
        Python source, of a notebook or a module
    package : str
        the package of a module, such as "helpers.core", from which its relative imports start
    """
    files = set()
    for name in _imported_names(code, package):
        module = paths.ROOT / "helpers"
        for part in name.split(".")[1:]:
            module /= part
            files |= {module.with_suffix(".py"), module / "__init__.py"}
    return {file for file in files if file.exists() and file.parent.name != "runs"}


@cache
def _imported_names(code, package):
    """Return the helpers modules that Python source imports, and names in them.

    Imports inside functions count, too.
    """
    names = set()
    for node in ast.walk(_parse(code)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module
            if node.level:
                module = resolve_name("." * node.level + (node.module or ""), package)
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return {name for name in names if name.startswith("helpers.")}


@cache
def _code_fingerprint(code):
    """Return a hash of Python source that does not change with comments and layout."""
    return artifacts.fingerprint_of(ast.dump(_parse(code)))


# Parse Python source; of source with a syntax error return an empty module.
@cache
def _parse(code):
    try:
        return ast.parse(code)
    except SyntaxError:  # the kernel will report it with a better message
        return ast.Module([], [])
