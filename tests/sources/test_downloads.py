"""What comes from the network: clones, whole, of a limited size and time."""

import subprocess

import pytest

from helpers.core import paths
from helpers.sources import git, open_source
from helpers.sources.git import repository_folder


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)


def test_a_clone_has_a_limited_size(tmp_path, monkeypatch):
    origin = tmp_path / "team" / "archive"
    origin.mkdir(parents=True)
    (origin / "zeros").write_bytes(bytes(3 << 20))  # a kilobyte to send
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=origin, check=True)
    monkeypatch.setattr(git, "MAX_CLONE_BYTES", 2 << 20)
    with pytest.raises(
        ValueError, match=f"^{origin.as_uri()} is larger than 2,097,152 bytes; clone it yourself"
    ):
        repository_folder("zulip", origin.as_uri())
    assert not list((tmp_path / "data" / "clones").iterdir())
    monkeypatch.setattr(git, "MAX_CLONE_BYTES", 1 << 30)
    assert (repository_folder("zulip", origin.as_uri()) / "zeros").stat().st_size == 3 << 20


def test_a_clone_has_a_limited_time_and_needs_git(tmp_path, monkeypatch):
    url = (tmp_path / "team" / "archive").as_uri()
    monkeypatch.setattr(git, "CLONE_SECONDS", 0)
    with pytest.raises(ValueError, match=f"^cloning {url} took 0 seconds; clone it yourself"):
        repository_folder("git", url)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match="needs git, which is not installed"):
        repository_folder("git", url)
    with pytest.raises(ValueError, match="needs git, which is not installed"):
        open_source("git", str(tmp_path))
    assert not list((tmp_path / "data" / "clones").iterdir())
