"""Training in two processes ends where one ends."""

import numpy as np
import pytest
import torch

from tests.factories import store_in_memory
from tests.tiny_training import Setting, finished, losses, start


class TestProcesses:
    @pytest.mark.parametrize("loss, micro_batch_size", [("arcface", 0), ("supcon", 7)])
    def test_two_end_where_one_ends(self, tmp_path, loss, micro_batch_size):
        """Each encodes half of the batch, perhaps in parts, and the loss sees all.

        In double precision: in single, sums rounded differently let a maximum change hands, and
        gradients with it.
        """
        settings = {"lr": 0.002, "dtype": "float64", "loss": loss}
        of_one = start(tmp_path / "one", **settings)
        more = {"processes": 2, "micro_batch_size": micro_batch_size}
        of_two = start(tmp_path / "two", **settings, **more)
        for training in (of_one, of_two):
            assert training.wait() == 0, training.errors()[-2000:]
        weights, history = finished(tmp_path / "one")
        two_weights, two_history = finished(tmp_path / "two")
        assert weights.keys() == two_weights.keys()
        for name, value in weights.items():
            close = 1e-9 * max(1, value.abs().max().item())
            assert torch.allclose(two_weights[name], value, rtol=0, atol=close), name
        np.testing.assert_allclose(two_history.loss, history.loss, rtol=1e-9)
        assert two_history.MRR.tolist() == history.MRR.tolist()
        first_weights = Setting(store_in_memory).encoder().state_dict()
        assert max((weights[name] - first_weights[name]).abs().max() for name in weights) > 1e-2

    def test_thirty_losses_are_those_of_one_even_after_a_kill(self, tmp_path):
        """Every step's loss, of one process, and of two that are killed and started again.

        At step 17, two steps after a checkpoint: what is drawn again must be what was lost.
        """
        settings = {"steps": 30, "eval_every": 5, "lr": 0.002}
        of_one = start(tmp_path / "one", processes=1, **settings)
        killed = start(tmp_path / "killed", die=17, processes=2, **settings)
        assert killed.wait() != 0
        continued = start(tmp_path / "killed", processes=2, **settings)
        for training in (of_one, continued):
            assert training.wait() == 0, training.errors()[-2000:]
        assert continued.printed().count("continuing from step 15") == 2
        alone_losses, killed_losses = losses(tmp_path / "one"), losses(tmp_path / "killed")
        assert sorted(alone_losses) == sorted(killed_losses) == list(range(30))
        assert len(set(alone_losses.values())) > 25
        for step, loss in alone_losses.items():
            assert killed_losses[step] == pytest.approx(loss, rel=1e-5)
