"""One training loop for every encoder and loss: CPU, one GPU or several, resumable at any moment.

The batch of a step, its learning rate and its random state are functions of (seed, step), so a run that was killed
and started again ends with the same weights on CPU as one that was left alone. ``last.safetensors`` holds weights
(of the encoder, and of a loss that learns) and optimizer in one file, replaced in one step; ``best.safetensors`` the
encoder's weights with the best dev score; ``history.csv`` the learning curve; ``training.json`` appears when training
is complete. Each keeps a checksum: what is damaged is not trained on, and not loaded.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pandas as pd
import torch
import torch.distributed as dist
from accelerate import Accelerator
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from helpers.core.artifacts import atomic_write, file_fingerprint, is_current, read_json, write_json
from helpers.core.config import Config
from helpers.core.progress import progress_bar
from helpers.tokens.batch import Batch
from helpers.training import checkpoints


class TrainingConfig(Config):
    """How to train.

    steps : optimizer steps; or epochs, as many batches as so many passes over the training posts have (authors are
    drawn alike, so posts of who wrote much are read less often). lr : highest learning rate.
    optimizer : "sgd" has momentum 0.9 (khan2021).
    schedule : "steps" divides by 10 after 1/4, 1/2 and 3/4 of the steps (the released 250k, 500k, 750k of 1M),
    "cosine" and "linear" fall to 0. warmup : steps of linear rise. clip : global norm of the gradient.
    eval_every : steps between dev scores and checkpoints. precision : mixed precision on CUDA, "no" on CPU.
    at_once : samples of a batch that the memory holds at once, see :class:`GradCache`; 0 for all.
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
    at_once: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _one_length(self):
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("needs either steps or epochs")
        return self

    def in_steps(self, posts: int, per_batch: int) -> "TrainingConfig":
        """The same with epochs as steps: batches that hold ``per_batch`` of the store's posts."""
        return self.model_copy(
            update={"steps": math.ceil(self.epochs * posts / per_batch), "epochs": None}
        )

    def learning_rate(self, step: int) -> float:
        """Of a step, counted from 0."""
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        done = (step - self.warmup) / max(self.steps - self.warmup, 1)
        if self.schedule == "cosine":
            return self.lr * (1 + math.cos(math.pi * done)) / 2
        if self.schedule == "linear":
            return self.lr * (1 - done)
        return self.lr * 0.1 ** int(4 * done) if self.schedule == "steps" else self.lr


