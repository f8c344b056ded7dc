"""A trained model on disk: what it is made of, how it was trained, and how to get it back.

``models/<name>/model.json`` names the shape, so that later notebooks need the folder only.
"""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as nnf
from safetensors.torch import load_file, save_file
from torch import Tensor

from helpers.training import checkpoints
from helpers.tokens import pretrained
from helpers.training import loop as training
from helpers.runs.artifacts import fingerprint_of, is_current, read_json, atomic_write, write_json
from helpers.tokens.pair_samplers import DRAWS
from helpers.encoders.embed import embed
from helpers.encoders.stream import PostFeatures, StreamEncoder, join
from helpers.evaluation import ranking
from helpers.encoders.iur import IUREncoder
from helpers.tokens.store import TokenStore
from helpers.encoders.transformer import DocumentEncoder

VERSION = 3  # raised when the same settings give other weights
ENCODERS = {"stream": StreamEncoder, "iur": IUREncoder, "document": DocumentEncoder}
STEPS = 10  # weights are tried in tenths of the joined score's spread
DEAR = 600  # seconds of training; what took longer is not replaced because code or data changed
CHOOSERS = 1000  # dev authors that choose the weights, at most
NOT_TRAINING = {"run", "name"}  # parameters that leave the weights as they are


def build(shape: dict, store: TokenStore, seed: int = 0) -> PostFeatures:
    """A new encoder for a store's vocabulary and topics; the same seed gives the same weights.

    shape: ``encoder``, one of ENCODERS ("stream" where absent), and its keyword arguments.
    """
    torch.manual_seed(seed)
    return _make(shape, store.meta["vocabulary"], len(store.meta["topics"]) + 1)


def _make(shape, vocabulary, topics):
    rest = {key: value for key, value in shape.items() if key != "encoder"}
    return ENCODERS[shape.get("encoder", "stream")](vocabulary, topics, **rest)


def dev_score(store: TokenStore, posts: int, length: int) -> Callable[[torch.nn.Module], dict[str, float]]:
    """A function encoder -> MRR and R@8 on a store's authors: their first ``posts`` against their last.

    Where the encoder has a count branch, these are of the stream alone, which is what training changes; the weights
    are set to those with the highest MRR of all parts joined, which is ``joined``.
    """
    author, query, target = ranking.query_target_windows(store, posts)
    count = np.full(len(author), posts)

    def score(encoder):
        sides = [embed_parts(encoder, store, author, first, count, length) for first in (query, target)]
        rank = ranking.ranks(*_comparable(*(side[0] for side in sides)))
        found = {"MRR": float((1 / rank).mean()), "R@8": float((rank <= 8).mean())}
        if encoder.counts is not None:
            encoder.weights.copy_(choose_weights([[part[:CHOOSERS] for part in side] for side in sides]))
            rank = ranking.ranks(*(join(side, encoder.weights.cpu()) for side in sides))
            found["joined"] = float((1 / rank).mean())
        return found

    return score


