"""A trained model on disk: what it is made of, how it was trained, and how to get it back.

``models/<name>/model.json`` names the shape, so that later notebooks need the folder only.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file, save_file

from helpers import checkpoints, training
from helpers.artifacts import fingerprint, is_current, read_json, whole, write_json
from helpers.embedding import embed
from helpers.encoders import StreamEncoder
from helpers.evaluation import ranking
from helpers.sampling import draw_batch
from helpers.store import TokenStore

ANGLES = np.linspace(0, np.pi / 2, 19)  # every 5 degrees, from the counts alone to the stream alone
NOT_TRAINING = {"run"}  # parameters that leave the weights as they are


def build(shape: dict, store: TokenStore, seed: int = 0) -> StreamEncoder:
    """A new encoder for a store's vocabulary and topics; the same seed gives the same weights.

    shape: keyword arguments of :class:`~helpers.encoders.StreamEncoder`.
    """
    torch.manual_seed(seed)
    return StreamEncoder(store.meta["vocabulary"], len(store.meta["topics"]) + 1, **shape)


def dev_score(store: TokenStore, posts: int, length: int) -> Callable[[torch.nn.Module], dict[str, float]]:
    """A function encoder -> MRR and R@8 on a store's authors: their first ``posts`` against their last.

    Where the encoder has a count branch, its angle is set to the one with the highest MRR.
    """
    author, query, target = ranking.query_target_windows(store, posts)
    count = np.full(len(author), posts)

    def score(encoder):
        if encoder.counts is None:
            rank = ranking.ranks(*(embed(encoder, store, author, first, count, length) for first in (query, target)))
        else:
            sides = [embed_parts(encoder, store, author, first, count, length) for first in (query, target)]
            tried = {angle: ranking.ranks(*(join(*parts, angle) for parts in sides)) for angle in ANGLES}
            angle, rank = max(tried.items(), key=lambda item: (1 / item[1]).mean())
            encoder.angle.fill_(angle)
        return {"MRR": float((1 / rank).mean()), "R@8": float((rank <= 8).mean())}

    return score


def embed_parts(encoder: StreamEncoder, *windows) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors of the stream (N, D) and of the counts (N, E); arguments as of :func:`~helpers.embedding.embed`."""
    kept = encoder.angle.item()
    encoder.angle.fill_(np.pi / 4)  # both at the same length
    joined = embed(encoder, *windows) * np.float32(np.sqrt(2))
    encoder.angle.fill_(kept)
    return joined[:, : encoder.stream_dim], joined[:, encoder.stream_dim :]


def join(stream: np.ndarray, counts: np.ndarray, angle: float) -> np.ndarray:
    """(N, D + E) unit vectors: 0 is the counts alone, pi/2 the stream alone."""
    return np.concatenate([stream * np.float32(np.sin(angle)), counts * np.float32(np.cos(angle))], 1)


def fit(
    encoder: StreamEncoder,
    folder: str | Path,
    shape: dict,
    store: TokenStore,
    dev: TokenStore,
    drawing: dict,
    loss: Callable,
    recipe: training.Recipe,
    settings: dict,
) -> pd.DataFrame:
    """Train an encoder on a store, or load it where this very training is complete; returns the history.

    drawing: keyword arguments of :func:`~helpers.sampling.draw_batch`. settings: every parameter of the notebook;
    with the stores' own fingerprints they decide whether what is in ``folder`` is current.
    """
    folder = Path(folder)
    relevant = {key: value for key, value in settings.items() if key not in NOT_TRAINING}
    made_from = fingerprint(relevant, store.meta["made_from"], dev.meta["made_from"])
    if encoder.counts is not None:
        _fit_counts(encoder.counts, folder / "counts.safetensors", store, drawing, made_from)
    write_json(folder / "model.json", {"made_from": made_from, "shape": shape, "length": drawing["length"],
                                       "vocabulary": store.meta["vocabulary"], "topics": len(store.meta["topics"]) + 1,
                                       "settings": settings})  # fmt: skip
    return training.train(
        encoder, lambda step: draw_batch(store, recipe.seed, step, **drawing), loss,
        dev_score(dev, drawing["largest"], drawing["length"]), folder, recipe, made_from,
    )  # fmt: skip


def _fit_counts(branch, path, store, drawing, made_from):
    if not is_current(path.with_suffix(".json"), made_from):
        branch.fit(store, posts=drawing["largest"], length=drawing["length"])
        with whole(path) as partial:
            save_file(branch.fitted(), partial)
        write_json(path.with_suffix(".json"), {"made_from": made_from})
    branch.restore(load_file(path))


def load(folder: str | Path) -> tuple[StreamEncoder, dict]:
    """A trained encoder with its best weights, in eval mode, and its ``model.json``.

    Raises ValueError where the folder holds no complete training.
    """
    folder = Path(folder)
    training.completed(folder)
    about = read_json(folder / "model.json")
    encoder = StreamEncoder(about["vocabulary"], about["topics"], **about["shape"])
    if encoder.counts is not None:
        encoder.counts.restore(load_file(folder / "counts.safetensors"))
    checkpoints.load_weights(encoder, folder / "best.safetensors")
    return encoder.eval(), about
