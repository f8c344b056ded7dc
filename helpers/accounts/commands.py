"""The commands ``authorbook encode | nearest | compare | mine``, each with its parsed options."""

import os
from argparse import Namespace
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from helpers.accounts import reading
from helpers.accounts.encoder import AuthorEncoder
from helpers.accounts.gallery import LINK_COSTS
from helpers.accounts.log import log_ranking
from helpers.accounts.passages import passage_hashes, without_passages
from helpers.accounts.samples import newest_posts
from helpers.core import locks, paths
from helpers.core.artifacts import atomic_write, make_folder
from helpers.core.files import check_target, write_target
from helpers.core.terminal import printable
from helpers.evaluation.detection import DetectionCosts
from helpers.runs import pipeline, report

SHIPPED = (
    "Probabilities come from the calibration that ships; `authorbook mine` checks it on your "
    "accounts."
)
CARE = "These are likelihoods, not proof: read the posts, and let a person decide."
NOTEBOOK = "13_your_accounts.ipynb"
VECTOR_COLUMNS = ["account", "posts", "vector"]


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
            f"to compare two files of posts: authorbook compare {options.posts} {options.out}"
        )
    target = (options.out, [options.posts], _has_vectors, options.force)
    check_target(*target)
    encoder = AuthorEncoder.load(options.encoder)
    with _folders(options.run):
        posts, names = _read(options, options.posts, options.run, encoder)
        _write_vectors(target, encoder, posts, names)


def _write_vectors(target, encoder, posts, names):
    """Write the vectors of :func:`encode` to the file that a target's first value names."""
    samples = newest_posts(posts.store)
    frame = pd.DataFrame(
        {
            "account": _shown(posts.names[samples.authors], names),
            "posts": samples.count,
            "vector": list(encoder.vectors(samples, posts.hours)),
        },
        columns=VECTOR_COLUMNS,
    )
    with write_target(*target) as partial:
        frame.to_parquet(partial, index=False)
    print(f"{len(frame)} accounts x {len(frame.vector[0])} -> {target[0]}")


def nearest(options: Namespace) -> None:
    """Print the accounts of a file that are most similar to one of them, best first."""
    encoder = AuthorEncoder.load(options.encoder)
    with _folders(options.run):
        posts, names = _read(options, options.posts, options.run, encoder)
        queries = reading.choose_queries(posts, [options.account])
        gallery = posts.gallery_for(encoder, posts.samples(queries))
        _print_ranking(options, gallery, gallery.accounts(queries), queries, names)


def compare(options: Namespace) -> None:
    """Print, for each account of a first file, the most similar accounts of a second one.

    Posts of the first file lose the passages that the second file holds word for word; accounts
    with too few posts left are not asked about.

    Raises
    ------
    ValueError
        Where only one of the files has times, or no account of the first file has enough posts
        left.
    """
    encoder = AuthorEncoder.load(options.encoder)
    with _folders(options.run, f"{options.run}-a", f"{options.run}-b"):
        _compare(options, encoder)


def _compare(options, encoder):
    """Print the answer of :func:`compare`, in whose folders nobody else is at work."""
    posts, names = _read(options, options.posts, f"{options.run}-a", encoder)
    targets, target_names = _read(options, options.others, f"{options.run}-b", encoder)
    if posts.hours != targets.hours:
        raise ValueError(
            "only one of the files has times: name a time column of both, or of neither"
        )
    target_hashes = passage_hashes(targets.store, encoder.kinds)
    queries = newest_posts(without_passages(posts.store, encoder.kinds, target_hashes)[0])
    if not len(queries):
        raise ValueError(
            "all posts of the first file stand word for word in the second one, too: do they "
            "overlap?"
        )
    print(
        f"We ask about {len(queries)} of {len(posts.names)} accounts of the first file. The others "
        "have too few posts that do not stand word for word in the second file, too."
    )
    query_names = _shown(posts.names[queries.authors], names)
    query_names = [f"{name} (first file)" for name in query_names]
    gallery = targets.gallery_for(encoder, queries)
    _print_ranking(options, gallery, queries, query_names, target_names)


def mine(options: Namespace) -> None:
    """Run notebook 13 on own posts and write it to one HTML page.

    After an error the page shows the notebook up to the error.

    Raises
    ------
    ValueError
        Where the notebook fails, after the page is written.
    """
    os.environ.setdefault("TQDM_DISABLE", "1")  # progress bars would be saved in the page
    # the notebook keeps the posts in a folder of its own
    with _folders(options.run, f"{options.run}-accounts"):
        _make_page(options)


