"""Measure matching on accounts of a posts table, with an encoder that never saw them.

``python benchmarks/match_lists.py --help`` lists the options.

The two lists are the first 16 and the last 16 posts of accounts. They are compared by text alone.
Of an overlap below 1, lists are drawn many times from these accounts. Three ways to answer, all
with the scores of one encoder: each query alone (AS-norm by the targets), each query with the other
queries as a cohort ("AS list"), and both lists matched.
"""

import argparse
import re
from pathlib import Path

import numpy as np
import pandas as pd

from helpers.accounts.encoder import MAX_TOKENS, AuthorEncoder
from helpers.accounts.passages import without_passages
from helpers.core import results
from helpers.core.names import short_name
from helpers.evaluation import calibration, ranking
from helpers.evaluation.bootstrap import metric_table
from helpers.evaluation.candidates import all_candidates
from helpers.evaluation.lists import best_answers, join_answers, list_metrics
from helpers.evaluation.matching import draw_lists, estimate_overlap, match
from helpers.evaluation.score_norm import neighbour_statistics, s_norm
from helpers.tokens.store import build_store

POSTS = 16
DRAWS = {1.0: 1, 0.5: 20, 0.1: 100, 0.01: 100}  # overlap: number of pairs of lists
LIKELY = (0.5, 0.9)  # answers with at least this probability are counted
CERTAIN = 0.9  # mean probability of the answers above the threshold of precision
COMMUNITIES = {"rust": "Rust", "lean": "Lean", "rlists": "R"}
WAYS = {"alone": "", "as_list": "AS list", "matched": "matched", "estimated": "own overlap"}


def as_list(scores: np.ndarray) -> np.ndarray:
    """Return AS-norm of scores (Q, T) by the nearest targets and by the nearest queries."""
    of_queries = neighbour_statistics(scores)
    return s_norm(scores.copy(), of_queries, neighbour_statistics(np.ascontiguousarray(scores.T)))


def measure(encoder: AuthorEncoder, posts: Path, folder: Path) -> dict:
    """Return for each overlap the answers of each way, their accounts, and measures of calibration.

    Parameters
    ----------
    encoder : has not seen the accounts
    posts : posts table of the accounts
    folder : for their tokens
    """
    tokenizer = encoder.tokenizer
    whole = build_store(
        posts, folder, tokenizer.encode, [], tokenizer.fingerprint, tokenizer.vocabulary
    )
    store, _ = without_passages(whole, encoder.kinds)
    trials = ranking.ranking_trials(store, POSTS)
    model = encoder.model(True, False)
    alone = model.score_matrix(trials.queries, trials.targets, MAX_TOKENS)
    backwards = model.score_matrix(trials.targets, trials.queries, MAX_TOKENS)
    both_ways = (alone + backwards.T) / 2
    config = encoder.uses["gallery"].match
    return {overlap: _measure(alone, both_ways, config, overlap) for overlap in DRAWS}


def _measure(alone, both_ways, config, overlap):
    rng = np.random.default_rng(0)
    answers = {way: [] for way in WAYS}
    accounts = []
    llrs = []
    trues = []
    estimates = []
    for _ in range(DRAWS[overlap]):
        queries, targets = draw_lists(len(alone), overlap, rng)
        same = queries[:, None] == targets
        accounts.append(queries)
        scores = alone[queries][:, targets]
        for way, values in (("alone", scores), ("as_list", as_list(scores))):
            candidates = all_candidates(values)
            answers[way].append(best_answers(candidates, candidates.scores, same))
        candidates = all_candidates(both_ways[queries][:, targets])
        matching = match(candidates, config, overlap)
        answers["matched"].append(best_answers(candidates, matching.probability, same))
        estimates.append(estimate_overlap(candidates, config))
        estimated = match(candidates, config, estimates[-1])
        answers["estimated"].append(best_answers(candidates, estimated.probability, same))
        llrs.append(matching.llr(config.llr_scale))
        trues.append(same[tuple(candidates.pairs.T)])
    joined = {way: join_answers(parts) for way, parts in answers.items()}
    extra = calibration_of(joined["matched"], np.concatenate(llrs), np.concatenate(trues))
    extra["estimated overlap"] = float(np.mean(estimates))
    return joined, np.concatenate(accounts), extra


def calibration_of(answers, llr, is_true) -> dict[str, float]:
    """Return Cllr, minCllr, and how many of the answers called likely are right."""
    measured = {
        "Cllr": calibration.cllr(llr, is_true),
        "minCllr": calibration.min_cllr(llr, is_true),
    }
    for least in LIKELY:
        likely = answers.value >= least
        measured[f"answers from {least:.0%}"] = likely.sum()
        measured[f"right from {least:.0%}"] = answers.right[likely].mean() if likely.any() else 0
    order = np.argsort(-answers.value, kind="stable")
    mean = np.cumsum(answers.value[order]) / np.arange(1, len(order) + 1)
    enough = np.flatnonzero(mean >= CERTAIN)
    if len(enough):
        chosen = order[: enough[-1] + 1]
        measured["answers at P90"] = len(chosen)
        measured["precision at P90"] = answers.right[chosen].mean()
    return measured


def name_of_row(model: str) -> str:
    """Name an encoder: "open-small"; "small, no Rust" was made without a community."""
    without = re.fullmatch(r"without_([a-z]+)_small", model)
    if without is None:
        return model.replace("_", "-")
    return f"small, no {COMMUNITIES[without[1]]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--encoder", default="open-small", help="one that ships, or a folder")
    parser.add_argument("--name", default="open_small", help="of its rows in the table of results")
    parser.add_argument("--results", required=True, help="the table of results")
    parser.add_argument("--on", required=True, nargs="+", metavar="SPLIT=POSTS.parquet")
    parser.add_argument("--tokens", required=True, help="folder for tokens")
    options = parser.parse_args()
    encoder = AuthorEncoder.load(options.encoder)
    for each in options.on:
        split, _, posts = each.partition("=")
        parts = measure(encoder, Path(posts), Path(options.tokens) / f"{options.name}-{split}")
        for overlap, (answers, accounts, extra) in parts.items():
            record(options, split, overlap, answers, accounts, extra)


def record(options, split, overlap, answers, accounts, extra):
    """Write the rows of one overlap."""
    name = name_of_row(options.name)
    labels = {way: short_name(name, note=note) for way, note in WAYS.items()}
    about = {
        "protocol": "matched" if overlap == 1 else f"matched, overlap {overlap:g}",
        "split": split,
        "queries": len(answers["alone"].rank) // DRAWS[overlap],
        "targets": len(answers["alone"].rank) // DRAWS[overlap],
        "sample_size": POSTS,
        "max_tokens": MAX_TOKENS,
    }
    for way, found in answers.items():
        table = list_metrics(found, accounts)
        if way == "matched":
            table = pd.concat([table, metric_table(extra)])
        row = {"model": f"{options.name}_{way}", "label": labels[way]}
        results.record(options.results, table, **row, **about)
        print(split, overlap, way, table.value.round(3).to_dict(), flush=True)
    for way, base in (("matched", "alone"), ("matched", "as_list"), ("estimated", "alone")):
        table = list_metrics(answers[way], accounts, answers[base])
        row = {"model": f"{options.name}_{way}", "label": labels[way]}
        results.record(options.results, table, base=f"{options.name}_{base}", **row, **about)
        print(split, overlap, way, "-", base, table.round(3).to_dict("index"), flush=True)


if __name__ == "__main__":
    main()
