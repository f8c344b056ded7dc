"""The documents of a run: posts joined to longer texts, one table and one token store per split.

The folder ``documents/`` of the run holds ``<split>.parquet`` (unless posts are taken as they are),
``tokens/<split>/``, the tokenizer of a pretrained model, and the settings in ``documents.json``,
from which :func:`open_documents` opens all of it again. With the setting ``raw_texts`` there is
also ``raw/<split>/``, the bytes of the texts.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from pydantic import Field, model_validator

from ..core.artifacts import folder_lock, read_json, write_json
from ..core.parameters import Config
from ..core.paths import Run
from ..corpus.joined_posts import join_posts
from .batch import Samples, chunk_documents
from .store import TokenStore, build_store, list_topics, with_arrays
from .tokenizer import Tokenizer, load_tokenizer, prepare_text

SPLITS = ("train", "dev", "test")


class DocumentConfig(Config):
    """How posts become documents and documents become tokens.

    Attributes
    ----------
    max_chars : most characters of a document, see
        :func:`helpers.corpus.joined_posts.join_posts`; 0 takes each post as a document
    min_chars : fewest characters of a document; ignored where max_chars is 0
    model : the pretrained model whose tokenizer is used; "tiny" uses the run's own tokenizer
    raw_texts : whether the baselines that count characters or words read the whole texts, as they
        were written (tyo2021 section 3), from a second store of their bytes. Else they read the
        text of the tokens that every system reads; the tokens of a pretrained model may have lost
        case, accents and blanks
    """

    max_chars: int = Field(1500, ge=0, le=10**7)
    min_chars: int = Field(500, ge=1, le=10**7)
    model: str = "tiny"
    raw_texts: bool = False

    @model_validator(mode="after")
    def _some_length_is_left(self):
        if 0 < self.max_chars < self.min_chars:
            raise ValueError(
                f"min_chars ({self.min_chars}) must not be above max_chars ({self.max_chars})"
            )
        return self

    def check_encoders(self, encoders: dict[str, Any]) -> None:
        """Check that the encoders read the tokens of these documents.

        Parameters
        ----------
        encoders : StreamConfig of each encoder, by the name that a message gives it

        Raises
        ------
        ValueError
            If one is a transformer of another pretrained model.
        """
        for name, encoder in encoders.items():
            if encoder.post == "transformer" and encoder.model != self.model:
                raise ValueError(f"{name!r} needs documents of the model {encoder.model!r}")

    def documents_of(self, posts: Path, out: Path) -> Path:
        """Join posts to documents, and return the path of their table.

        Parameters
        ----------
        posts : path of a posts table
        out : path of the table of documents to write

        Returns
        -------
        ``out``; ``posts``, and nothing is written, where each post is a document
        """
        if not self.max_chars:
            return posts
        join_posts(posts, out, max_chars=self.max_chars, min_chars=self.min_chars)
        return out

    def tokenizer_of(self, files: Run, folder: Path, posts: Path) -> Tokenizer:
        """Return the tokenizer of the documents.

        Parameters
        ----------
        files : the run, whose own tokenizer is loaded for the model "tiny"
        folder : the folder in which the tokenizer of a pretrained model is saved
        posts : a posts table; a pretrained tokenizer is not trained, so it is not read
        """
        if self.model == "tiny":
            return load_tokenizer(files.tokenizer)
        return prepare_text(folder, "huggingface", 0, posts, pretrained_model=self.model)


@dataclass(frozen=True)
class Documents:
    """The documents of each split.

    Attributes
    ----------
    paths : split -> path of the table of its documents, with their texts
    tables : split -> table with the columns ``author``, ``topic`` and, if there are ids, ``id``;
        row n is post n of the split's store
    stores : split -> token store in which each post is a document
    tokenizer : the tokenizer that made the stores
    raw : the same documents with stores of the bytes of their texts, if they have ``raw_texts``
    """

    paths: dict[str, Path]
    tables: dict[str, pd.DataFrame]
    stores: dict[str, TokenStore]
    tokenizer: Tokenizer
    raw: "Documents | None" = None

    @property
    def longest(self) -> int:
        """The number of tokens of the longest document of all splits."""
        return max(int(np.diff(store.post_offsets).max()) for store in self.stores.values())

    def sizes(self, max_tokens: int) -> pd.DataFrame:
        """Return the sizes of each split: a row for each count, a column for each split.

        Parameters
        ----------
        max_tokens : tokens that are read of a document; the last row is the share of longer ones
        """
        columns = {}
        for split, store in self.stores.items():
            lengths = np.diff(store.post_offsets)
            columns[split] = {
                "documents": store.posts,
                "authors": store.authors,
                "topics": self.tables[split].topic.nunique(),
                "tokens": lengths.sum(),
                f"longer than {max_tokens} tokens": f"{np.mean(lengths > max_tokens):.0%}",
            }
        return pd.DataFrame(columns)

    def pieces(
        self, split: str, size: int, unit: Literal["tokens", "characters"] = "tokens"
    ) -> Samples:
        """Cut the documents of a split into pieces; the pieces of one document become one sample.

        Parameters
        ----------
        split : name of the split
        size : number of units in a piece; the last piece of a document has the rest
        unit : "tokens", see :func:`helpers.tokens.batch.chunk_documents`, or "characters", as in
            the released code of tyo2021, which may cut words. For these all texts of the split are
            in memory at once
        """
        if unit == "tokens":
            return chunk_documents(self.stores[split], size)
        texts = pd.read_parquet(self.paths[split], columns=["text"])["text"]
        pieces = []
        counts = []
        for text in texts:
            begins = range(0, max(len(text), 1), size)
            pieces += [text[begin : begin + size] for begin in begins]
            counts.append(len(begins))
        tokens = self.tokenizer.encode(pieces)
        lengths = [len(ids) for ids in tokens]
        offsets = np.append(0, np.cumsum(counts))
        store = with_arrays(
            self.stores[split],
            f"pieces of {size} characters",
            np.repeat(np.arange(len(texts)), counts),
            tokens=np.concatenate(tokens),
            post_offsets=np.append(0, np.cumsum(lengths)),
            author_offsets=offsets,
        )
        authors = Samples.of_posts(self.stores[split]).authors
        return Samples(store, offsets[:-1], np.array(counts), authors)


def build_stores(
    paths: dict[str, Path], folder: Path, tokenizer: Tokenizer, topics: list[str]
) -> dict[str, TokenStore]:
    """Encode one posts table per split into a token store, or open the store if it is up to date.

    Parameters
    ----------
    paths : split -> path of its posts table
    folder : the folder of all stores; each is in a subfolder named after its split
    tokenizer : the tokenizer for all splits
    topics : the topic list, of training posts; any other topic becomes "other"
    """
    stores = {}
    for split, path in paths.items():
        encoding = (tokenizer.encode, topics, tokenizer.fingerprint, tokenizer.vocabulary)
        stores[split] = build_store(path, folder / split, *encoding)
    return stores


def make_documents(files: Run, config: DocumentConfig = DocumentConfig()) -> Documents:
    """Join and encode the posts of a run, or open what is up to date.

    Parameters
    ----------
    files : the run whose posts are read
    config : how posts become documents

    Raises
    ------
    ValueError
        posts or tokenizer are missing, or no document is long enough
    """
    folder = files.folder / "documents"
    with folder_lock(folder):
        return _make_documents(files, config, folder)


def _make_documents(files, config, folder):
    """Do what :func:`make_documents` does, in whose folder nobody else is at work."""
    topics = list_topics(files.posts / "train.parquet")
    paths = {}
    for split in SPLITS:
        name = f"{split}.parquet"
        paths[split] = config.documents_of(files.posts / name, folder / name)
    tokenizer = config.tokenizer_of(files, folder / "tokenizer", paths["train"])
    stores = build_stores(paths, folder / "tokens", tokenizer, topics)
    tables = {split: _read_without_texts(path) for split, path in paths.items()}
    raw = None
    if config.raw_texts:
        as_bytes = prepare_text(folder / "raw" / "tokenizer", "bytes", 0, paths["train"])
        raw_stores = build_stores(paths, folder / "raw", as_bytes, topics)
        raw = Documents(paths, tables, raw_stores, as_bytes)
    write_json(folder / "documents.json", config.model_dump())
    return Documents(paths, tables, stores, tokenizer, raw)


def _read_without_texts(path):
    """Read a table without its texts, which would not fit into memory for long documents."""
    names = pq.read_schema(path).names
    columns = [name for name in ("author", "topic", "id") if name in names]
    return pd.read_parquet(path, columns=columns)


def open_documents(files: Run) -> Documents:
    """Open the documents of a run with the settings of the last :func:`make_documents`.

    What is out of date is made again.

    Raises
    ------
    ValueError
        no documents have been made
    """
    settings = read_json(files.folder / "documents" / "documents.json")
    return make_documents(files, DocumentConfig.of(settings))
