"""The documents of a run: posts joined to longer texts, split, and stored as tokens.

The splits are those of the run, or made anew by a rule, such as one by topic. The folder
``documents/<kind of split>/`` of a run holds the tables of the documents, unless posts are taken as
they are, and in a subfolder for each kind of tokenizer their token stores, and ``documents.json``,
from which :func:`open_documents` opens all of it again. With the setting ``raw_texts`` there are
also stores of the bytes of the texts.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from pydantic import Field, model_validator

from ..core.artifacts import fingerprint_of, folder_lock, read_json, write_json
from ..core.parameters import Config
from ..core.paths import Run
from ..corpus.posts_table import join_posts
from .batch import Samples, chunk_documents, samples_of_pieces
from .store import TokenStore, build_store, list_topics
from .tokenizer import Bytes, Tokenizer, load_tokenizer, prepare_text

SPLITS = ("train", "dev", "test")
GIVEN = "given"  # the kind of split where it is that of the run
SHORT_COLUMNS = ("author", "topic", "id")  # the texts may be long


class DocumentConfig(Config):
    """How posts become documents and documents become tokens.

    Attributes
    ----------
    max_chars : most characters of a document, see
        :func:`helpers.corpus.posts_table.join_posts`; 0 takes each post as a document
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


@dataclass(frozen=True)
class Documents:
    """The documents of each split; row n of a table is post n of the split's store.

    Attributes
    ----------
    kind : kind of the split; "given" for the splits of the run
    folder : folder of the stores
    report : content of the ``split.json`` of a rule; empty for the splits of the run
    paths : split -> path of the table of its documents, with their texts
    tokenizer : the tokenizer that made the stores
    stores : split -> token store in which each post is a document, or samples of its pieces. Their
        topic list holds the topics of "train" only; :meth:`topics` tells all
    raw : the same documents with stores of the bytes of their texts, if they have ``raw_texts``
    """

    kind: str
    folder: Path
    report: dict
    paths: dict[str, Path]
    tokenizer: Tokenizer
    stores: dict[str, TokenStore | Samples]
    raw: "Documents | None" = None

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The ``author``, ``topic`` and perhaps ``id`` of the documents of each split."""
        tables = {}
        for split, path in self.paths.items():
            columns = [name for name in pq.read_schema(path).names if name in SHORT_COLUMNS]
            tables[split] = pd.read_parquet(path, columns=columns)
        return tables

    def topics(self, split: str) -> np.ndarray:
        """Return the name of the topic of each document of a split, (documents,)."""
        return self.tables[split]["topic"].to_numpy()

    def texts(self, split: str) -> pd.Series:
        """Read the texts of the documents of a split, (documents,)."""
        return pd.read_parquet(self.paths[split], columns=["text"])["text"]

    @property
    def tests(self) -> list[str]:
        """The tests by topic that there are; a split given as files has no ``test_in``."""
        return [split for split in ("test_cross", "test_in") if split in self.stores]

    @property
    def longest(self) -> int:
        """The number of tokens of the longest document of all splits."""
        return max(int(np.diff(store.post_offsets).max()) for store in self.stores.values())

    def changed(
        self, encode: Callable[[list[str]], list[np.ndarray]], fingerprint: str
    ) -> "Documents":
        """Return the same documents with stores of changed texts, such as masked ones.

        Parameters
        ----------
        encode : function from texts to an array of token ids per text, as that of the tokenizer,
            but of the changed texts
        fingerprint : hash of all that the change depends on
        """
        encoding = fingerprint_of(self.tokenizer.fingerprint, fingerprint)
        folder = self.folder / "changed"
        stores = _encoded(self.paths, folder, encode, encoding, self.tokenizer.vocabulary)
        return replace(self, stores=stores)

    def in_pieces(self, size: int, unit: Literal["tokens", "characters"] = "tokens") -> "Documents":
        """Return the documents for testing in pieces; the pieces of one document are one sample.

        Parameters
        ----------
        size : number of units in a piece; the last piece of a document has the rest
        unit : "tokens", see :func:`helpers.tokens.batch.chunk_documents`, or "characters", as in
            the released code of tyo2021, which may cut words. For these all texts of a split are
            in memory at once
        """
        cut = {split: self._pieces(split, size, unit) for split in self.stores if split != "train"}
        return replace(self, stores=cut)

    def _pieces(self, split, size, unit):
        """Return a sample of pieces for each document of a split."""
        store = self.stores[split]
        if unit == "tokens":
            return chunk_documents(store, size)
        # an empty text is one empty piece
        pieces = self.texts(split).str.findall(rf"(?s)\A\Z|.{{1,{size}}}")
        tokens = self.tokenizer.encode(pieces.explode().tolist())
        return samples_of_pieces(
            store,
            pieces.str.len().to_numpy(),
            tokens=np.concatenate(tokens),
            post_offsets=np.append(0, np.cumsum([len(ids) for ids in tokens])),
        )


def make_documents(
    files: Run, config: DocumentConfig = DocumentConfig(), rule: Config | None = None
) -> Documents:
    """Join, split and encode the posts of a run, or open what is up to date.

    Parameters
    ----------
    files : the run, with ``selected.parquet`` for a rule. Its own tokenizer was fitted on its
        training posts, some of which are in test documents of a rule; it learned no authors
    config : how posts become documents
    rule : TopicSplit, how documents are split; None for the splits of the run

    Raises
    ------
    ValueError
        posts or tokenizer are missing, no document is long enough, or the training documents of a
        rule are on a single topic
    """
    folder = files.folder / "documents"
    with folder_lock(folder):
        kind = rule.kind if rule else GIVEN
        paths, report = _split(files, config, rule, folder / kind)
        if config.model == "tiny":
            tokenizer = load_tokenizer(files.tokenizer)
        else:
            tokenizer = prepare_text(folder / "tokenizer", "huggingface", model=config.model)
        tokens = folder / kind / tokenizer.kind
        made = _made(kind, tokens, report, paths, tokenizer)
        if config.raw_texts:
            made = replace(made, raw=_made(kind, tokens / "raw", report, paths, Bytes()))
        about = {
            "documents": config.model_dump(),
            "rule": rule and rule.model_dump(),
            "data": [store.meta["fingerprint"] for store in made.stores.values()],
        }
        write_json(tokens / "documents.json", about)
    return made


def _split(files, config, rule, folder):
    """Return the table of the documents of each split, and the report of a rule."""
    if rule is None:
        paths = {}
        for split in SPLITS:
            name = f"{split}.parquet"
            paths[split] = _joined(config, files.posts / name, folder / name)
        return paths, {}
    # here, as it imports scikit-learn, for which a trained network need not wait
    from ..splits.assignment import make_split

    posts = files.folder / "selected.parquet"
    report = make_split(_joined(config, posts, folder.parent / "all.parquet"), folder, rule)
    if report["splits"]["train"]["topics"] < 2:
        raise ValueError(
            f"{rule.kind}: training has a single topic, so there is nothing to unlearn; "
            "raise topic_share"
        )
    return {split: folder / f"{split}.parquet" for split in report["splits"]}, report


def _joined(config, posts, path):
    """Join posts to documents; return the path of their table, that of the posts if they are."""
    if not config.max_chars:
        return posts
    join_posts(posts, path, max_chars=config.max_chars, min_chars=config.min_chars)
    return path


def _made(kind, folder, report, paths, tokenizer):
    """Return documents with their stores of one tokenizer."""
    about = (tokenizer.encode, tokenizer.fingerprint, tokenizer.vocabulary)
    return Documents(kind, folder, report, paths, tokenizer, _encoded(paths, folder, *about))


def _encoded(paths, folder, encode, encoding, vocabulary):
    """Encode the table of each split into a store, or open the store if it is up to date."""
    about = (encode, list_topics(paths["train"]), encoding, vocabulary)
    return {split: build_store(path, folder / split, *about) for split, path in paths.items()}


def open_documents(files: Run, kind: str = GIVEN, data: str = "") -> Documents:
    """Open the documents of a run with the settings of the last :func:`make_documents`.

    What is out of date is made again.

    Parameters
    ----------
    files : the run
    kind : kind of the split
    data : fingerprint of one of the stores, where there are documents of several tokenizers

    Raises
    ------
    ValueError
        no documents have been made
    """
    from ..splits.by_topic import TopicSplit

    for path in sorted((files.folder / "documents" / kind).glob("*/documents.json")):
        about = read_json(path)
        if not data or data in about["data"]:
            rule = about["rule"] and TopicSplit.of(about["rule"])
            return make_documents(files, DocumentConfig.of(about["documents"]), rule)
    raise ValueError(
        f"no documents of the split {kind!r} in run {files.name!r}: run notebook 05 or 10"
    )
