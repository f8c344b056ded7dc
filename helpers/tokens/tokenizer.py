"""Tokenizers with one interface: text -> token ids of at most 16 bits and back.

khan2021 section 2.1 and Appendix C: SentencePiece unigram subwords (vocabulary 2^16, 2^14, 2^12) or
raw UTF-8 bytes. Spelling, case and punctuation are style, so nothing is normalised away before the
model sees it. A pretrained transformer comes with a tokenizer of its own (tyo2021: WordPiece),
which does as it was made.
"""

import io
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import duckdb
import numpy as np
import sentencepiece

from helpers.cleaning.text import PLACEHOLDERS
from helpers.core.artifacts import (
    atomic_write,
    file_fingerprint,
    fingerprint_of,
    is_current,
    read_json,
    write_json,
)
from helpers.tokens import pretrained_tokenizers

VERSION = 1  # raised when the same posts and settings give other tokens
# texts that a Hugging Face tokenizer takes at once: it keeps much more of each than its ids
CHUNK_TEXTS = 500
THREADS = 2  # part of the recipe: another number of threads trains a slightly different model


class Tokenizer:
    """Cut texts into tokens, and put them together again.

    Each kind has ``encode(texts)``, the ids of each text; ``decode(ids)``, their text;
    ``tokenize(text)``, tokens to look at; ``vocabulary``, the number of ids; and ``model``, the
    bytes that its constructor takes.
    """

    fingerprint: str  # of how it was made; set by prepare_text and load_tokenizer

    def piece(self, token: int) -> str:
        """Return the text of one token, a blank before it where it begins a word."""
        return self.decode([token])

    def cut(self, text: str, max_tokens: int) -> str:
        """Return a text up to the end of its first ``max_tokens`` tokens."""
        (ids,) = self.encode([text])
        return self.decode(ids[:max_tokens])


class SentencePiece(Tokenizer):
    """Unigram subwords.

    Parameters
    ----------
    model : a serialised SentencePiece model
    """

    kind = "sentencepiece"

    def __init__(self, model: bytes):
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.vocabulary = self._processor.vocab_size()

    @classmethod
    def train(cls, texts: Iterable[str], vocabulary: int, max_chars: int = 300) -> "SentencePiece":
        """Fit on texts.

        Parameters
        ----------
        texts : to fit on
        vocabulary : number of ids
        max_chars : read of each text

        Raises
        ------
        ValueError
            the texts cannot fill the vocabulary
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
            reason = str(error).strip().splitlines()[-1]
            raise ValueError(
                f"SentencePiece cannot learn {vocabulary} tokens from these texts: {reason}"
            ) from None
        return cls(model.getvalue())

    def encode(self, texts: list[str], threads: int = THREADS) -> list[np.ndarray]:
        """Return the ids of each text, the same for any number of threads."""
        return self._processor.encode(texts, out_type="numpy", num_threads=threads)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids."""
        return self._processor.decode([int(token) for token in ids])

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of a text, to look at."""
        return self._processor.encode(text, out_type=str)

    def piece(self, token: int) -> str:
        """Return the text of one token, a blank before it where it begins a word."""
        token = int(token)
        if self._processor.is_unknown(token):
            return "\ufffd"
        return self._processor.id_to_piece(token).replace("\u2581", " ")


class Bytes(Tokenizer):
    """Raw UTF-8: 256 ids, nothing to train.

    Parameters
    ----------
    model : empty
    """

    kind = "bytes"
    vocabulary = 256

    def __init__(self, model: bytes = b""):
        self.model = model

    def encode(self, texts: list[str]) -> list[np.ndarray]:
        """Return the bytes of each text."""
        return [np.frombuffer(text.encode("utf-8", "replace"), np.uint8) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of bytes; half a character is a replacement character."""
        return bytes(int(byte) for byte in ids).decode("utf-8", "replace")

    def tokenize(self, text: str) -> list[str]:
        """Return the bytes of a text, to look at."""
        return [repr(bytes([byte]))[2:-1] for byte in text.encode("utf-8", "replace")]


