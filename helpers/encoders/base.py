"""The contract of every encoder: a batch of samples becomes one vector a sample.

Weights are in one file that is replaced in one step and has its checksum inside, so a process that
is killed leaves either the old file or the new one.

Letters: B samples of a batch, N samples of a list, D dimensions.
"""

import hashlib
import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as nnf
from safetensors import safe_open
from safetensors.torch import save_file
from scipy import sparse
from torch import Tensor, nn

from ..core.artifacts import atomic_write
from ..core.messages import file_error, readable_file
from ..core.progress import progress_bar
from ..tokens.batch import Batch, Samples

SAMPLES_AT_ONCE = 1024  # in a batch where words are counted
TOKENS_AT_ONCE = 2**23  # in any batch, padding included, which bounds memory


class Encoder(nn.Module):
    """Map a batch to (B, ``dim``) unit rows, whose product is the score of a pair.

    Rows are a float tensor, or a SciPy CSR matrix for the encoders that count. A row depends on its
    own sample only: not on padding, on the other rows, or on the size of the batch.

    Attributes
    ----------
    dim : int
        D, the size of a vector
    unit : bool
        false for the few encoders whose rows are not of unit length
    """

    dim: int
    unit: bool = True

    def forward(self, batch: Batch) -> Tensor | sparse.csr_matrix:
        """Return the (B, dim) rows of a batch of B samples."""
        raise NotImplementedError

    @property
    def device(self) -> torch.device:
        """The device that batches must be on."""
        first_tensor = next(chain(self.parameters(), self.buffers()), torch.empty(0))
        return first_tensor.device


@torch.no_grad()
def embed(
    encoder: Encoder,
    samples: Samples,
    max_tokens: int = 32,
    batch_size: int = 256,
    progress: bool = False,
) -> np.ndarray | sparse.csr_matrix:
    """Return the vectors of many samples, in their order, at bounded memory and in eval mode.

    Samples are sorted by number of posts, then by number of tokens, before they are batched, so
    that short ones are not padded to the length of long ones.

    Parameters
    ----------
    encoder : Encoder
        any encoder; it is in eval mode afterwards
    samples : Samples
        N samples of a store
    max_tokens : int
        L, tokens read of each post
    batch_size : int
        number of samples that are encoded at a time, fewer of many posts
    progress : bool
        whether a bar is shown where it takes over two seconds

    Returns
    -------
    (N, D) float32, a CSR matrix where the encoder gives sparse rows, else an array.

    Raises
    ------
    ValueError
        If there is no sample, or if a vector is not finite.
    """
    if not len(samples):
        raise ValueError("no samples to embed: an empty gallery, or no queries")
    offsets = samples.store.post_offsets
    n_tokens = offsets[samples.first + samples.count] - offsets[samples.first]
    order = np.lexsort((n_tokens, samples.count))  # lexsort sorts by its last key first
    parts = list(_parts(samples.count[order], max_tokens, batch_size))
    blocks = []
    encoder.eval()
    for part in progress_bar(parts, progress=progress, desc="embedding", delay=2):
        rows = encoder(samples.batch(order[part], max_tokens).to(encoder.device))
        if not sparse.issparse(rows):
            rows = rows.float().cpu().numpy()
        blocks.append(rows)

    if sparse.issparse(blocks[0]):
        vectors = sparse.vstack(blocks).tocsr()
    else:
        vectors = np.concatenate(blocks)
    vectors = vectors[np.argsort(order)]
    finite = np.isfinite(np.asarray(vectors.sum(1))).ravel()
    if not finite.all():
        name = type(encoder).__name__
        raise ValueError(f"{name}: the vector of sample {finite.argmin()} is not finite")
    return vectors


def load_tensors(module: nn.Module, tensors: dict[str, Tensor], path: str | Path) -> None:
    """Load tensors into a module whose parameters and buffers have the same names and shapes.

    Parameters
    ----------
    module : nn.Module
        the module that gets the tensors
    tensors : dict
        name -> tensor
    path : str or Path
        the file that they were read from, for the message

    Raises
    ------
    ValueError
        If a tensor is missing, of another shape or not finite, or if there is one too many.
    """
    for name, value in tensors.items():
        if not value.isfinite().all():
            raise file_error(path, f"holds weights {name!r} that are not finite")
    with readable_file(path, "does not hold the weights of this network"):
        module.load_state_dict(tensors)


