"""What commands say: text that is safe where it is shown, and one sentence about any exception.

The sentence tells which file, what is wrong with it, and what to do.

What to do depends on where a file comes from: one that was made here is deleted and made again, any
other is looked at. No word of a library is quoted about a file,
since libraries advise what is not safe, such as to unpickle it all the same.
"""

import lzma
import os
import re
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

from . import paths

OWN_MODULES = __name__.partition(".")[0]  # "helpers"; "authorbook" where it is installed
PACKAGE = paths.PACKAGE
EXTRAS = {"daft": "distributed"}  # package -> the extra of pyproject.toml that brings it
# folders of a run, in which each subfolder's files belong together and are made together
SETS_OF_FILES = ("models", "tokens", "tokenizer")
# "OSError: [Errno 28] No space left on device"; "os error 28" is the form of Rust libraries
DISK_FULL = re.compile(
    r"No space left on device|[Ee]rrno 28\b|os error 28\b|Disk quota exceeded|File too large"
)
OUT_OF_MEMORY = re.compile(
    r"out of memory|(?:can't|cannot|could not|unable to|failed to) allocate|not enough memory",
    re.IGNORECASE,
)
FILE_IN_MESSAGE = re.compile(r"""(?<=["'])/[^"'\\\n]+""")  # the first full path in quotes
DEFECT = "this is a defect of authorbook"
# What a spreadsheet takes for a formula, by its first letter (OWASP, CSV injection). An apostrophe
# before it makes it a text; one more is put before texts that begin with both already.
FORMULA = r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
CUT = (EOFError, zlib.error, lzma.LZMAError)  # of a compressed file that ends early or is changed


class FileError(ValueError):
    """A file that cannot be used; the message is a sentence that names it and says what to do."""


@contextmanager
def readable_file(path: str | Path, problem: str = "") -> Iterator[None]:
    """Let a block that reads a file raise nothing but FileError about it.

    The block should do no more than read the file and build what it describes: any error in it is
    laid to the file, but a FileError, which may be about another file.

    Parameters
    ----------
    path : str or Path
        the file that the block reads
    problem : str
        what is wrong where the error itself does not tell, such as "holds no weights"; needed for
        the path of a folder

    Raises
    ------
    FileError
        where the block raises any other exception
    """
    try:
        yield
    except FileError:
        raise
    except Exception as error:
        raise FileError(_about_file(error, path, problem)) from None


def file_error(path: str | Path, problem: str = "is damaged") -> FileError:
    """Return the error to raise about a file, with what is wrong and what to do.

    Parameters
    ----------
    path : str or Path
        the file
    problem : str
        what is wrong, as it follows the file's name
    """
    return FileError(f"{paths.display_path(Path(path))} {problem}: {remedy(path)}")


def remedy(path: str | Path) -> str:
    """Say what to do about a missing or damaged file; this depends on where it comes from."""
    path = Path(os.path.abspath(path))
    outputs = Path(os.path.abspath(paths.outputs()))
    if path.is_relative_to(PACKAGE):
        return "install authorbook again, or restore it with `git checkout`"
    if not path.is_relative_to(outputs):
        if not path.exists():
            return "look whether its name is right, or make or download it again"
        return "look at it, and make or download it again"
    run, *folders = path.relative_to(outputs).parts
    command = "the command that made it makes it again"
    if (paths.PARAMS / run).is_dir():
        command = f"`make reproduce RUN={run}` makes it again"
    whole = path
    if len(folders) > 1 and folders[0] in SETS_OF_FILES:
        whole = path.parent
    if not whole.exists():
        return command
    return f"delete {paths.display_path(whole)}; {command}"


def _about_file(error, path, problem=""):
    """Return the sentence about a file that could not be read or written."""
    if DISK_FULL.search(str(error)):
        return disk_full(error)
    shown = paths.display_path(Path(path))
    if _is_out_of_memory(error):
        return f"{shown} needs more memory than there is: close other programs, or {remedy(path)}"
    if isinstance(error, PermissionError):
        return f"{shown} may not be read or written: see its permissions"
    return str(file_error(path, _problem(error, Path(path), problem)))


