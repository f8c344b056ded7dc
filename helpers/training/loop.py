"""One training loop for every encoder and loss: CPU, one GPU or several, resumable at any moment.

The batch of a step, its learning rate and its random state are functions of (seed, step), so a run that was killed
and started again ends with the same weights on CPU as one that was left alone. ``last.safetensors`` holds weights
(of the encoder, and of a loss that learns) and optimizer in one file, replaced in one step; ``best.safetensors`` the
encoder's weights with the best dev score;
``history.csv`` the learning curve; ``training.json`` appears when training is complete.
"""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd
import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch import Tensor, nn

from helpers.training import checkpoints
from helpers.runs.artifacts import is_current, read_json, write_json
from helpers.runs.progress import progress_bar
from helpers.tokens.batch import Batch

OPTIMIZERS = ("adamw", "sgd")
SCHEDULES = ("cosine", "linear", "steps", "constant")
PRECISIONS = ("no", "bf16", "fp16")


@dataclass(frozen=True)
class Recipe:
    """How to train.

    steps: optimizer steps. lr: highest learning rate. optimizer: "sgd" has momentum 0.9 (khan2021), "adamw".
    schedule: "steps" divides by 10 after 1/4, 1/2 and 3/4 of the steps (the released 250k, 500k, 750k of 1M),
    "cosine" and "linear" fall to 0, "constant". warmup: steps of linear rise. clip: global gradient norm.
    eval_every: steps between dev scores and checkpoints. precision: mixed precision on CUDA, "no" on CPU.
    """

    steps: int
    lr: float
    optimizer: str = "adamw"
    schedule: str = "cosine"
    warmup: int = 0
    weight_decay: float = 0.01
    clip: float = 1.0
    eval_every: int = 100
    precision: str = "no"
    seed: int = 0

    def __post_init__(self):
        for name, valid in (("optimizer", OPTIMIZERS), ("schedule", SCHEDULES), ("precision", PRECISIONS)):
            if getattr(self, name) not in valid:
                raise ValueError(f"{name} {getattr(self, name)!r}: one of {', '.join(valid)}")
        if self.steps < 1 or self.eval_every < 1:
            raise ValueError("steps and eval_every must be at least 1")

    def rate(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        done = (step - self.warmup) / max(self.steps - self.warmup, 1)
        if self.schedule == "cosine":
            return self.lr * (1 + math.cos(math.pi * done)) / 2
        if self.schedule == "linear":
            return self.lr * (1 - done)
        return self.lr * 0.1 ** int(4 * done) if self.schedule == "steps" else self.lr


def train(
    encoder: nn.Module,
    draw: Callable[[int], Batch],
    loss: Callable[..., Tensor],
    score: Callable[[nn.Module], dict[str, float]],
    folder: str | Path,
    recipe: Recipe,
    fingerprint: str,
    progress: bool = True,
    log: Callable[[str], None] = print,
) -> pd.DataFrame:
    """Train an encoder in place and leave it with its best weights; returns the history.

    draw: step -> the batch of that step, the same on every process; with several processes each encodes its share
    and the loss sees all embeddings, with gradients. loss: (embeddings (B, D), labels (B,)) -> scalar; one whose
    ``needs_batch`` is true is given the batch of these rows as well. One that is a module is trained too, and must
    begin with the same weights on every process.
    score: encoder -> dev metrics with "MRR", the larger the better.
    Complete and current training is loaded, interrupted training continues.
    Raises FloatingPointError where the loss is not finite.
    """
    folder = Path(folder)
    # several processes without a GPU must be told so, else each believes that it is alone
    accelerator = Accelerator(cpu=not torch.cuda.is_available(), mixed_precision=recipe.precision)
    encoder.to(accelerator.device)
    if is_current(folder / "training.json", fingerprint):
        checkpoints.load_weights(encoder, folder / "best.safetensors")
        return pd.read_csv(folder / "history.csv")
    accelerator.wait_for_everyone()  # all have looked before one changes anything
    if accelerator.is_main_process:
        (folder / "training.json").unlink(missing_ok=True)  # of another training, whose files end here
    # not wrapped like the encoder: every process computes the whole loss, so its gradients are equal as they are
    learned = loss.to(accelerator.device) if isinstance(loss, nn.Module) else nn.Module()
    parts = {"encoder": encoder, "loss": learned}
    trained = [*encoder.parameters(), *learned.parameters()]
    wrapped, optimizer = accelerator.prepare(encoder, _optimizer(trained, recipe))
    step, history = checkpoints.resume(folder, fingerprint, parts, optimizer, accelerator.scaler)
    if step:
        log(f"continuing from step {step}")
    before, started, losses = history[-1]["seconds"] if history else 0.0, time.perf_counter(), []
    shown = progress_bar(total=recipe.steps, initial=step, progress=progress, desc="training")
    wrapped.train()
    while step < recipe.steps:
        torch.manual_seed(hash((recipe.seed, step, accelerator.process_index)))
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate(step)
        losses.append(_step(accelerator, wrapped, optimizer, draw(step).to(accelerator.device), loss, recipe.clip))
        step += 1
        shown.update()
        if step % recipe.eval_every and step < recipe.steps:
            continue
        mean_loss = torch.stack(losses).mean().item()
        losses = []
        if not math.isfinite(mean_loss):
            raise FloatingPointError(f"the loss became {mean_loss} before step {step}: lower lr or raise warmup")
        seconds = round(before + time.perf_counter() - started, 1)
        row = {"step": step, "loss": mean_loss, "lr": recipe.rate(step - 1), **score(encoder), "seconds": seconds}
        if accelerator.is_main_process:
            if row["MRR"] > max((old["MRR"] for old in history), default=-math.inf):
                checkpoints.save(folder / "best.safetensors", checkpoints.weights(encoder=encoder), {"step": step})
            history.append(row)
            checkpoints.save_history(folder, history)
            scaler = accelerator.scaler and accelerator.scaler.state_dict()
            state = {"fingerprint": fingerprint, "step": step, "scaler": scaler}
            tensors = {**checkpoints.weights(**parts), **checkpoints.optimizer_state(optimizer)}
            checkpoints.save(folder / "last.safetensors", tensors, state)
        shown.set_postfix(loss=f"{mean_loss:.3f}", dev_MRR=f"{row['MRR']:.3f}")
        accelerator.wait_for_everyone()
    shown.close()
    if accelerator.is_main_process:
        write_json(folder / "training.json", _summary(fingerprint, recipe, history, accelerator.device))
    accelerator.wait_for_everyone()
    accelerator.unwrap_model(wrapped, keep_fp32_wrapper=False)  # or this encoder would go on in mixed precision
    checkpoints.load_weights(encoder, folder / "best.safetensors")
    return pd.read_csv(folder / "history.csv")


def _step(accelerator, encoder, optimizer, batch, loss, clip) -> Tensor:
    share = len(batch) // accelerator.num_processes
    batch = batch[: share * accelerator.num_processes]  # rows beyond a whole share are left out
    begin = accelerator.process_index * share
    with accelerator.autocast():
        embeddings = encoder(batch[begin : begin + share])
    known = [batch] if getattr(loss, "needs_batch", False) else []
    value = loss(gather_with_gradient(embeddings), batch.authors, *known)
    accelerator.backward(value)
    accelerator.clip_grad_norm_([weight for group in optimizer.param_groups for weight in group["params"]], clip)
    optimizer.step()
    optimizer.zero_grad()
    return value.detach()


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, mine):
        ctx.rows = len(mine)
        everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(everyone, mine.contiguous())
        return torch.cat(everyone)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        dist.all_reduce(grad)  # every process computes the same loss; DDP's mean then leaves its gradient once
        return grad[dist.get_rank() * ctx.rows :][: ctx.rows]


def gather_with_gradient(mine: Tensor) -> Tensor:
    """(b, D) of this process -> (b * processes, D) of all; the gradient comes back to each. Alone: unchanged."""
    return _Gather.apply(mine) if dist.is_available() and dist.is_initialized() else mine


def _optimizer(parameters, recipe):
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(parameters, recipe.lr, momentum=0.9, weight_decay=recipe.weight_decay)
    return torch.optim.AdamW(parameters, recipe.lr, weight_decay=recipe.weight_decay, fused=True)


def _summary(fingerprint, recipe, history, device) -> dict:
    best = max(history, key=lambda row: row["MRR"])
    return {
        "fingerprint": fingerprint, **asdict(recipe), "best_step": best["step"], "best_dev_MRR": best["MRR"],
        "seconds": history[-1]["seconds"], "device": device_name(device),
    }  # fmt: skip


def device_name(device: torch.device) -> str:
    """What to print beside a number: the GPU's name, or "cpu" with the threads used."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"cpu, {torch.get_num_threads()} threads"


def completed(folder: str | Path) -> dict:
    """``training.json`` of a complete training. Raises ValueError where there is none."""
    return read_json(Path(folder) / "training.json")
