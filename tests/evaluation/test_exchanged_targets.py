"""A gallery in which a few targets are exchanged, beside one that is made of the new targets."""

import numpy as np
import pytest
from scipy import sparse

from helpers.evaluation.models import Member
from helpers.evaluation.scores import as_rows
from tests.factories import LookUp, one_token_samples, unit_rows

COUNT = 60
SAMPLES = one_token_samples(np.arange(COUNT))
COLUMNS = np.array([41, 3])  # of the targets that are exchanged
ORDER = np.append(np.setdiff1d(np.arange(COUNT), COLUMNS), COLUMNS)
REFERENCE = np.arange(COUNT) % 3 > 0  # 41 is one of them, 3 is none
NORMALISERS = {
    "none": {"normaliser": "none"},
    "s-norm": {"normaliser": "s_norm", "reference": REFERENCE},
    "AS-norm": {"normaliser": "as_norm", "reference": REFERENCE},
    "cohort": {"normaliser": "as_norm", "cohort": SAMPLES[:20]},
}


def gallery(rows, options):
    return Member("a", LookUp(rows), **options).gallery(SAMPLES, 1)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", NORMALISERS)
def test_new_targets_have_the_statistics_of_a_gallery_made_of_all(name, kind):
    options = NORMALISERS[name]
    rows = unit_rows(COUNT, 8, seed=5)
    new_rows = unit_rows(2, 8, seed=6)
    old = gallery(kind(rows), options)
    exchanged = old.exchanged(COLUMNS, as_rows(kind(new_rows)))

    all_rows = np.vstack([rows[ORDER[:-2]], new_rows])
    exact_options = dict(options)
    if "reference" in options:
        exact_options["reference"] = REFERENCE[ORDER]
    if "cohort" in options:  # rows of a cohort are looked up by the same numbers
        exact_options["cohort"] = SAMPLES[np.argsort(ORDER)[:20]]
        all_rows = np.vstack([rows[ORDER[:-2]], rows[COLUMNS]])
        exchanged = old.exchanged(COLUMNS, as_rows(kind(rows[COLUMNS])))
    exact = gallery(kind(all_rows), exact_options)
    assert abs(exchanged.rows - exact.rows).max() == 0
    if name == "none":
        assert exchanged.of_targets == ()
        return
    assert np.array_equal(exchanged.of_targets[0][:, :-2], old.of_targets[0][:, ORDER[:-2]])
    assert np.allclose(exchanged.of_targets[0][:, -2:], exact.of_targets[0][:, -2:], atol=1e-6)
    if name == "AS-norm":
        near = exchanged.of_targets[1][:, -2:]
        assert np.array_equal(exchanged.of_targets[1][:, :-2], old.of_targets[1][:, ORDER[:-2]])
        assert np.allclose(near, exact.of_targets[1][:, -2:], atol=0.1)
        assert not np.allclose(near, old.of_targets[1][:, COLUMNS], atol=0.1)
