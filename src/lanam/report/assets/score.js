// Scoring of rows in the page, as defined in lanam.explain.portable. Independent of the document, so that
// tests can run it on any row.
"use strict";

const lanam = {};

(() => {
  // Arrays are base64 of little-endian bytes: all first bytes, then all second bytes, and so on.
  const KINDS = { f4: Float32Array, f8: Float64Array, i4: Int32Array };

  function unpack(packed) {
    if (packed === null) return null;
    const Kind = KINDS[packed.kind];
    const sorted = atob(packed.data);
    const width = Kind.BYTES_PER_ELEMENT;
    const count = sorted.length / width;
    const bytes = new Uint8Array(sorted.length);
    for (let j = 0, at = 0; j < width; j++) {
      for (let i = 0; i < count; i++, at++) bytes[i * width + j] = sorted.charCodeAt(at);
    }
    return new Kind(bytes.buffer);
  }

  function unpackTable(table) {
    return {
      ...table,
      axes: table.axes.map((axis) => ({ ...axis, points: unpack(axis.points) })),
      mean: unpack(table.mean),
      table: unpack(table.table),
      coupling: unpack(table.coupling),
      ownVariance: unpack(table.own_variance),
      unknownVariance: unpack(table.unknown_variance),
      edited: unpack(table.edited),
    };
  }

  // The number of elements of an ascending array that are <= value, or < value.
  function countBelow(points, value, included) {
    let low = 0;
    let high = points.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (included ? points[middle] <= value : points[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // The entries of an axis at a value, with interpolation weights; null if there are none.
  function locate(axis, value) {
    const points = axis.points;
    if (Number.isNaN(value)) return axis.missing === null ? null : [[axis.missing, 1]];
    if (axis.kind === "knots") {
      const last = points.length - 1;
      const periods = axis.period === null || (points[0] <= value && value <= points[last])
        ? 0 : Math.floor((value - points[0]) / axis.period);
      const moved = value - periods * (axis.period || 0);
      const x = Math.min(Math.max(moved, points[0]), points[last]);
      const left = Math.min(countBelow(points, x, true) - 1, last - 1);
      // Weights are in single precision in Python, too.
      const right = Math.fround((x - points[left]) / (points[left + 1] - points[left]));
      if (right === 0) return [[left, 1]];
      return [[left, 1 - right], [left + 1, right]];
    }
    if (axis.kind === "levels") {
      const above = countBelow(points, value, false);
      const near = [above - 1, above].filter((k) => k >= 0 && k < points.length);
      const distance = (k) => Math.abs(value - points[k]);
      const own = near.reduce((a, b) => (distance(b) < distance(a) ? b : a));
      return [[distance(own) <= 1e-6 * Math.abs(points[own]) ? own : axis.other, 1]];
    }
    if (axis.kind === "bins") return [[countBelow(points, value, true), 1]];
    return [[value >= 0 && value < points.length ? points[value] : axis.other, 1]];
  }

  // The entries of a term's table at a row.
  function corners(table, row) {
    let found = [[0, 1]];
    for (const [k, axis] of table.axes.entries()) {
      const own = locate(axis, row[table.features[k]]);
      if (own === null) return null;
      found = found.flatMap(([entry, weight]) =>
        own.map(([next, share]) => [entry * axis.n_entries + next, weight * share]));
    }
    return found;
  }

  function readRow(array, width, found) {
    const result = new Float64Array(width);
    for (const [entry, weight] of found) {
      for (let j = 0; j < width; j++) result[j] += weight * array[entry * width + j];
    }
    return result;
  }

  function sumOfProducts(first, second) {
    let sum = 0;
    for (let k = 0; k < first.length; k++) sum += first[k] * second[k];
    return sum;
  }

  function addTo(total, part, weight = 1) {
    for (let k = 0; k < total.length; k++) total[k] += weight * part[k];
  }

  class Scorer {
    constructor(model) {
      this.link = model.link;
      this.family = model.family;
      this.classes = model.classes;
      this.intercept = unpack(model.intercept);
      this.factor = unpack(model.factor);
      this.size = Math.round((Math.sqrt(8 * this.factor.length + 1) - 1) / 2);
      this.noiseVariance = model.noise_variance;
      this.missingVariance = unpack(model.missing_variance);
      this.contrasts = unpack(model.contrasts);
      this.normals = unpack(model.normals);
      this.nClasses = this.intercept.length;
      this.nOutputs = this.contrasts ? this.nClasses - 1 : 1;
      this.cutPoints = model.cut_points;
      this.logNoise = model.log_noise;
      this.shape = model.shape;
      this.noiseTables = model.noise_tables.map(unpackTable);
      this.tables = model.tables.map(unpackTable);
    }

    // F' x for a vector whose only elements are `part`, from `start` on; F is lower triangular.
    spread(part, start) {
      const result = new Float64Array(this.size);
      for (let k = 0; k < part.length; k++) {
        const row = start + k;
        const at = (row * (row + 1)) / 2;
        if (part[k] !== 0) {
          for (let j = 0; j <= row; j++) result[j] += part[k] * this.factor[at + j];
        }
      }
      return result;
    }

    // Vectors of the classes, from those of the outputs behind them.
    ofClasses(outputs) {
      if (!this.contrasts) return outputs;
      return Array.from({ length: this.nClasses }, (_, c) => {
        const result = new Float64Array(this.size);
        outputs.forEach((vector, k) => addTo(result, vector, this.contrasts[c * this.nOutputs + k]));
        return result;
      });
    }

    // The contribution of a term: its mean for each class, vectors whose products are its covariance, and
    // additional variance.
    term(table, row) {
      const found = corners(table, row);
      const extra = new Float64Array(this.nClasses * this.nClasses);
      if (found === null) {
        extra.set(table.unknownVariance);
        return { mean: new Float64Array(this.nClasses), vectors: null, extra };
      }
      const mean = readRow(table.mean, this.nClasses, found);
      if (table.coupling) {
        extra[0] = readRow(table.ownVariance, 1, found)[0];
        return { mean, vectors: [this.spread(readRow(table.coupling, this.size, found), 0)], extra };
      }
      const own = readRow(table.table, table.width, found);
      const outputs = Array.from({ length: this.nOutputs }, (_, k) =>
        this.spread(own, table.start + k * table.width));
      return { mean, vectors: this.ofClasses(outputs), extra };
    }

    // Whether a contribution was edited by hand; without an entry, whether all entries were.
    isEdited(table, row) {
      if (!table.edited) return false;
      const found = corners(table, row);
      return found === null ? table.edited.every((one) => one) : readRow(table.edited, 1, found)[0] > 0;
    }

    // Mean and covariance of the sum, and of every term, on the link scale.
    linkMoments(row) {
      const n = this.nClasses;
      const mean = Float64Array.from(this.intercept);
      const last = Array.from({ length: this.nOutputs }, (_, k) =>
        this.spread([1], this.size - this.nOutputs + k));
      const vectors = this.ofClasses(last);
      const covariance = new Float64Array(n * n);
      const terms = this.tables.map((table) => {
        const term = this.term(table, row);
        addTo(mean, term.mean);
        addTo(covariance, term.extra);
        if (term.vectors) vectors.forEach((vector, c) => addTo(vector, term.vectors[c]));
        const std = Array.from({ length: n }, (_, c) => {
          const shared = term.vectors ? sumOfProducts(term.vectors[c], term.vectors[c]) : 0;
          return Math.sqrt(shared + term.extra[c * n + c]);
        });
        return { name: table.name, index: table.index, mean: term.mean, std, edited: this.isEdited(table, row) };
      });
      for (let c = 0; c < n; c++) {
        for (let d = 0; d < n; d++) covariance[c * n + d] += sumOfProducts(vectors[c], vectors[d]);
      }
      return { mean, covariance, terms, vectors };
    }

    // Survival until the end of each interval of follow-up, whose time is the last column, as in
    // lanam.core.model.hazards: the hazard is that of the interval's middle, and the interval of log H is that
    // of its linearisation.
    survival(row, edges, level) {
      const time = row.length - 1;
      const hazards = [];
      const vectors = [];
      let extra = 0;
      const curve = [{ time: edges[0], value: 1, low: 1, high: 1 }];
      for (let j = 0; j + 1 < edges.length; j++) {
        const there = Float64Array.from(row);
        there[time] = 0.5 * (edges[j] + edges[j + 1]);
        const moments = this.linkMoments(there);
        hazards.push(Math.exp(moments.mean[0]) * (edges[j + 1] - edges[j]));
        vectors.push(moments.vectors[0]);
        extra = moments.covariance[0] - sumOfProducts(moments.vectors[0], moments.vectors[0]);
        const total = hazards.reduce((a, b) => a + b);
        const slope = new Float64Array(this.size);
        hazards.forEach((hazard, k) => addTo(slope, vectors[k], hazard / total));
        const std = Math.sqrt(sumOfProducts(slope, slope) + Math.max(extra, 0));
        const at = (side) => Math.exp(-total * Math.exp(side * level.z * std));
        curve.push({ time: edges[j + 1], value: at(0), low: at(1), high: at(-1) });
      }
      return curve;
    }

    // Noise variance of a row: missing values add to it, noise tables scale it. A missing value without an
    // entry does not change the exponent.
    rowNoise(row) {
      const exponent = this.noiseTables.reduce((sum, table) => {
        const found = corners(table, row);
        return found === null ? sum : sum + readRow(table.mean, 1, found)[0];
      }, this.logNoise);
      let variance = this.noiseVariance * Math.exp(exponent);
      row.forEach((value, k) => { if (Number.isNaN(value)) variance += this.missingVariance[k]; });
      return variance;
    }

    // The prediction with its intervals; `level` is one of the report's coverages, with the normal quantile
    // `z` and, for new observations, `z_new`, which may be calibrated.
    score(row, level, exposure = 1) {
      const moments = this.linkMoments(row);
      const { mean, covariance } = moments;
      if (this.link === "softmax") {
        const intervals = classIntervals(mean, covariance, this.normals, level.coverage);
        return { ...moments, response: classProbabilities(mean, covariance), intervals };
      }
      const std = Math.sqrt(covariance[0]);
      const ends = [mean[0] - level.z * std, mean[0] + level.z * std];
      if (this.link === "logit") {
        const odds = mean[0] / Math.sqrt(1 + (Math.PI / 8) * covariance[0]);
        const grades = this.cutPoints && gradeProbabilities(this.cutPoints, mean[0], covariance[0]);
        return { ...moments, response: [expit(odds)], intervals: [ends.map(expit)], grades };
      }
      if (this.family === "lognormal") {
        const noise = this.rowNoise(row);
        const moment = (order) => logMoment(mean[0], covariance[0], noise, this.shape, order);
        const factor = logMoment(0, 0, noise, this.shape, 1);
        const newEnds = this.noisyInterval(mean[0], covariance[0], noise, level);
        return {
          ...moments, response: [moment(1)], intervals: [ends.map((end) => factor * Math.exp(end))],
          newStd: Math.sqrt(moment(2) - moment(1) ** 2), newInterval: newEnds && newEnds.map(Math.exp),
        };
      }
      if (this.link === "log") {
        // A hazard is that of the curves, at the mean of its logarithm.
        const rate = exposure * Math.exp(mean[0] + (this.family === "survival" ? 0 : 0.5 * covariance[0]));
        const intervals = [ends.map((end) => exposure * Math.exp(end))];
        if (this.family !== "poisson") return { ...moments, response: [rate], intervals, newInterval: null };
        const dispersed = disperse(mean[0], covariance[0], exposure, this.noiseVariance);
        return {
          ...moments, response: [rate], intervals,
          newStd: countStd(dispersed, exposure), newInterval: countInterval(dispersed, exposure, level),
        };
      }
      if (!["gaussian", "student"].includes(this.family)) {
        return { ...moments, response: [mean[0]], intervals: [ends], newInterval: null };
      }
      const noise = this.rowNoise(row);
      const newInterval = this.noisyInterval(mean[0], covariance[0], noise, level);
      return { ...moments, response: [mean[0]], intervals: [ends], newStd: Math.sqrt(covariance[0] + noise), newInterval };
    }

    // The interval of a new observation with additive noise.
    noisyInterval(mean, variance, noise, level) {
      return this.shape === null
        ? normalInterval(mean, Math.sqrt(variance + noise), level)
        : mixtureInterval(mean, variance, noise, this.shape, level);
    }
  }

  function expit(x) {
    return x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x));
  }

  function normalInterval(mean, std, level) {
    return level.z_new === null ? null : [mean - level.z_new * std, mean + level.z_new * std];
  }

  // Noise that is not Gaussian: lanam.core.model.mixtures. Bisection for the bound with the tail's
  // probability, between the bounds of the single components.
  function mixtureInterval(mean, variance, noise, shape, level) {
    if (level.z_new === null) return null;
    const means = shape.means.map((value) => mean + Math.sqrt(noise) * value);
    const stds = shape.stds.map((value) => Math.sqrt(variance + noise * value * value));
    return [-1, 1].map((side) => {
      const beyond = (y) => shape.weights.reduce(
        (sum, weight, k) => sum + weight * normalTail((side * (y - means[k])) / stds[k]), 0);
      const ends = means.map((value, k) => value + side * level.z_new * stds[k]);
      let [low, high] = [Math.min(...ends), Math.max(...ends)];
      for (let step = 0; step < 100; step++) {
        const middle = 0.5 * (low + high);
        if ((beyond(middle) > level.tail_new) === (side > 0)) low = middle;
        else high = middle;
      }
      return 0.5 * (low + high);
    });
  }

  // Moments of the exponential of a mixture, as in lanam.families.lognormal.
  function logMoment(mean, variance, noise, shape, order) {
    const { weights, means, stds } = shape ?? { weights: [1], means: [0], stds: [1] };
    return weights.reduce((sum, weight, k) => {
      const spread = variance + noise * stds[k] * stds[k];
      return sum + weight * Math.exp(order * (mean + Math.sqrt(noise) * means[k]) + 0.5 * order * order * spread);
    }, 0);
  }

  // Probability that a standard normal number is above z.
  function normalTail(z) {
    const tail = 0.5 * upperGamma(0.5, 0.5 * z * z);
    return z > 0 ? tail : 1 - tail;
  }

  // Ordered classes, as in lanam.families.ordinal.
  function gradeProbabilities(cutPoints, mean, variance) {
    const scale = Math.sqrt(1 + (Math.PI / 8) * variance);
    const upto = [...cutPoints.map((cut) => expit((cut - mean) / scale)), 1];
    return upto.map((value, k) => value - (k > 0 ? upto[k - 1] : 0));
  }

  // Several classes, as in lanam.families.softmax.
  function classProbabilities(mean, covariance) {
    const n = mean.length;
    const share = Array.from({ length: n }, (_, c) => {
      let sum = 0;
      for (let d = 0; d < n; d++) {
        const variance = covariance[c * n + c] + covariance[d * n + d] - 2 * covariance[c * n + d];
        sum += Math.exp((mean[d] - mean[c]) / Math.sqrt(1 + (Math.PI / 8) * Math.max(variance, 0)));
      }
      return 1 / sum;
    });
    const total = share.reduce((a, b) => a + b);
    return share.map((value) => value / total);
  }

  // Quantiles of draws, with the normal numbers of predict_interval.
  function classIntervals(mean, covariance, normals, coverage) {
    const n = mean.length;
    const root = symmetricRoot(covariance, n);
    const nDraws = normals.length / n;
    const draws = Array.from({ length: n }, () => new Float64Array(nDraws));
    for (let i = 0; i < nDraws; i++) {
      const link = Array.from(mean);
      for (let k = 0; k < n; k++) {
        for (let c = 0; c < n; c++) link[c] += normals[i * n + k] * root[k * n + c];
      }
      const largest = Math.max(...link);
      const weight = link.map((value) => Math.exp(value - largest));
      const total = weight.reduce((a, b) => a + b);
      weight.forEach((value, c) => { draws[c][i] = value / total; });
    }
    const upper = 0.5 + 0.5 * coverage;
    return draws.map((values) => {
      values.sort();
      return [quantile(values, 1 - upper), quantile(values, upper)];
    });
  }

  function quantile(sorted, level) {
    const place = level * (sorted.length - 1);
    const below = Math.floor(place);
    const above = Math.min(below + 1, sorted.length - 1);
    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
  }

  // The symmetric root of a covariance, from its eigenvectors by Jacobi's rotations.
  function symmetricRoot(covariance, n) {
    const a = Float64Array.from(covariance);
    const vectors = new Float64Array(n * n);
    for (let k = 0; k < n; k++) vectors[k * n + k] = 1;
    const scale = Math.max(...Array.from({ length: n }, (_, k) => a[k * n + k]), 1e-300);
    for (let sweep = 0; sweep < 50; sweep++) {
      let off = 0;
      for (let p = 0; p < n; p++) {
        for (let q = p + 1; q < n; q++) {
          off = Math.max(off, Math.abs(a[p * n + q]));
          rotate(a, vectors, n, p, q);
        }
      }
      if (off < 1e-15 * scale) break;
    }
    const root = new Float64Array(n * n);
    for (let k = 0; k < n; k++) {
      const size = Math.sqrt(Math.max(a[k * n + k], 0));
      for (let i = 0; i < n; i++) {
        for (let j = 0; j < n; j++) root[i * n + j] += size * vectors[i * n + k] * vectors[j * n + k];
      }
    }
    return root;
  }

  // One rotation that makes element (p, q) zero.
  function rotate(a, vectors, n, p, q) {
    const own = a[p * n + q];
    if (own === 0) return;
    const theta = (a[q * n + q] - a[p * n + p]) / (2 * own);
    const t = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
    const c = 1 / Math.sqrt(t * t + 1);
    const s = t * c;
    const turn = (array, first, second) => {
      const [x, y] = [array[first], array[second]];
      array[first] = c * x - s * y;
      array[second] = s * x + c * y;
    };
    for (let k = 0; k < n; k++) turn(a, k * n + p, k * n + q);
    for (let k = 0; k < n; k++) turn(a, p * n + k, q * n + k);
    for (let k = 0; k < n; k++) turn(vectors, k * n + p, k * n + q);
  }

  // Counts with a lognormal rate, as in lanam.families.poisson_lognormal.
  function disperse(mean, variance, exposure, dispersion) {
    const more = Math.log1p((dispersion - 1) * Math.exp(-(Math.log(exposure) + mean + 0.5 * variance)));
    return { mean: mean - 0.5 * more, variance: variance + more };
  }

  function countStd({ mean, variance }, exposure) {
    const rate = exposure * Math.exp(mean + 0.5 * variance);
    return Math.sqrt(rate + rate * rate * Math.expm1(variance));
  }

  // The smallest counts that are not exceeded with at least the probabilities of both tails.
  function countInterval(moments, exposure, level) {
    if (level.z_new === null) return null;
    const centre = Math.log(exposure) + moments.mean;
    if (centre > Math.log(LARGE_RATE)) {
      const half = level.z_new * Math.sqrt(moments.variance + Math.exp(-centre));
      return [Math.ceil(Math.exp(centre - half)), Math.ceil(Math.exp(centre + half))];
    }
    const cdf = countDistribution(centre, Math.sqrt(moments.variance));
    return [smallest(cdf, level.tail_new), smallest(cdf, 1 - level.tail_new)];
  }

  // Range of the grid over the log rate in standard deviations, and its number of points.
  const REACH = 8.5;
  const N_POINTS = 600;

  // Above this rate the Poisson noise is approximately normal on the log scale.
  const LARGE_RATE = 1e4;

  // Probability of at most k: the mean over the rate of Q(k + 1, rate).
  function countDistribution(centre, deviation) {
    const rates = [];
    const weights = [];
    for (let i = 0; i <= N_POINTS; i++) {
      const z = -REACH + (2 * REACH * i) / N_POINTS;
      rates.push(Math.exp(centre + deviation * z));
      weights.push(Math.exp(-0.5 * z * z));
    }
    const total = weights.reduce((a, b) => a + b);
    return (k) => rates.reduce((sum, rate, i) => sum + weights[i] * upperGamma(k + 1, rate), 0) / total;
  }

  function smallest(cdf, probability) {
    let above = 0;
    let step = 1;
    while (cdf(above) < probability) {
      above += step;
      step *= 2;
    }
    let below = -1;
    while (above - below > 1) {
      const middle = Math.floor(0.5 * (above + below));
      if (cdf(middle) >= probability) above = middle;
      else below = middle;
    }
    return above;
  }

  // Lanczos' coefficients for the logarithm of the gamma function (g = 7, nine terms).
  const LANCZOS = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
    1.5056327351493116e-7,
  ];

  function logGamma(x) {
    const base = x + 6.5;
    const sum = LANCZOS.reduce((total, c, k) => total + (k === 0 ? c : c / (x - 1 + k)), 0);
    return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(base) - base + Math.log(sum);
  }

  // The regularised upper incomplete gamma function: a series below the mode, a fraction above.
  function upperGamma(shape, x) {
    if (x <= 0) return 1;
    const scale = Math.exp(shape * Math.log(x) - x - logGamma(shape));
    if (x < shape + 1) {
      let term = 1 / shape;
      let sum = term;
      for (let k = 1; k < 100000 && term > 1e-16 * sum; k++) {
        term *= x / (shape + k);
        sum += term;
      }
      return 1 - scale * sum;
    }
    // Lentz's algorithm for the continued fraction.
    let b = x + 1 - shape;
    let c = 1e300;
    let d = 1 / b;
    let value = d;
    for (let k = 1; k < 100000; k++) {
      const a = -k * (k - shape);
      b += 2;
      d = 1 / (a * d + b);
      c = b + a / c;
      const change = c * d;
      value *= change;
      if (Math.abs(change - 1) < 1e-15) break;
    }
    return scale * value;
  }

  Object.assign(lanam, { Scorer, unpack });
})();
