// The frame of a chart: grid lines, two canvases (everything; what is selected) and an SVG with axes on top, in a box that
// follows its parent's width.

class Chart {
  // `options`: height, margin {top, right, bottom, left}, label for screen readers.
  constructor(parent, options) {
    this.options = options;
    this.base = element("canvas", { class: "base", "aria-hidden": "true" });
    this.top = element("canvas", { "aria-hidden": "true" });
    this.box = element("div", { class: "chart", role: "img", "aria-label": options.label });
    this.box.style.height = `${options.height}px`; // from the beginning, so that nothing moves when it is drawn
    parent.append(this.box);
    this.under = d3.select(this.box).append("svg");
    this.box.append(this.base, this.top);
    this.svg = d3.select(this.box).append("svg");
    this.tip = element("div", { class: "tip", hidden: true });
    this.box.append(this.tip);
  }

  // Empties the chart and fits it to its parent. Returns false while it has no width.
  fit(height = this.options.height) {
    const width = this.box.parentElement.clientWidth;
    if (width < 40) return false;
    const { margin } = this.options;
    this.width = width;
    this.height = height;
    this.inner = { left: margin.left, top: margin.top, right: width - margin.right, bottom: height - margin.bottom };
    this.box.style.height = `${height}px`;
    for (const canvas of [this.base, this.top]) fitCanvas(canvas, width, height);
    for (const svg of [this.under, this.svg]) svg.attr("width", width).attr("height", height).selectAll("*").remove();
    return true;
  }

  // `values`: where the ticks are; by default as many as fit. `format`: a function, or nothing. `whole`: at integers alone.
  axis(side, scale, { values, format, grid = true, whole = false } = {}) {
    const { left, top, right, bottom } = this.inner;
    const below = side === "bottom";
    const shift = below ? `translate(0,${bottom})` : `translate(${left},0)`;
    const room = below ? Math.max(2, (right - left) / 100) : Math.max(2, (bottom - top) / 50);
    const shown = values || scale.ticks(room).filter((tick) => !whole || Number.isInteger(tick));
    const make = () => (below ? d3.axisBottom(scale) : d3.axisLeft(scale)).tickValues(shown);
    if (grid)
      this.under.append("g").attr("class", "grid").attr("transform", shift).call(make().tickSize(below ? top - bottom : left - right).tickFormat(""));
    const axis = make().tickSizeOuter(0).tickFormat(format || (whole ? d3.format(",") : scale.tickFormat(room)));
    this.svg.append("g").attr("class", "axis").attr("transform", shift).call(axis);
  }

