"""Run the notebooks of one run with papermill, each when something it is made from has changed.

``params/<run>/<notebook>.yaml`` holds the flat parameters of one notebook; ``<notebook>.<variant>.yaml`` beside it
holds what differs in one more execution of it. Every execution is a stage: the executed notebook and a small JSON
that says what it was made from are in ``outputs/<run>/notebooks/``. A notebook whose input is missing calls
:func:`ensure`, which goes through the same stages, so nothing is run twice.
"""

import ast
import os
import re
import time
import typing
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from helpers.runs import artifacts, paths
from helpers.runs.parameters import check, unknown

RUNNER = {"pipeline", "__main__", "publish", "report", "presentation"}  # how notebooks are run and shown
ENSURED = re.compile(r'ensure\(\w+, "(\w+)"')
HOLDS, ORPHANS = "AUTHORBOOK_HOLDS", 3  # the variable that names the lock to kernels; seconds until they have ended
FULL = re.compile(r"No space left on device|[Ee]rrno 28\b|os error 28\b|Disk quota exceeded|File too large")
PAPERMILL = {"kernel_name": "python3", "progress_bar": False, "extra_arguments": ["--log-level=CRITICAL"]}


class StageFailed(RuntimeError):
    """A notebook stopped with an error; the message is the few lines that a reader needs."""


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
    done, books, bases, earlier = [], {}, {}, {}
    for path in files:
        notebook, _, variant = path.stem.partition(".")
        where = f"params/{run}/{path.name}"
        if path.suffix != ".yaml":
            raise ValueError(f"{where}: rename it to {path.stem}.yaml")
        if variant and notebook not in bases:
            raise ValueError(f"{where} is a variant of {notebook}.yaml, which is not there")
        if notebook not in bases:
            books[notebook] = _cells(notebook, where)
            earlier[notebook] = [stage.fingerprint for stage in done]  # whatever ran before may be read
        given = _read(path, where, books[notebook])
        settings = {**bases.setdefault(notebook, given), **given, "run": run}
        made_from = _sources(books[notebook]), settings, _inputs(settings), earlier[notebook]
        needs = tuple(ENSURED.findall("\n".join(cell.source for cell in books[notebook])))
        done.append(Stage(run, path.stem, notebook, settings, artifacts.fingerprint_of(made_from), needs))
    return done


