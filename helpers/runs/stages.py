"""What a run is: its stages, read from ``params/<run>/``, and what each stage is made from.

``params/<run>/<notebook>.yaml`` holds the flat parameters of one notebook; ``<notebook>.<variant>.yaml`` beside it
holds what differs in one more execution of it. Every execution is a stage.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from helpers.runs import artifacts
from helpers.runs import parameters
from helpers.runs import paths

SCALARS = (bool, int, float, str, type(None))
RUNNER = {"reproduce", "stages", "publish", "report", "results"}  # how notebooks are run and shown, not what they find


@dataclass(frozen=True)
class Stage:
    """One execution of one notebook: ``notebook`` names the source, ``name`` adds the variant."""

    run: str
    name: str
    notebook: str
    parameters: dict
    fingerprint: str

    @property
    def output(self) -> Path:
        return paths.Run(self.run).notebooks / f"{self.name}.ipynb"

    @property
    def sidecar(self) -> Path:
        return self.output.with_suffix(".json")

    @property
    def current(self) -> bool:
        """True where the executed notebook is there and was made from just this."""
        return self.output.exists() and artifacts.is_current(self.sidecar, self.fingerprint)


def stages(run: str) -> list[Stage]:
    """The stages of a run in order: notebooks by name, each first as it is, then its variants by name.

    Raises ValueError on an unknown run, a missing notebook, bad YAML, or a parameter the notebook does not declare.
    """
    folder = paths.PARAMS / paths.Run(run).name
    files = sorted(folder.glob("*.y*ml"), key=lambda path: path.stem.partition("."))
    if not files:
        runs = sorted(path.name for path in paths.PARAMS.glob("*") if any(path.glob("*.yaml")))
        raise ValueError(f"no run {run!r}: params/{run}/ holds no YAML file. The runs there are: "
                         f"{', '.join(runs) or 'none'}. For a new one, copy params/demo to params/{run} and edit it.")
    done, bases, earlier, declared = [], {}, {}, {}
    for path in files:
        notebook, _, variant = path.stem.partition(".")
        where = f"params/{run}/{path.name}"
        if path.suffix != ".yaml":
            raise ValueError(f"{where}: rename it to {path.stem}.yaml")
        if variant and notebook not in bases:
            raise ValueError(f"{where} is a variant of {notebook}.yaml, which is not there")
        if notebook not in bases:
            declared[notebook] = _declared(notebook, where)
            earlier[notebook] = [stage.fingerprint for stage in done]  # whatever ran before may be read
        given = _read(path, where, declared[notebook])
        bases.setdefault(notebook, given)
        settings = {**bases[notebook], **given, "run": run}
        fingerprint = artifacts.fingerprint_of(_sources(notebook), settings, _inputs(settings), earlier[notebook])
        done.append(Stage(run, path.stem, notebook, settings, fingerprint))
    return done


def _inputs(settings: dict) -> list[str]:
    """Stamps of the files that ``location`` names, so that changed ones are read again."""
    given = settings.get("location") or []
    return [artifacts.stamp(paths.resolve(place)) for place in ([given] if isinstance(given, str) else given)]


def _source(notebook: str) -> Path:
    return paths.NOTEBOOKS / f"{notebook}.ipynb"


def _declared(notebook: str, where: str) -> dict[str, dict]:
    """What papermill reads in the parameters cell: per name its type and its default, both as text."""
    import papermill

    if not _source(notebook).exists():
        there = ", ".join(sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb")))
        raise ValueError(f"{where}: there is no notebook {notebook!r}; there are: {there or 'none'}")
    return papermill.inspect_notebook(str(_source(notebook)))


def _read(path: Path, where: str, declared: dict) -> dict:
    """The values of one YAML file, checked against what the notebook declares."""
    import yaml

    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{where} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(given, dict):
        raise ValueError(f"{where} must hold lines of `name: value`, not a {type(given).__name__}")
    if "run" in given:
        raise ValueError(f"{where} sets 'run', which is the name of its folder: remove that line")
    if message := parameters.unknown([str(name) for name in (*given, "run")], declared):
        raise ValueError(f"{where}: {message}")
    for name, value in given.items():
        kind, default = declared[name]["inferred_type_name"], declared[name]["default"]
        if isinstance(value, dict) and not (default.startswith("{") or re.search(r"\b[dD]ict\b", kind)):
            raise ValueError(f"{where}: {name!r} holds nested values, but the notebook takes one value there")
        if not all(isinstance(v, SCALARS) for v in _leaves(value)):
            raise ValueError(f"{where}: {name!r} is read as a {type(value).__name__}; put text in quotes")
        if isinstance(value, str) and kind in ("int", "float"):  # YAML 1.1 reads 1e-4 as text
            raise ValueError(f"{where}: {name!r} must be {kind}, but {value!r} is read as text"
                             + (" (write 1.0e-4, not 1e-4)" if re.match(r"[-+\d.]+e", value) else ""))
    return given


def _leaves(value) -> list:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return [value] if inner is None else [leaf for element in inner for leaf in _leaves(element)]


def _sources(notebook: str) -> list:
    """The code that a notebook runs: its cells, and every helpers module they import, directly or not."""
    import nbformat

    cells = [cell.source for cell in nbformat.read(_source(notebook), as_version=4).cells if cell.cell_type == "code"]
    code = "\n".join(line for cell in cells for line in cell.splitlines() if not line.lstrip().startswith(("%", "!")))
    modules, todo = {}, imports(code)
    while todo:
        path = todo.pop()
        if path not in modules:
            text = path.read_text(encoding="utf-8")
            modules[path] = artifacts.fingerprint_of(ast.dump(ast.parse(text)))  # a changed comment changes nothing
            todo |= imports(text)
    return [cells, sorted((path.relative_to(paths.ROOT).as_posix(), made) for path, made in modules.items())]


def imports(code: str) -> set[Path]:
    """The files of the helpers modules that Python source imports, at any depth in it.

    The runner's own modules are left out. A package stands for all its modules: it may look them up by name.
    """
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except SyntaxError:  # the kernel will say so, better
        return set()
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    found = set()
    for name in names:
        path = paths.ROOT.joinpath(*name.split("."))
        if name.startswith("helpers."):
            found |= set(path.glob("*.py")) if path.is_dir() else {path.with_suffix(".py")}
    return {path for path in found if path.exists() and path.stem not in RUNNER}
