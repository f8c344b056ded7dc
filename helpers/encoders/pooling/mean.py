"""The mean of a sample's posts: the simplest pooling, and that of a document, which is a stream of length one."""

from torch import Tensor, nn

from helpers.encoders.pooling.padding import padded


class MeanPooling(nn.Module):
    """The mean over real posts, nothing learned."""

    xavier = False

    def __init__(self, width: int, settings):
        super().__init__()
        self.dim = width

    def forward(self, posts: Tensor, mask: Tensor) -> Tensor:
        """posts (N, W), mask (B, M) -> (B, W)."""
        if mask.shape[1] == 1:
            return posts
        return padded(posts, mask).sum(1) / mask.sum(1, keepdim=True)