  // Whole minutes, hours or days, as clocks have them.
  timeAxis(scale) {
    const most = Math.max(2, (this.inner.right - this.inner.left) / 80);
    const length = scale.domain()[1];
    const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000, 2592000, 8640000];
    const step = steps.find((each) => length / each <= most) || length / most;
    this.axis("bottom", scale, { values: d3.range(0, length * 1.0001, step), format: tickText });
  }

  titles(below, above) {
    const { left, right } = this.inner;
    this.svg.append("text").attr("class", "name").attr("x", right).attr("y", this.height - 4).attr("text-anchor", "end").text(below);
    this.svg.append("text").attr("class", "name").attr("x", Math.min(left, 4)).attr("y", 12).text(above);
  }

  showTip(x, y, text) {
    this.tip.hidden = false;
    this.tip.textContent = text;
    const width = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(x + 14, this.width - width))}px`;
    this.tip.style.top = `${y + 16}px`;
  }

  hideTip() {
    this.tip.hidden = true;
  }
}

function fitCanvas(canvas, width, height) {
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.getContext("2d").setTransform(density, 0, 0, density, 0, 0);
}

function cleared(canvas) {
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  return context;
}

// The upper canvas with what is selected; everything else is dimmed. paint(context, isShown) draws it.
function highlighted(chart, store, paint) {
  const context = cleared(chart.top);
  chart.box.classList.toggle("dimmed", store.selected !== null);
  if (store.selected !== null) paint(context, (t) => store.selected[t] === 1);
  return context;
}

// Restricts drawing to the inside of the axes until context.restore().
function clipped(context, inner) {
  context.save();
  context.beginPath();
  context.rect(inner.left - 1, inner.top - 1, inner.right - inner.left + 2, inner.bottom - inner.top + 2);
  context.clip();
}

// Many lines with few strokes: one path of a few hundred lines is much faster than a path for each, or one for all.
function strokeMany(context, trials, trace) {
  const most = 150;
  for (let i = 0; i < trials.length; i += most) {
    context.beginPath();
    for (let k = i; k < Math.min(i + most, trials.length); ++k) trace(context, trials[k]);
    context.stroke();
  }
}

// The best trial, the picked one and the one under the mouse, on top of all others.
function strokeMarked(context, best, store, width, trace) {
  for (const [t, name, each] of [[best, "ink", 2.4], [store.picked, "accent", width], [store.hover, "accent", width]]) {
    if (t === null || t === NO_TRIAL) continue;
    context.strokeStyle = colour(name);
    context.lineWidth = each;
    context.beginPath();
    trace(t);
    context.stroke();
  }
}

// The trial under the mouse is shown everywhere, and picked by a click. find(x, y): {trial, text}, or null for none.
function followMouse(chart, store, find) {
  chart.box.addEventListener("mousemove", (event) => {
    const box = chart.box.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const found = find(x, y);
    store.setHover(found ? found.trial : NO_TRIAL);
    if (found) chart.showTip(x, y, found.text);
    else chart.hideTip();
  });
  chart.box.addEventListener("mouseleave", () => {
    store.setHover(NO_TRIAL);
    chart.hideTip();
  });
  chart.box.addEventListener("click", () => {
    if (store.hover !== NO_TRIAL) store.pick(store.hover);
  });
}

// The more lines, the fainter each, so that where they lie densest can still be seen.
function opacityOf(lines, least) {
  return Math.min(0.9, Math.max(least, 10 / Math.sqrt(lines)));
}

// From d3 6 on a listener gets the event; before, it is a global.
function brushed(event) {
  return d3.event || event;
}

// A range without the outermost half percent, so that one explosion does not flatten all curves.
function robustRange(values, ...always) {
  const sorted = Float64Array.from(values.filter(isFinite)).sort();
  if (sorted.length === 0) return [0, 1];
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const range = [Math.min(at(0.005), ...always.filter(isFinite)), Math.max(at(0.995), ...always.filter(isFinite))];
  if (range[0] !== range[1]) return range;
  const room = Math.abs(range[0]) * 0.05 || 0.5;
  return [range[0] - room, range[1] + room];
}

// The scale of a hyper-parameter over [from, to] pixels, with a place for trials that lack it (`absent`).
function parameterScale(parameter, values, from, to) {
  const range = d3.extent(values.filter((value) => !isNaN(value)));
  if (parameter.values) {
    const scale = d3.scalePoint(parameter.values.map((_, i) => i), [from, to]).padding(0.4);
    return { scale, ticks: parameter.values.map((_, i) => i), text: (i) => shortened(parameter.values[i], 14) };
  }
  const bounds = parameter.bounds || (range[0] === undefined ? [0, 1] : range);
  const low = Math.min(bounds[0], range[0] === undefined ? bounds[0] : range[0]);
  const high = Math.max(bounds[1], range[1] === undefined ? bounds[1] : range[1]);
  const scale = parameter.log && low > 0 ? d3.scaleLog([low, high], [from, to]) : d3.scaleLinear([low, high], [from, to]);
  return { scale, ticks: niceTicks(scale, parameter.log && low > 0), text: numberText };
}

// Powers of ten where there are several: the ticks of d3 on a logarithmic axis are too many to be labelled.
function niceTicks(scale, log) {
  const ticks = scale.ticks(5);
  if (!log) return ticks;
  const powers = ticks.filter((tick) => Number.isInteger(Math.round(Math.log10(tick) * 1e9) / 1e9));
  if (powers.length > 1) return powers;
  return ticks.filter((tick) => [1, 2, 5].includes(Math.round(tick / 10 ** Math.floor(Math.log10(tick) + 1e-9))));
}

function shortened(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

// By rank, 0 the best: readable without telling red from green. The best stands out most from the paper, dark or light.
function rankColour(share) {
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches && !document.documentElement.classList.contains("printing");
  return d3.interpolateViridis(dark ? 0.95 - 0.75 * share : 0.1 + 0.75 * share);
}

function rankColours(study) {
  const valued = study.rank.filter((t) => !isNaN(study.trials.best[t]));
  const colours = new Array(study.trials.count).fill(colour("dim"));
  valued.forEach((t, i) => {
    const share = valued.length < 2 ? 0 : i / (valued.length - 1);
    colours[t] = rankColour(share);
  });
  return colours;
}

function rankLegend() {
  const svg = d3.create("svg").attr("width", 230).attr("height", 18).attr("role", "img").attr("aria-label", "Colours from the best to the worst trial");
  svg.append("text").attr("x", 0).attr("y", 13).text("best");
  for (let i = 0; i < 40; ++i)
    svg.append("rect").attr("x", 36 + 3.6 * i).attr("y", 3).attr("width", 4.4).attr("height", 11).attr("fill", rankColour(i / 39));
  svg.append("text").attr("x", 188).attr("y", 13).text("worst");
  return svg.node();
}
