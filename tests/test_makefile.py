"""What a user gives to make is text: no part of it is run, and every command gets it as it is."""

import os
import shutil
import subprocess

import pytest

from helpers.core import paths

# programs that only repeat what they get, one word a line, in place of those of the environment
REPEAT = '#!/bin/bash\nprintf "%s\\n" "${0##*/}" "$@"\n'
PROGRAMS = ("python", "jupyter", "papermill", "torchrun")
ATTACKS = [
    "x`touch owned`.csv",
    "'; touch owned; echo '$(shell touch owned)${shell touch owned}$(touch owned)\"; touch owned",
]
VARIABLES = ("POSTS", "RUN", "MODEL", "PORT", "JOBS", "PROCESSES")


@pytest.fixture
def make(tmp_path):
    """``make`` in a folder with a copy of the Makefile; returns the words that programs got."""
    shutil.copy(paths.ROOT / "Makefile", tmp_path)
    for folder in ("notebooks", "bin"):
        (tmp_path / folder).mkdir()
    for name in PROGRAMS:
        (tmp_path / "bin" / name).write_text(REPEAT)
        (tmp_path / "bin" / name).chmod(0o755)
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}

    def run(target, variables, **more):
        installed = []
        if target != "setup":  # as if everything were installed
            installed = ["-o", ".venv/.ok"]
        settings = [f"{name}={value}" for name, value in variables.items()]
        done = subprocess.run(
            ["make", "-s", *installed, target, "BIN=bin", *settings],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env=environment | more,
        )
        return done.stdout.splitlines()

    run.folder = tmp_path
    return run


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_of_it_is_run_and_a_file_arrives_as_it_is(make, attack):
    for target in ("mine", "reproduce", "lab", "train", "clean"):
        make(target, dict.fromkeys(VARIABLES, attack))
        given = {"RUN": "demo", "MODEL": "03_train", "PROCESSES": attack, "JOBS": attack}
        make(target, dict.fromkeys(VARIABLES, attack) | given)
        make(target, {"RUN": "demo"}, AUTHORBOOK_OUTPUTS=f"out {attack}", POSTS=attack)
    assert not list(make.folder.rglob("owned"))
    assert make("mine", {"POSTS": attack}) == ["python", "-m", "helpers", "mine", "--", attack]


def test_a_training_has_the_files_of_its_base_and_its_variant(make):
    words = make("train", {"RUN": "open", "MODEL": "03_train.T", "PROCESSES": "3"})
    files = ["-f", "params/open/03_train.yaml", "-f", "params/open/03_train.T.yaml"]
    place = words.index("-f")
    assert words[place : place + 4] == files, "the base first"
    assert words[words.index("--nproc-per-node") + 1] == "3"
    assert words[-1] == "outputs/open/train/03_train.T.py"
    assert make("train", {}).count("-f") == 1
    (folder,) = make.folder.glob("outputs/open/train")
    assert folder.stat().st_mode & 0o77 == 0, "for its owner alone"


@pytest.mark.parametrize("name", ["", "../x", ".", "a b"])
def test_no_other_folder_is_deleted(make, name):
    (make.folder / "outputs" / "demo").mkdir(parents=True)
    for target in ("clean", "train"):
        make(target, {"RUN": name})
    make("clean", {}, RUN="demo")
    assert (make.folder / "outputs" / "demo").exists() and make.folder.exists()
    make("clean", {"RUN": "demo"})
    assert not (make.folder / "outputs" / "demo").exists()


def test_the_lab_opens_copies_and_keeps_those_that_were_changed(make):
    copies = make.folder / "outputs/lab"
    for name in ("01_a", "02_b"):
        (make.folder / f"notebooks/{name}.ipynb").write_text("committed")
    words = [word for word in make("lab", {"PORT": "1234"}) if word != "--allow-root"]
    assert words == ["jupyter", "lab", "--port", "1234", "outputs/lab"]
    (copies / "01_a.ipynb").write_text("mine")
    said = "\n".join(make("lab", {}))
    assert "01_a.ipynb has your changes and is kept" in said and "02_b" not in said
    for name in ("01_a", "02_b"):
        (make.folder / f"notebooks/{name}.ipynb").write_text("newer")
    said = "\n".join(make("lab", {}))
    assert "notebooks/01_a.ipynb is newer" in said and "02_b" not in said
    assert (copies / "01_a.ipynb").read_text() == "mine"
    assert (copies / "02_b.ipynb").read_text() == "newer"
