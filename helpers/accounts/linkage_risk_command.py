"""The command ``authorbook linkage-risk``: what a corpus would betray before it is released."""

import time
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path

from ..core import paths
from ..core.artifacts import atomic_write, folder_lock, write_json
from ..core.messages import printable
from . import linkage_changes, reading
from .columns import column_types
from .encoder import ENOUGH, AuthorEncoder
from .linkage_risk import PAUSE_SECONDS, deal_posts, measure_risk
from .linkage_risk_page import risk_facts, risk_page, risk_sentences

PAGE = "linkage_risk.html"


def linkage_risk(options: Namespace) -> None:
    """Measure the linkage risk of a corpus, and write one page, a JSON and a CSV file about it.

    Raises
    ------
    ValueError
        Where the file has no times and is to be split by time, has too few authors, or an option
        is none.
    """
    if options.max_authors < ENOUGH:
        raise ValueError(f"--max-authors {options.max_authors}: a number from {ENOUGH} on")
    began = time.monotonic()
    run = paths.Run(options.run)
    uncleaned_run = paths.Run(f"{options.run}-uncleaned")
    with ExitStack() as stack:
        for folder in sorted((run.folder, uncleaned_run.folder)):  # waited for in one order
            stack.enter_context(folder_lock(folder))
        encoder = AuthorEncoder.load(options.encoder)
        posts, uncleaned = _read_both(options, run, uncleaned_run, encoder)
        name = Path(options.encoder).name
        pause = PAUSE_SECONDS if options.split == "time" else 0
        risk = measure_risk(
            posts, encoder, name, uncleaned, pause, options.max_authors, options.seed
        )
        about = {
            "corpus": Path(options.posts).name,
            "split": options.split,
            "seed": options.seed,
            "encoder": name,
            "hours": posts.hours,
            "minutes": round((time.monotonic() - began) / 60, 1),
        }
        _write(run, risk, risk_facts(risk, posts.card, about))


def _read_both(options, run, uncleaned_run, encoder):
    """Return the posts of the file as they are dealt to the two sides, cleaned and not cleaned."""
    location = str(Path(options.posts).absolute())
    columns = {kind: getattr(options, kind) for kind in ("author", "time", "topic", "text")}
    columns = {kind: column for kind, column in columns.items() if column}
    if options.split == "time" and column_types(location, columns)["time"] is None:
        raise ValueError(
            "--split time needs the times of posts: name their column with --time, or deal the "
            "posts at random with --split half"
        )
    posts = reading.read_posts(
        run, location, encoder, columns, max_accounts=reading.MAX_SCORED_ACCOUNTS
    )
    print(
        f"{posts.card['posts']:,} posts of {posts.card['authors']:,} authors were read. Now they "
        "are read once more without cleaning, then measured: minutes for hundreds of authors, an "
        "hour for thousands."
    )
    uncleaned = linkage_changes.read_uncleaned_posts(
        uncleaned_run, location, encoder, posts.names, columns
    )
    if options.split == "time":
        return posts, uncleaned
    return deal_posts(posts, options.seed), deal_posts(uncleaned, options.seed)


def _write(run, risk, facts):
    """Write the page and both tables, and print the answer."""
    write_json(run.folder / "risk.json", facts)
    with atomic_write(run.folder / "risk.csv") as partial:
        risk.metrics.to_csv(partial, index=False)
    page = run.folder / PAGE
    with atomic_write(page) as partial:
        partial.write_text(risk_page(facts), "utf-8")
    for sentence in risk_sentences(facts):
        print(printable(sentence))
    print(f"page: {paths.display_path(page)}; all numbers: risk.json and risk.csv beside it")
