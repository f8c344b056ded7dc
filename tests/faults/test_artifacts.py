"""Any one artifact is deleted or cut: the same command ends as if nothing had happened.

The run has four small notebooks that make files and results through the functions of the library.
`make test` breaks some of what it made, `make torture` everything.
"""

import pytest

from helpers.core import paths
from helpers.runs.__main__ import main
from helpers.runs.stages import read_stages
from tests.faults import comparison
from tests.toy_runs import notebook, use_no_processes

IMPORTS = """
from helpers.core import paths
from helpers.corpus.posts_table import join_posts
from helpers.runs.stages import ensure
from tests.faults import calls

files = paths.Run(run)
"""
TOKENS = """
ensure(run, "01_collect", files.posts / "split.json")
calls.tokens(files)
"""
TRAIN = """
ensure(run, "02_tokens", files.tokens / "dev/store.json")
calls.training(files)
"""
JOIN = """
ensure(run, "01_collect", files.posts / "split.json")
join_posts(files.posts / "test.parquet", files.folder / "documents/test.parquet", min_chars=100)
"""
CELLS = {
    "01_collect": "calls.splits(files)",
    "02_tokens": TOKENS,
    "03_train": TRAIN,
    "04_join": JOIN,
}
QUICK = {
    "posts/train.parquet": "deleted",
    "tokenizer/tokenizer.model": "deleted",
    "tokens/train/tokens.u16": "cut",
    "models/TP-tiny/best.safetensors": "deleted",
    "results.csv": "deleted",
    "notebooks/02_tokens.ipynb": "flipped",
    "notebooks/03_train.json": "cut",
}


def use_toy_project(patch, folder):
    """Make the commands of a test use the notebooks and parameters of a folder, without kernels."""
    use_no_processes(patch)
    patch.setattr(paths, "NOTEBOOKS", folder / "notebooks")
    patch.setattr(paths, "PARAMS", folder / "params")
    patch.setenv("AUTHORBOOK_OUTPUTS", str(folder / "outputs"))


@pytest.fixture(scope="module")
def finished_toy_run(tmp_path_factory):
    """The folder of the project with the finished run, and what the run has made."""
    folder = tmp_path_factory.mktemp("artifacts")
    for name in ("notebooks", "params/toy"):
        (folder / name).mkdir(parents=True)
    for name, cell in CELLS.items():
        declared = "run: str = 'toy'  # name of the run"
        notebook(folder / f"notebooks/{name}.ipynb", IMPORTS, cell, parameters=declared)
        (folder / f"params/toy/{name}.yaml").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        use_toy_project(patch, folder)
        assert main(["toy"]) == 0
    return folder, comparison.contents(folder / "outputs/toy")


@pytest.fixture
def toy_run(finished_toy_run, monkeypatch):
    """The folder of the finished run, and what it has made; its project is that of this test."""
    folder, made = finished_toy_run
    use_toy_project(monkeypatch, folder)
    return folder / "outputs/toy", made


def break_file(path, fault):
    """Delete a file, cut off its last byte, or flip a bit in its middle."""
    data = bytearray(path.read_bytes())
    path.unlink()
    if fault == "cut":
        path.write_bytes(data[:-1])
    if fault == "flipped":
        data[len(data) // 2] ^= 4
        path.write_bytes(data)


@pytest.mark.parametrize("name", QUICK)
def test_the_same_command_makes_what_is_lost_again(toy_run, name):
    folder, made = toy_run
    break_file(folder / name, QUICK[name])
    assert main(["toy"]) == 0
    assert comparison.differences(made, comparison.contents(folder)) == []
    assert all(stage.is_current for stage in read_stages("toy"))


@pytest.mark.torture
def test_whatever_is_deleted_is_made_again(toy_run):
    folder, made = toy_run
    files = [path for path in folder.rglob("[!.]*") if path.is_file()]
    wrong = {}
    for path in files:
        break_file(path, "deleted")
        code = main(["toy"])
        wrong[path] = (code, comparison.differences(made, comparison.contents(folder)))
    assert wrong == dict.fromkeys(files, (0, []))
