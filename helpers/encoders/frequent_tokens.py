"""A masked view of posts: the most frequent tokens stay in place, all others become one token.

This is text distortion (Stamatatos 2017) of tokens. How the most frequent subwords and marks follow
each other tells authors apart, and makes other errors than counts of all words. So the view is
useful in a fusion, and it shows how much style alone tells. Few frequent tokens are words of a
topic, but in a corpus of few topics the most frequent words of these topics are among them.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ..tokens.batch import PAD, Batch, Samples
from .base import Encoder
from .lsa import LSAEncoder

COUNTED_AT_ONCE = 10**7  # tokens of a store that are counted at a time, which bounds memory


class FrequentTokens(Encoder):
    """Encode the most frequent tokens; all others are one and the same token.

    Parameters
    ----------
    encoder : LSAEncoder
        LSA whose ``vocabulary`` is the number of tokens that stay, plus one for all others
    vocabulary : int
        number of different tokens of the store
    """

    def __init__(self, encoder: LSAEncoder, vocabulary: int):
        super().__init__()
        self.encoder = encoder
        self.dim = encoder.dim
        self.register_buffer("shown", torch.zeros(vocabulary, dtype=torch.long))

    def view(self, batch: Batch) -> Batch:
        """Return the batch with its tokens renumbered as the encoder reads them; PAD stays."""
        shown = self.shown[batch.tokens.clamp(min=0)]
        return replace(batch, tokens=torch.where(batch.tokens == PAD, PAD, shown))

    def forward(self, batch: Batch) -> Tensor:
        """Return the (B, ``dim``) rows of a batch of B samples."""
        return self.encoder(self.view(batch))

    def fit(self, samples: Samples, max_tokens: int = 32, seed: int = 0) -> "FrequentTokens":
        """Choose the most frequent tokens of the samples' store, and fit the encoder on the view.

        Of equally frequent tokens those with the lowest numbers are chosen.

        Parameters
        ----------
        samples : Samples
            samples of training authors; the frequent tokens are those of their whole store
        max_tokens : int
            L, tokens read of each post
        seed : int
            seed of LSA's randomised decomposition
        """
        vocabulary = len(self.shown)
        frequency = np.zeros(vocabulary, np.int64)
        tokens = samples.store.tokens
        for part in np.array_split(tokens, 1 + len(tokens) // COUNTED_AT_ONCE):
            frequency += np.bincount(part, minlength=vocabulary)

        by_frequency = np.argsort(-frequency, kind="stable")
        frequent = torch.from_numpy(by_frequency[: self.encoder.vocabulary - 1])
        self.shown.fill_(len(frequent))
        self.shown[frequent] = torch.arange(len(frequent))
        self.encoder.fit(samples, max_tokens, seed, self.view)
        return self
