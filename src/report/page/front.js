// Several objectives: the trials in the plane of two of them, with the Pareto front.

function frontPart(parent, store) {
  const { study } = store;
  if (!study.objectives || study.objectives.length < 2) return;
  const part = section(parent, "Pareto front", `${countText(study.front.length, "trial")} of ${study.trials.count.toLocaleString("en")}: no trial is better in one objective without being worse in another. A trial stands with its newest valid result, unless the one before was better in every way.`);
  const titles = study.objectives.map((goal) => "#" + goal.metric + (goal.mode === "max" ? " (larger)" : " (smaller)"));
  const rows = study.front.map((t) => [`#${t}`, ...study.objectives.map((_, k) => metricText(objectiveOf(study, k)[t])), String(study.trials.bestIteration[t]), GROUP_WORDS[study.trials.group[t]]]);
  const holder = element("div", {});
  if (study.objectives.length > 2) part.append(planeChoice(study, (plane) => chart.show(plane)));
  part.append(holder, element("div", { class: rows.length > 24 ? "tall" : null }, table(["trial", ...titles, "#iteration", "state"], rows, "Pareto front")));
  const chart = new FrontChart(holder, store, [0, 1]);
}

// The values of an objective, by trial; NaN without a result.
function objectiveOf(study, k) {
  return k === 0 ? study.trials.best : study.trials.others[k - 1];
}

function planeChoice(study, onChoice) {
  const planes = [];
  for (let a = 0; a < study.objectives.length; ++a)
    for (let b = a + 1; b < study.objectives.length; ++b) planes.push([`${a} ${b}`, `${study.objectives[a].metric} and ${study.objectives[b].metric}`]);
  return element("div", { class: "controls" }, element("label", {}, "Plane"), selectBox("Objectives to draw", planes, (value) => onChoice(value.split(" ").map(Number))));
}

class FrontChart extends ScatterChart {
  constructor(parent, store, plane) {
    super(parent, store, { height: 360, margin: { top: 26, right: 14, bottom: 38, left: 70 }, label: FrontChart.label(store.study, plane) });
    this.plane = plane;
  }

  static label(study, plane) {
    const names = plane.map((k) => study.objectives[k].metric);
    return `Trials by ${names.join(" and ")}; ${countText(study.front.length, "trial")} on the Pareto front`;
  }

  show(plane) {
    this.plane = plane;
    this.chart.box.setAttribute("aria-label", FrontChart.label(this.study, plane));
    this.panel.redraw();
  }

  draw() {
    if (!this.chart.fit()) return;
    const { left, right, top, bottom } = this.chart.inner;
    const [across, upwards] = this.plane.map((k) => objectiveOf(this.study, k));
    const x = d3.scaleLinear(robustRange(across), [left, right]).nice().clamp(true);
    const y = d3.scaleLinear(robustRange(upwards), [bottom, top]).nice().clamp(true);
    this.chart.axis("bottom", x);
    this.chart.axis("left", y);
    this.chart.titles(...this.plane.map((k) => this.study.objectives[k].metric));
    const points = this.study.front.map((t) => [x(across[t]), y(upwards[t])]).sort((a, b) => a[0] - b[0]);
    if (this.study.objectives.length === 2)
      this.chart.svg.append("path").attr("class", "best").attr("d", d3.line().curve(this.stepCurve())(points));
    this.chart.svg.append("g").selectAll("circle").data(points).join("circle").attr("class", "front").attr("cx", (p) => p[0]).attr("cy", (p) => p[1]).attr("r", 4);
    this.place((t) => (isNaN(across[t]) ? NaN : x(across[t])), (t) => (isNaN(upwards[t]) ? NaN : y(upwards[t])));
  }

  // The edge of what the front covers: where less is better, the step comes after a point.
  stepCurve() {
    return this.study.objectives[0].mode === "max" ? d3.curveStepBefore : d3.curveStepAfter;
  }

  tipOf(t) {
    const values = this.study.objectives.map((goal, k) => `${goal.metric} ${metricText(objectiveOf(this.study, k)[t])}`);
    return `${trialText(this.study, t)}: ${values.join(", ")}`;
  }
}

// In place of curves, where every trial has one report.
function valuesPart(parent, store) {
  const part = section(parent, "Values by trial", "Every trial has reported once. Click a point for its trial.");
  const holder = element("div", {});
  part.append(holder);
  new ValuesChart(holder, store, { height: 300, margin: { top: 26, right: 14, bottom: 38, left: 70 },
    label: `${store.study.metric} of ${countText(store.study.trials.count, "trial")}, in the order of their numbers` });
}

class ValuesChart extends ScatterChart {
  draw() {
    if (!this.chart.fit()) return;
    const { left, right, top, bottom } = this.chart.inner;
    const { trials, metric, best } = this.study;
    const x = d3.scaleLinear([0, Math.max(1, trials.count - 1)], [left + 6, right - 6]);
    const range = robustRange(trials.best, best === null ? NaN : trials.best[best]);
    const log = explodes(trials.best);
    const y = (log ? d3.scaleLog(range, [bottom, top]) : d3.scaleLinear(range, [bottom, top])).nice().clamp(true);
    this.chart.axis("bottom", x, { whole: true });
    this.chart.axis("left", y, log ? { values: niceTicks(y, true), format: numberText } : {});
    this.chart.titles("trial", metric);
    this.place((t) => (isNaN(trials.best[t]) ? NaN : x(t)), (t) => (isNaN(trials.best[t]) ? NaN : y(trials.best[t])));
  }
}
