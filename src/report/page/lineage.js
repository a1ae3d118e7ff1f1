// Population-based training: who took over whose state, and the schedule that this made of each hyper-parameter.

function lineagePart(parent, store) {
  if (store.study.generations.trial.length === 0) return;
  const part = section(parent, "Lineage and schedules", "Each row is a trial, along its iterations. A thin line between two rows is an exploit: one trial took over the state of the other. The strong line leads to the best result.");
  new LineageChart(part, store);
}

// The generations of each trial, from columns.
function generationsByTrial(study) {
  const byTrial = new Map();
  study.generations.trial.forEach((t, i) => {
    if (!byTrial.has(t)) byTrial.set(t, []);
    byTrial.get(t).push({ from: study.generations.from[i], donor: study.generations.donor[i],
                          donorIteration: study.generations.donor_iteration[i], values: study.generations.values.map((column) => column[i]) });
  });
  for (let t = 0; t < study.trials.count; ++t)
    if (!byTrial.has(t)) byTrial.set(t, [{ from: 0, donor: null, donorIteration: 0, values: study.trials.values.map((column) => column[t]) }]);
  return byTrial;
}

class LineageChart {
  constructor(part, store) {
    this.store = store;
    this.study = store.study;
    this.byTrial = generationsByTrial(this.study);
    const { trials } = this.study;
    this.path = this.study.lineage;
    this.rows = this.chooseRows();
    this.parameter = byImportance(this.study)[0] || 0;
    part.append(element("div", { class: "controls" }, element("label", {}, "colour"),
      selectBox("Hyper-parameter", this.study.parameters.map((each, p) => [p, each.name]), (p) => { this.parameter = Number(p); this.panel.redraw(); })));
    part.querySelector("select").value = this.parameter;
    if (this.rows.length < trials.count)
      part.append(element("p", { class: "note" }, `The best ${this.rows.length} trials and the ancestors of the best one, of ${trials.count}.`));
    const holder = element("div", {});
    part.append(holder, element("h3", {}, "Schedule of the best result"));
    this.chart = new Chart(holder, { height: Math.min(700, 60 + this.rows.length * this.rowHeight()), margin: { top: 26, right: 14, bottom: 38, left: 50 }, label: "Lineage of the trials" });
    const below = element("div", {});
    part.append(below);
    this.steps = new Chart(below, { height: 200, margin: { top: 26, right: 14, bottom: 38, left: 62 }, label: "Schedule of one hyper-parameter along the lineage of the best result" });
    this.panel = new Panel(part, store, () => this.draw(), () => this.paint());
  }

  rowHeight() {
    return this.rows.length > 60 ? 8 : 14;
  }

  chooseRows() {
    const most = 80;
    const chosen = new Set(this.path.map((stretch) => stretch.trial));
    for (const t of this.study.rank) {
      if (chosen.size >= most) break;
      chosen.add(t);
    }
    return this.study.rank.filter((t) => chosen.has(t));
  }

  draw() {
    if (!this.chart.fit()) return;
    const { left, right, top, bottom } = this.chart.inner;
    const { trials } = this.study;
    this.x = d3.scaleLinear([0, d3.max(this.rows, (t) => trials.iterations[t]) || 1], [left, right]);
    this.y = new Map(this.rows.map((t, i) => [t, top + ((i + 0.5) * (bottom - top)) / this.rows.length]));
    this.chart.axis("bottom", this.x, { whole: true });
    this.chart.titles("iteration", "trial, best first");
    const step = Math.ceil(this.rows.length / 30);
    this.rows.forEach((t, i) => {
      if (i % step === 0) this.chart.svg.append("text").attr("x", left - 6).attr("y", this.y.get(t) + 4).attr("text-anchor", "end").text(`#${t}`);
    });
    this.paint();
    this.drawSteps();
  }

  tone(value) {
    const parameter = this.study.parameters[this.parameter];
    if (parameter === undefined || isNaN(value)) return colour("dim");
    if (parameter.values) return d3.interpolateViridis(0.1 + (0.75 * value) / Math.max(1, parameter.values.length - 1));
    const { scale } = parameterScale(parameter, this.study.generations.values[this.parameter], 0.1, 0.85);
    return d3.interpolateViridis(Math.min(0.85, Math.max(0.1, scale(value))));
  }

  paint() {
    const context = cleared(this.chart.base);
    const { store, study } = this;
    for (const t of this.rows) {
      const generations = this.byTrial.get(t);
      context.globalAlpha = store.isSelected(t) ? 1 : 0.15;
      generations.forEach((generation, g) => {
        const end = g + 1 < generations.length ? generations[g + 1].from : study.trials.iterations[t];
        this.stroke(context, t, generation.from, end, this.tone(generation.values[this.parameter]), t === store.picked || t === store.hover ? 6 : 3);
        if (generation.donor !== null) this.link(context, t, generation, colour("soft"), 0.8);
      });
    }
    context.globalAlpha = 1;
    for (const { trial, from, to } of this.path) {
      this.stroke(context, trial, from, to, colour("ink"), 1.6);
      const taken = this.byTrial.get(trial).find((generation) => generation.donor !== null && generation.from === from);
      if (taken) this.link(context, trial, taken, colour("ink"), 1.6);
    }
  }

  stroke(context, t, from, to, tone, width) {
    if (!this.y.has(t)) return;
    context.strokeStyle = tone;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(this.x(from), this.y.get(t));
    context.lineTo(this.x(to), this.y.get(t));
    context.stroke();
  }

  link(context, t, generation, tone, width) {
    if (!this.y.has(generation.donor) || !this.y.has(t)) return;
    context.strokeStyle = tone;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(this.x(generation.donorIteration), this.y.get(generation.donor));
    context.lineTo(this.x(generation.from), this.y.get(t));
    context.stroke();
  }

  drawSteps() {
    const parameter = this.study.parameters[this.parameter];
    if (!parameter || !this.steps.fit()) return;
    const { left, right, top, bottom } = this.steps.inner;
    let trained = 0;
    const points = [];
    for (const { from, to, values } of this.path) {
      const value = values[this.parameter] === null ? NaN : values[this.parameter];
      points.push([trained, value], [trained += to - from, value]);
    }
    const along = parameterScale(parameter, Float64Array.from(points, (point) => point[1]), bottom, top);
    const x = d3.scaleLinear([0, trained || 1], [left, right]);
    this.steps.axis("bottom", x, { whole: true });
    axisOfParameter(this.steps, "left", along);
    this.steps.titles("iterations trained", parameter.name);
    const line = d3.line().defined((point) => !isNaN(point[1])).x((point) => x(point[0])).y((point) => along.scale(point[1]));
    this.steps.svg.append("path").attr("class", "best").attr("d", line(points));
  }
}
