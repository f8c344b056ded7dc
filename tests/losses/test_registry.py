"""What holds of every loss, how they are made by name, and how their settings are checked."""

import json
from inspect import isclass

import pytest
import torch

from helpers.losses import LOSSES, RELEASED, LossConfig, make_loss
from helpers.losses.pairwise import semihard_triplet
from tests.factories import labelled_vectors, uneven_vectors

# those with parameters are classes: tests/losses/test_classification.py
NAMES = [name for name, loss in LOSSES.items() if not isclass(loss)]


@pytest.mark.parametrize("name", NAMES)
class TestEveryLoss:
    def test_gradients_by_finite_differences(self, name):
        for vectors, labels in (labelled_vectors(1, authors=3, samples=3), uneven_vectors(2)):
            vectors.requires_grad_()
            assert torch.autograd.gradcheck(lambda e: LOSSES[name](e, labels), vectors)

    def test_precision_is_kept_or_raised(self, name):
        vectors, labels = labelled_vectors(2)
        assert LOSSES[name](vectors, labels).dtype == torch.float64
        loss = LOSSES[name](vectors.to(torch.bfloat16), labels)
        assert loss.dtype == torch.float32
        expected = LOSSES[name](vectors, labels).item()
        assert loss.item() == pytest.approx(expected, rel=0.05, abs=0.05)

    def test_nothing_to_learn_from(self, name):
        single, alone, together = torch.zeros(1), torch.arange(6), torch.zeros(4)
        # these act on one kind of pairs
        batches = dict.fromkeys(("contrastive", "modified_contrastive"), [single])
        batches["supcon"] = [single, alone]
        for labels in batches.get(name, [single, alone, together]):
            vectors = torch.randn(len(labels), 3, requires_grad=True)
            loss = LOSSES[name](vectors, labels)
            loss.backward()
            assert loss.item() == 0 and not vectors.grad.any()

    def test_a_loss_of_vectors_that_are_no_numbers_is_none(self, name):
        """A training that has diverged is found by its loss."""
        vectors, labels = labelled_vectors(3)
        vectors = torch.full_like(vectors, torch.nan)
        assert not LOSSES[name](vectors, labels).isfinite()

    def test_equal_vectors_have_finite_gradients(self, name):
        vector = torch.randn(1, 6).repeat(4, 1)
        two_equal = torch.cat([vector[:2], torch.randn(2, 6)])
        cases = {
            "within an author": two_equal,
            "across authors": two_equal[[0, 2, 1, 3]],
            "everywhere": vector,
            "zero vectors": torch.zeros(4, 6),
        }
        for case, vectors in cases.items():
            vectors = vectors.clone().requires_grad_()
            loss = LOSSES[name](vectors, torch.tensor([0, 0, 1, 1]))
            loss.backward()
            assert torch.isfinite(loss) and torch.isfinite(vectors.grad).all(), case


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_vector_of_no_length_leaves_the_gradients_of_the_others(name, dtype):
    vectors = torch.randn(6, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    vectors[2] = 0
    vectors[3] *= 1e-7
    vectors.requires_grad_()
    make_loss(name, 3, 8)(vectors, torch.tensor([0, 0, 0, 1, 1, 2])).backward()
    assert vectors.grad.isfinite().all() and vectors.grad.abs().max() < 100
    assert not vectors.grad[2:4].any() and vectors.grad.any()


class TestMakeLoss:
    def test_by_name(self):
        vectors, labels = labelled_vectors(0)
        expected = semihard_triplet(vectors, labels, 0.7)
        assert make_loss("triplet", margin=0.7)(vectors, labels) == expected
        assert make_loss("triplet", 5, 6)(vectors, labels) == semihard_triplet(vectors, labels)
        assert make_loss("mll", 5, 6).weight.shape == (5, 6)

        with pytest.raises(ValueError, match="'temperature'; valid: distance, margin"):
            make_loss("triplet", temperature=1)

    @pytest.mark.parametrize("name", [name for name in RELEASED if name != "arr"])
    def test_presets_are_settings_that_change_the_loss(self, name):
        vectors, labels = uneven_vectors(2)
        vectors = vectors.float()
        plain, released = (make_loss(name, 4, 6, **settings) for settings in ({}, RELEASED[name]))
        assert plain(vectors, labels).item() != pytest.approx(released(vectors, labels).item())


class TestLossConfig:
    def test_it_holds_all_settings(self):
        config = LossConfig(name="triplet", settings={"margin": 1})
        assert config.settings == {"margin": 1.0, "distance": "euclidean"}
        equal = LossConfig(name="triplet", settings={"margin": 1.0})
        assert config.fingerprint == equal.fingerprint
        assert config.fingerprint != LossConfig(name="triplet").fingerprint

    @pytest.mark.parametrize("name", [*LOSSES, "arr"])
    def test_it_can_be_written_and_read(self, name):
        config = LossConfig(name=name, settings=RELEASED.get(name, {}))
        assert LossConfig.of(json.loads(json.dumps(config.model_dump()))) == config
        if name != "arr":
            make_loss(config.name, 4, 6, **config.settings)
