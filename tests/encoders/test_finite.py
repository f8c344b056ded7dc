"""The fast test for NaN and infinity, against PyTorch's own for each value."""

import pytest
import torch

from helpers.encoders.base import all_finite


@pytest.mark.parametrize("wrong", [None, "nan", "inf", "-inf"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (1000, 33), (0,), (5, 0)])
def test_all_finite_says_what_isfinite_says(shape, wrong):
    tensor = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    if wrong and tensor.numel():
        tensor.view(-1)[-1] = float(wrong)
    assert all_finite(tensor) is bool(tensor.isfinite().all())


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.int8, torch.int64, torch.float16, torch.bfloat16]
)
def test_all_finite_takes_every_type_of_weights(dtype):
    assert all_finite(torch.ones(3).to(dtype))
