"""Damaged files of a training: an interrupted one starts anew, a complete one is refused."""

import pytest
import torch

from helpers.training import checkpoints
from helpers.training.checkpoints import load_weights, read_summary
from tests.tiny_training import Killed, dies_at, equal, same_history


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


class TestDamage:
    @pytest.mark.parametrize("name", ["last.safetensors", "best.safetensors", "history.csv"])
    @pytest.mark.parametrize("damage", ["missing", "shorter", "head", "middle", "last"])
    def test_an_interrupted_training_starts_anew(self, tiny, tmp_path, capsys, name, damage):
        tiny.train(tmp_path / "whole")
        with pytest.raises(Killed):
            tiny.train(tmp_path / "killed", draw=dies_at(15, tiny.draw))
        path = tmp_path / "killed" / name
        data = path.read_bytes()
        if damage in ("missing", "shorter"):
            path.unlink() if damage == "missing" else path.write_bytes(data[:-20])
        elif name == "history.csv":  # all but the seconds
            flip(
                path,
                {"head": 1, "middle": data.index(b"\n") + 6, "last": data.rindex(b",") - 1}[damage],
            )
        else:
            flip(path, {"head": 30, "middle": len(data) // 2, "last": -1}[damage])
        capsys.readouterr()
        tiny.train(tmp_path / "killed")
        assert tiny.drawn == list(range(30))
        said = capsys.readouterr().out
        assert "training starts from the beginning: " in said or (name, damage) == (
            "last.safetensors",
            "missing",
        )
        for checkpoint in ("best.safetensors", "last.safetensors"):
            assert equal(tmp_path / "whole" / checkpoint, tmp_path / "killed" / checkpoint)
        assert same_history(tmp_path / "whole", tmp_path / "killed")

    @pytest.mark.parametrize("name", ["best.safetensors", "history.csv"])
    def test_a_complete_training_is_refused(self, tiny, tmp_path, name):
        tiny.train(tmp_path)
        path = tmp_path / name
        size = path.stat().st_size
        for place in {0, 8, 30, size // 3, size // 2, size - 1}:
            flip(path, place)
            for open_it in (lambda: read_summary(tmp_path), lambda: tiny.train(tmp_path)):
                with pytest.raises(ValueError, match=f"{name} is (missing|damaged): look"):
                    open_it()
            if name == "best.safetensors":
                with pytest.raises(ValueError, match=f"{name} is (missing|damaged)"):
                    load_weights(tiny.encoder(), path)
            flip(path, place)
        path.unlink()
        with pytest.raises(ValueError, match=f"{name} is (missing|damaged)"):
            read_summary(tmp_path)

    def test_no_byte_of_a_checkpoint_can_change_unseen(self, tmp_path):
        tensors = {
            "encoder.a": torch.arange(3.0),
            "encoder.b": torch.tensor(2),
            "loss.c": torch.zeros(0, 2),
        }
        checkpoints.save_checkpoint(tmp_path / "x", tensors, {"step": 7, "scaler": None})
        read, state = checkpoints.read_checkpoint(tmp_path / "x")
        assert state == {"step": 7, "scaler": None} and all(
            torch.equal(read[name], tensors[name]) for name in tensors
        )
        for place in range((tmp_path / "x").stat().st_size):
            flip(tmp_path / "x", place)
            try:  # a blank behind the description says nothing
                damaged, damaged_state = checkpoints.read_checkpoint(tmp_path / "x")
                assert damaged_state == state and all(
                    torch.equal(damaged[name], tensors[name]) for name in tensors
                )
            except ValueError as error:
                assert "x is damaged" in str(error)
            flip(tmp_path / "x", place)
