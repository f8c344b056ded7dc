"""Run the notebooks of a run with papermill, each only if one of its inputs has changed.

A stage is one execution of one notebook. ``params/<run>/<notebook>.yaml`` holds the parameters of
the notebook, by name; ``<notebook>.<variant>.yaml`` holds those that differ in one more execution
of it. ``<notebook>.gpu<...>.yaml`` is no stage: only ``make train`` runs it. The executed notebook
and its record, a small JSON, are written to ``outputs/<run>/notebooks/``.

Each stage runs in a process of its own, ``python -m helpers.runs.stages <run> <stage>``, that holds
the stage's lock. Whoever comes second waits, and then finds it current. So several commands share
the work of a run, no stage is run twice at once, and a stage outlives the command that started it.
"""

import os
import re
import shlex
import subprocess
import sys
import time
import typing
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from ..core import artifacts, paths, progress, results
from ..core.messages import DISK_FULL, disk_full, printable, readable_file, run_command
from ..core.parameters import check, unknown
from ..sources import as_list

# "from helpers.encoders import ..." in a notebook, "from ..encoders.base import ..." in a module
USED_ROOM = re.compile(r"^\s*from (?:helpers\.|\.\.)(?: import )?(\w+)", re.M)
ENSURED = re.compile(r'ensure\(\w+, "(\w+)"')  # ensure(run, "01_collect" ...
LINE_SECONDS = 60  # time between two lines about the stages that run
LAUNCHER = "AUTHORBOOK_LAUNCHER"  # words before a stage's command: "srun --gres=gpu:1"
PAPERMILL = {"kernel_name": "python3", "progress_bar": False}
PAPERMILL["extra_arguments"] = ["--log-level=CRITICAL"]


class StageFailed(RuntimeError):
    """A notebook has stopped with an error; the message says where and why in a few lines."""


@dataclass(frozen=True)
class Stage:
    """One execution of one notebook.

    Parameters
    ----------
    run : str
        name of the run
    name : str
        name of the notebook, followed by a dot and the variant if it is one: "03_train.T"
    parameters : dict
        name of a parameter -> value
    fingerprint : str
        hash of the code, the parameters, the input files and the earlier stages
    needs : tuple of str
        notebooks that must have run before: those that it calls :func:`ensure` for
    """

    run: str
    name: str
    parameters: dict
    fingerprint: str
    needs: tuple[str, ...] = ()

    @property
    def notebook(self) -> str:
        """Return the name of the notebook without ``.ipynb``."""
        return self.name.partition(".")[0]

    @property
    def output(self) -> Path:
        """Return the path of the executed notebook."""
        return paths.Run(self.run).notebooks / f"{self.name}.ipynb"

    @property
    def record(self) -> Path:
        """Return the path of the JSON with its fingerprint, its seconds, and what it made."""
        return self.output.with_suffix(".json")

    @property
    def progress_file(self) -> Path:
        """Return the path of the file that holds the text of its progress bar while it runs."""
        return self.output.with_suffix(".progress")

    @property
    def is_current(self) -> bool:
        """Tell whether it was made from the same inputs, and all that it made is still there."""
        if not artifacts.is_current(self.record, self.fingerprint):
            return False
        if not artifacts.verify_checksum(self.output):
            return False
        folder = paths.Run(self.run).folder
        known_sizes = set()  # a later stage may have written a file again
        for record in self.record.parent.glob("*.json"):
            known_sizes.update(_made(record).items())
        files = {name: folder / name for name in _made(self.record)}
        return all(
            path.is_file() and (name, path.stat().st_size) in known_sizes
            for name, path in files.items()
        )


def _made(record):
    """Return the sizes of files in a record; {} where it is missing or damaged."""
    with suppress(ValueError):
        return artifacts.read_json(record)["made"]
    return {}


