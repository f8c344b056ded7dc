"""Make the encoder that ships from a run's trained stream, and measure it.

``python benchmarks/ship.py --help`` lists the options.

What is measured goes into a table of results: ranking of 16 against 16 posts in one gallery, beside
the TF-IDF that the gallery fits itself, each with s-norm and with AS-norm; and what a decision is
worth: calibration, recall and false links of pairs that are judged alone, and R@P90 in an open
world, where half of the accounts have nobody in the gallery. With ``--sizes`` it is calibration
alone, at several numbers of posts and of accounts.
"""

import argparse
import re
from pathlib import Path

import numpy as np
import pandas as pd
from fitting import USES, fit_encoder, fit_use

from helpers.accounts.encoder import COUNTED, ENOUGH, MAX_TOKENS, AuthorEncoder
from helpers.accounts.gallery import LINK_COSTS
from helpers.accounts.samples import halves, without_passages
from helpers.core import results
from helpers.core.names import label, short_name
from helpers.core.paths import Run
from helpers.evaluation import calibration, ranking
from helpers.evaluation.bootstrap import bootstrap_means, metric_table
from helpers.evaluation.models import GalleryTfidf, Member, as_model
from helpers.tokens import tokenizer as tokenizers
from helpers.tokens.store import TokenStore, build_store, open_store
from helpers.training.experiment import load_trained

POSTS = 16
SIZES = (4, 16, 64, 256)  # posts a side, for ``--sizes``
GALLERIES = (40, 100)  # accounts in a gallery, besides all
VARIANTS = {  # ending of a row's model -> how short_name says it
    "_gallery": {"norm": "s-norm"},
    "_near": {"norm": "AS-norm"},
    "_hours": {"note": "hours"},
    "_alone": {"note": "no gallery"},
}


def built(tokenizer, posts: Path, folder: Path) -> TokenStore:
    """Return the posts of a table as tokens, without topics; a store that is there is kept."""
    return build_store(
        posts, folder, tokenizer.encode, [], tokenizer.fingerprint, tokenizer.vocabulary
    )


def make(run: Run, stream: str, tokenizer, folder: Path) -> AuthorEncoder:
    """Fit all members and uses on a run's training and dev posts, read by a tokenizer."""
    tokens = folder.parent / f"{folder.name}-tokens"
    train = built(tokenizer, run.posts / "train.parquet", tokens / "train")
    dev = built(tokenizer, run.posts / "dev.parquet", tokens / "dev")
    trained = load_trained(run.models / stream, open_store(run.tokens / "train"))
    return fit_encoder(trained.encoder, train, dev, tokenizer)


def calibrated_anew(run: Run, encoder: AuthorEncoder, folder: Path) -> AuthorEncoder:
    """Fit the uses of an encoder anew on a run's dev posts; its members stay as they are."""
    place = folder.parent / f"{folder.name}-dev"
    dev = built(encoder.tokenizer, run.posts / "dev.parquet", place)
    uses = {use: fit_use(encoder, use, dev) for use in USES}
    return AuthorEncoder(encoder.tokenizer, encoder.members, uses, encoder.card)


def store_as_in_use(encoder: AuthorEncoder, posts: Path, folder: Path) -> TokenStore:
    """Return the posts of a table as an encoder reads them, without shared passages."""
    return without_passages(built(encoder.tokenizer, posts, folder), encoder.kinds)[0]


