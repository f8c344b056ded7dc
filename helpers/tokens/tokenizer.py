"""Tokenizers with one interface: text -> token ids of at most 16 bits and back.

khan2021 section 2.1 and Appendix C: SentencePiece unigram subwords (vocabulary 2^16, 2^14, 2^12) or raw UTF-8 bytes.
Spelling, case and punctuation are style, so nothing is normalised away before the model sees it. A pretrained
transformer comes with a tokenizer of its own (tyo2021: WordPiece), which does as it was made.
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
from helpers.tokens import pretrained_models

VERSION = 1  # raised when the same posts and settings give other tokens
CHUNK = 500  # texts that a Hugging Face tokenizer takes at once: it keeps much more of each than its ids
THREADS = 2  # part of the recipe: another number of threads trains a slightly different model


class Tokenizer:
    """``encode(texts)``: the ids of each text; ``decode(ids)``: their text; ``tokenize(text)``: tokens to look at.

    Each kind has a ``vocabulary``, the number of ids, and a ``model``, the bytes that its constructor takes.
    """

    fingerprint: str  # of how it was made; set by prepare and load

    def piece(self, token: int) -> str:
        """The text of one token, a blank before it where it begins a word."""
        return self.decode([token])

    def cut(self, text: str, max_tokens: int) -> str:
        """A text up to the end of its first ``max_tokens`` tokens."""
        return self.decode(self.encode([text])[0][:max_tokens])


class SentencePiece(Tokenizer):
    """Unigram subwords. model: a serialised SentencePiece model."""

    kind = "sentencepiece"

    def __init__(self, model: bytes):
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.vocabulary = self._processor.vocab_size()

    @classmethod
    def train(cls, texts: Iterable[str], vocabulary: int, max_chars: int = 300) -> "SentencePiece":
        """Fit on texts, each cut to ``max_chars``. Raises ValueError where they cannot fill the vocabulary."""
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
        return self._processor.encode(texts, out_type="numpy", num_threads=threads)

    def decode(self, ids: Iterable[int]) -> str:
        return self._processor.decode([int(number) for number in ids])

    def piece(self, token: int) -> str:
        piece = self._processor.id_to_piece(int(token))
        return "\ufffd" if self._processor.is_unknown(int(token)) else piece.replace("\u2581", " ")

    def tokenize(self, text: str) -> list[str]:
        return self._processor.encode(text, out_type=str)


class Bytes(Tokenizer):
    """Raw UTF-8: 256 ids, nothing to train."""

    kind, vocabulary = "bytes", 256

    def __init__(self, model: bytes = b""):
        self.model = model

    def encode(self, texts: list[str]) -> list[np.ndarray]:
        return [np.frombuffer(text.encode("utf-8", "replace"), np.uint8) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        return bytes(int(number) for number in ids).decode("utf-8", "replace")

    def tokenize(self, text: str) -> list[str]:
        return [repr(bytes([byte]))[2:-1] for byte in text.encode("utf-8", "replace")]


class HuggingFace(Tokenizer):
    """The tokenizer of a pretrained model, without the tokens it puts around a text. model: a ``tokenizer.json``."""

    kind = "huggingface"

    def __init__(self, model: bytes):
        from tokenizers import Tokenizer as Fast

        self.model = model
        self._tokenizer = Fast.from_str(model.decode())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.vocabulary = self._tokenizer.get_vocab_size()
        if self.vocabulary > 2**16:
            raise ValueError(
                f"this tokenizer has {self.vocabulary} tokens: at most 65,536 fit the token store"
            )

    def encode(self, texts: list[str]) -> list[np.ndarray]:
        chunks = (texts[begin : begin + CHUNK] for begin in range(0, len(texts), CHUNK))
        encoded = (
            self._tokenizer.encode_batch_fast(chunk, add_special_tokens=False) for chunk in chunks
        )
        return [np.array(text.ids, np.uint16) for chunk in encoded for text in chunk]

    def decode(self, ids: Iterable[int]) -> str:
        return self._tokenizer.decode([int(number) for number in ids])

    def tokenize(self, text: str) -> list[str]:
        return self._tokenizer.encode(text, add_special_tokens=False).tokens

    def cut(self, text: str, max_tokens: int) -> str:
        """As it was written: decoding would lose its case."""
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return text[: offsets[max_tokens - 1][1]] if len(offsets) > max_tokens else text


TOKENIZERS: dict[str, type[Tokenizer]] = {
    each.kind: each for each in (SentencePiece, Bytes, HuggingFace)
}


def sample_texts(posts: str | Path, count: int, seed: int) -> list[str]:
    """Up to ``count`` texts of a posts table, drawn without replacement, the same for the same seed."""
    query = """select text from read_parquet(?)
               order by hash(author || epoch(time)::varchar || ? || text), text limit ?"""
    return [row[0] for row in duckdb.execute(query, [str(posts), str(seed), count]).fetchall()]


def prepare_text(
    folder: str | Path,
    kind: str,
    vocabulary: int,
    posts: str | Path,
    sentences: int = 100_000,
    seed: int = 0,
    pretrained_model: str = "minilm",
) -> Tokenizer:
    """Train a tokenizer on a posts table (the training split) and keep it in ``folder``; reuse it where current.

    kind : one of TOKENIZERS. Only "sentencepiece" is trained, the others have their own ``vocabulary``.
    vocabulary : 300..65,536; another is a ValueError. sentences : posts to train on.
    pretrained_model : whose tokenizer "huggingface" is, see :mod:`helpers.tokens.pretrained_models`.
    """
    if kind not in TOKENIZERS:
        raise ValueError(f"tokenizer {kind!r}: one of {', '.join(TOKENIZERS)}")
    if kind == "sentencepiece" and not 300 <= vocabulary <= 2**16:
        raise ValueError(f"vocabulary {vocabulary}: 300..65,536, so that an id fits 16 bits")
    folder = Path(folder)
    model = pretrained_models.tokenizer_file(pretrained_model) if kind == "huggingface" else b""
    learned = (
        (vocabulary, sentences, seed, file_fingerprint(posts)) if kind == "sentencepiece" else ()
    )
    fingerprint = fingerprint_of(VERSION, kind, *learned, *[model] * bool(model))
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
    """Write ``tokenizer.model`` and ``tokenizer.json`` to a folder that is there, for :func:`load_tokenizer`."""
    model = Path(folder) / "tokenizer.model"
    with atomic_write(model) as partial:
        partial.write_bytes(tokenizer.model)
    write_json(Path(folder) / "tokenizer.json", {
        "fingerprint": tokenizer.fingerprint, "kind": tokenizer.kind, "vocabulary": tokenizer.vocabulary,
        "sha256": file_fingerprint(model)})  # fmt: skip


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """The tokenizer kept in ``folder``, with its ``fingerprint``. Raises ValueError where it is missing or damaged."""
    folder = Path(folder)
    about, model = read_json(folder / "tokenizer.json"), folder / "tokenizer.model"
    if not model.exists() or file_fingerprint(model) != about.get("sha256"):
        raise ValueError(
            f"{model} is missing or damaged: delete {folder} and run the notebook that makes it"
        )
    tokenizer = TOKENIZERS[about["kind"]](model.read_bytes())
    tokenizer.fingerprint = about["fingerprint"]
    return tokenizer
