"""How the posts of a sample become one vector: the registry of poolings.

A pooling is built as ``Pooling(width, settings)`` from the width of a post's vector and a
:class:`~helpers.encoders.stream.StreamConfig`, has ``dim``, and maps ``(posts (N, width), mask (B, M)) -> (B, dim)``:
the N real posts of a batch, and where they belong.
"""

from helpers.encoders.pooling.attention import ParallelAttention, SingleAttention
from helpers.encoders.pooling.iur import IURPooling
from helpers.encoders.pooling.luar import LUARPooling
from helpers.encoders.pooling.mean import MeanPooling

POOLINGS = {
    "khan2021": ParallelAttention,
    "khan2021_text": SingleAttention,
    "iur": IURPooling,
    "luar": LUARPooling,
    "mean": MeanPooling,
}