def _cells(notebook: str, where: str) -> list:
    """The code cells of a notebook."""
    import nbformat

    path = paths.NOTEBOOKS / f"{notebook}.ipynb"
    if not path.exists():
        there = ", ".join(sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb")))
        raise ValueError(f"{where}: there is no notebook {notebook!r}; there are: {there or 'none'}")
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def _read(path: Path, where: str, cells: list) -> dict[str, Any]:
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
            exec(cell.source, {**vars(typing)}, namespace)  # annotated assignments, as the notebook itself runs them
    try:
        if message := unknown(map(str, given), namespace.get("__annotations__", {})):
            raise ValueError(message)
        check({**namespace, **given}, namespace.get("__annotations__", ()))  # which may be empty, the notebook knows
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return given


def _inputs(settings: dict[str, Any]) -> list[str]:
    """Stamps of the files that ``location`` names, so that changed ones are read again."""
    places = settings.get("location") or []
    return [artifacts.stamp(paths.resolve(place)) for place in ([places] if isinstance(places, str) else places)]


def _sources(cells: list) -> list:
    """The code that a notebook runs: its cells, and every helpers module they import, directly or not."""
    lines = [line for cell in cells for line in cell.source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    modules, todo = {}, imports("\n".join(lines))
    while todo:
        path = todo.pop()
        name = path.relative_to(paths.ROOT).as_posix()
        if name not in modules:
            text = path.read_text(encoding="utf-8")
            modules[name] = _parsed(text)[0]
            todo |= imports(text)
            if "import_module(" in text:  # a registry that looks modules up by name
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
    return artifacts.fingerprint_of(ast.dump(tree)), tuple(name for name in names if name.startswith("helpers."))


def imports(code: str) -> set[Path]:
    """The files of the helpers modules that Python source imports, at any depth in it, and of the rooms they are in.

    How notebooks are run and shown is left out: it does not change what they find.
    """
    parts = [name.split(".") for name in _parsed(code)[1]]
    modules = [paths.ROOT.joinpath(*part[:depth]) for part in parts for depth in range(2, len(part) + 1)]
    files = {file for module in modules for file in (module.with_suffix(".py"), module / "__init__.py")}
    return {file for file in files if file.exists() and not (file.parent.name == "runs" and file.stem in RUNNER)}


def execute(stage: Stage, force: bool = False) -> float | None:
    """Run one stage and return its seconds, or None where it is current and ``force`` is not set.

    The executed notebook takes its name when it is whole. Raises StageFailed where a cell fails or the kernel dies;
    the notebook up to there is then ``<stage>.failed.ipynb``.
    """
    import papermill

    if stage.current and not force:
        return None
    running, failed = (stage.output.with_name(f"{stage.name}.{state}.ipynb") for state in ("running", "failed"))
    stage.output.parent.mkdir(parents=True, exist_ok=True)
    stage.sidecar.unlink(missing_ok=True)  # a stage that is killed half-way is not current
    source, start = paths.NOTEBOOKS / f"{stage.notebook}.ipynb", time.perf_counter()
    try:
        papermill.execute_notebook(source, running, stage.parameters, cwd=paths.NOTEBOOKS, **PAPERMILL)
    except Exception as error:
        if running.exists():
            os.replace(running, failed)
        where = f"\n  notebook up to there: {paths.shown(failed)}"
        raise StageFailed(f"{stage.name} failed {failure(error)}{where}") from None
    except BaseException:  # stopped by the user
        running.unlink(missing_ok=True)
        raise
    seconds = round(time.perf_counter() - start, 1)
    os.replace(running, stage.output)
    failed.unlink(missing_ok=True)
    artifacts.write_json(stage.sidecar, {**vars(stage), "seconds": seconds})
    return seconds


def disk_full(error: object) -> str:
    """What a full disk means for a run, in one line."""
    return f"the disk is full ({error}): free some space and run it again; what is done is kept, whole"


def failure(error: Exception) -> str:
    """Where and why an execution stopped, in a few lines: the error, and the end of its traceback."""
    if not hasattr(error, "traceback"):  # not an error in a cell: the kernel died, or could not start
        hint = " (often: out of memory)" if type(error).__name__ == "DeadKernelError" else ""
        reason = disk_full(error) if FULL.search(str(error)) else f"{type(error).__name__}: {error}"
        return f"outside of its cells{hint}: {reason}"
    if FULL.search(error.evalue):
        return f"in cell [{error.exec_count}]: {disk_full(error.evalue)}"
    text = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback)).rstrip()
    last = [line for line in text.splitlines() if line.strip() and not line.startswith(error.ename)][-6:]
    return "\n  ".join([f"in cell [{error.exec_count}]: {error.ename}: {error.evalue}", *last])


@contextmanager
def alone(run: str, wait: bool = False) -> Iterator[None]:
    """Keep other processes from making the same run; the system lets go of it when this process ends, in any way.

    What this process starts is let in. wait: until another process is done, which is said; otherwise it is an error.
    """
    folder = paths.Run(run).folder
    lock, running = FileLock(folder / ".lock"), folder / ".running"
    if os.environ.get(HOLDS) == lock.lock_file:  # a stage that this run has started, or one of its own threads
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        if not wait:
            raise ValueError(f"another process is making the run {run!r}: wait until it has ended, stop it, or give "
                             f"this run another name (params/<name>/)") from None  # fmt: skip
        print(f"another process is making the run {run!r}: waiting until it has ended", flush=True)
        lock.acquire()
    try:
        if running.exists():  # it was killed: its kernels look for it every second, theirs for them
            time.sleep(ORPHANS)
        running.touch()
        os.environ[HOLDS] = lock.lock_file
        yield
    finally:
        os.environ.pop(HOLDS, None)
        running.unlink(missing_ok=True)
        lock.release()


