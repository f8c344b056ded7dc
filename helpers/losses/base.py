"""The interface of every loss."""

from typing import Protocol

from torch import Tensor


class Loss(Protocol):
    """A function from the embeddings and authors of a batch to a scalar, with fixed settings.

    A loss without parameters depends only on which labels are equal, not on their values, and,
    unless it is ``paired``, not on the order of the samples. Where a batch has nothing to learn
    from, such as samples of a single author, the loss and its gradient are 0. No tensor is larger
    than B x B for B samples. The losses in ``class_weights`` differ in both: they depend on the
    values of the labels, and have tensors of B or D times the number of authors.
    """

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the loss, a scalar in float32 at least.

        Parameters
        ----------
        embeddings : (B, D): B samples, vectors of D values and of any length
        labels : (B,) int64, the author of each sample
        """
