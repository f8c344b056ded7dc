"""Max-pooled convolutions over embedded tokens: the text feature of khan2021 (section 2.1).

It also has a fast way to be trained. A convolution of width w over embedded tokens is linear in
each token: its output at position t is ``sum_k W_k e(token[t+k])``. So every *distinct* token of a
batch is projected once through every tap (one matrix product gives a table), each position is a sum
of w looked-up rows, and after max-pooling only the winning position of each filter carries
gradient: backward touches w table cells per post and filter. The function and its gradients
are those of ``Conv1d`` and a maximum, with far less arithmetic, because text repeats itself: a
batch has far fewer distinct tokens than tokens.

A post's windows start at its real tokens and read zeros past its end, so its feature does not
depend on padding.

Letters: N posts, L tokens a post, U distinct tokens, d token dimensions, F filters of each width,
K taps of all widths together (2 + 3 + 4 = 9 in the paper).
"""

from typing import Literal

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

# window sums held at once: 4 MB stay in the cache, and memory is bounded for any batch
CHUNK_FLOATS = 2**20


class TextCNN(nn.Module):
    """Embed tokens, convolve in several widths, ReLU, maximum over the post (Fig. 2, E and C).

    Parameters
    ----------
    vocabulary : int
        number of different tokens
    token_dim : int
        d, size of a token's embedding
    filters : int
        F, filters of each width
    widths : tuple of int
        widths of the convolutions, in tokens
    method : str
        "projected" (the fast way above), "dense" (embed, convolve, pool), or "auto": dense on CUDA,
        projected elsewhere
    """

    def __init__(
        self,
        vocabulary: int,
        token_dim: int = 512,
        filters: int = 512,
        widths: tuple[int, ...] = (2, 3, 4),
        method: Literal["auto", "projected", "dense"] = "auto",
    ):
        super().__init__()
        self.method = method
        self.widths = widths
        self.filters = filters
        self.dim = filters * len(widths)
        self.embedding = nn.Embedding(vocabulary, token_dim)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(token_dim, filters, width) for width in self.widths
        )
        nn.init.uniform_(self.embedding.weight, -0.05, 0.05)
        for convolution in self.convolutions:
            nn.init.xavier_uniform_(convolution.weight)
            nn.init.zeros_(convolution.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the (N, dim) features of tokens (N, L) with PAD at the end of short posts.

        A post without tokens is read as one window of zeros.
        """
        if self._is_dense(tokens):
            pooled = self._dense(tokens)
        else:
            kind = tokens.device.type
            dtype = self.embedding.weight.dtype
            if torch.is_autocast_enabled(kind):
                dtype = torch.get_autocast_dtype(kind)
            # only the products use the type of autocast, so it is switched off for the rest
            with torch.autocast(kind, enabled=False):
                pooled = self._projected(tokens, dtype)
        # the bias is the same at every position, so it can wait until after the maximum
        bias = torch.cat([convolution.bias for convolution in self.convolutions])
        return (pooled + bias).relu()

    def _is_dense(self, tensor):
        if self.method == "auto":
            return tensor.is_cuda
        return self.method == "dense"

    def _dense(self, tokens):
        real = tokens >= 0
        embedded = self.embedding(tokens.clamp(min=0)) * real.unsqueeze(2)
        embedded = nnf.pad(embedded, (0, 0, 0, max(self.widths) - 1)).transpose(1, 2)
        # a window starts at each real token, and at the first token of a post without any
        starts = real.index_fill(1, real.new_zeros(1, dtype=torch.long), True).unsqueeze(1)
        pooled = []
        for convolution in self.convolutions:
            windows = nnf.conv1d(embedded, convolution.weight)[:, :, : tokens.shape[1]]
            lowest = torch.finfo(windows.dtype).min
            # not amax, whose backward pass is slow
            pooled.append(windows.masked_fill(~starts, lowest).max(2).values)
        return torch.cat(pooled, 1)

    def _projected(self, tokens, dtype):
        vocabulary = self.embedding.num_embeddings
        real = tokens >= 0
        length = real.sum(1).clamp(min=1)
        # filled at the end, so that the last token begins a window of the largest width
        filled = tokens.masked_fill(~real, vocabulary)
        filled = nnf.pad(filled, (0, max(self.widths) - 1), value=vocabulary)
        occurs = filled.flatten().bincount(minlength=vocabulary + 1) > 0
        distinct = occurs.nonzero().flatten()
        index = (occurs.cumsum(0) - 1)[filled]
        is_token = distinct < vocabulary
        rows = (self.embedding(distinct * is_token) * is_token[:, None]).to(dtype)
        # the taps of every width, in order, (K, d, F)
        taps = torch.cat([part.weight.permute(2, 1, 0) for part in self.convolutions]).to(dtype)
        if not torch.is_grad_enabled():
            return _pool_windows(rows @ taps, index, length, self.widths)
        return _PooledWindows.apply(rows, taps, index, length, self.widths)


class _PooledWindows(torch.autograd.Function):
    """Pool (U + 1, d) rows under (K, d, F) taps to (N, dim), with sparse gradients.

    Each filter takes its largest window, and only that window gets a gradient.
    """

    @staticmethod
    def forward(ctx, rows, taps, index, length, widths):
        winner = index.new_empty(len(index), taps.shape[2] * len(widths), dtype=torch.int32)
        pooled = _pool_windows(torch.matmul(rows, taps), index, length, widths, winner)
        ctx.save_for_backward(rows, taps, index, winner)
        ctx.widths = widths
        return pooled

    @staticmethod
    def backward(ctx, grad):
        rows, taps, index, winner = ctx.saved_tensors
        n_rows = len(rows)
        filters = taps.shape[2]
        rows_grad = grad.new_zeros(rows.shape)
        taps_grad = grad.new_empty(taps.shape)
        cells = grad.new_empty(n_rows * filters)  # reused for every tap
        column = torch.arange(filters, device=rows.device)
        for width, first_tap, columns in _blocks(ctx.widths, filters):
            upstream = grad[:, columns].flatten()
            start = winner[:, columns].long()
            for tap in range(width):
                cell = (index.gather(1, start + tap) * filters + column).flatten()
                tap_grad = cells.zero_().index_add_(0, cell, upstream)
                tap_grad = tap_grad.view(n_rows, filters).to(rows.dtype)
                rows_grad += tap_grad @ taps[first_tap + tap].T
                taps_grad[first_tap + tap] = rows.T @ tap_grad
        return rows_grad, taps_grad, None, None, None


def _blocks(widths, filters):
    """Yield for every width: itself, its first tap, its columns of the pooled features."""
    first_tap = 0
    for number, width in enumerate(widths):
        yield width, first_tap, slice(number * filters, (number + 1) * filters)
        first_tap += width


def _pool_windows(table, index, length, widths, winner=None):
    """Return the largest window sums, (N, dim), from a (K, U + 1, F) table.

    Their starts are written into ``winner`` (N, dim), if one is given; without it takes less time.
    """
    dtype = torch.promote_types(table.dtype, torch.float32)
    pooled = table.new_empty(len(index), table.shape[2] * len(widths), dtype=dtype)
    for posts, columns, start, sums in _window_sums(table, index, length, widths):
        if winner is None:
            largest = sums.amax(1)
        else:
            largest, position = sums.max(1)
            winner[posts, columns] = start.gather(1, position).int()
        pooled[posts, columns] = largest.to(dtype)
    return pooled


def _window_sums(table, index, length, widths):
    """Yield the sums of all windows of a width, (n, l, F), for a few posts at a time.

    With them come the n posts, the columns of the width, and where each window starts, (n, l). The
    longest of these posts has l tokens: posts are taken in order of length, so that no time is
    spent on the padding of short posts. ``index`` (N, L + widest - 1) holds table rows, the last
    row where there is no token.
    """
    count, filters = table.shape[1:]
    flat_table = table.reshape(-1, filters)
    order = length.argsort(descending=True)
    done = 0
    while done < len(order):
        longest = int(length[order[done]])
        posts = order[done : done + max(1, CHUNK_FLOATS // (longest * filters))]
        done += len(posts)
        # windows past a post's last token repeat its last window, which changes no maximum
        start = torch.arange(longest, device=table.device).minimum(length[posts].unsqueeze(1) - 1)
        rows = index[posts]
        for width, first_tap, columns in _blocks(widths, filters):
            taps = torch.arange(width, device=table.device)
            window_rows = rows.gather(1, (start.unsqueeze(2) + taps).flatten(1)).view(-1, width)
            bags = window_rows + (first_tap + taps) * count
            sums = nnf.embedding_bag(bags, flat_table, mode="sum")
            yield posts, columns, start, sums.view(len(posts), longest, filters)
