// What decided: importance of the hyper-parameters, each against the metric, and the two most important together.

function importancePart(parent, store) {
  const { study } = store;
  const part = section(parent, "Which hyper-parameters matter");
  const varies = study.parameters.length > 0;
  if (!varies) {
    part.append(element("p", {}, "No hyper-parameter varies in this study."));
    return;
  }
  if (study.importance.length > 0) importanceBars(part, study);
  else part.append(element("p", { class: "warning" }, "Too few trials have a value to say which hyper-parameters matter: 50 are needed. The pictures below show what there is."));
  slices(part, store);
  if (study.importance.filter(([, share]) => share !== null).length > 1) pairMap(part, store);
}

function importanceBars(part, study) {
  part.append(element("p", { class: "note" }, "PED-ANOVA (Watanabe, Bansal and Hutter, IJCAI 2023): how much each hyper-parameter separates the best tenth of the trials from all of them. Each trial counts with its best value, however long it was trained."));
  const largest = study.importance[0][1] || 1;
  const rows = study.importance.map(([name, share]) => (share === null ? [name, "-", "too few of the best trials have it"] : [name, shareText(share), importanceBar(share / largest)]));
  part.append(table(["hyper-parameter", "#share", ""], rows, "Importance by PED-ANOVA"));
}

function importanceBar(length) {
  const svg = d3.create("svg").attr("width", 220).attr("height", 12).attr("aria-hidden", "true");
  svg.append("rect").attr("class", "bar").attr("y", 1).attr("height", 10).attr("width", Math.max(1, 220 * length));
  return svg.node();
}

// The most important first; without importance in the order of the study file.
function byImportance(study) {
  // Without a share: a hyper-parameter that few trials have.
  const order = study.importance.map(([name]) => study.parameters.findIndex((parameter) => parameter.name === name));
  return order.length > 0 ? order : study.parameters.map((_, p) => p);
}

function slices(part, store) {
  part.append(element("h3", {}, `${store.study.metric} against each hyper-parameter`));
  const grid = element("div", { class: "small" });
  part.append(grid);
  for (const p of byImportance(store.study)) new SliceChart(grid, store, p);
}

// Points of trials; the same for slices and for the map of two hyper-parameters.
class ScatterChart {
  constructor(parent, store, options) {
    this.store = store;
    this.study = store.study;
    this.chart = new Chart(parent, options);
    this.panel = new Panel(this.chart.box, store, () => this.draw(), () => this.drawTop());
    followMouse(this.chart, store, (x, y) => this.under(x, y));
  }

  place(x, y) {
    const { trials } = this.study;
    this.px = Float32Array.from({ length: trials.count }, (_, t) => x(t));
    this.py = Float32Array.from({ length: trials.count }, (_, t) => y(t));
    this.colours = rankColours(this.study);
    this.paint(cleared(this.chart.base), () => true);
    this.drawTop();
  }

  paint(context, isShown) {
    const { trials, rank } = this.study;
    const size = (trials.count > 2000 ? 1.6 : trials.count > 300 ? 2.6 : 3.4) * (this.chart.height > 300 ? 1.5 : 1);
    for (const t of [...rank].reverse()) {
      if (isNaN(this.px[t]) || isNaN(this.py[t]) || !isShown(t)) continue;
      context.fillStyle = this.colours[t];
      context.fillRect(this.px[t] - size / 2, this.py[t] - size / 2, size, size);
    }
  }

  drawTop() {
    const { store, study } = this;
    const context = highlighted(this.chart, store, (...args) => this.paint(...args));
    for (const [t, name] of [[study.best, "ink"], [store.picked, "accent"], [store.hover, "accent"]]) {
      if (t === null || t === NO_TRIAL || isNaN(this.px[t]) || isNaN(this.py[t])) continue;
      context.strokeStyle = colour(name);
      context.lineWidth = 2;
      context.beginPath();
      context.arc(this.px[t], this.py[t], 5, 0, 7);
      context.stroke();
    }
  }

  under(x, y) {
    let found = NO_TRIAL;
    let least = 100;
    for (let t = 0; t < this.study.trials.count; ++t) {
      const distance = (this.px[t] - x) ** 2 + (this.py[t] - y) ** 2;
      if (distance >= least || !this.store.isSelected(t)) continue;
      least = distance;
      found = t;
    }
    return found === NO_TRIAL ? null : { trial: found, text: this.tipOf(found) };
  }

  tipOf(t) {
    return `${trialText(this.study, t)}: ${this.study.metric} ${metricText(this.study.trials.best[t])}`;
  }
}

class SliceChart extends ScatterChart {
  constructor(parent, store, p) {
    const parameter = store.study.parameters[p];
    super(element("div", {}), store, { height: 190, margin: { top: 22, right: 10, bottom: 36, left: 52 },
      label: `${store.study.metric} against ${parameter.name}` });
    parent.append(this.chart.box.parentElement);
    this.parameter = parameter;
    this.values = store.study.trials.values[p];
  }

  draw() {
    if (!this.chart.fit()) return;
    const { left, right, top, bottom } = this.chart.inner;
    const { trials } = this.study;
    const along = parameterScale(this.parameter, this.values, left, right);
    const y = d3.scaleLinear(robustRange(trials.best), [bottom, top]).nice().clamp(true);
    axisOfParameter(this.chart, "bottom", along);
    this.chart.axis("left", y);
    this.chart.titles(shortened(this.parameter.name, 30), this.study.metric);
    this.place((t) => spread(this.parameter, along.scale, this.values[t], t), (t) => y(trials.best[t]));
  }
}

function pairMap(part, store) {
  const [first, second] = byImportance(store.study);
  part.append(element("h3", {}, `${store.study.parameters[first].name} and ${store.study.parameters[second].name}, the two most important`),
    element("p", { class: "note" }, "Each point is a trial, coloured by its rank."), rankLegend());
  const holder = element("div", {});
  part.append(holder);
  new MapChart(holder, store, first, second);
}

class MapChart extends ScatterChart {
  constructor(parent, store, first, second) {
    const { parameters, trials } = store.study;
    super(parent, store, { height: 360, margin: { top: 26, right: 14, bottom: 38, left: 70 },
      label: `Trials by ${parameters[first].name} and ${parameters[second].name}` });
    this.sides = [first, second].map((p) => ({ parameter: parameters[p], values: trials.values[p] }));
  }

  draw() {
    if (!this.chart.fit()) return;
    const { left, right, top, bottom } = this.chart.inner;
    const [across, upwards] = this.sides;
    const x = parameterScale(across.parameter, across.values, left, right);
    const y = parameterScale(upwards.parameter, upwards.values, bottom, top);
    axisOfParameter(this.chart, "bottom", x);
    axisOfParameter(this.chart, "left", y);
    this.chart.titles(across.parameter.name, upwards.parameter.name);
    this.place((t) => spread(across.parameter, x.scale, across.values[t], t), (t) => spread(upwards.parameter, y.scale, upwards.values[t], t * 7 + 3));
  }
}

// Trials with the same value of a list stand side by side.
function spread(parameter, scale, value, t) {
  if (isNaN(value)) return NaN;
  if (!parameter.values) return scale(value);
  return scale(value) + (((t * 0.618034) % 1) - 0.5) * Math.min(40, scale.step() * 0.6);
}

function axisOfParameter(chart, side, along) {
  const room = side === "bottom" ? Math.max(2, Math.floor((chart.inner.right - chart.inner.left) / 52)) : 8;
  const step = Math.ceil(along.ticks.length / room);
  chart.axis(side, along.scale, { values: along.ticks.filter((_, i) => i % step === 0), format: along.text, grid: false });
}
