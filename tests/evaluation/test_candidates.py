"""Candidates of two lists against a loop over all pairs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from helpers.evaluation.candidates import all_candidates, best_candidates
from tests.oracles import slow_candidates


def blocks_of(scores, size):
    """Blocks of scores in one array, which each block overwrites, as those of a model."""
    array = np.empty((size, scores.shape[1]), scores.dtype)
    for begin in range(0, len(scores), size):
        part = slice(begin, min(begin + size, len(scores)))
        block = array[: part.stop - begin]
        block[:] = scores[part]
        yield part, block


def drawn_scores(seed, shape, values=5):
    """Scores with many ties, a fifth of them -inf, the first row and column of a third of lists."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, values, shape).astype(np.float32)
    scores[rng.random(shape) < 0.2] = -np.inf
    if seed % 3 == 0:
        scores[0] = -np.inf
        scores[:, 0] = -np.inf
    return scores


@given(
    st.integers(0, 10**6),
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.integers(1, 15),
    st.integers(1, 13),
    st.sampled_from([5, 1000]),
)
def test_the_best_of_each_account_are_those_of_a_loop(seed, shape, best, size, values):
    scores = drawn_scores(seed, shape, values)
    candidates = best_candidates(blocks_of(scores, size), *shape, best)
    assert [tuple(pair) for pair in candidates.pairs] == slow_candidates(scores, best)
    np.testing.assert_array_equal(candidates.scores, scores[tuple(candidates.pairs.T)])
    assert candidates.scores.dtype == np.float64
    assert (candidates.queries, candidates.targets) == shape


def test_all_pairs_above_minus_infinity_are_candidates():
    scores = drawn_scores(3, (6, 8))
    candidates = all_candidates(scores)
    best = best_candidates(blocks_of(scores, 4), 6, 8, 8)
    np.testing.assert_array_equal(candidates.pairs, best.pairs)
    np.testing.assert_array_equal(candidates.scores, best.scores)
    assert len(candidates) == np.isfinite(scores).sum()
    assert len(all_candidates(np.full((3, 2), -np.inf))) == 0


def test_forbidden_pairs_are_no_candidates():
    candidates = all_candidates(np.arange(12.0).reshape(3, 4))
    left = candidates.without(np.array([[0, 3], [2, 0], [0, 3], [1, 7]]))
    assert [tuple(pair) for pair in left.pairs] == [
        (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3),
    ]  # fmt: skip
    np.testing.assert_array_equal(left.scores, left.pairs @ [4, 1])
    assert len(candidates) == 12 and len(candidates.without([])) == 12


def test_other_scores_stand_for_the_same_pairs():
    candidates = all_candidates(np.zeros((2, 2), np.float32)).with_scores([1, 2, 3, 4])
    assert candidates.scores.dtype == np.float64 and candidates.scores.tolist() == [1, 2, 3, 4]
    assert len(candidates.pairs) == 4
