"""Properties of answers that hold for whatever is drawn: probabilities, ranks, evidence."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.accounts import reading
from helpers.accounts.gallery import LINK_COSTS, NOBODY
from helpers.accounts.signs import contributions
from helpers.core.paths import Run
from helpers.evaluation.detection import DetectionCosts
from helpers.evaluation.models import Embeddings
from helpers.evaluation.scores import GRID
from tests.factories import write_demo_csv
from tests.faults import calls

# of what takes longer: few examples in `make test`, in `make torture` as many as of all
QUICK_EXAMPLES = 25
SLOW = settings()
if settings.default.max_examples == QUICK_EXAMPLES:
    SLOW = settings(max_examples=5)


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    """Forty invented accounts, one of whom came back as newcomer; enough for s-norm."""
    folder = tmp_path_factory.mktemp("gallery")
    write_demo_csv(folder / "own.csv", evader="demo-0003", accounts=40, posts=1200)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTHORBOOK_OUTPUTS", str(folder / "outputs"))
        own = reading.read_posts(Run("own"), str(folder / "own.csv"), calls.shipped(), None, False)
    return own.gallery()


def reordered(gallery, order):
    """Return a gallery of the same accounts, or of some of them, in another order."""
    return replace(
        gallery,
        targets=gallery.targets[order],
        names=gallery.names[order],
        embeddings=Embeddings(),
    )


accounts = st.lists(st.integers(0, 39), min_size=2, max_size=40, unique=True)
costs = st.builds(
    DetectionCosts,
    prior=st.floats(1e-6, 1 - 1e-6),
    false_accept=st.floats(1e-3, 1e6),
)


@SLOW
@given(chosen=accounts, costs=costs, k=st.integers(1, 50), beyond=st.integers(0, 10**6))
def test_probabilities_of_an_answer_sum_to_one(gallery, chosen, costs, k, beyond):
    small = replace(reordered(gallery, chosen), beyond=beyond)
    queries = list(small.names[:2])
    samples = small.accounts(queries)  # one object, so that it is embedded once
    answers = small.rank(samples, queries, len(small), costs)
    assert answers.probability.between(0, 1).all()
    np.testing.assert_allclose(answers.groupby("query").probability.sum(), 1, atol=1e-9)
    few = small.rank(samples, queries, k, costs)
    assert (few.groupby("query").probability.sum() <= 1 + 1e-9).all()
    nobody = answers[answers.target == NOBODY].probability.to_numpy()
    np.testing.assert_allclose(few[few.target == NOBODY].probability, nobody, atol=1e-12)


# How far a score may differ between a query that is asked alone and one among others: a raw score
# may be rounded to a neighbouring multiple of 1 / GRID, and both normalisations multiply this, by
# 10 to 100 in these galleries.
SCORE_LIMIT = 100 / GRID


def ratio_limit(gallery):
    """Return how far the log-likelihood ratios of scores that differ by SCORE_LIMIT may differ.

    It is twice what the steepest line of the calibration makes of it: in a small gallery the mean
    ratio, which is lowered to at most 1, moves too.
    """
    calibration = gallery.use.calibration
    slope = abs(calibration.weights[0])
    if len(calibration.weights) > 1:
        query_posts, target_posts = np.array(list(product([4, 32], repeat=2))).T
        of_zero = calibration.llr(np.zeros(4), query_posts, target_posts)
        of_one = calibration.llr(np.ones(4), query_posts, target_posts)
        slope = abs(of_one - of_zero).max()
    return 2 * SCORE_LIMIT * slope


def check_order(values, most_rise):
    """No value is followed by one that is clearly higher."""
    values = values.to_numpy()
    highest_after = np.maximum.accumulate(values[::-1])[::-1]
    assert (highest_after - values).max() <= most_rise, values


def check_answers(gallery, answers, wanted):
    """Compare two answers about the same queries, each with all accounts of a gallery.

    Scores may differ by SCORE_LIMIT, and ratios and probabilities by what follows from it. Accounts
    whose values are clearly different have the same order.
    """
    limit = ratio_limit(gallery)
    suffixes = ("", "_wanted")
    both = answers.merge(wanted, on=["query", "target"], suffixes=suffixes, validate="1:1")
    assert len(both) == len(answers) == len(wanted)
    assert (both.probability - both.probability_wanted).abs().max() <= limit
    is_sure = (both.probability_wanted - LINK_COSTS.min_probability).abs() > limit
    assert (both.linked == both.linked_wanted)[is_sure].all()
    ranked = both[both.target != NOBODY].sort_values(["query", "rank"])
    assert (ranked.score - ranked.score_wanted).abs().max() <= SCORE_LIMIT
    assert (ranked.llr - ranked.llr_wanted).abs().max() <= limit
    for _, of_query in ranked.groupby("query"):
        check_order(of_query.llr_wanted, 2 * limit)
        for _, tied in of_query.groupby(["llr", "llr_wanted"]):
            check_order(tied.score_wanted, 2 * SCORE_LIMIT)


@SLOW
@given(chosen=accounts, order=st.randoms(use_true_random=False), threads=st.sampled_from([1, 2, 3]))
def test_ranks_do_not_depend_on_order_batch_or_threads(gallery, chosen, order, threads):
    small = reordered(gallery, chosen)
    queries = sorted(small.names)[:2]
    expected = small.rank(small.accounts(queries), queries, len(small))
    others = list(range(len(small)))
    order.shuffle(others)
    order.shuffle(queries)
    mixed = reordered(small, others)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        whole = mixed.rank(mixed.accounts(queries), queries, len(small))
        single = mixed.rank(mixed.accounts(queries[:1]), queries[:1], len(small))
    finally:
        torch.set_num_threads(before)
    check_answers(small, whole, expected)
    check_answers(small, single, expected[expected["query"] == queries[0]])


# a gallery takes half a second, a target a tenth of it: each gallery is asked about five of them
TARGETS = 5
FIFTH = settings(max_examples=max(2, SLOW.max_examples // TARGETS))


@FIFTH
@given(
    chosen=accounts,
    place=st.integers(0, 39),
    targets=st.lists(st.integers(0, 39), min_size=TARGETS, max_size=TARGETS),
    own=st.booleans(),
)
def test_evidence_sums_to_its_score(gallery, chosen, place, targets, own):
    """Of a query that is asked alone, and of one among others."""
    small = reordered(gallery, chosen)
    names = list(small.names)
    query = names[place % len(names)] if own else gallery.names[place]
    name = query if query in names else ""
    asked = [name or "a stranger", *[other for other in names[:2] if other != query]]
    sample = gallery.accounts([query])
    alone = small.rank(sample, asked[:1], len(small)).set_index("target").score
    answers = small.rank(gallery.accounts([query, *asked[1:]]), asked, len(small))
    among = answers[answers["query"] == asked[0]].set_index("target").score
    for number in targets:
        target = names[number % len(names)]
        if target == query:
            continue
        total = contributions(small, sample, target, name).contribution.sum()
        assert abs(total - alone[target]) <= 1e-3, f"{total - alone[target]:.2g}"
        assert abs(total - among[target]) <= 1e-3, f"{total - among[target]:.2g}"
