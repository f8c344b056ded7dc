"""Fixtures that several tests share; what they make is in tests/factories.py."""

import os

# one thread: small products gain nothing from more, and processes that tests start do not wait for each other
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TQDM_DISABLE", "1")

import pytest

from tests.factories import posts_table, store_in_memory


@pytest.fixture
def write_posts(tmp_path):
    """rows of (author, seconds since 1970, topic, text) -> Parquet file, in the given order."""
    return lambda rows, name="posts.parquet", **options: posts_table(
        tmp_path / name, rows, **options
    )


@pytest.fixture
def make_store():
    """:func:`tests.factories.store_in_memory`."""
    return store_in_memory
