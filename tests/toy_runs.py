"""A run of two small notebooks, and how its notebooks and parameters are written."""

import contextlib
import io
import os
from unittest import mock

import nbformat
from IPython.display import display

from helpers.runs import stages

KERNELSPEC = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
DECLARED = "\n".join(
    [
        "run: str = 'demo'  # name of the run",
        "size: int = 1  # how many",
        "rate: float = 0.1  # how fast",
        "options: dict = {}  # nested",
    ]
)


def notebook(path, *cells, parameters=DECLARED):
    """Write a notebook: a str is a code cell, a 1-tuple is Markdown."""
    make = nbformat.v4
    made = []
    if parameters:
        made.append(make.new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    for cell in cells:
        if isinstance(cell, tuple):
            made.append(make.new_markdown_cell(*cell))
        else:
            made.append(make.new_code_cell(cell))
    kernel = {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    nbformat.write(make.new_notebook(cells=made, metadata=kernel), path)


def execute_in_process(source, out, parameters, cwd, **_):
    """What papermill does in a kernel: run the cells."""
    book = nbformat.read(source, as_version=4)
    namespace = {"display": display}  # the one name that a kernel has and Python has not
    with (
        mock.patch.dict(os.environ),
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        for number, cell in enumerate(book.cells):
            if cell.cell_type == "code":
                exec(compile(cell.source, f"{source}, cell {number}", "exec"), namespace)
            if "parameters" in cell.metadata.get("tags", []):
                namespace |= parameters
    nbformat.write(book, out)


def start_in_process(stage):
    """What a process of its own does for a stage; the variables that it sets are gone after it."""
    if not stage.is_current:
        with mock.patch.dict(os.environ):
            stages.execute(stage)


def use_no_processes(patch):
    """Let stages run in this process, without kernels."""
    patch.setattr("papermill.execute_notebook", execute_in_process)
    patch.setattr(stages, "start_stage", start_in_process)


def log(toy):
    path = toy / "log.txt"
    if not path.exists():
        return []
    return [line.split() for line in path.read_text().splitlines()]


def params(toy, name, text):
    (toy / f"params/demo/{name}.yaml").write_text(text)
