"""Reports of the examples, each written once."""

from functools import cache

import pytest

from tests.report.examples import example
from tests.report.pages import Page


@pytest.fixture(scope="session")
def report_of(tmp_path_factory):
    """The path of a kind's report."""
    folder = tmp_path_factory.mktemp("reports")

    @cache
    def write(kind):
        case = example(kind)
        return case.model.report(folder / f"{kind}.html", case.X, case.y, **case.more)

    return write


@pytest.fixture(scope="session")
def page_of(report_of):
    """A kind's report, taken apart."""
    return cache(lambda kind: Page.read(report_of(kind)))
