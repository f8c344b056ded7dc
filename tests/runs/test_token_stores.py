"""The stores that a notebook opens: those of a run's splits, and of other runs as guests."""

import pytest

from helpers.core import paths
from helpers.runs.token_stores import open_stores
from helpers.tokens.store import build_store
from helpers.tokens.tokenizer import Bytes, save_tokenizer
from tests.factories import posts_table

WORDS = Bytes()
WORDS.fingerprint = "bytes"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run with the stores train and dev, whose topic is x, beside a collected run "guest"."""
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    run = paths.Run("home")
    run.posts.mkdir(parents=True)
    for split in ("train", "dev"):
        posts = posts_table(run.posts / f"{split}.parquet", [(f"{split} 1", 1, "x", "a post")])
        encoding = (["x"], WORDS.fingerprint, WORDS.vocabulary)
        build_store(posts, run.tokens / split, WORDS.encode, *encoding)
    (run.tokens / "test").mkdir()
    (run.tokens / "test" / "store.json").write_text("{}")
    save_tokenizer(WORDS, run.tokenizer)
    guest = paths.Run("guest")
    guest.posts.mkdir(parents=True)
    posts_table(guest.posts / "all.parquet", [("g", 1, "y", "one"), ("g", 2, "x", "two")])
    (guest.posts / "split.json").write_text("{}")
    return run


def test_another_run_is_encoded_as_this_one(run):
    words, stores = open_stores("home", ["train", "dev", "guest", "dev"])
    assert [*stores] == ["train", "dev", "guest"]
    assert stores["dev"].meta["topics"] == ["x"] and stores["dev"].posts == 1
    guest = stores["guest"]
    assert guest.meta["topics"] == ["x", "y"], "topics that training knows keep their rows"
    assert guest.topic.tolist() == [1, 0] and guest.folder == run.tokens / "guest"
    assert words.decode(guest.tokens) == "onetwo"


def test_a_split_of_another_run_is_encoded_alone(run):
    guest = paths.Run("guest")
    posts_table(guest.posts / "test.parquet", [("h", 1, "y", "three")])
    words, stores = open_stores("home", ["train", "guest.test"])
    assert words.decode(stores["guest.test"].tokens) == "three"
    assert stores["guest.test"].author_names() == ["h"]


def test_a_split_that_another_run_lacks_is_named(run):
    with pytest.raises(ValueError, match="the run 'guest' has no split 'dev', for 'guest.dev'"):
        open_stores("home", ["train", "guest.dev"])


def test_a_split_without_a_store_is_named(run):
    with pytest.raises((ValueError, FileNotFoundError), match="seen"):
        open_stores("home", ["train", "seen"])
