"""The documents of a run: its posts joined to longer texts, as one posts table and one token store a split.

``documents/`` of the run holds ``<split>.parquet``, ``tokens/<split>/``, the tokenizer of a pretrained model, and
``documents.json``, the settings, with which :func:`open_documents` finds all of it again.
"""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
from pydantic import Field

from helpers.core.artifacts import read_json, write_json
from helpers.core.config import Config
from helpers.core.paths import Run
from helpers.corpus.joined_posts import join_posts
from helpers.tokens import tokenizer
from helpers.tokens.store import TokenStore, build_store, list_topics

SPLITS = ("train", "dev", "test")


class DocumentConfig(Config):
    """What a document is.

    max_chars, min_chars : of a document, see :func:`helpers.corpus.joined_posts.join_posts`; ``max_chars`` 0 takes posts
    as they are. model : whose tokens, those of a pretrained model, or "tiny", those of the run.
    """

    max_chars: int = Field(1500, ge=0)
    min_chars: int = Field(500, ge=1)
    model: str = "tiny"

    def documents_of(self, posts: Path, out: Path) -> Path:
        """The posts joined to documents, which ``out`` then holds, or the posts as they are."""
        if not self.max_chars:
            return posts
        join_posts(posts, out, max_chars=self.max_chars, min_chars=self.min_chars)
        return out

    def tokenizer_of(self, files: Run, folder: Path, posts: Path) -> tokenizer.Tokenizer:
        """That of the run, or the model's own, which is kept in ``folder``."""
        if self.model == "tiny":
            return tokenizer.load_tokenizer(files.tokenizer)
        return tokenizer.prepare_text(folder, "huggingface", 0, posts, pretrained_model=self.model)


@dataclass(frozen=True)
class Documents:
    """Documents by split: row n of a table (``author``, ``topic``, and ``id`` if any) is its store's post n."""

    tables: dict[str, pd.DataFrame]
    stores: dict[str, TokenStore]
    tokenizer: tokenizer.Tokenizer


def build_stores(
    paths: dict[str, Path], folder: Path, tokenizer: tokenizer.Tokenizer, topics: list[str]
) -> dict[str, TokenStore]:
    """Encode posts tables into a token store a split, or open what is current.

    Parameters
    ----------
    paths : split -> its posts table
    folder : of the stores, each in a folder named after its split
    tokenizer : of all
    topics : of training posts
    """
    stores = {}
    for split, path in paths.items():
        encoding = (tokenizer.encode, topics, tokenizer.fingerprint, tokenizer.vocabulary)
        stores[split] = build_store(path, folder / split, *encoding)
    return stores


def make_documents(files: Run, config: DocumentConfig = DocumentConfig()) -> Documents:
    """Join and encode the posts of a run, or open what is current. ValueError: no posts, tokenizer or document left."""
    folder = files.folder / "documents"
    topics = list_topics(files.posts / "train.parquet")
    paths = {split: config.documents_of(files.posts / f"{split}.parquet", folder / f"{split}.parquet")
             for split in SPLITS}  # fmt: skip
    tokens = config.tokenizer_of(files, folder / "tokenizer", paths["train"])
    stores = build_stores(paths, folder / "tokens", tokens, topics)
    # all columns but the texts, which of long documents do not fit the memory
    tables = {split: pd.read_parquet(path, columns=[name for name in ("author", "topic", "id")
                                                    if name in pq.read_schema(path).names])
              for split, path in paths.items()}  # fmt: skip
    write_json(folder / "documents.json", config.model_dump())
    return Documents(tables, stores, tokens)


def open_documents(files: Run) -> Documents:
    """The documents as they were made last. Raises ValueError where there are none."""
    return make_documents(
        files, DocumentConfig.of(read_json(files.folder / "documents" / "documents.json"))
    )
