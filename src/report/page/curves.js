// Learning curves of all trials, coloured by what became of them. A box drawn over them selects what passes through it.

// Whether a logarithmic axis shows more than a linear one.
function spansDecades(values) {
  const range = d3.extent(values.filter(isFinite));
  return range[0] > 0 && range[1] > 20 * range[0];
}

// Whether a linear axis would show little but the largest values.
function explodes(values) {
  return spansDecades(values) && robustRange(values)[1] > 1000 * d3.median(values);
}

class CurvesChart {
  constructor(parent, store) {
    this.store = store;
    this.study = store.study;
    this.along = "iteration";
    this.log = explodes(this.study.curves.value);
    this.close = false; // the better half of the reports alone
    this.shown = new Set(GROUPS);
    // What got furthest lies on top, and in each group the best.
    this.layers = ["paused", "stopped", "failed", "running", "finished"].map((group) => [group, this.study.rank.filter((t) => this.study.trials.group[t] === group).reverse()]);
    this.columns = new Map(); // pixel column -> points in it
    const part = section(parent, "Learning curves", this.note());
    part.append(this.controls());
    this.holder = element("div", {});
    part.append(this.holder);
    this.chart = new Chart(this.holder, { height: Math.round(Math.min(420, Math.max(260, window.innerHeight * 0.6))), margin: { top: 26, right: 14, bottom: 38, left: 62 },
      label: `Learning curves: ${this.study.metric} of ${countText(this.study.trials.count, "trial")} by iteration` });
    followMouse(this.chart, store, (x, y) => this.under(x, y));
    this.panel = new Panel(this.chart.box, store, () => this.draw(), (changed) => this.update(changed));
  }

  note() {
    const { curves } = this.study;
    const thin = curves.thinned ? ` Of ${countText(curves.reports, "report")}, ${curves.value.length.toLocaleString("en")} are drawn.` : "";
    return "Drag a box to select the curves that pass through it; click a curve for its trial." + thin;
  }

  controls() {
    const { trials } = this.study;
    const legend = element("div", { class: "legend", role: "group", "aria-label": "Trials shown" });
    for (const group of GROUPS.filter((each) => trials.group.includes(each))) {
      const button = element("button", { type: "button", "aria-pressed": "true", click: () => this.toggle(group, button) },
        element("span", { class: `swatch ${group}` }), `${GROUP_WORDS[group]} (${trials.group.filter((each) => each === group).length})`);
      legend.append(button);
    }
    const controls = element("div", { class: "controls" }, element("label", {}, "over"),
      choice("Horizontal axis", [["iteration", "iteration"], ["at", "time"]], "iteration", (value) => { this.along = value; this.panel.redraw(); }));
    controls.append(choice("Values", [[false, "all values"], [true, "better half"]], false, (value) => { this.close = value; this.panel.redraw(); }));
    if (spansDecades(this.study.curves.value))
      controls.append(choice("Vertical axis", [[false, "linear"], [true, "log"]], this.log, (value) => { this.log = value; this.panel.redraw(); }));
    controls.append(legend);
    return controls;
  }

  toggle(group, button) {
    if (!this.shown.delete(group)) this.shown.add(group);
    button.setAttribute("aria-pressed", String(this.shown.has(group)));
    this.panel.redraw();
  }

  draw() {
    this.store.setFilter("curves", null); // its box is in pixels of the old size
    if (!this.chart.fit()) return;
    const { curves, trials, best } = this.study;
    const { left, right, top, bottom } = this.chart.inner;
    const furthest = d3.max(curves[this.along]) || 1;
    this.x = d3.scaleLinear([0, furthest], [left, right]);
    const range = robustRange(curves.value, best === null ? NaN : trials.best[best]);
    if (this.close) range[this.study.sign > 0 ? 0 : 1] = d3.median(curves.value);
    this.y = (this.log ? d3.scaleLog(range, [bottom, top]) : d3.scaleLinear(range, [bottom, top])).nice();
    this.place();
    if (this.along === "at") this.chart.timeAxis(this.x);
    else this.chart.axis("bottom", this.x, { whole: true });
    this.chart.axis("left", this.y, this.log ? { values: niceTicks(this.y, true), format: numberText } : Math.abs(range[1]) >= 1e5 ? { format: (value) => value.toExponential(0) } : {});
    this.chart.titles(this.along === "at" ? "study time" : "iteration", this.study.metric);
    const context = cleared(this.chart.base);
    this.paint(context, () => true);
    this.drawTop();
    this.addBrush();
  }

