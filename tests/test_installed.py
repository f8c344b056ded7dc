"""The wheel, installed beside what it declares and nothing else, works in anybody's folder."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from packaging.requirements import Requirement

from helpers.core import paths
from tests.factories import write_demo_csv

BUILD = "import sys; from hatchling import build; print(build.build_wheel(sys.argv[1]))"
# a package of the user's that has the name which ours has in a checkout
FOREIGN = 'raise RuntimeError("the package helpers of this folder was imported")\n'
# command -> its words, and what it prints
COMMANDS = {
    "encode": (["few.csv", "vectors.parquet"], "accounts x 1028 -> vectors.parquet"),
    "match": (["year-1.csv", "year-2.csv"], "authorbook/outputs/match/report.html"),
    "mine": (["few.csv"], "authorbook/outputs/mine/report.html"),
}
# what a user does, all in one process, as torch takes seconds to import; it prints what came of it
SESSION = """
import contextlib, io, json, sys
import authorbook
answers = {"heavy": sorted({"numpy", "pandas", "torch", "transformers"} & set(sys.modules))}
from importlib.metadata import entry_points
(script,) = entry_points(group="console_scripts", name="authorbook")
from authorbook.runs.__main__ import main as run_notebooks
commands = {name: (script.load(), words) for name, words in json.loads(sys.argv[1]).items()}
commands["runs"] = (run_notebooks, ["demo", "--list"])
commands["nobody"] = (script.load(), ["mine", "few.csv", "--accounts", "nosuch", "--names"])
for name, (main, words) in commands.items():
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = main(words)
    answers[name] = [code, out.getvalue(), errors.getvalue()]
answers["vectors"] = authorbook.AuthorEncoder.load("open-small").encode([["a", "b"]]).shape
answers["foreign"] = "helpers" in sys.modules
json.dump(answers, sys.stdout)
"""


def build_wheel(folder):
    copy = folder / "checkout"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(paths.ROOT / name, copy)
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(paths.ROOT / "helpers", copy / "helpers", ignore=without)
    done = subprocess.run(
        [sys.executable, "-c", BUILD, folder], cwd=copy, check=True, capture_output=True, text=True
    )
    return folder / done.stdout.splitlines()[-1]


def needed_packages(requirements, seen):
    """Return the names of all packages that requirements need on this machine, themselves too."""
    for text in requirements:
        requirement = Requirement(text)
        key = (requirement.name, frozenset(requirement.extras))
        extras = requirement.extras or {""}
        marker = requirement.marker
        if key not in seen and (not marker or marker.evaluate({"extra": ""})):
            seen.add(key)
            for needed in importlib.metadata.requires(requirement.name) or []:
                of_needed = Requirement(needed).marker
                if not of_needed or any(of_needed.evaluate({"extra": extra}) for extra in extras):
                    needed_packages([needed.partition(";")[0]], seen)
    return {name for name, _ in seen}


def link_packages(names, site_packages):
    for name in names:
        distribution = importlib.metadata.distribution(name)
        tops = {file.parts[0] for file in distribution.files} - {"..", "__pycache__"}
        for top in tops:
            link = site_packages / top
            if not link.exists():
                link.symlink_to(distribution.locate_file(top))


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A fresh environment: the wheel and what it declares, no extra, no checkout; and its user."""
    folder = tmp_path_factory.mktemp("installed")
    wheel = build_wheel(folder)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "-q", "--python", python]
    elsewhere = os.environ | {"PYTHONPATH": ""}  # where the checkout's own metadata may lie
    subprocess.run([*pip, "install", "--no-deps", "--no-index", wheel], check=True, env=elsewhere)
    (site_packages,) = folder.glob("venv/lib/python*/site-packages")
    (metadata,) = site_packages.glob("authorbook-*.dist-info")
    requirements = importlib.metadata.Distribution.at(metadata).requires
    base = [text for text in requirements if "extra ==" not in text]
    link_packages(needed_packages(base, set()), site_packages)
    return folder


def write_user_folder(folder):
    """Write posts, and a package helpers of the user's own."""
    (folder / "helpers").mkdir(parents=True)
    (folder / "helpers" / "__init__.py").write_text(FOREIGN)
    write_demo_csv(folder / "posts.csv", evader="demo-0003", accounts=32, posts=700)
    posts = pd.read_csv(folder / "posts.csv")
    posts[posts.nick < "demo-0006"].to_csv(folder / "few.csv", index=False)
    is_late = posts.groupby("nick").cumcount() % 2 == 1
    posts[~is_late].to_csv(folder / "year-1.csv", index=False)
    posts[is_late].to_csv(folder / "year-2.csv", index=False)


def run_program(environment, name, *words):
    """Run a program of the environment in the user's folder, whose packages come first."""
    work = environment / "work"
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(environment / "home"),
        "PYTHONPATH": str(work),
        "PYTHONDONTWRITEBYTECODE": "1",  # any new file in the environment is one too many
        "OMP_NUM_THREADS": "1",
        "TQDM_DISABLE": "1",
    }
    command = [environment / "venv" / "bin" / name, *words]
    done = subprocess.run(command, cwd=work, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def answers(environment):
    """What came of SESSION, and which files it wrote."""
    write_user_folder(environment / "work")
    words = {name: [name, *words] for name, (words, _) in COMMANDS.items()}
    folders = {name: environment / name for name in ("venv", "work", "home")}
    files = {name: files_of(folder) for name, folder in folders.items()}
    answers = json.loads(run_program(environment, "python", "-c", SESSION, json.dumps(words)))
    answers["written"] = {
        name: [path.relative_to(folder) for path, _ in files_of(folder) - files[name]]
        for name, folder in folders.items()
    }
    answers["help"] = run_program(environment, "authorbook", "--help")
    return answers


def files_of(folder):
    return {(path, path.stat().st_mtime) for path in folder.rglob("*") if path.is_file()}


def test_its_commands_work_in_anybodys_folder(answers):
    assert "authorbook" in answers["help"]
    for command, (_, words) in COMMANDS.items():
        code, printed, errors = answers[command]
        assert (code, errors) == (0, "") and words in printed, command
    code, printed, errors = answers["nobody"]
    assert (code, printed) == (1, "") and errors.count("\n") == 1, "an error is a sentence"
    assert errors.endswith("the first is nosuch\n") and "defect" not in errors
    code, printed, errors = answers["runs"]
    assert (code, printed) == (1, "")
    assert errors.startswith("the notebooks and the parameters of their runs are no part of")


def test_it_is_imported_at_once_and_makes_vectors(answers):
    assert answers["heavy"] == [] and not answers["foreign"]
    assert answers["vectors"][0] == 1


def test_it_writes_to_the_users_folder_only(answers):
    assert answers["written"]["venv"] == []
    assert answers["written"]["work"] == [Path("vectors.parquet")], "the file that was named"
    folders = {path.parts[:-1] for path in answers["written"]["home"]}
    data_folder = (".local", "share", "authorbook", "outputs")
    assert {*data_folder, "mine"} <= set().union(*folders)
    assert {folder[:4] for folder in folders} == {data_folder}


def test_every_file_of_the_package_is_installed(environment):
    (package,) = environment.glob("venv/lib/python*/site-packages/authorbook")
    checkout = paths.ROOT / "helpers"
    committed = {path.relative_to(checkout) for path in checkout.rglob("*.*") if path.is_file()}
    installed = {path.relative_to(package) for path in package.rglob("*.*") if path.is_file()}
    assert Path("py.typed") in installed
    assert {path for path in committed ^ installed if path.suffix != ".pyc"} == set()
