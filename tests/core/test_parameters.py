"""Every way a notebook's parameters can be wrong, settings of a Config, and files of parameters."""

import math
from typing import Optional

import pytest
from pydantic import Field

from helpers.core import paths
from helpers.core.parameters import Config, check, start
from helpers.runs.stages import _read_parameters

DECLARED = {"run": str, "steps": int, "lr": float, "overlap": bool, "sizes": list[int]}
DECLARED |= {"losses": list[str], "window": str | None, "limit": Optional[int], "extra": dict}
GOOD = {"run": "demo", "steps": 5, "lr": 0.1, "overlap": True, "sizes": [1, 2]}
GOOD |= {"losses": ["topk"], "window": None, "limit": 3, "extra": {}}


def notebook(**changed):
    of_kernel = {"__name__": "__main__", "_private": 1, "In": [], "exit": "x", "math": math}
    return {"__annotations__": DECLARED, **of_kernel, **GOOD, **changed}


def test_good_parameters_come_back_in_their_order():
    settings = check(notebook())
    assert settings == GOOD and list(settings) == list(DECLARED)


@pytest.mark.parametrize("text, value", [("false", False), ("true", True)])
def test_papermill_hands_truth_over_as_text(text, value):
    assert check(notebook(overlap=text))["overlap"] is value
    assert check(notebook(window=text))["window"] == text, "text stays text where it is declared"


def test_every_wrong_parameter_is_named_in_one_line():
    with pytest.raises(ValueError) as error:
        check(notebook(steps="5", lr=3, sizes=["a", "b"], losses="[topk]"), lr=(0, 1))
    message = str(error.value)
    assert all(f"parameter '{name}'" in message for name in ("steps", "lr", "sizes", "losses"))
    assert len(message.splitlines()) == 1
    with pytest.raises(ValueError, match="unknown parameter 'stepps'.*valid: extra, limit, .*"):
        check(notebook(stepps=3))


def test_choices_bounds_and_lists():
    allowed = ["prefix", "random"]
    assert check(notebook(window="random"), window=allowed)["window"] == "random"
    assert check(notebook(window=None), window=allowed)["window"] is None, "left open"
    for value in (0, 0.5, 1):
        assert check(notebook(lr=value), lr=(0, 1))["lr"] == value
    assert check(notebook(sizes=[]), ["extra", "sizes"], extra=["a"])["sizes"] == []
    for wrong, limits, message in (
        ({"window": "suffix"}, {"window": allowed}, "'window' must be one of .*, not 'suffix'"),
        ({"lr": -0.001}, {"lr": (0, 1)}, r"'lr' must lie in 0\.\.1"),
        ({"lr": 1.001}, {"lr": (0, 1)}, r"'lr' must lie in 0\.\.1"),
        ({"lr": math.nan}, {"lr": (0, 1)}, "Input should be a finite number"),
        ({"sizes": [1, 17]}, {"sizes": (1, 16)}, "'sizes' must lie in 1..16, not 17"),
        ({"sizes": []}, {}, "'sizes' must not be empty"),
        ({}, {"extra": ["a"]}, "'extra' must not be empty"),
    ):
        with pytest.raises(ValueError, match=message):
            check(notebook(**wrong), **limits)


class Inner(Config):
    min_posts: int = Field(1, ge=1)


class Outer(Config):
    name: str = "x"
    lr: float = 0.1
    inner: Inner = Inner()


class TestConfig:
    def test_a_dict_of_settings(self):
        assert Outer.of({"inner": {"min_posts": 3}}) == Outer(inner=Inner(min_posts=3))
        assert Outer().fingerprint == Outer.of({}).fingerprint != Outer(name="y").fingerprint

    @pytest.mark.parametrize(
        "settings, message",
        [
            ({"nam": 1}, "unknown setting 'nam' (did you mean 'name'?); valid: inner, lr, name"),
            ({"inner": {"min_posts": 0}}, "'inner.min_posts' is 0: Input should be greater"),
            ({"lr": "1.0e6"}, "'lr' is '1.0e6': Input should be a valid number (in YAML write"),
        ],
    )
    def test_what_is_wrong_is_said_in_one_line(self, settings, message):
        with pytest.raises(ValueError) as error:
            Outer.of(settings, "outer")
        assert str(error.value).startswith(f"outer: {message}")


BAD_FILES = {
    "levels": ("[" * 1100 + "]" * 1100, "is not valid YAML: maximum recursion"),
    "a call": ("a: !!python/object/apply:os.system [exit]", "is not valid YAML: could not"),
    "a control character": ("a: \x01", "is not valid YAML: unacceptable character"),
    "no UTF-8": ("a: \udcff", "is not valid YAML: unacceptable character #x00ff"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_bad_file_is_refused_in_one_line_by_its_name(tmp_path, kind):
    text, message = BAD_FILES[kind]
    path = tmp_path / "01_a.yaml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=f"^params/demo/01_a.yaml {message}") as caught:
        _read_parameters(path, "params/demo/01_a.yaml", [])
    assert "\n" not in str(caught.value)


def test_a_notebook_starts_with_checked_parameters_and_the_paths_of_its_run():
    namespace = {"__annotations__": {"run": str, "posts": int}, "run": "demo", "posts": 3}
    assert start(namespace, posts=(1, 5)) == paths.Run("demo")
    with pytest.raises(ValueError, match="parameter 'posts' must"):
        start(namespace, posts=(4, 5))
    with pytest.raises(ValueError, match="parameter 'run' .* use letters"):
        start(namespace | {"run": "../demo"})
