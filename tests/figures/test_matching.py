"""Figures of two lists: traces hold the data, the title is their finding, text is escaped."""

import numpy as np
import pandas as pd
import pytest

from helpers.figures.matching import bars_by_overlap, precision_curves

HOSTILE = "<script>alert(1)</script> $\\href{javascript:alert(1)}{x}$"


def title(figure):
    return figure.layout.title.text.replace("<br>", " ")


def curve(recall):
    """Precision falls from 1 to 0.9, which it has at this recall, and then to 0.5."""
    points = {"recall": [recall / 2, recall, 0.8], "precision": [1.0, 0.9, 0.5]}
    return pd.DataFrame(points)


def rows(**values):
    """System -> its values at the overlaps 0.5 and 1, as rows of results.csv."""
    listed = []
    for model, of_overlap in values.items():
        for overlap, value in zip((0.5, 1.0), of_overlap):
            listed.append((model, model, "", "MRR", value, value - 0.05, value + 0.05, overlap))
    columns = ["model", "label", "base", "metric", "value", "low", "high", "overlap"]
    return pd.DataFrame(listed, columns=columns)


@pytest.mark.parametrize("recall, finding", [(0.4, "matched finds 40%"), (0.2, "alone finds 30%")])
def test_the_title_is_the_recall_at_ninety_percent_of_the_first_overlap(recall, finding):
    later = {"alone": curve(0.7), "matched": curve(0.1)}
    figure = precision_curves({0.5: {"alone": curve(0.3), "matched": curve(recall)}, 0.1: later})
    assert finding in title(figure) and "where 50% of a list have one" in title(figure)


def test_each_panel_has_the_curves_of_its_overlap_in_the_same_colours():
    curves = {0.5: {"alone": curve(0.3), "matched": curve(0.4)}, 0.1: {"matched": curve(0.2)}}
    figure = precision_curves(curves)
    alone, matched, second = figure.data
    assert list(second.x) == [0.1, 0.2, 0.8] and second.xaxis != matched.xaxis
    assert second.line.color == matched.line.color != alone.line.color
    assert [trace.showlegend for trace in figure.data] == [True, True, False]


def test_no_precision_reached_is_no_recall():
    never = pd.DataFrame({"recall": [0.1], "precision": [0.5]})
    assert "finds 0%" in title(precision_curves({0.5: {"alone": never}}))


def test_bars_have_their_overlap_and_interval_and_the_largest_gives_the_title():
    figure = bars_by_overlap(rows(alone=(0.6, 0.5), matched=(0.62, 0.7)), "MRR")
    alone, matched = figure.data
    assert list(alone.x) == ["1", "0.5"] and list(alone.y) == [0.5, 0.6]
    np.testing.assert_allclose(matched.error_y.array, [0.05, 0.05])
    assert "Matched is best where 100% of a list have a partner: MRR 0.700" in title(figure)
    other = bars_by_overlap(rows(alone=(0.3, 0.5), matched=(0.62, 0.49)), "MRR")
    assert "Alone is best where 100% of a list have a partner: MRR 0.500 (0.450" in title(other)


@pytest.mark.parametrize(
    "make",
    [
        lambda: precision_curves({0.5: {HOSTILE: curve(0.3)}}, HOSTILE),
        lambda: bars_by_overlap(rows(**{HOSTILE: (0.6, 0.5)}), "MRR", HOSTILE),
    ],
)
def test_text_is_escaped(make):
    text = make().to_json().replace("\\u003c", "<").replace("\\u003e", ">")
    assert "&lt;script&gt;" in text and "<script>" not in text
    assert "&#36;" in text and "$" not in text
