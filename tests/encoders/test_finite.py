"""The test for NaN and infinity, against PyTorch's own for each value."""

import pytest
import torch

from helpers.encoders.base import all_finite

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.uint16, torch.int64)


@pytest.mark.parametrize("wrong", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("place", [0, 500, -1])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_value_that_is_not_finite_is_found(wrong, place, dtype):
    tensor = torch.randn(7, 143, generator=torch.Generator().manual_seed(0)).to(dtype)
    assert all_finite(tensor) and tensor.isfinite().all()
    tensor.view(-1)[place] = float(wrong)
    assert not all_finite(tensor) and not tensor.isfinite().all()


@pytest.mark.parametrize("shape", [(), (0,), (5, 0)])
@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_one_value_or_none(shape, dtype):
    assert all_finite(torch.ones(shape).to(dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_finite(dtype):
    assert all_finite(torch.ones(3).to(dtype))
