"""Paths of a run's files, derived from where the package is, never from the working directory.

JupyterLab and nbval start a kernel in the notebook's folder, papermill in the folder it was
launched from; only a path derived from this file is the same in all three. A package that is
installed has no checkout around it: what it writes goes to a folder of the user.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import platformdirs

PACKAGE = Path(__file__).resolve().parents[1]


def _checkout(package: Path) -> Path | None:
    """Return the checkout that a package lies in, None where the package is installed."""
    if package.name == "helpers":  # an installed package is called authorbook
        return package.parent
    return None


ROOT = _checkout(PACKAGE)
# what a user types before the name of a command
PROGRAM = "python -m helpers" if ROOT else "authorbook"
# folders of the checkout, which do not exist where the package is installed
NOTEBOOKS = (ROOT or PACKAGE) / "notebooks"
PARAMS = (ROOT or PACKAGE) / "params"


def outputs() -> Path:
    """Return the folder of all runs: $AUTHORBOOK_OUTPUTS, or by default ``outputs/``.

    This lies in the checkout. Where the package is installed, it lies in the folder that the
    operating system has for a user's data of a program, on Linux ``~/.local/share/authorbook``.
    """
    folder = ROOT or platformdirs.user_data_path("authorbook", appauthor=False)
    return Path(os.environ.get("AUTHORBOOK_OUTPUTS") or folder / "outputs")


def check_checkout() -> None:
    """Check that there is a checkout, with the notebooks and the parameters of their runs.

    Raises
    ------
    ValueError
        where the package is installed
    """
    if ROOT is None:
        raise ValueError(
            "the notebooks and the parameters of their runs are no part of the installed package: "
            "get the repository, and work in its folder"
        )


def slug(*words: object) -> str:
    """Join words to one file name; each character that is no letter or digit becomes a hyphen."""
    return re.sub(r"[\W_]", "-", "-".join(str(word) for word in words))


def checked_name(kind: str, name: str) -> str:
    """Return a name unchanged, after a check that it is safe as the name of a folder.

    Parameters
    ----------
    kind : str
        what has this name, for the message, such as "model"
    name : str
        the name to check

    Raises
    ------
    ValueError
        where the name has other characters than letters, digits, ".", "_" and "-", more than 100 of
        them, or a first one that is no letter or digit, as "../x" has
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", name):
        raise ValueError(
            f"{kind} {name!r}: use letters, digits, '.', '_' and '-' only, at most 100, "
            "the first a letter or a digit"
        )
    return name


def resolve(location: str | Path) -> Path:
    """Return a user's path in full, with ``~`` expanded.

    A relative path begins at the checkout, as kernels start in several folders; where the package
    is installed, it begins at the working directory.

    Raises
    ------
    ValueError
        where the location is empty, which would be the folder where relative paths begin
    """
    if not str(location).strip():
        raise ValueError("an empty location: name a file or a folder")
    return (ROOT or Path.cwd()) / Path(location).expanduser()


def display_path(path: Path) -> str:
    """Return a path as text to print: relative to the checkout if it is inside, else in full."""
    if ROOT and path.is_relative_to(ROOT):
        return str(path.relative_to(ROOT))
    return str(path)


@dataclass(frozen=True)
class Run:
    """The paths of the files of one run, in ``outputs/<name>/``; no file or folder is created.

    Raises
    ------
    ValueError
        where the name is not safe as the name of a folder, see :func:`checked_name`
    """

    name: str

    def __post_init__(self):
        checked_name("run", self.name)

    @property
    def folder(self) -> Path:
        """Return the folder of the run, which holds all of the following."""
        return outputs() / self.name

    @property
    def posts(self) -> Path:
        """Return the folder of posts tables, ``<split>.parquet``, sorted by author, then time."""
        return self.folder / "posts"

    @property
    def data_card(self) -> Path:
        """Return the JSON file that says where the posts come from and what was left out."""
        return self.folder / "data_card.json"

    @property
    def tokenizer(self) -> Path:
        """Return the folder of the tokenizer."""
        return self.folder / "tokenizer"

    @property
    def tokens(self) -> Path:
        """Return the folder of token stores, ``<split>/``."""
        return self.folder / "tokens"

    @property
    def models(self) -> Path:
        """Return the folder of checkpoints and learning curves, ``<name>/``."""
        return self.folder / "models"

    @property
    def results(self) -> Path:
        """Return the folder of measurements that :mod:`helpers.core.results` writes and reads."""
        return self.folder / "results"

    @property
    def notebooks(self) -> Path:
        """Return the folder of executed notebooks."""
        return self.folder / "notebooks"
