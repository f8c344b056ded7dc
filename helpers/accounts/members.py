"""The members of an author encoder: how they are built again from a file, and not asked twice."""

import numpy as np

from helpers.encoders.base import Encoder
from helpers.encoders.frequent_tokens import FrequentTokens
from helpers.encoders.lsa import LSAEncoder
from helpers.encoders.profiles import HourProfile
from helpers.encoders.stream import StreamConfig, build_stream_encoder
from helpers.encoders.wccn import WCCN
from helpers.evaluation.gallery import Gallery
from helpers.tokens.batch import Samples


class CachedRows:
    """An encoder whose rows of the targets are known; wherever a score is asked for it stands for the encoder."""

    def __init__(self, encoder: Encoder, rows: np.ndarray):
        self.encoder, self.rows = encoder, rows

    def gallery(self, targets: Samples, max_tokens: int) -> Gallery:
        """The targets, not embedded again."""
        return Gallery(self.encoder, targets, max_tokens, self.rows)


def encoder_config(encoder: Encoder) -> dict:
    """What :func:`build_encoder` needs to build an encoder of the same shape."""
    if isinstance(encoder, WCCN | FrequentTokens):
        return encoder_config(encoder.encoder)
    if isinstance(encoder, LSAEncoder):
        return {"vocabulary": encoder.vocabulary, "dim": encoder.dim, "buckets": encoder.buckets}
    return (
        {"turns": encoder.turns}
        if isinstance(encoder, HourProfile)
        else encoder.config.model_dump(mode="json")
    )


def build_encoder(member: str, made_of: dict, vocabulary: int) -> Encoder:
    """An encoder of that shape, its values still to be loaded."""
    if member == "stream":
        return build_stream_encoder(StreamConfig.of(made_of), vocabulary, 1)
    if member == "hours":
        return WCCN(HourProfile(**made_of))
    lsa = LSAEncoder(**made_of)
    return WCCN(FrequentTokens(lsa, vocabulary) if member == "lsa_masked" else lsa)
