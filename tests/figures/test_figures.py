"""Every figure: traces hold the data, the title is their finding, whiskers, escaped text."""

import numpy as np
import pandas as pd
import pytest

from helpers.core.results import select_results
from helpers.figures import charts, special

HOSTILE = "<script>alert(1)</script> $\\href{javascript:alert(1)}{x}$"
SAFE = "&lt;script&gt;"
CIRCLE = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
LABELS = np.array([0, 0, 1, 1])


def title(figure):
    return figure.layout.title.text.replace("<br>", " ")


def tidy(values, metric="MRR", split="test", **columns):
    """model -> value, with an interval of 0.05 to either side, as rows of results.csv."""
    rows = []
    for model, value in values.items():
        about = {"model": model, "label": "", "base": "", "split": split, "metric": metric}
        interval = {"value": value, "low": value - 0.05, "high": value + 0.05}
        rows.append(about | interval | columns)
    return pd.DataFrame(rows)


def differences(value=0.2, low=0.1, **names):
    about = {"label": "SupCon + ARR", "base": "supcon"} | names
    return tidy({"supcon_arr": value}, "R@8", **about).assign(low=low)


def history(best):
    score = np.array([best / 2, best])
    curve = {"step": [50, 100], "seconds": [5.0, 9.0], "loss": [4.0, 1.0], "MRR": score}
    return pd.DataFrame(curve)


def curve(**recall):
    """Recall of each system at a false-link rate of 0, 0.1 and 1."""
    rows = []
    for name, value in recall.items():
        rows += [(name, 0.0, 0.0), (name, 0.1, value), (name, 1.0, 1.0)]
    return pd.DataFrame(rows, columns=["system", "P_fa", "recall"])


def bins(off):
    interval = {"observed_low": [0.1, 0.7], "observed_high": [0.4, 0.9]}
    counts = {"same": [1, 9], "different": [9, 1]}
    return pd.DataFrame({"predicted": [0.2, 0.8], "observed": [0.2 + off, 0.8]} | counts | interval)


def points(author="b", **columns):
    panels = {"panel": ["one", "one", "all", "all"], "x": [0.0, 1.0, 0.0, 1.0], "y": 0.0}
    about = {"author": ["a", author] * 2, "posts": [1, 1, 2, 2], "text": HOSTILE}
    return pd.DataFrame(panels | about | columns)


def timeline(*authors):
    rows = [(author, pd.Timestamp("2020-01-01", tz="UTC"), "train") for author in authors]
    return pd.DataFrame(rows, columns=["author", "time", "part"])


def pairs(*listed):
    matrix = np.zeros((4, 4))
    for i, j, value in listed:
        matrix[i, j] = matrix[j, i] = value
    return matrix


def surface(best):
    frame = pd.DataFrame({"lower": [0.4, 0.4, 0.5, 0.5], "upper": [0.6, 0.7] * 2, "overall": 0.5})
    frame.loc[best, "overall"] = 0.8
    return frame


def evidence(member, value):
    sums = {"member": ["lsa", member, "All members"], "contribution": [1, value, 1 + value]}
    features = {"member": "lsa", "feature": [HOSTILE, " the"], "contribution": [1.5, -0.5]}
    pair = ("demo-0013", "newcomer")
    return special.evidence_bars(pd.DataFrame(sums), pd.DataFrame(features), pair)


def histogram(model):
    same = np.array([True, False, True, False])
    return special.score_histogram(np.array([0.9, 0.1, 0.5, 0.8]), same, model)


def findings(name):
    """Figures of a system, and what only the title of each says."""
    results = tidy({name: 0.71, "lsa": 0.6}, targets=104)
    matrix = {name: pairs((0, 1, 0.9), (2, 3, 0.0))}
    topics = curve(**{name: 0.6, "lsa": 0.5}).assign(topic=name)
    parts = pd.DataFrame({"x": [1], "y": [2], "part": name})
    return [
        (
            charts.bars(results, "MRR", name),
            "{} has the highest MRR: 0.710 (0.660-0.760), test, 104 targets",
        ),
        (
            charts.differences(differences(label=name, base=name), "R@8"),
            "1 of 1 differences in R@8 distinguishable from 0; the largest, on test, is “stream”",
        ),
        (
            charts.lines(topics, "P_fa", "recall", "system", at=0.1, facet="topic"),
            "At 0.1 false-link rate, {} has the highest recall: 0.6",
        ),
        (
            charts.learning_curves({name: history(0.4), "lsa": history(0.3)}),
            "{} reaches a dev MRR of 0.40 (training step: 100), the best of 2 trainings",
        ),
        (
            charts.reliability({name: bins(0.1), "lsa": bins(0.2)}),
            "shares by 0.05 ({}), 0.10 (LSA-WCCN) on average",
        ),
        (charts.matrices(matrix, [name] * 4, LABELS), "0.75 (stream)"),
        (charts.columns(parts, "x", "y", name, "part"), name[1:]),
        (charts.author_map(points(name), name, [(0, 1)]), name[1:]),
        (
            special.loss_picture(name, CIRCLE, LABELS, pairs((0, 1, -1), (0, 2, 0.5))),
            "{}, 6 pairs: 1 pulled together and 1 pushed apart",
        ),
        (evidence(name, 2), "{} adds most to the score of demo-0013 and newcomer: 2.00 of 3.00"),
        (
            histogram(name),
            "{} leaves 25% of 4 pairs unanswered and is correct on 67% of the others",
        ),
        (
            special.threshold_map(surface(3), name),
            "{} has its highest PAN overall, 0.800, at the thresholds 0.50 and 0.70",
        ),
        (special.timeline(timeline(name), name), name[1:]),
    ]


