"""Attacks by files: a pickle in place of an artifact is refused and not run."""

import io
import pickle
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel

from helpers.accounts.encoder import SHIPPED, AuthorEncoder
from helpers.core import artifacts
from helpers.encoders.transformer import model_parts
from helpers.tokens.store import build_store, list_topics, open_store
from helpers.tokens.tokenizer import load_tokenizer
from helpers.training.experiment import load_trained
from tests.faults import calls
from tests.faults.test_damage import made  # noqa: F401  a fixture


class Attack:
    """What writes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return (open, (self.mark, "w"))


def plain_pickle(attack):
    return pickle.dumps({"weight": attack}, 2)


def torch_archive(attack):
    buffer = io.BytesIO()
    torch.save({"linear.weight": attack}, buffer)
    return buffer.getvalue()


def numpy_archive(attack):
    buffer = io.BytesIO()
    np.savez(buffer, names=np.array([attack], object), tokens=np.array([attack], object))
    return buffer.getvalue()


PICKLES = [plain_pickle, torch_archive, numpy_archive]
each_pickle = pytest.mark.parametrize(
    "pickled", PICKLES, ids=[pickled.__name__ for pickled in PICKLES]
)


def refused(ask, path, content, mark):
    """Put a pickle in a file's place, ask for what is made of the file, and put the file back."""
    whole = path.read_bytes() if path.exists() else None
    path.write_bytes(content)
    artifacts.write_checksum(path)
    try:
        with pytest.raises(ValueError) as caught:
            ask()
        assert "weights_only=False" not in str(caught.value), "advice to run what the file holds"
    finally:
        if whole is None:
            path.unlink()
        else:
            path.write_bytes(whole)
        Path(f"{path}.sha256").unlink()
    assert not mark.exists(), "the pickle ran"


@each_pickle
def test_a_pickle_in_place_of_an_artifact_is_refused(made, pickled, tmp_path):  # noqa: F811
    run = made["training"]
    model = run.models / calls.NAME
    dev = open_store(run.tokens / "dev")
    mark = tmp_path / "mark"
    content = pickled(Attack(mark))
    places = {
        model / "best.safetensors": partial(load_trained, model, dev),
        run.tokenizer / "tokenizer.model": partial(load_tokenizer, run.tokenizer),
        run.tokens / "train/tokens.u16": partial(open_store, run.tokens / "train"),
        run.tokens / "train/authors.parquet": partial(open_store, run.tokens / "train"),
    }
    for path, ask in places.items():
        refused(ask, path, content, mark)


@each_pickle
def test_a_pickle_in_place_of_shipped_weights_is_refused_and_not_run(pickled, tmp_path):
    folder = shutil.copytree(SHIPPED / "open-small", tmp_path / "mine")
    mark = tmp_path / "mark"
    content = pickled(Attack(mark))
    for name in ("weights.safetensors", "tokenizer.model", "model.json"):
        refused(partial(AuthorEncoder.load, folder), folder / name, content, mark)


def test_a_pickle_in_place_of_a_part_of_a_store_is_not_run(made, tmp_path):  # noqa: F811
    """A build that was interrupted left parts, whose checksums anybody can compute."""
    run = made["training"]
    fingerprint = artifacts.read_json(run.tokens / "train/store.json")["fingerprint"]
    mark = tmp_path / "mark"
    for pickled in PICKLES:
        folder = shutil.copytree(run.folder, tmp_path / pickled.__name__) / "tokens/train"
        (folder / "store.json").unlink()
        part = folder / "parts" / fingerprint / "000000.npz"
        part.parent.mkdir(parents=True)
        ask = partial(build_again, run, folder)
        refused(ask, part, pickled(Attack(mark)), mark)


def build_again(run, folder):
    """Build a token store in a folder, with the parts that are there."""
    posts = run.posts / "train.parquet"
    words = load_tokenizer(run.tokenizer)
    encoding = (list_topics(posts), words.fingerprint, words.vocabulary)
    return build_store(posts, folder, words.encode, *encoding)


def test_a_released_transformer_with_a_pickle_or_without_weights_is_refused(tmp_path):
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertModel(BertConfig(intermediate_size=48, vocab_size=50, **sizes)).save_pretrained(tmp_path)
    assert model_parts(str(tmp_path))
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    without = {name: tensors[name] for name in tensors if not name.startswith("encoder")}
    save_file(without, path, {"format": "pt"})
    with pytest.raises(ValueError, match=f"{tmp_path.name} lacks the weights 'encoder.layer.0"):
        model_parts(str(tmp_path))
    path.unlink()
    mark = tmp_path / "mark"
    (tmp_path / "pytorch_model.bin").write_bytes(plain_pickle(Attack(mark)))
    with pytest.raises(ValueError, match=tmp_path.name):
        model_parts(str(tmp_path))
    assert not mark.exists(), "the pickle ran"
