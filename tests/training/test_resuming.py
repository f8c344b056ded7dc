"""A training ends bit for bit the same however often it is killed; damage is refused."""

import os

import pytest
import torch

from helpers.losses import make_loss
from helpers.training.loop import load_state
from tests.tiny_training import Killed, changed, dies_at, equal


class TestResuming:
    @pytest.mark.parametrize("optimizer, schedule", [("adamw", "cosine"), ("sgd", "steps")])
    def test_killed_and_continued_it_ends_bit_for_bit_the_same(
        self, tiny, tmp_path, capsys, optimizer, schedule
    ):
        """Killed before any checkpoint, within a stretch, and at the first step of one."""
        config = changed(optimizer=optimizer, schedule=schedule)
        tiny.train(tmp_path / "whole", config, encoder=tiny.encoder(dropout=0.3))
        for step in (4, 13, 20):
            with pytest.raises(Killed):
                encoder, draw = tiny.encoder(dropout=0.3), dies_at(step, tiny.draw)
                tiny.train(tmp_path / "killed", config, encoder=encoder, draw=draw)
            assert not (tmp_path / "killed" / "training.json").exists()
        capsys.readouterr()
        # an encoder that starts elsewhere: all must come from the file
        other = tiny.encoder(seed=8, dropout=0.3)
        _, history = tiny.train(tmp_path / "killed", config, encoder=other)
        assert tiny.drawn == list(range(20, 30))
        assert capsys.readouterr().out.strip() == "continuing from step 20"
        assert equal(tmp_path / "whole", tmp_path / "killed")
        assert history.seconds.is_monotonic_increasing

    def test_a_loss_that_learns_goes_on_where_it_was(self, tiny, tmp_path):
        loss = make_loss("arcface", 40, 16)
        tiny.train(tmp_path / "whole", loss=loss)
        with pytest.raises(Killed):
            tiny.train(tmp_path / "killed", loss="arcface", draw=dies_at(17, tiny.draw))
        second_loss = make_loss("arcface", 40, 16)  # starts elsewhere: all must come from the file
        tiny.train(tmp_path / "killed", encoder=tiny.encoder(seed=8), loss=second_loss)
        assert tiny.drawn == list(range(10, 30))
        assert equal(tmp_path / "whole", tmp_path / "killed")
        assert torch.equal(second_loss.weight, loss.weight)
        assert not torch.equal(loss.weight, make_loss("arcface", 40, 16).weight), "it was trained"

    @pytest.mark.parametrize("name", ["best.safetensors", "training.json"])
    def test_killed_while_it_is_completed(self, tiny, tmp_path, monkeypatch, name):
        tiny.train(tmp_path / "whole")
        replace = os.replace

        def die_or_replace(source, target):
            if target.name == name:
                raise Killed
            replace(source, target)

        monkeypatch.setattr(os, "replace", die_or_replace)
        with pytest.raises(Killed):
            tiny.train(tmp_path / "killed")
        monkeypatch.undo()
        tiny.train(tmp_path / "killed")
        assert tiny.drawn == [], "all steps were done"
        assert equal(tmp_path / "whole", tmp_path / "killed")

    def test_training_made_from_something_else_starts_anew(self, tiny, tmp_path):
        tiny.train(tmp_path / "whole", fingerprint="v2")
        with pytest.raises(Killed):
            tiny.train(tmp_path / "other", draw=dies_at(15, tiny.draw))
        tiny.train(tmp_path / "other", fingerprint="v2")
        assert tiny.drawn == list(range(30))
        assert equal(tmp_path / "whole", tmp_path / "other")


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
