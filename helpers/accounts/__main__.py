"""The command line for own accounts: ``authorbook encode | nearest | compare | mine``.

Posts come as CSV, TSV, JSON lines or Parquet, with columns of any name, and are cleaned as notebook 01 cleans them.
Accounts are told by pseudonyms unless --names is given. No answer is proof: a person must decide.
"""

import argparse
import os
import sys

COMMANDS = {  # what each takes, and what it is for
    "encode": ("posts out", "accounts as vectors, into a Parquet file"),
    "nearest": ("posts account", "the accounts most like one account"),
    "compare": ("posts others", "are the accounts of two files the same?"),
    "mine": ("posts", "notebook 13 on own posts, as one page"),
}


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0, 1 after a message where something is wrong, 130 where the user stopped it."""
    options = _parser().parse_args(arguments)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch is imported
    from helpers.accounts import commands  # here, as what it needs takes seconds

    try:
        getattr(commands, options.command)(options)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; the same command continues from here", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="authorbook", description=__doc__.split("\n\n")[1])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (places, purpose) in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose)
        for place in places.split():
            command.add_argument(place)
        for column in ("author", "time", "topic", "text"):
            command.add_argument(f"--{column}", help=f"the file's column for the {column}, guessed where not given")
        command.add_argument("--encoder", default="open-small", help="one that ships, or a folder (open-small)")
        command.add_argument("--run", default="mine", help="the folder in outputs/ to work in (mine)")
        command.add_argument("--names", action="store_true", help="the accounts' own names, not pseudonyms")
        if name != "encode":
            command.add_argument("--prior", type=float, default=0.05, help="chance that an account has another (0.05)")
            command.add_argument("-k", type=int, default=5, help="how many of each account (5)")
    command.add_argument("--accounts", nargs="*", default=[], help="accounts to ask about (default: all)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
