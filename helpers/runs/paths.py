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
    return "-".join("".join(letter if letter.isalnum() else "-" for letter in str(word)) for word in words)


def resolve(location: str | Path) -> Path:
    """A user's path: absolute as it is, ``~`` expanded, relative to the repository's root."""
    path = Path(location).expanduser()
    return path if path.is_absolute() else ROOT / path


def shown(path: Path) -> str:
    """A path for people: relative to the repository where it is inside."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


@dataclass(frozen=True)
class Run:
    """The files of one run, ``outputs/<name>/``. Nothing is created by naming it.

    Raises ValueError where the name could leave the outputs folder.
    """

    name: str

    def __post_init__(self):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", self.name):
            raise ValueError(f"run {self.name!r}: use letters, digits, '.', '_' and '-' only")

    @property
    def folder(self) -> Path:
        return outputs() / self.name

    @property
    def posts(self) -> Path:
        """``posts/<split>.parquet``: the posts tables, sorted by author, then time."""
        return self.folder / "posts"

    @property
    def data_card(self) -> Path:
        return self.folder / "data_card.json"

    @property
    def tokenizer(self) -> Path:
        return self.folder / "tokenizer"

    @property
    def tokens(self) -> Path:
        """``tokens/<split>/``: the token stores."""
        return self.folder / "tokens"

    @property
    def models(self) -> Path:
        """``models/<name>/``: checkpoints and learning curves."""
        return self.folder / "models"

    @property
    def results(self) -> Path:
        """The one tidy table of what was measured, see :mod:`helpers.runs.results`."""
        return self.folder / "results.csv"

    @property
    def figures(self) -> Path:
        return self.folder / "figures"

    @property
    def notebooks(self) -> Path:
        """The executed notebooks."""
        return self.folder / "notebooks"
