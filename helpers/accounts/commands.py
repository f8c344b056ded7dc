"""The commands of ``authorbook``, ``encode`` to ``mine``, each with its parsed options."""

from argparse import Namespace
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pandas as pd

from ..core import paths
from ..core.artifacts import folder_lock
from ..core.files import check_target, write_target
from ..core.progress import progress_bar
from ..corpus.loss_lines import NAME_FORMS, name_forms
from ..sources.table import author_names, column_names
from . import page, reading
from .decisions import find_same_texts, own_names, read_decisions
from .encoder import AuthorEncoder
from .match import LINKED, Question, answer_question
from .reading import NO_TIMES, USUAL_NAMES
from .samples import spread_posts
from .two_lists import comparable_lists

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
        posts, names = _read(options, options.posts, options.run, encoder)
        samples = spread_posts(posts.store)
        accounts = posts.names[samples.authors]
        frame = pd.DataFrame(
            {
                "account": [names.get(account, account) for account in accounts],
                "posts": samples.count,
                "vector": list(encoder.vectors(samples, posts.hours)),
            }
        )
        with write_target(options.out) as partial:
            frame.to_parquet(partial, index=False)
    print(f"{len(frame)} accounts x {len(frame.vector[0])} -> {options.out}")
    left_out = page.set_aside_record(posts.set_aside.assign(list=""), names)
    left_out = [group["sentence"] for group in left_out]
    for sentence in [*page.sentences("passages", page.read_record(posts)), *left_out]:
        print(sentence)


def mine(options: Namespace) -> None:
    """Answer which accounts of a file may be one person's, on one page.

    Raises
    ------
    ValueError
        Where the file cannot be read, an account is not there, or a number is none.
    """
    question = Question.of(
        {"accounts": tuple(options.accounts), "k": options.k, "prior": options.prior}, "mine"
    )
    _answer(options, question, {options.run: (options.posts, {})})


def match(options: Namespace) -> None:
    """Answer which accounts of two files, or of two sides of one, may be one person's.

    Raises
    ------
    ValueError
        Where there are not two lists of enough accounts, a number or a decision is none, or only
        one of the lists has times.
    """
    question = Question.of(
        {"accounts": tuple(options.accounts), "overlap": options.overlap}, "match"
    )
    folders = (f"{options.run}-a", f"{options.run}-b")
    _answer(options, question, dict(zip(folders, _sides(options), strict=True)))


def _sides(options):
    """Return for each list its file, and which rows of it are read: {column: value}, or all."""
    if bool(options.others) == bool(options.side):
        raise ValueError(
            "name two files; or one file and, with --side, its column that says who is in which "
            "list"
        )
    if options.others:
        return [(options.posts, {}), (options.others, {})]
    location = str(Path(options.posts).absolute())
    columns = column_names(location)
    if options.side not in columns:
        raise ValueError(
            f"{options.posts} has no column {options.side!r}; it has {', '.join(columns)}"
        )
    all_values = author_names(location, options.side)
    values = [value for value in all_values if value.strip()]
    if len(values) < len(all_values):
        print(
            f"Rows of {Path(location).name} without a value of {options.side} are in neither list "
            "and are not read."
        )
    if len(values) != 2:
        shown = [repr(value) for value in values[:5]]
        if len(values) > len(shown):
            shown.append("...")
        raise ValueError(
            f"the column {options.side!r} must have two values, one for each list; it has "
            f"{len(values)}: {', '.join(shown)}"
        )
    return [(options.posts, {options.side: value}) for value in values]


