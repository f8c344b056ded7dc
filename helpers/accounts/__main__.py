"""The command line: ``authorbook encode | match | mine``.

Posts come as CSV, TSV, JSON lines or Parquet, with columns of any name, and are cleaned as notebook
01 cleans them. Accounts are shown by pseudonyms unless --names is given. No answer is proof: a
person must decide.
"""

import argparse
import os
import sys
from functools import partial

from ..core.messages import run_command
from ..core.paths import PROGRAM

COMMANDS = {  # command -> its positional arguments, and what it does
    "encode": ("posts out", "write the vectors of all accounts to a Parquet file"),
    "match": (
        "posts others",
        "tell which accounts of two lists belong to one person, all decided together",
    ),
    "mine": ("posts", "find accounts that may be one person's, and make a page of the answer"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    arguments : list of str, optional
        words of the command line; by default those that the program was started with

    Returns
    -------
    0; 1 after a message about an error; 130 where the user pressed Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch is imported
    return run_command(partial(_run, options))


def _run(options: argparse.Namespace) -> None:
    from . import commands  # not at the top: this import takes seconds

    if options.command == "encode":
        commands.encode(options)
    else:
        commands.answer_files(options)


# Return the parser with one subcommand for each of COMMANDS.
def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__.split("\n\n")[1])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (arguments, purpose) in COMMANDS.items():
        add = commands.add_parser(name, help=purpose, description=purpose).add_argument
        for argument in arguments.split():
            add(argument)
        _add_options(name, add)
    return parser


def _add_options(name, add) -> None:
    """Add the options of a command to its parser."""
    for kind in ("author", "topic", "text"):
        add(f"--{kind}", help=f"the file's column of the {kind} (guessed)")
    add("--time", help='the file\'s column of the time (guessed); "none" goes without times')
    add("--encoder", default="open-small", help="name of one that ships, or a folder (open-small)")
    run = "match" if name == "match" else "mine"
    add("--run", default=run, help=f"the folder in outputs/ to work in ({run})")
    add("--names", action="store_true", help="show the accounts' own names, not pseudonyms")
    if name == "encode":
        add("--force", action="store_true", help="replace an existing file")
        return
    accounts_help = "accounts to ask about, whose pairs are printed (default: all)"
    add("--accounts", nargs="+", default=[], help=accounts_help)
    add("--decisions", help="a CSV file of pairs that are known: account_a, account_b, decision")
    if name == "match":
        overlap_help = "share of the shorter list that has a partner (estimated)"
        add("--overlap", type=float, default=0.0, help=overlap_help)
    if name == "mine":
        prior_help = "probability of a second account (estimated)"
        add("--prior", type=float, default=0.0, help=prior_help)
        add("-k", type=int, default=5, help="candidates of each account (5)")


if __name__ == "__main__":
    sys.exit(main())
