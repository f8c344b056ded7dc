"""Files are whole or absent: after errors, interrupts, kills and a full disk."""

import subprocess
import sys
import threading
import time

import pytest

from helpers.core import artifacts, paths
from helpers.core.artifacts import (
    atomic_write,
    file_fingerprint,
    folder_lock,
    is_current,
    read_json,
    verify_checksum,
    write_checksum,
    write_json,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class TestWhole:
    @pytest.mark.parametrize("kind", ["file", "folder"])
    def test_an_interrupt_keeps_the_old_one_and_leaves_nothing(self, tmp_path, kind):
        path = tmp_path / "x"
        inside = path / "inside" if kind == "folder" else path

        def make(text):
            with atomic_write(path) as partial:
                target = partial
                if kind == "folder":
                    partial.mkdir()
                    target = partial / "inside"
                target.write_text(text)
                if text == "half":
                    raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            make("half")
        assert names(tmp_path) == []
        make("old")
        with pytest.raises(KeyboardInterrupt):
            make("half")
        assert names(tmp_path) == ["x"] and inside.read_text() == "old"
        make("new")
        assert names(tmp_path) == ["x"] and inside.read_text() == "new"

    @pytest.mark.parametrize("left", ["folder", "link"])
    def test_what_a_killed_run_left_does_not_matter(self, tmp_path, left):
        partial = tmp_path / "x.partial"
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "kept").touch()
        if left == "folder":
            partial.mkdir()
            (partial / "half").touch()
        else:
            partial.symlink_to(elsewhere)
        with atomic_write(tmp_path / "x") as fresh:
            assert not fresh.exists()
            fresh.write_text("new")
        assert names(tmp_path) == ["elsewhere", "x"] and names(elsewhere) == ["kept"]

    def test_what_is_made_is_for_its_owner_alone(self, tmp_path, monkeypatch):
        """But for files of the repository that are no outputs; and what exists keeps its mode."""
        monkeypatch.setattr(artifacts.paths, "ROOT", tmp_path)
        monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))
        (tmp_path / "outputs" / "shared").mkdir(parents=True)
        for path in ("outputs/run/model", "outputs/shared/model", "docs/model"):
            with atomic_write(tmp_path / path) as partial:
                (partial / "deep").mkdir(parents=True)
                (partial / "deep" / "x").touch()
        modes = {
            path.relative_to(tmp_path).as_posix(): path.stat().st_mode & 0o777
            for path in tmp_path.rglob("*")
        }
        assert modes["outputs/run"] == 0o700, "so what is in it is private, too"
        assert modes["outputs/shared"] & modes["docs"] & 0o050


def test_a_changed_byte_of_json_is_never_read_as_another_value(tmp_path):
    path = tmp_path / "x.json"
    value = {"fingerprint": "v1", "shares": [0.25, 3], "ß": "日本", "topics": {"a": 1, "2": None}}
    write_json(path, value)
    whole = path.read_bytes()
    assert read_json(path) == value and "日本" in whole.decode()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            read = read_json(path)
        except ValueError as error:
            assert "x.json is" in str(error)
            assert not is_current(path, "v1")
        else:  # the byte was a blank, or of the word "checksum"
            assert {name: read[name] for name in value} == value


def test_a_sealed_file_is_read_as_it_was_or_not_at_all(tmp_path):
    path = tmp_path / "posts.parquet"
    assert not verify_checksum(path)
    path.write_bytes(bytes(range(50)))
    assert file_fingerprint(path) and not verify_checksum(path), "never sealed"
    write_checksum(path)
    assert verify_checksum(path)
    for place in range(50):
        data = bytearray(range(50))
        data[place] ^= 128
        path.write_bytes(data)
        assert not verify_checksum(path)
        with pytest.raises(
            ValueError,
            match="posts.parquet is damaged: look at it, and make or download it again",
        ):
            file_fingerprint(path)
    with atomic_write(path) as partial:
        partial.write_bytes(b"new")
    assert names(tmp_path) == ["posts.parquet"], "the seal was of the old one"
    assert file_fingerprint(path)


HOLD = """
import sys
from helpers.core.artifacts import folder_lock
with folder_lock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of a folder, until it may read no more."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        cwd=paths.ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.communicate()


def test_another_process_is_refused_or_waits_until_the_holder_ends(tmp_path, holder, capsys):
    with pytest.raises(ValueError, match="is in use by another process: wait until it has ended"):
        with folder_lock(tmp_path / "x" / "..", wait=False):
            pass
    entered = []

    def enter():
        with folder_lock(tmp_path):
            entered.append(True)

    thread = threading.Thread(target=enter)
    thread.start()
    time.sleep(0.3)
    assert not entered
    holder.kill()  # the system lets go of what a killed process held
    thread.join(10)
    assert entered == [True]
    message = "is in use by another process: waiting until it has ended\n"
    assert capsys.readouterr().err.endswith(message)
    assert (tmp_path / ".lock").stat().st_mode & 0o077 == 0
