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
    """A kind's report, parsed."""
    return cache(lambda kind: Page.read(report_of(kind)))


# a browser


def find_chromium():
    """Path of the browser: $CHROMIUM or that of the system; none is downloaded."""
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
        # In CI no test is skipped silently.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    with sync_playwright() as playwright:
        # One process for all pages keeps plotly compiled, which is most of the time of opening a page.
        options = ["--no-sandbox", "--renderer-process-limit=1", "--disable-site-isolation-trials"]
        options.append("--js-flags=--no-flush-bytecode")
        browser = playwright.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def _context_of(browser):
    """A browser context by its settings; its pages share a process, and reports store no state."""
    made = {}

    def of(**settings):
        settings = {"viewport": {"width": 1280, "height": 900}} | settings
        key = repr(sorted(settings.items()))
        if key not in made:
            made[key] = browser.new_context(offline=True, **settings)
            made[key].new_page()  # stays open: without a page, the process would end
        return made[key]

    yield of
    for context in made.values():
        context.close()


class Window:
    """A report opened from disk without a network, and its errors."""

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


#: Resets all controls to their initial state.
_AS_IT_WAS = """() => {
  const element = (id) => document.getElementById(id);
  const notify = (id, kind) => element(id).dispatchEvent(new Event(kind));
  if (element("theme").value !== "auto") {
    element("theme").value = "auto";
    notify("theme", "change");
  }
  element("everything").checked = false;
  element("exposure").value = 1;
  notify("exposure", "input");
  for (const id of ["coverage", "class"]) {
    const first = [...element(id).options].findIndex((option) => option.defaultSelected);
    element(id).selectedIndex = Math.max(first, 0);
    notify(id, "change");
  }
  element("reset").click();
  scrollTo({ top: 0, behavior: "instant" });
}"""


@pytest.fixture
def page_in_browser(_windows):
    """An example's open report in its initial state; afterwards there must be no errors."""
    used = []

    def fresh(kind):
        window = _windows(kind)
        used.append(window)
        page = window.page
        page.bring_to_front()  # a page in the background renders rarely
        page.evaluate(_AS_IT_WAS)
        return page

    yield fresh
    for window in used:
        assert window.trouble == []


@pytest.fixture
def open_report(_context_of):
    """Open a report in a new window."""
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
