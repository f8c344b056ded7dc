"""Two commands at once in one folder: every answer is about the file asked about.

Each answer is compared with that of the same command alone. The files have the same accounts, whose
words differ from file to file, so that an answer about another file has other numbers.
"""

import tempfile
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.accounts.__main__ import main
from helpers.cleaning.authors import pseudonym_key
from helpers.core import paths
from helpers.corpus.collection import CollectConfig, collect
from tests.forks import Fork

WORDS = (
    "the a tea coffee maybe never always ok well then so but green red two three like want good "
    "old new day night work home garden river music train paper letter winter summer honest"
).split()
FILES = ("a.csv", "b.csv", "c.csv")
ACCOUNTS = 8


def write_posts(path, seed):
    """A CSV of accounts that prefer some words; which words, the seed says."""
    rng = np.random.default_rng(seed)
    rows = []
    for account in range(ACCOUNTS):
        preferred = rng.choice(WORDS, 12, replace=False)
        for day in range(1, 13):
            text = " ".join(rng.choice(preferred, 14))
            rows.append((f"person {account}", f"2024-01-{day:02d}T0{account}:00:00Z", "all", text))
    frame = pd.DataFrame(rows, columns=["user", "date", "room", "message"])
    frame.to_csv(path, index=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with FILES, and a key of pseudonyms that all processes have."""
    folder = tmp_path_factory.mktemp("at_once")
    for seed, name in enumerate(FILES):
        write_posts(folder / name, seed)
    patch = pytest.MonkeyPatch()
    patch.setenv("AUTHORBOOK_PSEUDONYM_KEY", "5" * 64)
    yield folder
    patch.undo()


def check_alike(folder, both):
    """Give commands at once, and each alone: what is not refused in one sentence is the same."""
    outputs = Path(tempfile.mkdtemp(dir=folder))
    at_once = [start(outputs, command) for command in both]
    for command, process in zip(both, at_once):
        code = process.wait()
        messages = process.errors()
        if not (code == 1 and messages.count("\n") == 1 and " is in use by " in messages):
            alone = Path(tempfile.mkdtemp(dir=folder))
            expected = start(alone, command)
            assert code == expected.wait(), messages
            printed = expected.printed().replace(str(alone), str(outputs))
            assert process.printed() == printed, messages


def start(outputs, command):
    place = Path(tempfile.mkdtemp(dir=outputs))
    variables = {"AUTHORBOOK_OUTPUTS": str(outputs), "TQDM_DISABLE": "1"}
    return Fork(place, main, command, variables=variables)


def run_threads(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_two_commands_answer_about_their_own_files(folder):
    first = ["mine", str(folder / "a.csv"), "--accounts", "person 4"]
    check_alike(folder, [first, ["mine", str(folder / "b.csv"), "--accounts", "person 1"]])


def test_two_collections_in_one_folder(folder, tmp_path, monkeypatch):
    """In threads of one process, as two notebooks of one server might."""
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    columns = {"author": "user", "time": "date", "topic": "room", "text": "message"}
    cards = {}
    errors = []

    def read(run, name):
        location = [str(folder / name)]
        config = CollectConfig(source="table", location=location, columns=columns)
        try:
            cards[run, name] = collect(paths.Run(run), config, workers=1)
        except Exception as error:
            errors.append(error)

    for name in FILES:
        read(f"alone-{Path(name).stem}", name)
    for _ in range(2):
        run_threads([threading.Thread(target=read, args=("both", name)) for name in FILES])
        assert not errors
        for name in FILES:
            assert cards.pop(("both", name)) == cards[f"alone-{Path(name).stem}", name]


def test_two_first_uses_of_the_key_of_pseudonyms(tmp_path, monkeypatch):
    monkeypatch.delenv("AUTHORBOOK_PSEUDONYM_KEY", raising=False)
    for number in range(5):
        monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / str(number)))
        keys = []
        starts = threading.Barrier(3)

        def use_key(keys=keys, starts=starts):
            starts.wait()
            keys.append(pseudonym_key())

        run_threads([threading.Thread(target=use_key) for _ in range(3)])
        assert len(keys) == 3 and len(set(keys)) == 1
