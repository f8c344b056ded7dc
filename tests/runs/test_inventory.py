"""A stage is reused only while its files and its rows of results are as it made them."""

import os
import shutil

import pandas as pd
import pytest

from helpers.core import artifacts, made, paths, results
from helpers.runs import inventory
from helpers.runs.__main__ import main
from helpers.runs.stages import stages
from tests.toy_runs import log, notebook, params

PARAMETERS = "run: str = 'demo'  # name of the run\nsize: int = 1  # how many"
START = """
import pandas as pd
from helpers.core import artifacts, paths, results
files = paths.Run(run)
"""
FILES = """
for name in ("a/1.json", "a/2.json", "b/3.json", "top.json"):
    artifacts.write_json(files.folder / name, {"size": size})
with artifacts.atomic_write(files.folder / "scratch.txt") as partial:
    partial.write_text("scratch")
(files.folder / "scratch.txt").unlink()
"""
ROWS = """
table = pd.DataFrame({"value": [size / 3], "low": 0.0, "high": 9.5}, ["MRR"])
results.record(files, table, model="m", protocol="ranking", split="test", seed=size)
"""


@pytest.fixture
def run(toy, without_kernels):
    """A finished run: 01_a makes files, 02_b and its variants Z and T record results."""
    logged = f"print(run, size, file=open({str(toy / 'log.txt')!r}, 'a'))"
    notebook(toy / "notebooks/01_a.ipynb", logged, START, FILES, parameters=PARAMETERS)
    notebook(toy / "notebooks/02_b.ipynb", logged, START, ROWS, parameters=PARAMETERS)
    params(toy, "01_a", "")
    assert main(["demo"]) == 0
    (toy / "log.txt").unlink()
    return paths.Run("demo")


def names(run, stage):
    (chosen,) = [known for known in stages(run.name) if known.name == stage]
    return chosen.lost()


def test_the_inventory_holds_what_a_stage_made_and_left(run):
    first, second, *_ = stages("demo")
    listed = inventory.take_inventory(run, first.notes_file, first.output)
    assert list(listed) == ["notebooks/01_a.ipynb"]  # no notes are left
    content = first.sidecar.read_text()
    for name in ("a/1.json", "a/2.json", "b/3.json", "top.json", "notebooks/01_a.ipynb"):
        assert f'"{name}"' in content
    assert "scratch" not in content and "results.csv" not in second.sidecar.read_text()
    assert '"[\\"m\\", \\"\\", \\"ranking\\", \\"test\\", null, 1]"' in second.sidecar.read_text()


@pytest.mark.parametrize("name", ["a/1.json", "top.json", "notebooks/01_a.ipynb"])
@pytest.mark.parametrize("change", ["delete", "flip", "flip with old times"])
def test_a_stage_whose_file_is_lost_runs_again_alone(run, toy, capsys, name, change):
    path = run.folder / name
    before = path.read_bytes()
    stat = path.stat()
    if change == "delete":
        path.unlink()
    else:
        path.write_bytes(bytes([before[0] ^ 1]) + before[1:])
    if change == "flip with old times":
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert names(run, "01_a") == [name]
    capsys.readouterr()
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert f"01_a runs again, since this is missing or has changed: {name}" in out
    assert out.count("reused") == 3 and len(log(toy)) == 1
    assert path.read_bytes() == before
    assert main(["demo"]) == 0 and len(log(toy)) == 1


def test_records_of_what_is_lost_are_removed(run):
    """Code that reuses files trusts a record beside them or above; files below are not touched."""
    spare = run.folder / "a" / inventory.SPARE
    spare.touch()
    (run.folder / "a/1.json").unlink()
    (first, *_) = stages("demo")
    assert first.prepare() == ["a/1.json"]
    left = [name for name in ("a/2.json", "b/3.json", "top.json") if (run.folder / name).exists()]
    assert left == ["b/3.json"] and spare.exists()
    assert first.lost() == ["a/1.json", "a/2.json", "top.json"]  # also where it is killed now


def test_a_training_whose_weights_are_lost_does_not_continue(run):
    entry = {"size": 1, "times": [0, 0], "sha256": "x"}
    listed = dict.fromkeys(["models/m/best.safetensors", "models/m/training.json"], entry)
    removed = inventory.files_to_remove(run, listed, ["models/m/best.safetensors"])
    assert removed == ["models/m/last.safetensors", "models/m/training.json"]
    removed = inventory.files_to_remove(run, listed, ["models/m/training.json"])
    assert removed == ["models/m/training.json"]


