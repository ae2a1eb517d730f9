// The charts, with plotly: drawn when they come into view, and again when the colours change.
"use strict";

(() => {
  const CONFIG = { displaylogo: false, responsive: true, displayModeBar: false };

  // Extrapolated part of a curve, as a fraction of the range; as in lanam.plot.
  const BEYOND = 0.08;

  const charts = [];

  function make(tag, attributes = {}, ...children) {
    const result = document.createElement(tag);
    Object.assign(result, attributes);
    result.append(...children);
    return result;
  }

  function svg(tag, attributes, ...children) {
    const result = document.createElementNS("http://www.w3.org/2000/svg", tag);
    Object.entries(attributes).forEach(([key, value]) => result.setAttribute(key, value));
    result.append(...children);
    return result;
  }

  // A panel for a chart, with its description for screen readers.
  function panelOf(description) {
    return make("div", { className: "chart", role: "img", ariaLabel: description });
  }

  function cardOf(term, className, content) {
    const note = make("p", { className: "note" }, term.note);
    return make("figure", { className }, make("h3", {}, term.name), note, content);
  }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function transparent(hex, alpha) {
    const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return `rgba(${parts.join(",")},${alpha})`;
  }

  // Plotly interprets some HTML in texts; names are escaped.
  function words(text) {
    // Nor may a name contain a format specifier.
    return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("%{", "%\u200b{");
  }

  function shorten(text, most) {
    const line = String(text).replace(/\s+/g, " ");
    return words(line.length <= most ? line : `${line.slice(0, most - 1)}…`);
  }

  function layout(more = {}) {
    const axis = { gridcolor: colour("line"), zerolinecolor: colour("soft"), automargin: true, fixedrange: true };
    const { xaxis, yaxis, ...rest } = more;
    return {
      margin: { l: 48, r: 12, t: 10, b: 36 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("ink"), size: 12, family: "system-ui, sans-serif" }, showlegend: false,
      dragmode: false, hovermode: "closest",
      hoverlabel: { bgcolor: colour("paper"), font: { color: colour("ink") } },
      xaxis: { ...axis, zeroline: false, ...xaxis }, yaxis: { ...axis, ...yaxis }, ...rest,
    };
  }

  const waiting = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        waiting.unobserve(entry.target);
        entry.target.draw();
      }
    }
  }, { rootMargin: "400px" });

  // Draw into an element when it is visible; `make` returns traces and layout.
  function chart(element, make) {
    let shown = false;
    element.draw = () => {
      const [traces, look] = make();
      Plotly.react(element, traces, look, CONFIG);
      shown = true;
    };
    charts.push({ again: () => shown && element.draw(), now: () => shown || element.draw() });
    waiting.observe(element);
  }

  function redraw() {
    charts.forEach((each) => each.again());
  }

  function drawAll() {
    charts.forEach((each) => each.now());
  }

  // The function of one class, if there are several.
  function part(array, place, nClasses) {
    return nClasses === 1 ? array : array.map((row) => row[place]);
  }

  function series(report) {
    if (report.link !== "softmax") return [{ place: 0, name: "", line: "curve", fill: null }];
    return report.classes.map((name, place) => ({ place, name, line: `chart-${place % 8}`, fill: place }));
  }

  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const SAMPLES = ["", "7 4", "2 3", "7 3 2 3", "11 4", "11 3 2 3"];
  const SYMBOLS = ["circle", "square", "triangle-up", "cross"];
  const MARKS = ["●", "■", "▲", "✚"];

  function curveTraces(term, one, nClasses) {
    const mean = part(term.mean, one.place, nClasses);
    const std = part(term.std, one.place, nClasses);
    const line = colour(one.line);
    const band = one.fill === null ? colour("band") : transparent(line, 0.22);
    const edge = { mode: "lines", line: { width: 0 }, hoverinfo: "skip", x: term.values };
    const hover = `%{x}: %{y:.4g} ± %{customdata:.2g}<extra>${shorten(one.name, 24)}</extra>`;
    return [
      { ...edge, y: mean.map((m, k) => m - 2 * std[k]) },
      { ...edge, y: mean.map((m, k) => m + 2 * std[k]), fill: "tonexty", fillcolor: band },
      {
        x: term.values, y: mean, customdata: std.map((s) => 2 * s), name: words(one.name), hovertemplate: hover,
        mode: term.few ? "lines+markers" : "lines",
        line: { color: line, width: 2, dash: DASHES[one.place % DASHES.length] },
      },
    ];
  }

  // Dots with error bars: categories, single values, missing values.
  function dotTraces(x, means, stds, one, more = {}) {
    const line = colour(one.line);
    return {
      x, y: means, name: words(one.name), mode: "markers", type: "scatter",
      error_y: { type: "data", array: stds.map((s) => 2 * s), color: line, thickness: 1.6, width: 3 },
      hovertemplate: `%{x}: %{y:.4g} ± %{error_y.array:.2g}<extra>${shorten(one.name, 24)}</extra>`,
      marker: { color: line, size: 7, symbol: SYMBOLS[one.place % SYMBOLS.length], ...more },
    };
  }

  // The histogram of the data, in the lowest part of the panel, up to the height `top` of 1.
  function densityTrace(x, density, width, top = 1) {
    const scale = top / Math.max(...density, 1e-12);
    return {
      x, y: density.map((share) => share * scale), customdata: density, width, type: "bar", yaxis: "y2", marker: { color: colour("bar") },
      hovertemplate: "%{x}: %{customdata:.1%} of the data<extra></extra>",
    };
  }

  // The background where a term was edited by hand.
  function editedGround(ranges, xref = "x") {
    return ranges.map(([x0, x1]) => ({ type: "rect", xref, yref: "paper", x0, x1, y0: 0, y1: 1, layer: "below",
      fillcolor: colour("warn"), line: { width: 1, dash: "dot", color: colour("soft") } }));
  }

  function numericPanel(report, term) {
    const all = series(report);
    const [low, high] = term.range;
    const two = term.kind === "two";  // dots, with nothing between or beyond
    const apart = (k) => (two && all.length > 1 ? (k - 0.5 * (all.length - 1)) * 0.5 * (high - low) / all.length : 0);
    const traces = all.flatMap((one, k) => (term.kind === "smooth" ? curveTraces(term, one, report.n_classes)
      : [dotTraces(term.values.map((value) => value + apart(k)), part(term.mean, one.place, report.n_classes),
        part(term.std, one.place, report.n_classes), one, { size: two ? 7 : 4 })]));
    const margin = (two ? 0.5 : BEYOND) * (high - low) || 0.5;
    // The more values are missing, the lower is the histogram, and the higher the bar of missing ones.
    const missing = term.missing?.density ?? 0;
    traces.push(densityTrace(term.bars.middles, term.bars.shares, term.bars.width, 1 - missing));
    const shade = { type: "rect", xref: "x", yref: "paper", y0: 0, y1: 1, fillcolor: colour("line"), opacity: 0.3,
      line: { width: 0 }, layer: "below" };
    const shapes = [[low - margin, term.inner[0]], [term.inner[1], high + margin]]
      .filter(([from, to]) => from < to && !two).map(([x0, x1]) => ({ ...shade, x0, x1 }));
    const clipped = term.edited.map(([from, to]) => [Math.max(from, low - margin), Math.min(to, high + margin)]);
    shapes.push(...editedGround(clipped.filter(([from, to]) => from <= to)));
    if (term.missing?.edited) shapes.push(...editedGround([[-0.5, 0.5]], "x2"));
    const end = term.missing ? 0.84 : 1;
    const look = { shapes, xaxis: { range: [low - margin, high + margin], domain: [0, end], ...(two ? { tickvals: term.values } : {}) } };
    if (term.missing) {
      for (const one of series(report)) {
        const values = [term.missing.mean, term.missing.std].map((v) => (report.n_classes === 1 ? v : v[one.place]));
        traces.push({ ...dotTraces(["missing"], [values[0]], [values[1]], one, { symbol: "diamond" }), xaxis: "x2" });
      }
      traces.push({ ...densityTrace(["missing"], [missing], 0.8, missing), xaxis: "x2" });
      look.xaxis2 = { domain: [0.88, 1], anchor: "y", fixedrange: true, color: colour("soft"), zeroline: false, showgrid: false };
    }
    return [traces, look];
  }

  // Whether labels below an axis of this width need to be turned, so as not to overlap.
  function isTurned(labels, width) {
    return labels.some((label) => label.length * 7 * labels.length > width);
  }

  function levelPanel(report, term, width) {
    const labels = [...term.labels, ...term.others.map((other) => other.name)];
    const places = labels.map((_, k) => k);
    const all = series(report);
    const traces = all.map((one, k) => {
      const shift = all.length > 1 ? (k - 0.5 * (all.length - 1)) * 0.6 / all.length : 0;
      const own = (array, key) => [
        ...part(array, one.place, report.n_classes),
        ...term.others.map((other) => (report.n_classes === 1 ? other[key] : other[key][one.place])),
      ];
      const x = places.map((place) => place + shift);
      const trace = dotTraces(x, own(term.mean, "mean"), own(term.std, "std"), one);
      // Hollow: unseen category. Diamonds: missing values, as beside a curve.
      trace.marker.symbol = [
        ...term.labels.map(() => trace.marker.symbol),
        ...term.others.map((other) => other.symbol),
      ];
      trace.text = labels.map(words);
      trace.hovertemplate = trace.hovertemplate.replace("%{x}", "%{text}");
      return trace;
    });
    traces.push(densityTrace(places, [...term.density, ...term.others.map((other) => other.density)], 0.8));
    const ticks = { tickvals: places, ticktext: term.ticks.map(words) };
    const turned = isTurned(labels, width);
    const room = turned ? Math.min(Math.max(...labels.map((label) => label.length)), 18) * 7 + 14 : 36;
    return [traces, {
      shapes: editedGround(term.edited.map((place) => [place - 0.5, place + 0.5])),
      margin: { l: 48, r: 12, t: 10, b: room },
      xaxis: { ...ticks, range: [-0.6, labels.length - 0.4], tickangle: turned ? 90 : 0, automargin: false, showgrid: false },
    }];
  }

  // Further terms are in a list that can be opened.
  const MOST_SHAPES = 12;

  // Panels with more categories have double width.
  const MANY_LEVELS = 12;

  function shapeCard(report, term, sameScale) {
    const panel = panelOf(term.description);
    chart(panel, () => {
      const [traces, look] = term.kind === "categorical" ? levelPanel(report, term, panel.clientWidth - 60) : numericPanel(report, term);
      const range = sameScale.checked ? report.vertical : term.vertical;
      return [traces, layout({
        ...look, barmode: "overlay",
        yaxis: { range, title: { text: words(report.unit), font: { size: 11 } } },
        yaxis2: { overlaying: "y", side: "right", range: [0, 7], visible: false, fixedrange: true },
      })];
    });
    const broad = term.kind === "categorical" && term.labels.length > MANY_LEVELS;
    return cardOf(term, broad ? "card broad" : "card", panel);
  }

  // One legend for all charts: colour, dash and marker of every class.
  function showLegend(report) {
    const place = document.getElementById("legend");
    place.hidden = report.link !== "softmax";
    for (const one of report.link === "softmax" ? series(report) : []) {
      const line = svg("path", { d: "M1 5H33", "stroke-dasharray": SAMPLES[one.place % DASHES.length] });
      line.style.stroke = `var(--${one.line})`;
      const sample = svg("svg", { viewBox: "0 0 34 10", "aria-hidden": "true" }, line);
      place.append(make("span", {}, sample, ` ${MARKS[one.place % MARKS.length]} ${one.name}`));
    }
  }

  function drawShapes(report) {
    showLegend(report);
    const grid = document.getElementById("shape-grid");
    const sameScale = document.getElementById("same-scale");
    const more = document.getElementById("more-shapes");
    report.shapes.forEach((term, k) => (k < MOST_SHAPES ? grid : more.lastElementChild).append(shapeCard(report, term, sameScale)));
    const hidden = report.shapes.length - MOST_SHAPES;
    more.hidden = hidden <= 0;
    more.firstElementChild.textContent = `${hidden} less important term${hidden === 1 ? "" : "s"}`;
    if (!report.shapes.length) grid.textContent = "No univariate term is active.";
    sameScale.addEventListener("change", redraw);
  }

  // The functions of heteroscedastic noise, like those of the mean.
  function drawNoise(report) {
    const grid = document.getElementById("noise-grid");
    if (!grid) return;
    const own = { ...report, ...report.noise };
    own.shapes.forEach((term) => grid.append(shapeCard(own, term, { checked: true })));
  }

  // The sections of an interaction's axis: its categories, or numbers and then missing values, with their entries.
  function sections(side, letter) {
    if (side.labels) return [{ ref: letter, places: side.labels.map((_, k) => k), start: 0, reach: 0 }];
    const numbers = { ref: letter, places: side.values, start: 0, reach: 1 };
    return side.others ? [numbers, { ref: `${letter}2`, places: [0], start: side.values.length, reach: 0 }] : [numbers];
  }

  // Whether there is data at an entry of a block or, between numbers, next to it.
  function isSeen(pair, x, y, i, j) {
    for (let a = Math.max(i - x.reach, 0); a <= Math.min(i + x.reach, x.places.length - 1); a++) {
      for (let b = Math.max(j - y.reach, 0); b <= Math.min(j + y.reach, y.places.length - 1); b++) {
        if (pair.seen[x.start + a][y.start + b]) return true;
      }
    }
    return false;
  }

  // Signs where the mean is at least two standard deviations from zero, at a subset of many entries.
  function signTrace(pair, x, y) {
    const steps = [x, y].map((section) => Math.ceil(section.places.length / 10));
    const marks = [];
    for (let i = steps[0] >> 1; i < x.places.length; i += steps[0]) {
      for (let j = steps[1] >> 1; j < y.places.length; j += steps[1]) {
        const mean = pair.mean[x.start + i][y.start + j];
        if (Math.abs(mean) >= 2 * pair.std[x.start + i][y.start + j] && mean !== 0) {
          marks.push([x.places[i], y.places[j], mean > 0 ? "+" : "−"]);
        }
      }
    }
    return {
      type: "scatter", mode: "text", xaxis: x.ref, yaxis: y.ref, x: marks.map((mark) => mark[0]), y: marks.map((mark) => mark[1]),
      text: marks.map((mark) => mark[2]), textfont: { color: colour("ink"), size: 13 }, hoverinfo: "skip",
    };
  }

  // One block of an interaction's map: numbers or categories, or missing values, of either column.
  function blockTraces(pair, key, x, y, look) {
    const cells = (value) => y.places.map((_, j) => x.places.map((__, i) => value(i, j)));
    const place = { type: "heatmap", x: x.places, y: y.places, xaxis: x.ref, yaxis: y.ref };
    const trace = {
      ...place, ...look, z: cells((i, j) => pair[key][x.start + i][y.start + j]),
      zsmooth: x.reach && y.reach ? "best" : false, hovertemplate: "%{x}, %{y}: %{z:.3g}<extra></extra>",
    };
    const veil = {
      ...place, z: cells((i, j) => (isSeen(pair, x, y, i, j) ? null : 1)),
      colorscale: [[0, colour("card")], [1, colour("card")]], showscale: false, opacity: 0.65, hoverinfo: "skip",
    };
    return key === "mean" ? [trace, veil, signTrace(pair, x, y)] : [trace, veil];
  }

  // Where the sections of an axis lie, and their ticks.
  function sideAxes(side, letter, other, width) {
    const name = `${letter}axis`;
    const title = { text: shorten(side.name, 32), font: { size: 11 } };
    const ticks = side.labels ? { tickvals: side.labels.map((_, k) => k), ticktext: side.ticks.map(words),
      ...(letter === "x" ? { tickangle: isTurned(side.ticks, width) ? 90 : 0 } : {}) } : { range: side.range };
    if (!side.others) return { [name]: { ...ticks, title, showgrid: false } };
    const beside = { domain: [0.9, 1], anchor: other, fixedrange: true, zeroline: false, showgrid: false, color: colour("soft") };
    return {
      [name]: { ...ticks, title, showgrid: false, domain: [0, 0.87] },
      [`${name}2`]: { ...beside, range: [-0.5, 0.5], tickvals: [0], ticktext: ["missing"], tickangle: 0 },
    };
  }

  function heat(pair, key, scale, label, width) {
    const colorbar = { thickness: 10, outlinewidth: 0, title: { text: label, side: "right", font: { size: 11 } } };
    const blocks = sections(pair.first, "x").flatMap((x) => sections(pair.second, "y").map((y) => [x, y]));
    const traces = blocks.flatMap(([x, y], k) => blockTraces(pair, key, x, y, { ...scale, ...(k ? { showscale: false } : { colorbar }) }));
    return [traces, layout({
      margin: { l: 52, r: 6, t: 22, b: 44 }, title: { text: key === "mean" ? "mean" : "standard deviation", font: { size: 12 }, x: 0.5, y: 0.99 },
      ...sideAxes(pair.first, "x", "y", width), ...sideAxes(pair.second, "y", "x", width),
    })];
  }

  function drawPairs(report) {
    const grid = document.getElementById("pair-grid");
    if (!grid) return;
    const choice = document.getElementById("pair-class");
    if (report.link === "softmax" && report.pairs.length) {
      document.getElementById("pair-class-control").hidden = false;
      report.classes.forEach((name, k) => choice.add(new Option(name, k)));
      choice.addEventListener("change", redraw);
    }
    for (const pair of report.pairs) {
      const [across, upwards] = [pair.first, pair.second].map((side) => side.labels?.length ?? 0);
      const broad = Math.max(across, upwards) > MANY_LEVELS;
      const halves = make("div", { className: "halves" });
      for (const key of ["mean", "std"]) {
        const panel = panelOf(`${pair.name}: ${key === "mean" ? "mean" : "standard deviation"}`);
        if (broad) panel.style.height = `${Math.max(20, 7 + 0.95 * upwards)}rem`;
        halves.append(panel);
        chart(panel, () => {
          const place = Number(choice.value || 0);
          const own = (table) => (report.n_classes === 1 ? table : table.map((row) => row.map((cell) => cell[place])));
          const tables = { ...pair, mean: own(pair.mean), std: own(pair.std) };
          // Slices of an interaction of three columns have one scale.
          const largestOf = (name) => Math.max(pair.limits?.[name][place] ?? Math.max(...tables[name].flat().map(Math.abs)), 1e-12);
          const largest = largestOf("mean");
          const middle = colour("paper");
          const scale = key === "mean"
            ? { zmin: -largest, zmax: largest, colorscale: [[0, colour("minus")], [0.5, middle], [1, colour("plus")]] }
            : { zmin: 0, zmax: largestOf("std"), colorscale: [[0, middle], [1, colour("soft")]] };
          return heat(tables, key, scale, words(report.unit), panel.clientWidth - 150);
        });
      }
      grid.append(cardOf(pair, broad ? "card broad" : "card", halves));
    }
  }

  function drawImportances(report) {
    const element = document.getElementById("importance-chart");
    if (!element) return;
    const terms = [...report.importances].reverse();
    element.style.height = `${Math.max(8, 3.5 + 1.5 * terms.length)}rem`;
    chart(element, () => [[{
      type: "bar", orientation: "h", x: terms.map((term) => term.importance), y: terms.map((_, k) => k),
      error_x: { type: "data", symmetric: false, array: terms.map((term) => 2 * term.std),
        arrayminus: terms.map((term) => Math.min(2 * term.std, term.importance)), color: colour("ink"), thickness: 1.4, width: 3 },
      marker: { color: colour("fill"), line: { color: colour("curve"), width: 1 }, pattern: { fgcolor: colour("curve"), shape: terms.map((term) => (["pair", "interaction"].includes(term.kind) ? "/" : "")) } },
      text: terms.map((term) => words(term.name)), textposition: "none",
      hovertemplate: "%{text}: %{x:.3g} ± %{error_x.array:.2g}<extra></extra>",
    }, {
      type: "bar", orientation: "h", x: terms.map((term) => term.missingness), y: terms.map((_, k) => k),
      base: terms.map((term) => term.importance - term.missingness), hoverinfo: "skip",
      marker: { color: colour("card"), line: { color: colour("curve"), width: terms.map((term) => (term.missingness ? 1 : 0)) },
        pattern: { fgcolor: colour("curve"), shape: ".", size: 5 } },
    }], layout({
      barmode: "overlay",
      yaxis: { tickvals: terms.map((_, k) => k), ticktext: terms.map((term) => words(term.label)), showgrid: false, zeroline: false },
      xaxis: { title: { text: words(`mean absolute contribution to the ${report.unit}`), font: { size: 11 } }, rangemode: "tozero" },
    })]);
  }

  function drawHistory(report) {
    if (!report.history.length) return;
    chart(document.getElementById("history"), () => [[{
      x: report.history.map((_, k) => k + 1), y: report.history, mode: "lines+markers", line: { color: colour("curve") },
      hovertemplate: "iteration %{x}: %{y:.1f}<extra></extra>",
    }], layout({ xaxis: { title: { text: "iteration", font: { size: 11 } } }, margin: { l: 60, r: 10, t: 6, b: 36 } })]);
  }

  function drawCalibration(report) {
    const result = report.calibration;
    if (!result) return;
    const curve = result.curve;
    const names = curve.kind === "quantiles" ? ["level of the predicted quantile", "fraction of observations below it"] : ["predicted probability", "observed frequency"];
    chart(document.getElementById("calibration-chart"), () => [[
      { x: curve.expected, y: curve.lower, mode: "lines", line: { width: 0 }, hoverinfo: "skip" },
      { x: curve.expected, y: curve.upper, mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: colour("band"), hoverinfo: "skip" },
      { x: [0, 1], y: [0, 1], mode: "lines", line: { color: colour("soft"), dash: "dash", width: 1.2 }, hoverinfo: "skip" },
      { x: curve.expected, y: curve.observed, mode: "lines+markers", line: { color: colour("curve") }, marker: { size: 7 },
        hovertemplate: "%{x:.1%}: %{y:.1%}<extra></extra>" },
    ], layout({
      xaxis: { range: [-0.02, 1.02], tickformat: ".0%", title: { text: names[0], font: { size: 11 } } },
      yaxis: { range: [-0.02, 1.02], tickformat: ".0%", title: { text: names[1], font: { size: 11 } } },
    })]);
    const kept = result.retention;
    chart(document.getElementById("retention-chart"), () => [[{
      x: kept.retained, y: kept.value, mode: "lines", line: { color: colour("curve"), width: 2 },
      hovertemplate: "%{x:.0%} retained: %{y:.4g}<extra></extra>",
    }], layout({
      xaxis: { range: [1.02, 0], tickformat: ".0%", title: { text: "rows retained, least uncertain first", font: { size: 11 } } },
      yaxis: { title: { text: words(kept.name), font: { size: 11 } } },
    })]);
  }

  function draw(report) {
    drawHistory(report);
    drawImportances(report);
    drawShapes(report);
    drawPairs(report);
    drawNoise(report);
    drawCalibration(report);
  }

  Object.assign(lanam, { draw, redraw, drawAll, make, svg });
})();
