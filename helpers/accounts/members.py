"""The members of an author encoder: how they are built again from a file, and not asked twice."""

import numpy as np

from helpers.encoders.base import Encoder
from helpers.encoders.lsa import LSAEncoder
from helpers.encoders.frequent_tokens import Masked
from helpers.encoders.profiles import HourProfile
from helpers.encoders.stream import StreamConfig, build
from helpers.encoders.wccn import Whitened
from helpers.evaluation.gallery import Gallery
from helpers.tokens.batch import Samples


class Known:
    """An encoder whose rows of the targets are known; wherever a score is asked for it stands for the encoder."""

    def __init__(self, encoder: Encoder, rows: np.ndarray):
        self.encoder, self.rows = encoder, rows

    def gallery(self, targets: Samples, max_tokens: int) -> Gallery:
        """The targets, not embedded again."""
        return Gallery(self.encoder, targets, max_tokens, self.rows)


def settings(encoder: Encoder) -> dict:
    """What :func:`empty` needs to build an encoder of the same shape."""
    if isinstance(encoder, Whitened | Masked):
        return settings(encoder.encoder)
    if isinstance(encoder, LSAEncoder):
        return {"vocabulary": encoder.vocabulary, "dim": encoder.dim, "buckets": encoder.buckets}
    return {"turns": encoder.turns} if isinstance(encoder, HourProfile) else encoder.config.model_dump(mode="json")


def empty(member: str, made_of: dict, vocabulary: int) -> Encoder:
    """An encoder of that shape, its values still to be loaded."""
    if member == "stream":
        return build(StreamConfig.of(made_of), vocabulary, 1)
    if member == "hours":
        return Whitened(HourProfile(**made_of))
    lsa = LSAEncoder(**made_of)
    return Whitened(Masked(lsa, vocabulary) if member == "lsa_masked" else lsa)
