"""Published, ours, verdict: every row is there, and verdicts follow from the numbers."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers import published as papers
from helpers.core import paths
from helpers.core.results import COLUMNS, TYPES, read_results
from helpers.published import claims

CLAIMS = pd.read_csv(claims.FOLDER / "claims.csv", keep_default_na=False)
IDS = [
    f"{paper}{row:02d}"
    for paper, rows in (("K", 26), ("S", 17), ("R", 16))
    for row in range(1, rows + 1)
]
GAIN = (
    "R@8 of SupCon from random weights on unseen topics, with ARR and without; "
    "theirs the mean of three corpora"
)
STATES = {"shown", "on archives", "partly", "not yet", "not measurable here"}


def results(*rows, **about):
    """Rows (model, base, metric, value, low, high) as results of one protocol and split."""
    frame = pd.DataFrame(rows, columns=["model", "base", "metric", "value", "low", "high"])
    return (
        frame.assign(**{"protocol": "ranking", "split": "test", "seed": 0} | about)
        .reindex(columns=COLUMNS)
        .astype({name: kind for name, kind in TYPES.items() if kind != "str"})
    )


@pytest.mark.parametrize(
    "says, low, high, verdict",
    [
        (0.1, 0.01, 0.2, "as published"),
        (-0.1, -0.2, -0.01, "as published"),
        (0.1, -0.2, -0.01, "other sign"),
        (-0.1, 0.01, 0.2, "other sign"),
        (0.1, -0.01, 0.2, "not told apart"),
        (0.1, 0.0, 0.2, "not told apart"),
        (0, -0.1, 0.1, "not told apart"),
        (0, -0.02, 0.02, "none, as published"),
        (0, 0.001, 0.02, "none, as published"),
        (0, 0.001, 0.021, "a difference"),
        (0.015, -0.01, 0.01, "none, as published"),
        (0.015, -0.01, -0.001, "none, as published"),
        (0.015, 0.001, 0.01, "as published"),
        (0.03, -0.01, 0.01, "no difference"),
        (-1, -0.01, 0.02, "none, of unknown size"),
        (-1, -0.01, 0.021, "not told apart"),
        (0.03, -0.01, -0.001, "no difference"),
        (0.1, np.nan, np.nan, "no interval"),
        (0, 0.1, 0.2, "a difference"),
        (0, -0.2, -0.1, "a difference"),
        (-0.001, 0.01, 0.03, "a difference"),
        (-0.001, -0.03, -0.01, "a difference"),
        (-0.005, 0.01, 0.03, "other sign"),
    ],
)
def test_a_verdict_follows_from_its_interval(says, low, high, verdict):
    assert claims.verdict(says, low, high) == verdict


def test_every_verdict_has_words():
    intervals = [(-2, -1), (-0.5, 0.5), (1, 2), (-0.01, 0.01), (np.nan, np.nan)]
    cases = itertools.product((-1, 0, 0.5, 1), intervals)
    verdicts = {claims.verdict(says, *interval) for says, interval in cases}
    assert verdicts | {"at chance"} == {*claims.WORDS}
    assert set(claims.AGREE) < {*claims.WORDS}
    for words in claims.WORDS.values():
        assert "told" not in words and "sign" not in words


def test_without_results_every_row_is_there_once_with_its_state():
    frame = claims.verdicts(results())
    assert frame.id.tolist() == IDS and set(frame.verdict) <= STATES and (frame.ours == "").all()
    assert (frame.note[frame.verdict == "not measurable here"] != "").all(), "it needs what?"
    assert frame.claim.all() and frame["where"].all()


def test_two_models_are_told_apart_where_their_intervals_are():
    rows = [
        ("stream_TPS-supcon", "", "MRR", 0.5, 0.45, 0.55),
        ("stream_T-supcon", "", "MRR", 0.4, 0.35, 0.44),
    ]
    frame = claims.verdicts(results(*rows))
    assert list(dict.fromkeys(frame.id)) == IDS
    (comparison,) = frame[frame.ours != ""].itertuples()
    assert (comparison.id, comparison.verdict) == ("K15", "as published")
    assert comparison.published == "MRR 0.634 against 0.372"
    assert comparison.ours == "MRR 0.500 (0.450-0.550) against 0.400 (0.350-0.440)"
    assert comparison.note == "ranking, test"
    for low, high, verdict in ((0.35, 0.46, "not told apart"), (0.56, 0.6, "other sign")):
        frame = claims.verdicts(results(rows[0], (*rows[1][:4], low, high)))
        assert frame.verdict[frame.ours != ""].tolist() == [verdict]
    assert (claims.verdicts(results(*rows[:1])).ours == "").all()
    without_interval = claims.verdicts(results(rows[0], (*rows[1][:4], np.nan, np.nan)))
    (comparison,) = without_interval[without_interval.ours != ""].itertuples()
    assert comparison.verdict == "no interval"
    assert comparison.ours == "MRR 0.500 (0.450-0.550) against 0.400"
    other_seed = claims.verdicts(pd.concat([results(rows[0]), results(rows[1], seed=1)]))
    assert (other_seed.ours == "").all(), "two trainings are no pair"

    equal_rows = [(*row[:3], 0.1, 0.0, 0.2) for row in rows]
    frame = claims.verdicts(pd.concat([results(*rows), results(*equal_rows, seed=1)]))
    assert (frame.verdict == "as published").sum() == 1, "the first seed"
    of_more_tokens = results(*equal_rows, max_tokens=128)
    frame = claims.verdicts(pd.concat([of_more_tokens, results(*rows, max_tokens=32)]))
    assert (frame.verdict == "as published").sum() == 1, "the fewest tokens"


def test_a_paired_difference_counts_and_not_two_intervals():
    rows = [("supcon", "", "R@8", 0.5, 0.4, 0.6), ("supcon_arr", "", "R@8", 0.52, 0.42, 0.62)]
    paired = ("supcon_arr", "supcon", "R@8_difference", 0.02, 0.01, 0.03)
    about = {"protocol": "retrieval, leak_aware", "split": "test_cross"}
    alone = claims.verdicts(results(*rows, **about)).set_index("claim").loc[GAIN]
    with_pair = claims.verdicts(results(*rows, paired, **about)).set_index("claim").loc[GAIN]
    assert alone.verdict == "not told apart"
    assert with_pair.verdict == "a difference" and with_pair.ours == "R@8 +0.020 (0.010 to 0.030)"


def test_a_baseline_that_learned_nothing_proves_nothing():
    about = {"protocol": "linking", "split": "test"}
    stream = ("stream_TP-supcon", "", "EER", 0.25, 0.2, 0.3)
    pair = ("stream_TP-arcface-iur", "stream_TP-supcon", "EER_difference", 0.24, 0.2, 0.3)
    for low, verdict in ((0.48, "at chance"), (0.42, "as published"), (0.55, "at chance")):
        pooled = ("stream_TP-arcface-iur", "", "EER", low + 0.01, low, low + 0.04)
        frame = claims.verdicts(results(stream, pooled, pair, **about))
        assert frame[frame.ours != ""].verdict.tolist() == [verdict]
    # of two settings only the one that is compared counts
    other = results(("stream_TP-arcface-iur", "", "EER", 0.5, 0.48, 0.52), max_tokens=128, **about)
    good = ("stream_TP-arcface-iur", "", "EER", 0.43, 0.42, 0.46)
    frame = claims.verdicts(pd.concat([other, results(stream, good, pair, max_tokens=32, **about)]))
    assert frame[frame.ours != ""].verdict.tolist() == ["as published"]


def test_a_difference_may_have_been_subtracted_the_other_way():
    about = {"protocol": "retrieval, leak_aware", "split": "test_cross"}
    forward = ("supcon_arr", "supcon", "R@8_difference", 0.02, 0.01, 0.04)
    backward = ("supcon", "supcon_arr", "R@8_difference", -0.02, -0.04, -0.01)
    frames = [claims.verdicts(results(pair, **about)) for pair in (forward, backward)]
    assert frames[0].equals(frames[1])
    assert frames[0].set_index("claim").ours[GAIN] == "R@8 +0.020 (0.010 to 0.040)"


def test_a_comparison_with_an_interval_and_a_pair_comes_first():
    about = {"protocol": "retrieval, leak_aware", "split": "test_cross"}
    rows = [("supcon", "", "R@8", 0.5, 0.4, 0.6), ("supcon_arr", "", "R@8", 0.52, 0.42, 0.62)]
    pair = ("supcon_arr", "supcon", "R@8_difference", 0.02, 0.01, 0.03)
    bare = [(*row[:4], np.nan, np.nan) for row in [*rows, pair]]

    def ours(*parts):
        frame = claims.verdicts(pd.concat(parts)).set_index("claim")
        return frame.ours[GAIN]

    later = results(pair, max_tokens=128, **about)
    assert ours(results(*rows, max_tokens=32, **about), later).startswith("R@8 +0.020 (0.010")
    assert (
        ours(results(*rows, bare[2], **about))
        == "R@8 0.520 (0.420-0.620) against 0.500 (0.400-0.600)"
    )
    second = results(*rows, seed=1, **{**about})
    assert "(0.420-0.620)" in ours(results(*bare[:2], **about), second)


@pytest.mark.parametrize("root", [None, Path("nowhere")])
def test_outside_of_a_checkout_there_are_no_claims(monkeypatch, root):
    monkeypatch.setattr(paths, "ROOT", root)
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


@pytest.mark.parametrize(
    "row, sign",
    [("K15", 1), ("K20", -1), ("K22", 1), ("K23", 1), ("S17", -1), ("R14", -1)],
)
def test_the_tables_say_what_the_claim_says(row, sign):
    """An error is lower, a rank higher, triplets worse, ARR a gain across topics, a loss within."""
    for claim in CLAIMS[CLAIMS.id == row].itertuples():
        table = pd.read_csv(claims.FOLDER / f"{claim.table}.csv")
        value = table.query(claim.row)[claim.metric].mean()
        base_value = table.query(claim.row_base)[claim.metric].mean()
        assert np.sign(value - base_value) == sign, claim.claim


@pytest.mark.parametrize("draw", [4, 6])
def test_no_measured_claim_is_left_out(draw):
    """A plain loop: wherever rows of both models, or of their difference, are of one training."""
    path = paths.ROOT / f"outputs/open/draw-{draw}/results.csv"
    rows = read_results(path)
    rows = rows.assign(seed=rows.seed.fillna(-1), max_tokens=rows.max_tokens.fillna(-1))
    shown = claims.verdicts(read_results(path))
    shown = set(zip(shown.claim, shown.note)) - set(zip(shown.claim, shown.note[shown.ours == ""]))
    counted = 0
    for claim in CLAIMS.itertuples():
        is_of_claim = rows.protocol.str.fullmatch(claim.protocol) & (rows.split == claim.split)
        for keys, group in rows[is_of_claim].groupby(["protocol", "seed", "max_tokens"]):
            of_metric = group[group.metric == claim.metric]
            both = [
                (of_metric.model.str.fullmatch(side) & (of_metric.base == "")).any()
                for side in (claim.model, claim.base)
            ]
            differs = group[group.metric == f"{claim.metric}_difference"]
            is_pair = differs.model.str.fullmatch(claim.model) & differs.base.str.fullmatch(
                claim.base
            )
            if all(both) or is_pair.any():
                counted += 1
                assert (claim.claim, claims._where(keys[0], claim.split)) in shown
    assert counted


def test_a_claim_about_a_row_that_the_paper_lacks_is_an_error(monkeypatch):
    claim = CLAIMS[CLAIMS.table == "khan2021_table7"].iloc[:1].assign(row="vocabulary == 32768")
    monkeypatch.setattr(claims, "_claims", lambda: claim)
    model, base = "sentencepiece 4096", "bytes 256"
    measured = results(
        (model, base, "MRR_difference", 0.1, 0.05, 0.15), protocol="khan2021 Table 7"
    )
    with pytest.raises(ValueError, match="khan2021_table7 lacks a row of the claim: a vocabulary"):
        claims.verdicts(measured)


def test_two_encoders_have_a_verdict_each():
    about = {"protocol": "retrieval, leak_aware", "split": "test_cross"}
    rows = [
        ("supcon_arr", "supcon", "R@8_difference", -0.02, -0.03, -0.01),
        ("minilm-supcon_arr", "minilm-supcon", "R@8_difference", 0.02, 0.01, 0.03),
    ]
    frame = claims.verdicts(results(*rows, **about))
    verdicts = frame[frame.ours != ""].set_index("claim").verdict
    # of SupCon alone the paper has a difference of 0.001, which counts as none
    assert verdicts.filter(like="from random weights").tolist() == ["a difference"]
    assert verdicts.filter(like="with MiniLM").tolist() == ["a difference"]
    assert len(verdicts) == 2
