"""The documents of a run: its posts joined to longer texts, a table and a token store a split.

``documents/`` of the run holds ``<split>.parquet``, ``tokens/<split>/``, the tokenizer of a
pretrained model, and ``documents.json``, the settings, with which :func:`open_documents` finds all
of it again.
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
from helpers.tokens.store import TokenStore, build_store, list_topics
from helpers.tokens.tokenizer import Tokenizer, load_tokenizer, prepare_text

SPLITS = ("train", "dev", "test")


class DocumentConfig(Config):
    """What a document is.

    Attributes
    ----------
    max_chars : of a document, see :func:`helpers.corpus.joined_posts.join_posts`; 0 takes posts as
        they are
    min_chars : of a document
    model : whose tokens, those of a pretrained model, or "tiny", those of the run
    """

    max_chars: int = Field(1500, ge=0)
    min_chars: int = Field(500, ge=1)
    model: str = "tiny"

    def documents_of(self, posts: Path, out: Path) -> Path:
        """Join posts to documents.

        Parameters
        ----------
        posts : a posts table
        out : the table of documents to write

        Returns
        -------
        the table of documents; that of posts where they are taken as they are
        """
        if not self.max_chars:
            return posts
        join_posts(posts, out, max_chars=self.max_chars, min_chars=self.min_chars)
        return out

    def tokenizer_of(self, files: Run, folder: Path, posts: Path) -> Tokenizer:
        """Return the tokenizer of the documents.

        Parameters
        ----------
        files : the run, whose own tokenizer is returned where no model has one
        folder : where that of a pretrained model is kept
        posts : the table to train on; no pretrained model does
        """
        if self.model == "tiny":
            return load_tokenizer(files.tokenizer)
        return prepare_text(folder, "huggingface", 0, posts, pretrained_model=self.model)


@dataclass(frozen=True)
class Documents:
    """Documents by split.

    Attributes
    ----------
    tables : ``author``, ``topic``, and ``id`` if any; row n is the nth post of the split's store
    stores : a document a post
    tokenizer : of the stores
    """

    tables: dict[str, pd.DataFrame]
    stores: dict[str, TokenStore]
    tokenizer: Tokenizer


def build_stores(
    paths: dict[str, Path], folder: Path, tokenizer: Tokenizer, topics: list[str]
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
    """Join and encode the posts of a run, or open what is current.

    Parameters
    ----------
    files : the run
    config : what a document is

    Raises
    ------
    ValueError
        there are no posts, no tokenizer, or no document is left
    """
    folder = files.folder / "documents"
    topics = list_topics(files.posts / "train.parquet")
    paths = {}
    for split in SPLITS:
        name = f"{split}.parquet"
        paths[split] = config.documents_of(files.posts / name, folder / name)
    tokenizer = config.tokenizer_of(files, folder / "tokenizer", paths["train"])
    stores = build_stores(paths, folder / "tokens", tokenizer, topics)
    tables = {split: _read_without_texts(path) for split, path in paths.items()}
    write_json(folder / "documents.json", config.model_dump())
    return Documents(tables, stores, tokenizer)


def _read_without_texts(path):
    """Read a table but its texts, which of long documents do not fit the memory."""
    names = pq.read_schema(path).names
    columns = [name for name in ("author", "topic", "id") if name in names]
    return pd.read_parquet(path, columns=columns)


def open_documents(files: Run) -> Documents:
    """Open the documents as they were made last.

    Raises
    ------
    ValueError
        there are none
    """
    settings = read_json(files.folder / "documents" / "documents.json")
    return make_documents(files, DocumentConfig.of(settings))
