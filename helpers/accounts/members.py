"""Describe the members of an author encoder for a file, and build them again from it."""

from ..encoders.base import Encoder
from ..encoders.lsa import WCCN, FrequentTokens, HourProfile, LSAEncoder
from ..encoders.stream import StreamConfig, build_stream_encoder
from ..tokens.tokenizer import Tokenizer


def encoder_config(encoder: Encoder) -> dict:
    """Return the config from which :func:`build_encoder` builds an encoder of the same shape."""
    if isinstance(encoder, WCCN | FrequentTokens):
        return encoder_config(encoder.encoder)
    if isinstance(encoder, LSAEncoder):
        return {"vocabulary": encoder.vocabulary, "dim": encoder.dim, "buckets": encoder.buckets}
    if isinstance(encoder, HourProfile):
        return {"turns": encoder.turns}
    return encoder.config.model_dump(mode="json")


def build_encoder(member: str, config: dict, tokenizer: Tokenizer) -> Encoder:
    """Build a member whose weights are still to be loaded.

    Parameters
    ----------
    member : name of the member: "stream", "lsa", "lsa_masked" or "hours"
    config : result of :func:`encoder_config`
    tokenizer : has made the tokens that the member reads
    """
    if member == "stream":
        # its tokens become those of a pretrained transformer only where the tokenizer is known
        stream_config = StreamConfig.of(config)
        return build_stream_encoder(stream_config, tokenizer.vocabulary, 1, tokenizer=tokenizer)
    if member == "hours":
        return WCCN(HourProfile(**config))
    lsa = LSAEncoder(**config)
    if member == "lsa_masked":
        return WCCN(FrequentTokens(lsa, tokenizer.vocabulary))
    return WCCN(lsa)
