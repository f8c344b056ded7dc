"""The stages of a run, which ``params/<run>/`` lists, and a fingerprint of the inputs of each.

``params/<run>/<notebook>.yaml`` holds the flat parameters of one notebook; ``<notebook>.<variant>.yaml`` holds what
differs in one more execution of it. Only ``make train`` runs ``<notebook>.gpu<...>.yaml``. Every execution is a stage:
the executed notebook and a small JSON with its inputs are in ``outputs/<run>/notebooks/``.
"""

import ast
import re
import typing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from helpers.core import artifacts, paths
from helpers.core.parameters import check, unknown

ENSURED = re.compile(r'ensure\(\w+, "(\w+)"')


@dataclass(frozen=True)
class Stage:
    """One execution of one notebook: ``notebook`` names the source, ``name`` adds the variant.

    needs : notebooks that must have run before: those it calls :func:`ensure` for.
    """

    run: str
    name: str
    notebook: str
    parameters: dict
    fingerprint: str
    needs: tuple[str, ...] = ()

    output = property(lambda self: paths.Run(self.run).notebooks / f"{self.name}.ipynb")
    sidecar = property(lambda self: self.output.with_suffix(".json"))
    progress = property(
        lambda self: self.output.with_suffix(".progress")
    )  # while it runs: what its bar says

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
        raise ValueError(
            f"no run {run!r}: params/{run}/ holds no YAML file. The runs are: "
            f"{', '.join(runs) or 'none'}. For a new one, copy params/demo to params/{run} and edit it."
        )
    done, books, bases, earlier = [], {}, {}, {}
    for path in (path for path in files if ".gpu" not in path.stem):
        notebook, _, variant = path.stem.partition(".")
        where = f"params/{run}/{path.name}"
        if path.suffix != ".yaml":
            raise ValueError(f"{where}: rename it to {path.stem}.yaml")
        if variant and notebook not in bases:
            raise ValueError(f"{where} is a variant of {notebook}.yaml, which does not exist")
        if notebook not in bases:
            books[notebook] = _cells(notebook, where)
            earlier[notebook] = [
                one.fingerprint for one in done if one.notebook[:3] != "00_"
            ]  # 00 leaves nothing
        given = _read(path, where, books[notebook])
        settings = {**bases.setdefault(notebook, given), **given, "run": run}
        made_from = _sources(books[notebook]), settings, _inputs(settings), earlier[notebook]
        needs = tuple(ENSURED.findall("\n".join(cell.source for cell in books[notebook])))
        done.append(
            Stage(run, path.stem, notebook, settings, artifacts.fingerprint_of(made_from), needs)
        )
    return done


def _cells(notebook, where):
    """The code cells of a notebook."""
    import nbformat

    path = paths.NOTEBOOKS / f"{notebook}.ipynb"
    if not path.exists():
        there = ", ".join(sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb")))
        raise ValueError(
            f"{where}: there is no notebook {notebook!r}; the notebooks are: {there or 'none'}"
        )
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def _read(path, where, cells):
    """The values of one YAML file, checked against the names and types that the notebook declares."""
    import yaml

    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{where} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(given, dict):
        raise ValueError(f"{where} must hold lines of `name: value`, not a {type(given).__name__}")
    if "run" in given:
        raise ValueError(f"{where} sets 'run', which is the name of its folder: remove that line")
    namespace = {}
    for cell in cells:
        if "parameters" in cell.metadata.get("tags", []):
            exec(
                cell.source, {**vars(typing)}, namespace
            )  # annotated assignments, as the notebook itself runs them
    try:
        if message := unknown(map(str, given), namespace.get("__annotations__", {})):
            raise ValueError(message)
        check(
            {**namespace, **given}, namespace.get("__annotations__", ())
        )  # which may be empty, the notebook knows
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return given


def _inputs(settings):
    """Stamps of the files that ``location`` names, so that changed ones are read again."""
    places = settings.get("location") or []
    return [
        artifacts.file_stats_fingerprint(paths.resolve(place))
        for place in ([places] if isinstance(places, str) else places)
    ]


def _sources(cells):
    """The code that a notebook runs: its cells, and every helpers module they import, directly or not."""
    lines = [
        line
        for cell in cells
        for line in cell.source.splitlines()
        if not line.lstrip().startswith(("%", "!"))
    ]
    modules, todo = {}, imported_files("\n".join(lines))
    while todo:
        path = todo.pop()
        name = path.relative_to(paths.ROOT).as_posix()
        if name not in modules:
            text = path.read_text(encoding="utf-8")
            tables = [
                path.with_suffix(suffix).read_text("utf-8")
                for suffix in (".csv", ".yaml")  # labels.py and demo_lexicon.py have one
                if path.with_suffix(suffix).exists()
            ]
            modules[name] = [_parsed(text)[0], *tables]
            todo |= imported_files(text)
            if (
                "import_module(" in text or "resolve_name(" in text
            ):  # a registry that looks modules up by name
                todo |= set(path.parent.glob("*.py"))
    return [[cell.source for cell in cells], sorted(modules.items())]


@cache
def _parsed(code: str) -> tuple[str, tuple[str, ...]]:
    """A fingerprint of Python source that a changed comment does not change, and the modules it names at any depth."""
    try:
        tree = ast.parse(code)
    except SyntaxError:  # the kernel will say so, better
        return "", ()
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return artifacts.fingerprint_of(ast.dump(tree)), tuple(
        name for name in names if name.startswith("helpers.")
    )


def imported_files(code: str) -> set[Path]:
    """The files of the helpers modules that Python source imports, at any depth in it, and of the rooms they are in.

    How notebooks are run and shown is left out: it does not change what they find.
    """
    parts = [name.split(".") for name in _parsed(code)[1]]
    modules = [
        paths.ROOT.joinpath(*part[:depth]) for part in parts for depth in range(2, len(part) + 1)
    ]
    files = {
        file for module in modules for file in (module.with_suffix(".py"), module / "__init__.py")
    }
    return {file for file in files if file.exists() and file.parent.name != "runs"}
