"""What encoders make of samples, made once: the one place where it is kept."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from helpers.encoders.base import Encoder, embed
from helpers.evaluation.scores import Rows, as_rows
from helpers.tokens.batch import Samples

MAX_KEPT = 96  # rows of queries and targets, and statistics: of 24 galleries or more


class Embeddings:
    """Keep the rows of samples, and what else is made of them; of many things the last MAX_KEPT.

    Samples and encoders are told apart as objects. An encoder that was trained further needs new
    embeddings.
    """

    def __init__(self):
        self._kept = {}

    def of(self, encoder: Encoder, samples: Samples, max_tokens: int) -> Rows:
        """Embed samples, or return the rows that were made of them before.

        Parameters
        ----------
        encoder : dense or sparse
        samples : N samples
        max_tokens : tokens read of each post

        Returns
        -------
        (N, D), of :func:`helpers.evaluation.scores.as_rows`
        """
        make = partial(_embedded, encoder, samples, max_tokens)
        return self.once(("rows", encoder, samples, max_tokens), make)

    def put(self, encoder: Encoder, samples: Samples, max_tokens: int, rows) -> None:
        """Keep rows of samples that were made elsewhere.

        Parameters
        ----------
        encoder, samples, max_tokens : as of :meth:`of`
        rows : (N, D), dense or sparse
        """
        self.once(("rows", encoder, samples, max_tokens), partial(as_rows, rows))

    def once(self, key: tuple[Hashable, ...], make: Callable[[], Any]) -> Any:
        """Return what ``make`` returns, or what it returned for this key before."""
        made = self._kept.pop(key) if key in self._kept else make()
        self._kept[key] = made  # as the last one
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        return made


def _embedded(encoder, samples, max_tokens):
    return as_rows(embed(encoder, samples, max_tokens))
