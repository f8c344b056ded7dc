"""Damaged files of a training are refused by name."""

import pytest
import torch

from helpers.encoders.base import read_checkpoint, save_checkpoint
from helpers.training.loop import load_state
from tests.tiny_training import Killed, dies_at


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def test_a_damaged_state_is_refused_by_name(tiny, tmp_path):
    with pytest.raises(Killed):
        tiny.train(tmp_path, draw=dies_at(15, tiny.draw))
    path = tmp_path / "last.pt"
    data = path.read_bytes()
    whole = load_state(path, "v1")["trained"]
    refused = 0
    for place in range(0, len(data), 1009):
        flip(path, place)
        try:  # a byte between two tensors says nothing
            state = load_state(path, "v1")
            assert all(torch.equal(state["trained"][name], whole[name]) for name in whole)
        except ValueError as error:
            assert "last.pt is damaged: look at it" in str(error)
            refused += 1
        flip(path, place)
    assert refused > 3
    path.write_bytes(data[:-20])
    with pytest.raises(ValueError, match="last.pt is damaged: look at it"):
        tiny.train(tmp_path)


def test_no_byte_of_a_checkpoint_can_change_unseen(tmp_path):
    tensors = {"encoder.a": torch.arange(3.0), "loss.c": torch.zeros(0, 2)}
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
