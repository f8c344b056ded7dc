"""Published, ours, verdict: every row is there, and verdicts follow from the numbers."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers import published as papers
from helpers.core import paths
from helpers.core.results import COLUMNS, TYPES, read
from helpers.published import claims

CLAIMS = pd.read_csv(claims.FOLDER / "claims.csv", keep_default_na=False)
IDS = [
    f"{paper}{row:02d}"
    for paper, rows in (("K", 26), ("S", 17), ("R", 16))
    for row in range(1, rows + 1)
]
STATES = {"shown", "partly", "not yet", "not measurable here"}


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
        (0, -0.1, 0.1, "no difference told"),
        (0, 0.1, 0.2, "a difference"),
        (0, -0.2, -0.1, "a difference"),
    ],
)
def test_a_verdict_follows_from_its_interval(says, low, high, verdict):
    assert claims.verdict(says, low, high) == verdict


def test_every_verdict_has_words():
    cases = itertools.product((-1, 0, 1), (-2, -0.5, 1))
    assert {claims.verdict(says, low, low + 1) for says, low in cases} == {*claims.WORDS}
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
    without_interval = (*rows[1][:4], np.nan, np.nan)
    for one_side in (rows[:1], [rows[0], without_interval]):
        assert (claims.verdicts(results(*one_side)).ours == "").all()

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
    alone = claims.verdicts(results(*rows, **about)).set_index("id").loc["R15"]
    with_pair = claims.verdicts(results(*rows, paired, **about)).set_index("id").loc["R15"]
    assert alone.verdict == "not told apart"
    assert with_pair.verdict == "as published" and with_pair.ours == "R@8 +0.020 (0.010 to 0.030)"


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
    [("K15", 1), ("K20", -1), ("K22", 1), ("K23", 1), ("S17", -1), ("R14", -1), ("R15", 1)],
)
def test_the_tables_say_what_the_claim_says(row, sign):
    """An error is lower, a rank higher, triplets worse, ARR a gain across topics, a loss within."""
    for claim in CLAIMS[CLAIMS.id == row].itertuples():
        table = pd.read_csv(claims.FOLDER / f"{claim.table}.csv")
        value = table.query(claim.row)[claim.metric].mean()
        base_value = table.query(claim.row_base)[claim.metric].mean()
        assert np.sign(value - base_value) == sign, claim.claim


def test_stored_results_have_verdicts_that_follow_from_their_rows():
    """Recomputed from the rows: the stream against TF-IDF of words, accounts seen in training."""
    frame = read(paths.ROOT / "outputs/open/draw-4/results.csv")
    rows = frame.query(
        "protocol == 'linking' and split == 'seen' and metric == 'EER' and base == '' and seed == 0"
    )
    stream = rows[rows.model == "stream_TP-supcon"].iloc[0]
    words = rows[rows.model == "tfidf_word"].iloc[0]
    verdict = "not told apart"
    if stream.high < words.low:
        verdict = "as published"
    elif words.high < stream.low:
        verdict = "other sign"
    verdicts = claims.verdicts(frame)
    assert list(dict.fromkeys(verdicts.id)) == IDS
    (comparison,) = verdicts[verdicts.note == "linking, seen"].itertuples()
    assert comparison.verdict == verdict
    assert f"{stream.value:.3f}" in comparison.ours and f"{words.value:.3f}" in comparison.ours


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
    assert verdicts.filter(like="from random weights").tolist() == ["other sign"]
    assert verdicts.filter(like="with MiniLM").tolist() == ["as published"]
