"""Fixtures that several tests share; what they make is in tests/factories.py."""

import os

# one thread: small products gain nothing from more, and processes of tests do not wait for others
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TQDM_DISABLE", "1")

import pytest
from hypothesis import HealthCheck, Phase, settings

from helpers.core import paths
from tests.factories import posts_table, store_in_memory
from tests.toy_runs import notebook, use_no_processes

# the same examples in every run of `make test`; `make torture` looks for new ones
# a folder of the test may be used by all its examples; a machine that is busy is no failure
CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
PHASES = [Phase.explicit, Phase.generate]  # to make a failing example smaller takes minutes
EVERYWHERE = {"deadline": None, "database": None, "suppress_health_check": CHECKS}
EVERYWHERE["phases"] = PHASES
settings.register_profile("quick", max_examples=25, derandomize=True, **EVERYWHERE)
settings.register_profile("torture", max_examples=1000, **EVERYWHERE)


def pytest_addoption(parser):
    parser.addoption("--torture", action="store_true", help="also run what takes too long")


def pytest_configure(config):
    settings.load_profile("torture" if config.getoption("--torture") else "quick")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--torture"):
        return
    for item in items:
        if item.get_closest_marker("torture"):  # keywords hold names of folders, too
            item.add_marker(pytest.mark.skip(reason="make torture runs it"))


@pytest.fixture
def write_posts(tmp_path):
    """rows of (author, seconds since 1970, topic, text) -> Parquet file, in the given order."""

    def write(rows, name="posts.parquet", **options):
        return posts_table(tmp_path / name, rows, **options)

    return write


@pytest.fixture
def make_store():
    return store_in_memory


@pytest.fixture
def without_kernels(monkeypatch):
    """Stages run in this process: for what depends neither on a kernel nor on processes."""
    use_no_processes(monkeypatch)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Two notebooks and a run with one variant; each execution adds a line to log.txt."""
    for name in ("notebooks", "params/demo", "outputs"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))
    log_file = str(tmp_path / "log.txt")
    log = f"with open({log_file!r}, 'a') as file:\n    print(run, size, os.getcwd(), file=file)"
    notebook(tmp_path / "notebooks/01_a.ipynb", "import os\n" + log, "print(size)")
    notebook(tmp_path / "notebooks/02_b.ipynb", ("# Second",), "import os\n" + log)
    values = {
        "01_a": "size: 3\noptions: {x: 1}",
        "02_b": "",
        "02_b.Z": "size: 9",
        "02_b.T": "size: 8",
    }
    for name, text in values.items():
        (tmp_path / f"params/demo/{name}.yaml").write_text(text)
    return tmp_path