def measure_sizes(encoder: AuthorEncoder, store: TokenStore, split: str, file: Path) -> None:
    """Record Cllr and minCllr by posts a side, the first and the last, and accounts in the gallery.

    For galleries of fewer accounts than there are, the accounts are divided into such galleries,
    and the pairs of all are judged together.
    """
    model = encoder.model(True, False)
    about = {"protocol": "own accounts, sizes", "split": split, "max_tokens": MAX_TOKENS}
    for size in SIZES:
        first, last = halves(store, size, size)
        order = np.random.default_rng(0).permutation(len(first))
        for accounts in (*GALLERIES, len(first)):
            if not ENOUGH <= accounts <= len(first):
                continue
            galleries = order[: len(order) // accounts * accounts].reshape(-1, accounts)
            pairs = []
            for rows in galleries:
                scores = model.score_matrix(first[rows], last[rows], MAX_TOKENS)
                llr = encoder.uses["gallery"].llr(scores, size, size, accounts)
                pairs.append((llr, scores, np.eye(accounts, dtype=bool)))
            llr, scores, same = (np.concatenate(values, axis=None) for values in zip(*pairs))
            costs = {
                "Cllr": calibration.cllr(llr, same),
                "minCllr": calibration.min_cllr(scores, same),
            }
            shown = "all" if accounts == len(first) else accounts
            name = f"{size} posts, {shown} accounts"
            count = {"queries": galleries.size, "targets": accounts, "sample_size": size}
            results.record(file, metric_table(costs), model=name, label=name, **count, **about)
            print(split, name, costs, flush=True)


def measure(
    encoder: AuthorEncoder, posts: Path, split: str, name: str, file: Path, folder: Path
) -> None:
    """Record how an encoder ranks and decides among the accounts of a posts table."""
    tokenizer = encoder.tokenizer
    store = store_as_in_use(encoder, posts, folder)
    trials = ranking.ranking_trials(store, POSTS)
    models = {
        name: ("gallery", encoder.model(True, False)),
        f"{name}_hours": ("gallery_hours", encoder.model(True, True)),
        f"{name}_alone": ("alone", encoder.model(False, False)),
    }
    for ending, normaliser in (("gallery", "s_norm"), ("near", "as_norm")):
        models[f"{name}_{ending}"] = ("", encoder.fusion(False, normaliser))
    for kind in COUNTED:
        tfidf = GalleryTfidf(kind, tokenizer)
        for ending, normaliser in (("gallery", "s_norm"), ("near", "as_norm")):
            models[f"{kind}_{ending}"] = ("", as_model(Member(kind, tfidf, normaliser)))
    ranks = {}
    about = {
        "protocol": "own accounts",
        "split": split,
        "queries": len(trials.queries),
        "targets": len(trials.targets),
        "sample_size": POSTS,
        "max_tokens": MAX_TOKENS,
        "data": store.meta["fingerprint"],
    }
    for model, (use, scored) in models.items():
        scores = scored.score_matrix(trials.queries, trials.targets, MAX_TOKENS)
        measured, ranks[model] = ranking.evaluate_ranking(scored, trials, MAX_TOKENS)
        tables = [measured, open_world(scores)]
        if use:
            tables.append(decisions(encoder, use, scores))
        measured = pd.concat(tables)
        results.record(file, measured, model=model, label=name_of_row(model), **about)
        print(split, model, measured.value.round(3).to_dict(), flush=True)
    mrr = {model: (1 / ranks[model]).mean() for model in ranks if model.startswith(COUNTED)}
    best_tfidf = max(mrr, key=mrr.get)
    for base in (best_tfidf, f"{name}_gallery"):
        differences = ranking.ranking_differences(ranks[name], ranks[base])
        row = {"model": name, "label": name_of_row(name), "base": base}
        results.record(file, differences, **row, **about)


def open_world(scores: np.ndarray) -> pd.DataFrame:
    """Return R@P90 of the best targets, where every second query has no account in the gallery."""
    own = scores.diagonal()
    others = np.where(np.eye(len(scores), dtype=bool), -np.inf, scores).max(1)
    present = np.arange(len(scores)) % 2 == 0
    best = np.where(present, np.maximum(own, others), others)
    order = np.argsort(-best, kind="stable")
    right = (present & (own > others))[order].cumsum()
    precise = right >= 0.9 * (1 + np.arange(len(order)))
    return metric_table({"open_R@P90": right[precise].max(initial=0) / present.sum()})


def decisions(encoder: AuthorEncoder, use: str, scores: np.ndarray) -> pd.DataFrame:
    """Return Cllr, minCllr, recall and false links per 10,000 pairs at the default costs."""
    same = np.eye(len(scores), dtype=bool)
    targets = len(scores) if use.startswith("gallery") else 2
    llr = encoder.uses[use].llr(scores, POSTS, POSTS, targets)
    linked = llr >= LINK_COSTS.threshold
    rates = bootstrap_means({"found": linked.diagonal()}, np.arange(len(scores)), 1000, 0)
    measured = {
        "Cllr": calibration.cllr(llr.ravel(), same.ravel()),
        "minCllr": calibration.min_cllr(scores.ravel(), same.ravel()),
        "false_per_10000": 1e4 * linked[~same].mean(),
    }
    return pd.concat([rates, metric_table(measured)])


def name_of_row(model: str) -> str:
    """Name encoder and use: "open-small, hours"; "small, no Rust" was made without a community."""
    for ending, variant in VARIANTS.items():
        if model.endswith(ending):
            return short_name(name_of_row(model.removesuffix(ending)), **variant)
    if model in COUNTED:
        return label(model)
    without = re.fullmatch(r"without_([a-z]+)_(\w+)", model)
    if without:
        return f"{without[2]}, no {without[1].title()}"
    return model.replace("_", "-")


def add_measurements(folder: Path, table: Path) -> None:
    """Write the measurements of a folder into a table, in place of its rows of the same ones."""
    rows = pd.concat([results.read_results(table), results.read_results(folder)])
    rows = rows.drop_duplicates([*results.KEY, "metric"], keep="last")
    rows.to_csv(table, index=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--run", default="open", help="whose posts and models it is made of")
    parser.add_argument(
        "--stream", default="T-luar", help="the trained stream, which reads text alone"
    )
    parser.add_argument(
        "--tokenizer",
        help="a folder with another tokenizer than the run's, such as one without names",
    )
    parser.add_argument(
        "--folder",
        required=True,
        help="where it is kept; what is there is measured, not made again",
    )
    parser.add_argument(
        "--calibrate", action="store_true", help="fit the uses of what is there anew"
    )
    parser.add_argument(
        "--sizes", action="store_true", help="measure calibration alone, at several sizes"
    )
    parser.add_argument("--name", default="open_small", help="of its rows in the table of results")
    parser.add_argument("--results", required=True, help="the table of results, a CSV")
    parser.add_argument(
        "--on",
        nargs="+",
        default=[],
        metavar="SPLIT=POSTS.parquet",
        help="accounts to measure it on",
    )
    options = parser.parse_args()
    run, folder = Run(options.run), Path(options.folder)
    if not (folder / "model.json").exists():
        tokenizer = tokenizers.load_tokenizer(options.tokenizer or run.tokenizer)
        make(run, options.stream, tokenizer, folder).save(folder)
    encoder = AuthorEncoder.load(folder)
    if options.calibrate:
        encoder = calibrated_anew(run, encoder, folder)
        encoder.save(folder)
    measurements = Path(options.results).with_suffix("")
    for each in options.on:
        split, _, posts = each.partition("=")
        tokens = folder.parent / f"{folder.name}-{split}"
        if options.sizes:
            store = store_as_in_use(encoder, Path(posts), tokens)
            measure_sizes(encoder, store, split, measurements)
            continue
        measure(encoder, Path(posts), split, options.name, measurements, tokens)
    add_measurements(measurements, Path(options.results))


if __name__ == "__main__":
    main()