class Trainer:
    """Trains an encoder in place, step by step, and keeps what it needs to go on.

    encoder : Batch -> (B, D). loss : (embeddings (B, D), labels (B,)) -> scalar; one whose ``needs_batch`` is true is
    given the batch as well, and one that is a module is trained too and must begin with the same weights on every
    process. config, seed : how. folder : where. fingerprint : what this training is made from.
    """

    def __init__(self, encoder: nn.Module, loss: Callable[..., Tensor], config: TrainingConfig, seed: int,
                 folder: Path, fingerprint: str):  # fmt: skip
        # several processes without a GPU must be told so, else each believes that it is alone
        self.accelerator = Accelerator(
            cpu=not torch.cuda.is_available(), mixed_precision=config.precision
        )
        self.encoder, self.loss, self.config, self.seed = (
            encoder.to(self.accelerator.device),
            loss,
            config,
            seed,
        )
        self.folder, self.fingerprint = Path(folder), fingerprint

    def train(
        self,
        draw: Callable[[int], Batch],
        score: Callable[[nn.Module], dict[str, float]],
        progress: bool = True,
        begin: Callable[[], None] | None = None,
    ) -> pd.DataFrame:
        """Train, and leave the encoder with its best weights; returns the history.

        Complete and current training is loaded, interrupted training continues.

        draw : step -> the batch of that step, the same on every process; with several processes each encodes its share
        and the loss sees all embeddings, with gradients.
        score : encoder -> dev metrics with "MRR", the larger the better. begin : called before the first step.
        Raises FloatingPointError where loss or weights are not finite; the last good checkpoint stays; ValueError where
        a complete training is damaged, or the encoder gives vectors that are not finite.
        """
        if is_current(self.folder / "training.json", self.fingerprint):
            is_completed(self.folder)
            return self._best()
        self.accelerator.wait_for_everyone()  # all have looked before one changes anything
        if self.accelerator.is_main_process:
            (self.folder / "training.json").unlink(
                missing_ok=True
            )  # of another training, whose files end here
        wrapped, optimizer, parts = self._prepare()
        step, history = checkpoints.resume_training(
            self.folder, self.fingerprint, parts, optimizer, self.accelerator.scaler
        )
        if step:
            print(f"continuing from step {step}")
        elif begin:
            begin()
        before, started, losses = (
            history[-1]["seconds"] if history else 0.0,
            time.perf_counter(),
            [],
        )
        alone = (
            progress and self.accelerator.is_main_process
        )  # of several processes one draws the bar
        bar = progress_bar(total=self.config.steps, initial=step, progress=alone, desc="training")
        wrapped.train()
        while step < self.config.steps:
            losses.append(self._step(wrapped, optimizer, draw(step), step))
            step += 1
            bar.update()
            if step % self.config.eval_every and step < self.config.steps:
                continue
            row = {"step": step, "loss": self._mean(losses, step), "lr": self.config.learning_rate(step - 1),
                   **score(self.encoder), "seconds": round(before + time.perf_counter() - started, 1)}  # fmt: skip
            wrapped.train()
            losses = []
            if self.accelerator.is_main_process:
                self._keep(row, history, parts, optimizer)
            bar.set_postfix(loss=f"{row['loss']:.3f}", dev_MRR=f"{row['MRR']:.3f}")
            self.accelerator.wait_for_everyone()
        bar.close()
        if self.accelerator.is_main_process:
            write_json(self.folder / "training.json", self._summary(history))
        self.accelerator.wait_for_everyone()
        self.accelerator.unwrap_model(
            wrapped, keep_fp32_wrapper=False
        )  # or it would go on in mixed precision
        return self._best()

    def _prepare(self):
        # not wrapped like the encoder: every process computes the whole loss, so its gradients are equal as they are
        learned = (
            self.loss.to(self.accelerator.device)
            if isinstance(self.loss, nn.Module)
            else nn.Module()
        )
        parameters, config = [*self.encoder.parameters(), *learned.parameters()], self.config
        kind, more = {"sgd": (torch.optim.SGD, {"momentum": 0.9}),
                      "adamw": (torch.optim.AdamW, {"fused": True})}[config.optimizer]  # fmt: skip
        optimizer = kind(parameters, config.lr, weight_decay=config.weight_decay, **more)
        encoder = GradCache(self.encoder, config.at_once) if config.at_once else self.encoder
        return *self.accelerator.prepare(encoder, optimizer), {
            "encoder": self.encoder,
            "loss": learned,
        }

    def _step(self, wrapped, optimizer, batch: Batch, step: int) -> Tensor:
        accelerator = self.accelerator
        torch.manual_seed(hash((self.seed, step, accelerator.process_index)))
        for group in optimizer.param_groups:
            group["lr"] = self.config.learning_rate(step)
        share = len(batch) // accelerator.num_processes
        batch = batch.to(accelerator.device)[
            : share * accelerator.num_processes
        ]  # rows beyond a whole share: left out
        begin = accelerator.process_index * share
        with accelerator.autocast():
            embeddings = wrapped(batch[begin : begin + share])
        rest = [batch] if getattr(self.loss, "needs_batch", False) else []
        value = self.loss(gather_with_gradient(embeddings), batch.authors, *rest)
        accelerator.backward(value)
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        accelerator.clip_grad_norm_(weights, self.config.clip)
        optimizer.step()
        optimizer.zero_grad()
        return value.detach()

    def _mean(self, losses: list[Tensor], step: int) -> float:
        values = torch.stack(losses)
        if len(wrong := (~values.isfinite()).nonzero()):
            at = step - len(losses) + int(wrong[0])
            raise FloatingPointError(f"the loss became {values[wrong[0]].item()} in step {at + 1} at learning rate "
                                     f"{self.config.learning_rate(at):g}: lower lr or raise warmup")  # fmt: skip
        return values.mean().item()

    def _keep(self, row: dict, history: list[dict], parts: dict, optimizer) -> None:
        """The best weights, the learning curve, and everything that a resumed training needs."""
        if row["MRR"] > max((old["MRR"] for old in history), default=-math.inf):
            weights = checkpoints.model_weights(encoder=self.encoder)
            checkpoints.save_checkpoint(
                self.folder / "best.safetensors", weights, {"step": row["step"]}
            )
        history.append(row)
        with atomic_write(self.folder / "history.csv") as partial:
            pd.DataFrame(history).to_csv(partial, index=False)
        tensors = {**checkpoints.model_weights(**parts), **checkpoints.optimizer_state(optimizer)}
        state = {
            "fingerprint": self.fingerprint,
            "history": checkpoints.history_fingerprint(history),
            "scaler": self.accelerator.scaler and self.accelerator.scaler.state_dict(),
            "step": row["step"],
        }
        checkpoints.save_checkpoint(self.folder / "last.safetensors", tensors, state)

    def _summary(self, history: list[dict]) -> dict:
        best = max(history, key=lambda row: row["MRR"])
        return {
            "fingerprint": self.fingerprint,
            **self.config.model_dump(),
            "seed": self.seed,
            "best_step": best["step"],
            "best_dev_MRR": best["MRR"],
            "seconds": history[-1]["seconds"],
            "device": device_name(self.accelerator.device),
            "sha256": {
                name: file_fingerprint(self.folder / name)
                for name in ("best.safetensors", "history.csv")
            },
        }

    def _best(self) -> pd.DataFrame:
        checkpoints.load_weights(self.encoder, self.folder / "best.safetensors")
        return pd.read_csv(self.folder / "history.csv")


