"""The report in a browser, opened from disk without a network: accessibility and unusual models."""

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMRegressor
from tests.report.browsing import as_number, shown
from tests.report.examples import CITY, KINDS, QUICK

# colours


def background(page):
    return page.evaluate("() => getComputedStyle(document.body).backgroundColor")


def chart_colour(page):
    return page.evaluate("() => document.getElementById('importance-chart').layout.font.color")


def test_the_reader_chooses_colours(drawn):
    page = drawn("two")
    light = background(page), chart_colour(page)
    page.select_option("#theme", "dark")
    dark = background(page), chart_colour(page)
    assert light[0] == "rgb(255, 255, 255)"
    assert all(a != b for a, b in zip(light, dark, strict=True))
    page.select_option("#theme", "light")
    assert (background(page), chart_colour(page)) == light


def test_colours_follow_the_system(open_report, report_of):
    page = open_report(report_of("two"), color_scheme="dark")
    page.evaluate("lanam.drawAll()")
    dark = background(page), chart_colour(page)
    page.emulate_media(color_scheme="light")
    page.wait_for_selector("html[data-theme=light]")
    light = background(page), chart_colour(page)
    assert all(a != b for a, b in zip(light, dark, strict=True))
    page.select_option("#theme", "dark")
    assert (background(page), chart_colour(page)) == dark


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast_of_text(page_in_browser, theme):
    page = page_in_browser("gaussian")
    page.select_option("#theme", theme)
    names = ("paper", "card", "warn", "ink", "soft", "accent", "minus", "curve")
    colours = page.evaluate(
        """(names) => Object.fromEntries(names.map((name) => [name,
             getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()]))""",
        names,
    )
    for front, back in (
        ("ink", "paper"), ("ink", "card"), ("ink", "warn"), ("soft", "paper"), ("soft", "card"),
        ("accent", "paper"), ("accent", "card"), ("minus", "paper"),
    ):  # fmt: skip
        assert contrast(colours[front], colours[back]) >= 4.5, (front, back)
    # Curves and bars: a contrast of three suffices for graphics.
    for front in ("curve", "minus"):
        assert contrast(colours[front], colours["card"]) >= 3.0
    # No text is faded by transparency.
    page.check("#everything")
    page.select_option("#coverage", label="99%")
    faint = page.evaluate("""() => [...document.querySelectorAll("#what-if *")]
        .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
        .filter((one) => { for (let at = one; at; at = at.parentElement)
          if (Number(getComputedStyle(at).opacity) < 1) return true; return false; })
        .map((one) => one.textContent)""")
    assert faint == []


# keyboard, phone, readers


def test_every_control_has_a_name(page_in_browser):
    for kind in KINDS:
        page = page_in_browser(kind)
        controls = page.evaluate("""() => [...document.querySelectorAll("input, select, button, summary")]
            .map((one) => ({ id: one.id || one.tagName, name: one.getAttribute("aria-label")
              || [...(one.labels ?? [])].map((label) => label.textContent).join(" ").trim()
              || (one.matches("button, summary") ? one.textContent.trim() : "") }))""")
        assert len(controls) > 15
        assert [one["id"] for one in controls if not one["name"]] == []
        names = [one["name"] for one in controls if one["id"].startswith("field-")]
        assert CITY in names
        assert len(names) == len(set(names)), "controls of different columns have distinct names"


def test_charts_have_descriptions(drawn):
    for kind in KINDS:
        page = drawn(kind)
        labels = page.locator("[role=img]").evaluate_all(
            "(all) => all.map((one) => one.getAttribute('aria-label'))"
        )
        assert page.locator(".chart:not([role=img])").count() == 0
        assert all(labels)
        # Plotly has a hidden one to measure text.
        bare = page.locator("svg:not([aria-hidden], [role=img] svg, #js-plotly-tester)")
        assert bare.evaluate_all("(all) => all.map((one) => one.outerHTML)") == []


