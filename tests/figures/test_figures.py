"""Every figure: traces hold the data, the title is their finding, whiskers, escaped text."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from helpers.figures import (
    accounts,
    corpus,
    linking,
    losses,
    map,
    ranking,
    results,
    style,
    topic,
    training,
    verification,
)

HOSTILE = "<script>alert(1)</script> $\\href{javascript:alert(1)}{x}$"
SAFE = "&lt;script&gt;"


def title(figure):
    return figure.layout.title.text.replace("<br>", " ")


def tidy(values, metric="MRR", split="test", **columns):
    """model -> value, with an interval of 0.05 to either side, as rows of results.csv."""
    rows = [
        {
            "model": model,
            "label": "",
            "base": "",
            "split": split,
            "metric": metric,
            "value": value,
            "low": value - 0.05,
            "high": value + 0.05,
        }
        | columns
        for model, value in values.items()
    ]
    return pd.DataFrame(rows)


def timeline(*rows):
    return pd.DataFrame(
        [(author, pd.Timestamp(day, tz="UTC"), part) for author, day, part in rows],
        columns=["author", "time", "part"],
    )


def months(train, test):
    rows = [
        (pd.Timestamp(day), split, 9)
        for split, days in (("train", train), ("test", test))
        for day in days
    ]
    return pd.DataFrame(rows, columns=["month", "split", "posts"])


def history(best):
    score = np.array([best / 2, best])
    return pd.DataFrame(
        {
            "step": [50, 100],
            "seconds": [5.0, 9.0],
            "loss": [4.0, 1.0],
            "MRR": score,
            "MRR_low": score - 0.1,
            "MRR_high": score + 0.2,
        }
    )


def curve(miss):
    """P_miss falls in a straight line from 1 at no false accepts to 0 at ``miss``."""
    return pd.DataFrame({"P_fa": [0.0, miss, 1.0], "P_miss": [1.0, 0.0, 0.0]})


def bins(off):
    return pd.DataFrame(
        {
            "predicted": [0.2, 0.8],
            "observed": [0.2 + off, 0.8],
            "same": [1, 9],
            "different": [9, 1],
            "observed_low": [0.1, 0.7],
            "observed_high": [0.4, 0.9],
        }
    )


def points(author):
    return pd.DataFrame(
        {
            "panel": [0, 0, 1, 1],
            "x": [0.0, 1.0, 0.0, 1.0],
            "y": 0.0,
            "author": ["a", author] * 2,
            "posts": [1, 1, 2, 2],
            "text": HOSTILE,
            "nearest_same": author == "a",
        }
    )


CIRCLE = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
LABELS = np.array([0, 0, 1, 1])


def pairs(*listed):
    matrix = np.zeros((4, 4))
    for i, j, value in listed:
        matrix[i, j] = matrix[j, i] = value
    return matrix


def costs(factor):
    return pd.DataFrame(
        {
            "loss": ["arcface"] * 2 + ["topk"] * 2,
            "classes": [10, 1000] * 2,
            "seconds": 0.001,
            "MB": [1.0, factor, 1.0, 1.0],
        }
    )


def surface(best):
    return pd.DataFrame(
        [
            {"lower": low, "upper": high, "overall": 0.8 if (low, high) == best else 0.5}
            for low in (0.4, 0.5)
            for high in (0.6, 0.7)
        ]
    )


def drawn(share):
    return pd.DataFrame({"sizes": ["beta31"] * 2, "size": [1, 11], "share": [share, 1 - share]})


def by_size(*values):
    return pd.concat(
        [tidy(of_size, "EER", sample_size=16**power) for power, of_size in enumerate(values)]
    )


def parts(value):
    """Sums by member, and features, of a score of 1 + value."""
    sums = pd.DataFrame(
        {"member": ["lsa", "hours", "All members"], "contribution": [1.0, value, 1 + value]}
    )
    features = pd.DataFrame(
        {"member": "lsa", "feature": [HOSTILE, " the"], "contribution": [1.5, -0.5]}
    )
    return sums, features


def by_topic(values):
    return pd.concat([tidy(values, "AUC"), tidy(values, "hardest_AUC")])


OVERVIEW = pd.DataFrame({"hour": range(24), "posts": [5] * 23 + [9]})
FIGURES = [  # a figure of some value, two values, and what only the title of each says
    (
        lambda n: corpus.corpus_overview(pd.DataFrame({"posts": [1, n, 90]}), OVERVIEW),
        7,
        "at most 7 posts",
        8,
        "at most 8 posts",
    ),
    (
        lambda day: corpus.split_timeline(months(["2020-01-01", "2020-02-01"], [day])),
        "2020-03-01",
        "test posts begin in March 2020",
        "2020-02-01",
        "share 1 month",
    ),
    (
        lambda day: corpus.author_timelines(
            timeline(
                ("a", "2020-01-01", "query"), ("a", "2020-02-01", "query"), ("a", day, "target")
            )
        ),
        "2020-03-01",
        "target do not overlap in time",
        "2020-01-09",
        "target overlap in time for 1 of 1 authors",
    ),
    (lambda n: corpus.token_lengths({"bytes": np.array([1, 40, 50, n])}, 32), 20, "50%", 60, "25%"),
    (
        lambda share: corpus.size_distributions(
            pd.DataFrame({"x": [0, 1], "beta31": [0, 3]}), drawn(share)
        ),
        0.5,
        "6.0 posts",
        0.0,
        "11.0 posts",
    ),
    (
        lambda best: training.learning_curves({"stream": history(best), "lsa": history(0.3)}),
        0.4,
        "Stream reaches a dev MRR of 0.40 at step 100, the best of 2",
        0.2,
        "LSA-WCCN reaches a dev MRR of 0.30",
    ),
    (
        lambda value: results.result_bars(tidy({"fused": value, "lsa": 0.6}, targets=104), "MRR"),
        0.71,
        "Fusion (pairs) is best: MRR 0.710 (0.660-0.760), test, 104 targets",
        0.4,
        "LSA-WCCN is best: MRR 0.600",
    ),
    (lambda rank: ranking.rank_curves({"stream": np.array([1, 9, rank])}, 16), 8, "67%", 10, "33%"),
    (
        lambda author: map.author_map(points(author), ["one", "all"], "fused"),
        "a",
        "100% (all)",
        "b",
        "0% (all)",
    ),
    (
        lambda miss: linking.roc_curves({"stream": curve(miss), "lsa": curve(0.5)}),
        0.1,
        "Stream links 100% of same-account pairs at a false-link rate of 10%, "
        "the better of 2 systems",
        0.9,
        "LSA-WCCN links 20%",
    ),
    (
        lambda last: linking.metric_by_size(by_size({"stream": 0.4}, {"stream": last})),
        0.1,
        "Stream has the lowest EER with 16 posts in a target: 0.100, against 0.400 with 1 post",
        0.2,
        "target: 0.200",
    ),
    (
        lambda off: linking.reliability_diagram({"stream": bins(off), "lsa": bins(0.2)}),
        0.1,
        "Stream gives probabilities that differ by 0.05 on average from the observed shares, "
        "those of LSA-WCCN by 0.10",
        0.4,
        "LSA-WCCN gives probabilities that differ by 0.10",
    ),
    (
        lambda value: losses.loss_picture("topk", CIRCLE, LABELS, pairs((0, 1, -1), (0, 2, value))),
        0.5,
        "Top-k pulls 1 of 2 same-author pairs together and pushes 1 of 4 pairs of strangers",
        0.0,
        "pushes 0 of 4",
    ),
    (
        lambda factor: losses.growth(costs(factor), "classes"),
        50.0,
        "ArcFace grows 50 times, from 1 to 50 MB, that of Top-k does not grow",
        3.0,
        "3.0 times, from 1 to 3 MB",
    ),
    (
        lambda value: topic.heat_maps(
            {"eq. 1": pairs((0, 1, 0.9), (2, 3, value))}, list("abcd"), LABELS
        ),
        0.8,
        "1.00 (eq. 1)",
        0.0,
        "0.75 (eq. 1)",
    ),
    (
        lambda value: topic.difference_bars(
            tidy({"supcon_arr": value}, "R@8", base="supcon", label="SupCon + ARR"), "R@8"
        ),
        0.5,
        "1 of 1 differences in R@8 is distinguishable from 0; "
        "the largest, on test, is “SupCon + ARR” minus “SupCon”: "
        "+0.500 (0.450 to 0.550)",
        0.02,
        "None of 1 differences",
    ),
    (
        lambda value: topic.probe_bars(tidy({"supcon": value, "tfidf": 0.6}, "topic accuracy")),
        0.5,
        "0.600 (0.550-0.650); SupCon has the lowest, 0.500 (0.450-0.550)",
        0.2,
        "0.200 (0.150-0.250)",
    ),
    (
        lambda score: verification.score_histograms(
            [0.9, 0.1, score, 0.8], [True, False, True, False], "contrastive"
        ),
        0.5,
        "Contrastive leaves 25% of 4 pairs unanswered and is correct on 67% of the others",
        0.6,
        "leaves 0% of 4 pairs unanswered and is correct on 75%",
    ),
    (
        lambda best: verification.threshold_heat_map(surface(best), "contrastive"),
        (0.4, 0.7),
        "Contrastive has its highest PAN overall, 0.800, at the thresholds 0.40 and 0.70",
        (0.5, 0.6),
        "0.50 and 0.60",
    ),
    (
        lambda value: verification.hard_comparisons(by_topic({"supcon": value, "lsa": 0.4})),
        0.7,
        "SupCon has the highest hard AUC, 0.700 (0.650-0.750); 1 of 2 systems is below chance",
        0.3,
        "2 of 2 systems are",
    ),
    (
        lambda value: accounts.evidence_bars(*parts(value), ("a", HOSTILE)),
        2.0,
        "Hour profile adds most to the score of a and",
        0.5,
        "LSA-WCCN adds most to the score of a and",
    ),
    (
        lambda rank: accounts.linkability_curves(
            pd.DataFrame({"posts": [2, 8], "rank": [rank, 1], "probability": [0.1, 0.9]}), "a", 50
        ),
        7,
        "newer half of a ranks first from 8 posts on; with all 8 posts its probability is 0.90",
        1,
        "from 2 posts on",
    ),
    (
        lambda pair: accounts.account_map(
            CIRCLE, ["a", "b", "c", HOSTILE], np.ones(4), [(0, 1), pair], [HOSTILE] * 4
        ),
        (1, 0),
        "4 accounts; 1 pair is linked",
        (2, 3),
        "2 pairs are linked",
    ),
]


@pytest.mark.parametrize("make, value, finding, second_value, second_finding", FIGURES)
def test_the_title_is_the_finding_of_these_data(make, value, finding, second_value, second_finding):
    figure = make(value)
    assert finding in title(figure)
    second_title = title(make(second_value))
    assert finding not in second_title and second_finding in second_title
    assert figure.layout.width and figure.layout.height
    axes = [
        axis
        for axis in (*figure.select_xaxes(), *figure.select_yaxes())
        if axis.visible is not False
    ]
    assert all(axis.title.text or axis.matches or axis.showticklabels is False for axis in axes), (
        "axes have names"
    )


def test_values_are_in_the_traces():
    rows = pd.concat(
        [
            tidy({"lsa": 0.9, "fused": 0.1}, split="dev"),
            tidy({"lsa": 0.6, "fused": 0.7}, split="test"),
        ]
    )
    bars = results.result_bars(rows, "MRR")
    assert [trace.name for trace in bars.data] == ["dev", "test"]
    assert "Fusion (pairs) is best: MRR 0.700" in title(bars), (
        "dev accounts choose, test accounts judge"
    )
    assert "test" in title(
        results.result_bars(pd.concat([tidy({"lsa": 0.8}, split="seen"), rows]), "MRR")
    )
    assert "seen" in title(
        results.result_bars(pd.concat([rows[:2], tidy({"lsa": 0.8}, split="seen")]), "MRR")
    )
    alone = results.result_bars(rows, "MRR", split="dev")
    assert [trace.name for trace in alone.data] == ["dev"]
    assert "LSA-WCCN is best: MRR 0.900" in title(alone)
    assert alone.layout.height < bars.layout.height and not alone.layout.showlegend
    assert list(bars.data[1].y) == ["LSA-WCCN", "Fusion (pairs)"]
    assert list(bars.data[1].x) == [0.6, 0.7]


def test_values_of_curves_are_in_the_traces():
    curves = training.learning_curves(
        {"stream": history(0.4), "lsa": history(0.2)}, against="seconds"
    )
    assert list(curves.data[0].y) == [1.0, 0.25], (
        "losses of several trainings as shares of their first value"
    )
    assert list(training.learning_curves({"stream": history(0.4)}).data[0].y) == [4.0, 1.0]
    assert "after 9 s" in title(curves)
    of_test = history(0.4).rename(columns={"MRR": "test_MRR"})
    tested = training.learning_curves({"stream": of_test}, authors="test")
    assert list(tested.data[1].y) == list(of_test.test_MRR)
    assert "reaches a test MRR of 0.40" in title(tested)
    assert list(linking.roc_curves({"stream": curve(0.5)}).data[0].y) == [0, 1, 1]
    size = corpus.token_lengths({"bytes": np.array([0, 1, 3])}, 2).data[0]
    np.testing.assert_allclose(size.y, [1 / 3, 2 / 3, 2 / 3, 1])
    assert ranking.rank_curves({"lsa": np.array([1, 3])}, 4).data[0].y[0] == 0.5
    assert "TPS finds 100%" in title(
        ranking.rank_curves({"T": np.array([2, 3]), "TPS": np.array([1, 3])}, 16)
    ), "by MRR"
    maps = topic.heat_maps(
        {"one": np.full((4, 4), 2.0), "two": np.eye(4)}, list("abcd"), LABELS
    ).data
    assert (
        np.isnan(maps[0].z.diagonal()).all()
        and np.nansum(maps[0].z) == 24
        and np.nansum(maps[1].z) == 0
    )
    counts = corpus.corpus_overview(pd.DataFrame({"posts": [1, 1, 2, 30]}), OVERVIEW).data[0]
    assert sum(counts.y) == 4 and counts.y[0] == 2, "every author is in one bar"
    kinds = verification.score_histograms(
        np.array([0.9, 0.1]), np.array([True, False]), "tfidf_4grams"
    )
    assert [sum(trace.y) for trace in kinds.data] == [1, 1] and kinds.data[
        0
    ].name == "one author, 1 pairs"
    marked = verification.threshold_heat_map(surface((0.5, 0.7)), "tfidf_4grams").data[1]
    assert (*marked.x, *marked.y) == (0.5, 0.7)


def test_loss_picture_of_class_vectors():
    figure = losses.loss_picture(
        "arcface", CIRCLE, np.array([0, 1, 0, 1]), pairs((0, 2, -1), (0, 3, 0.5)), vectors=2
    )
    assert (
        "acts on 0 of 1 pairs of samples, and on 2 of 4 pairs of a sample and a class vector"
        in title(figure)
    )
    symbols = [
        trace.marker.symbol
        for trace in figure.data
        if trace.name and trace.name.startswith("author")
    ]
    assert [list(symbol) for symbol in symbols] == [["circle", "diamond"]] * 2
    widths = [
        trace.line.width for trace in figure.data if len(trace.x) == 2 and trace.mode == "lines"
    ]
    assert sorted(widths) == pytest.approx([0.7 + 3, 0.7 + 6]), (
        "the larger derivative has the wider line"
    )
    assert len(figure.layout.annotations) == 2, (
        "nothing moves a point whose pair lies straight across"
    )


def test_memory_that_does_not_grow_is_called_so():
    frame = pd.concat(
        [costs(1.0), costs(1.0).replace({"loss": {"arcface": "supcon", "topk": "triplet"}})]
    )
    assert (
        title(losses.growth(frame, "classes"))
        == "From 10 to 1,000 training authors, no loss needs more memory"
    )
    frame.loc[(frame.loss == "supcon") & (frame.classes == 1000), "MB"] = 20
    assert (
        "SupCon grows 20 times, from 1 to 20 MB, that of the other 3 losses does not grow"
        in title(losses.growth(frame, "classes"))
    )
    frame["MB"] *= frame.classes / 10
    assert "that of ArcFace 100 times, from 1 to 100 MB" in title(losses.growth(frame, "classes"))


def test_differences_have_a_panel_a_base_and_the_title_names_one_that_excludes_zero():
    rows = [
        tidy({"supcon_arr": 0.2}, "R@8", base="SupCon", label="SupCon + ARR").assign(low=-0.1),
        tidy({"supcon_arr": 0.1}, "R@8", base="SupCon + blind ARR", label="SupCon + ARR"),
    ]
    figure = topic.difference_bars(pd.concat(rows), "R@8")
    assert [note.text for note in figure.layout.annotations] == [
        "minus SupCon",
        "minus SupCon + blind ARR",
    ]
    assert "1 of 2" in title(figure) and "+0.100 (0.050 to 0.150)" in title(figure)
    assert [list(trace.x) for trace in figure.data] == [[0.2], [0.1]]
    assert [trace.showlegend for trace in figure.data] == [True, False], (
        "a split is in the legend once"
    )


def test_whiskers_wherever_there_are_intervals():
    frame = tidy({"lsa": 0.6, "fused": 0.7})
    bars = [results.result_bars(frame, "MRR"), topic.probe_bars(frame)]
    for bar in (figure.data[0].error_x for figure in bars):
        np.testing.assert_allclose([*bar.array, *bar.arrayminus], 0.05)
    figure = linking.metric_by_size(by_size({"lsa": 0.4, "fused": 0.3}, {"lsa": 0.3, "fused": 0.2}))
    np.testing.assert_allclose(
        [*figure.data[0].error_y.array, *figure.data[1].error_y.arrayminus], 0.05
    )
    assert figure.data[0].x[0] < 1 < figure.data[1].x[0], (
        "whiskers at one size stand beside each other"
    )
    whole = by_size({"lsa": 0.4}, {"lsa": 0.7}).assign(metric="MRR")
    figure = linking.metric_by_size(whole.replace({"sample_size": {16: 1024}}), "MRR")
    assert title(figure).endswith(
        "the highest MRR with 1,024 posts in a target: 0.700, against 0.400 with 1 post"
    )
    curves = training.learning_curves({"stream": history(0.4), "lsa": history(0.2)})
    np.testing.assert_allclose(curves.data[1].error_y.array, 0.2)
    assert curves.data[1].x[1] < 100 < curves.data[3].x[1]
    np.testing.assert_allclose(
        linking.reliability_diagram({"lsa": bins(0.1)}).data[0].error_y.array, [0.1, 0.1]
    )
    offs = {"stream": 0.1, "lsa": 0.2, "tfidf_word": 0.4}
    tables = {name: bins(off) for name, off in offs.items()}
    three = linking.reliability_diagram(tables, kind="systems")
    assert "those of the other 2 systems by at least 0.10" in title(three)
    bare = results.result_bars(frame.assign(low=np.nan, high=np.nan), "MRR")
    assert not bare.data[0].error_x.array and "interval" not in bare.layout.xaxis.title.text
    assert title(bare).endswith("MRR 0.700, test"), "no interval is invented"


def test_probes_of_different_units_have_axes_of_their_own():
    frame = pd.concat(
        [tidy({"lsa": 0.6}, "topic accuracy"), tidy({"lsa": 0.3}, "style correlation")]
    )
    figure = topic.probe_bars(frame, {"topic accuracy": 0.1})
    assert [trace.xaxis for trace in figure.data] == ["x", "x2"]
    assert (
        figure.layout.xaxis2.title.text == "style correlation" and figure.layout.shapes[0].x0 == 0.1
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: results.result_bars(tidy({"a": 0.5}).assign(label=HOSTILE), "MRR"),
        lambda: ranking.rank_curves({HOSTILE: np.array([1])}, 2, HOSTILE),
        lambda: training.learning_curves({HOSTILE: history(0.4)}, levels={HOSTILE: 0.1}),
        lambda: linking.roc_curves({HOSTILE: curve(0.5)}),
        lambda: linking.reliability_diagram({HOSTILE: bins(0)}),
        lambda: linking.metric_by_size(by_size({HOSTILE: 0.5})),
        lambda: map.author_map(points(HOSTILE), [HOSTILE] * 2, HOSTILE),
        lambda: topic.heat_maps({HOSTILE: np.eye(4)}, [HOSTILE] * 4, LABELS),
        lambda: topic.difference_bars(tidy({"a": 0.5}).assign(label=HOSTILE, base=HOSTILE), "MRR"),
        lambda: results.result_bars(tidy({HOSTILE: 1}), "MRR", HOSTILE),
        lambda: topic.probe_bars(tidy({HOSTILE: 0.5})),
        lambda: verification.score_histograms([0.1], [True], HOSTILE),
        lambda: verification.threshold_heat_map(surface((0.5, 0.6)), HOSTILE),
        lambda: verification.hard_comparisons(by_topic({HOSTILE: 0.5})),
        lambda: corpus.author_timelines(timeline((HOSTILE, "2020-01-01", "train"))),
        lambda: corpus.token_lengths({HOSTILE: np.array([1])}, 2),
        lambda: losses.loss_picture(HOSTILE, CIRCLE, LABELS, pairs()),
        lambda: losses.growth(costs(1).assign(loss=HOSTILE), "classes"),
    ],
)
def test_text_is_escaped(make):
    text = make().to_json().replace("\\u003c", "<").replace("\\u003e", ">")
    assert SAFE in text and "<script>" not in text
    assert "&#36;" in text and "$" not in text, "a page with MathJax would set it as a formula"


def test_long_names_leave_place_for_the_figure():
    first, second = ("a" * 3000 + end for end in "bc")  # and two that begin alike stay two
    figure = corpus.author_timelines(
        timeline((first, "2020-01-01", "train"), (second, "2020-01-02", "train"))
    )
    assert max(len(name) for name in figure.layout.yaxis.ticktext) < 100 and list(
        figure.data[0].y
    ) == [0, 1]
    figure = map.author_map(points(first), ["one", "all"], "fused")
    assert max(len(trace.name) for trace in figure.data) < 100


def test_equal_points_of_a_map_are_all_drawn():
    figure = map.author_map(points("b").assign(x=0.0), ["one", "all"], "fused")
    assert sum(len(trace.x) for trace in figure.data) == 4
    assert "by the same author for 0% (one), 0% (all)" in title(figure)


def test_results_are_selected_once():
    frame = pd.concat([tidy({"lsa": 0.6}), tidy({"lsa": 0.1}).assign(base="tfidf")])
    assert len(results.result_bars(frame, "MRR").data[0].x) == 1, "paired differences are no bars"
    with pytest.raises(ValueError, match="MRR of lsa, test is there twice"):
        results.result_bars(pd.concat([frame, frame]), "MRR")
    with pytest.raises(ValueError, match="no row of the metric 'EER': results hold MRR"):
        results.result_bars(frame, "EER")


def test_an_error_is_best_where_it_is_lowest():
    figure = results.result_bars(tidy({"lsa": 0.6, "fused": 0.7}, "EER"), "EER")
    assert "LSA-WCCN is best" in title(figure) and figure.data[0].y[-1] == "LSA-WCCN"


def test_long_titles_are_broken_between_words_and_get_room():
    short, long = (style.set_title(go.Figure(), "word " * count) for count in (3, 60))
    assert "<br>" not in short.layout.title.text and long.layout.title.text.count("<br>") >= 2
    assert long.layout.margin.t > short.layout.margin.t
    assert (
        style.set_title(go.Figure(), "finding", "demo corpus").layout.title.text
        == "Finding (demo corpus)"
    )


def test_more_series_than_colours_are_all_drawn():
    colours = style.colour_map(range(len(style.COLOURS) + 1))
    assert (
        len(colours) == len(style.COLOURS) + 1 and colours[len(style.COLOURS)] == style.COLOURS[0]
    )


# linear RGB as seen without the long, middle or short cones (Machado et al. 2009, severity 1)
SEEN = {
    "all": np.eye(3),
    "no long": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no middle": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
    "no short": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.3039],
    ],
}
TO_XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]


def lab(colours, seen):
    """CIE L*a*b* of hexadecimal colours, (N, 3), as somebody sees them."""
    rgb = np.array([[int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)] for colour in colours])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = (linear @ np.array(seen).T).clip(0, 1) @ np.array(TO_XYZ).T / [0.9505, 1, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], 1)


def least_apart(colours, seen):
    """The distance of the two colours that are most alike; about 2 is just seen side by side."""
    place = lab(colours, seen)
    return np.linalg.norm(place[:, None] - place[None], axis=2)[
        np.triu_indices(len(place), 1)
    ].min()


@pytest.mark.parametrize("seen", SEEN)
def test_colours_are_told_apart_by_the_colour_blind(seen):
    np.testing.assert_allclose(
        lab(["#ffffff", "#ff0000"], np.eye(3)), [[100, 0, 0], [53.2, 80.1, 67.2]], atol=0.2
    )
    assert least_apart(style.COLOURS, SEEN[seen]) > 15
    assert (
        least_apart(["#D62728", "#2CA02C"], SEEN["no middle"])
        < least_apart(["#D62728", "#2CA02C"], SEEN["all"]) / 2
    )
