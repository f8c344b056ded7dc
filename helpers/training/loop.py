"""One training loop for every encoder and loss: CPU, one GPU or several, resumable at any moment.

The batch of a step, its learning rate and its random state are functions of (seed, step), so a run
that was killed and started again ends with the same weights on CPU as one that was left alone.
``last.safetensors`` holds weights (of the encoder, and of a loss that learns) and optimizer in one
file, replaced in one step; ``best.safetensors`` the encoder's weights with the best dev score;
``history.csv`` the learning curve; ``training.json`` appears when training is complete. Each keeps
a checksum: what is damaged is not trained on, and not loaded.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pandas as pd
import torch
from accelerate import Accelerator
from pydantic import Field, model_validator
from torch import Tensor, nn

from helpers.core.artifacts import atomic_write, file_fingerprint, is_current, write_json
from helpers.core.config import Config
from helpers.core.progress import progress_bar
from helpers.tokens.batch import Batch
from helpers.training import checkpoints
from helpers.training.distributed import device_name, gather_with_gradient
from helpers.training.grad_cache import GradCache


class TrainingConfig(Config):
    """How an encoder is trained.

    Attributes
    ----------
    steps : optimizer steps
    epochs : in place of steps, as many batches as so many passes over the training posts have
        (authors are drawn alike, so posts of who wrote much are read less often)
    lr : highest learning rate
    optimizer : "adamw", or "sgd" with momentum 0.9 (khan2021)
    schedule : of the learning rate. "steps" divides by 10 after 1/4, 1/2 and 3/4 of the steps (the
        released 250k, 500k, 750k of 1M), "cosine" and "linear" fall to 0
    warmup : steps of linear rise
    weight_decay : of the optimizer
    clip : global norm of the gradient
    eval_every : steps between dev scores and checkpoints
    precision : mixed precision on CUDA, "no" on CPU
    micro_batch_size : samples of a batch that the memory holds at once, 0 for all; see
        :class:`helpers.training.grad_cache.GradCache`
    """

    steps: int | None = Field(None, ge=1)
    epochs: float | None = Field(None, gt=0)
    lr: float = Field(gt=0)
    optimizer: Literal["adamw", "sgd"] = "adamw"
    schedule: Literal["cosine", "linear", "steps", "constant"] = "cosine"
    warmup: int = Field(0, ge=0)
    weight_decay: float = Field(0.01, ge=0)
    clip: float = Field(1.0, gt=0)
    eval_every: int = Field(100, ge=1)
    precision: Literal["no", "bf16", "fp16"] = "no"
    micro_batch_size: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _has_one_length(self):
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("needs either steps or epochs")
        return self

    def in_steps(self, posts: int, per_batch: int) -> "TrainingConfig":
        """Return the same settings with epochs as steps.

        Parameters
        ----------
        posts : of the training store
        per_batch : posts of a batch
        """
        steps = math.ceil(self.epochs * posts / per_batch)
        return self.model_copy(update={"steps": steps, "epochs": None})

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        progress = (step - self.warmup) / max(self.steps - self.warmup, 1)
        if self.schedule == "cosine":
            return self.lr * (1 + math.cos(math.pi * progress)) / 2
        if self.schedule == "linear":
            return self.lr * (1 - progress)
        if self.schedule == "steps":
            return self.lr * 0.1 ** int(4 * progress)
        return self.lr


class Trainer:
    """Train an encoder in place, step by step, and keep what is needed to go on.

    Parameters
    ----------
    encoder : Batch -> (B, D)
    loss : (embeddings (B, D), labels (B,)) -> scalar; one whose ``needs_batch`` is true is given
        the batch as well, and one that is a module is trained too and must begin with the same
        weights on every process
    config : how to train
    seed : of the random state of every step
    folder : where checkpoints are kept
    fingerprint : what this training is made from
    """

    def __init__(
        self,
        encoder: nn.Module,
        loss: Callable[..., Tensor],
        config: TrainingConfig,
        seed: int,
        folder: Path,
        fingerprint: str,
    ):
        # several processes without a GPU must be told so, else each believes that it is alone
        self.accelerator = Accelerator(
            cpu=not torch.cuda.is_available(), mixed_precision=config.precision
        )
        self.encoder = encoder.to(self.accelerator.device)
        self.loss = loss
        self.config = config
        self.seed = seed
        self.folder = Path(folder)
        self.fingerprint = fingerprint

    def train(
        self,
        draw: Callable[[int], Batch],
        score: Callable[[nn.Module], dict[str, float]],
        begin: Callable[[], None] | None = None,
    ) -> pd.DataFrame:
        """Train, and leave the encoder with its best weights.

        Complete and current training is loaded, interrupted training continues.

        Parameters
        ----------
        draw : step -> the batch of that step, the same on every process; with several processes
            each encodes its share and the loss sees all embeddings, with gradients
        score : encoder -> dev metrics with "MRR", the larger the better
        begin : called before the first step

        Returns
        -------
        the learning curve, a row an evaluation

        Raises
        ------
        FloatingPointError
            loss or weights are not finite; the last good checkpoint stays
        ValueError
            a complete training is damaged, or the encoder gives vectors that are not finite
        """
        if is_current(self.folder / "training.json", self.fingerprint):
            checkpoints.read_summary(self.folder)
            return self._load_best()
        self.accelerator.wait_for_everyone()  # all have looked before one changes anything
        if self.accelerator.is_main_process:
            # of another training, whose files end here
            (self.folder / "training.json").unlink(missing_ok=True)

        self._prepare()
        step, history = checkpoints.resume_training(
            self.folder, self.fingerprint, self._trained, self._optimizer, self.accelerator.scaler
        )
        if step:
            print(f"continuing from step {step}")
        elif begin:
            begin()
        self._take_steps(draw, score, step, history)

        if self.accelerator.is_main_process:
            write_json(self.folder / "training.json", self._summary(history))
        self.accelerator.wait_for_everyone()
        # or the encoder would go on in mixed precision
        self.accelerator.unwrap_model(self._wrapped, keep_fp32_wrapper=False)
        return self._load_best()

    def _prepare(self):
        """Make the optimizer, and wrap the encoder for the processes and the precision."""
        # a loss is not wrapped: every process computes the whole loss, so its gradients are equal
        learned_loss = nn.Module()
        if isinstance(self.loss, nn.Module):
            learned_loss = self.loss.to(self.accelerator.device)
        self._trained = nn.ModuleDict({"encoder": self.encoder, "loss": learned_loss})

        config = self.config
        parameters = self._trained.parameters()
        settings = {"lr": config.lr, "weight_decay": config.weight_decay}
        if config.optimizer == "sgd":
            optimizer = torch.optim.SGD(parameters, momentum=0.9, **settings)
        else:
            optimizer = torch.optim.AdamW(parameters, fused=True, **settings)

        encoder = self.encoder
        if config.micro_batch_size:
            encoder = GradCache(encoder, config.micro_batch_size)
        self._wrapped, self._optimizer = self.accelerator.prepare(encoder, optimizer)

    def _take_steps(self, draw, score, step, history):
        """Train from a step to the last, and add a row to the history at every evaluation."""
        seconds_before = history[-1]["seconds"] if history else 0.0
        started = time.perf_counter()
        bar = progress_bar(
            total=self.config.steps,
            initial=step,
            progress=self.accelerator.is_main_process,  # of several processes one draws the bar
            desc="training",
        )
        losses = []
        self._wrapped.train()
        while step < self.config.steps:
            losses.append(self._step(draw(step), step))
            step += 1
            bar.update()
            if step % self.config.eval_every and step < self.config.steps:
                continue

            row = {
                "step": step,
                "loss": self._mean(losses, step),
                "lr": self.config.learning_rate(step - 1),
                **score(self.encoder),
                "seconds": round(seconds_before + time.perf_counter() - started, 1),
            }
            losses = []
            self._wrapped.train()  # dev scores are made in eval mode
            if self.accelerator.is_main_process:
                self._save(row, history)
            bar.set_postfix(loss=f"{row['loss']:.3f}", dev_MRR=f"{row['MRR']:.3f}")
            self.accelerator.wait_for_everyone()
        bar.close()

    def _step(self, batch, step):
        """Take one step; return the loss of the whole batch."""
        accelerator = self.accelerator
        torch.manual_seed(hash((self.seed, step, accelerator.process_index)))
        (group,) = self._optimizer.param_groups
        group["lr"] = self.config.learning_rate(step)

        share = len(batch) // accelerator.num_processes
        rows = share * accelerator.num_processes  # those beyond a whole share are left out
        batch = batch.to(accelerator.device)[:rows]
        first = accelerator.process_index * share
        with accelerator.autocast():
            embeddings = self._wrapped(batch[first : first + share])
        embeddings = gather_with_gradient(embeddings)
        if getattr(self.loss, "needs_batch", False):
            loss = self.loss(embeddings, batch.authors, batch)
        else:
            loss = self.loss(embeddings, batch.authors)

        accelerator.backward(loss)
        accelerator.clip_grad_norm_(group["params"], self.config.clip)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return loss.detach()

    def _mean(self, losses, step):
        """Return the mean of the losses of the steps before this one, all of them finite."""
        values = torch.stack(losses)
        not_finite = (~values.isfinite()).nonzero()
        if len(not_finite):
            place = int(not_finite[0])
            wrong_step = step - len(losses) + place
            raise FloatingPointError(
                f"the loss became {values[place].item()} in step {wrong_step + 1} at learning rate "
                f"{self.config.learning_rate(wrong_step):g}: lower lr or raise warmup"
            )
        return values.mean().item()

    def _save(self, row, history):
        """Keep the best weights, the learning curve, and what a resumed training needs."""
        best_before = max((past["MRR"] for past in history), default=-math.inf)
        if row["MRR"] > best_before:
            weights = self.encoder.state_dict(prefix="encoder.")
            state = {"step": row["step"]}
            checkpoints.save_checkpoint(self.folder / "best.safetensors", weights, state)

        history.append(row)
        with atomic_write(self.folder / "history.csv") as partial:
            pd.DataFrame(history).to_csv(partial, index=False)

        tensors = checkpoints.optimizer_tensors(self._optimizer)
        tensors.update(self._trained.state_dict())
        scaler = self.accelerator.scaler
        state = {
            "fingerprint": self.fingerprint,
            "history": checkpoints.history_fingerprint(history),
            "scaler": scaler and scaler.state_dict(),
            "step": row["step"],
        }
        checkpoints.save_checkpoint(self.folder / "last.safetensors", tensors, state)

    def _summary(self, history):
        """Describe a complete training, with checksums of the files that are left of it."""
        best = max(history, key=lambda row: row["MRR"])
        files = ("best.safetensors", "history.csv")
        return {
            "fingerprint": self.fingerprint,
            **self.config.model_dump(),
            "seed": self.seed,
            "best_step": best["step"],
            "best_dev_MRR": best["MRR"],
            "seconds": history[-1]["seconds"],
            "device": device_name(self.accelerator.device),
            "sha256": {name: file_fingerprint(self.folder / name) for name in files},
        }

    def _load_best(self):
        checkpoints.load_weights(self.encoder, self.folder / "best.safetensors")
        return pd.read_csv(self.folder / "history.csv")
