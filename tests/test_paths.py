"""Names of files."""

import pytest

from helpers.runs.paths import slug


@pytest.mark.parametrize("words, name", [
    (("MLL + ARR", "cross_topic", 43), "MLL---ARR-cross-topic-43"), (("a/../b\0<x>",), "a----b--x-"),
    (("Größe 1.5",), "Größe-1-5"), (("",), ""),
])  # fmt: skip
def test_slug(words, name):
    assert slug(*words) == name
