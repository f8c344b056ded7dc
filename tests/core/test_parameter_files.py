"""Files of parameters: every attack gets a sentence with the file's name, and at once."""

import time
from textwrap import indent

import pytest
import yaml

from helpers.core import paths
from helpers.core.errors import FileError
from helpers.core.parameter_files import read_parameter_file

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n"
for letter, before in zip("bcdefghij", "abcdefghi"):
    BOMB += f"{letter}: &{letter} [{', '.join([f'*{before}'] * 9)}]\n"
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 3000))
ATTACKS = {
    "an alias bomb": ("options:\n" + indent(BOMB, "  "), "more than 10,000 values"),
    "levels": ("[" * 3000 + "]" * 3000, "or 20 levels"),
    "levels of aliases": (CHAIN, "or 20 levels"),
    "levels of blocks": ("- " * 3000, "or 20 levels"),
    "many values": (f"a: [{'1,' * 40_000}]", "more than 10,000 values"),
    "an alias of itself": ("a: &a [*a]", r"alias \*a of nothing before it"),
    "an alias of nothing": ("a: *b", r"alias \*b of nothing before it"),
    "a long file": ("a: " + "x" * 100_000, "more than 100,000 bytes"),
    "a long integer": ("seed: " + "1" * 5000, "an integer has more than 4,300 digits"),
    "a long hexadecimal": ("seed: 0x" + "f" * 50_000, "an integer has more than 4,300 digits"),
    "a long sexagesimal": ("seed: 1" + ":59" * 3000, "an integer has more than 4,300 digits"),
    "no date": ("a: 2001-99-99", "is not valid YAML: month must be in 1..12"),
    "a call": ("a: !!python/object/apply:os.system [exit]", "is not valid YAML: could not"),
    "an unhashable key": ("? [a]\n: 1", "is not valid YAML: while constructing"),
    "a control character": ("a: \x01", "is not valid YAML: unacceptable character"),
    "no UTF-8": ("a: \udcff", "is not valid YAML: 'utf-8' codec"),
    "half a list": ("a: [1", "is not valid YAML: while parsing"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused_at_once_by_the_files_name(tmp_path, attack):
    text, message = ATTACKS[attack]
    path = tmp_path / "01_a.yaml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    began = time.perf_counter()
    with pytest.raises(FileError, match=f"^params/demo/01_a.yaml .*{message}") as caught:
        read_parameter_file(path, "params/demo/01_a.yaml")
    assert time.perf_counter() - began < 5 and "\n" not in str(caught.value)


def test_a_file_that_is_none_is_named(tmp_path):
    with pytest.raises(FileError, match=f"{tmp_path} is a folder"):
        read_parameter_file(tmp_path)
    with pytest.raises(FileError, match="x.yaml is missing"):
        read_parameter_file(tmp_path / "x.yaml")


@pytest.mark.parametrize("run", sorted(path.name for path in paths.PARAMS.iterdir()))
def test_the_files_of_all_runs_are_read_as_yaml_reads_them(run):
    for path in (paths.PARAMS / run).glob("*.yaml"):
        assert read_parameter_file(path) == yaml.safe_load(path.read_text("utf-8")), path


def test_aliases_are_what_they_stand_for(tmp_path):
    (tmp_path / "x").write_text("a: &a {b: 1}\nc: *a\nd: {<<: *a, e: [*a, *a]}\n")
    one = {"b": 1}
    assert read_parameter_file(tmp_path / "x") == {"a": one, "c": one, "d": one | {"e": [one, one]}}
