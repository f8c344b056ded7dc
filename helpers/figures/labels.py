"""The one map from identifiers to words, but for those that are words: none reaches a legend, an axis or a table.

Words are plain text; :mod:`helpers.figures.style` escapes them where they become part of a figure.
"""

from typing import Any

LABELS = {
    # encoders, baselines and what is made of them
    "fused": "late fusion", "iur": "IUR", "luar": "LUAR pooling",
    "lsa": "LSA encoder", "lsa_masked": "LSA of frequent subwords",
    "tfidf": "TF-IDF", "tfidf_word": "TF-IDF, words", "tfidf_char": "TF-IDF, characters 2-5",
    "tfidf_subword": "TF-IDF, subwords", "bow": "bag of words", "minilm": "MiniLM, zero-shot",
    "zero_shot": "sentence encoder, zero-shot", "sentence_encoder": "Universal Sentence Encoder",
    "tfidf_4grams": "TF-IDF, character 4-grams",
    "TP_8": "stream, text + hour, 1-8 posts", "TP_16": "stream, text + hour, 1-16 posts",
    "shuffled": "control: shuffled targets", "text_cnn": "text CNN", "mean": "mean of posts", "khan2021": "stream",
    "khan2021_text": "stream, single attention", "tyo2021": "Siamese transformer", "tiny": "small transformer",
    "arr": "ARR", "blind": "blind ARR", "masked": "text masked", "erased": "topic erased",
    # features and how time is read
    "T": "text", "TP": "text + hour", "TPS": "text + hour + topic", "hour": "hour of day",
    "learned": "learned hour", "continuous": "continuous time",
    # losses
    "triplet": "triplet, semi-hard", "batch_hard": "triplet, batch-hard", "topk": "top-k",
    "supcon": "supervised contrastive", "contrastive": "contrastive", "arcface": "ArcFace",
    "mll": "softmax cross-entropy",
    # samplers and sizes of samples
    "authors": "P authors x K samples", "random": "random batches", "topic": "batches of one topic",
    "uniform": "uniform", "beta21": "Beta(2, 1)", "beta31": "Beta(3, 1)", "beta41": "Beta(4, 1)",
    "poisson16": "Poisson(16)", "fixed": "fixed size",
    # splits and parts of them
    "train": "train", "dev": "dev", "test": "test", "test_cross": "test, across topics",
    "test_in": "test, topics of training", "cross_topic": "cross-topic", "leak_aware": "leak-aware",
    # metrics, measures and quantities that grow
    "topic_accuracy": "topic: accuracy", "style_correlation": "style: correlation",
    "hour_correlation": "hour: correlation",
    "R@P90": "found, 90% of links right", "R@P99": "found, 99% of links right",
    "hardest_AUC": "hard comparisons", "overall": "overall (mean of metrics)", "classes": "training authors",
    "batch": "samples in a batch", "step": "training step", "seconds": "training time, s",
    "sentencepiece": "SentencePiece"}  # fmt: skip
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
    if "P" in encoder.features and encoder.time != "hour":
        words.append(label(encoder.time))
    words.append(label(experiment.loss.name))
    if sampler.kind != "authors":
        words.append(label(sampler.kind))
    if sampler.max_posts != 16 and not encoder.join_posts:
        words.append(f"{sampler.min_posts}-{sampler.max_posts} posts" if sampler.max_posts > 1 else "single posts")
    if sampler.window == "random":
        words.append("random windows")
    if experiment.seed:
        words.append(f"seed {experiment.seed}")
    if experiment.start:
        words.append("continued")  # the start itself is a fingerprint, which says nothing to a reader
    return ", ".join(words)
