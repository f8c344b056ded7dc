"""Open the stores of a run's splits, and encode the accounts of other runs as its guests."""

from collections.abc import Iterable

from helpers.core import paths
from helpers.runs import pipeline
from helpers.tokens import store
from helpers.tokens.tokenizer import Tokenizer

OWN_SPLITS = ("train", "dev", "test", "seen")


def open_stores(run: str, splits: Iterable[str], words: Tokenizer) -> dict[str, store.TokenStore]:
    """Open the store of each split; a split by another name is another run, with all its accounts.

    The posts of another run are collected if they are missing, and encoded as this run's own: with
    its tokenizer and, where training knows them, its topics.

    Parameters
    ----------
    run : str
        name of the run, which has the stores of its own splits
    splits : iterable of str
        "train", which is needed for other runs, "dev", "test", "seen", or names of other runs
    words : Tokenizer
        the run's tokenizer
    """
    files = paths.Run(run)
    stores = {}
    for split in dict.fromkeys(splits):
        if split in OWN_SPLITS:
            stores[split] = store.open_store(files.tokens / split)
            continue
        guest = paths.Run(split)
        pipeline.ensure(split, "01_collect", guest.posts / "split.json")
        posts = guest.posts / "all.parquet"
        topics = store.list_topics(posts, known=stores["train"].meta["topics"])
        encoding = (topics, words.fingerprint, words.vocabulary)
        stores[split] = store.build_store(posts, files.tokens / split, words.encode, *encoding)
    return stores
