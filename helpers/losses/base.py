"""What every loss is."""

from typing import Protocol

from torch import Tensor


class Loss(Protocol):
    """A function of a batch's vectors and of who wrote them, with its settings bound.

    It depends on which labels are equal, not on their values, and not on the order of the samples.
    Where a batch has nothing to learn from, such as one author alone, the loss is 0 and so is its
    gradient. No tensor is larger than B x B.
    """

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the loss, a scalar in float32 at least.

        Parameters
        ----------
        embeddings : (B, D), of any length
        labels : (B,) int64, the author of each sample
        """
