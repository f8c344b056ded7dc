"""The commands of ``authorbook``, ``encode`` to ``mine``, each with its parsed options."""

from argparse import Namespace
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pandas as pd

from ..core import paths
from ..core.artifacts import folder_lock
from ..core.files import check_target, write_target
from . import answers, page, reading
from .answers import LIKELY, LINKED, SIDES, Question
from .decisions import find_same_texts, read_decisions
from .encoder import AuthorEncoder
from .reading import NO_TIMES, USUAL_NAMES
from .samples import spread_posts

CARE = "These are likelihoods, not proof: read the posts, and let a person decide."
MAX_ROWS = 50  # of a printed table
PRINTED_COLUMNS = ["account_a", "account_b", "state", "probability", "posts_a", "posts_b"]


def encode(options: Namespace) -> None:
    """Write the vectors of all accounts to a Parquet file.

    Its columns are ``account``, ``posts`` (the number that was read) and ``vector``.

    Raises
    ------
    ValueError
        Where the file has another ending than .parquet, or is one that may not be replaced, see
        :func:`helpers.core.files.check_target`.
    """
    if Path(options.out).suffix.lower() != ".parquet":
        raise ValueError(
            f"{options.out}: vectors are written as Parquet, so name a file that ends in .parquet; "
            f"to compare two files of posts: {paths.PROGRAM} match {options.posts} {options.out}"
        )
    check_target(options.out, [options.posts], options.force)
    encoder = AuthorEncoder.load(options.encoder)
    with _folders(options.run):
        posts = _read(options, options.posts, options.run, encoder)
        samples = spread_posts(posts.store)
        frame = pd.DataFrame(
            {
                "account": posts.names[samples.authors],
                "posts": samples.count,
                "vector": list(encoder.vectors(samples, posts.hours)),
            }
        )
        with write_target(options.out) as partial:
            frame.to_parquet(partial, index=False)
    print(f"{len(frame)} accounts x {len(frame.vector[0])} -> {options.out}")
    for sentence in page.sentences("passages", page.read_record(posts)):
        print(sentence)
    for group in page.set_aside_record(posts.set_aside.assign(list="")):
        print(group["sentence"])


def answer_files(options: Namespace) -> None:
    """Answer which accounts of a file, or of two, may be one person's, on one page.

    Raises
    ------
    ValueError
        Where a file cannot be read, an account is not there, a number or a decision is none; of two
        files also where only one has times, or one has too few accounts.
    """
    settings = {"accounts": tuple(options.accounts)}
    if options.command == "mine":
        files = {options.run: options.posts}  # the folder of a list -> its file
        settings |= {"k": options.k, "prior": options.prior}
    else:
        files = {f"{options.run}-a": options.posts, f"{options.run}-b": options.others}
        settings["overlap"] = options.overlap
    question = Question.of(settings, options.command)
    decisions = None
    if options.decisions:
        decisions = read_decisions(options.decisions)
    encoder = AuthorEncoder.load(options.encoder)
    run = paths.Run(options.run)
    with _folders(options.run, *files):
        lists = [_read(options, path, folder, encoder) for folder, path in files.items()]
        same_texts = find_same_texts(lists, decisions)
        for sentence in page.same_texts_record(same_texts)["sentences"][:1]:
            print(sentence)
        answer = answers.match(*lists, question=question, decisions=decisions)
        answer = replace(answer, same_texts=same_texts)
        names = [Path(path).name for path in files.values()]
        record = page.answer_record(answer, names, options.encoder)
        report = page.write_page(answer, record, run.folder)
    for sentence in page.sentences("terminal", record):
        print(sentence)
    pairs = answer.pairs
    is_shown = pairs.state.isin([LINKED, LIKELY])
    if question.accounts:
        is_shown = pairs[SIDES].isin(answer.queries).any(axis=1)
    shown = page.printable_names(pairs[is_shown])
    print(f"\n{table(shown, answer.costs.min_probability)}\n{CARE}\n")
    print(f"page: {paths.display_path(report)}")


def table(pairs: pd.DataFrame, threshold: float) -> str:
    """Return pairs as a table of MAX_ROWS rows at most.

    Parameters
    ----------
    pairs : DataFrame
        PRINTED_COLUMNS, with the names to show
    threshold : float
        the least probability of a link
    """
    if pairs.empty:
        return "No pair is linked or likely."
    rows = pairs.head(MAX_ROWS)[PRINTED_COLUMNS]
    probabilities = [page.percent(probability, threshold) for probability in rows.probability]
    lines = rows.assign(probability=probabilities).to_string(index=False)
    if len(pairs) > len(rows):
        lines += f"\n... and {len(pairs) - len(rows):,} more"
    return lines


@contextmanager
def _folders(*runs):
    """Keep others from the folders of some runs, so that an answer is about its own files."""
    with ExitStack() as stack:
        for folder in sorted({paths.Run(run).folder for run in runs}):  # waited for in one order
            stack.enter_context(folder_lock(folder))
        yield


def _read(options, location, run, encoder):
    """Return the posts of a file."""
    location = str(Path(location).absolute())
    columns = {kind: getattr(options, kind) for kind in USUAL_NAMES}
    columns = {kind: column for kind, column in columns.items() if column}
    posts = reading.read_posts(paths.Run(run), location, encoder, columns, not options.names)
    if posts.card["columns"]["time"] is None and options.time != NO_TIMES:
        print(
            f"{Path(location).name}: no column is known to hold times (date, created_at ...), "
            "so the order of the rows counts as that of time and hours say nothing. Say --time "
            "<column> if there is one."
        )
    return posts