def read_stages(run: str) -> list[Stage]:
    """Return the stages of a run, by notebook; each notebook is followed by its variants.

    A variant has the parameters of its notebook, except those that its own file sets.

    Raises
    ------
    ValueError
        on an unknown run, a missing notebook, a variant without the file of its notebook, invalid
        YAML, or a parameter that the notebook does not declare or that has a wrong type
    """
    stages_of_run = []
    values_of_notebook = {}
    for path in _parameter_files(run):
        notebook, _, variant = path.stem.partition(".")
        where = f"params/{run}/{path.name}"
        if variant and notebook not in values_of_notebook:
            raise ValueError(f"{where} is a variant of {notebook}.yaml, which does not exist")

        cells = _code_cells(notebook, where)
        values = values_of_notebook.get(notebook, {}) | _read_parameters(path, where, cells)
        values_of_notebook.setdefault(notebook, values)
        parameters = values | {"run": run}
        earlier = [
            stage.fingerprint
            for stage in stages_of_run
            # notebook 00 writes no file that others read
            if stage.notebook != notebook and not stage.notebook.startswith("00_")
        ]
        code = "\n".join(cell.source for cell in cells)
        made_from = (code, _used_rooms(code), parameters, _location_stats(parameters), earlier)
        fingerprint = artifacts.fingerprint_of(made_from)
        needs = tuple(ENSURED.findall(code))
        stages_of_run.append(Stage(run, path.stem, parameters, fingerprint, needs))
    return stages_of_run


def _used_rooms(code):
    """Return a hash of each room that code imports, directly or through others, by its name.

    The room ``runs`` is left out: how notebooks are run and shown does not change what they find.
    """
    names = USED_ROOM.findall(code)
    used_rooms = {}
    while names:
        name = names.pop()
        if name != "runs" and name not in used_rooms:
            files = sorted((paths.PACKAGE / name).glob("*.*"))
            used_rooms[name] = [artifacts.file_fingerprint(path) for path in files]
            for path in files:
                if path.suffix == ".py":
                    names += USED_ROOM.findall(path.read_text("utf-8"))
    return used_rooms


def _parameter_files(run):
    """Return the YAML files of a run's stages, sorted by notebook and variant."""
    paths.check_checkout()
    folder = paths.PARAMS / paths.Run(run).name
    files = sorted(folder.glob("*.yaml"), key=lambda path: path.stem.partition("."))
    if not files:
        runs = sorted(path.name for path in paths.PARAMS.glob("*") if any(path.glob("*.yaml")))
        raise ValueError(
            f"no run {run!r}: params/{run}/ holds no YAML file. The runs are: {', '.join(runs)}. "
            f"For a new one, copy params/demo to params/{run} and edit it."
        )
    return [path for path in files if ".gpu" not in path.stem]


# Return the code cells of a notebook; ``where`` names the parameter file in the error.
def _code_cells(notebook, where):
    import nbformat

    path = paths.NOTEBOOKS / f"{notebook}.ipynb"
    if not path.exists():
        raise ValueError(f"{where}: there is no notebook {notebook!r}, see notebooks/")
    with readable_file(path):
        cells = nbformat.read(path, as_version=4).cells
        return [cell for cell in cells if cell.cell_type == "code"]


def _read_parameters(path, where, cells):
    """Read one YAML file, and check it against the names and types that the notebook declares."""
    try:
        parameters = yaml.safe_load(path.read_bytes()) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: 2024-13-01
        problem = " ".join(str(error).split())
        raise ValueError(f"{where} is not valid YAML: {problem}") from None
    if not isinstance(parameters, dict):
        kind = type(parameters).__name__
        raise ValueError(f"{where} must hold lines of `name: value`, not a {kind}")

    defaults = {}
    for cell in cells:
        if "parameters" in cell.metadata.get("tags", []):
            # the cell holds annotated assignments only, such as `seed: int = 0`
            exec(cell.source, {**vars(typing)}, defaults)
    declared = defaults.get("__annotations__", {})
    try:
        # the run is the name of the folder
        if message := unknown(map(str, parameters), declared.keys() - {"run"}):
            raise ValueError(message)
        # any list may be empty here; the notebook itself checks which of them may
        check(defaults | parameters, may_be_empty=declared)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return parameters


