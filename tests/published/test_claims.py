"""Published, ours, verdict: every row is there, and verdicts follow from the numbers."""

from pathlib import Path

import pandas as pd

from helpers import published as papers
from helpers.core import paths
from helpers.core.results import COLUMNS, TYPES, read_results
from helpers.published import claims

CLAIMS = pd.read_csv(claims.FOLDER / "claims.csv", keep_default_na=False)
VERDICTS = pd.read_csv(Path(__file__).with_name("verdicts.csv"))
ROWS = {"K": 26, "S": 17, "R": 16}  # of each paper
IDS = [f"{paper}{row:02d}" for paper, rows in ROWS.items() for row in range(1, rows + 1)]
STATES = {"shown", "on archives", "partly", "not yet", "not measurable here"}


def results(*rows, **about):
    """Rows (model, base, metric, value, low, high) as results of one protocol and split."""
    frame = pd.DataFrame(rows, columns=["model", "base", "metric", "value", "low", "high"])
    return (
        frame.assign(**{"protocol": "ranking", "split": "test", "seed": 0} | about)
        .reindex(columns=COLUMNS)
        .astype({name: kind for name, kind in TYPES.items() if kind != "str"})
    )


def test_a_verdict_follows_from_its_interval():
    for says, low, high, verdict in VERDICTS.itertuples(index=False):
        assert claims.verdict(says, low, high) == verdict, (says, low, high)
    assert set(VERDICTS.verdict) <= {*claims.WORDS} and set(claims.AGREE) < {*claims.WORDS}


def ours(*parts):
    frame = claims.verdicts(pd.concat(parts))
    assert list(dict.fromkeys(frame.id)) == IDS
    return frame[frame.ours != ""]


def test_without_results_every_row_is_there_once_with_its_state():
    frame = claims.verdicts(results())
    assert frame.id.tolist() == IDS and set(frame.verdict) <= STATES and (frame.ours == "").all()
    assert (frame.note[frame.verdict == "not measurable here"] != "").all(), "it needs what?"
    assert frame.claim.all() and frame["where"].all()


def test_two_models_are_told_apart_where_their_intervals_are():
    lead = ("stream_TPS-supcon", "", "MRR", 0.5, 0.45, 0.55)
    text = ("stream_T-supcon", "", "MRR", 0.4, 0.35, 0.44)
    (comparison,) = ours(results(lead, text)).itertuples()
    assert (comparison.id, comparison.verdict) == ("K15", "as published")
    assert comparison.published == "MRR 0.634 against 0.372"
    assert comparison.ours == "MRR 0.500 (0.450-0.550) against 0.400 (0.350-0.440)"
    assert comparison.note == "ranking, test"
    for ends, verdict in (((0.35, 0.46), "not told apart"), ((0.56, 0.6), "other sign")):
        assert ours(results(lead, (*text[:4], *ends))).verdict.tolist() == [verdict]
    assert ours(results(lead)).empty
    assert ours(results(lead), results(text, seed=1)).empty, "two trainings are no pair"


ACROSS = {"protocol": "retrieval, leak_aware", "split": "test_cross"}
ARR = [("supcon", "", "R@8", 0.5, 0.4, 0.6), ("supcon_arr", "", "R@8", 0.52, 0.42, 0.62)]
GAIN = ("supcon_arr", "supcon", "R@8_difference", 0.02, 0.01, 0.03)


def test_a_paired_difference_comes_first_whichever_way_it_was_subtracted():
    loss = ("supcon", "supcon_arr", "R@8_difference", -0.02, -0.03, -0.01)
    other = ("minilm-supcon_arr", "minilm-supcon", "R@8_difference", 0.02, 0.01, 0.03)
    alone = ours(results(*ARR, **ACROSS))
    assert alone.verdict.tolist() == ["not told apart"]
    for pair in (GAIN, loss):
        (row,) = ours(results(*ARR, pair, **ACROSS)).itertuples()
        assert (row.verdict, row.ours) == ("a difference", "R@8 +0.020 (0.010 to 0.030)")
        assert row.claim.startswith("R@8 of SupCon from random weights on unseen topics")
    assert len(ours(results(GAIN, other, **ACROSS))) == 2, "two encoders have a verdict each"


def test_a_baseline_that_learned_nothing_proves_nothing():
    about = {"protocol": "linking", "split": "test"}
    stream = ("stream_TP-supcon", "", "EER", 0.25, 0.2, 0.3)
    pair = ("stream_TP-arcface-iur", "stream_TP-supcon", "EER_difference", 0.24, 0.2, 0.3)
    for low, verdict in ((0.48, "at chance"), (0.42, "as published"), (0.55, "at chance")):
        pooled = ("stream_TP-arcface-iur", "", "EER", low + 0.01, low, low + 0.04)
        assert ours(results(stream, pooled, pair, **about)).verdict.tolist() == [verdict]
    # a loss that fails in the paper may fail here
    fails = ("MiniLM triplet, random", "", "AUC", 0.51, 0.46, 0.56)
    rows = [("MiniLM contrastive", "", "AUC", 0.8, 0.75, 0.85), fails]
    frame = ours(results(*rows, protocol="verification", split="test"))
    assert frame.verdict.tolist() == ["as published"]


def test_outside_of_a_checkout_there_are_no_claims(monkeypatch):
    monkeypatch.setattr(paths, "ROOT", None)
    frame = claims.verdicts(results(("stream_TPS-supcon", "", "MRR", 0.5, 0.45, 0.55)))
    assert frame.empty and list(frame) == claims.COLUMNS


def test_every_claim_has_a_row_of_the_papers_and_a_side_to_be_on():
    assert set(CLAIMS.id) <= set(IDS) and not CLAIMS.duplicated(["id", "claim"]).any()
    for claim in CLAIMS.itertuples():
        assert bool(claim.table) != (claim.sign in claims.SIGNS), claim.claim
        if claim.table:
            paper, _, number = claim.table.partition("_table")
            table = papers.published_table(paper, int(number)).reset_index()
            sides = [table.query(rows)[claim.metric] for rows in (claim.row, claim.row_base)]
            assert all(map(len, sides)) and sides[0].mean() != sides[1].mean(), claim.claim


def test_no_measured_claim_is_left_out():
    """A plain loop: wherever rows of both models, or of their difference, are of one training."""
    table = read_results(paths.ROOT / "outputs/open/draw-4/results.csv")
    rows = table.assign(seed=table.seed.fillna(-1), max_tokens=table.max_tokens.fillna(-1))
    shown = set(zip(ours(table).claim, ours(table).note))
    measured = set()
    for claim in CLAIMS.itertuples():
        is_of_claim = rows.protocol.str.fullmatch(claim.protocol) & (rows.split == claim.split)
        for keys, group in rows[is_of_claim].groupby(["protocol", "seed", "max_tokens"]):
            values = group[(group.metric == claim.metric) & (group.base == "")].model
            pairs = group[group.metric == f"{claim.metric}_difference"]
            is_model = pairs.model.str.fullmatch(claim.model)
            is_pair = is_model & pairs.base.str.fullmatch(claim.base)
            sides = [values.str.fullmatch(side).any() for side in (claim.model, claim.base)]
            if all(sides) or is_pair.any():
                measured.add((claim.claim, claims._where(keys[0], claim.split)))
    assert measured and measured <= shown
