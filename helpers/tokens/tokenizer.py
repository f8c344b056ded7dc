"""Tokenizers with one interface: ``encode(texts) -> arrays of ids``, ``decode(ids) -> text``, ``vocabulary``, and
``cut(text, length) -> text`` up to the end of its first ``length`` tokens.

khan2021 section 2.1 and Appendix C: SentencePiece unigram subwords (vocabulary 2^16, 2^14, 2^12) or raw UTF-8 bytes.
Spelling, case and punctuation are style, so nothing is normalised away before the model sees it. A pretrained
transformer comes with a tokenizer of its own (tyo2021: WordPiece), which does as it was made.
"""

import io
from collections.abc import Iterable
from pathlib import Path

import duckdb
import numpy as np
import sentencepiece

from helpers.tokens import pretrained
from helpers.runs.artifacts import file_fingerprint, fingerprint_of, is_current, read_json, atomic_write, write_json

VERSION = 1  # raised when the same posts and settings give other pieces
KINDS = ("sentencepiece", "bytes", "huggingface")
PLACEHOLDERS = ["@user", "@url", "@email", "@code", "@self"]
CHUNK = 500  # texts that a Hugging Face tokenizer takes at once: it keeps much more of each than its ids
THREADS = 2  # part of the recipe: another number of threads trains a slightly different model


class SentencePiece:
    """Unigram subwords. model: a serialised SentencePiece model."""

    kind = "sentencepiece"

    def __init__(self, model: bytes):
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.vocabulary = self._processor.vocab_size()

    @classmethod
    def train(cls, texts: Iterable[str], vocabulary: int, longest: int = 300) -> "SentencePiece":
        """Fit on texts, each cut to ``longest`` characters. Raises ValueError where they cannot fill the vocabulary."""
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(text[:longest] for text in texts), model_writer=model, vocab_size=vocabulary,
                model_type="unigram", normalization_rule_name="identity", remove_extra_whitespaces=False,
                character_coverage=0.9999, user_defined_symbols=PLACEHOLDERS, unk_id=0, bos_id=-1, eos_id=-1, pad_id=-1,
                num_threads=THREADS, minloglevel=2,
            )  # fmt: skip
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1]
            raise ValueError(f"SentencePiece cannot train {vocabulary} pieces on these texts: {reason}") from None
        return cls(model.getvalue())

    def encode(self, texts: list[str], threads: int = THREADS) -> list[np.ndarray]:
        return self._processor.encode(texts, out_type="numpy", num_threads=threads)

    def decode(self, ids) -> str:
        return self._processor.decode([int(number) for number in ids])

    def cut(self, text: str, length: int) -> str:
        return self.decode(self.encode([text])[0][:length])

    def pieces(self, text: str) -> list[str]:
        return self._processor.encode(text, out_type=str)


class Bytes:
    """Raw UTF-8: 256 ids, nothing to train."""

    kind, vocabulary, model = "bytes", 256, b""

    def encode(self, texts: list[str]) -> list[np.ndarray]:
        return [np.frombuffer(text.encode("utf-8", "replace"), np.uint8) for text in texts]

    def decode(self, ids) -> str:
        return bytes(int(number) for number in ids).decode("utf-8", "replace")

    def cut(self, text: str, length: int) -> str:
        return self.decode(self.encode([text])[0][:length])

    def pieces(self, text: str) -> list[str]:
        return [repr(bytes([byte]))[2:-1] for byte in text.encode()]


class HuggingFace:
    """The tokenizer of a pretrained model, without the tokens it puts around a text. model: a ``tokenizer.json``."""

    kind = "huggingface"

    def __init__(self, model: bytes):
        from tokenizers import Tokenizer

        self.model = model
        self._tokenizer = Tokenizer.from_str(model.decode())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.vocabulary = self._tokenizer.get_vocab_size()
        if self.vocabulary > 2**16:
            raise ValueError(f"this tokenizer has {self.vocabulary} pieces: at most 65,536 fit the token store")

    def encode(self, texts: list[str]) -> list[np.ndarray]:
        chunks = (texts[begin : begin + CHUNK] for begin in range(0, len(texts), CHUNK))
        found = (self._tokenizer.encode_batch_fast(chunk, add_special_tokens=False) for chunk in chunks)
        return [np.array(text.ids, np.uint16) for chunk in found for text in chunk]

    def cut(self, text: str, length: int) -> str:
        """As it was written: decoding would lose its case."""
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return text[: offsets[length - 1][1]] if len(offsets) > length else text

    def decode(self, ids) -> str:
        return self._tokenizer.decode([int(number) for number in ids])

    def pieces(self, text: str) -> list[str]:
        return self._tokenizer.encode(text, add_special_tokens=False).tokens


CLASSES = {kind.kind: kind for kind in (SentencePiece, HuggingFace)}


def sample_texts(posts: str | Path, count: int, seed: int) -> list[str]:
    """Up to ``count`` texts of a posts table, drawn without replacement, the same for the same seed."""
    query = """select text from read_parquet(?)
               order by hash(author || epoch(time)::varchar || ? || text), text limit ?"""
    return [row[0] for row in duckdb.execute(query, [str(posts), str(seed), count]).fetchall()]


def prepare(
    folder: str | Path,
    kind: str,
    vocabulary: int,
    posts: str | Path,
    sentences: int = 100_000,
    seed: int = 0,
    pretrained_model: str = "minilm",
) -> SentencePiece | Bytes | HuggingFace:
    """Train a tokenizer on a posts table (the training split) and keep it in ``folder``; reuse it where current.

    sentences: posts to train on. pretrained_model: whose tokenizer "huggingface" is, see :mod:`helpers.tokens.pretrained`;
    nothing is trained then, and ``vocabulary`` is its own. Raises ValueError for an unknown kind or a vocabulary
    outside 300..65,536.
    """
    if kind not in KINDS:
        raise ValueError(f"tokenizer {kind!r}: one of {', '.join(KINDS)}")
    if kind == "sentencepiece" and not 300 <= vocabulary <= 2**16:
        raise ValueError(f"vocabulary {vocabulary}: 300..65,536, so that an id fits 16 bits")
    folder = Path(folder)
    given = pretrained.tokenizer_file(pretrained_model) if kind == "huggingface" else b""
    learned = (vocabulary, sentences, seed, file_fingerprint(posts)) if kind == "sentencepiece" else ()
    fingerprint = fingerprint_of(VERSION, kind, *learned, *[given] * bool(given))
    if not is_current(folder / "tokenizer.json", fingerprint):
        if kind == "sentencepiece":
            tokenizer = SentencePiece.train(sample_texts(posts, sentences, seed), vocabulary)
        else:
            tokenizer = HuggingFace(given) if given else Bytes()
        about = {"fingerprint": fingerprint, "kind": kind, "vocabulary": tokenizer.vocabulary}
        with atomic_write(folder) as partial:
            partial.mkdir()
            (partial / "tokenizer.model").write_bytes(tokenizer.model)
            write_json(partial / "tokenizer.json", about)
    return load(folder)


def load(folder: str | Path) -> SentencePiece | Bytes | HuggingFace:
    """The tokenizer kept in ``folder``, its fingerprint as ``fingerprint``. Raises ValueError where there is none."""
    folder = Path(folder)
    about = read_json(folder / "tokenizer.json")
    kind = CLASSES.get(about["kind"])
    tokenizer = kind((folder / "tokenizer.model").read_bytes()) if kind else Bytes()
    tokenizer.fingerprint = about["fingerprint"]
    return tokenizer