class GradCache(nn.Module):
    """An encoder that reads a batch in parts of ``samples``, for a loss over more samples than the memory holds.

    Activations of a part are made again when its gradient is wanted, by the same random numbers: embeddings and
    gradients of the whole batch for a second forward pass, as by a gradient cache (Gao et al., RepL4NLP 2021).
    """

    def __init__(self, encoder: nn.Module, samples: int):
        super().__init__()
        self.encoder, self.samples = encoder, samples

    def forward(self, batch: Batch) -> Tensor:
        """Batch of B samples -> (B, D)."""
        parts = (batch[at : at + self.samples] for at in range(0, len(batch), self.samples))
        return torch.cat([checkpoint(self.encoder, part, use_reentrant=False) for part in parts])


def gather_with_gradient(embeddings: Tensor) -> Tensor:
    """(b, D) of this process -> (b * processes, D) of all; the gradient comes back to each. Alone: unchanged.

    Every process computes the same loss, so the gradients that come back add up; DDP's mean then leaves them once.
    """
    if not (dist.is_available() and dist.is_initialized()):
        return embeddings
    from torch.distributed.nn.functional import all_gather

    return torch.cat(all_gather(embeddings.contiguous()))


def device_name(device: torch.device | None = None) -> str:
    """What to print beside a number: the GPU's name, or "cpu" with the threads used; by default of what trains here."""
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return (
        torch.cuda.get_device_name(device)
        if device.type == "cuda"
        else f"cpu, {torch.get_num_threads()} threads"
    )


def is_completed(folder: str | Path) -> dict:
    """``training.json`` of a complete training. Raises ValueError where there is none, or its files are damaged."""
    folder = Path(folder)
    summary = read_json(folder / "training.json")
    for name, fingerprint in summary.get("sha256", {"best.safetensors": ""}).items():
        if not (folder / name).exists() or file_fingerprint(folder / name) != fingerprint:
            raise ValueError(
                f"{folder / name} is missing or damaged: delete {folder} and train again"
            )
    return summary
