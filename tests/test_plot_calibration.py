"""Plots of calibration and retention show the values of the curves."""

from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from lanam.metrics import (
    RetentionCurve,
    quantile_calibration_curve,
    reliability_curve,
    retention_curve,
)
from lanam.plot import plot_calibration, plot_retention


@pytest.fixture(autouse=True)
def _no_window():
    matplotlib.use("Agg")
    yield
    plt.close("all")


def text_of(ax):
    return " ".join(text.get_text().replace("\n", " ") for text in ax.figure.findobj(plt.Text))


@pytest.fixture(scope="module")
def reliability():
    """An overconfident model: some bins are outside the range under calibration, some inside."""
    rng = np.random.default_rng(0)
    probability = rng.random(2000)
    seen = rng.random(2000) < 0.25 + 0.5 * probability
    curve = reliability_curve(seen, probability)
    beyond = (curve.observed < curve.lower) | (curve.observed > curve.upper)
    assert 0 < beyond.sum() < len(beyond)
    return curve


@pytest.fixture(scope="module")
def quantiles():
    return quantile_calibration_curve(np.random.default_rng(0).beta(1.3, 1.3, 500))


def lines_with(ax, **facts):
    return [
        line
        for line in ax.get_lines()
        if len(line.get_xdata()) and all(getattr(line, f"get_{k}")() == v for k, v in facts.items())
    ]


def curve_line(ax, curve):
    """The one line through all points of the curve."""
    actual = [
        line
        for line in ax.get_lines()
        if np.array_equal(line.get_xdata(), curve.expected)
        and np.array_equal(line.get_ydata(), curve.observed)
        and line.get_linestyle() != "None"
    ]
    assert len(actual) == 1
    return actual[0]


class TestCalibration:
    @pytest.mark.parametrize("kind", ["reliability", "quantiles"])
    def test_curve_diagonal_and_range_if_calibrated(self, kind, request):
        curve = request.getfixturevalue(kind)
        ax = plot_calibration(curve)
        curve_line(ax, curve)
        diagonal = ax.get_lines()[0]
        np.testing.assert_array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
        (band,) = ax.collections
        vertices = {tuple(point) for point in band.get_paths()[0].vertices.round(12)}
        for ends in (curve.lower, curve.upper):
            assert {
                tuple(point) for point in np.column_stack([curve.expected, ends]).round(12)
            } <= vertices

    def test_markers_outside_the_range_are_filled(self, reliability):
        ax = plot_calibration(reliability)
        marks = lines_with(ax, linestyle="None")
        white = next(line for line in marks if line.get_markerfacecolor() == "white")
        filled = next(line for line in marks if line.get_markerfacecolor() != "white")
        beyond = [
            not low <= value <= high
            for low, value, high in zip(
                reliability.lower, reliability.observed, reliability.upper, strict=True
            )
        ]
        np.testing.assert_array_equal(filled.get_xdata(), reliability.expected[beyond])
        np.testing.assert_array_equal(white.get_xdata(), reliability.expected[np.invert(beyond)])

    def test_bars_are_fractions_of_rows(self, reliability):
        bars = plot_calibration(reliability).patches
        heights = np.array([bar.get_height() for bar in bars])
        np.testing.assert_allclose(
            heights / heights.max(), reliability.share / reliability.share.max()
        )
        middles = [bar.get_x() + bar.get_width() / 2 for bar in bars]
        np.testing.assert_allclose(middles, reliability.expected)
        # They stay below the curve.
        assert all(bar.get_y() + bar.get_height() < -0.02 for bar in bars)

    def test_between_levels_of_quantiles_all_rows_are_counted(self, quantiles):
        bars = plot_calibration(quantiles).patches
        assert len(bars) == len(quantiles.expected) + 1
        heights = np.array([bar.get_height() for bar in bars])
        share = np.append(quantiles.share, 1 - quantiles.share.sum())
        np.testing.assert_allclose(heights / heights.sum(), share)
        edges = [bar.get_x() for bar in bars]
        np.testing.assert_allclose(edges, [0.0, *quantiles.expected])

    def test_words(self, reliability, quantiles):
        ax = plot_calibration(reliability)
        assert [ax.get_xlabel(), ax.get_ylabel()] == ["predicted probability", "observed frequency"]
        assert f"ECE {reliability.error:.2g} 2,000 rows" in text_of(ax)
        assert "Shaded: the 95% range if calibrated" in text_of(ax)
        assert "rows in each bin" in text_of(ax)
        ax = plot_calibration(quantiles)
        assert ax.get_xlabel() == "level of the predicted quantile"
        assert f"quantile calibration error {quantiles.error:.2g} 500 rows" in text_of(ax)
        assert "rows between levels" in text_of(ax)

    def test_several_curves_are_distinct_without_colours(self, reliability):
        rng = np.random.default_rng(1)
        probability = rng.random(300)
        other = reliability_curve(rng.random(300) < probability, probability)
        ax = plot_calibration({"a $1$ $2$": reliability, "b": other})
        first, second = curve_line(ax, reliability), curve_line(ax, other)
        assert first.get_linestyle() != second.get_linestyle()
        marks = {line.get_marker() for line in lines_with(ax, linestyle="None")}
        assert marks == {"o", "s"}
        texts = ax.get_legend().get_texts()
        assert [text.get_text() for text in texts] == [
            f"a $1$ $2$: ECE {reliability.error:.2g}",
            f"b: ECE {other.error:.2g}",
        ]
        assert not any(text.get_parse_math() for text in texts)
        assert not ax.collections  # ranges are shown for a single curve only
        faces = {bar.get_facecolor() for bar in ax.patches}
        assert len(faces) == 2
        assert len(ax.patches) == len(reliability.share) + len(other.share)
        assert "Shaded" not in text_of(ax)
        assert "Filled: outside the 95% range if calibrated" in text_of(ax)

    def test_reports_are_accepted(self, reliability):
        ax = plot_calibration(SimpleNamespace(curve=reliability))
        curve_line(ax, reliability)
        ax = plot_calibration({"a": SimpleNamespace(curve=reliability), "b": reliability})
        assert len(ax.get_legend().get_texts()) == 2

    def test_one_bin(self):
        curve = reliability_curve([0, 1, 1, 1], [0.6, 0.6, 0.6, 0.6])
        ax = plot_calibration(curve)
        (bar,) = ax.collections[0].get_segments()
        np.testing.assert_allclose(bar, [[0.6, curve.lower[0]], [0.6, curve.upper[0]]])
        ax.figure.canvas.draw()

    def test_given_axes_do_not_change_the_figure(self, reliability):
        figure, own = plt.subplots(1, 2, figsize=(8, 3))
        assert plot_calibration(reliability, own[1]) is own[1]
        assert not own[0].lines
        assert figure.get_supxlabel() == ""
        assert tuple(figure.get_size_inches()) == (8, 3)

    def test_invalid_input(self, reliability, quantiles):
        with pytest.raises(TypeError, match="expected CalibrationCurve, got float"):
            plot_calibration(0.3)
        with pytest.raises(TypeError, match=r"got list: use coverage_report"):
            plot_calibration({"a": [reliability]})
        with pytest.raises(ValueError, match=r"of one kind .* \['quantiles', 'reliability'\]"):
            plot_calibration({"a": reliability, "b": quantiles})
        with pytest.raises(ValueError, match="there is no CalibrationCurve to plot"):
            plot_calibration({})
        with pytest.raises(ValueError, match="at most 8 curves"):
            plot_calibration({str(k): reliability for k in range(9)})
        plot_calibration({str(k): reliability for k in range(8)}).figure.canvas.draw()


