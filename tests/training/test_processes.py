"""Training in two processes ends where one ends."""

from functools import cache

import numpy as np
import pytest
import torch

from tests.factories import store_in_memory
from tests.tiny_training import Setting, finished, losses, start

DOUBLE = {"lr": 0.002, "dtype": "float64"}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Of a loss, the folder of what one process trains, and the process."""

    @cache
    def training(loss):
        folder = tmp_path_factory.mktemp(loss) / "one"
        return folder, start(folder, loss=loss, **DOUBLE)

    return training


class TestProcesses:
    @pytest.mark.parametrize(
        "loss, micro_batch_size", [("supcon", 0), ("arcface", 0), ("supcon", 7)]
    )
    def test_two_end_where_one_ends(self, tmp_path, alone, loss, micro_batch_size):
        """Each encodes half of the batch, perhaps in parts, the loss sees all: without the others'
        samples the weights are others.

        In double precision: in single, sums rounded differently let a maximum change hands, and
        gradients with it.
        """
        alone_folder, of_one = alone(loss)
        of_two = start(
            tmp_path / "two", processes=2, loss=loss, micro_batch_size=micro_batch_size, **DOUBLE
        )
        for training in (of_one, of_two):
            assert training.wait() == 0, training.errors()[-2000:]
        weights, history = finished(alone_folder)
        two_weights, two_history = finished(tmp_path / "two")
        assert weights.keys() == two_weights.keys()
        for name, value in weights.items():
            close = 1e-9 * max(1, value.abs().max().item())
            assert torch.allclose(two_weights[name], value, rtol=0, atol=close), name
        np.testing.assert_allclose(two_history.loss, history.loss, rtol=1e-9)
        assert two_history.MRR.tolist() == history.MRR.tolist()
        first_weights = Setting(store_in_memory).encoder().state_dict()
        assert max((weights[name] - first_weights[name]).abs().max() for name in weights) > 1e-2

    def test_fifty_losses_are_those_of_one_even_after_a_kill(self, tmp_path):
        """Every step's loss, of one process, of two, and of two that are killed without warning and
        started again.

        At step 27, two steps after a checkpoint: what is drawn again must be what was lost.
        """
        settings = {"steps": 50, "eval_every": 5, "lr": 0.002}
        of_one = start(tmp_path / "1", processes=1, **settings)
        of_two = start(tmp_path / "2", processes=2, **settings)
        killed = start(tmp_path / "killed", die=27, processes=2, **settings)
        assert killed.wait() != 0
        continued = start(tmp_path / "killed", processes=2, **settings)
        for training in (of_one, of_two, continued):
            assert training.wait() == 0, training.errors()[-2000:]
        assert continued.printed().count("continuing from step 25") == 2
        alone_losses, two_losses, killed_losses = (
            losses(tmp_path / name) for name in ("1", "2", "killed")
        )
        assert (
            sorted(alone_losses) == sorted(two_losses) == sorted(killed_losses) == list(range(50))
            and len(set(alone_losses.values())) > 45
        )
        for values in (two_losses, killed_losses):
            np.testing.assert_allclose(
                [values[step] for step in range(50)],
                [alone_losses[step] for step in range(50)],
                rtol=1e-5,
            )
