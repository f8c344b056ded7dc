"""The one map from identifiers to words, but for those that are words: none reaches a legend, an axis or a table.

Words are plain text; :mod:`helpers.figures.style` escapes them where they become part of a figure.
"""

from typing import Any

LABELS = {
    # encoders, baselines and what is made of them
    "fused": "late fusion", "iur": "IUR", "luar": "LUAR pooling", "lsa": "LSA encoder", "tfidf": "TF-IDF",
    "lsa_masked": "LSA of frequent subwords", "tfidf_word": "TF-IDF, words", "tfidf_char": "TF-IDF, characters 2-5",
    "tfidf_subword": "TF-IDF, subwords", "tfidf_4grams": "TF-IDF, character 4-grams", "tfidf_shape": "TF-IDF, shapes",
    "minilm": "MiniLM, zero-shot", "zero_shot": "sentence encoder, zero-shot", "text_cnn": "text CNN",
    "sentence_encoder": "Universal Sentence Encoder", "shuffled": "control: shuffled targets", "mean": "mean of posts",
    "TP_8": "stream, text + hour, 1-8 posts", "TP_16": "stream, text + hour, 1-16 posts", "khan2021": "stream",
    "khan2021_text": "stream, single attention", "tyo2021": "Siamese transformer", "tiny": "small transformer",
    "arr": "ARR", "blind": "blind ARR", "masked": "text masked", "erased": "topic erased", "bow": "bag of words",
    # features and how time is read
    "T": "text", "TP": "text + hour", "TPS": "text + hour + topic", "hour": "hour of day", "learned": "learned hour",
    "continuous": "continuous time",
    # losses, samplers, sizes of samples
    "triplet": "triplet, semi-hard", "batch_hard": "triplet, batch-hard", "topk": "top-k", "arcface": "ArcFace",
    "supcon": "supervised contrastive", "mll": "softmax cross-entropy",
    "authors": "P authors x K samples", "random": "random batches", "topic": "batches of one topic",
    "beta21": "Beta(2, 1)", "beta31": "Beta(3, 1)", "beta41": "Beta(4, 1)", "poisson16": "Poisson(16)",
    "fixed": "fixed size",  # splits, metrics, measures and quantities that grow
    "test_cross": "test, across topics", "test_in": "test, topics of training", "cross_topic": "cross-topic",
    "leak_aware": "leak-aware", "topic_accuracy": "topic: accuracy", "style_correlation": "style: correlation",
    "hour_correlation": "hour: correlation", "R@P90": "found, 90% of links right",
    "R@P99": "found, 99% of links right", "hardest_AUC": "hard comparisons", "overall": "overall (mean of metrics)",
    "classes": "training authors", "batch": "samples in a batch", "step": "training step",
    "seconds": "training time, s", "sentencepiece": "SentencePiece"}  # fmt: skip
LABELS |= {f"{loss}_{how}": LABELS[loss] + also for loss in ("mll", "supcon") for how, also in (
    ("arr", " + ARR"), ("blind", " + blind ARR"), ("masked", ", text masked"), ("erased", ", topic erased"),
    ("same_topic", ", batches of one topic"))}  # fmt: skip


def label(identifier: object) -> str:
    """Words for an identifier; one that is not in the map is shown without its underscores."""
    return LABELS.get(str(identifier), str(identifier).replace("_", " "))


def describe(experiment: Any) -> str:
    """An experiment in words, from its typed config: "stream, text + hour + topic, supervised contrastive".

    Named are the encoder, its features and the loss; sampler, sizes, time, seed and start where they are unusual.
    """
    encoder, sampler = experiment.encoder, experiment.sampler
    post = [label(encoder.post) if encoder.model == "tiny" else f"{label(encoder.post)} {encoder.model}"]
    if encoder.join_posts:
        words = post
    else:
        words = [label(encoder.pooling), *post * (encoder.post != "text_cnn"), label(encoder.features)]
    sizes = f"{sampler.min_posts}-{sampler.max_posts} posts" if sampler.max_posts > 1 else "single posts"
    rest = ((label(encoder.time), "P" in encoder.features and encoder.time != "hour"),
            (label(experiment.loss.name), True), (label(sampler.kind), sampler.kind != "authors"),
            (sizes, sampler.max_posts != 16 and not encoder.join_posts),
            ("random windows", sampler.window == "random"), (f"seed {experiment.seed}", experiment.seed),
            ("continued", experiment.start))  # the start itself is a fingerprint, which says nothing  # fmt: skip
    return ", ".join([*words, *(text for text, said in rest if said)])
