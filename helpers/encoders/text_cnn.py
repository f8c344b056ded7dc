"""Max-pooled convolutions over embedded tokens: the text feature of khan2021 (section 2.1), and a fast way to train it.

A convolution of width w over embedded tokens is linear in each token: its output at position t is
``sum_k W_k e(token[t+k])``. So every *distinct* token of a batch is projected once through every tap (one matrix
product gives a table), each position is a sum of w looked-up rows, and after max-pooling only the winning position
of each filter carries gradient: backward touches w table cells per post and filter. Same function, same gradients
as ``Conv1d`` + max, far less arithmetic, because text repeats itself: far fewer tokens are distinct than there are.

A post's windows start at its real tokens and read zeros past its end, so its feature does not depend on padding.

Letters: N posts, L tokens a post, U distinct tokens, d token dimensions, F filters of each width, K taps of all
widths together (2 + 3 + 4 = 9 in the paper).
"""

from contextlib import contextmanager

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

CHUNK_FLOATS = (
    2**20
)  # window sums held at once: 4 MB stay in the cache, and memory is bounded for any batch
TABLE_FLOATS = 2**29  # largest whole-vocabulary table kept for inference (2 GB)
PATHS = ("auto", "projected", "dense")


class TextCNN(nn.Module):
    """Token embedding, convolutions of several widths, ReLU, maximum over the post (Fig. 2, blocks E and C).

    vocabulary : number of token ids. token_dim : d. filters : F per width. widths : in tokens.
    path : "projected" (above), "dense" (embed, convolve, pool), or "auto": dense on CUDA, projected elsewhere.
    Raises ValueError for an unknown path.
    """

    def __init__(
        self,
        vocabulary: int,
        token_dim: int = 512,
        filters: int = 512,
        widths=(2, 3, 4),
        path: str = "auto",
    ):
        super().__init__()
        if path not in PATHS:
            raise ValueError(f"path {path!r}: one of {', '.join(PATHS)}")
        self.path, self.widths, self.filters, self.dim = (
            path,
            tuple(widths),
            filters,
            filters * len(widths),
        )
        self.embedding = nn.Embedding(vocabulary, token_dim)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(token_dim, filters, width) for width in self.widths
        )
        nn.init.uniform_(self.embedding.weight, -0.05, 0.05)
        for convolution in self.convolutions:
            nn.init.xavier_uniform_(convolution.weight)
            nn.init.zeros_(convolution.bias)
        self._table = None  # only inside inference()

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens (N, L), PAD at the end of short posts -> (N, dim). A post without tokens is one zero window."""
        if self._path(tokens) == "dense":
            pooled = self._dense(tokens)
        else:
            kind = tokens.device.type
            dtype = (
                torch.get_autocast_dtype(kind)
                if torch.is_autocast_enabled(kind)
                else self.embedding.weight.dtype
            )
            with torch.autocast(
                kind, enabled=False
            ):  # products as autocast has them, sums as weights
                pooled = self._projected(tokens, dtype)
        bias = torch.cat([convolution.bias for convolution in self.convolutions])
        return (
            pooled + bias
        ).relu()  # the bias is the same at every position, so it can wait until after the max

    def _dense(self, tokens: Tensor) -> Tensor:
        real = tokens >= 0
        embedded = self.embedding(tokens.clamp(min=0)) * real.unsqueeze(2)
        embedded = nnf.pad(embedded, (0, 0, 0, max(self.widths) - 1)).transpose(1, 2)
        starts = real.index_fill(1, real.new_zeros(1, dtype=torch.long), True).unsqueeze(
            1
        )  # one window at least
        pooled = []
        for convolution in self.convolutions:
            windows = nnf.conv1d(embedded, convolution.weight)[:, :, : tokens.shape[1]]
            lowest = torch.finfo(windows.dtype).min
            pooled.append(
                windows.masked_fill(~starts, lowest).max(2).values
            )  # amax: slow backwards
        return torch.cat(pooled, 1)

    def _projected(self, tokens: Tensor, dtype: torch.dtype) -> Tensor:
        length = (tokens >= 0).sum(1).clamp(min=1)
        vocabulary = self.embedding.num_embeddings
        if self._table is None:
            present = torch.zeros(vocabulary, dtype=torch.bool, device=tokens.device)
            present[tokens[tokens >= 0]] = True
            distinct = present.nonzero().squeeze(
                1
            )  # a bitmap: faster than the sort inside torch.unique
            number = present.cumsum(0) - 1
            index = torch.where(tokens >= 0, number[tokens.clamp(min=0)], len(distinct))
            rows = nnf.pad(nnf.embedding(distinct, self.embedding.weight), (0, 0, 0, 1)).to(
                dtype
            )  # last row: padding
            index = self._pad(index, len(distinct))
            return _PooledWindows.apply(rows, self._taps().to(dtype), index, length, self.widths)
        index = torch.where(tokens >= 0, tokens, vocabulary)
        return _pool_windows(self._table, self._pad(index, vocabulary), length, self.widths)[0]

    def _pad(self, index: Tensor, value: int) -> Tensor:
        return nnf.pad(index, (0, max(self.widths) - 1), value=value)

    def _taps(self) -> Tensor:
        """(K, d, F): the taps of every width, in order."""
        return torch.cat([convolution.weight.permute(2, 1, 0) for convolution in self.convolutions])

    @contextmanager
    def inference(self):
        """Project every token once and use the table until the block ends: for many batches with unchanged weights.

        No gradients inside. A table beyond TABLE_FLOATS is not made; each batch then projects its own tokens.
        """
        fits = sum(self.widths) * self.embedding.num_embeddings * self.filters <= TABLE_FLOATS
        with torch.no_grad(), torch.autocast(self.embedding.weight.device.type, enabled=False):
            try:
                if fits and self._path(self.embedding.weight) == "projected":
                    self._table = torch.matmul(
                        nnf.pad(self.embedding.weight, (0, 0, 0, 1)), self._taps()
                    )
                yield self
            finally:
                self._table = None

    def _path(self, tensor: Tensor) -> str:
        return self.path if self.path != "auto" else ("dense" if tensor.is_cuda else "projected")


class _PooledWindows(torch.autograd.Function):
    """(U + 1, d) rows, (K, d, F) taps -> (N, dim): the largest window of every filter, with sparse gradients."""

    @staticmethod
    def forward(ctx, rows, taps, index, length, widths):
        pooled, winner = _pool_windows(torch.matmul(rows, taps), index, length, widths)
        ctx.save_for_backward(rows, taps, index, winner)
        ctx.widths = widths
        return pooled

    @staticmethod
    def backward(ctx, grad):
        rows, taps, index, winner = ctx.saved_tensors
        count, filters = len(rows), taps.shape[2]
        rows_grad, taps_grad = grad.new_zeros(rows.shape), grad.new_empty(taps.shape)
        cells, column = (
            grad.new_empty(count * filters),
            torch.arange(filters, device=rows.device),
        )  # cells: of one tap
        for width, first, columns in _blocks(ctx.widths, filters):
            upstream, start = grad[:, columns].flatten(), winner[:, columns].long()
            for tap in range(width):
                cell = index.gather(1, start + tap) * filters + column
                tap_grad = (
                    cells.zero_()
                    .index_add_(0, cell.flatten(), upstream)
                    .view(count, filters)
                    .to(rows.dtype)
                )
                rows_grad += tap_grad @ taps[first + tap].T
                taps_grad[first + tap] = rows.T @ tap_grad
        return rows_grad, taps_grad, None, None, None


def _blocks(widths, filters):
    """(width, its first tap, its columns of the pooled features) for every width."""
    first = 0
    for number, width in enumerate(widths):
        yield width, first, slice(number * filters, (number + 1) * filters)
        first += width


def _pool_windows(table: Tensor, index: Tensor, length: Tensor, widths) -> tuple[Tensor, Tensor]:
    """Largest window sum and its start, each (N, dim), from a (K, U + 1, F) table.

    index (N, L + widest - 1) holds table rows, the last row where there is no token. Posts are taken in order of
    length, so that a short post does not pay for the positions of a long one.
    """
    count, filters = table.shape[1:]
    flat = table.reshape(-1, filters)
    pooled = table.new_empty(
        len(index), filters * len(widths), dtype=torch.promote_types(table.dtype, torch.float32)
    )
    winner = torch.empty(pooled.shape, dtype=torch.int32, device=table.device)
    order = length.argsort(descending=True)
    done = 0
    while done < len(order):
        longest = int(length[order[done]])
        posts = order[done : done + max(1, CHUNK_FLOATS // (longest * filters))]
        done += len(posts)
        # windows past a post's last token repeat its last window, which changes no maximum
        start = torch.arange(longest, device=table.device).minimum(length[posts].unsqueeze(1) - 1)
        rows = index[posts]
        for width, first, columns in _blocks(widths, filters):
            taps = torch.arange(width, device=table.device)
            bags = (
                rows.gather(1, (start.unsqueeze(2) + taps).flatten(1)).view(-1, width)
                + (first + taps) * count
            )
            sums = nnf.embedding_bag(bags, flat, mode="sum").view(len(posts), longest, filters)
            best, position = sums.max(1)
            pooled[posts, columns] = best.to(pooled.dtype)
            winner[posts, columns] = start.gather(1, position).int()
    return pooled, winner