def ensure(run: str, notebook: str, path: str | Path, variant: str | None = None) -> None:
    """Have the file or folder ``path``: where it is missing, run ``notebook`` as ``params/<run>/`` says, and say so.

    With ``variant`` only that one is run, else the notebook and all its variants, each unless it is current. Works in
    a notebook (another kernel is started) and from any folder. Raises ValueError on an unknown run, notebook or
    variant, on a path outside of the run's folder (a name such as ``../x`` in it), and where the notebook runs but does
    not make it; StageFailed where it stops.
    """
    path, folder = Path(path), paths.Run(run).folder
    if not Path(os.path.abspath(path)).is_relative_to(os.path.abspath(folder)):
        raise ValueError(f"{paths.shown(path)} is outside of {paths.shown(folder)}: use a name without '..' and '/'")
    if path.exists():
        return
    every, name = stages(run), f"{notebook}.{variant}" if variant else notebook
    chosen = [stage for stage in every if name in ((stage.name,) if variant else (stage.notebook,))]
    if not chosen:
        there = ", ".join(stage.name for stage in every)
        raise ValueError(f"{paths.shown(path)} is missing, and params/{run}/ has no {name}.yaml; it has: {there}")
    with alone(run, wait=True):
        if not path.exists():  # still: another process may have made it meanwhile
            print(f"{notebook} has not been run for {run!r}: running it now", flush=True)
            reused = [stage for stage in chosen if execute(stage) is None]
        if not path.exists():  # what a current stage made was deleted since
            for stage in reused:
                execute(stage, force=True)
    if not path.exists():
        raise ValueError(f"{notebook} has been run for {run!r} but did not make {paths.shown(path)}")


def run_all(run: str, jobs: int = 1) -> Path:
    """Run every stage that is not current, one printed line each; return the path of the report.

    jobs: stages that run at once, each as soon as what it needs has run. Raises what :func:`stages` and
    :func:`execute` raise.
    """
    from helpers.runs import presentation, report

    todo = stages(run)
    with alone(run):
        _execute_all(todo, jobs)
    files = paths.Run(run)
    minutes = sum(artifacts.read_json(stage.sidecar)["seconds"] for stage in todo) / 60
    intro = f"<p>Run <b>{escape(run)}</b>: {len(todo)} notebooks, {minutes:.1f} minutes.</p>"
    if any(stage.parameters.get("source") == "demo" for stage in todo):
        intro += ("<p>Made from the generated demo corpus. It is a measuring instrument, not a result: "
                  "it shows that the code finds what was put in.</p>")
    return report.build([stage.output for stage in todo], files.folder / "report.html", f"authorbook: {run}",
                        intro + presentation.html(files))


def _execute_all(todo: list[Stage], jobs: int) -> None:
    """Execute stages, several at once where none needs another; the first failure ends it.

    What most others need goes first, so that the last stages do not wait for each other while a core is idle.
    """
    needed = Counter(name for stage in todo for name in stage.needs)
    waiting, running, done = sorted(todo, key=lambda stage: -needed[stage.notebook]), {}, 0
    with ThreadPoolExecutor(jobs) as pool:
        while waiting or running:
            unfinished = {stage.notebook for stage in (*waiting, *running.values())}
            ready = [stage for stage in waiting if not unfinished & set(stage.needs)]
            for stage in ready[: jobs - len(running)]:
                waiting.remove(stage)
                running[pool.submit(execute, stage)] = stage
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                done += 1
                _tell(future, running.pop(future), f"[{done}/{len(todo)}]", waiting)


def _tell(future: Future, stage: Stage, number: str, waiting: list[Stage]) -> None:
    try:
        seconds = future.result()
    except BaseException:
        waiting.clear()  # what runs beside it ends first
        print(f"{number} {stage.name} ... failed", flush=True)
        raise
    print(f"{number} {stage.name} ... {'reused' if seconds is None else f'{seconds:.0f} s'}", flush=True)
