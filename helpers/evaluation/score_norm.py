"""Normalisation of scores with statistics of a gallery or a cohort, which needs no labels.

The same score means much for a query that resembles nobody and little for one that resembles everybody. *s-norm*
(symmetric normalisation, from speaker recognition) compares it with other scores of the same query and target,

.. math:: s'(q, t) = (s(q, t) - \\mu_q) / \\sigma_q + (s(q, t) - \\mu_t) / \\sigma_t

The statistics are those of the gallery's targets, or of a cohort of training authors. With a cohort only the nearest
:data:`CLOSEST` of its members count (*AS cohort*, after the AS-norm of Matejka et al. 2017). Each class can stand
wherever an encoder is scored, also as a member of a fusion.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch

from helpers.encoders.base import Encoder
from helpers.encoders.tfidf import WEIGHTINGS, TfidfEncoder
from helpers.evaluation.gallery import Gallery, open_gallery
from helpers.evaluation.scores import TILE, round_in_place, score_moments
from helpers.tokens.batch import Samples

REFERENCE = 4096  # targets at most that give the statistics of a target
CLOSEST = 300  # members of a cohort that give the statistics of a sample
KEPT = 24  # galleries of a model: five topics of linking at four sizes, or splits, whole and in communities
FLAT = 1e-5  # a model whose scores spread less says nothing about a sample


class Normalised:
    """Normalise the scores of a model by its gallery or by a cohort.

    model : encoder, fusion, or another of this module.
    cohort : samples of training authors, one each; None for the targets themselves.
    drawn : (T,) bool, which targets stand for all, drawn at random; by default they all do.
    """

    def __init__(
        self, model, cohort: Samples | None = None, drawn: np.ndarray | slice = slice(None)
    ):
        self.model, self.cohort, self.drawn, self._made = model, cohort, drawn, []

    def gallery(self, targets: Samples, max_tokens: int = 32) -> "NormalisedGallery":
        """Open the targets and their statistics; the last few galleries are kept, as fusions share members."""
        for known, tokens, made in self._made:
            if known is targets and tokens == max_tokens:
                return made
        others = None if self.cohort is None else open_gallery(self.model, self.cohort, max_tokens)
        made = NormalisedGallery(open_gallery(self.model, targets, max_tokens), others, self.drawn)
        self._made = [*self._made[1 - KEPT :], (targets, max_tokens, made)]
        return made


class NormalisedGallery:
    """Score queries against a gallery, normalised by the statistics of its targets.

    inner : of the model, with ``targets``; ``of_targets`` are their :func:`statistics`. cohort : of the same model;
        without it targets are measured against each other, or against ``drawn`` ones.
    """

    def __init__(self, inner, cohort=None, drawn=slice(None)):
        self.inner, self.targets, self.cohort, self.drawn = inner, inner.targets, cohort, drawn
        self.of_targets = (
            self._against_each_other() if cohort is None else self._against_cohort(self.targets)
        )

    def scores(
        self, queries: Samples, own: np.ndarray | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield blocks: rows of the queries, their normalised scores (q, T) float32.

        own : (Q,) the column of a query that is itself a target, -1 of another; it is not measured against itself.
        """
        of_queries = None if self.cohort is None else self._against_cohort(queries)
        of_targets = torch.from_numpy(self.of_targets).split(TILE, 1)
        for rows, block in self.inner.scores(queries):
            of_block = (
                statistics(block[:, self.drawn]) if of_queries is None else of_queries[:, rows]
            )
            if own is not None and self.cohort is None:
                of_block = np.where(own[rows] < 0, of_block, self.of_targets[:, own[rows]])
            of_block = torch.from_numpy(of_block)[:, :, None]
            for tile, of_tile in zip(torch.from_numpy(block).split(TILE, 1), of_targets):
                tile.copy_(
                    self._normal(tile, *of_block, *of_tile)
                )  # the block is ours until the next is asked for
            yield rows, block

    def pair_scores(self, queries: Samples, pairs: np.ndarray) -> np.ndarray:
        """Return the normalised scores (N,) of listed pairs (N, 2); which other pairs are listed does not matter."""
        blocks = self.inner.scores(queries) if self.cohort is None else ()
        of_queries = [statistics(block[:, self.drawn]) for _, block in blocks] or [
            self._against_cohort(queries)
        ]
        query, target = pairs.T
        sides = (
            torch.from_numpy(side)
            for side in (*np.hstack(of_queries)[:, query], *self.of_targets[:, target])
        )
        return (
            self._normal(torch.from_numpy(self.inner.pair_scores(queries, pairs)), *sides)
            .float()
            .numpy()
        )

    @staticmethod
    def _normal(scores, mean_q, scale_q, mean_t, scale_t):
        normal = scores.double().mul_(scale_q + scale_t).sub_(mean_q * scale_q + mean_t * scale_t)
        return round_in_place(normal)

    def _against_each_other(self):
        """Return mean and 1 / standard deviation of each target's scores with the other targets, (2, T)."""
        count = len(self.targets)
        chosen = np.arange(count)[self.drawn]
        chosen = chosen[
            np.unique(np.linspace(0, len(chosen) - 1, min(len(chosen), REFERENCE)).astype(int))
        ]
        sums = np.zeros((2, count))
        for rows, block in self.inner.scores(
            self.targets if len(chosen) == count else self.targets[chosen]
        ):
            block[np.arange(len(block)), chosen[rows]] = 0
            sums += score_moments(block, 0)
        return _mean_and_scale(
            *sums / np.maximum(len(chosen) - np.isin(np.arange(count), chosen), 1)
        )

    def _against_cohort(self, samples):
        """Return mean and 1 / standard deviation of each sample's scores with the nearest of the cohort, (2, N)."""
        return np.hstack([statistics(-np.partition(-block, min(CLOSEST, block.shape[1]) - 1, axis=1)[:, :CLOSEST])
                          for _, block in self.cohort.scores(samples)])  # fmt: skip


class FittedOnTargets:
    """Fit an encoder on the texts of each gallery, such as a TF-IDF with the gallery's own idf.

    make : gives a new encoder with ``fit(samples, max_tokens)``, which sees no labels.
    """

    def __init__(self, make: Callable[[], Encoder]):
        self.make = make

    def gallery(self, targets: Samples, max_tokens: int = 32) -> Gallery:
        """Open the targets of an encoder that is fitted on them."""
        return Gallery(self.make().fit(targets, max_tokens), targets, max_tokens)


def adapted(
    name: str, encoder: Encoder, tokenizer, drawn: np.ndarray | slice = slice(None)
) -> Normalised:
    """Give a model s-norm; a TF-IDF is also fitted on the gallery's texts, so that its idf is the gallery's.

    name : in :data:`helpers.encoders.baselines.BASELINES`, or any other. encoder : as fitted on training posts.
    drawn : of the targets, see :class:`Normalised`.
    """
    model = (
        FittedOnTargets(lambda: TfidfEncoder(name, tokenizer)) if name in WEIGHTINGS else encoder
    )
    return Normalised(model, None, drawn)


def statistics(scores: np.ndarray) -> np.ndarray:
    """Return mean and 1 / standard deviation of each row of scores (N, T): (2, N), 0 and 0 for rows without spread."""
    return _mean_and_scale(*score_moments(scores, 1) / scores.shape[1])


def _mean_and_scale(mean, square):
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    return np.stack([mean, np.where(spread > FLAT, 1 / np.maximum(spread, FLAT), 0)])
