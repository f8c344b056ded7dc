"""Every way a notebook's parameters can be wrong, and the folders of a run."""

import math
from typing import Optional

import pytest

from helpers.runs import paths
from helpers.runs.parameters import check, check_entries, check_filled, unknown

DECLARED = {
    "run": str, "steps": int, "lr": float, "overlap": bool, "sizes": list[int], "losses": list[str],
    "window": str | None, "limit": Optional[int], "extra": dict,
}  # fmt: skip
GOOD = {"run": "demo", "steps": 5, "lr": 0.1, "overlap": True, "sizes": [1, 2], "losses": [], "window": None, "limit": 3, "extra": {}}  # fmt: skip


def notebook(**changed):
    return {"__annotations__": DECLARED, "__name__": "__main__", "_private": 1, "In": [], "Out": {}, "exit": "x", "math": math, **GOOD, **changed}  # fmt: skip


def test_good_parameters_come_back_in_their_order():
    settings = check(notebook())
    assert settings == GOOD and list(settings) == list(DECLARED)


def test_a_whole_number_serves_as_a_float():
    lr = check(notebook(lr=1))["lr"]
    assert type(lr) is float and lr == 1.0


@pytest.mark.parametrize("name", ["stepps", "Steps", "seed"])
def test_unknown_name(name):
    with pytest.raises(ValueError, match=f"unknown parameter '{name}'.*valid: extra, limit, .*steps, window$"):
        check(notebook(**{name: 3}))


def test_the_nearest_name_is_named():
    with pytest.raises(ValueError, match="did you mean 'steps'"):
        check(notebook(stepps=3))


def test_imports_functions_and_private_names_are_no_parameters():
    assert check(notebook(pytest=pytest, helper=lambda: 1, Path=paths.Path, _x=3, __y=4)) == GOOD


@pytest.mark.parametrize(
    "name, value",
    [("overlap", "false"), ("overlap", 1), ("steps", True), ("steps", 5.0), ("steps", "5"), ("lr", "0.1"), ("lr", True),
     ("run", 5), ("run", None), ("sizes", 3), ("sizes", ["1"]), ("sizes", [1, True]), ("sizes", (1, 2)),
     ("losses", "topk"), ("window", 3), ("limit", "3"), ("extra", [])],
)  # fmt: skip
def test_wrong_type(name, value):
    with pytest.raises(TypeError, match=f"parameter '{name}' must be .*not {type(value).__name__}"):
        check(notebook(**{name: value}))


def test_a_type_is_named_as_it_was_written():
    with pytest.raises(TypeError, match=r"must be list\[int\], not str 'x'"):
        check(notebook(sizes="x"))
    with pytest.raises(TypeError, match=r"must be str \| None, not int 3"):
        check(notebook(window=3))


class TestValues:
    @pytest.mark.parametrize("allowed", [["prefix", "random"], {"prefix", "random"}, {"prefix": 1, "random": 2}], ids=["list", "set", "dict"])  # fmt: skip
    def test_choices(self, allowed):
        assert check(notebook(window="random"), window=allowed)["window"] == "random"
        assert check(notebook(window=None), window=allowed)["window"] is None, "left open"
        with pytest.raises(ValueError, match="parameter 'window' must be one of .*prefix.*, not 'suffix'"):
            check(notebook(window="suffix"), window=allowed)

    def test_bounds(self):
        for value in (0, 0.5, 1):
            assert check(notebook(lr=value), lr=(0, 1))["lr"] == value
        for value in (-0.001, 1.001, math.inf, math.nan):
            with pytest.raises(ValueError, match=r"parameter 'lr' must lie in 0\.\.1"):
                check(notebook(lr=value), lr=(0, 1))

    def test_lists_element_by_element(self):
        assert check(notebook(sizes=[1, 16]), sizes=(1, 16))["sizes"] == [1, 16]
        with pytest.raises(ValueError, match="'sizes' must lie in 1..16, not 17"):
            check(notebook(sizes=[1, 17]), sizes=(1, 16))
        with pytest.raises(ValueError, match="'losses' must be one of topk, supcon, not 'arcface'"):
            check(notebook(losses=["topk", "arcface"]), losses=["topk", "supcon"])

    def test_a_rule_for_a_name_that_is_not_declared(self):
        with pytest.raises(ValueError, match=r"unknown name in check\(\) 'step'.*did you mean 'steps'"):
            check(notebook(), step=(1, 2))


def test_unknown():
    assert unknown(["a"], ["a", "b"]) is None
    assert unknown(["zzz", "yyy"], ["b", "a"], "thing") == "unknown thing 'yyy', 'zzz'; valid: a, b"


class TestPaths:
    @pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "-rf", "a b", "a\n", "/abs", "ü", ".."])
    def test_a_run_cannot_leave_the_outputs(self, name):
        with pytest.raises(ValueError, match="use letters, digits"):
            paths.Run(name)

    def test_a_run_is_below_the_outputs_and_naming_it_makes_nothing(self, tmp_path, monkeypatch):
        monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
        monkeypatch.chdir("/")
        run = paths.Run("khan-2021_v1.2")
        places = [getattr(run, name) for name in vars(type(run)) if isinstance(getattr(type(run), name), property)]
        assert run.folder == tmp_path / "khan-2021_v1.2"
        assert len(set(places)) == len(places)
        assert all(place == run.folder or run.folder in place.parents for place in places)
        assert not list(tmp_path.iterdir())

    def test_without_the_variable_they_are_beside_the_package(self, monkeypatch):
        monkeypatch.delenv("AUTHORBOOK_OUTPUTS", raising=False)
        assert paths.outputs() == paths.ROOT / "outputs"
        monkeypatch.setenv("AUTHORBOOK_OUTPUTS", "")
        assert paths.outputs() == paths.ROOT / "outputs"

    def test_a_users_path(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        assert paths.resolve("data/x.csv") == paths.ROOT / "data" / "x.csv"
        assert paths.resolve(tmp_path / "x") == tmp_path / "x"
        assert paths.resolve("~/x") == tmp_path / "x"


def test_entries_of_a_dict_are_arguments_of_whom_they_are_for():
    def draw(store, sizes="beta", overlap=True):
        pass

    settings = {"sizes": "beta", "more": {"overlap": False}}
    check_entries(settings, {"more": draw})
    with pytest.raises(ValueError, match="unknown entry of 'more' 'overlp' .did you mean 'overlap'"):
        check_entries(settings | {"more": {"overlp": False}}, {"more": draw})
    with pytest.raises(ValueError, match="unknown entry of 'more' 'sizes'"):  # a parameter of the notebook's own
        check_entries(settings | {"more": {"sizes": "uniform"}}, {"more": draw})
    with pytest.raises(ValueError, match="unknown entry of 'more' 'store'"):  # what the notebook gives itself
        check_entries(settings | {"more": {"store": 1}}, {"more": draw}, given=("store",))


@pytest.mark.parametrize("value", [[], {}, {"lr": [0.1], "steps": []}], ids=repr)
def test_nothing_to_do_is_said_beforehand(value):
    check_filled({"seeds": [0], "grid": {"lr": [1.0]}, "more": []}, "seeds", "grid")
    with pytest.raises(ValueError, match="parameter 'seeds' is empty or holds an empty list"):
        check_filled({"seeds": value}, "seeds")
