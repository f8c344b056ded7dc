"""The documents of a run: its posts joined to longer texts, as one posts table and one token store a split.

``documents/`` of the run holds ``<split>.parquet``, ``tokens/<split>/``, the tokenizer of a pretrained model, and
``documents.json``, the settings, with which :func:`open_documents` finds all of it again.
"""

from dataclasses import dataclass

import pandas as pd
import pyarrow.parquet as pq
from pydantic import Field

from helpers.corpus.documents import join_posts
from helpers.runs.artifacts import read_json, write_json
from helpers.runs.config import Config
from helpers.runs.paths import Run
from helpers.tokens import tokenizer
from helpers.tokens.store import TokenStore, build_store, list_topics

SPLITS = ("train", "dev", "test")


class DocumentConfig(Config):
    """What a document is.

    max_chars, min_chars : of a document, see :func:`helpers.corpus.documents.join_posts`; ``max_chars`` 0 takes posts
    as they are. model : whose tokens, those of a pretrained model, or "tiny", those of the run.
    """

    max_chars: int = Field(1500, ge=0)
    min_chars: int = Field(500, ge=1)
    model: str = "tiny"


@dataclass(frozen=True)
class Documents:
    """Documents by split: row n of a table (``author``, ``topic``, and ``id`` if any) is its store's post n."""

    tables: dict[str, pd.DataFrame]
    stores: dict[str, TokenStore]
    tokenizer: tokenizer.Tokenizer


def make_documents(files: Run, config: DocumentConfig = DocumentConfig()) -> Documents:
    """Join and encode the posts of a run, or open what is current. ValueError: no posts, tokenizer or document left."""
    folder = files.folder / "documents"
    paths = {split: files.posts / f"{split}.parquet" for split in SPLITS}
    topics = list_topics(paths["train"])
    if config.max_chars:
        for split, posts in paths.items():
            paths[split] = folder / f"{split}.parquet"
            join_posts(posts, paths[split], max_chars=config.max_chars, min_chars=config.min_chars)
    if config.model == "tiny":
        tokens = tokenizer.load(files.tokenizer)
    else:
        tokens = tokenizer.prepare(folder / "tokenizer", "huggingface", 0, paths["train"],
                                   pretrained_model=config.model)  # fmt: skip
    stores = {split: build_store(path, folder / "tokens" / split, tokens.encode, topics, tokens.fingerprint,
                                 tokens.vocabulary) for split, path in paths.items()}  # fmt: skip
    # all columns but the texts, which of long documents do not fit the memory
    tables = {split: pd.read_parquet(path, columns=[name for name in ("author", "topic", "id")
                                                    if name in pq.read_schema(path).names])
              for split, path in paths.items()}  # fmt: skip
    write_json(folder / "documents.json", config.model_dump())
    return Documents(tables, stores, tokens)


def open_documents(files: Run) -> Documents:
    """The documents as they were made last. Raises ValueError where there are none."""
    return make_documents(files, DocumentConfig.of(read_json(files.folder / "documents" / "documents.json")))
