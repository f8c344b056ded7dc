"""Samples of posts become vectors.

Batches come in; one vector for each sample goes out. Vectors are dense, or sparse for counts of
words, and mostly of unit length. Encoders are networks, pretrained models, or fitted in closed
form. No encoder here reads a file of posts, selects samples, trains itself, or knows what its
vectors are compared for.
"""

from ..core.rooms import front_door

__getattr__, __dir__ = front_door(
    __name__,
    {
        ".base": ["ChunkMean", "embed"],
        ".baselines": [
            "BASELINES",
            "check_installed",
            "fit_baseline",
            "fit_on_documents",
            "zero_shot",
        ],
        ".parts": ["FEATURES", "TIMES"],
        ".stream": ["PRESETS", "build_stream_encoder", "parameter_counts", "stream_config"],
        ".text_cnn": ["TextCNN"],
        ".tfidf": ["WEIGHTINGS"],
    },
)