def _make_page(options):
    """Run the notebook of :func:`mine`, in whose folders nobody else is at work."""
    import papermill

    run = paths.Run(options.run)
    make_folder(run.notebooks)
    executed = run.notebooks / NOTEBOOK
    executed.unlink(missing_ok=True)  # it is about other posts
    path = Path(options.posts).absolute()
    let_in = pipeline.SET.format(locks.VARIABLE, locks.held_folders())
    arguments = [*pipeline.PAPERMILL["extra_arguments"], let_in]
    problem = ""
    try:
        papermill.execute_notebook(
            paths.NOTEBOOKS / NOTEBOOK,
            executed,
            _parameters(options, path),
            cwd=paths.NOTEBOOKS,
            **pipeline.PAPERMILL | {"progress_bar": True, "extra_arguments": arguments},
        )
    except Exception as error:
        problem = pipeline.failure(error)
        if isinstance(error, OSError):  # the notebook could not be written, and is cut off
            executed.unlink(missing_ok=True)
    if executed.exists():
        content = executed.read_text("utf-8")
        with atomic_write(executed) as partial:  # the page must not show the user's folders
            partial.write_text(content.replace(str(path), path.name), "utf-8")
        title = f"authorbook: {options.run}"
        page = report.build_report([executed], run.folder / "report.html", title, f"<p>{CARE}</p>")
        print(f"page: {paths.display_path(page)}")
    if problem:
        raise ValueError(problem)


@contextmanager
def _folders(*runs):
    """Keep others from the folders of some runs, so that an answer is about its own files."""
    with ExitStack() as stack:
        for folder in sorted(paths.Run(run).folder for run in runs):  # waited for in one order
            stack.enter_context(locks.folder_lock(folder, wait=True))
        yield


def _has_vectors(path):
    """Return whether a file is one that :func:`encode` has written."""
    try:
        return pq.read_schema(path).names == VECTOR_COLUMNS
    except (OSError, pa.ArrowException):
        return False


def _parameters(options, path):
    """Return the parameters of notebook 13; without --names, accounts become pseudonyms."""
    accounts = options.accounts
    if not options.names:
        accounts = [reading.pseudonym_of(name) for name in accounts]
    parameters = {
        name: getattr(options, name) for name in ("run", "k", "prior", "encoder", "names")
    }
    columns = _columns(options)
    return parameters | {"posts": str(path), "columns": columns, "accounts": accounts}


def _columns(options):
    """Return the columns that the user named: kind -> column."""
    columns = {kind: getattr(options, kind) for kind in ("author", "time", "topic", "text")}
    return {kind: column for kind, column in columns.items() if column}


def _read(options, location, run, encoder):
    """Return the posts of a file, and a dict pseudonym -> name to show, empty without --names."""
    location = str(Path(location).absolute())
    columns = _columns(options)
    posts = reading.read_posts(paths.Run(run), location, encoder, columns)
    if not options.names:
        return posts, {}
    return posts, reading.own_names(location, columns)


# Replace each pseudonym by its name, where ``names`` has one.
def _shown(accounts, names):
    return [names.get(account, account) for account in accounts]


def _print_ranking(options, gallery, queries, query_names, names):
    """Rank the gallery's accounts for each query, log the ranking by pseudonym, and print it.

    ``query_names`` are shown for the queries; ``names`` (pseudonym -> name) replaces pseudonyms.
    """
    costs = DetectionCosts.of(LINK_COSTS.model_dump() | {"prior": options.prior})
    ranking = gallery.rank(queries, query_names, options.k, costs)
    log_ranking(paths.Run(options.run), ranking)
    for side in ("query", "target"):
        ranking[side] = [printable(name) for name in _shown(ranking[side], names)]
    columns = ranking.drop(columns=["score"])
    print(columns.to_string(index=False, na_rep="", float_format="{:.3f}".format))

    roughly = f", {gallery.beyond:,} of them by their vectors only" if gallery.beyond else ""
    accounts = len(gallery) + gallery.beyond
    errors = gallery.encoder.card.get("errors", "")
    print(f"\n{accounts:,} accounts were compared{roughly}.", errors, SHIPPED, CARE)
