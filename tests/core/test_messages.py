"""What commands say: safe text, exit codes, and of every exception one sentence on what to do."""

import pickle
import zlib

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.core import messages
from helpers.core.messages import (
    DEFECT,
    FileError,
    explain_error,
    file_error,
    printable,
    readable_file,
    remedy,
    run_command,
)


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))
    return tmp_path / "outputs"


def raised(function, *arguments):
    """Return what a function raises."""
    with pytest.raises(Exception) as caught:
        function(*arguments)
    return caught.value


def written(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return path


class TestRemedy:
    def test_what_ships_is_restored(self):
        path = messages.PACKAGE / "accounts" / "shipped" / "open-small" / "weights.safetensors"
        shown = "helpers/accounts/shipped/open-small/weights.safetensors"
        assert str(file_error(path)).startswith(f"{shown} is damaged: install authorbook again")

    def test_what_was_made_is_deleted_and_made_again(self, outputs):
        table = written(outputs / "demo" / "results.csv")
        assert remedy(table) == f"delete {table}; `make reproduce RUN=demo` makes it again"
        table.unlink()
        assert remedy(table) == "`make reproduce RUN=demo` makes it again"

    @pytest.mark.parametrize("name", ["models/a/best.safetensors", "tokens/train/store.json"])
    def test_files_that_belong_together_are_deleted_together(self, outputs, name):
        path = outputs / "demo" / name
        written(path.with_name("another"))
        assert remedy(path).startswith(f"delete {path.parent}; `make reproduce")

    def test_what_is_the_users_is_looked_at(self, tmp_path, outputs):
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


FULL = [
    OSError(28, "No space left on device"),
    duckdb.TransactionException(
        'TransactionContext Error: Failed to commit: Could not write file "/t/work.duckdb.wal": '
        "No space left on device"
    ),
    duckdb.IOException(
        'IO Error: Async write failed: {"exception_message":"Could not write file '
        '\\"/t/unique.parquet\\": No space left on device","errno":"28"}'
    ),
]


class TestExplain:
    @pytest.mark.parametrize("error", FULL)
    def test_a_full_disk_in_the_words_of_every_library(self, error):
        message = explain_error(error)
        assert message.startswith("the disk is full") and "free some space" in message
        assert "Error" not in message and "{" not in message
        assert isinstance(error, OSError | RuntimeError) or " at /t/" in message

    @pytest.mark.parametrize(
        "error",
        [
            MemoryError(),
            duckdb.OutOfMemoryException("Out of Memory Error: could not allocate block of size"),
            RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate"),
        ],
    )
    def test_too_little_memory(self, error):
        assert (
            explain_error(error) == "the memory is full: close other programs, or take fewer posts"
        )

    def test_a_librarys_value_error_is_a_defect(self):
        assert explain_error(raised(np.concatenate, [])).startswith(f"{DEFECT}: ValueError: ")
        assert explain_error(raised(int, "x")).startswith(f"{DEFECT}: ValueError: invalid literal")

    def test_a_missing_package(self):
        message = explain_error(ModuleNotFoundError("No module named 'daft'", name="daft"))
        assert message.endswith("else `pip install 'authorbook[distributed]'`")


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