def _location_stats(parameters):
    """Return a fingerprint of the files at each path of the parameter ``location``."""
    places = as_list(parameters.get("location") or [])
    return [artifacts.file_stats_fingerprint(paths.resolve(place)) for place in places]


def execute(stage: Stage) -> None:
    """Run a stage in this process unless it is current; whoever runs it already is waited for.

    The executed notebook gets its final name only when it is complete. If it fails, the notebook up
    to the failure is kept as ``<stage>.failed.ipynb``.

    Raises
    ------
    StageFailed
        where a cell fails or the kernel dies
    """
    with artifacts.lock(stage.output.with_name(f".{stage.name}.lock"), stage.name):
        if stage.is_current:
            return
        _remove_broken_sets(stage)
        stage.record.unlink(missing_ok=True)  # so that a killed stage does not count as current
        notes = stage.output.with_suffix(".made")
        notes.write_text("")
        stage.progress_file.touch(0o600)
        os.environ[artifacts.NOTES] = str(notes.absolute())
        # a notebook that runs another one shows the bar of that one as its own
        os.environ.setdefault(progress.PLACE, str(stage.progress_file.absolute()))
        os.environ["TQDM_DISABLE"] = "1"  # bars of libraries would fill the saved page

        start = time.perf_counter()
        try:
            _execute_notebook(stage)
        finally:  # also where the user stopped it
            stage.progress_file.unlink(missing_ok=True)
        seconds = round(time.perf_counter() - start, 1)
        made = artifacts.noted(notes, paths.Run(stage.run).folder)
        content = {"fingerprint": stage.fingerprint, "seconds": seconds, "made": made}
        artifacts.write_json(stage.record, content)
        results.export(paths.Run(stage.run))
        notes.unlink()


def _execute_notebook(stage):
    """Run the cells of a stage's notebook in a kernel."""
    import papermill

    source = paths.NOTEBOOKS / f"{stage.notebook}.ipynb"
    running = stage.output.with_name(f"{stage.name}.running.ipynb")
    failed = stage.output.with_name(f"{stage.name}.failed.ipynb")
    running.unlink(missing_ok=True)
    running.touch(0o600)  # what is written over it keeps its mode
    try:
        papermill.execute_notebook(
            source, running, stage.parameters, cwd=paths.NOTEBOOKS, **PAPERMILL
        )
        with artifacts.atomic_write(stage.output) as partial:
            os.replace(running, partial)
        artifacts.write_checksum(stage.output)
        failed.unlink(missing_ok=True)
    except Exception as error:
        if running.stat().st_size:
            os.replace(running, failed)
        where = f"\n  the notebook up to that cell: {paths.display_path(failed)}"
        raise StageFailed(f"{stage.name} failed {failure(error)}{where}") from None
    finally:
        running.unlink(missing_ok=True)


def _remove_broken_sets(stage):
    """Remove its JSON files beside and above a lost one, by which code takes a set for whole."""
    folder = paths.Run(stage.run).folder
    files = [folder / name for name in _made(stage.record)]
    single_files = (stage.output.parent, paths.Run(stage.run).results)
    lost = [path for path in files if not path.exists() and path.parent not in single_files]
    for path in files:
        if path.suffix == ".json" and any(file.is_relative_to(path.parent) for file in lost):
            path.unlink(missing_ok=True)


def failure(error: Exception) -> str:
    """Return a line that says where and why the execution of a notebook stopped."""
    where = "outside of its cells"
    reason = f"{type(error).__name__}: {error}"
    if hasattr(error, "traceback"):
        where = f"in cell [{error.exec_count}]"
        reason = f"{error.ename}: {error.evalue}"
    if DISK_FULL.search(reason):
        return f"{where}: {disk_full(reason)}"
    return f"{where}: {reason}"


