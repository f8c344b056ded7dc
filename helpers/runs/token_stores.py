"""Open the stores of a run's splits, and encode the accounts of other runs as its guests."""

from collections.abc import Iterable

from ..core import paths
from ..tokens import store
from ..tokens.tokenizer import Tokenizer, load_tokenizer
from . import pipeline

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
    pipeline.ensure(run, "02_tokenizer", files.tokens / "test" / "store.json")
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


def _posts_of_guest(name):
    """Return the posts table of another run, or of one of its splits, which is collected first."""
    run, _, split = name.rpartition(".")
    if split not in OWN_SPLITS:
        run, split = name, "all"
    guest = paths.Run(run)
    pipeline.ensure(run, "01_collect", guest.posts / "split.json")
    posts = guest.posts / f"{split}.parquet"
    if not posts.exists():
        raise ValueError(f"the run {run!r} has no split {split!r}, for {name!r}")
    return posts
