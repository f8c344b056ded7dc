"""From a pooled sample to its embedding: the last layers of a stream encoder, by name."""

from collections.abc import Callable

from torch import nn


PROJECTIONS: dict[str, Callable[[int, int], nn.Sequential]] = {
    # two layers without bias between LayerNorms, as released
    "khan2021": lambda width, dim: nn.Sequential(
        nn.LayerNorm(width), nn.Linear(width, dim, bias=False), nn.ReLU(), nn.Linear(dim, dim, bias=False),
        nn.LayerNorm(dim)),
    # two layers with bias, as the paper's text says
    "khan2021_text": lambda width, dim: nn.Sequential(nn.Linear(width, dim), nn.ReLU(), nn.Linear(dim, dim)),
    "linear": lambda width, dim: nn.Sequential(nn.Linear(width, dim)),
    "tyo2021": lambda width, dim: nn.Sequential(nn.Linear(width, dim), nn.ReLU()),  # a dense layer, as released
    "none": lambda width, dim: nn.Sequential(),  # the pooled vector itself, as sentence encoders are made
}