def start_stage(stage: Stage) -> None:
    """Run a stage in a process of its own, and wait for its end; a current one is not started."""
    if stage.is_current:
        return
    launcher = shlex.split(os.environ.get(LAUNCHER, ""))
    python = [sys.executable, "-W", "ignore", "-m", f"{__package__}.stages"]
    command = [*launcher, *python, stage.run, stage.name]
    ended = subprocess.run(command, cwd=paths.ROOT, stderr=subprocess.PIPE, text=True)
    if ended.returncode:
        killed = f"{stage.name} was stopped ({ended.returncode}): the same command continues it"
        raise StageFailed(ended.stderr.strip() or killed)


def ensure(run: str, notebook: str, path: str | Path) -> None:
    """Run a notebook and its variants if a file is missing, and print a line about it.

    This works in a notebook, for which another kernel is started, and from any folder. If another
    process runs that notebook, it is waited for. Nothing is run again that is current.

    Parameters
    ----------
    run : str
        name of a run, a folder of ``params/``, whose parameters are used
    notebook : str
        name of the notebook without ``.ipynb``
    path : str or Path
        the file or folder; if it exists, nothing is done

    Raises
    ------
    ValueError
        on an unknown run or notebook, and where the notebook has run but did not make ``path``
    StageFailed
        where a notebook fails
    """
    path = Path(path)
    shown_path = paths.display_path(path)
    if path.exists():
        return
    chosen = [stage for stage in read_stages(run) if stage.notebook == notebook]
    if not chosen:
        raise ValueError(f"{shown_path} is missing, and params/{run}/ has no {notebook}.yaml")
    print(f"{notebook} has not been run for {run!r}: running it now", flush=True)
    for stage in chosen:
        start_stage(stage)
    if not path.exists():
        raise ValueError(f"{notebook} has been run for {run!r} but did not make {shown_path}")


def run_stages(todo: list[Stage], jobs: int = 1) -> None:
    """Run the stages that are not current, none before the notebooks that it needs.

    One line is printed per stage, also for current ones. After a failure no stage is started; those
    that run are waited for, and the error is raised then.

    Parameters
    ----------
    todo : list of Stage
        the stages to run
    jobs : int
        number of stages that may run at the same time

    Raises
    ------
    StageFailed
        where a notebook fails
    """
    waiting = list(todo)
    running = {}
    done = []
    pool = ThreadPoolExecutor(jobs)  # not closed on Ctrl-C
    while waiting or running:
        unfinished = {stage.notebook for stage in [*waiting, *running.values()]}
        ready = [stage for stage in waiting if unfinished.isdisjoint(stage.needs)]
        for stage in ready[: jobs - len(running)]:
            waiting.remove(stage)
            running[pool.submit(_outcome, stage)] = stage

        finished, _ = wait(running, LINE_SECONDS, FIRST_COMPLETED)
        for future in finished:
            done.append(future)
            name = running.pop(future).name
            outcome = "failed" if future.exception() else future.result()
            print(f"[{len(done)}/{len(todo)}] {name} ... {outcome}", flush=True)
            if future.exception():
                waiting.clear()
        if not finished:
            for stage in running.values():
                _print_progress(stage)
    for future in done:
        future.result()  # raises what failed


def _outcome(stage):
    """Run a stage, and say how it ended: "reused" if it was current, else its seconds."""
    if stage.is_current:
        return "reused"
    start_stage(stage)
    return f"{artifacts.read_json(stage.record)['seconds']:.0f} s"


def _print_progress(stage):
    """Print the present text of a stage's bar, if it has one."""
    with suppress(OSError):
        text = stage.progress_file.read_text("utf-8", errors="replace")  # it may be half written
        if text:
            print(f"{stage.name}: {printable(text)}", flush=True)


def _main():
    run, name = sys.argv[1:]
    for stage in read_stages(run):
        if stage.name == name:
            execute(stage)


if __name__ == "__main__":
    sys.exit(run_command(_main))
