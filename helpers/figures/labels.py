"""The one map from identifiers to words, but for those that are words: none reaches a legend, an axis or a table.

It is ``labels.csv``, an identifier and its words a line: encoders and baselines, features, losses, samplers, splits,
metrics and quantities that grow.
Words are plain text; :mod:`helpers.figures.style` escapes them where they become part of a figure.
"""

import csv
from pathlib import Path
from typing import Any

with open(Path(__file__).with_suffix(".csv"), encoding="utf-8", newline="") as file:
    LABELS: dict[str, str] = dict(csv.reader(file))


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
