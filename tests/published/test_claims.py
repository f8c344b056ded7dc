"""Published, ours, verdict: every row is there, verdicts follow from the numbers, and the claims are the papers'."""

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
    """Rows (model, base, metric, value, low, high) as a table of results of one protocol and split."""
    frame = pd.DataFrame(rows, columns=["model", "base", "metric", "value", "low", "high"])
    return frame.assign(**{"protocol": "ranking", "split": "test", "seed": 0} | about).reindex(columns=COLUMNS).astype(
        {name: kind for name, kind in TYPES.items() if kind != "str"})  # fmt: skip


@pytest.mark.parametrize("says, low, high, told", [
    (0.1, 0.01, 0.2, "as published"), (-0.1, -0.2, -0.01, "as published"), (0.1, -0.2, -0.01, "other sign"),
    (-0.1, 0.01, 0.2, "other sign"), (0.1, -0.01, 0.2, "not told apart"), (0.1, 0.0, 0.2, "not told apart"),
    (0, -0.1, 0.1, "no difference told"), (0, 0.1, 0.2, "a difference"), (0, -0.2, -0.1, "a difference"),
])  # fmt: skip
def test_a_verdict_follows_from_its_interval(says, low, high, told):
    assert claims.verdict(says, low, high) == told


def test_every_verdict_has_words():
    told = {claims.verdict(says, low, low + 1) for says in (-1, 0, 1) for low in (-2, -0.5, 1)}
    assert told == {*claims.WORDS} and not any(
        "told" in words or "sign" in words for words in claims.WORDS.values()
    )


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
    (one,) = frame[frame.ours != ""].itertuples()
    assert (one.id, one.verdict, one.published) == (
        "K15",
        "as published",
        "MRR 0.634 against 0.372",
    )
    assert (
        one.ours == "MRR 0.500 (0.450-0.550) against 0.400 (0.350-0.440)"
        and one.note == "ranking, test"
    )
    for low, high, told in ((0.35, 0.46, "not told apart"), (0.56, 0.6, "other sign")):
        frame = claims.verdicts(results(rows[0], (*rows[1][:4], low, high)))
        assert frame.verdict[frame.ours != ""].tolist() == [told]
    for left_out in (
        rows[:1],
        [rows[0], (*rows[1][:4], np.nan, np.nan)],
    ):  # one side alone, or no interval
        assert (claims.verdicts(results(*left_out)).ours == "").all()
    both = pd.concat(
        [results(*rows), results(*((*row[:3], 0.1, 0.0, 0.2) for row in rows), seed=1)]
    )
    assert claims.verdicts(both).verdict[lambda told: told == "as published"].size == 1, (
        "the first seed"
    )
    other = results(*((*row[:3], 0.1, 0.0, 0.2) for row in rows), max_tokens=128)
    both = pd.concat([other, results(*rows, max_tokens=32)])
    assert claims.verdicts(both).verdict[lambda told: told == "as published"].size == 1, (
        "the fewest tokens"
    )


def test_a_paired_difference_counts_and_not_two_intervals():
    rows = [("supcon", "", "R@8", 0.5, 0.4, 0.6), ("supcon_arr", "", "R@8", 0.52, 0.42, 0.62)]
    paired = ("supcon_arr", "supcon", "R@8_difference", 0.02, 0.01, 0.03)
    about = {"protocol": "retrieval, leak_aware", "split": "test_cross"}
    told = [
        claims.verdicts(results(*chosen, **about)).query("id == 'R15'").iloc[0]
        for chosen in (rows, [*rows, paired])
    ]
    assert [one.verdict for one in told] == ["not told apart", "as published"]
    assert told[1].ours == "R@8 +0.020 (0.010 to 0.030)"


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
    """An error is lower, a rank higher, triplets worse, ARR a gain across topics and a loss within."""
    for claim in CLAIMS[CLAIMS.id == row].itertuples():
        table = pd.read_csv(claims.FOLDER / f"{claim.table}.csv")
        one, other = (
            table.query(rows)[claim.metric].mean() for rows in (claim.row, claim.row_base)
        )
        assert np.sign(one - other) == sign, claim.claim


def test_stored_results_have_verdicts_that_follow_from_their_rows():
    """Recomputed from the rows themselves: the stream against TF-IDF of words, accounts seen in training."""
    frame = read(paths.ROOT / "outputs/open/draw-4/results.csv")
    rows = frame.query(
        "protocol == 'linking' and split == 'seen' and metric == 'EER' and base == '' and seed == 0"
    )
    stream, words = (
        rows[rows.model == model].iloc[0] for model in ("stream_TP-supcon", "tfidf_word")
    )
    told = claims.verdicts(frame)
    assert list(dict.fromkeys(told.id)) == IDS
    (one,) = told[told.note == "linking, seen"].itertuples()
    apart = stream.high < words.low or words.high < stream.low
    assert one.verdict == (
        "not told apart"
        if not apart
        else "as published"
        if stream.value < words.value
        else "other sign"
    )
    assert f"{stream.value:.3f}" in one.ours and f"{words.value:.3f}" in one.ours