def test_tab_reaches_every_control_in_order(page_in_browser):
    page = page_in_browser("counts")
    expected = page.evaluate("""() => {
      const all = [...document.querySelectorAll("a[href], input, select, button, summary, [tabindex='0']")];
      const seen = all.filter((one) => one.checkVisibility() && !one.disabled
        && !(one.closest("details:not([open])") && !one.matches("summary")));
      seen.forEach((one, k) => { one.dataset.place = k; });
      document.activeElement.blur();
      return seen.length;
    }""")
    page.evaluate("""() => {
      document.body.tabIndex = -1;
      document.body.focus();
      document.body.removeAttribute("tabindex");
    }""")
    actual = []
    for _ in range(expected):
        page.keyboard.press("Tab")
        place = (
            "document.activeElement.dataset.place ?? document.activeElement.outerHTML.slice(0, 80)"
        )
        actual.append(page.evaluate(place))
    assert actual == [str(k) for k in range(expected)]


def test_focus_can_be_seen(page_in_browser):
    page = page_in_browser("gaussian")
    page.focus("#coverage")
    page.keyboard.press("Tab")
    style = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
    assert style == "solid"


def test_the_skip_link(open_report, report_of):
    page = open_report(report_of("two"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    box = page.locator(".skip").bounding_box()
    assert box["x"] >= 0.0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


@pytest.mark.parametrize("kind", ["calibrated", "counts", "many"])
def test_on_a_phone(open_report, report_of, kind):
    phone = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
    page = open_report(report_of(kind), **phone)
    page.evaluate("lanam.drawAll()")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    # The prediction stays visible while the last input is changed.
    page.evaluate("""() => [...document.querySelectorAll(".field")].at(-1)
        .scrollIntoView({ block: "end", behavior: "instant" })""")
    page.wait_for_timeout(50)
    answer = page.locator("#responses").bounding_box()
    field = page.locator(".field").last.bounding_box()
    assert -1.0 <= answer["y"] < 0.5 * 844
    assert answer["y"] < field["y"] < 844


def test_the_prediction_stays_visible_on_a_desktop(page_in_browser):
    page = page_in_browser("gaussian")
    page.evaluate("""() => [...document.querySelectorAll(".field")].at(-1)
        .scrollIntoView({ block: "end", behavior: "instant" })""")
    page.wait_for_timeout(50)
    box = page.locator("#responses").bounding_box()
    assert 0.0 <= box["y"] < 600.0


# unusual models


def test_no_term_at_all(open_report, tmp_path):
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)}), rng.normal(size=60)
    model = LANAMRegressor(**QUICK).fit(X, y)
    assert not any(term.active for term in model.terms_)
    page = open_report(model.report(tmp_path / "r.html", X, y))
    page.evaluate("lanam.drawAll()")
    assert as_number(page.inner_text("#responses .value")) == shown(model.predict(X[:1])[0])
    assert "No univariate term is active." in page.inner_text("#shapes")


def test_only_categories_and_an_exposure(open_report, tmp_path):
    """Enter in the only input, the exposure, must not submit the form."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"place": rng.choice(["in", "out"], 300)})
    y = rng.poisson(np.where(X["place"] == "in", 2.0, 9.0))
    model = LANAMRegressor(likelihood="poisson", **QUICK).fit(X, y)
    page = open_report(model.report(tmp_path / "r.html"))
    page.fill("#exposure", "5")
    page.press("#exposure", "Enter")
    page.wait_for_timeout(100)
    assert page.input_value("#exposure") == "5"
    assert not page.is_visible("#row")


def test_one_column_and_no_rows(open_report, tmp_path):
    x = np.linspace(-1.0, 1.0, 80)[:, None]
    model = LANAMRegressor(**QUICK).fit(x, np.sin(3.0 * x[:, 0]))
    page = open_report(model.report(tmp_path / "r.html"))
    page.fill("#field-0", "0.5")
    expected = model.predict([[0.5]])[0]
    assert as_number(page.inner_text("#responses .value")) == shown(expected)
    page.press("#field-0", "Enter")
    page.wait_for_timeout(100)
    assert page.input_value("#field-0") == "0.5"


def test_without_scripts_the_tables_are_there(browser, report_of):
    context = browser.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto(report_of("two").as_uri())
    assert "need JavaScript" in page.inner_text("body")
    assert page.get_by_role("cell", name="dropped: not supported by the data").count() > 0
    context.close()