class HuggingFace(Tokenizer):
    """The tokenizer of a pretrained model, without the tokens it puts around a text.

    Parameters
    ----------
    model : a ``tokenizer.json``
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
        """Return the ids of each text."""
        ids = []
        for begin in range(0, len(texts), CHUNK_TEXTS):
            chunk = texts[begin : begin + CHUNK_TEXTS]
            encodings = self._tokenizer.encode_batch_fast(chunk, add_special_tokens=False)
            ids += [np.array(encoding.ids, np.uint16) for encoding in encodings]
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids."""
        return self._tokenizer.decode([int(token) for token in ids])

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of a text, to look at."""
        return self._tokenizer.encode(text, add_special_tokens=False).tokens

    def cut(self, text: str, max_tokens: int) -> str:
        """Return the beginning of a text as it was written: decoding would lose its case."""
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        if len(offsets) <= max_tokens:
            return text
        _, end = offsets[max_tokens - 1]
        return text[:end]


TOKENIZERS: dict[str, type[Tokenizer]] = {
    "sentencepiece": SentencePiece,
    "bytes": Bytes,
    "huggingface": HuggingFace,
}


def sample_texts(posts: str | Path, count: int, seed: int) -> list[str]:
    """Draw texts of a posts table without replacement.

    Parameters
    ----------
    posts : the table
    count : most texts to draw
    seed : the same seed gives the same texts
    """
    query = """select text from read_parquet(?)
               order by hash(author || epoch(time)::varchar || ? || text), text limit ?"""
    rows = duckdb.execute(query, [str(posts), str(seed), count]).fetchall()
    return [text for (text,) in rows]


def prepare_text(
    folder: str | Path,
    kind: str,
    vocabulary: int,
    posts: str | Path,
    sentences: int = 100_000,
    seed: int = 0,
    pretrained_model: str = "minilm",
) -> Tokenizer:
    """Make a tokenizer and keep it in a folder, or load it where it is current.

    Parameters
    ----------
    folder : where it is kept
    kind : one of TOKENIZERS. Only "sentencepiece" is trained, the others have their own
        ``vocabulary``
    vocabulary : 300..65,536
    posts : the table to train on, of the training split
    sentences : most posts to train on
    seed : of their draw
    pretrained_model : whose tokenizer "huggingface" is, see
        :mod:`helpers.tokens.pretrained_tokenizers`

    Raises
    ------
    ValueError
        the kind is unknown, the vocabulary too small or too large, or the texts cannot fill it
    """
    if kind not in TOKENIZERS:
        raise ValueError(f"tokenizer {kind!r}: one of {', '.join(TOKENIZERS)}")
    folder = Path(folder)
    model = b""
    made_of = [VERSION, kind]
    if kind == "sentencepiece":
        if not 300 <= vocabulary <= 2**16:
            raise ValueError(f"vocabulary {vocabulary}: 300..65,536, so that an id fits 16 bits")
        made_of += [vocabulary, sentences, seed, file_fingerprint(posts)]
    if kind == "huggingface":
        model = pretrained_tokenizers.tokenizer_file(pretrained_model)
        made_of.append(model)
    fingerprint = fingerprint_of(*made_of)
    if is_current(folder / "tokenizer.json", fingerprint):
        with suppress(ValueError):  # damaged: it is made again
            return load_tokenizer(folder)

    if kind == "sentencepiece":
        tokenizer = SentencePiece.train(sample_texts(posts, sentences, seed), vocabulary)
    else:
        tokenizer = TOKENIZERS[kind](model)
    tokenizer.fingerprint = fingerprint
    with atomic_write(folder) as partial:
        partial.mkdir()
        save_tokenizer(tokenizer, partial)
    return load_tokenizer(folder)


def save_tokenizer(tokenizer: Tokenizer, folder: str | Path) -> None:
    """Write ``tokenizer.model`` and ``tokenizer.json``, for :func:`load_tokenizer`.

    Parameters
    ----------
    tokenizer : to keep
    folder : is there
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
    """Load the tokenizer kept in a folder, with its ``fingerprint``.

    Raises
    ------
    ValueError
        it is missing or damaged
    """
    folder = Path(folder)
    description = read_json(folder / "tokenizer.json")
    path = folder / "tokenizer.model"
    if not path.exists() or file_fingerprint(path) != description.get("sha256"):
        raise ValueError(
            f"{path} is missing or damaged: delete {folder} and run the notebook that makes it"
        )
    tokenizer = TOKENIZERS[description["kind"]](path.read_bytes())
    tokenizer.fingerprint = description["fingerprint"]
    return tokenizer
