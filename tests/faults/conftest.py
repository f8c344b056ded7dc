"""Tries are counted; what several modules start or compare is made once."""

import pytest

from tests.faults import processes, tries


@pytest.fixture(name="tries")
def tries_of_test(request):
    """Counts the tries of a test that has several; its defects fail it at its end."""
    request.node.tries = tries.Tries()
    return request.node.tries


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    outcome = yield
    counted = getattr(pyfuncitem, "tries", None)
    if counted:
        counted.check()
    return outcome


@pytest.fixture(scope="session")
def shared_folder(request, tmp_path_factory):
    """A folder that all processes of this test run share."""
    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):  # one process of several
        folder = folder.parent
    return folder


@pytest.fixture(scope="session")
def project(shared_folder):
    """A copy of the project with a run of four stages on a tenth of the demo."""
    return processes.copy_of_project(shared_folder)
