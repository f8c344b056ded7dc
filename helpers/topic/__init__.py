"""How much of an embedding is topic, and ways to take it out.

Documents split by topic and encoders come in; students, erased encoders, masked texts and measures
of topic go out. Topic is taken out of the training (ARR), of finished vectors (erasure) or of the
text (masking). Nothing here decides which posts are compared: the splits and protocols do.
"""

from ..core.rooms import front_door

__getattr__, __dir__ = front_door(
    __name__,
    {
        "..losses.arr": [
            "arr_loss",
            "bias_of_batch",
            "bias_of_batches",
            "log_probabilities",
            "soft_targets",
        ],
        ".cross_topic": [
            "DocumentSystem",
            "chance_level",
            "compare_retrieved",
            "retrieve_systems",
            "train_with_students",
        ],
        ".probes": ["probe_systems"],
        ".remedies": ["Erased", "LeaceEraser", "frequent_words", "mask_documents", "mask_text"],
    },
)
