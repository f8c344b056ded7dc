"""The folders of a run and names of files."""

import platformdirs
import pytest

from helpers.core import paths
from helpers.core.paths import checked_name, slug


def test_slug():
    assert slug("MLL + ARR", "cross_topic", 43) == "MLL---ARR-cross-topic-43"
    assert slug("a/../b\0<x> ß") == "a----b--x--ß"


class TestPaths:
    @pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "-rf", "a b", "a\n", "a" * 101])
    def test_a_name_cannot_leave_its_folder(self, name):
        with pytest.raises(ValueError, match="run .*: use letters, digits"):
            paths.Run(name)
        with pytest.raises(ValueError, match="model .*: use letters, digits"):
            checked_name("model", name)

    def test_a_run_is_below_the_outputs_and_naming_it_makes_nothing(self, tmp_path, monkeypatch):
        monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
        monkeypatch.chdir("/")
        run = paths.Run("khan-2021_v1.2")
        places = [
            getattr(run, name)
            for name in vars(type(run))
            if isinstance(getattr(type(run), name), property)
        ]
        assert run.folder == tmp_path / "khan-2021_v1.2"
        assert len(set(places)) == len(places)
        assert all(place == run.folder or run.folder in place.parents for place in places)
        assert not list(tmp_path.iterdir())
        monkeypatch.setenv("AUTHORBOOK_OUTPUTS", "")
        assert paths.outputs() == paths.ROOT / "outputs"

    def test_where_it_is_installed_the_users_folders_count(self, tmp_path, monkeypatch):
        monkeypatch.setattr(paths, "ROOT", None)
        monkeypatch.delenv("AUTHORBOOK_OUTPUTS", raising=False)
        monkeypatch.chdir(tmp_path)
        user_folder = platformdirs.user_data_path("authorbook", appauthor=False)
        assert paths.outputs() == user_folder / "outputs"
        assert paths.resolve("x.csv") == tmp_path / "x.csv"
        assert paths.display_path(tmp_path / "x.csv") == str(tmp_path / "x.csv")
        assert paths.display_path(paths.PACKAGE) == str(paths.PACKAGE)
        with pytest.raises(ValueError, match="^the notebooks .* get the repository"):
            paths.check_checkout()
        monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
        assert paths.outputs() == tmp_path
