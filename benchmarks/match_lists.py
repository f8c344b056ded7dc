"""Measure matching on accounts of a posts table, with an encoder that never saw them.

``python benchmarks/match_lists.py --help`` lists the options.

The two lists are the first 16 and the last 16 posts of accounts, compared by text alone. Of an
overlap below 1, pairs of lists are drawn many times from these accounts. A query that is asked
alone is scored in the gallery of targets. Ways that know both lists read the mean of this score and
of that of the target in the gallery of queries, as the command ``match`` does, see
:mod:`helpers.evaluation.lists`. Both galleries hold all accounts, not only the drawn ones.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from ship import POSTS, add_measurements, store_as_in_use

from helpers.accounts.encoder import MAX_TOKENS, AuthorEncoder
from helpers.core import results
from helpers.evaluation import lists as drawn_lists
from helpers.evaluation import ranking
from helpers.evaluation.bootstrap import metric_table
from helpers.evaluation.matching import MatchConfig

DRAWS = {1.0: 1, 0.5: 20, 0.1: 100, 0.01: 100}  # overlap: number of pairs of lists
MEAN_PROBABILITY = 0.9  # of the likeliest answers whose precision is measured
WAYS = (drawn_lists.ALONE, drawn_lists.AS_LIST, drawn_lists.MATCHED)


def score(encoder: AuthorEncoder, posts: Path, folder: Path) -> list[np.ndarray]:
    """Return the scores of the first posts of N accounts with the last posts of all.

    Parameters
    ----------
    encoder : has not seen the accounts
    posts : posts table of the accounts
    folder : for their tokens

    Returns
    -------
    Two arrays (N, N), a row for each account's first posts: these are asked in the gallery of last
    posts; and the other way round
    """
    store = store_as_in_use(encoder, posts, folder)
    trials = ranking.ranking_trials(store, POSTS)
    model = encoder.model(True, False)
    scores = model.score_matrix(trials.queries, trials.targets, MAX_TOKENS)
    reverse_scores = model.score_matrix(trials.targets, trials.queries, MAX_TOKENS)
    return [scores, reverse_scores.T]


def measure(
    encoder: AuthorEncoder, scores: list[np.ndarray], name: str, file: Path, split: str
) -> None:
    """Record what each way to answer finds at each overlap, and how right probabilities are.

    Parameters
    ----------
    encoder : brings the line of the log-weights
    scores : result of :func:`score`
    name : of the encoder, in the table of results
    file : the folder of measurements
    split : name of the accounts
    """
    line = MatchConfig(**encoder.card["lines"]["gallery"])
    about = {"split": split, "sample_size": POSTS, "max_tokens": MAX_TOKENS}
    for overlap, count in DRAWS.items():
        protocol = "matched" if overlap == 1 else f"matched, overlap {overlap:g}"
        both_ways = sum(scores) / 2
        lists = drawn_lists.match_drawn_lists(
            scores[0], line, overlap, count, list_scores=both_ways
        )
        drawn_lists.record_lists(file, lists, name, protocol, WAYS, **about)
        system = drawn_lists.name_of_way(name, drawn_lists.MATCHED)
        size = len(lists.answers[drawn_lists.MATCHED]) // count
        row = {"model": system, "label": system, "queries": size, "targets": size}
        matched = lists.answers[drawn_lists.MATCHED]
        precision = precision_at_mean(matched, MEAN_PROBABILITY)
        found = lists.calibration() | {f"right, mean {MEAN_PROBABILITY:.0%}": precision}
        calibration = metric_table(found)
        results.record(file, calibration, protocol=f"{protocol}, calibration", **row, **about)
        print(split, protocol, calibration.value.round(3).to_dict(), flush=True)


def precision_at_mean(answers: pd.DataFrame, mean: float) -> float:
    """Return the precision of the likeliest answers whose mean probability is ``mean``.

    If the probabilities hold, it is about ``mean``.

    Parameters
    ----------
    answers : whose values are probabilities
    mean : the least mean probability of the answers that are taken, likeliest first

    Returns
    -------
    The share of right ones; NaN if the likeliest answer is less likely than ``mean``
    """
    likeliest = answers.sort_values("value", ascending=False, kind="stable")
    is_likely = likeliest["value"].expanding().mean() >= mean - 1e-9  # sums are not exact
    return likeliest["right"][is_likely].mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--encoder", default="open-small", help="one that ships, or a folder")
    parser.add_argument("--name", default="open-small", help="of its rows in the table of results")
    parser.add_argument("--results", required=True, help="the table of results, a CSV")
    parser.add_argument("--on", required=True, nargs="+", metavar="SPLIT=POSTS.parquet")
    parser.add_argument("--tokens", required=True, help="folder for tokens")
    options = parser.parse_args()
    encoder = AuthorEncoder.load(options.encoder)
    measurements = Path(options.results).with_suffix("")
    for named_posts in options.on:
        split, _, posts = named_posts.partition("=")
        scores = score(encoder, Path(posts), Path(options.tokens) / split)
        measure(encoder, scores, options.name, measurements, split)
    add_measurements(measurements, Path(options.results))


if __name__ == "__main__":
    main()
