"""One training loop for every encoder and loss: CPU, one GPU or several, resumable at any moment.

The batch of a step, its learning rate and its random state are functions of (seed, step), so on CPU
a run that was killed and started again ends with the same weights as one that was not.

The folder of a training has ``last.pt``, all that is needed to go on, until it is complete. It then
has ``best.safetensors``, the encoder's weights with the best dev score, and ``training.json``, with
the learning curve. All have checksums, and a damaged file is neither loaded nor trained on.
"""

import copy
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal
from zipfile import ZipFile

import torch
import torch.distributed as dist
from accelerate import Accelerator
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..core.artifacts import atomic_write, write_json
from ..core.messages import file_error, readable_file
from ..core.parameters import Config
from ..core.progress import progress_bar
from ..encoders.base import save_checkpoint
from ..tokens.batch import Batch

STATE = "last.pt"  # all that an interrupted training needs to go on
BEST = "best.safetensors"  # the encoder of a complete training
SUMMARY = "training.json"  # its settings, results and learning curve, written last

Steps = Annotated[int, Field(ge=0, le=10**9)]


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
    precision : "bf16" for mixed precision, on a GPU or a CPU; "no" for float32
    micro_batch_size : number of samples of a batch that are encoded at once, to save memory; 0
        encodes all at once. See :class:`GradCache`
    """

    steps: int | None = Field(None, ge=1, le=10**9)
    epochs: float | None = Field(None, gt=0, le=10**6)
    lr: float = Field(gt=0, le=100)
    optimizer: Literal["adamw", "sgd"] = "adamw"
    schedule: Literal["cosine", "linear", "steps", "constant"] = "cosine"
    warmup: Steps = 0
    weight_decay: float = Field(0.01, ge=0, le=100)
    clip: float = Field(1.0, gt=0, le=1e9)
    eval_every: int = Field(100, ge=1, le=10**9)
    precision: Literal["no", "bf16"] = "no"
    micro_batch_size: Steps = 0

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


class GradCache(nn.Module):
    """Encode a batch in parts, for a loss over more samples than the memory holds.

    The activations of a part are not kept; they are computed again, with the same random numbers,
    when its gradient is needed. At the cost of a second forward pass this gives the embeddings and
    the gradients of the whole batch.

    Parameters
    ----------
    encoder : module from a batch of B samples to their embeddings (B, D)
    micro_batch_size : number of samples in a part; the last part may have fewer

    References
    ----------
    Gao et al., Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup, RepL4NLP
    2021.
    """

    def __init__(self, encoder: nn.Module, micro_batch_size: int):
        super().__init__()
        self.encoder = encoder
        self.micro_batch_size = micro_batch_size

    def forward(self, batch: Batch) -> Tensor:
        """Return the embeddings (B, D) of a batch of B samples."""
        embeddings = []
        for begin in range(0, len(batch), self.micro_batch_size):
            part = batch[begin : begin + self.micro_batch_size]
            embeddings.append(checkpoint(self.encoder, part, use_reentrant=False))
        return torch.cat(embeddings)


def load_state(path: Path, fingerprint: str) -> dict[str, Any]:
    """Return the state of an interrupted training, or that of one that has not begun.

    Parameters
    ----------
    path : the file, which need not exist
    fingerprint : hash of everything that the training is made from; the state of a training with
        another one is not returned

    Returns
    -------
    ``fingerprint``; ``history``, the learning curve, a dict for each evaluation; of one that has
    begun also ``best``, the encoder's weights where the curve's MRR was highest, and ``trained``
    and ``optimizer``, what ``load_state_dict`` takes

    Raises
    ------
    ValueError
        the file is damaged
    """
    new = {"fingerprint": fingerprint, "history": []}
    if not path.exists():
        return new
    with readable_file(path):
        if ZipFile(path).testzip():  # torch does not look at the checksums
            raise file_error(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    return state if state["fingerprint"] == fingerprint else new


def train(
    encoder: nn.Module,
    loss: Callable[..., Tensor],
    config: TrainingConfig,
    seed: int,
    folder: Path,
    fingerprint: str,
    draw: Callable[[int], Batch],
    score: Callable[[nn.Module], dict[str, float]],
) -> None:
    """Train an encoder in place, or continue an interrupted training, and save its best weights.

    Parameters
    ----------
    encoder : module from a batch of B samples to their embeddings (B, D)
    loss : function from embeddings (B, D) and labels (B,) to a scalar. A loss whose ``needs_batch``
        is true gets the batch as a third argument. A loss that is a module is trained too, and must
        begin with the same weights on every process
    config : the settings of the training, with ``steps``
    seed : seed of the random state of every step, used together with the number of the step
    folder : the folder of the training
    fingerprint : hash of everything that this training is made from; the state of a training with
        another one is overwritten
    draw : function from a step, counted from 0, to its batch, the same on every process. Each of
        several processes encodes its share, and the loss gets all embeddings, with gradients;
        samples beyond equal shares are left out
    score : function from the encoder to dev metrics, a dict with "MRR", of which the highest is
        best

    Raises
    ------
    FloatingPointError
        loss or weights are not finite; the last good state stays
    ValueError
        the encoder gives vectors that are not finite
    """
    accelerator, trained, reader, optimizer = _prepared(encoder, loss, config)
    path = Path(folder) / STATE
    state = load_state(path, fingerprint)
    last = {"step": 0, "seconds": 0.0}
    if state["history"]:
        last = state["history"][-1]
        trained.load_state_dict(state["trained"])
        optimizer.load_state_dict(state["optimizer"])
        print(f"continuing from step {last['step']}")
    started = time.perf_counter() - last["seconds"]
    bar = progress_bar(
        range(last["step"], config.steps),
        total=config.steps,
        initial=last["step"],
        progress=accelerator.is_main_process,  # only one of several processes shows a bar
        desc="training",
    )
    losses = []
    for step in bar:
        reader.train()  # as score() puts the encoder into eval mode
        torch.manual_seed(hash((seed, step, accelerator.process_index)))
        lr = config.learning_rate(step)
        optimizer.param_groups[0]["lr"] = lr
        losses.append(_take_step(accelerator, reader, loss, optimizer, draw(step), config.clip))
        if (step + 1) % config.eval_every and step + 1 < config.steps:
            continue
        row = {"step": step + 1, "loss": _mean(losses, step, lr), "lr": lr, **score(encoder)}
        losses = []
        state["history"].append(row | {"seconds": round(time.perf_counter() - started, 1)})
        if _best_row(state)["step"] == step + 1:
            state["best"] = copy.deepcopy(encoder.state_dict())
        state |= {"trained": trained.state_dict(), "optimizer": optimizer.state_dict()}
        if accelerator.is_main_process:
            with atomic_write(path) as partial:
                torch.save(state, partial)
        bar.set_postfix(loss=f"{row['loss']:.3f}", dev_MRR=f"{row['MRR']:.3f}")
        accelerator.wait_for_everyone()
    # without this the encoder would still compute in mixed precision
    accelerator.unwrap_model(reader, keep_fp32_wrapper=False)
    if accelerator.is_main_process:
        device = device_name(accelerator.device)
        _complete(path, state, {**config.model_dump(), "seed": seed, "device": device})
    accelerator.wait_for_everyone()


def _prepared(encoder, loss, config):
    """Return accelerator, what is trained, what reads batches, and the optimizer, on the device."""
    # without cpu=True, several processes without a GPU would not find each other
    accelerator = Accelerator(cpu=not torch.cuda.is_available(), mixed_precision=config.precision)
    # A loss with parameters needs no wrapper that averages over processes: every process computes
    # the whole loss, so its gradients are equal on all of them.
    learned_loss = loss if isinstance(loss, nn.Module) else nn.Module()
    trained = nn.ModuleDict({"encoder": encoder, "loss": learned_loss}).to(accelerator.device)
    if config.micro_batch_size:
        encoder = GradCache(encoder, config.micro_batch_size)
    settings = {"lr": config.lr, "weight_decay": config.weight_decay}
    if config.optimizer == "sgd":
        optimizer = torch.optim.SGD(trained.parameters(), momentum=0.9, **settings)
    else:
        optimizer = torch.optim.AdamW(trained.parameters(), fused=True, **settings)
    reader, optimizer = accelerator.prepare(encoder, optimizer)
    return accelerator, trained, reader, optimizer


def _take_step(accelerator, reader, loss, optimizer, batch, clip):
    """Take one step; return the loss of the whole batch."""
    share = len(batch) // accelerator.num_processes
    rows = share * accelerator.num_processes  # samples beyond equal shares are left out
    batch = batch.to(accelerator.device)[:rows]
    first = accelerator.process_index * share
    with accelerator.autocast():
        embeddings = reader(batch[first : first + share])
    arguments = [_gather_with_gradient(embeddings), batch.authors]
    if getattr(loss, "needs_batch", False):
        arguments.append(batch)
    value = loss(*arguments)

    accelerator.backward(value)
    accelerator.clip_grad_norm_(optimizer.param_groups[0]["params"], clip)
    optimizer.step()
    optimizer.zero_grad()
    return value.detach()


def _gather_with_gradient(embeddings):
    """Gather the embeddings of all processes, such that each process gets its share of gradients.

    Every process computes the same loss, and the backward pass sums the gradients of all of them;
    the mean over processes in DistributedDataParallel then divides by their number again.
    """
    if not (dist.is_available() and dist.is_initialized()):
        return embeddings
    from torch.distributed.nn.functional import all_gather

    return torch.cat(all_gather(embeddings.contiguous()))


def _mean(losses, step, lr):
    """Return the mean of the losses up to a step; FloatingPointError where one is not finite."""
    mean = torch.stack(losses).mean().item()
    if not math.isfinite(mean):
        raise FloatingPointError(
            f"the loss became {mean} within {len(losses)} steps, up to step {step + 1} at learning "
            f"rate {lr:g}: lower lr or raise warmup"
        )
    return mean


def _best_row(state):
    """Return the evaluation with the highest MRR, the first of equal ones."""
    return max(state["history"], key=lambda row: row["MRR"])


def _complete(path, state, settings):
    """Write the files of a complete training, and delete that of its state."""
    best = _best_row(state)
    path_of_best = path.with_name(BEST)
    save_checkpoint(path_of_best, state["best"], {"step": best["step"]})
    summary = {
        "fingerprint": state["fingerprint"],
        **settings,
        "best_step": best["step"],
        "best_dev_MRR": best["MRR"],
        "seconds": state["history"][-1]["seconds"],
        "history": state["history"],
    }
    write_json(path.with_name(SUMMARY), summary)
    path.unlink()


def device_name(device: torch.device) -> str:
    """Return the name of a device, to print beside a time: the GPU's, or "cpu" and its threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"
