"""Documents of a run, split by topic and stored as tokens: what the notebooks on topic read.

``topics/<kind>/`` of a run holds a split's posts tables, and beside them its token stores in a folder named after the
tokenizer, so that a run's own tokens and those of a pretrained transformer do not meet.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from helpers.core.artifacts import read_json
from helpers.core.paths import Run
from helpers.splits.assignment import make_split
from helpers.splits.by_topic import TopicSplit
from helpers.tokens import tokenizer as tokenizers
from helpers.tokens.document_sets import DocumentConfig
from helpers.tokens.store import TokenStore, build_store, list_topics, open_store
from helpers.tokens.tokenizer import Tokenizer
from helpers.topic.masking import mask_posts, mask_text


@dataclass(frozen=True)
class TopicCorpus:
    """A split by topic: ``split.json`` as ``report``, and for each part a posts table and a token store.

    A document is a post of its store. ``stores`` know the training topics only; :meth:`topics` knows all.
    """

    folder: Path
    report: dict
    tokenizer: Tokenizer
    stores: dict[str, TokenStore]

    @property
    def kind(self) -> str:
        """Of the split."""
        return self.report["settings"]["kind"]

    @property
    def tests(self) -> list[str]:
        """The parts whose documents are asked about; given files have no in-distribution test."""
        return [part for part in ("test_cross", "test_in") if part in self.stores]

    def table(self, part: str) -> pd.DataFrame:
        """The documents of a part: author, time, topic, text, in the order of its store."""
        return pd.read_parquet(self.folder / f"{part}.parquet")

    def topics(self, part: str) -> np.ndarray:
        """(posts,) the topic of each document of a part, by name."""
        return pd.read_parquet(self.folder / f"{part}.parquet", columns=["topic"])[
            "topic"
        ].to_numpy()

    def masked(self, keep: frozenset[str], max_tokens: int) -> "TopicCorpus":
        """The same documents up to their first ``max_tokens`` tokens, all words masked but those to keep (DV-SA)."""
        folder, hide = self.folder / "masked", partial(mask_text, keep=keep, kind="single")
        for part in self.stores:
            mask_posts(self.folder / f"{part}.parquet", folder / f"{part}.parquet",
                       lambda text: hide(self.tokenizer.cut(text, max_tokens)))  # fmt: skip
        return replace(self, folder=folder, stores=_stores(folder, self.tokenizer, [*self.stores]))


def make_corpus(files: Run, rule: TopicSplit, config: DocumentConfig) -> TopicCorpus:
    """Join, split and encode the selected posts of a run; whatever is current is reused.

    The run's tokenizer knows no authors, but it was fitted on its training posts, and some are test documents here.
    Raises ValueError: where a split has no document, or a single topic trains.
    """
    posts = config.documents_of(
        files.folder / "selected.parquet", files.folder / "topics" / "documents.parquet"
    )
    folder = files.folder / "topics" / rule.kind
    report = make_split(posts, folder, rule)
    if report["splits"]["train"]["topics"] < 2:
        raise ValueError(
            f"{rule.kind}: training has a single topic, so there is nothing to unlearn; raise topic_share"
        )
    tokenizer = config.tokenizer_of(files, _own_tokenizer(files), posts)
    return TopicCorpus(folder, report, tokenizer, _stores(folder, tokenizer, [*report["splits"]]))


def open_corpus(files: Run, kind: str, data: str) -> TopicCorpus:
    """The corpus that :func:`make_corpus` left, by the fingerprint of one of its stores.

    Raises ValueError: where there is none.
    """
    folder = files.folder / "topics" / kind
    tokens = [
        path.parents[1]
        for path in folder.glob("*/*/store.json")
        if read_json(path)["fingerprint"] == data
    ]
    if not tokens:
        raise ValueError(
            f"no documents of the split {kind!r} in run {files.name!r}: run notebook 05"
        )
    report = read_json(folder / "split.json")
    stores = {part: open_store(tokens[0] / part) for part in report["splits"]}
    tokenizer = tokenizers.load_tokenizer(
        _own_tokenizer(files) if tokens[0].name == "huggingface" else files.tokenizer
    )
    return TopicCorpus(folder, report, tokenizer, stores)


def _own_tokenizer(files: Run) -> Path:
    return files.folder / "topics" / "tokenizer"


def _stores(folder: Path, tokenizer: Tokenizer, parts: list[str]) -> dict[str, TokenStore]:
    topics, tokens = list_topics(folder / "train.parquet"), folder / tokenizer.kind
    return {part: build_store(folder / f"{part}.parquet", tokens / part, tokenizer.encode, topics,
                              tokenizer.fingerprint, tokenizer.vocabulary) for part in parts}  # fmt: skip
