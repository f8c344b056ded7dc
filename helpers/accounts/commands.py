"""The commands ``authorbook encode | nearest | compare | mine``, each with its parsed options."""

import os
from argparse import Namespace
from pathlib import Path

import pandas as pd

from helpers.accounts import reading
from helpers.accounts.encoder import AuthorEncoder
from helpers.accounts.gallery import LINK_COSTS, AccountGallery
from helpers.accounts.samples import newest_posts, passages, without_passages
from helpers.core import paths
from helpers.core.artifacts import atomic_write
from helpers.evaluation.detection import DetectionCosts
from helpers.runs import pipeline, report

SHIPPED = "Probabilities come from the calibration that ships; `authorbook mine` checks it on your accounts."
CARE = "These are likelihoods, not proof: read the posts, and let a person decide."


def encode(options: Namespace) -> None:
    """Write accounts as vectors to a Parquet file: ``account, posts, vector``."""
    encoder, posts, shown = _read(options, options.posts, options.run)
    samples = newest_posts(posts.store)
    frame = pd.DataFrame({"account": map(shown, posts.names[samples.authors]), "posts": samples.count,
                          "vector": list(encoder.vectors(samples, posts.hours))})  # fmt: skip
    with atomic_write(options.out) as partial:
        frame.to_parquet(partial, index=False)
    print(f"{len(frame)} accounts x {len(frame.vector[0])} -> {options.out}")


def nearest(options: Namespace) -> None:
    """Rank the accounts that are most similar to one account."""
    encoder, posts, shown = _read(options, options.posts, options.run)
    asked = reading.choose_queries(posts, [options.account])
    gallery = posts.around(encoder, posts.samples(asked))
    _tell(options, gallery, gallery.accounts(asked), asked, shown)


def compare(options: Namespace) -> None:
    """Rank the accounts of a second file for each account of a first one."""
    encoder, posts, shown = _read(options, options.posts, f"{options.run}-a")
    _, others, other = _read(options, options.others, f"{options.run}-b")
    if posts.hours != others.hours:
        raise ValueError(
            "only one of the files has times: name a time column of both, or of neither"
        )
    asked = newest_posts(
        without_passages(posts.store, encoder.kinds, passages(others.store, encoder.kinds))[0]
    )
    if not len(asked):
        raise ValueError(
            "all posts of the first file stand word for word in the second one, too: do they overlap?"
        )
    print(f"We ask about {len(asked)} of {len(posts.names)} accounts of the first file. The others have too few posts "
          "that do not stand word for word in the second file, too.")  # fmt: skip
    names = [f"{shown(name)} (first file)" for name in posts.names[asked.authors]]
    _tell(options, others.around(encoder, asked), asked, names, other)


def mine(options: Namespace) -> None:
    """Run notebook 13 on own posts and make one page of it, after an error of what was done before."""
    import papermill

    files, source, path = (
        paths.Run(options.run),
        "13_your_accounts.ipynb",
        Path(options.posts).absolute(),
    )
    files.notebooks.mkdir(parents=True, exist_ok=True)
    executed, problem = files.notebooks / source, ""
    accounts = options.accounts if options.names else [*map(reading.pseudonym_of, options.accounts)]
    given = {
        "run": options.run,
        "posts": str(path),
        "columns": _columns(options),
        "accounts": accounts,
        "k": options.k,
        "prior": options.prior,
        "encoder": options.encoder,
        "names": options.names,
    }
    os.environ.setdefault("TQDM_DISABLE", "1")  # of the notebook: its bars would stand on the page
    try:
        with pipeline.run_lock(options.run):
            papermill.execute_notebook(paths.NOTEBOOKS / source, executed, given, cwd=paths.NOTEBOOKS,
                                       **pipeline.PAPERMILL | {"progress_bar": True})  # fmt: skip
    except Exception as error:
        problem = pipeline.failure(error)
    if executed.exists():  # no folder of anybody is shown
        executed.write_text(executed.read_text("utf-8").replace(str(path), path.name), "utf-8")
        page = report.build_report(
            [executed], files.folder / "report.html", f"authorbook: {options.run}", f"<p>{CARE}</p>"
        )
        print(f"page: {paths.display_path(page)}")
    if problem:
        raise ValueError(problem)


def _columns(options):
    return {
        name: getattr(options, name)
        for name in ("author", "time", "topic", "text")
        if getattr(options, name)
    }


def _read(options, location, run):
    """Return the encoder, the posts of a file, and a function that names an account as it is shown."""
    encoder, location = AuthorEncoder.load(options.encoder), str(Path(location).absolute())
    posts = reading.read_posts(paths.Run(run), location, encoder, _columns(options))
    names = reading.own_names(location, _columns(options)) if options.names else {}
    return encoder, posts, lambda account: names.get(account, account)


def _tell(options, gallery: AccountGallery, queries, names, shown):
    """Rank, keep and print."""
    costs = DetectionCosts.of(LINK_COSTS.model_dump() | {"prior": options.prior})
    found = gallery.rank(queries, names, options.k, costs)
    reading.log_ranking(paths.Run(options.run), found)
    found = found.assign(query=found["query"].map(shown), target=found["target"].map(shown))
    print(
        found.drop(columns=["score"]).to_string(
            index=False, na_rep="", float_format="{:.3f}".format
        )
    )
    roughly = f", {gallery.beyond:,} of them by their vectors only" if gallery.beyond else ""
    everyone = len(gallery) + gallery.beyond
    print(
        f"\n{everyone:,} accounts were compared{roughly}.",
        gallery.encoder.card.get("errors", ""),
        SHIPPED,
        CARE,
    )
