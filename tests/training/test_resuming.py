"""A training ends bit for bit the same however often it is killed."""

import signal

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from helpers.losses import make_loss
from helpers.training import checkpoints
from helpers.training.checkpoints import read_summary
from tests.tiny_training import Killed, changed, dies_at, equal, same_history, start


class TestResuming:
    @pytest.mark.parametrize(
        "optimizer, schedule, lr", [("adamw", "cosine", 0.003), ("sgd", "steps", 0.05)]
    )
    def test_killed_and_continued_it_ends_bit_for_bit_the_same(
        self, tiny, tmp_path, capsys, optimizer, schedule, lr
    ):
        """Killed before any checkpoint, twice within a stretch, and at the first step of one; with
        dropout.
        """
        config = changed(optimizer=optimizer, schedule=schedule, lr=lr)
        tiny.train(tmp_path / "whole", config, encoder=tiny.encoder(dropout=0.3))
        for step in (4, 13, 17, 20, 29):
            with pytest.raises(Killed):
                encoder, draw = tiny.encoder(dropout=0.3), dies_at(step, tiny.draw)
                tiny.train(tmp_path / "killed", config, encoder=encoder, draw=draw)
            with pytest.raises(ValueError, match="training.json is missing"):
                read_summary(tmp_path / "killed")
        capsys.readouterr()
        # an encoder that starts elsewhere: all must come from the file
        encoder, history = tiny.train(
            tmp_path / "killed", config, encoder=tiny.encoder(seed=8, dropout=0.3)
        )
        assert (
            tiny.drawn == list(range(20, 30))
            and capsys.readouterr().out.strip() == "continuing from step 20"
        )
        for name in ("best.safetensors", "last.safetensors"):
            assert equal(tmp_path / "whole" / name, tmp_path / "killed" / name), name
        assert same_history(tmp_path / "whole", tmp_path / "killed")
        assert history.seconds.is_monotonic_increasing

    @pytest.mark.parametrize("optimizer, lr", [("adamw", 0.003), ("sgd", 0.01)])
    def test_a_loss_that_learns_goes_on_where_it_was(self, tiny, tmp_path, optimizer, lr):
        config = changed(optimizer=optimizer, lr=lr)
        loss = make_loss("arcface", 40, 16)
        tiny.train(tmp_path / "whole", config, loss=loss)
        for step in (4, 17):
            with pytest.raises(Killed):
                tiny.train(
                    tmp_path / "killed", config, loss="arcface", draw=dies_at(step, tiny.draw)
                )
        second_loss = make_loss(
            "arcface", 40, 16, seed=5
        )  # starts elsewhere: all must come from the file
        tiny.train(tmp_path / "killed", config, encoder=tiny.encoder(seed=8), loss=second_loss)
        assert tiny.drawn == list(range(10, 30))
        for name in ("best.safetensors", "last.safetensors"):
            assert equal(tmp_path / "whole" / name, tmp_path / "killed" / name), name
        assert same_history(tmp_path / "whole", tmp_path / "killed")
        last, best = (
            load_file(tmp_path / "killed" / name)
            for name in ("last.safetensors", "best.safetensors")
        )
        assert torch.equal(last["loss.weight"], loss.weight) and torch.equal(
            second_loss.weight, loss.weight
        )
        assert not torch.equal(loss.weight, make_loss("arcface", 40, 16).weight), "it was trained"
        assert all(name.startswith("encoder.") for name in best)

    def test_killed_between_two_files(self, tiny, tmp_path, monkeypatch):
        """The history of a step is written, its checkpoint is not."""
        tiny.train(tmp_path / "whole")
        save = checkpoints.save_checkpoint

        def die_on_the_second(path, *arguments):
            if path.name == "last.safetensors" and path.exists():
                raise Killed
            save(path, *arguments)

        monkeypatch.setattr(checkpoints, "save_checkpoint", die_on_the_second)
        with pytest.raises(Killed):
            tiny.train(tmp_path / "killed")
        assert len(pd.read_csv(tmp_path / "killed" / "history.csv")) == 2
        monkeypatch.setattr(checkpoints, "save_checkpoint", save)
        tiny.train(tmp_path / "killed")
        assert tiny.drawn[0] == 10
        assert equal(
            tmp_path / "whole" / "best.safetensors", tmp_path / "killed" / "best.safetensors"
        )
        assert same_history(tmp_path / "whole", tmp_path / "killed")

    def test_complete_training_is_loaded_without_a_step(self, tiny, tmp_path):
        encoder, history = tiny.train(tmp_path)
        second, second_history = tiny.train(tmp_path, encoder=tiny.encoder(seed=8), score=None)
        assert tiny.drawn == [] and second_history.equals(history)
        assert all(torch.equal(a, b) for a, b in zip(encoder.parameters(), second.parameters()))

    def test_training_made_from_something_else_starts_anew(self, tiny, tmp_path):
        tiny.train(tmp_path / "whole", fingerprint="v2")
        with pytest.raises(Killed):
            tiny.train(tmp_path / "other", draw=dies_at(15, tiny.draw))
        tiny.train(tmp_path / "other", fingerprint="v2")
        assert tiny.drawn == list(range(30))
        assert equal(
            tmp_path / "whole" / "best.safetensors", tmp_path / "other" / "best.safetensors"
        )
        assert same_history(tmp_path / "whole", tmp_path / "other")

    def test_what_is_complete_is_not_mixed_with_what_is_not(self, tiny, tmp_path):
        """A new training over a complete one: until it is complete there is none."""
        tiny.train(tmp_path)
        with pytest.raises(Killed):
            tiny.train(tmp_path, fingerprint="v2", draw=dies_at(15, tiny.draw))
        with pytest.raises(ValueError, match="training.json is missing"):
            read_summary(tmp_path)
        tiny.train(tmp_path)
        assert tiny.drawn == list(range(30)), "the best weights of v1 are gone"

    def test_kill_9(self, tmp_path):
        """A process of its own, killed without warning in the middle of its second stretch, then
        run again.
        """
        whole = start(tmp_path / "whole")
        killed = start(tmp_path / "killed", die=15)
        assert killed.wait() == -signal.SIGKILL
        continued = start(tmp_path / "killed")
        for training in (whole, continued):
            assert training.wait() == 0, training.errors()[-2000:]
        steps = " ".join(map(str, range(10, 20)))
        assert continued.printed().strip() == f"continuing from step 10\n{steps}"
        for name in ("best.safetensors", "last.safetensors"):
            assert equal(tmp_path / "whole" / name, tmp_path / "killed" / name), name
        assert same_history(tmp_path / "whole", tmp_path / "killed")
