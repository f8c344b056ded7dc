"""What commands print: text that is safe on a terminal, and one sentence where a command fails."""

import sys
import traceback
from collections.abc import Callable

from . import paths
from .artifacts import atomic_write
from .errors import DEFECT, explain_error

TRACEBACK = "traceback.txt"  # in the outputs folder, of the last error that nobody foresaw


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


def run_command(command: Callable[[], object]) -> int:
    """Run the work of a command line, and return its exit code.

    An error becomes one sentence on stderr. Where nobody foresaw it, the lines of code that it came
    from are written to ``traceback.txt`` in the outputs folder.

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
            message += _keep_traceback(error)
        print("\n".join(map(printable, message.split("\n"))), file=sys.stderr)
        return 1
    return 0


def _keep_traceback(error: Exception) -> str:
    # writes where an error came from, and says where this is; where it cannot, says it itself
    trace = "".join(traceback.format_tb(error.__traceback__))
    path = paths.outputs() / TRACEBACK
    try:
        with atomic_write(path) as partial:  # without the message, which may hold somebody's name
            partial.write_text(f"{trace}{type(error).__name__}\n", encoding="utf-8")
    except OSError:
        return f"\n{trace}"
    return f"; please report it with {paths.display_path(path)}"
