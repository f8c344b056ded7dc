"""The papers' runs on small corpora in the formats of the papers' own data: how they are made smaller, and executed."""

import ast
import json
import random
from dataclasses import replace
from datetime import UTC, datetime

import nbformat

from helpers.core import paths
from helpers.core.paths import Run
from helpers.runs import pipeline, stages

_letters = random.Random(0)
WORDS = [
    "".join(_letters.choices("abcdefghijklmnopqrstuvwxyz", k=_letters.randrange(3, 8)))
    for _ in range(400)
]


class People:
    """Writers with favourite words, the same for a seed: ``text(author, words)`` is a text nobody else has written."""

    def __init__(self, seed=0):
        self.rng, self.habits = random.Random(seed), {}

    def text(self, author, words=12, topic=""):
        """A text; of a topic where one is given."""
        habit = self.habits.setdefault(author, self.rng.sample(WORDS, 12))
        own = [self.rng.choice(habit if self.rng.random() < 0.7 else WORDS) for _ in range(words)]
        told = (
            [f"{topic.lower().replace(' ', '')}{self.rng.randrange(6)}" for _ in range(words // 3)]
            if topic
            else []
        )
        return " ".join([*own, *told, str(self.rng.randrange(10**6))])


def write_pairs(folder, people, count, name, fandoms):
    """PAN's files: half of the pairs are of one author, each text of a fandom, and most authors are in two pairs."""
    folder.mkdir()
    pairs, truth = [], []
    for number in range(count):
        first = f"{name}{number % (count // 2)}"
        authors = [first, f"{name}{number + 1000}" if number < count // 2 else first]
        topics = [fandoms[(number + side) % len(fandoms)] for side in range(2)]
        texts = [people.text(author, 60, topic) for author, topic in zip(authors, topics)]
        pairs.append({"id": f"id-{number}", "fandoms": topics, "pair": texts})
        truth.append({"id": f"id-{number}", "same": authors[0] == authors[1], "authors": authors})
    (folder / "pairs.jsonl").write_bytes(lines(pairs))
    (folder / "truth.jsonl").write_bytes(lines(reversed(truth)))


def second(day):
    """Seconds since 1970 of an ISO date, UTC."""
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())


def lines(records):
    """JSON lines, as bytes."""
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def smaller(run, changes):
    """The named stages of a run, in its order, with changed parameters.

    changes : by stage and parameter a value, what differs in a dict, or a function of the value that there is. A stage
    that the run has not, as a small encoder needs a tokenizer where the paper's brings its own, is one of the notebook.
    """
    every = {stage.name: stage for stage in stages.stages(run)}
    for name in sorted(changes, key=lambda name: name.partition(".")):
        stage = every.get(name) or stages.Stage(run, name, name, {"run": run}, "test")
        there = stage.parameters
        yield replace(stage, parameters=there | {key: changed(there.get(key), value)
                                                 for key, value in changes[name].items()})  # fmt: skip


def changed(value, change):
    if callable(change):
        return change(value)
    return (value or {}) | change if isinstance(change, dict) else change


def execute(run, changes, outputs, monkeypatch):
    """Execute some stages of a run; returns its files."""
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(outputs))
    monkeypatch.setenv("AUTHORBOOK_PSEUDONYM_KEY", "00" * 32)  # by which few authors are split
    for stage in smaller(run, changes):
        pipeline.execute(stage)
    return Run(run)


# what needs data, or a package that not all have
SKIPPED = {
    "ensure",
    "check_installed",
    "read_json",
    "open_store",
    "open_documents",
    "open_trained",
    "load_trained",
    "load_tokenizer",
    "print",
}


def settings(stage):
    """The names that a notebook has after it has checked its parameters and made its configs of them."""
    cells = nbformat.read(paths.NOTEBOOKS / f"{stage.notebook}.ipynb", as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    (at,) = [
        number for number, cell in enumerate(code) if "parameters" in cell.metadata.get("tags", [])
    ]
    names, missing = {}, set()
    for cell in code[: at + 1]:
        exec(cell.source, names)
    names |= stage.parameters
    for cell in code[at + 1 : at + (3 if stage.notebook == "04_losses" else 2)]:
        for node in ast.parse(cell.source).body:
            used = {getattr(each, "attr", getattr(each, "id", "")) for each in ast.walk(node)}
            if used & (SKIPPED | missing):
                made = (
                    each
                    for each in ast.walk(node)
                    if isinstance(getattr(each, "ctx", None), ast.Store)
                )
                missing |= {each.id for each in made if isinstance(each, ast.Name)}
            else:
                exec(ast.unparse(node), names)
    return names
