"""Texts of strangers in tables for people: no formula, and read back as they were."""

import io
import re

import pandas as pd
import pytest

from helpers.accounts.page import FOLDER
from helpers.core.messages import FORMULA, unescape_formula, without_formulas

FORMULAS = ["=SUM(A1)", "+1", "-2", "@ann", "\tx", "\rx", "\uff1dA1", "'=SUM(A1)", "''+1"]


@pytest.mark.parametrize(
    "text", [*FORMULAS, "", "Ann", "o'Neil", "'Ann'", "a=b", "'", "u0123 + =x"]
)
def test_a_text_is_read_back_as_it_was(text):
    written = without_formulas(pd.DataFrame({"name": [text]})).name[0]
    assert unescape_formula(written) == text
    assert (written == text) == (text not in FORMULAS)
    assert not re.match(FORMULA, written) or written.startswith("'")


def test_numbers_of_a_table_stay():
    table = pd.DataFrame({"name": ["=A1", None], "llr": [-1.5, 2.0], "linked": [True, False]})
    read = pd.read_csv(io.StringIO(without_formulas(table).to_csv(index=False)))
    assert read.name[0] == "'=A1" and pd.isna(read.name[1])
    pd.testing.assert_frame_equal(read[["llr", "linked"]], table[["llr", "linked"]])


def test_the_page_escapes_as_the_tables_do():
    assert f"const formula = /^{FORMULA}/;" in (FOLDER / "page.js").read_text("utf-8")
