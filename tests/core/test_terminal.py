"""The end of a command: exit codes, one sentence, the lines of a defect; text that stays a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.core.errors import DEFECT
from helpers.core.terminal import printable, run_command


@pytest.mark.parametrize(
    "text, safe",
    [
        ("Zoë 日本 d'Ars 😀", "Zoë 日本 d'Ars 😀"),
        ("\x1b]0;title\x07\x1b[2J", r"\x1b]0;title\x07\x1b[2J"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("a\u200bb\xa0c", r"a\u200bb\xa0c"),
        ("first\nsecond\r\t\u2028", r"first\nsecond\r\t\u2028"),
        ("\ud800\x9b", r"\ud800\x9b"),
        (7, "7"),
    ],
)
def test_what_a_terminal_obeys_is_escaped(text, safe):
    assert printable(text) == safe


@given(st.text())
def test_any_text_stays_on_its_line_and_can_be_printed(text):
    safe = printable(text)
    assert safe.isprintable() and len(safe.splitlines()) <= 1
    safe.encode("utf-8")
    assert printable(safe) == safe


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    return tmp_path


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


def test_a_message_cannot_steer_the_terminal(outputs, capsys):
    run_command(complain)
    message = capsys.readouterr().err
    assert "\x1b" not in message and "\u202e" not in message and r"\x1b[31m\u202e" in message


def test_a_defect_is_one_line_and_its_lines_of_code_are_kept_without_names(outputs, capsys):
    assert run_command(find_name) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"{DEFECT}: KeyError: 'Jane Roe'; please report it with ")
    assert message.count("\n") == 1 and "Traceback" not in message
    kept = (outputs / "traceback.txt").read_text("utf-8")
    assert "in find_name" in kept and kept.endswith("KeyError\n") and "Jane Roe'" not in kept


def test_a_defect_is_told_where_nothing_can_be_written(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "file"))
    assert run_command(find_name) == 1
    assert "in find_name" in capsys.readouterr().err
