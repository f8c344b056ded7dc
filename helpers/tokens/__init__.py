"""Tokens: posts as token ids on disk, and the batches sampled from them.

The input is a posts table and a tokenizer. The output is a token store, from which a batch reads
only its own posts, however large the store is. A batch is a pure function of (store, seed, step).
Samplers know nothing of networks.
"""

from ..core.rooms import front_door

__getattr__, __dir__ = front_door(
    __name__,
    {
        ".batch": ["Samples", "training_windows"],
        ".document_sets": ["DocumentConfig", "make_documents", "open_documents"],
        ".samplers": [
            "SIZES",
            "AuthorSampler",
            "TopicSampler",
            "draw_sizes",
            "make_sampler",
            "sampler_config",
            "skewness",
        ],
        ".store": ["build_store", "join_stores", "list_topics", "open_store"],
        ".tokenizer": ["TOKENIZERS", "Bytes", "HuggingFace", "load_tokenizer", "prepare_text"],
    },
)
