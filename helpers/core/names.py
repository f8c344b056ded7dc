"""Readable names of all systems, losses, splits and metrics, made in one place by one scheme.

The name of a system is ``System Features (loss), normalisation``, with at most :data:`MAX_LETTERS`
characters; all parts but the first may be missing. ``names.csv`` has the name of every identifier,
``glossary.csv`` the meaning of each term. What varies from row to row (seed, tokens, posts,
training authors) is a column or a caption, never part of a name.

Names are plain text; :mod:`helpers.figures.style` escapes them where they become part of a figure.
"""

import csv
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


def _read_column(table: str, key: str, column: str) -> dict[str, str]:
    """Read two columns of a CSV file beside this module as a dict: ``key`` -> ``column``.

    Rows with an empty ``column`` are left out.
    """
    with open(Path(__file__).with_name(table), encoding="utf-8", newline="") as file:
        return {row[key]: row[column] for row in csv.DictReader(file) if row[column]}


NAMES = _read_column("names.csv", "identifier", "name")
INSIDE = _read_column("names.csv", "identifier", "inside")  # name of a loss within brackets
LONG = NAMES | _read_column("names.csv", "identifier", "long")  # for descriptions
GLOSSARY = _read_column("glossary.csv", "term", "sentence")


def label(identifier: object) -> str:
    """Return the readable name of an identifier; without one, turn its underscores into spaces.

    A metric with ``_difference`` at its end has the name of the metric, and "difference".
    """
    text = str(identifier)
    if text not in NAMES and text.endswith("_difference"):
        return f"{label(text.removesuffix('_difference'))} difference"
    return NAMES.get(text, text.replace("_", " "))


def default_loss(system: str) -> str:
    """Return the identifier of the loss that is left out of the name of a system."""
    if "IUR" in system:
        return "arcface"
    return "supcon"


def short_name(
    system: str, features: str = "", loss: str = "", norm: str = "", note: str = ""
) -> str:
    """Compose the name of a system, with at most :data:`MAX_LETTERS` characters.

    If the name is longer, its note is shortened ("equal" for "equal weights"); if it still is, the
    system is cut, but to no less than one character and an ellipsis.

    Parameters
    ----------
    system : str
        "Stream", "TF-IDF subword", "Fusion", ...
    features : str
        "T" (text), "TP" (text and hour) or "TPS" (text, hour and topic); empty for a system that
        can read text only
    loss : str
        the identifier of the loss; left out of the name where it is the system's default
    norm : str
        "s-norm", "AS-norm" or "AS cohort"; empty for raw scores
    note : str
        what distinguishes a row from its neighbours, such as "equal weights"
    """
    details = ""
    if features:
        details += f" {features}"
    if loss and loss != default_loss(system):
        details += f" ({INSIDE.get(loss, label(loss))})"
    if norm:
        details += f", {norm}"
    if note:
        details += f", {note}"
    if len(system + details) > MAX_LETTERS:
        for note_in_full, shorter in SHORTER_NOTES.items():
            details = details.replace(note_in_full, shorter)
    if len(system + details) > MAX_LETTERS:
        system = system[: max(MAX_LETTERS - len(details) - 1, 1)] + "…"
    return system + details


def row_name(key: tuple | str) -> str:
    """Return a readable name for a row of khan2021's Tables 1, 3, 4 or 7, or of a variant.

    Parameters
    ----------
    key : tuple or str
        values of the table's index columns, as in the published table and in notebook 09:

        - Table 1, (pooling, features, loss): ("khan2021", "TPS", "topk") -> "Stream TPS (top-k)"
        - Table 3, (trained_on, posts): ("1-8", 16) -> "1-8", without the number of posts that the
          row is tested on; trained on single posts, ("1", 16) -> "1 (averaged)", since the vectors
          of single posts are averaged
        - Table 4, sizes: "beta31" -> "Beta(3, 1)"
        - Table 7, (tokenizer, vocabulary): ("sentencepiece", 4096) -> "SentencePiece, 4,096"
        - the notebook's own rows of time features and variants, an identifier: "hour" ->
          "Hour, 24 indicators"
    """
    if isinstance(key, str):
        return label(key)
    first, second, *loss = key
    if loss:
        return short_name(label(first), second, *loss)
    if first in ("bytes", "sentencepiece"):
        return f"{label(first)}, {second:,}"
    if first == "1":
        return "1 (averaged)"
    return first


