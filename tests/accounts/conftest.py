"""The encoder that ships and invented accounts, read once for all tests of the room."""

import sys

import pytest

from helpers.accounts import page, reading
from helpers.accounts.answers import match
from helpers.accounts.encoder import AuthorEncoder
from helpers.accounts.validation import choose_calibration
from helpers.core.paths import ROOT, Run
from tests.factories import write_demo_csv

sys.path.append(str(ROOT / "benchmarks"))


@pytest.fixture(autouse=True)
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))


@pytest.fixture(scope="session")
def encoder():
    return AuthorEncoder.load("open-small")


@pytest.fixture(scope="session")
def invented(tmp_path_factory):
    """A CSV of 40 invented accounts, one of whom came back as newcomer."""
    path = tmp_path_factory.mktemp("invented") / "posts.csv"
    write_demo_csv(path, evader="demo-0003", accounts=40, posts=1600)
    return path


@pytest.fixture(scope="session")
def mine(encoder, invented, tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path_factory.mktemp("outputs")))
    yield reading.read_posts(Run("mine"), str(invented), encoder, pseudonymise=False)
    patch.undo()


@pytest.fixture(scope="session")
def choice(mine):
    return choose_calibration(mine)


@pytest.fixture(scope="session")
def gallery(encoder, mine):
    return mine.gallery()


@pytest.fixture(scope="session")
def answer(mine, encoder):
    return match(mine)


@pytest.fixture(scope="session")
def record(answer):
    return page.answer_record(answer, ["posts.csv"], "open-small")