def test_other_work_in_the_place_of_a_file_is_left_to_the_code_that_made_it(run):
    """A training of days, for one: it is refused by name, and never removed unasked."""
    artifacts.write_json(run.folder / "a/1.json", {"size": 7})
    (first, *_) = stages("demo")
    assert first.prepare() == ["a/1.json"]
    assert artifacts.read_json(run.folder / "a/1.json") == {"size": 7}
    assert (run.folder / "a/2.json").exists()


def test_touched_and_copied_files_are_not_lost_and_read_once(run, monkeypatch, toy):
    copy = run.folder.with_name("copy")
    shutil.copytree(run.folder, copy)
    shutil.rmtree(run.folder)
    shutil.copytree(copy, run.folder)
    assert main(["demo"]) == 0
    assert log(toy) == []

    def read(*_):
        raise AssertionError("read again")

    monkeypatch.setattr(inventory, "_hash", read)
    assert all(stage.is_current for stage in stages("demo"))


def test_deleted_results_are_recorded_again(run, toy):
    before = results.read(run)
    run.results.unlink()
    assert [stage.is_current for stage in stages("demo")] == [True, False, False, False]
    assert main(["demo"]) == 0
    assert sorted(line[1] for line in log(toy)) == ["1", "8", "9"]
    assert "MRR" in (run.folder / "report.html").read_text()
    after = results.read(run)
    pd.testing.assert_frame_equal(after.sort_values("seed"), before.sort_values("seed"))


def test_a_changed_row_is_recorded_again_and_no_other(run, toy):
    text = run.results.read_text()
    (run.folder / "results.csv.sha256").unlink()  # else the whole table counts as damaged
    run.results.write_text(text.replace(repr(8 / 3), "0.5"))
    assert main(["demo"]) == 0
    assert [line[1] for line in log(toy)] == ["8"]
    assert sorted(run.results.read_text().splitlines()) == sorted(text.splitlines())
    assert (run.folder / "results.csv.sha256").exists()


@pytest.mark.parametrize("damage", ["a bit", "half of it", "a folder"])
def test_damaged_results_are_put_aside_and_recorded_again(run, toy, capsys, damage):
    before = results.read(run)
    data = run.results.read_bytes()
    if damage == "a folder":
        run.results.unlink()
        run.results.mkdir()
    elif damage == "a bit":
        run.results.write_bytes(data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])
    else:
        run.results.write_bytes(data[: len(data) // 2])
    assert main(["demo"]) == 0
    assert "results.csv is damaged: it is now results.damaged.csv" in capsys.readouterr().out
    assert len(log(toy)) == 3
    pd.testing.assert_frame_equal(results.read(run), before)


def test_a_report_says_where_results_are_missing(run, monkeypatch, capsys):
    assert "not complete" not in (run.folder / "report.html").read_text()

    def execute_and_lose(stage):
        run.results.unlink(missing_ok=True)

    monkeypatch.setattr("helpers.runs.pipeline.execute", execute_and_lose)
    assert main(["demo"]) == 0
    assert "the report is not complete: see 02_b, 02_b.T, 02_b.Z" in capsys.readouterr().out
    page = (run.folder / "report.html").read_text()
    assert "This report is not complete." in page and "make reproduce RUN=demo" in page


def test_what_another_stage_wrote_again_is_not_lost(run, toy):
    """02_b.T records the rows of 02_b again, with other values: the later ones are the run's."""
    again = ROWS.replace("seed=size", "seed=0")
    notebook(toy / "notebooks/02_b.ipynb", START, again, parameters=PARAMETERS)
    assert main(["demo"]) == 0
    assert len(results.read(run.results)) == 4
    assert all(stage.is_current for stage in stages("demo"))


def test_only_the_kernel_of_a_stage_notes(tmp_path, monkeypatch):
    monkeypatch.delenv(made.NOTES, raising=False)
    made.note(tmp_path / "x")
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv(made.NOTES, str(tmp_path / "notes"))
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    files = paths.Run("demo")
    (files.folder / "model").mkdir(parents=True)
    for name in ("demo/model/w.bin", "demo/model/last.safetensors", "demo/model/.lock", "other"):
        (tmp_path / name).write_text("x")
    book = tmp_path / "book.ipynb"
    book.write_text("")
    made.note(files.folder / "model", files.folder / "gone", tmp_path / "other")
    made.note_rows(files.results, {"[1]": "hash"})
    made.note_rows(tmp_path / "results.csv", {"[2]": "of another table"})
    listed = inventory.take_inventory(files, tmp_path / "notes", book)
    assert list(listed) == ["notebooks/book.ipynb", "model/w.bin", "[1]"]
