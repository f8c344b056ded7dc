"""The tiny training, for all tests of this room."""

import pytest

from tests.tiny_training import Setting


@pytest.fixture
def tiny(make_store):
    return Setting(make_store)