def _problem(error, path, problem):
    """Say what is wrong with a file: what the error tells, else ``problem``."""
    if isinstance(error, FileNotFoundError) or not os.path.lexists(path):
        return "is missing"
    if isinstance(error, CUT):
        return "ends early or is damaged"
    if problem:
        return problem
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be used ({error.strerror.lower()})"
    return "is damaged"


def _is_out_of_memory(error):
    return isinstance(error, MemoryError) or bool(OUT_OF_MEMORY.search(str(error)))


def explain_error(error: BaseException) -> str:
    """Return one sentence about any exception, for the end of a command.

    Returns
    -------
    The message of an error that our own code raised; else a sentence about a full disk, too little
    memory, a file, or a package that is not installed. Of an error that nobody foresaw, a sentence
    that begins with DEFECT.
    """
    first_line = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    if is_foreseen(error):
        return str(error)
    if DISK_FULL.search(str(error)):
        return disk_full(error)
    if _is_out_of_memory(error):
        return "the memory is full: close other programs, or take fewer posts"
    if isinstance(error, OSError) and isinstance(error.filename, str | bytes):
        return _about_file(error, os.fsdecode(error.filename))
    if isinstance(error, ModuleNotFoundError):
        extra = EXTRAS.get(error.name, "notebooks")
        return (
            f"the package {error.name} is not installed: run `make setup` in a checkout, else `pip "
            f"install 'authorbook[{extra}]'`"
        )
    if isinstance(error, OSError):
        return first_line
    return f"{DEFECT}: {first_line}"


def is_foreseen(error: BaseException) -> bool:
    """Tell whether a ``raise`` of our own made an error, so that its message is for the user."""
    if type(error).__module__.startswith(f"{OWN_MODULES}."):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return False
    file = Path(os.path.realpath(frames[-1].filename))  # a checkout may be reached by a link
    return file.is_relative_to(PACKAGE) and frames[-1].line.startswith("raise")


def disk_full(error: object) -> str:
    """Return a one-line message that says what to do about a full disk."""
    file = FILE_IN_MESSAGE.search(str(error))
    where = f" at {file[0]}" if file else ""
    return (
        f"the disk is full{where}: free some space, then give the same command again; "
        "finished files are kept"
    )


def printable(text: object) -> str:
    r"""Return a text with every character escaped that a terminal could obey or would not show.

    These are control characters such as those that begin an escape sequence, line ends, marks that
    turn the direction of writing, characters of no width and spaces other than " ": "\x1b", "\n",
    "\u202e", "\u200b". So the result stays on its line, and what looks alike is alike.
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in str(text)
    )


def escape_html(text: object) -> str:
    """Escape a text, so that a figure shows its HTML and its formulas as plain text.

    Dollar signs are escaped too, because a page with MathJax would typeset what is between two of
    them, and could make links of it. Quotes are not: plotly would show "&quot;" literally, and no
    figure puts text into an attribute.
    """
    return escape(str(text), quote=False).replace("$", "&#36;")


def without_formulas(table: "pd.DataFrame") -> "pd.DataFrame":  # noqa: F821
    """Return a table, to be written for people, with an apostrophe before texts that are formulas.

    Parameters
    ----------
    table : DataFrame
        whose column names are ours; other values than texts stay
    """
    return table.replace(f"^({FORMULA})", r"'\1", regex=True)


def unescape_formula(text: str) -> str:
    """Return the text of which :func:`without_formulas` made this one; other texts stay."""
    return re.sub(f"^'({FORMULA})", r"\1", text)


def run_command(command: Callable[[], object]) -> int:
    """Run the work of a command line, and return its exit code.

    An error becomes one sentence on stderr. Where nobody foresaw it, the lines of code that it came
    from follow.

    Parameters
    ----------
    command : callable
        the work, without arguments

    Returns
    -------
    0; 1 after a message about an error; 130 where the user pressed Ctrl-C.
    """
    try:
        command()
    except KeyboardInterrupt:
        print("\nstopped; the same command continues from here", file=sys.stderr)
        return 130
    except Exception as error:
        message = explain_error(error)
        if message.startswith(DEFECT):
            # without the error's own text, which may hold somebody's name
            lines = "".join(traceback.format_tb(error.__traceback__))
            message += f"; please report it with these lines:\n{lines}"
        print("\n".join(map(printable, message.split("\n"))), file=sys.stderr)
        return 1
    return 0
