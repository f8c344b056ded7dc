"""What holds for every source."""

import pytest

from helpers.sources import open_source


@pytest.mark.parametrize("kind", ["zulip", "pipermail", "table"])
def test_nothing_to_read_is_an_error(kind, tmp_path):
    with pytest.raises(ValueError, match="nothing to read"):
        open_source(kind, str(tmp_path))
    with pytest.raises(ValueError, match="absent"):
        open_source(kind, str(tmp_path / "absent"))
    with pytest.raises(TypeError):
        open_source(kind, str(tmp_path), unknown_option=1)
