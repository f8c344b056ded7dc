"""The stores that a notebook opens: those of a run's splits, and of other runs as guests."""

import pytest

from helpers.cleaning.authors import pseudonym_key, pseudonymiser
from helpers.core import paths
from helpers.core.artifacts import write_json
from helpers.runs.guests import describe_overlap, open_stores
from helpers.tokens.batch import Samples
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
    posts_table(paths.Run("guest").posts / "test.parquet", [("h", 1, "y", "three")])
    _, stores = open_stores("home", ["train", "guest.test"])
    assert words.decode(stores["guest.test"].tokens) == "three"


def store_of(run, split, authors):
    """A store of one post of each author, in order of their names."""
    folder = run.folder / "overlap"
    folder.mkdir(exist_ok=True)
    rows = [(author, 1, "x", "a post") for author in sorted(authors)]
    posts = posts_table(folder / f"{split}.parquet", rows)
    encoding = (["x"], WORDS.fingerprint, WORDS.vocabulary)
    return build_store(posts, folder / split, WORDS.encode, *encoding)


def overlap(run, split, authors, training_authors):
    queries = Samples.of_posts(store_of(run, split, authors))
    return describe_overlap(run.name, split, queries, store_of(run, "train", training_authors))


def write_cards(card, guest_card):
    write_json(paths.Run("home").data_card, card)
    write_json(paths.Run("guest").data_card, guest_card)


REDDIT = {"source": "pushshift", "pseudonymise": True}
NAMED = {"source": "pushshift", "pseudonymise": False}
MUD = {"source": "mud", "pseudonymise": False, "location": "a"}
OTHER_MUD = MUD | {"location": "b"}
FILE = {"source": "table", "pseudonymise": True, "location": "a.csv"}
NOT_KNOWN = "not known (the two runs may name accounts differently)"
OTHER_FILE = FILE | {"location": "b.csv"}


def test_accounts_of_a_split_of_the_run_are_counted(run):
    assert overlap(run, "seen", ["a", "b"], ["a", "b", "c"]) == "2 of 2"
    assert overlap(run, "home.dev", ["c", "d"], ["a", "b", "c"]) == "1 of 2"


def test_accounts_of_another_run_are_counted_by_pseudonym(run, monkeypatch):
    write_cards(REDDIT, REDDIT)
    names = [pseudonymiser(pseudonym_key())(name) for name in ("ann", "bo", "Ann", "dan")]
    assert overlap(run, "guest", names[2:], names[:2]) == "1 of 2"
    monkeypatch.setenv("AUTHORBOOK_PSEUDONYM_KEY", "ab" * 32)
    other_names = [pseudonymiser(pseudonym_key())("ann")]
    assert overlap(run, "guest", other_names, names[:2]) == NOT_KNOWN, "the key has changed"


@pytest.mark.parametrize(
    "card, guest_card, expected",
    [
        (REDDIT, MUD, NOT_KNOWN),
        (MUD, OTHER_MUD, NOT_KNOWN),
        (NAMED, REDDIT, NOT_KNOWN),
        (FILE, OTHER_FILE, NOT_KNOWN),
        (MUD, MUD, "1 of 2"),
        (FILE, FILE, "1 of 2"),
        (NAMED, NAMED, "1 of 2"),
    ],
)
def test_names_are_counted_where_they_can_be_compared(run, card, guest_card, expected):
    """Numbers are equal in archives whose people are not."""
    write_cards(card, guest_card)
    assert overlap(run, "guest", ["7", "a"], ["7", "9"]) == expected
