"""Documents of a run, split by topic and stored as tokens: what the notebooks on topic read.

The folder ``topics/<kind>/`` of a run holds a split's posts tables, and its token stores in a
subfolder named after the kind of tokenizer. So the tokens of the run's own tokenizer are kept apart
from those of a pretrained transformer. Documents are made and encoded as in
:mod:`helpers.tokens.document_sets`.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.artifacts import read_json
from ..core.paths import Run
from ..splits.assignment import make_split
from ..splits.by_topic import TopicSplit
from ..tokens.document_sets import DocumentConfig, build_stores
from ..tokens.store import TokenStore, list_topics, open_store
from ..tokens.tokenizer import Tokenizer, load_tokenizer
from .masking import mask_posts, mask_text


@dataclass(frozen=True)
class TopicCorpus:
    """A split by topic: a posts table and a token store for each part; every post is a document.

    Attributes
    ----------
    folder : Path
        Folder of the posts tables.
    report : dict
        Content of ``split.json``.
    tokenizer : Tokenizer
        Tokenizer of the stores.
    stores : dict of str to TokenStore
        Token stores by part. Their topic list holds training topics only; :meth:`topics` tells all.
    """

    folder: Path
    report: dict
    tokenizer: Tokenizer
    stores: dict[str, TokenStore]

    @property
    def kind(self) -> str:
        """The kind of the split."""
        return self.report["settings"]["kind"]

    @property
    def tests(self) -> list[str]:
        """The test parts that the split has; a split given as files has no ``test_in``."""
        return [part for part in ("test_cross", "test_in") if part in self.stores]

    def table(self, part: str, columns: list[str] | None = None) -> pd.DataFrame:
        """Read the documents of a part, in the order of its store.

        Parameters
        ----------
        part : str
            name of the part, such as "train"
        columns : list of str or None
            columns to read, of author, time, topic and text; None for all
        """
        return pd.read_parquet(_table_path(self.folder, part), columns=columns)

    def topics(self, part: str) -> np.ndarray:
        """Read the name of the topic of each document of a part, (documents,)."""
        return self.table(part, ["topic"])["topic"].to_numpy()

    def masked(self, keep: frozenset[str], max_tokens: int) -> "TopicCorpus":
        """Return the same documents, cut, with all words masked but those to keep (DV-SA).

        They are written to the folder ``masked`` of this corpus.

        Parameters
        ----------
        keep : frozenset of str
            words that stay, lower-cased
        max_tokens : int
            L: a document is cut to its first L tokens before it is masked
        """
        change = partial(self._cut_and_mask, keep=keep, max_tokens=max_tokens)
        folder = self.folder / "masked"
        for part in self.stores:
            mask_posts(_table_path(self.folder, part), _table_path(folder, part), change)
        return replace(self, folder=folder, stores=_stores(folder, self.tokenizer, self.stores))

    def _cut_and_mask(self, text, keep, max_tokens):
        return mask_text(self.tokenizer.cut(text, max_tokens), keep, "single")


def make_corpus(files: Run, rule: TopicSplit, config: DocumentConfig) -> TopicCorpus:
    """Join a run's posts to documents, split and encode them; files that are up to date are reused.

    The run's own tokenizer was fitted on its training posts, some of which are in test documents
    here; it learned no authors.

    Parameters
    ----------
    files : Run
        a run with ``selected.parquet``
    rule : TopicSplit
        how documents are split
    config : DocumentConfig
        what a document is

    Raises
    ------
    ValueError
        If a part has no document, if the training part has a single topic, or for ``raw_texts``,
        which no retrieval reads.
    """
    if config.raw_texts:
        raise ValueError("documents: raw_texts are of verification (notebook 10), not of retrieval")
    topics = files.folder / "topics"
    posts = config.documents_of(files.folder / "selected.parquet", topics / "documents.parquet")
    folder = topics / rule.kind
    report = make_split(posts, folder, rule)
    if report["splits"]["train"]["topics"] < 2:
        raise ValueError(
            f"{rule.kind}: training has a single topic, so there is nothing to unlearn; "
            "raise topic_share"
        )
    tokenizer = config.tokenizer_of(files, topics / "tokenizer", posts)
    return TopicCorpus(folder, report, tokenizer, _stores(folder, tokenizer, report["splits"]))


def open_corpus(files: Run, kind: str, data: str) -> TopicCorpus:
    """Open the corpus that :func:`make_corpus` made before.

    Parameters
    ----------
    files : Run
        the run
    kind : str
        kind of the split
    data : str
        fingerprint of any of its stores, which tells the tokenizer

    Raises
    ------
    ValueError
        If there is no such corpus.
    """
    topics = files.folder / "topics"
    folder = topics / kind
    paths = [
        path for path in folder.glob("*/*/store.json") if read_json(path)["fingerprint"] == data
    ]
    if not paths:
        raise ValueError(
            f"no documents of the split {kind!r} in run {files.name!r}: run notebook 05"
        )
    report = read_json(folder / "split.json")
    tokens = paths[0].parents[1]
    stores = {part: open_store(tokens / part) for part in report["splits"]}
    is_pretrained = tokens.name == "huggingface"
    tokenizer = load_tokenizer(topics / "tokenizer" if is_pretrained else files.tokenizer)
    return TopicCorpus(folder, report, tokenizer, stores)


def _table_path(folder, part):
    return folder / f"{part}.parquet"


# the token stores of the posts tables of a folder, by part
def _stores(folder, tokenizer, parts):
    paths = {part: _table_path(folder, part) for part in parts}
    return build_stores(paths, folder / tokenizer.kind, tokenizer, list_topics(paths["train"]))
