"""What tests of several rooms share."""

import logging
from pathlib import PurePath

import pytest

#: Files of tests/report that run in one process: they share reports, and the browser that opened them.
IN_A_BROWSER = ("test_browser", "test_what_if", "test_page", "test_charts")

#: Files that take long. They come first: one that came last would run on one process, the others idle.
LONG = (
    "test_smoke",
    "test_docs",
    "test_streaming",
    *IN_A_BROWSER,
    "test_sql",
    "test_fuzz",
)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem not in LONG)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One process per file, and one for those that need a browser."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid):
            path = nodeid.split("::", 1)[0]
            return "a browser" if PurePath(path).stem in IN_A_BROWSER else path

    return ByFile(config, log)


@pytest.fixture(scope="module")
def cluster():
    """Two workers of Dask, processes of one thread."""
    distributed = pytest.importorskip("distributed", reason="Dask's workers")
    # Another test process has a cluster too, and two dashboards at one port are worth a warning.
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    # Workers that die and tasks that fail are what is tested, not news.
    with distributed.LocalCluster(**settings, silence_logs=logging.CRITICAL) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    """The active client of that cluster, both workers at hand."""
    import distributed

    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=30)
        yield client
    cluster.scheduler.allowed_failures = 3