def _answer(options, question, sides):
    """Write and print the answer about the lists ``sides``: folder -> file, which rows of it."""
    decisions = None
    if options.decisions:
        decisions = read_decisions(options.decisions)
    encoder = AuthorEncoder.load(options.encoder)
    run = paths.Run(options.run)
    lists = []
    names = {}
    files = []
    with _folders(options.run, *sides):
        for folder, (location, where) in sides.items():
            posts, names_of_file = _read(options, location, folder, encoder, where)
            lists.append(posts)
            names |= names_of_file
            of_rows = [f" where {column} is {value}" for column, value in where.items()]
            files.append(Path(location).name + "".join(of_rows))
        if len(lists) == 2:
            lists = comparable_lists(*lists, encoder.kinds)
        same_texts = find_same_texts(*lists, decisions=decisions)
        for sentence in page.same_texts_record(same_texts, names)["sentences"][:1]:
            print(sentence)
        answer = answer_question(lists[0], encoder, question, decisions, *lists[1:])
        answer = replace(answer, same_texts=same_texts, shown_names=names)
        links = answer.new_pairs[answer.new_pairs.state == LINKED]
        page.log_answer(run, answer.queries, links)
        record = page.answer_record(answer, files, options.encoder, _evidence_bar)
        path = page.write_page(answer, record, run.folder)
    _print_answer(answer, record, question.accounts)
    print(f"page: {paths.display_path(path)}")


def _print_answer(answer, record, accounts):
    """Print what a record says, and the pairs of the accounts that the user named."""
    said = list(record["unknown"])
    for of_list in record["lists"]:
        said += page.sentences("passages", of_list)
    said += [record["headline"], *record["sentences"]]
    is_all = len(answer.queries) == answer.compared_accounts or accounts
    if not (answer.is_one and is_all):
        said += record["asked"]
    said += [group["sentence"] for group in record["set_aside"]]
    if not answer.is_one:
        said += [*record["decided"], *record["fitted_on"], *record["assumed"]]
    for sentence in said:
        print(sentence)

    pairs = answer.new_pairs
    if accounts:
        pairs = pairs[pairs[["account_a", "account_b"]].isin(answer.queries).any(axis=1)]
    elif answer.is_one:
        return
    else:
        pairs = pairs.drop_duplicates("account_a")
    print(f"\n{table(page.pairs_table(answer).loc[pairs.index])}\n{CARE}\n")


def table(pairs: pd.DataFrame) -> str:
    """Return pairs as a table of MAX_ROWS rows at most.

    Parameters
    ----------
    pairs : DataFrame
        PRINTED_COLUMNS, with the names to show
    """
    if pairs.empty:
        return "No pair has a probability of 1% or more."
    rows = pairs.head(MAX_ROWS)[PRINTED_COLUMNS]
    probability = rows.probability.map("{:.3f}".format)
    # none is rounded to certainty
    rows = rows.assign(probability=probability.mask(rows.probability > 0.999, ">0.999"))
    lines = rows.to_string(index=False)
    if len(pairs) > len(rows):
        lines += f"\n... and {len(pairs) - len(rows):,} more"
    return lines


def _evidence_bar(pairs):
    """Show a bar while the evidence of pairs is collected."""
    return progress_bar(pairs, desc="evidence", unit="pair", delay=2)


@contextmanager
def _folders(*runs):
    """Keep others from the folders of some runs, so that an answer is about its own files."""
    with ExitStack() as stack:
        for folder in sorted({paths.Run(run).folder for run in runs}):  # waited for in one order
            stack.enter_context(folder_lock(folder))
        yield


def _read(options, location, run, encoder, where=None):
    """Return the posts of a file, and a dict pseudonym -> name to show, empty without --names."""
    location = str(Path(location).absolute())
    columns = {kind: getattr(options, kind) for kind in USUAL_NAMES}
    columns = {kind: column for kind, column in columns.items() if column}
    posts = reading.read_posts(paths.Run(run), location, encoder, columns, where=where)
    if posts.card["columns"]["time"] is None and options.time != NO_TIMES:
        print(
            f"{Path(location).name}: no column is known to hold times (date, created_at ...), "
            "so the order of the rows counts as that of time and hours say nothing. Say --time "
            "<column> if there is one."
        )
    if not options.names:
        return posts, {}
    if posts.card.get(NAME_FORMS):
        posts.card["name_forms"] = name_forms(location, posts.card["columns"]["author"])
    return posts, own_names(location, columns)
