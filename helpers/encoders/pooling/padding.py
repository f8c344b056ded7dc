"""Real posts and padded samples, there and back; an absent post takes part in nothing."""

from torch import Tensor


def padded(posts: Tensor, mask: Tensor) -> Tensor:
    """(N, W) real posts, mask (B, M) -> (B, M, W), zero where there is no post."""
    full = posts.new_zeros(*mask.shape, posts.shape[1])
    full[mask] = posts
    return full


def highest(posts: Tensor, mask: Tensor) -> Tensor:
    """(B, M, W) -> (B, W): the maximum over real posts."""
    return posts.masked_fill(~mask[..., None], float("-inf")).amax(1)
