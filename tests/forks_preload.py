"""What the process imports that :mod:`tests.forks` forks: all that takes long."""

import papermill  # noqa: F401
import pytest  # noqa: F401
import torch._dynamo  # noqa: F401  an optimizer imports it, which takes a second
from torch.distributed import launcher  # noqa: F401

from helpers.accounts import commands  # noqa: F401
from tests import tiny_training  # noqa: F401
from tests.faults import calls

calls.shipped()
