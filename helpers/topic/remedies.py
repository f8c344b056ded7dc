"""Topic taken out of the text or out of vectors: what ARR is compared with.

Masking is text distortion (Stamatatos 2017), as in sawatphol2022: words outside the k most frequent
ones are masked before the tokenizer, and only their length or their place is left. A word is a run
of letters and digits, with apostrophes inside. Words are counted and compared in lower case. A
placeholder of cleaning, such as "@url", is never masked and never counted.

Least-squares concept erasure, LEACE (Belrose et al., NeurIPS 2023), removes in closed form all that
a linear map can predict of topic from vectors. Among the affine maps r after which the vector x and
the topic z have no covariance, it is the one that moves the vectors least:

    r(x) = x - W^+ P W (x - mean),    W = cov(x)^(-1/2),    P the projection on the columns of
                                                            W cov(x, z).

It works on the vectors of any dense encoder, without training. It erases the topics that it was
fitted on. Other topics are erased as far as they lie in the same directions, and so is what the
authors of one topic have in common.

Letters: N samples, B samples of a batch, D dimensions.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
import torch
from sklearn.preprocessing import normalize
from torch import Tensor

from ..cleaning.text import WORD
from ..core.artifacts import fingerprint_of
from ..encoders.base import Encoder, embed
from ..tokens.batch import Batch, Samples
from ..tokens.document_sets import Documents

NO_VARIANCE = 1e-8  # variances below this share of the largest one are rounding errors
# what is masked at once: "don't4u2" becomes "***'*#*#" (multiple) or "*'*#*#" (single)
RUNS = {"multiple": "", "single": "+"}


def frequent_words(texts: Iterable[str], k: int) -> frozenset[str]:
    """Return the k most frequent words of training texts, lower-cased; fewer where there are fewer.

    Of equally frequent words those that come first in the alphabet are taken.

    Parameters
    ----------
    texts : iterable of str
        training texts
    k : int
        number of words
    """
    counts = Counter()
    for text in texts:
        counts.update(word[0].lower() for word in WORD.finditer(text) if not word[1])
    by_frequency = sorted(counts, key=lambda word: (-counts[word], word))
    return frozenset(by_frequency[:k])


def mask_text(text: str, keep: frozenset[str], kind: str = "multiple") -> str:
    """Mask every word that is not in ``keep``; punctuation, spaces and placeholders stay.

    Parameters
    ----------
    text : str
        text to mask
    keep : frozenset of str
        words that stay, lower-cased
    kind : str
        "multiple" (DV-MA): each letter becomes ``*`` and each digit ``#``; "single" (DV-SA): each
        run of them does
    """
    return WORD.sub(partial(_mask_word, keep=keep, run=RUNS[kind]), text)


# the replacement of one match of WORD, whose group 1 is a placeholder
def _mask_word(match, keep, run):
    word = match[0]
    if match[1] is not None or word.lower() in keep:
        return word
    without_digits = re.sub(rf"\d{run}", "#", word)
    return re.sub(rf"[^\W\d_]{run}", "*", without_digits)


def mask_documents(documents: Documents, keep: frozenset[str], max_tokens: int) -> Documents:
    """Return documents with stores of texts that are cut, with most words masked (DV-SA).

    Parameters
    ----------
    documents : Documents
        the documents, whose tables stay as they are
    keep : frozenset of str
        words that stay, lower-cased
    max_tokens : int
        L: a text is cut to its first L tokens before it is masked
    """
    encode = partial(_encode_masked, documents.tokenizer, keep, max_tokens)
    return documents.changed(encode, fingerprint_of(sorted(keep), max_tokens))


def _encode_masked(tokenizer, keep, max_tokens, texts):
    cut_texts = [tokenizer.decode(ids[:max_tokens]) for ids in tokenizer.encode(texts)]
    return tokenizer.encode([mask_text(text, keep, "single") for text in cut_texts])


@dataclass(frozen=True)
class LeaceEraser:
    """Erase a concept from vectors by r(x), as in the module's docstring.

    Attributes
    ----------
    mean : (D,) float64
        Mean of the vectors that it was fitted on.
    kept : (D, D) float64
        Linear part of r: I - W^+ P W.
    """

    mean: np.ndarray
    kept: np.ndarray

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Return r of vectors (N, D), scaled to unit length, float32; a zero r(x) stays zero."""
        erased = (vectors - self.mean) @ self.kept.T + self.mean
        return normalize(erased).astype(np.float32)

    @classmethod
    def fit(cls, vectors: np.ndarray, labels: Sequence) -> Self:
        """Fit the erasure of a concept; directions without variance stay as they are.

        Parameters
        ----------
        vectors : (N, D)
            vectors of N training samples, finite
        labels : (N,)
            the concept of each sample, of any type; labels with the same text are equal

        Raises
        ------
        ValueError
                If fewer than two labels differ.
        """
        names, codes = np.unique(np.asarray(labels).astype(str), return_inverse=True)
        if len(names) < 2:
            raise ValueError(f"{len(names)} different labels in {len(codes)} rows: need at least 2")
        mean = vectors.mean(0, dtype=np.float64)
        centred = vectors - mean
        one_hot = np.eye(len(names))[codes]

        variances, axes = np.linalg.eigh(centred.T @ centred / len(vectors))
        varies = variances > NO_VARIANCE * variances.max()
        axes = axes[:, varies]
        spread = np.sqrt(variances[varies])
        covariance = (axes / spread).T @ (centred.T @ one_hot) / len(vectors)

        # an orthogonal basis of the columns of W cov(x, z)
        predicting, size, _ = np.linalg.svd(covariance, full_matrices=False)
        predicting = predicting[:, size > NO_VARIANCE * max(size.max(initial=0), 1)]
        erased = (axes * spread) @ predicting @ predicting.T @ (axes / spread).T
        return cls(mean, np.eye(len(mean)) - erased)


class Erased(Encoder):
    """Encode with a frozen dense encoder, then erase a concept from its vectors.

    Parameters
    ----------
    encoder : Encoder
        a dense one
    eraser : LeaceEraser
        an erasure that was fitted on the encoder's vectors
    """

    def __init__(self, encoder: Encoder, eraser: LeaceEraser):
        super().__init__()
        self.encoder = encoder
        self.eraser = eraser
        self.dim = encoder.dim

    @classmethod
    def fit(
        cls, encoder: Encoder, samples: Samples, labels: Sequence, max_tokens: int = 32
    ) -> Self:
        """Fit the erasure on an encoder's vectors of training samples.

        Parameters
        ----------
        encoder : Encoder
            a dense one
        samples : Samples
            N training samples
        labels : (N,)
            the concept of each sample, such as its topic
        max_tokens : int
            L, tokens read of each post

        Raises
        ------
        ValueError
            As :meth:`LeaceEraser.fit`.
        """
        return cls(encoder, LeaceEraser.fit(embed(encoder, samples, max_tokens), labels))

    def forward(self, batch: Batch) -> Tensor:
        """Return the (B, D) float32 unit rows of a batch, without gradients."""
        rows = self.encoder(batch).detach()
        return torch.from_numpy(self.eraser(rows.float().cpu().numpy())).to(rows.device)
