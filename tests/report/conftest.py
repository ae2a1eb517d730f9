"""Reports of the examples, each written once, and a browser to open them with."""

import os
import shutil
from functools import cache

import pytest
from playwright.sync_api import sync_playwright

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


# a browser


def find_chromium():
    """The browser: what CHROMIUM names, or the system's; never one that is downloaded."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window."""
    path = find_chromium()
    if path is None:
        message = (
            "no chromium was found: install it (Debian and Ubuntu: apt install chromium), or name one "
            "in the environment as CHROMIUM"
        )
        # Where everything must be tested, nothing is left out silently.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    with sync_playwright() as playwright:
        # One process for all pages keeps what it has compiled of plotly, which is most of opening one.
        options = ["--no-sandbox", "--renderer-process-limit=1", "--disable-site-isolation-trials"]
        browser = playwright.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def _context_of(browser):
    """A browser's context by its settings; pages in one share a process, and the reports keep nothing."""
    made = {}

    def of(**settings):
        settings = {"viewport": {"width": 1280, "height": 900}} | settings
        key = repr(sorted(settings.items()))
        if key not in made:
            made[key] = browser.new_context(offline=True, **settings)
        return made[key]

    yield of
    for context in made.values():
        context.close()


class Window:
    """A report opened from disk with the network off, and whatever went wrong in it."""

    def __init__(self, context, path, color_scheme="light"):
        self.page = context.new_page()
        self.page.emulate_media(color_scheme=color_scheme)
        self.trouble = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.trouble.append(f"error: {error}"))
        self.page.on("request", self._asked)
        self.page.on("dialog", self._called)
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready=true]")

    def _heard(self, message):
        if message.type in ("error", "warning"):
            self.trouble.append(f"{message.type}: {message.text}")

    def _asked(self, request):
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.trouble.append(f"asked for {request.url}")

    def _called(self, dialog):
        self.trouble.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def close(self):
        self.page.close()
        assert self.trouble == []


@pytest.fixture(scope="session")
def _windows(_context_of, report_of):
    """The examples' reports, each opened once."""
    opened = {}

    def of(kind):
        if kind not in opened:
            opened[kind] = Window(_context_of(), report_of(kind))
        return opened[kind]

    return of


#: Every choice back to what it is when a page is opened.
_AS_IT_WAS = """() => {
  const element = (id) => document.getElementById(id);
  const told = (id, kind) => element(id).dispatchEvent(new Event(kind));
  if (element("theme").value !== "auto") {
    element("theme").value = "auto";
    told("theme", "change");
  }
  element("everything").checked = false;
  element("exposure").value = 1;
  told("exposure", "input");
  for (const id of ["coverage", "class"]) {
    const first = [...element(id).options].findIndex((option) => option.defaultSelected);
    element(id).selectedIndex = Math.max(first, 0);
    told(id, "change");
  }
  element("reset").click();
  scrollTo({ top: 0, behavior: "instant" });
}"""


@pytest.fixture
def page_in_browser(_windows):
    """An example's open report, as it was when it was opened; afterwards nothing must have gone wrong."""
    used = []

    def fresh(kind):
        window = _windows(kind)
        used.append(window)
        page = window.page
        page.bring_to_front()  # a page behind another draws seldom, and is waited for
        page.evaluate(_AS_IT_WAS)
        return page

    yield fresh
    for window in used:
        assert window.trouble == []


@pytest.fixture
def open_report(_context_of):
    """Open a report in a window of its own."""
    opened = []

    def of(path, color_scheme="light", **settings):
        opened.append(Window(_context_of(**settings), path, color_scheme))
        return opened[-1].page

    yield of
    for window in opened:
        window.close()


@pytest.fixture
def drawn(page_in_browser):
    """Open a report and draw everything."""

    def of(kind):
        page = page_in_browser(kind)
        page.evaluate("lanam.drawAll()")
        return page

    return of
