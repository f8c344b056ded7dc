"""Training: it learns, follows its learning rates, and stops where numbers are not finite."""

import math

import pytest
import torch

from helpers.core.artifacts import read_json
from helpers.encoders.base import embed
from helpers.losses.pairwise import supervised_contrastive
from helpers.tokens.batch import Samples
from helpers.training.loop import GradCache, TrainingConfig, load_state
from tests.tiny_training import CONFIG, changed


@pytest.fixture
def new_accelerator():
    """accelerate keeps one precision for a process."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(True)
    yield
    AcceleratorState._reset_state(True)


@pytest.mark.usefixtures("new_accelerator")
def test_an_encoder_trained_in_bf16_goes_on_in_float32(tiny, tmp_path):
    trained, _ = tiny.train(tmp_path, changed(steps=4, eval_every=2, precision="bf16"))
    loaded = tiny.encoder(seed=9)
    loaded.load_state_dict(trained.state_dict())
    samples = Samples.of_posts(tiny.store)
    assert (embed(trained, samples, 8) == embed(loaded, samples, 8)).all()


class TestLearning:
    def test_the_loss_falls_and_dev_rises(self, tiny, tmp_path):
        before = tiny.score(tiny.encoder())["MRR"]
        config = changed(steps=80, lr=0.01, eval_every=20)
        encoder, history = tiny.train(tmp_path, config, loss="arcface")
        assert history.step.tolist() == [20, 40, 60, 80]
        assert history.loss.iloc[-1] < 0.8 * history.loss.iloc[0]
        assert history.MRR.max() > before + 0.2 and len(set(history.MRR)) > 1
        assert tiny.score(encoder)["MRR"] == history.MRR.max(), "left with its best weights"
        assert tiny.drawn == list(range(80))

    def test_the_best_weights_are_kept_not_the_last(self, tiny, tmp_path):
        values = iter([0.2, 0.9, 0.5])
        weights = []

        def score(encoder):
            weights.append({name: value.clone() for name, value in encoder.state_dict().items()})
            return {"MRR": next(values)}

        encoder, history = tiny.train(tmp_path, score=score)
        assert history.MRR.tolist() == [0.2, 0.9, 0.5]
        for name, value in encoder.state_dict().items():
            assert torch.equal(value, weights[1][name])
        summary = read_json(tmp_path / "training.json")
        assert (summary["best_step"], summary["best_dev_MRR"], summary["steps"]) == (20, 0.9, 30)
        assert summary["fingerprint"] == "v1" and summary["lr"] == CONFIG.lr

    def test_parts_of_a_batch_train_as_the_whole_does(self, tiny, tmp_path):
        """The loss sees all 48 samples, the encoder never more than 7 of them, twice each."""
        config, sizes = TrainingConfig(steps=10, lr=0.01, optimizer="sgd", clip=1e9), []
        whole, whole_history = tiny.train(tmp_path / "whole", config)
        encoder = tiny.encoder()

        def note_size(_, given):
            if encoder.training:
                sizes.append(len(given[0]))

        encoder.register_forward_pre_hook(note_size)
        in_parts = config.model_copy(update={"micro_batch_size": 7})
        parts, parts_history = tiny.train(tmp_path / "parts", in_parts, encoder=encoder)
        assert parts_history.loss[0] == pytest.approx(whole_history.loss[0], rel=1e-5)
        for whole_weight, parts_weight in zip(whole.parameters(), parts.parameters()):
            assert torch.allclose(whole_weight, parts_weight, atol=1e-5)
        assert set(sizes) == {7, 48 % 7} and sum(sizes) == 2 * 48 * 10

    def test_parts_are_made_again_by_the_same_random_numbers(self, tiny):
        batch, gradients = tiny.draw(0), []
        for in_cache in (True, False):
            encoder = tiny.encoder(dropout=0.5)
            torch.manual_seed(5)
            parts = [batch[at : at + 7] for at in range(0, len(batch), 7)]
            if in_cache:
                rows = GradCache(encoder, 7)(batch)
            else:
                rows = torch.cat([encoder(part) for part in parts])
            supervised_contrastive(rows, batch.authors).backward()
            gradients.append([weight.grad for weight in encoder.parameters()])
        torch.testing.assert_close(*gradients, rtol=0, atol=1e-6)
        assert any(gradient.abs().max() > 1e-3 for gradient in gradients[0])

    def test_every_step_has_a_random_state_of_its_own(self, tiny, tmp_path):
        numbers = []

        def loss(embeddings, labels):
            numbers.append(torch.rand(1).item())
            return embeddings.square().sum()

        tiny.train(tmp_path, changed(steps=6, eval_every=3), loss=loss)
        assert len(set(numbers)) == 6

    def test_the_gradient_is_clipped(self, tiny, tmp_path):
        start = tiny.encoder()
        plain = {"optimizer": "sgd", "schedule": "constant", "weight_decay": 0.0}
        moved, _ = tiny.train(tmp_path, TrainingConfig(steps=1, lr=1.0, clip=0.01, **plain))
        before, after = (
            torch.cat([weight.flatten() for weight in encoder.parameters()])
            for encoder in (start, moved)
        )
        assert (after - before).norm().item() == pytest.approx(0.01, rel=1e-3)


class TestRates:
    def rates(self, **settings):
        config = TrainingConfig(**{"steps": 100, "lr": 0.4, **settings})
        return [config.learning_rate(step) for step in range(config.steps)]

    def test_cosine(self):
        by_hand = [0.2 * (1 + math.cos(math.pi * step / 100)) for step in range(100)]
        assert self.rates(schedule="cosine") == pytest.approx(by_hand)

    def test_steps_of_the_released_code(self):
        """250k, 500k and 750k of 1M."""
        config = TrainingConfig(steps=1_000_000, lr=0.05, schedule="steps", optimizer="sgd")
        steps = (0, 249_999, 250_000, 499_999, 500_000, 749_999, 750_000, 999_999)
        rates = (0.05, 0.05, 5e-3, 5e-3, 5e-4, 5e-4, 5e-5, 5e-5)
        assert [config.learning_rate(step) for step in steps] == pytest.approx(rates)

    @pytest.mark.parametrize("schedule", ["cosine", "constant"])
    def test_warmup(self, schedule):
        rates = self.rates(schedule=schedule, warmup=10)
        assert rates[:10] == pytest.approx([0.04 * (step + 1) for step in range(10)])
        assert rates[10] == 0.4 and max(rates) == 0.4

    def test_the_optimizer_gets_them(self, tiny, tmp_path):
        _, history = tiny.train(tmp_path, changed(steps=20, warmup=7, eval_every=5))
        config = changed(steps=20, warmup=7)
        rates = [config.learning_rate(step) for step in (4, 9, 14, 19)]
        assert history.lr.tolist() == pytest.approx(rates)


class TestErrors:
    def test_a_loss_that_is_not_finite(self, tiny, tmp_path):
        steps = []

        def loss(embeddings, labels):
            steps.append(1)
            return embeddings.sum() * (math.nan if len(steps) == 13 else 1.0)

        told = "the loss became nan within 10 steps, up to step 20"
        with pytest.raises(FloatingPointError, match=told):
            tiny.train(tmp_path, loss=loss)
        state = load_state(tmp_path / "last.pt", "v1")
        assert all(torch.isfinite(tensor).all() for tensor in state["trained"].values())
        assert state["history"][-1]["step"] == 10
        assert not (tmp_path / "training.json").exists()
