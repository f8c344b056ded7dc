"""What is said about damaged files: which file, what is wrong, what to do, in nobody's jargon."""

import json
import os
import pickle
import re
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from helpers.accounts import encoder as shipped_encoder
from helpers.accounts.encoder import AuthorEncoder
from helpers.core import messages
from helpers.core.artifacts import write_json
from helpers.core.messages import FileError
from helpers.core.paths import Run, display_path
from helpers.encoders import transformer
from helpers.encoders.base import read_checkpoint, save_checkpoint, weights_checksum
from helpers.training.experiment import _is_trained

# words of libraries and of Python that help nobody who has a damaged file
JARGON = re.compile(
    r"weights_only|torch\.|state_dict|deserializ|miniz|zip archive|codec|JSON|object has no|"
    r"Errno|os error|Error\b|train again|notebook that makes"
)


def refusal(function, *arguments):
    """Return the sentence with which a function refuses a file."""
    with pytest.raises(FileError) as caught:
        function(*arguments)
    message = str(caught.value)
    assert not JARGON.search(message) and "\n" not in message, message
    return message


class Code:
    """What makes a folder when it is unpickled."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def make_folder(path):
    path.unlink()
    path.mkdir()


def put_pickle(path):
    path.write_bytes(pickle.dumps({"weight": Code(path.with_name("mark"))}))


DAMAGES = [flip, make_folder, put_pickle]


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A copy of the package's encoder that counts as what ships."""
    monkeypatch.setattr(messages, "PACKAGE", tmp_path / "helpers")
    monkeypatch.setattr(shipped_encoder, "SHIPPED", tmp_path / "helpers" / "shipped")
    folder = tmp_path / "helpers" / "shipped" / "open-small"
    return shutil.copytree(Path(shipped_encoder.__file__).parent / "shipped/open-small", folder)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_an_encoder_that_ships_is_restored(shipped, damage):
    path = shipped / "weights.safetensors"
    damage(path)
    assert refusal(AuthorEncoder.load).endswith("or restore it with `git checkout`")
    assert not (shipped / "mark").exists()


def test_weights_that_are_not_finite_or_not_there_are_not_loaded(shipped):
    path = shipped / "weights.safetensors"
    tensors, state = read_checkpoint(path)
    name = next(name for name in tensors if tensors[name].is_floating_point())
    tensors[name][0] = torch.nan
    reseal(path, tensors, state)
    assert "that are not finite" in refusal(AuthorEncoder.load)
    del tensors[name]
    save_checkpoint(path, tensors, state)
    assert "does not hold the weights" in refusal(AuthorEncoder.load)


def reseal(path, tensors, state):
    """Write a checkpoint as its function does, but for the check that values are finite."""
    state = {**state, "sha256": weights_checksum(tensors, state)}
    save_file(tensors, path, {"state": json.dumps(state)})


@pytest.fixture
def demo(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))
    return Run("demo")


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_checkpoint_of_a_run_is_deleted_and_made_again(demo, tmp_path, damage):
    made = demo.models / "a"
    folders = {
        made: f"delete {display_path(made)}; `make reproduce RUN=demo` makes it again",
        tmp_path / "own": "look at it, and make or download it again",
    }
    for folder, remedy in folders.items():
        path = folder / "best.safetensors"
        save_checkpoint(path, {"encoder.a": torch.ones(999)}, {"step": 1})
        damage(path)
        message = refusal(read_checkpoint, path)
        assert message.startswith(display_path(path)) and message.endswith(remedy)
        assert not (folder / "mark").exists()


def test_a_damaged_training_json_is_no_other_settings(demo):
    folder = demo.models / "a"
    write_json(folder / "training.json", {"fingerprint": "v1", "history": []})
    with pytest.raises(ValueError, match="already trained with other settings"):
        _is_trained(folder, "v2")
    flip(folder / "training.json")
    assert refusal(_is_trained, folder, "v1").startswith(
        f"{display_path(folder / 'training.json')} is damaged: delete {display_path(folder)};"
    )


@pytest.fixture
def bert(tmp_path):
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(intermediate_size=48, vocab_size=50, **sizes)
    BertModel(config).save_pretrained(tmp_path)
    assert transformer.model_parts(str(tmp_path))
    return tmp_path


def test_weights_of_another_transformer(bert, capsys):
    path = bert / "model.safetensors"
    tensors = load_file(path)
    without_pooler = {name: tensors[name] for name in tensors if not name.startswith("pooler")}
    save_file(without_pooler, path, {"format": "pt"})
    assert transformer.model_parts(str(bert)), "nobody uses the pooler"
    without_encoder = {name: tensors[name] for name in tensors if not name.startswith("encoder")}
    save_file(without_encoder, path, {"format": "pt"})
    message = refusal(transformer.model_parts, str(bert))
    assert f"{display_path(bert)} lacks the weights 'encoder.layer.0" in message
    assert "LOAD REPORT" not in capsys.readouterr().err


def test_a_pickle_of_another_transformer(bert):
    (bert / "model.safetensors").unlink()
    put_pickle(bert / "pytorch_model.bin")
    assert display_path(bert) in refusal(transformer.model_parts, str(bert))
    assert not (bert / "mark").exists()


def test_a_model_that_is_nowhere():
    with pytest.raises(ValueError, match="neither a folder nor in the local cache") as caught:
        transformer.model_parts("nobody/nothing")
    assert "`hf download nobody/nothing`" in str(caught.value)
