"""What every encoder is: a batch of samples -> one vector each, whatever it is made of.

Letters: B samples of a batch, N of a list, D dimensions.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from helpers.core.progress import progress_bar
from helpers.tokens.batch import Batch, Samples


class Encoder(nn.Module):
    """A batch -> (B, ``dim``) rows of unit length, whose product is the score of a pair.

    Rows are a float tensor, or a SciPy CSR matrix for the encoders that count. A row depends on its own sample only:
    not on padding, on the other rows, or on the size of the batch.
    """

    dim: int

    def forward(self, batch: Batch) -> Tensor | sparse.csr_matrix:
        """Batch of B samples -> (B, dim)."""
        raise NotImplementedError

    @contextmanager
    def inference(self) -> Iterator[None]:
        """Open around many batches with unchanged weights: what parts with an ``inference`` prepare for them."""
        with ExitStack() as opened:
            for part in self.children():
                opened.enter_context(getattr(part, "inference", nullcontext)())
            yield

    @property
    def device(self) -> torch.device:
        """Where batches must be."""
        return next(
            (tensor.device for tensor in (*self.parameters(), *self.buffers())), torch.device("cpu")
        )


@torch.no_grad()
def embed(
    encoder: Encoder,
    samples: Samples,
    max_tokens: int = 32,
    batch_size: int = 256,
    progress: bool = False,
) -> np.ndarray | sparse.csr_matrix:
    """The vectors of many samples, in their order, at bounded memory.

    Samples are batched by size in posts, then in tokens, so that short ones do not pay for long ones, in eval mode.

    max_tokens : tokens read of each post, L. batch_size : samples at a time. progress : a bar where it takes over two
    seconds. Returns (N, D) float32, an array or a CSR matrix. Raises ValueError for no sample or vectors not finite.
    """
    if not len(samples):
        raise ValueError("no samples to embed: an empty gallery, or no queries")
    modes = [
        (module, module.training) for module in encoder.modules()
    ]  # a wrapper may hold an encoder in eval mode
    encoder.eval()
    end = samples.store.post_offsets[samples.first + samples.count]
    order = np.lexsort((end - samples.store.post_offsets[samples.first], samples.count))
    pieces = []
    with encoder.inference():
        for begin in progress_bar(
            range(0, len(order), batch_size), progress=progress, desc="embedding", delay=2
        ):
            rows = encoder(
                samples.batch(order[begin : begin + batch_size], max_tokens).to(encoder.device)
            )
            pieces.append(rows if sparse.issparse(rows) else rows.float().cpu().numpy())
            finite = np.isfinite(np.asarray(pieces[-1].sum(1))).ravel()
            if not finite.all():
                bad = order[begin + finite.argmin()]
                raise ValueError(f"{type(encoder).__name__}: the vector of sample {bad} (author "
                                 f"{samples.authors[bad]}) is not finite")  # fmt: skip
    for module, training in modes:
        module.training = training
    back = np.argsort(order)
    return (
        sparse.vstack(pieces).tocsr() if sparse.issparse(pieces[0]) else np.concatenate(pieces)
    )[back]
