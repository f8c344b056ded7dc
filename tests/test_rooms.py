"""The rooms in numbers: what counts as code, functions of a room, and the numbers of a commit."""

import importlib.util
import shutil
import subprocess

import pytest

from helpers.core import paths

_spec = importlib.util.spec_from_file_location("rooms", paths.ROOT / "docs" / "rooms.py")
rooms = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(rooms)

LONG = "def long():\n" + "    x = 1\n" * 41


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A package of one module, committed, to which another is added."""
    monkeypatch.setattr(rooms, "ROOT", tmp_path)
    room = tmp_path / "helpers" / "core"
    room.mkdir(parents=True)
    (room / "a.py").write_text("x = 1\n")
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    (room / "b.py").write_text(LONG)
    return tmp_path


@pytest.mark.parametrize(
    "source, tokens",
    [
        ("", 0),
        ("x = 1  # one", 3),
        ('"""A module.\n\nMore.\n"""\n\nx = [\n    1,\n]', 6),
        ('def f():\n    """Return."""\n    return "text"', 7),
        ('class A:\n    """Hold."""\n', 3),
        ('x = """no\ndocstring"""', 3),
    ],
)
def test_comments_and_docstrings_are_no_code(source, tokens):
    assert rooms.measure({"core/a.py": source})["all"].tokens == tokens


def test_a_function_has_the_lines_that_are_not_its_docstring():
    documented = LONG.replace("long():\n", 'long():\n    """Do.\n\n    It.\n    """\n')
    measured = rooms.measure({"core/a.py": documented, "core/b.py": "def f():\n    pass"})["core"]
    assert (measured.modules, measured.long_functions) == (2, 1)
    assert measured.longest == (42, "core/a.py: long")


def test_modules_in_no_room_are_counted_apart():
    measured = rooms.measure({"__init__.py": "x = 1", "core/a.py": "x = 1", "runs/a.py": "x"})
    assert {name: room.tokens for name, room in measured.items()} == {
        "helpers/": 3,
        "core": 3,
        "runs": 1,
        "all": 7,
    }


def test_the_numbers_of_a_commit_stand_beside_those_of_today(repository, capsys):
    rooms.main(["HEAD"])
    header, core, total, note = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["room", "modules", "tokens"]
    assert core.split() == "core 2 (1) 131 (3) 1 (0) core/b.py: long, 42 lines (none)".split()
    assert total.startswith("all ") and note == "in brackets: HEAD"


def test_a_room_that_went_is_shown(repository, capsys):
    shutil.rmtree(repository / "helpers" / "core")
    rooms.main(["HEAD"])
    assert "core 0 (1) 0 (3)" in " ".join(capsys.readouterr().out.split())


def test_an_unknown_commit_is_told_in_one_line(repository):
    with pytest.raises(SystemExit, match=r"helpers/ of 'nope' cannot be read: fatal: .*nope$"):
        rooms.main(["nope"])


def test_every_room_of_today_has_a_row(capsys):
    rooms.main([])
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    folders = {path.parent.name for path in (paths.ROOT / "helpers").glob("*/__init__.py")}
    assert set(names) == {"room", "helpers/", "all", *folders}
