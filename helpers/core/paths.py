"""Where a run's files are: found from the installed package, never from the working directory.

JupyterLab and nbval start a kernel in the notebook's folder, papermill in the folder it was launched from;
only a path derived from this file is the same in all three.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
PARAMS = ROOT / "params"


def outputs() -> Path:
    """The folder of all runs: ``$AUTHORBOOK_OUTPUTS`` where set (tests), else ``outputs/`` beside the package."""
    return Path(os.environ.get("AUTHORBOOK_OUTPUTS") or ROOT / "outputs")


def slug(*words: object) -> str:
    """The words as one name of a file: whatever is neither letter nor digit becomes a hyphen."""
    return "-".join(
        "".join(letter if letter.isalnum() else "-" for letter in str(word)) for word in words
    )


def checked_name(kind: str, name: str) -> str:
    """A name that becomes a folder, as it is. Raises ValueError where it could lead elsewhere."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", name):
        raise ValueError(f"{kind} {name!r}: use letters, digits, '.', '_' and '-' only, at most 100, "
                         "the first a letter or a digit")  # fmt: skip
    return name


def resolve(location: str | Path) -> Path:
    """A user's path: absolute as it is, ``~`` expanded, relative to the repository's root."""
    path = Path(location).expanduser()
    return path if path.is_absolute() else ROOT / path


def display_path(path: Path) -> str:
    """A path for people: relative to the repository where it is inside."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


@dataclass(frozen=True)
class Run:
    """The files of one run, ``outputs/<name>/``; nothing is created. ValueError for a name that could leave it."""

    name: str

    def __post_init__(self):
        checked_name("run", self.name)

    folder = property(lambda self: outputs() / self.name)
    posts = property(
        lambda self: self.folder / "posts"
    )  # <split>.parquet: posts tables, sorted by author, then time
    data_card = property(lambda self: self.folder / "data_card.json")
    tokenizer = property(lambda self: self.folder / "tokenizer")
    tokens = property(lambda self: self.folder / "tokens")  # <split>/: token stores
    models = property(
        lambda self: self.folder / "models"
    )  # <name>/: checkpoints and learning curves
    results = property(
        lambda self: self.folder / "results.csv"
    )  # what was measured: helpers.core.results
    notebooks = property(lambda self: self.folder / "notebooks")  # the executed ones
