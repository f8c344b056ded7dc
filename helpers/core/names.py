"""Names: every system, loss, split and metric as people read it, made in one place by one scheme.

A name is ``System Features (loss), normalisation``, at most :data:`MAX_LETTERS` letters; only the system always
stands there. ``names.csv`` holds the name of every identifier, ``glossary.csv`` what each term means. What varies from
row to row (seed, tokens, posts, training authors) is a column or a caption, never part of a name.

Names are plain text; :mod:`helpers.figures.style` escapes them where they become part of a figure.
"""

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MAX_LETTERS = 28
SHORTER_NOTES = {", equal weights": ", equal", ", topic erased": ", erased"}
SYSTEM_OF_POOLING = {
    "khan2021": "Stream",
    "khan2021_text": "Stream",
    "iur": "IUR",
    "luar": "LUAR-pool",
}


def _read(name: str) -> list[dict[str, str]]:
    with open(Path(__file__).with_name(name), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


_ROWS = _read("names.csv")
NAMES: dict[str, str] = {row["identifier"]: row["name"] for row in _ROWS}
LONG: dict[str, str] = {row["identifier"]: row["long"] for row in _ROWS if row["long"]}
INSIDE: dict[str, str] = {row["identifier"]: row["inside"] for row in _ROWS if row["inside"]}
GLOSSARY: dict[str, str] = {row["term"]: row["sentence"] for row in _read("glossary.csv")}


def label(identifier: object) -> str:
    """Return the name of an identifier; one that has none is shown without its underscores."""
    return NAMES.get(str(identifier), str(identifier).replace("_", " "))


def default_loss(system: str) -> str:
    """Return the identifier of the loss that the name of a system need not say."""
    return "arcface" if "IUR" in system else "supcon"


def short_name(
    system: str, features: str = "", loss: str = "", norm: str = "", note: str = ""
) -> str:
    """Compose the name of a system, at most :data:`MAX_LETTERS` letters.

    Where the parts have more, a note becomes shorter ("equal" for "equal weights"), then the system is cut, with an
    ellipsis.

    Parameters
    ----------
    system : "Stream", "TF-IDF subword", "Fusion", ...
    features : "T", "TP" or "TPS", only of a system that can see more than text.
    loss : identifier of the loss; left out where it is the system's default.
    norm : "s-norm", "AS-norm" or "AS cohort"; empty for raw scores.
    note : what sets a row apart from its neighbours, such as "equal weights".
    """
    rest = f" {features}" if features else ""
    if loss and loss != default_loss(system):
        rest += f" ({INSIDE.get(loss, label(loss))})"
    if norm:
        rest += f", {norm}"
    if note:
        rest += f", {note}"
    if len(system + rest) > MAX_LETTERS:
        for note_in_full, shorter in SHORTER_NOTES.items():
            rest = rest.replace(note_in_full, shorter)
    if len(system + rest) > MAX_LETTERS:
        system = system[: max(MAX_LETTERS - len(rest) - 1, 1)] + "…"
    return system + rest


def system_of(encoder: Any) -> str:
    """Return the system that a :class:`~helpers.encoders.stream.StreamConfig` makes."""
    if encoder.post == "transformer" and encoder.model == "tiny":
        return "Transformer"
    if encoder.post == "transformer":
        return label(encoder.model.rpartition("/")[2])
    return SYSTEM_OF_POOLING.get(encoder.pooling, "Stream, mean")


def name_of(experiment: Any, system: str = "", norm: str = "", note: str = "") -> str:
    """Name what an :class:`~helpers.training.experiment.Experiment` trains: "Stream TPS (top-k)".

    system : another system that the trained encoder is part of, such as "Fusion" or "Stream+LSA".
    norm, note : as in :func:`short_name`.
    """
    encoder = experiment.encoder
    own_system = system_of(encoder)
    loss = experiment.loss.name
    features = encoder.features
    if encoder.join_posts or (encoder.post == "transformer" and features == "T"):
        features = ""
    is_pretrained = encoder.post == "transformer" and encoder.model != "tiny"
    if is_pretrained and loss == default_loss(own_system) and not (system or norm or note):
        note = "fine-tuned"
    whole = system or own_system
    if (
        system and own_system != "Stream"
    ):  # "Stream+LSA" of IUR is "IUR+LSA", "Fusion" is "Fusion IUR"
        whole = (
            system.replace("Stream", own_system) if "Stream" in system else f"{system} {own_system}"
        )
    return short_name(whole, features, loss, norm, note)


def describe(experiment: Any) -> str:
    """Describe an experiment in full: its name, then what it is made of.

    "Stream TPS: convolutions over tokens, attention over posts; text, hour and topic; SupCon; samples of 1-16 posts"
    """
    encoder = experiment.encoder
    sampler = experiment.sampler
    model = f" {label(encoder.model)}" if encoder.post == "transformer" else ""
    parts = [LONG.get(encoder.post, label(encoder.post)) + model]
    if not encoder.join_posts:
        parts[0] += f", {LONG.get(encoder.pooling, label(encoder.pooling))}"
        parts.append(LONG[encoder.features])
    if "P" in encoder.features and encoder.time != "hour":
        parts.append(LONG[encoder.time])
    parts.append(LONG.get(experiment.loss.name, label(experiment.loss.name)))
    if sampler.kind != "authors":
        parts.append(LONG.get(sampler.kind, label(sampler.kind)))
    if sampler.max_posts > 1:
        parts.append(f"samples of {sampler.min_posts}-{sampler.max_posts} posts")
    elif not encoder.join_posts:
        parts.append("single posts")
    if sampler.window == "random":
        parts.append("random windows of tokens")
    if experiment.seed:
        parts.append(f"seed {experiment.seed}")
    if experiment.start:  # a fingerprint, which says nothing
        parts.append("continued from another training")
    return f"{name_of(experiment)}: {'; '.join(parts)}"


def distinct(names: Iterable[str], seeds: Iterable[Any]) -> list[str]:
    """Tell rows of equal names apart, by their seeds where these differ, else by a number."""
    names = list(names)
    seeds = list(seeds)
    told_apart = []
    for name, seed in zip(names, seeds):
        same_name = [other for other, other_name in zip(seeds, names) if other_name == name]
        if len(same_name) > 1 and len(set(same_name)) == len(same_name):
            name = f"{name}, seed {seed}"
        if name in told_apart:
            name = f"{name} ({1 + sum(other.startswith(name) for other in told_apart)})"
        told_apart.append(name)
    return told_apart


def explain(name: str) -> str:
    """Return the sentences of the glossary about the terms that a name is made of, for a tooltip; may be empty."""
    sentences = []
    rest = name
    for term in sorted(GLOSSARY, key=len, reverse=True):
        found = re.search(rf"(?<!\w){re.escape(term)}(?!\w)", rest)
        if found:
            sentences.append((found.start(), f"{term}: {GLOSSARY[term]}"))
            rest = rest[: found.start()] + " " * len(term) + rest[found.end() :]
    return " ".join(sentence for _, sentence in sorted(sentences))
