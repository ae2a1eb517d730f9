"""The documentation's examples run as they are printed, and the pages name what there is."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import is_regressor

import lanam
import lanam.explain
from lanam import LANAMClassifier, LANAMRegressor
from lanam.parameters import PAPER, PARAMETERS

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs" / "hooks"))

import results  # noqa: E402
from blocks import python_blocks, run_page  # noqa: E402

PAGES = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if python_blocks(path)),
]


def test_there_are_pages():
    names = {page.name for page in PAGES}
    assert {"README.md", "tutorial.md", "gallery.md", "uncertainty.md", "calibration.md"} <= names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    run_page(page, tmp_path)


README = (ROOT / "README.md").read_text(encoding="utf-8")


def prose(text: str) -> str:
    """A page without code, links' targets and tables."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!-- results.*?end of results -->", "", text, flags=re.DOTALL)
    return re.sub(r"\]\([^)]*\)|`[^`]*`", "", text)


def test_the_readmes_table_is_that_of_the_results():
    assert results.fill(README) == README
    assert README.count("<!-- results: nll -->\n|") == 1


def test_every_other_number_of_the_readme_has_a_source():
    """Numbers of the prose: a new one needs a result file, and a line here that says which."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = {
        project["requires-python"].removeprefix(">="),
        ".".join(lanam.__version__.split(".")[:2]),
        "95",  # the default coverage of bands
        "2024",  # of the paper
    }
    assert inspect.signature(lanam.explain.Shape.band).parameters["coverage"].default == 0.95
    assert set(re.findall(r"(?<!\w)\d+(?:\.\d+)?", prose(README))) == known


def test_the_readme_names_every_set_on_which_another_model_is_better():
    losses = re.search(r"^Where lanam loses:.*?\n\n", README, re.DOTALL | re.MULTILINE)[0]
    lost = {name for name, models in results.best().items() if "lanam-auto" not in models}
    assert set(re.findall(r"\*(\w+)\*", losses)) == lost


def test_the_readme_states_what_the_default_fit_is_on_its_first_screen():
    first_screen = "\n".join(README.splitlines()[:20])
    assert "not trained by gradient descent" in first_screen
    assert "`LANAMRegressor.paper()`" in first_screen


def test_the_page_of_the_papers_system_has_all_its_settings():
    page = (ROOT / "docs/howto/the-papers-variant.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1:4] for row in page.splitlines() if row.startswith("| `")]
    stated = {name.strip(" `"): (default, papers) for name, default, papers in rows}
    for name, value in PAPER.items():
        default, papers = stated[name]
        assert f"`{value!r}`".replace("'", '"') in papers
        assert f"`{PARAMETERS[name].default!r}`".replace("'", '"') in default


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_links_within_the_repository_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / page).read_text(encoding="utf-8"))
    assert [target for target in targets if not (ROOT / target).exists()] == []


#: Names that packages of lanam share with each other, and that are not for users.
SHARED = {
    "lanam.explain": {
        "PortableModel",
        "explain_portable",
        "require_coverage",
        "response_words",
        "row_text",
    },
    "lanam.export": {
        "DIALECTS",
        "FORMATS",
        "format_of",
        "render",
        "require_format",
        "write_export",
    },
}


@pytest.mark.parametrize(
    "module",
    ["lanam", "lanam.explain", "lanam.export", "lanam.metrics", "lanam.persistence", "lanam.plot"],
)
def test_the_reference_has_every_public_name(module):
    """A name in ``__all__`` stands in the reference: as a directive, or among the members of one."""
    reference = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    documented = set(
        re.findall(r"^::: \S*?(\w+)$|^ +- (\w+)$|`lanam\.(\w+)`", reference, re.MULTILINE)
    )
    names = {name for match in documented for name in match if name}
    public = set(importlib.import_module(module).__all__) - SHARED.get(module, set())
    assert public - names == set()


@pytest.mark.parametrize("estimator", [LANAMRegressor, LANAMClassifier])
def test_the_docstrings_of_the_estimators_have_every_learned_attribute(estimator):
    X = np.arange(60.0).reshape(30, 2)
    model = (
        estimator(interactions=0, noise="constant").fit(X, X[:, 0])
        if is_regressor(estimator())
        else (estimator(interactions=0).fit(X, X[:, 0] > 20))
    )
    learned = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")}
    assert {name for name in learned if not re.search(rf"\b{name}\b", estimator.__doc__)} == set()


def test_the_citation_has_the_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {lanam.__version__}\n" in citation


def test_the_tables_of_the_benchmarks_are_made_from_the_results():
    page = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    places = re.findall(r"<!-- results: ([\w-]+) -->", page)
    assert set(places) == set(results.TABLES)
    tables = results.fill(page).split("<!-- end of results -->")[:-1]
    assert all(table.rstrip().endswith("|") for table in tables)


def test_sections_of_trust_are_shown_as_far_as_they_were_run(tmp_path):
    page = (ROOT / "docs/trust.md").read_text(encoding="utf-8")
    (tmp_path / "bands.md").write_text("| setting |\n", encoding="utf-8")
    text = results.include_trust(page, tmp_path)
    assert text.count("| setting |") == 1
    assert text.count("*Not yet run.*") == page.count("<!-- trust: ") - 1
    assert "<!-- trust" not in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_fits_its_column(page):
    """Of 868 pixels on a screen of 1400, which hold 113 characters."""
    lines = [line for _, block in python_blocks(page) for line in block.splitlines()]
    assert max(map(len, lines)) <= 110
