"""The map as a widget: a lasso lists accounts, posts are text, a missing library is named."""

import sys

import numpy as np
import pytest

from helpers.figures import accounts

ARGUMENTS = (
    np.eye(3, 2),
    ["a", "<i>b</i>", "c"],
    np.array([4, 9, 16]),
    ["one", "<img src=x onerror=alert(1)>", "three"],
)


def test_a_lasso_lists_its_accounts():
    pytest.importorskip("jscatter", reason="needs jupyter-scatter")
    scatter, listed = accounts.explorer(*ARGUMENTS).children
    assert listed.value == "" and scatter.tooltip_enable
    assert (scatter.tooltip_preview, scatter.tooltip_preview_type) == ("post", "text"), (
        "a post is never HTML"
    )
    scatter.selection = [0, 2]  # as the browser sets it
    assert listed.value == "a\nc"
    scatter.selection = [1]
    assert listed.value == "<i>b</i>" and type(listed).__name__ == "Textarea", "which shows text"


def test_without_the_library_it_is_said_what_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "jscatter", None)
    with pytest.raises(ValueError, match="explore is True.*pip install jupyter-scatter"):
        accounts.explorer(*ARGUMENTS)
