"""A gallery: the targets of a model, embedded once, that any queries are scored against."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from helpers.encoders.base import Encoder, embed
from helpers.evaluation import scores
from helpers.tokens.batch import Samples


class Gallery:
    """The targets of one encoder.

    encoder : dense or sparse; compared by product, or by Euclidean distance where it has ``unit = False``.
    max_tokens : tokens read of each post, of queries and targets alike. rows : of the targets, where they are known.
    Raises ValueError where there are no targets, or a vector is not finite.
    """

    def __init__(self, encoder: Encoder, targets: Samples, max_tokens: int = 32, rows=None):
        if not len(targets):
            raise ValueError("the gallery is empty: there are no targets to compare with")
        self.encoder, self.targets, self.max_tokens = encoder, targets, max_tokens
        self.unit = getattr(encoder, "unit", True)
        self.rows = self._embed(targets) if rows is None else scores.as_rows(rows)
        self._last = (
            targets,
            self.rows,
        )  # fusions that share a gallery ask it about the same queries

    def scores(
        self, queries: Samples, own: np.ndarray | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks: rows of the queries, their scores (q, T) float32; at bounded memory, each block overwritten.

        own : for galleries that measure a query against the others; here it changes nothing.
        """
        return scores.score_blocks(self._rows(queries), self.rows, self.unit)

    def pair_scores(self, queries: Samples, pairs: np.ndarray) -> np.ndarray:
        """Scores (N,) of listed pairs (N, 2), rows of queries and of targets."""
        return scores.pair_scores(self._rows(queries), self.rows, pairs, self.unit)

    def _rows(self, samples):
        if samples is self.targets:
            return self.rows
        if samples is not self._last[0]:
            self._last = samples, self._embed(samples)
        return self._last[1]

    def _embed(self, samples):
        return scores.as_rows(embed(self.encoder, samples, self.max_tokens))


def open_gallery(model, targets: Samples, max_tokens: int = 32) -> Gallery:
    """The gallery of an encoder or of a :class:`helpers.evaluation.fusion.Fusion`, which makes its own."""
    return (model.gallery if hasattr(model, "gallery") else partial(Gallery, model))(
        targets, max_tokens
    )
