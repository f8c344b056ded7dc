"""A masked view: an encoder that is shown which frequent tokens stand where, and nothing of the others.

Text distortion (Stamatatos 2017), of tokens. What the most frequent subwords and marks look like side by side tells
authors apart, and errs differently from what counts all words: a view to fuse, and to ask what is left of style. Few
tokens are words of a topic, but in a corpus of few topics the most frequent of those are among them.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from helpers.encoders.base import Encoder
from helpers.encoders.lsa import LSAEncoder
from helpers.tokens.batch import PAD, Batch, Samples


class FrequentTokens(Encoder):
    """An LSA encoder of the most frequent tokens, to which all others are one and the same.

    encoder : its ``vocabulary`` is the number of tokens it is shown, and one for the others. vocabulary : of a store.
    """

    def __init__(self, encoder: LSAEncoder, vocabulary: int):
        super().__init__()
        self.encoder, self.dim = encoder, encoder.dim
        self.register_buffer("shown", torch.zeros(vocabulary, dtype=torch.long))

    def view(self, batch: Batch) -> Batch:
        """The batch as the encoder is shown it."""
        tokens = batch.tokens
        return replace(
            batch, tokens=torch.where(tokens == PAD, PAD, self.shown[tokens.clamp(min=0)])
        )

    def forward(self, batch: Batch) -> Tensor:
        """Batch of B samples -> (B, D)."""
        return self.encoder(self.view(batch))

    def fit(self, samples: Samples, max_tokens: int = 32, seed: int = 0) -> "FrequentTokens":
        """Choose the most frequent tokens of the samples' store, of equally frequent ones the first, and fit."""
        tokens, vocabulary = samples.store.tokens, len(self.shown)
        parts = np.array_split(tokens, 1 + len(tokens) // 10**7)
        frequency = sum(np.bincount(part, minlength=vocabulary) for part in parts)
        frequent = torch.from_numpy(
            np.argsort(-frequency, kind="stable")[: self.encoder.vocabulary - 1]
        )
        self.shown.fill_(len(frequent))
        self.shown[frequent] = torch.arange(len(frequent))
        self.encoder.fit(samples, max_tokens, seed, self.view)
        return self
