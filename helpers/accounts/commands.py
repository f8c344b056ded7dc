"""What ``authorbook encode | nearest | compare | mine`` do, each with its parsed options."""

import os
from argparse import Namespace
from pathlib import Path

import pandas as pd

from helpers.accounts import own
from helpers.accounts.encoder import AuthorEncoder
from helpers.accounts.gallery import AccountGallery, Decision
from helpers.accounts.posts import newest, passages, without_passages
from helpers.runs import paths, pipeline, report
from helpers.runs.artifacts import atomic_write

SHIPPED = "Probabilities are those of the map that ships; `authorbook mine` checks it on your accounts."
CARE = "These are likelihoods, not proof: read the posts, and let a person decide."


def encode(options: Namespace) -> None:
    """Accounts as vectors into a Parquet file: ``account, posts, vector``."""
    encoder, posts, shown = _read(options, options.posts, options.run)
    samples = newest(posts.store)
    frame = pd.DataFrame({"account": map(shown, posts.names[samples.authors]), "posts": samples.count,
                          "vector": list(encoder.vectors(samples, posts.hours))})  # fmt: skip
    with atomic_write(options.out) as partial:
        frame.to_parquet(partial, index=False)
    print(f"{len(frame)} accounts x {len(frame.vector[0])} -> {options.out}")


def nearest(options: Namespace) -> None:
    """The accounts most like one account."""
    encoder, posts, shown = _read(options, options.posts, options.run)
    asked = own.asked(posts, [options.account])
    gallery = posts.around(encoder, posts.samples(asked))
    _tell(options, gallery, gallery.accounts(asked), asked, shown)


def compare(options: Namespace) -> None:
    """The accounts of a second file that are most like those of the first."""
    encoder, posts, shown = _read(options, options.posts, f"{options.run}-a")
    _, others, other = _read(options, options.others, f"{options.run}-b")
    if posts.hours != others.hours:
        raise ValueError("one file has times and the other has none: name no time column, or one of each")
    asked = newest(without_passages(posts.store, encoder.kinds, passages(others.store, encoder.kinds))[0])
    if not len(asked):
        raise ValueError("nothing is left of the first file that does not stand in the second, too: do they overlap?")
    print(f"{len(asked)} of {len(posts.names)} accounts of the first file are asked about; of the others too little is "
          "left that does not stand word for word in the second file, too")  # fmt: skip
    names = [f"{shown(name)} (first file)" for name in posts.names[asked.authors]]
    _tell(options, others.around(encoder, asked), asked, names, other)


def mine(options: Namespace) -> None:
    """Notebook 13 on own posts, as one page; what was found before an error is shown all the same."""
    import papermill

    files, source, path = paths.Run(options.run), "13_your_accounts.ipynb", Path(options.posts).absolute()
    files.notebooks.mkdir(parents=True, exist_ok=True)
    executed, problem = files.notebooks / source, ""
    accounts = options.accounts if options.names else [*map(own.pseudonym, options.accounts)]
    given = {"run": options.run, "posts": str(path), "columns": _columns(options), "accounts": accounts, "k": options.k,
             "prior": options.prior, "encoder": options.encoder, "names": options.names}
    os.environ.setdefault("TQDM_DISABLE", "1")  # of the notebook: its bars would stand on the page
    try:
        with pipeline.alone(options.run):
            papermill.execute_notebook(paths.NOTEBOOKS / source, executed, given, cwd=paths.NOTEBOOKS,
                                       **pipeline.PAPERMILL | {"progress_bar": True})  # fmt: skip
    except Exception as error:
        problem = pipeline.failure(error)
    if executed.exists():  # no folder of anybody is shown
        executed.write_text(executed.read_text("utf-8").replace(str(path), path.name), "utf-8")
        page = report.build([executed], files.folder / "report.html", f"authorbook: {options.run}", f"<p>{CARE}</p>")
        print(f"page: {paths.shown(page)}")
    if problem:
        raise ValueError(problem)


def _columns(options):
    return {name: getattr(options, name) for name in ("author", "time", "topic", "text") if getattr(options, name)}


def _read(options, location, run):
    """The encoder, the posts of a file, and how an account is shown."""
    encoder, location = AuthorEncoder.load(options.encoder), str(Path(location).absolute())
    posts = own.read(paths.Run(run), location, encoder, _columns(options))
    names = own.own_names(location, _columns(options)) if options.names else {}
    return encoder, posts, lambda account: names.get(account, account)


def _tell(options, gallery: AccountGallery, queries, names, shown):
    """Rank, keep and print."""
    found = gallery.rank(queries, names, options.k, Decision.of({"prior": options.prior}))
    own.keep(paths.Run(options.run), found)
    found = found.assign(query=found["query"].map(shown), target=found["target"].map(shown))
    print(found.drop(columns=["score"]).to_string(index=False, na_rep="", float_format="{:.3f}".format))
    roughly = f", {gallery.beyond:,} of them by their vectors only" if gallery.beyond else ""
    everyone = len(gallery) + gallery.beyond
    print(f"\n{everyone:,} accounts were compared{roughly}.", gallery.encoder.card.get("errors", ""), SHIPPED, CARE)
