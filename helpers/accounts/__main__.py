"""The command line for own accounts: ``authorbook encode | nearest | compare | mine``.

Posts come as CSV, TSV, JSON lines or Parquet, with columns of any name, and are cleaned as notebook 01 cleans them.
Accounts are told by pseudonyms unless --names is given. No answer is proof: a person must decide.
"""

import argparse
import os
import re
import sys
from pathlib import Path

SHIPPED = "Probabilities are those of the map that ships; `authorbook mine` checks it on your accounts."
CARE = "These are likelihoods, not proof: read the posts, and let a person decide."
ENVIRONMENT = {"OMP_WAIT_POLICY": "passive", "TOKENIZERS_PARALLELISM": "false"}


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0, 1 after a message where something is wrong, 130 where the user stopped it."""
    options = _parser().parse_args(arguments)
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        COMMANDS[options.command](options)
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
    common = argparse.ArgumentParser(add_help=False)
    for column in ("author", "time", "topic", "text"):
        common.add_argument(f"--{column}", help=f"the file's column for the {column}, guessed where it is not given")
    common.add_argument("--encoder", default="open-small", help="one that ships, or a folder (default: open-small)")
    common.add_argument("--run", default="mine", help="the folder in outputs/ to work in (default: mine)")
    common.add_argument("--names", action="store_true", help="show the accounts' own names instead of pseudonyms")
    prior = argparse.ArgumentParser(add_help=False)
    prior.add_argument("--prior", type=float, default=0.05, help="chance that there is an account to find (0.05)")
    encode = commands.add_parser("encode", parents=[common], help="accounts as vectors, into a Parquet file")
    encode.add_argument("posts")
    encode.add_argument("out")
    nearest = commands.add_parser("nearest", parents=[common, prior], help="the accounts most like one account")
    nearest.add_argument("posts")
    nearest.add_argument("account")
    nearest.add_argument("-k", type=int, default=10, help="how many (default: 10)")
    compare = commands.add_parser("compare", parents=[common, prior], help="are the accounts of two files the same?")
    compare.add_argument("posts")
    compare.add_argument("others")
    compare.add_argument("-k", type=int, default=3, help="how many of each account (default: 3)")
    mine = commands.add_parser("mine", parents=[common, prior], help="notebook 13 on own posts, as one page")
    mine.add_argument("posts")
    mine.add_argument("--accounts", nargs="*", default=[], help="accounts to ask about (default: all)")
    return parser


def _columns(options) -> dict:
    return {name: getattr(options, name) for name in ("author", "time", "topic", "text") if getattr(options, name)}


def _read(options, location: str, run: str, **limits):
    """The encoder, the posts of a file, and how an account is shown."""
    from helpers.accounts import own
    from helpers.accounts.encoder import AuthorEncoder
    from helpers.runs.paths import Run

    encoder = AuthorEncoder.load(options.encoder)
    posts = own.read(Run(run), str(Path(location).absolute()), encoder, _columns(options), **limits)
    names = own.own_names(str(Path(location).absolute()), _columns(options)) if options.names else {}
    return encoder, posts, lambda account: names.get(account, account)


def _encode(options):
    import pandas as pd

    from helpers.accounts.posts import newest
    from helpers.runs.artifacts import atomic_write

    encoder, posts, shown = _read(options, options.posts, options.run)
    samples = newest(posts.store)
    frame = pd.DataFrame({"account": map(shown, posts.names[samples.authors]), "posts": samples.count,
                          "vector": list(encoder.vectors(samples, posts.hours))})  # fmt: skip
    with atomic_write(options.out) as partial:
        frame.to_parquet(partial, index=False)
    print(f"{len(frame)} accounts x {len(frame.vector[0])} -> {options.out}")


def _nearest(options):
    from helpers.accounts.gallery import Decision
    from helpers.accounts import own
    from helpers.accounts.own import SHORT
    from helpers.runs.paths import Run

    encoder, posts, shown = _read(options, options.posts, options.run, most=None)
    asked, = own.asked_as(posts, [options.account])
    large = len(posts.names) > SHORT
    gallery = posts.shortlist(encoder, asked, posts.index(encoder)) if large else posts.gallery(encoder)
    decision, everyone = Decision.of({"prior": options.prior}), len(posts.names)
    found = gallery.rank(gallery.accounts([asked]), [asked], options.k, decision, everyone)
    own.keep(Run(options.run), found)
    _tell(found, shown, len(posts.names), encoder.card)


def _compare(options):
    from helpers.accounts import own
    from helpers.accounts.gallery import Decision
    from helpers.accounts.posts import newest, without_passages
    from helpers.runs.paths import Run

    encoder, posts, shown = _read(options, options.posts, f"{options.run}-a")
    _, others, other = _read(options, options.others, f"{options.run}-b")
    if posts.hours != others.hours:
        raise ValueError("one file has times and the other has none: name no time column, or one of each")
    gallery = others.gallery(encoder)
    asked = newest(without_passages(posts.store, encoder.kinds, others.store)[0])
    names = [f"{shown(name)} (first file)" for name in posts.names[asked.authors]]
    if not len(asked):
        raise ValueError("nothing is left of the first file that does not stand in the second, too: do they overlap?")
    print(f"{len(asked)} of {len(posts.names)} accounts of the first file are asked about; of the others too little is "
          "left that does not stand word for word in the second file, too")  # fmt: skip
    found = gallery.rank(asked, names, options.k, Decision.of({"prior": options.prior}))
    own.keep(Run(options.run), found)
    _tell(found, other, len(gallery), encoder.card)


def _tell(found, shown, accounts: int, card: dict):
    found = found.assign(query=found["query"].map(shown), target=found["target"].map(shown))
    print(found.drop(columns=["score"]).to_string(index=False, na_rep="", float_format="{:.3f}".format))
    print(f"\n{accounts} accounts were compared. {card.get('errors', '')}{' ' * ('errors' in card)}{SHIPPED} {CARE}")


def _mine(options):
    import papermill

    from helpers.accounts import own
    from helpers.runs import paths, report
    from helpers.runs.pipeline import PAPERMILL, alone, failure

    files = paths.Run(options.run)
    files.notebooks.mkdir(parents=True, exist_ok=True)
    executed = files.notebooks / "13_your_accounts.ipynb"
    path = Path(options.posts).absolute()
    accounts = options.accounts if options.names else [
        name if re.fullmatch(own.PSEUDONYM, name) else own.pseudonym()(name) for name in options.accounts]  # fmt: skip
    given = {"run": options.run, "posts": str(path), "columns": _columns(options), "accounts": accounts,
             "prior": options.prior, "encoder": options.encoder, "names": options.names}
    problem = ""
    try:
        with alone(options.run):
            papermill.execute_notebook(paths.NOTEBOOKS / "13_your_accounts.ipynb", executed, given, cwd=paths.NOTEBOOKS,
                                       **PAPERMILL)  # fmt: skip
    except Exception as error:  # what was found before it is shown all the same
        problem = failure(error)
    if executed.exists():
        executed.write_text(executed.read_text("utf-8").replace(str(path), path.name), "utf-8")  # no folder of anybody
        page = report.build([executed], files.folder / "report.html", f"authorbook: {options.run}", f"<p>{CARE}</p>")
        print(f"page: {paths.shown(page)}")
    if problem:
        raise ValueError(problem)


COMMANDS = {"encode": _encode, "nearest": _nearest, "compare": _compare, "mine": _mine}

if __name__ == "__main__":
    sys.exit(main())
