// The what-if page: an input for every column, and the prediction for their values.
"use strict";

(() => {
  const element = (id) => document.getElementById(id);
  const { make, svg } = lanam;

  // A bar between fractions of the track's width, with the whisker of its interval and a line at zero.
  function trackOf([from, to], [low, high], zero = 0, sign = 0) {
    const place = (className, left, right) => {
      const bar = make("i", { className });
      bar.style.cssText = `left: ${100 * left}%; width: ${100 * (right - left)}%`;
      return bar;
    };
    const fill = place(sign < 0 ? "fill minus" : sign > 0 ? "fill plus" : "fill", from, to);
    const track = make("div", { className: "track" }, fill, place("whisker", low, high));
    track.style.setProperty("--zero", zero);
    return track;
  }

  // Thresholds for exponential notation.
  const HUGE = 1e15;
  const TINY = 1e-4;

  // Four significant digits, and all digits before the decimal point.
  function number(value, digits = 4) {
    const size = Math.abs(value);
    if (value !== 0 && (size >= HUGE || size < TINY)) return minus(value.toExponential(digits - 2));
    return minus(value.toLocaleString("en", { maximumSignificantDigits: Math.max(digits, Math.ceil(Math.log10(size + 1))) }));
  }

  // Decimals for three significant digits of the half-width.
  function decimalsOf(half) {
    return half > 0 ? Math.min(Math.max(2 - Math.floor(Math.log10(half)), 0), 12) : null;
  }

  function measured(value, decimals) {
    const size = Math.abs(value);
    if (decimals === null || size >= HUGE || (value !== 0 && size < TINY)) return number(value);
    return minus(value.toLocaleString("en", { maximumFractionDigits: decimals }));
  }

  function minus(text) {
    return text.replace("-", "−");
  }

  function signed(value) {
    return (value < 0 ? "−" : "+") + number(Math.abs(value), 3);
  }

  function percent(value) {
    return `${(100 * value).toFixed(value > 0.001 && value < 0.999 ? 1 : 3)}%`;
  }

  function ends(interval, form = number) {
    return `${form(interval[0])} to ${form(interval[1])}`;
  }

  // Linear interpolation of a table over ascending points, constant beyond.
  function between(places, table, value) {
    const above = places.findIndex((place) => place >= value);
    if (above === 0) return table[0];
    if (above < 0) return table[table.length - 1];
    const share = (value - places[above - 1]) / (places[above] - places[above - 1]);
    return table[above - 1] + share * (table[above] - table[above - 1]);
  }

  function nameOf(column) {
    return make("span", { className: "name" }, column.name);
  }

  class WhatIf {
    constructor(report) {
      this.report = report;
      this.scorer = new lanam.Scorer(report.model);
      this.fields = new Map();
      this.exposure = 1;
      this.place = "";
      this.observed = null;
      this.row = Float64Array.from(report.typical, (value) => (value === null ? NaN : value));
      this.rows = report.rows && { ...report.rows, cells: lanam.unpack(report.rows.cells) };
      this.makeChoices();
      report.columns.filter((column) => column.used).forEach((column) => this.makeField(column));
      this.showRow();
      this.update();
      if (report.link === "softmax") {
        element("class").value = this.result.response.indexOf(Math.max(...this.result.response));
        this.update();
      }
    }

    makeChoices() {
      const { report } = this;
      report.levels.forEach((level, k) => element("coverage").add(new Option(level.name, k, level.first, level.first)));
      element("coverage").addEventListener("change", () => this.update());
      element("everything").addEventListener("change", () => this.update());
      element("reset").addEventListener("click", () => this.reset());
      if (report.link === "softmax") {
        element("class-control").hidden = false;
        report.classes.forEach((name, k) => element("class").add(new Option(name, k)));
        element("class").addEventListener("change", () => this.update());
      }
      if (report.exposed) {
        element("exposure-control").hidden = false;
        element("exposure").addEventListener("input", () => this.expose(Number(element("exposure").value)));
      }
      if (this.rows) this.makeRowChoice();
      // Enter in the only input of a form would submit it and reload the page.
      element("inputs").addEventListener("submit", (event) => event.preventDefault());
    }

    makeRowChoice() {
      const choice = element("row");
      element("row-control").hidden = element("row-buttons").hidden = false;
      choice.add(new Option("typical values", ""));
      this.rows.names.forEach((name, k) => choice.add(new Option(name, k)));
      this.changed = new Option("", "changed");
      this.changed.hidden = this.changed.disabled = true;
      choice.add(this.changed);
      choice.addEventListener("change", () => this.pick(choice.value));
      // After a change, the next row is the one after the original row.
      const step = (by) => {
        const count = this.rows.names.length + 1;
        const place = this.place === "" ? 0 : Number(this.place) + 1;
        const next = (place + by + count) % count;
        this.pick(next === 0 ? "" : String(next - 1));
      };
      element("previous").addEventListener("click", () => step(-1));
      element("next").addEventListener("click", () => step(1));
    }

    // Select one of the report's rows, or typical values.
    pick(place) {
      if (place === "") {
        this.reset();
        return;
      }
      const width = this.report.columns.length;
      const start = Number(place) * width;
      if (this.rows.exposure) this.showExposure(this.rows.exposure[place]);
      this.set(this.rows.cells.subarray(start, start + width), place);
    }

    reset() {
      this.showExposure(1);
      this.set(this.report.typical.map((value) => (value === null ? NaN : value)), "");
    }

    showExposure(value) {
      this.exposure = value;
      element("exposure").value = value;
    }

    // Incomplete or invalid input is ignored.
    expose(value) {
      if (!(value > 0)) return;
      this.exposure = value;
      this.update();
    }

    set(cells, place) {
      this.row = Float64Array.from(cells);
      this.place = place;
      this.observed = place === "" ? null : this.rows.observed?.[Number(place)] ?? null;
      element("row").value = place;
      this.showRow();
      this.update();
    }

    makeField(column) {
      const id = `field-${column.index}`;
      const controls = column.kind === "categorical" ? this.levelControls(column, id) : this.numberControls(column, id);
      const field = make("div", { className: "field" }, ...controls.elements);
      field.dataset.column = column.name;
      field.setAttribute("role", "group");
      field.setAttribute("aria-label", column.name);
      element("fields").append(field);
      this.fields.set(column.index, controls);
    }

    levelControls(column, id) {
      const choice = make("select", { id });
      choice.setAttribute("aria-label", column.name);
      column.levels.forEach(([code, label]) => choice.add(new Option(label, code)));
      choice.add(new Option("(unseen category)", -1));
      choice.add(new Option("(missing)", "NaN"));
      choice.addEventListener("change", () => this.change(column.index, Number(choice.value)));
      const some = column.levels.length < column.n_levels
        ? [make("div", { className: "note" }, `${column.levels.length} of ${column.n_levels} categories, the most frequent`)] : [];
      return {
        elements: [make("div", { className: "line" }, nameOf(column), choice), ...some],
        show: (value) => { choice.value = String(value); },
      };
    }

    numberControls(column, id) {
      const slider = make("input", { type: "range", id: `${id}-slider`, min: column.low, max: column.high, step: column.step });
      const box = make("input", { type: "number", id, step: "any" });
      const gone = make("input", { type: "checkbox", id: `${id}-missing` });
      const outside = make("span", { className: "outside", hidden: true });
      slider.setAttribute("aria-label", `${column.name}, slider`);
      box.setAttribute("aria-label", column.name);
      gone.setAttribute("aria-label", `${column.name}, missing`);
      const spark = this.makeSpark(column);
      slider.addEventListener("input", () => this.change(column.index, Number(slider.value)));
      box.addEventListener("input", () => {
        if (box.value !== "" && Number.isFinite(Number(box.value))) this.change(column.index, Number(box.value), box);
      });
      gone.addEventListener("change", () => this.change(column.index, gone.checked ? NaN : column.value));
      const missing = make("label", { className: "note" }, gone, " missing");
      return {
        elements: [make("div", { className: "line" }, nameOf(column), outside, box, missing), ...(spark ? [spark.element] : []), slider],
        show: (value, typing) => {
          const known = !Number.isNaN(value);
          gone.checked = !known;
          slider.disabled = !known;
          if (known) slider.value = value;
          if (box !== typing) box.value = known ? String(Number(value.toPrecision(7))) : "";
          const beyond = known && (value < column.lowest || value > column.highest);
          outside.hidden = !beyond;
          outside.textContent = beyond ? `outside the data range (${number(column.lowest)} to ${number(column.highest)})` : "";
          spark?.show(value);
        },
      };
    }

    // The column's curve above its slider, with a line at the value; all share one vertical scale.
    makeSpark(column) {
      const term = this.report.shapes.find((one) => one.kind === "smooth" && one.feature === column.index);
      if (!term || this.report.n_classes > 1) return null;
      const [width, height] = [400, 60];
      const points = [column.low, ...term.values.filter((value) => value > column.low && value < column.high), column.high];
      if (!(column.high > column.low)) return null;
      const [low, high] = this.report.bounds;
      const x = (value) => (8 + (width - 16) * (value - column.low) / (column.high - column.low || 1)).toFixed(1);
      const y = (value) => (height * (high - value) / (high - low || 1)).toFixed(1);
      const point = (value, shift) => `${x(value)},${y(between(term.values, term.mean, value) + shift * between(term.values, term.std, value))}`;
      const graph = svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
      const back = [...points].reverse();
      const here = svg("line", { class: "here", y1: 0, y2: height });
      graph.append(
        svg("path", { class: "band", d: `M${points.map((v) => point(v, 2)).join("L")}L${back.map((v) => point(v, -2)).join("L")}Z` }),
        svg("line", { class: "zero", x1: 0, x2: width, y1: y(0), y2: y(0) }),
        svg("path", { class: "mean", d: `M${points.map((v) => point(v, 0)).join("L")}` }),
        here,
      );
      return {
        element: graph,
        show: (value) => {
          const known = !Number.isNaN(value);
          here.setAttribute("visibility", known ? "visible" : "hidden");
          if (known) {
            const place = x(Math.min(Math.max(value, column.low), column.high));
            here.setAttribute("x1", place);
            here.setAttribute("x2", place);
          }
        },
      };
    }

    change(column, value, typing = null) {
      this.row[column] = value;
      this.observed = null;
      if (this.changed) {
        this.changed.text = this.place === "" ? "own values" : `${this.rows.names[this.place]}, changed`;
        element("row").value = "changed";
      }
      this.fields.get(column).show(value, typing);
      this.update();
    }

    showRow() {
      this.fields.forEach((field, column) => field.show(this.row[column], null));
    }

    update() {
      const level = this.report.levels[Number(element("coverage").value)];
      this.result = this.scorer.score(this.row, level, this.exposure);
      this.showPrediction(level);
      this.showContributions(level);
    }

    showPrediction(level) {
      const { report, result } = this;
      const { observed } = this;
      const lines = [];
      const line = (className, text) => lines.push(make("div", { className }, text));
      const band = level.name;
      if (report.link === "softmax") {
        report.classes.forEach((name, k) => {
          const track = trackOf([0, result.response[k]], result.intervals[k]);
          const figures = make("span", { className: "number" }, make("b", {}, percent(result.response[k])),
            make("small", {}, ends(result.intervals[k], percent)));
          const row = make("div", { className: "class-row" }, make("span", {}, String(name)), track, figures);
          row.dataset.label = name;
          lines.push(row);
        });
        line("bands", `Below each probability: its ${band} credible interval.`);
      } else if (report.link === "logit") {
        line("label", `probability of ${report.classes[1]}`);
        line("value", percent(result.response[0]));
        line("bands", `${band} credible interval of the probability: ${ends(result.intervals[0], percent)}`);
        if (report.grades) lines.push(...this.gradeLines());
      } else {
        line("label", report.expected);
        const [from, to] = result.intervals[0];
        const decimals = decimalsOf(0.5 * (to - from));
        const form = (value) => measured(value, decimals);
        line("value", form(result.response[0]));
        const calibrated = report.calibrated ? " (calibrated)" : "";
        const what = report.follow_up ? "hazard" : "mean";
        if (!report.follow_up) {
          line("bands", `${band} prediction interval: ${result.newInterval ? ends(result.newInterval, form) + calibrated : level.reason}`);
        }
        line("bands", `${band} credible interval of the ${what}: ${ends(result.intervals[0], form)}`);
        if (report.follow_up) lines.push(...this.survivalLines(level));
        if (observed !== null) line("bands", `observed: ${form(observed)}`);
      }
      if (observed !== null && report.classes) line("bands", `observed: ${observed}`);
      element("responses").replaceChildren(...lines);
    }

    // The probability of every grade.
    gradeLines() {
      return this.report.grades.map((name, k) => {
        const share = this.result.grades[k];
        const figures = make("span", { className: "number" }, make("b", {}, percent(share)));
        const row = make("div", { className: "class-row" }, make("span", {}, name), trackOf([0, share], [share, share]), figures);
        row.dataset.label = name;
        return row;
      });
    }

    // The survival curve of the current row with its band, and its value at the chosen time.
    survivalLines(level) {
      const time = this.report.columns[this.report.columns.length - 1];
      const curve = this.scorer.survival(this.row, this.report.follow_up, level);
      const [width, height] = [400, 120];
      const [first, last] = [curve[0].time, curve[curve.length - 1].time];
      const x = (value) => (width * (value - first) / (last - first)).toFixed(1);
      const y = (value) => (height * (1 - value)).toFixed(1);
      const points = (key) => curve.map((point) => `${x(point.time)},${y(point[key])}`);
      const back = points("low").reverse();
      const here = Math.min(Math.max(this.row[this.row.length - 1], first), last);
      const places = curve.map((point) => point.time);
      // Between two times the cumulative hazard is a line.
      const at = (key) => Math.exp(-between(places, curve.map((point) => -Math.log(point[key])), here));
      const graph = svg("svg", { class: "spark survival", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none",
        role: "img", "aria-label": "survival by time, from one at the top to zero" },
        svg("path", { class: "band", d: `M${points("high").join("L")}L${back.join("L")}Z` }),
        svg("line", { class: "zero", x1: 0, x2: width, y1: height, y2: height }),
        svg("path", { class: "mean", d: `M${points("value").join("L")}` }),
        svg("line", { class: "here", x1: x(here), x2: x(here), y1: 0, y2: height }));
      const interval = ends([at("low"), at("high")], percent);
      const text = `Survival until ${time.name} ${number(here)}: ${percent(at("value"))} (${level.name} credible interval ${interval})`;
      return [make("div", { className: "bands", id: "survival-text" }, text), graph];
    }

    // Bars with intervals, the largest first; by default without those whose interval includes zero, as in the paper.
    showContributions(level) {
      const { report, result } = this;
      const place = report.link === "softmax" ? Number(element("class").value) : 0;
      const terms = result.terms
        .map((term) => ({ ...term, mean: term.mean[place], half: level.z * term.std[place] }))
        .map((term) => ({ ...term, sure: Math.abs(term.mean) > term.half }))
        .sort((a, b) => Math.abs(b.mean) - Math.abs(a.mean));
      const shown = terms.filter((term) => term.sure || element("everything").checked);
      const low = Math.min(...shown.map((term) => term.mean - term.half), 0);
      const high = Math.max(...shown.map((term) => term.mean + term.half), 0);
      const at = (value) => (value - low) / (high - low || 1);
      const rows = shown.map((term) => {
        const ends = [term.mean - term.half, term.mean + term.half].map(at);
        const track = trackOf([Math.min(term.mean, 0), Math.max(term.mean, 0)].map(at), ends, at(0), term.mean);
        const edited = term.edited ? ", edited by hand" : "";
        const words = make("span", {}, term.name, make("small", {}, this.valueOf(term.index) + edited));
        const figure = make("span", { className: "number" }, signed(term.mean), make("small", {}, `± ${number(term.half, 2)}`));
        const row = make("div", { className: term.sure ? "contribution" : "contribution unsure" }, words, track, figure);
        row.setAttribute("role", "listitem");
        row.dataset.term = term.name;
        return row;
      });
      element("contributions").replaceChildren(...rows);
      const hidden = terms.filter((term) => !shown.includes(term));
      const together = hidden.reduce((sum, term) => sum + term.mean, 0);
      const left = hidden.length
        ? `${hidden.length} ${hidden.length === 1 ? "term is" : "terms are"} not listed, as their ${level.name} intervals include zero; total contribution ${signed(together)}. ` : "";
      const sum = `Intercept ${number(this.scorer.intercept[place])}, sum ${number(result.mean[place])}`;
      const unit = report.link === "softmax" ? `centred logit of ${report.classes[place]}` : report.unit;
      element("left-out").textContent = `${left}${sum} (${unit}).`;
    }

    // The values of a term's columns in the current row.
    valueOf(index) {
      const term = this.scorer.tables.find((table) => table.index === index);
      return term.features.map((feature) => {
        const column = this.report.columns[feature];
        const value = this.row[feature];
        if (Number.isNaN(value)) return "missing";
        if (column.kind !== "categorical") return number(value);
        const level = column.levels.find(([code]) => code === value);
        return level ? String(level[1]) : "unseen category";
      }).join(" × ");
    }
  }

  Object.assign(lanam, { WhatIf });
})();