def _comparable(queries: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors whose products fall with the Euclidean distance of the given ones, also where these have any length."""
    queries, targets = queries.double(), targets.double()
    scale = max(float(queries.norm(dim=1).mean()), 1e-12)  # near-ties are judged on the scale of unit vectors
    queries, targets = queries / scale, targets / scale
    return (torch.cat([queries, torch.ones(len(queries), 1)], 1),
            torch.cat([targets, -targets.square().sum(1, keepdim=True) / 2], 1))


def embed_parts(encoder: PostFeatures, *windows) -> list[Tensor]:
    """Per part of the encoder (N, width), float32; arguments as of :func:`~helpers.encoders.embed.embed`.

    A part is a unit vector, or zero where the sample says nothing about it.
    """
    kept = encoder.weights.clone()
    encoder.weights.fill_(1.0)
    joined = torch.from_numpy(embed(encoder, *windows))
    encoder.weights.copy_(kept)
    parts = joined.split(list(encoder.parts.values()), 1)
    return [part.clone() if len(parts) == 1 else nnf.normalize(part, dim=1) for part in parts]


def weightings(encoder: PostFeatures) -> dict[str, Tensor]:
    """Weights to look at: "" as chosen; where there is a count branch also "stream" alone and "counts" alone."""
    chosen = encoder.weights.cpu().clone()
    if encoder.counts is None:
        return {"": chosen}
    stream = torch.eye(len(chosen))[0]
    counts = chosen * (1 - stream)
    return {"": chosen, "stream": stream, "counts": counts if counts.any() else 1 - stream}


def choose_weights(sides: list[list[Tensor]]) -> Tensor:
    """The weights, adding up to 1, with the highest MRR of queries against targets; ``sides``: the parts of both.

    Cosines of different authors spread widely in a part of few dimensions and little in one of many. So shares are
    tried in tenths of cosines that were divided by their spread, and turned into weights of the cosines themselves.
    """
    spread = torch.stack([(query @ target.T).std() for query, target in zip(*sides)]).clamp(min=1e-6)
    grid = [tried for tried in itertools.product(range(STEPS + 1), repeat=len(spread)) if sum(tried) == STEPS]
    weights = nnf.normalize(torch.tensor(grid) / spread, p=1, dim=1)
    scores = [(1 / ranking.ranks(*(join(side, tried) for side in sides))).mean() for tried in weights]
    return weights[int(np.argmax(scores))]


def fit(
    encoder: PostFeatures,
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

    drawing: ``draw``, one of DRAWS ("authors" where absent), and its keyword arguments. settings: every
    parameter of the notebook; with the stores' own fingerprints they decide whether what is in ``folder`` is current.
    Raises ValueError where ``folder`` holds a complete training that may be wanted still: one on these stores with
    other settings, or one that took long.
    """
    folder = Path(folder)
    draw = DRAWS[drawing.get("draw", "authors")]
    drawn = {key: value for key, value in drawing.items() if key != "draw"}
    relevant = {key: value for key, value in settings.items() if key not in NOT_TRAINING}
    data = [VERSION, store.meta["fingerprint"], dev.meta["fingerprint"]]
    if shape.get("encoder") == "document" and shape.get("model") != "tiny":
        data.append(pretrained.weights_fingerprint(shape.get("model", "minilm")))
    fingerprint = fingerprint_of(relevant, *data)
    if not is_current(folder / "training.json", fingerprint):
        _refuse_to_replace(folder, relevant, data)
        (folder / "training.json").unlink(missing_ok=True)  # from here on the files beside it are another training's
    if encoder.counts is not None:
        _fit_counts(encoder.counts, folder / "counts.safetensors", store, drawing, recipe.seed, fingerprint)
    write_json(folder / "model.json", {"fingerprint": fingerprint, "data": data, "encoding": store.meta["encoding"],
                                       "shape": shape, "length": drawing["length"],
                                       "vocabulary": store.meta["vocabulary"], "topics": len(store.meta["topics"]) + 1,
                                       "settings": relevant})  # fmt: skip
    return training.train(
        encoder, lambda step: draw(store, recipe.seed, step, **drawn), loss,
        dev_score(dev, drawing.get("largest", 1), drawing["length"]), folder, recipe, fingerprint,
    )  # fmt: skip


def _refuse_to_replace(folder, settings, data):
    if not (folder / "training.json").exists() or not (folder / "model.json").exists():
        return
    old, took = read_json(folder / "model.json"), training.completed(folder)["seconds"]
    known = old.get("settings", {})
    other = [f"{key} {known[key]!r}, now {value!r}" for key, value in settings.items()
             if key in known and known[key] != value]  # fmt: skip
    if old.get("data") == data and other:
        raise ValueError(f"{folder.name} is already trained with other settings ({'; '.join(other)}): "
                         f"give this one another name, or delete {folder}")  # fmt: skip
    if took > DEAR:
        raise ValueError(f"{folder.name} was trained for {took / 60:.0f} minutes, on other data or by earlier code: "
                         f"delete {folder} to train it again, or give this one another name")  # fmt: skip


def _fit_counts(branch, path, store, drawing, seed, fingerprint):
    if not is_current(path.with_suffix(".json"), fingerprint):
        branch.fit(store, posts=drawing.get("largest", 1), length=drawing["length"], seed=seed)
        with atomic_write(path) as partial:
            save_file(branch.fitted(), partial)
        write_json(path.with_suffix(".json"), {"fingerprint": fingerprint})
    branch.restore(load_file(path))


def load(folder: str | Path, store: TokenStore) -> tuple[PostFeatures, dict]:
    """A trained encoder with its best weights, in eval mode, and its ``model.json``.

    Raises ValueError where the folder holds no complete training, or one on tokens that mean something else than
    those of ``store``.
    """
    folder = Path(folder)
    training.completed(folder)
    about = read_json(folder / "model.json")
    if about.get("encoding") != store.meta["encoding"]:
        raise ValueError(f"model {folder.name} was trained on other tokens than {store.folder.name} holds (another "
                         "tokenizer or topic list): train it again")  # fmt: skip
    encoder = _make(about["shape"], about["vocabulary"], about["topics"])
    if encoder.counts is not None:
        encoder.counts.restore(load_file(folder / "counts.safetensors"))
    checkpoints.load_weights(encoder, folder / "best.safetensors")
    return encoder.eval(), about
