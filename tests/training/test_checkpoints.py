"""Damaged files of a training: an interrupted one starts anew, a complete one is refused."""

import pytest
import torch

from helpers.training.checkpoints import read_checkpoint, save_checkpoint
from tests.tiny_training import Killed, dies_at, equal


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", ["missing", "shorter", "head", "middle", "last"])
def test_an_interrupted_training_starts_anew(tiny, tmp_path, capsys, damage):
    tiny.train(tmp_path / "whole")
    with pytest.raises(Killed):
        tiny.train(tmp_path / "killed", draw=dies_at(15, tiny.draw))
    path = tmp_path / "killed" / "last.safetensors"
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "shorter":
        path.write_bytes(data[:-20])
    else:
        flip(path, {"head": 30, "middle": len(data) // 2, "last": -1}[damage])
    capsys.readouterr()
    tiny.train(tmp_path / "killed")
    assert tiny.drawn == list(range(30))
    is_said = "training starts from the beginning: " in capsys.readouterr().out
    assert is_said == (damage != "missing")
    assert equal(tmp_path / "whole", tmp_path / "killed")


def test_no_byte_of_a_checkpoint_can_change_unseen(tmp_path):
    tensors = {
        "encoder.a": torch.arange(3.0),
        "encoder.b": torch.tensor(2),
        "loss.c": torch.zeros(0, 2),
    }
    save_checkpoint(tmp_path / "x", tensors, {"step": 7, "history": []})
    read, state = read_checkpoint(tmp_path / "x")
    assert state == {"step": 7, "history": []}
    assert all(torch.equal(read[name], tensors[name]) for name in tensors)
    for place in range((tmp_path / "x").stat().st_size):
        flip(tmp_path / "x", place)
        try:  # a blank behind the description says nothing
            damaged, damaged_state = read_checkpoint(tmp_path / "x")
            assert damaged_state == state
            assert all(torch.equal(damaged[name], tensors[name]) for name in tensors)
        except ValueError as error:
            assert "x is damaged" in str(error)
        flip(tmp_path / "x", place)
