"""A cache of the rows that encoders make of samples, so that no sample is embedded twice."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from ..encoders.base import Encoder, embed
from ..tokens.batch import Samples
from .scores import Rows, as_rows

MAX_KEPT = 120  # entries: rows of queries and of targets, and statistics, of 24 galleries or more


class Embeddings:
    """Keep the rows of samples, and what else is made of them: the MAX_KEPT entries used last.

    Samples and encoders are compared as objects, not by content. So an encoder that was trained
    further needs a new cache.
    """

    def __init__(self):
        self._kept = {}

    def __contains__(self, key: tuple[Hashable, ...]) -> bool:
        return key in self._kept

    def of(self, encoder: Encoder, samples: Samples, max_tokens: int) -> Rows:
        """Embed samples, or return the rows that were made of them before.

        Parameters
        ----------
        encoder : an encoder of dense or sparse rows
        samples : N samples
        max_tokens : tokens read of each post

        Returns
        -------
        (N, D) rows, as :func:`helpers.evaluation.scores.as_rows` makes them
        """
        make = partial(_embedded, encoder, samples, max_tokens)
        return self.once(("rows", encoder, samples, max_tokens), make)

    def put(self, encoder: Encoder, samples: Samples, max_tokens: int, rows) -> None:
        """Keep rows of samples that were made elsewhere, unless there are some already.

        Parameters
        ----------
        encoder, samples, max_tokens : arguments with which :meth:`of` is to return these rows
        rows : (N, D), dense or sparse
        """
        self.once(("rows", encoder, samples, max_tokens), partial(as_rows, rows))

    def once(self, key: tuple[Hashable, ...], make: Callable[[], Any]) -> Any:
        """Return what ``make`` returns, or what it returned for this key before.

        Parameters
        ----------
        key : what was made, of which objects; hashable
        make : called without arguments where the key is new
        """
        made = self._kept.pop(key) if key in self._kept else make()
        self._kept[key] = made  # moved to the end, as the entry used last
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        return made


def _embedded(encoder, samples, max_tokens):
    return as_rows(embed(encoder, samples, max_tokens))
