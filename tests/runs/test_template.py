"""The parameters for own posts: only what is trained is named, and a small file goes through."""

import shutil

import pandas as pd
import pytest

from helpers.core import paths
from helpers.evaluation.ranking import ranking_trials
from helpers.runs.stages import read_stages
from helpers.tokens.store import open_store
from tests.factories import write_demo_csv
from tests.paper_runs import execute_here


@pytest.fixture(scope="module")
def posts(tmp_path_factory):
    path = tmp_path_factory.mktemp("posts") / "posts.csv"
    write_demo_csv(path, accounts=120, posts=4000)
    frame = pd.read_csv(path).rename(columns={"nick": "user", "written": "date"})
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def ours(posts, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))
    folder = shutil.copytree(paths.PARAMS / "template", tmp_path / "params" / "ours")
    for path in folder.glob("*.yaml"):
        path.write_text(path.read_text().replace("data/posts.csv", str(posts)))
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    return {stage.name: stage for stage in read_stages("ours")}


def test_a_small_file_goes_through(ours, monkeypatch):
    execute_here([ours["01_collect"], ours["02_tokenizer"]], monkeypatch)
    posts = ours["06_evaluate"].parameters["posts"]
    for split in ("dev", "test"):
        assert (
            len(ranking_trials(open_store(paths.Run("ours").tokens / split), posts).queries) >= 10
        )