def system_of(encoder: Any) -> str:
    """Return the name of the system that a :class:`~helpers.encoders.stream.StreamConfig` makes."""
    if encoder.post != "transformer":
        return SYSTEM_OF_POOLING.get(encoder.pooling, "Stream, mean")
    if encoder.model == "tiny":
        return "Transformer"
    return label(encoder.model.rpartition("/")[2])


def name_of(experiment: Any, system: str = "", norm: str = "", note: str = "") -> str:
    """Name what an :class:`~helpers.training.experiment.Experiment` trains: "Stream TPS (top-k)".

    Parameters
    ----------
    experiment : Experiment
        the description of the training
    system : str
        the larger system that the trained encoder is part of, such as "Fusion" or "Stream+LSA";
        empty for the encoder itself
    norm, note : str
        normalisation of scores and note, see :func:`short_name`; without ``system``, ``norm``,
        ``note`` and a loss to name, the note of a pretrained transformer is "fine-tuned"
    """
    encoder = experiment.encoder
    own_system = system_of(encoder)
    loss = experiment.loss.name
    is_transformer = encoder.post == "transformer"
    features = encoder.features
    if encoder.join_posts or (is_transformer and features == "T"):
        features = ""
    is_pretrained = is_transformer and encoder.model != "tiny"
    if is_pretrained and loss == default_loss(own_system) and not (system or norm or note):
        note = "fine-tuned"
    return short_name(_system_with(system, own_system), features, loss, norm, note)


def _system_with(system: str, own_system: str) -> str:
    """Put the encoder's system into the name of a larger one.

    With the encoder "IUR", "Stream+LSA" becomes "IUR+LSA", and "Fusion" becomes "Fusion IUR". With
    "Stream" the name does not change.
    """
    if not system:
        return own_system
    if "Stream" in system:
        return system.replace("Stream", own_system)
    if own_system == "Stream":
        return system
    return f"{system} {own_system}"


def describe(experiment: Any) -> str:
    """Describe an experiment in full: its name, then its encoder, loss and samples.

    "Stream TPS: convolutions over tokens, attention over posts; text, hour and topic; SupCon;
    samples of up to 16 posts"
    """
    encoder = experiment.encoder
    sampler = experiment.sampler
    posts = LONG[encoder.post]
    if encoder.post == "transformer":
        posts += f" {label(encoder.model)}"
    if encoder.join_posts:
        parts = [posts]
    else:
        parts = [f"{posts}, {LONG[encoder.pooling]}", LONG[encoder.features]]
    if "P" in encoder.features and encoder.time != "hour":
        parts.append(LONG[encoder.time])
    parts.append(LONG[experiment.loss.name])
    if sampler.kind != "authors":
        parts.append(LONG[sampler.kind])
    if sampler.max_posts > 1 and sampler.min_posts == 1:
        parts.append(f"samples of up to {sampler.max_posts} posts")
    elif sampler.max_posts > 1:
        parts.append(f"samples of {sampler.min_posts}-{sampler.max_posts} posts")
    elif not encoder.join_posts:
        parts.append("single posts")
    if sampler.window == "random":
        parts.append("random windows of tokens")
    if experiment.seed:
        parts.append(f"seed {experiment.seed}")
    if experiment.start:  # a fingerprint, which means nothing to a reader
        parts.append("continued from another training")
    return f"{name_of(experiment)}: {'; '.join(parts)}"


def distinct(names: Iterable[str], seeds: Iterable[Any]) -> list[str]:
    """Return the names of rows, with a seed or a number added where rows have the same name.

    The seed is added to each of them if their seeds all differ; else a number, as in "Stream (2)",
    is added to each but the first.

    Parameters
    ----------
    names : iterable of str
        one name per row
    seeds : iterable
        one seed per row
    """
    rows = list(zip(names, seeds))
    distinct_names = []
    for name, seed in rows:
        seeds_of_name = [row_seed for row_name, row_seed in rows if row_name == name]
        if len(seeds_of_name) > 1 and len(set(seeds_of_name)) == len(seeds_of_name):
            name = f"{name}, seed {seed}"
        if name in distinct_names:
            number = 1 + sum(earlier.startswith(name) for earlier in distinct_names)
            name = f"{name} ({number})"
        distinct_names.append(name)
    return distinct_names