@pytest.mark.parametrize("figure, finding", findings("stream"))
def test_the_title_is_the_finding_of_these_data(figure, finding):
    assert finding.format("Stream") in title(figure)
    assert figure.layout.width and figure.layout.height
    for axis in (*figure.select_xaxes(), *figure.select_yaxes()):
        has_name = axis.title.text or axis.matches or axis.showticklabels is False
        assert has_name or axis.visible is False, "axes have names"


@pytest.mark.parametrize("figure, _", findings(HOSTILE))
def test_text_is_escaped(figure, _):
    text = figure.to_json().replace("\\u003c", "<").replace("\\u003e", ">")
    assert SAFE in text and "<script>" not in text
    assert "&#36;" in text and "$" not in text, "a page with MathJax would set it as a formula"


def test_dev_accounts_choose_and_test_accounts_judge():
    rows = pd.concat(
        [tidy({"lsa": 0.9, "fused": 0.1}, split="dev"), tidy({"lsa": 0.6, "fused": 0.7})]
    )
    figure = charts.bars(rows, "MRR")
    assert [trace.name for trace in figure.data] == ["dev", "test"]
    assert "Fusion (pairs) has the highest MRR: 0.700" in title(figure)
    dict_of_test = dict(zip(figure.data[1].y, figure.data[1].x))
    assert dict_of_test == {"LSA-WCCN": 0.6, "Fusion (pairs)": 0.7}
    assert list(figure.layout.yaxis.categoryarray) == ["LSA-WCCN", "Fusion (pairs)"], "best on top"
    np.testing.assert_allclose(figure.data[0].error_x.array, 0.05)
    alone = charts.bars(rows[rows.split == "dev"], "MRR")
    assert "LSA-WCCN has the highest MRR: 0.900" in title(alone) and not alone.layout.showlegend


def test_no_interval_is_invented_and_an_error_is_best_where_it_is_lowest():
    bare = charts.bars(tidy({"lsa": 0.7}).assign(low=np.nan, high=np.nan), "MRR")
    assert not bare.data[0].error_x.array and "interval" not in bare.layout.xaxis.title.text
    assert title(bare).endswith("MRR: 0.700, test")
    figure = charts.bars(tidy({"lsa": 0.6, "fused": 0.7}, "EER"), "EER")
    assert "LSA-WCCN has the lowest EER" in title(figure)
    assert figure.layout.yaxis.categoryarray[-1] == "LSA-WCCN"
    frame = pd.concat([tidy({"lsa": 0.6}), tidy({"lsa": 0.1}).assign(base="tfidf")])
    assert list(select_results(frame, "MRR").MRR) == [0.6], "no paired difference"


def test_a_difference_names_both_systems_and_the_largest_that_excludes_zero():
    rows = [differences(low=-0.1), differences(0.1, 0.05, base="supcon_blind")]
    figure = charts.differences(pd.concat(rows), "R@8")  # whose rows have one index
    assert "1 of 2" in title(figure) and "+0.100 (0.050 to 0.150)" in title(figure)
    bases = [pair.split("<br>")[1] for pair in figure.data[0].y]
    assert bases == ["minus SupCon", "minus SupCon + blind ARR"]
    np.testing.assert_allclose(figure.data[0].error_x.arrayminus, [0.3, 0.05])


def test_cumulative_shares_count_values():
    shares = charts.cumulative({"bytes": np.array([0, 1, 4, 4])}, "tokens", "share")
    assert dict(zip(shares.tokens, shares.share)) == {1: 0.5, 2: 0.5, 3: 0.5, 4: 1.0}
