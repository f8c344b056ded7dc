"""What commands say: safe text, exit codes, one sentence on what to do; no formula in a table."""

import io
import pickle
import re
import zlib

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.accounts.page import FOLDER
from helpers.core import messages
from helpers.core.messages import (
    DEFECT,
    FORMULA,
    FileError,
    explain_error,
    file_error,
    printable,
    readable_file,
    remedy,
    run_command,
    unescape_formula,
    without_formulas,
)


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))
    return tmp_path / "outputs"


def raised(function, *arguments):
    with pytest.raises(Exception) as caught:
        function(*arguments)
    return caught.value


def written(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return path


def test_what_to_do_about_a_damaged_file(tmp_path, outputs):
    shipped = messages.PACKAGE / "accounts" / "shipped" / "open-small" / "weights.safetensors"
    assert "weights.safetensors is damaged: install authorbook again" in str(file_error(shipped))
    made = written(outputs / "demo" / "results.csv")
    assert remedy(made) == f"delete {made}; `make reproduce RUN=demo` makes it again"
    for name in ("models/a/best.safetensors", "tokens/train/store.json"):
        path = outputs / "demo" / name
        written(path.with_name("another"))
        assert remedy(path).startswith(f"delete {path.parent}; `make reproduce")
    path = tmp_path / "posts.csv"
    assert remedy(path) == "look whether its name is right, or make or download it again"
    assert remedy(written(path)) == "look at it, and make or download it again"


def unpack(content):
    return zlib.decompress(content)


class TestReadable:
    @pytest.mark.parametrize(
        "error",
        [
            KeyError("embedding_size"),
            raised(unpack, b"x"),
            raised(pickle.loads, b"\x80\x04."),
            OSError(19, "No such device"),
        ],
    )
    def test_any_error_is_about_the_file(self, tmp_path, error):
        path = written(tmp_path / "x.bin")
        with pytest.raises(FileError, match="x.bin .*") as caught, readable_file(path):
            raise error
        message = str(caught.value)
        assert "\n" not in message and f"{type(error).__name__}:" not in message
        assert not str(error) or str(error) not in message
        assert caught.value.__suppress_context__, "a notebook shows no other error above it"


FULL = "free some space"
MEMORY = "the memory is full: close other programs, or take fewer posts"
LIBRARY_ERRORS = [
    (OSError(28, "No space left on device"), FULL),
    (
        duckdb.IOException(
            'IO Error: Async write failed: {"exception_message":"Could not write file '
            '\\"/t/unique.parquet\\": No space left on device","errno":"28"}'
        ),
        FULL,
    ),
    (MemoryError(), MEMORY),
    (duckdb.OutOfMemoryException("Out of Memory Error: could not allocate block"), MEMORY),
    (RuntimeError("[enforce fail at alloc_cpu.cpp:127] CPUAllocator: can't allocate"), MEMORY),
    (raised(np.concatenate, []), f"{DEFECT}: ValueError: "),
    (raised(int, "x"), f"{DEFECT}: ValueError: invalid literal"),
    (ModuleNotFoundError("No module", name="daft"), "`pip install 'authorbook[distributed]'`"),
]


@pytest.mark.parametrize(("error", "words"), LIBRARY_ERRORS)
def test_an_error_of_a_library_is_told_in_plain_words(error, words):
    message = explain_error(error)
    assert words in message and "{" not in message


@given(st.text())
def test_any_text_stays_on_its_line_and_can_be_printed(text):
    safe = printable(text)
    assert safe.isprintable() and len(safe.splitlines()) <= 1
    safe.encode("utf-8")
    assert printable(safe) == safe


def stop():
    raise KeyboardInterrupt


def find_name():
    return {}["Jane Roe"]


def complain():
    raise OSError("a name \x1b[31m\u202e\nof two lines")


def test_exit_codes(outputs, capsys):
    assert run_command(list) == 0 and capsys.readouterr() == ("", "")
    assert run_command(stop) == 130
    assert capsys.readouterr().err == "\nstopped; the same command continues from here\n"
    assert run_command(complain) == 1
    message = capsys.readouterr().err
    assert "\x1b" not in message and "\u202e" not in message and r"\x1b[31m\u202e" in message


def test_a_defect_is_told_with_its_lines_of_code(outputs, capsys):
    assert run_command(find_name) == 1
    message, *lines = capsys.readouterr().err.splitlines()
    assert message.startswith(f"{DEFECT}: KeyError: 'Jane Roe'; please report it with ")
    assert "in find_name" in "\n".join(lines) and "Jane Roe'" not in "\n".join(lines[-1:])


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