@pytest.fixture(scope="module")
def retention():
    rng = np.random.default_rng(0)
    uncertainty = rng.random(300)
    return retention_curve(rng.random(300) > 0.5 * uncertainty, uncertainty)


class TestRetention:
    def test_the_line_and_its_direction(self, retention):
        ax = plot_retention(retention)
        (line,) = ax.get_lines()
        np.testing.assert_array_equal(line.get_xdata(), retention.retained)
        np.testing.assert_array_equal(line.get_ydata(), retention.value)
        assert ax.get_xlim() == (1.0, 0.0)  # all rows on the left
        assert ax.get_xlabel() == "rows retained, least uncertain first"
        assert ax.get_ylabel() == "accuracy of the retained rows"
        assert f"area under the curve {retention.area:.3g}, 300 rows" in text_of(ax)
        ax.figure.canvas.draw()
        assert [label.get_text() for label in ax.get_xticklabels()][-1] == "100%"

    def test_few_rows_are_shaded(self, retention):
        (patch,) = plot_retention(retention).patches
        assert sorted([patch.get_x(), patch.get_x() + patch.get_width()]) == [0.0, 0.1]
        tiny = RetentionCurve(retention.retained, retention.value, "accuracy", 0.5, 10)
        (patch,) = plot_retention(tiny).patches
        assert abs(patch.get_width()) == 1.0

    def test_several_curves_are_distinct_without_colours(self, retention):
        other = RetentionCurve(retention.retained, 0.9 * retention.value, "accuracy", 0.7, 100)
        ax = plot_retention({"a": retention, "$b$ $c$": other})
        assert [line.get_linestyle() for line in ax.get_lines()] == ["-", "--"]
        texts = [text.get_text() for text in ax.get_legend().get_texts()]
        assert texts == [f"a: area {retention.area:.3g}", "$b$ $c$: area 0.7"]
        assert "300 rows" not in text_of(ax)
        (patch,) = ax.patches
        assert abs(patch.get_width()) == pytest.approx(0.3)

    def test_given_axes_do_not_change_the_figure(self, retention):
        figure, own = plt.subplots(1, 2, figsize=(8, 3))
        assert plot_retention(retention, own[0]) is own[0]
        assert not own[1].lines
        assert figure.get_supxlabel() == ""
        assert tuple(figure.get_size_inches()) == (8, 3)

    def test_invalid_input(self, retention, reliability):
        with pytest.raises(TypeError, match="expected RetentionCurve, got Calibration"):
            plot_retention(reliability)
        error = RetentionCurve(retention.retained, retention.value, "rmse", 0.5, 10)
        with pytest.raises(ValueError, match=r"of one measure .* \['accuracy', 'rmse'\]"):
            plot_retention({"a": retention, "b": error})
        with pytest.raises(ValueError, match="there is no RetentionCurve"):
            plot_retention({})
