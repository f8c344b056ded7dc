"""Open the stores of a run's splits, and encode the accounts of other runs as its guests."""

from collections.abc import Iterable

from .. import sources
from ..cleaning.authors import same_author
from ..core import paths
from ..core.artifacts import read_json
from ..tokens import store
from ..tokens.batch import Samples
from ..tokens.tokenizer import Tokenizer, load_tokenizer
from .stages import ensure

OWN_SPLITS = ("train", "dev", "test", "seen")


def open_stores(run: str, splits: Iterable[str]) -> tuple[Tokenizer, dict[str, store.TokenStore]]:
    """Return the tokenizer of a run and the store of each split; what is missing is made.

    A split by another name than those of a run is another run, with all its accounts, or a split of
    another run, such as "bloggers.train". Its posts are encoded as this run's own: with this
    tokenizer and, where training knows them, these topics.

    Parameters
    ----------
    run : str
        name of the run
    splits : iterable of str
        "train", which comes before other runs, "dev", "test", "seen", or names of other runs and
        of their splits

    Raises
    ------
    ValueError
        another run has no such split
    """
    files = paths.Run(run)
    ensure(run, "02_tokenizer", files.tokens / "test" / "store.json")
    words = load_tokenizer(files.tokenizer)
    stores = {}
    for split in dict.fromkeys(splits):
        if split in OWN_SPLITS:
            stores[split] = store.open_store(files.tokens / split)
            continue
        posts = _posts_of_guest(split)
        topics = store.list_topics(posts, known=stores["train"].meta["topics"])
        encoding = (topics, words.fingerprint, words.vocabulary)
        stores[split] = store.build_store(posts, files.tokens / split, words.encode, *encoding)
    return words, stores


def describe_overlap(run: str, split: str, queries: Samples, train: store.TokenStore) -> str:
    """Say how many accounts of the queries are also in the training split, such as "3 of 20".

    Accounts are compared by their names. Pseudonyms serve as well, since all runs on a machine make
    them with one key. Where two runs may name accounts differently, the count would be 0 whatever
    is true, so "not known" is returned. So it is if no name is in both runs, as the key may have
    changed between them. Only a split of the run itself can have the count 0.

    Parameters
    ----------
    run : name of the run whose training split it is
    split : the split of the queries, as in :func:`open_stores`
    queries : N samples of the split's store
    train : the store of the run's training split
    """
    names = queries.store.author_names()
    accounts = {same_author(names[author]) for author in queries.authors}
    in_both = accounts & {same_author(name) for name in train.author_names()}
    guest, _ = _guest_and_split(split)
    if guest not in ("", run) and not (in_both and _name_alike(run, guest)):
        return "not known (the two runs may name accounts differently)"
    return f"{len(in_both):,} of {len(accounts):,}"


def _name_alike(run, guest):
    """Return whether a name in one run is that of the same account in the other one."""
    cards = [read_json(paths.Run(name).data_card) for name in (run, guest)]
    compared = ["source", "pseudonymise"]
    if cards[0]["source"] in (*sources.NAMED_BY_ARCHIVE, "table"):
        compared.append("location")
    return all(cards[0].get(key) == cards[1].get(key) for key in compared)


def _guest_and_split(name):
    """Return the run and the split that a name such as "blogs" or "bloggers.train" stands for.

    A split of the run itself, such as "dev", stands for no other run: "".
    """
    run, _, split = name.rpartition(".")
    if split in OWN_SPLITS:
        return run, split
    return name, "all"


def _posts_of_guest(name):
    """Return the posts table of another run, or of one of its splits, which is collected first."""
    run, split = _guest_and_split(name)
    guest = paths.Run(run)
    ensure(run, "01_collect", guest.posts / "split.json")
    posts = guest.posts / f"{split}.parquet"
    if not posts.exists():
        raise ValueError(f"the run {run!r} has no split {split!r}, for {name!r}")
    return posts