  // Pixels of all points, and which points lie in which column.
  place() {
    const { curves, trials } = this.study;
    const count = curves.value.length;
    this.px = new Float32Array(count);
    this.py = new Float32Array(count);
    this.columns.clear();
    for (let t = 0; t < trials.count; ++t) {
      for (let i = curves.begin[t]; i < curves.begin[t + 1]; ++i) {
        this.px[i] = this.x(curves[this.along][i]);
        this.py[i] = this.y(curves.value[i]);
        const column = Math.round(this.px[i] / 4);
        if (!this.columns.has(column)) this.columns.set(column, []);
        this.columns.get(column).push([t, i]);
      }
    }
  }

  trace(context, t) {
    const { begin } = this.study.curves;
    let pen = false;
    for (let i = begin[t]; i < begin[t + 1]; ++i) {
      if (isNaN(this.py[i])) {
        pen = false;
        continue;
      }
      if (pen) context.lineTo(this.px[i], this.py[i]);
      else context.moveTo(this.px[i], this.py[i]);
      pen = true;
    }
    // A single report is a short dash, which would else be invisible.
    if (begin[t + 1] - begin[t] === 1 && pen) context.lineTo(this.px[begin[t]] + 5, this.py[begin[t]]);
  }

  paint(context, isShown) {
    clipped(context, this.chart.inner);
    context.lineWidth = this.study.trials.count > 2000 ? 0.7 : 1.1;
    context.globalAlpha = opacityOf(this.store.selectedCount, 0.25);
    for (const [group, trials] of this.layers) {
      if (!this.shown.has(group)) continue;
      const lines = trials.filter(isShown);
      if (lines.length === 0) continue;
      context.strokeStyle = colour(group);
      context.setLineDash(group === "failed" ? [4, 3] : []);
      strokeMany(context, lines, (to, t) => this.trace(to, t));
    }
    context.restore();
  }

  drawTop() {
    const { store, study } = this;
    const context = highlighted(this.chart, store, (...args) => this.paint(...args));
    clipped(context, this.chart.inner);
    strokeMarked(context, study.best, store, 2.6, (t) => this.trace(context, t));
    context.restore();
  }

  update() {
    if (this.brushNode && !this.store.filters.has("curves")) this.clearBrush();
    this.drawTop();
  }

  addBrush() {
    const { left, right, top, bottom } = this.chart.inner;
    const brush = d3.brush().extent([[left, top], [right, bottom]]).on("brush end", (event) => this.onBrush(brushed(event)));
    this.brush = brush;
    this.brushNode = this.chart.svg.append("g").attr("class", "brush").call(brush);
  }

  clearBrush() {
    if (d3.brushSelection(this.brushNode.node())) this.brushNode.call(this.brush.move, null);
  }

  onBrush(event) {
    if (!event.sourceEvent) return; // moved by this program
    if (!event.selection) {
      this.store.setFilter("curves", null);
      return;
    }
    const [[x0, y0], [x1, y1]] = event.selection;
    const { begin } = this.study.curves;
    this.store.setFilter("curves", (t) => {
      for (let i = begin[t]; i < begin[t + 1]; ++i)
        if (this.px[i] >= x0 && this.px[i] <= x1 && this.py[i] >= y0 && this.py[i] <= y1) return true;
      return false;
    });
  }

  nearest(x, y) {
    let found = NO_TRIAL;
    let least = 14 * 14;
    for (let column = Math.round((x - 14) / 4); column <= Math.round((x + 14) / 4); ++column) {
      for (const [t, i] of this.columns.get(column) || []) {
        const distance = (this.px[i] - x) ** 2 + (this.py[i] - y) ** 2;
        if (distance >= least || !this.shown.has(this.study.trials.group[t]) || !this.store.isSelected(t)) continue;
        least = distance;
        found = t;
      }
    }
    return found;
  }

  under(x, y) {
    const t = this.nearest(x, y);
    if (t === NO_TRIAL) return null;
    const { trials } = this.study;
    return { trial: t, text: `${trialText(this.study, t)}: best ${metricText(trials.best[t])}, ${GROUP_WORDS[trials.group[t]]} after ${countText(trials.iterations[t], "iteration")}` };
  }
}
