"""One training loop for every encoder and loss: CPU, one GPU or several, resumable at any moment.

The batch of a step, its learning rate and its random state are functions of (seed, step), so on CPU
a run that was killed and started again ends with the same weights as one that was not.

The folder of a training has ``last.safetensors``, the latest weights (of the encoder, and of a loss
with parameters) and the state of the optimizer; ``best.safetensors``, the encoder's weights with
the best dev score; ``history.csv``, the learning curve; and, once training is complete,
``training.json``. All have checksums, and a damaged file is neither loaded nor trained on.
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

from ..core.artifacts import atomic_write, file_fingerprint, is_current, write_json
from ..core.parameters import Config
from ..core.progress import progress_bar
from ..tokens.batch import Batch
from . import checkpoints
from .distributed import device_name, gather_with_gradient
from .grad_cache import GradCache


class TrainingConfig(Config):
    """How an encoder is trained.

    Attributes
    ----------
    steps : number of optimizer steps; either steps or epochs must be given
    epochs : number of passes over the training posts, which becomes a number of steps. A pass is as
        many batches as hold that many posts; authors are sampled equally often, so a post is read
        less often if its author wrote many
    lr : highest learning rate
    optimizer : "adamw", or "sgd" with momentum 0.9 (khan2021)
    schedule : how the learning rate changes after warmup. "steps" divides it by 10 after 1/4, 1/2
        and 3/4 of the remaining steps (in the released code 250k, 500k and 750k of 1M); "cosine"
        and "linear" let it fall to 0
    warmup : number of steps at the start in which the learning rate rises linearly
    weight_decay : weight decay of the optimizer
    clip : norm of all gradients together, above which they are scaled down
    eval_every : number of steps between evaluations on dev, each with a checkpoint; the last step
        is always evaluated
    precision : "bf16" or "fp16" for mixed precision on CUDA; "no" for float32, also on CPU
    micro_batch_size : number of samples of a batch that are encoded at once, to save memory; 0
        encodes all at once. See :class:`helpers.training.grad_cache.GradCache`
    """

    steps: int | None = Field(None, ge=1, le=10**9)
    epochs: float | None = Field(None, gt=0, le=10**6)
    lr: float = Field(gt=0, le=100)
    optimizer: Literal["adamw", "sgd"] = "adamw"
    schedule: Literal["cosine", "linear", "steps", "constant"] = "cosine"
    warmup: int = Field(0, ge=0, le=10**9)
    weight_decay: float = Field(0.01, ge=0, le=100)
    clip: float = Field(1.0, gt=0, le=1e9)
    eval_every: int = Field(100, ge=1, le=10**9)
    precision: Literal["no", "bf16", "fp16"] = "no"
    micro_batch_size: int = Field(0, ge=0, le=2**26)

    @model_validator(mode="after")
    def _has_one_length(self):
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("needs either steps or epochs")
        return self

    def in_steps(self, posts: int, per_batch: int) -> "TrainingConfig":
        """Return the same settings with ``epochs`` replaced by the equal number of ``steps``.

        Parameters
        ----------
        posts : number of posts in the training store
        per_batch : number of posts in a batch
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
    """Train an encoder in place, step by step, and save what is needed to resume.

    Parameters
    ----------
    encoder : module from a batch of B samples to their embeddings (B, D)
    loss : function from embeddings (B, D) and labels (B,) to a scalar. A loss whose ``needs_batch``
        is true gets the batch as a third argument. A loss that is a module is trained too, and must
        begin with the same weights on every process
    config : the settings of the training, with ``steps``
    seed : seed of the random state of every step, used together with the number of the step
    folder : the folder of checkpoints and learning curve
    fingerprint : hash of everything that this training is made from; files in the folder with
        another one are overwritten
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
        # without cpu=True, several processes without a GPU would not find each other
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
        """Train, and leave the encoder with the weights that scored best on dev.

        A complete training with the same fingerprint is loaded, and an interrupted one continues.

        Parameters
        ----------
        draw : function from a step, counted from 0, to its batch, the same on every process. Each
            of several processes encodes its share, and the loss gets all embeddings, with
            gradients; samples beyond equal shares are left out
        score : function from the encoder to dev metrics, a dict with "MRR", of which the highest is
            best
        begin : called before step 0, and not when an interrupted training continues

        Returns
        -------
        the learning curve, one row per evaluation

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
        # every process must have looked for training.json before the main process removes it
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            # it is of another training, whose files are now overwritten
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
        # without this the encoder would still compute in mixed precision
        self.accelerator.unwrap_model(self._wrapped, keep_fp32_wrapper=False)
        return self._load_best()

    def _prepare(self):
        """Make the optimizer, and wrap the encoder for the processes and the precision."""
        # A loss with parameters needs no wrapper that averages over processes: every process
        # computes the whole loss, so its gradients are equal on all of them.
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
        """Train from ``step`` to the last step; add a row to ``history`` at every evaluation."""
        seconds_before = history[-1]["seconds"] if history else 0.0
        started = time.perf_counter()
        bar = progress_bar(
            total=self.config.steps,
            initial=step,
            progress=self.accelerator.is_main_process,  # only one of several processes shows a bar
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
            self._wrapped.train()  # as score() has put the encoder into eval mode
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
        rows = share * accelerator.num_processes  # samples beyond equal shares are left out
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
        """Return the mean of ``losses``, those of the last steps before ``step``.

        FloatingPointError names the first step, counted from 1, whose loss is not finite.
        """
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
        """Save the encoder if ``row`` has the best score, then the learning curve and a checkpoint.

        ``row`` is appended to ``history``.
        """
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
        """Return the content of ``training.json``, with checksums of best weights and curve."""
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
        # loads the best weights into the encoder, and returns the learning curve
        checkpoints.load_weights(self.encoder, self.folder / "best.safetensors")
        return pd.read_csv(self.folder / "history.csv")
