"""The papers' runs on small corpora in the formats of the papers' own data."""

import ast
import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import nbformat
import plotly.io
from accelerate.state import AcceleratorState

from helpers.core import paths
from helpers.core.paths import Run
from helpers.evaluation import bootstrap
from helpers.runs import stages
from tests.toy_runs import start_in_process, use_no_processes

_letters = random.Random(0)
WORDS = [
    "".join(_letters.choices("abcdefghijklmnopqrstuvwxyz", k=_letters.randrange(3, 8)))
    for _ in range(400)
]


class People:
    """Writers with favourite words, the same for a seed.

    ``text(author, words)`` is a text that nobody else has written.
    """

    def __init__(self, seed=0):
        self.rng = random.Random(seed)
        self.habits = {}

    def text(self, author, words=12, topic=""):
        """A text; of a topic where one is given."""
        habit = self.habits.setdefault(author, self.rng.sample(WORDS, 12))
        chosen = [
            self.rng.choice(habit if self.rng.random() < 0.7 else WORDS) for _ in range(words)
        ]
        if topic:
            stem = topic.lower().replace(" ", "")
            chosen += [f"{stem}{self.rng.randrange(6)}" for _ in range(words // 3)]
        return " ".join([*chosen, str(self.rng.randrange(10**6))])


def write_pairs(folder, people, count, name, fandoms, repeats=False):
    """PAN's files: half of the pairs are of one author, each text is of a fandom.

    Most authors are in two pairs.
    """
    folder.mkdir()
    pairs = []
    truth = []
    for number in range(count):
        first = f"{name}{number % (count // 2)}"
        authors = [first, f"{name}{number + 1000}" if number < count // 2 else first]
        topics = [fandoms[(number + side) % len(fandoms)] for side in range(2)]
        texts = [people.text(author, 60, topic) for author, topic in zip(authors, topics)]
        if repeats and number == 1:
            texts[0], topics[0] = pairs[0]["pair"][0], pairs[0]["fandoms"][0]
            authors[0] = truth[0]["authors"][0]  # a text of two pairs
        pairs.append({"id": f"id-{number}", "fandoms": topics, "pair": texts})
        truth.append({"id": f"id-{number}", "same": authors[0] == authors[1], "authors": authors})
    (folder / "pairs.jsonl").write_bytes(lines(pairs))
    (folder / "truth.jsonl").write_bytes(lines(reversed(truth)))


def second(day):
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def smaller(run, changes):
    """The named stages of a run, in its order, with changed parameters.

    changes : by stage and parameter a value, what differs in a dict, or a function of the value
    that there is. A stage that the run has not, as a small encoder needs a tokenizer where the
    paper's brings its own, is one of the notebook.
    """
    stage_of_name = {stage.name: stage for stage in stages.read_stages(run)}
    for name in sorted(changes, key=lambda name: name.partition(".")):
        stage = stage_of_name.get(name)
        if stage is None:
            stage = stages.Stage(run, name, {"run": run}, "test")
        parameters = dict(stage.parameters)
        for key, change in changes[name].items():
            parameters[key] = changed(stage.parameters.get(key), change)
        yield replace(stage, parameters=parameters)


def changed(value, change):
    if callable(change):
        return change(value)
    if isinstance(change, dict):
        return (value or {}) | change
    return change


def execute(run, changes, outputs, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(outputs))
    monkeypatch.setenv("AUTHORBOOK_PSEUDONYM_KEY", "00" * 32)  # by which few authors are split
    execute_here(smaller(run, changes), monkeypatch)
    return Run(run)


def execute_here(todo, monkeypatch):
    """Execute stages in this process, as a kernel a stage would take longer than small data does.

    A failure is the error of the cell, with its traceback.
    """
    use_no_processes(monkeypatch)
    resample = bootstrap.resample_weights
    monkeypatch.setattr(  # 1,000 resamples take longer than all else
        bootstrap, "resample_weights", lambda groups, n, seed: resample(groups, min(n, 50), seed)
    )
    monkeypatch.setattr(plotly.io.renderers, "default", "json")  # no browser
    for stage in todo:
        AcceleratorState._reset_state(True)  # a process has one precision
        try:
            start_in_process(stage)
        except stages.StageFailed as error:
            raise error.__context__ from None
        finally:
            AcceleratorState._reset_state(True)


# what needs data, or a package that not all have
SKIPPED = {
    "open_stores",
    "read_posts",
    "tokenise_posts",
    "ensure",
    "check_installed",
    "read_json",
    "read_results",
    "open_store",
    "open_documents",
    "load_trained",
    "load_tokenizer",
    "print",
}


# number of cells that make configs of parameters, where they are several
CHECKING_CELLS = {"04_losses": 2, "09_tables": 6}


def settings(stage):
    """The names that a notebook has after it has made configs of its parameters."""
    beginning, checks = checking_code(stage.notebook)
    names = {}
    exec(beginning, names)
    names |= stage.parameters
    exec(checks, names)
    return names


@cache
def checking_code(notebook):
    """The code of a notebook's imports and parameters, and the code that checks these.

    What needs data is left out, and so is what needs a variable that is left out.
    """
    cells = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    (at,) = [
        number for number, cell in enumerate(code) if "parameters" in cell.metadata.get("tags", [])
    ]
    missing = set()
    statements = []
    for cell in code[at + 1 : at + 1 + CHECKING_CELLS.get(notebook, 1)]:
        for node in ast.parse(cell.source).body:
            if used_names(node) & (SKIPPED | missing):
                missing |= bound_names(node)
            else:
                statements.append(node)
    beginning = "\n".join(cell.source for cell in code[: at + 1])
    checks = ast.unparse(ast.Module(statements, []))
    return compile(beginning, notebook, "exec"), compile(checks, notebook, "exec")


def used_names(statement):
    """The names and attributes of a statement."""
    nodes = list(ast.walk(statement))
    return {getattr(node, "attr", getattr(node, "id", "")) for node in nodes}


def bound_names(statement):
    variables = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return {node.id for node in variables if isinstance(node.ctx, ast.Store)}