def save_checkpoint(path: Path, tensors: dict[str, Tensor], state: dict) -> None:
    """Write tensors, a state and the checksum of both to one safetensors file, in one step.

    Parameters
    ----------
    path : path of the file, which is replaced if it exists
    tensors : name -> tensor, such as weights
    state : other values that JSON can hold, such as the number of the step

    Raises
    ------
    FloatingPointError
        a tensor has a value that is not finite
    """
    for name, value in tensors.items():
        if not value.isfinite().all():
            raise FloatingPointError(
                f"{name} has values that are not finite: lower lr or raise warmup"
            )
    tensors = {name: value.contiguous() for name, value in tensors.items()}
    state = {**state, "sha256": weights_checksum(tensors, state)}
    with atomic_write(path) as partial:
        # one entry, as safetensors writes several in random order, so that equal files would differ
        save_file(tensors, partial, {"state": json.dumps(state)})


def read_checkpoint(path: str | Path) -> tuple[dict[str, Tensor], dict]:
    """Read the tensors and the state of a file of :func:`save_checkpoint`.

    Raises
    ------
    ValueError
        the file is missing or damaged
    """
    with readable_file(path):
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            state = json.loads(file.metadata()["state"])
        if state.pop("sha256") != weights_checksum(tensors, state):
            raise file_error(path)
    return tensors, state


def weights_checksum(tensors: dict[str, Tensor], state: dict) -> str:
    """Hash names, types, shapes and values of tensors, and a state.

    Parameters
    ----------
    tensors : name -> tensor, in any order
    state : other values that JSON can hold
    """
    digest = hashlib.sha256(json.dumps(state, sort_keys=True).encode())
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()[:16]


def batches_of(samples: Samples, max_tokens: int) -> Iterator[Batch]:
    """Yield many samples in batches of SAMPLES_AT_ONCE, fewer of many tokens, in their order.

    Parameters
    ----------
    samples : Samples
        N samples of a store
    max_tokens : int
        L, tokens read of each post
    """
    for part in _parts(samples.count, max_tokens, SAMPLES_AT_ONCE):
        yield samples.batch(part, max_tokens)


def _parts(count, max_tokens, batch_size):
    """Yield slices of samples of ``count`` (N,) posts, of up to TOKENS_AT_ONCE padded tokens."""
    begin = 0
    while begin < len(count):
        longest = np.maximum.accumulate(count[begin : begin + batch_size])
        tokens = longest * max_tokens * np.arange(1, len(longest) + 1)
        end = begin + max(np.searchsorted(tokens, TOKENS_AT_ONCE, side="right"), 1)
        yield slice(begin, end)
        begin = end


class ChunkMean(Encoder):
    """Average an encoder's vectors of contiguous groups of at most ``posts`` posts.

    The mean has unit length where the encoder's vectors have.

    With ``posts`` 1 it is "Avg" of khan2021 Table 3, made for an encoder that was trained on single
    posts. With 16 it reads long queries with IUR (khan2021 section 4.3). Over the pieces of a
    document it reads long texts (tyo2021 section 4.1).

    Parameters
    ----------
    encoder : Encoder
        encodes each group
    posts : int
        posts of a group; the last group of a sample may have fewer
    """

    def __init__(self, encoder: Encoder, posts: int = 1):
        super().__init__()
        self.encoder = encoder
        self.posts = posts
        self.dim = encoder.dim
        self.unit = encoder.unit

    def forward(self, batch: Batch) -> Tensor:
        """Return (B, ``dim``) rows of B samples; the encoder's own if each sample is one group."""
        if batch.mask.shape[1] <= self.posts:
            return self.encoder(batch)
        groups, sample = batch.split_posts(self.posts)
        vectors = self.encoder(groups)
        sums = vectors.new_zeros(len(batch), self.dim).index_add(0, sample, vectors)
        if self.unit:
            return nnf.normalize(sums, dim=1)
        return sums / sample.bincount(minlength=len(batch))[:, None]
