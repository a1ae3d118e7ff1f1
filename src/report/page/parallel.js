// Parallel coordinates: an axis for each hyper-parameter and for the metric. Ranges drawn on axes select trials.

class ParallelChart {
  constructor(parent, store) {
    this.store = store;
    this.study = store.study;
    this.ranges = new Map(); // axis -> [top, bottom] in pixels
    const part = section(parent, "Parallel coordinates", "Each line is a trial, coloured by its rank. Drag along an axis to select a range; several axes narrow it down. With the keyboard: the search box above the table of trials takes conditions.");
    this.axes = this.makeAxes();
    this.scroll = element("div", { class: "scroll", tabindex: "0", "aria-label": "Parallel coordinates, scrollable" });
    this.holder = element("div", {});
    this.scroll.append(this.holder);
    part.append(rankLegend(), this.scroll);
    this.chart = new Chart(this.holder, { height: 380, margin: { top: 44, right: 70, bottom: 34, left: 50 },
      label: `Parallel coordinates of ${this.axes.map((axis) => axis.name).join(", ")}` });
    this.panel = new Panel(part, store, () => this.draw(), (changed) => this.update(changed));
  }

  makeAxes() {
    const { study } = this;
    const axes = study.parameters.map((parameter, p) => ({ name: parameterTitle(parameter), parameter, values: study.trials.values[p] }));
    const range = robustRange(study.trials.best);
    axes.push({ name: metricTitle(study), parameter: { name: study.metric, bounds: range, clamp: true }, values: study.trials.best });
    return axes;
  }

  draw() {
    this.store.setFilter("axes", null); // its ranges are in pixels of the old size
    const least = 100 * this.axes.length;
    this.holder.style.width = `${Math.max(this.scroll.clientWidth, least)}px`;
    if (!this.chart.fit()) return;
    const { left, right, top, bottom } = this.chart.inner;
    this.absent = this.chart.height - 12;
    this.colours = rankColours(this.study);
    this.axes.forEach((axis, i) => {
      axis.x = left + (i * (right - left)) / Math.max(1, this.axes.length - 1);
      Object.assign(axis, axis.parameter.clamp ? { scale: d3.scaleLinear(axis.parameter.bounds, [bottom, top]), text: numberText } : parameterScale(axis.parameter, axis.values, bottom, top));
      if (axis.parameter.clamp) axis.ticks = axis.scale.clamp(true).ticks(5);
      axis.y = Float32Array.from(axis.values, (value, t) => (isNaN(value) ? this.absent : spread(axis.parameter, axis.scale, value, t)));
    });
    this.ranges.clear();
    this.drawAxes();
    this.paint(cleared(this.chart.base), () => true);
    this.drawTop();
  }

  drawAxes() {
    const { top, bottom } = this.chart.inner;
    const anyAbsent = this.axes.slice(0, -1).some((axis) => axis.values.some(isNaN));
    this.axes.forEach((axis, i) => {
      const group = this.chart.svg.append("g").attr("transform", `translate(${axis.x},0)`);
      group.append("g").call(d3.axisLeft(axis.scale).tickValues(axis.ticks).tickFormat(axis.text).tickSizeOuter(0));
      group.append("text").attr("class", "name halo").attr("y", i % 2 ? top - 28 : top - 12).attr("text-anchor", i === 0 ? "start" : i + 1 === this.axes.length ? "end" : "middle").text(shortened(axis.name, 22));
      const brush = d3.brushY().extent([[-12, top], [12, bottom]]).on("brush end", (event) => this.onBrush(i, brushed(event)));
      axis.brush = brush;
      axis.brushNode = group.append("g").attr("class", "brush").call(brush);
    });
    if (anyAbsent) this.chart.svg.append("text").attr("x", 2).attr("y", this.absent + 4).text("not set");
  }

  trace(context, t) {
    context.moveTo(this.axes[0].x, this.axes[0].y[t]);
    for (let i = 1; i < this.axes.length; ++i) context.lineTo(this.axes[i].x, this.axes[i].y[t]);
  }

  // The best on top, in bands of one colour.
  paint(context, isShown) {
    const { trials, rank } = this.study;
    const lines = rank.filter((t) => !isNaN(trials.best[t]) && isShown(t)).reverse();
    context.lineWidth = trials.count > 1000 ? 0.6 : 1;
    context.globalAlpha = opacityOf(lines.length, 0.05);
    const band = Math.max(1, Math.ceil(lines.length / 100));
    for (let i = 0; i < lines.length; i += band) {
      const some = lines.slice(i, i + band);
      context.strokeStyle = this.colours[some[some.length - 1]];
      strokeMany(context, some, (to, t) => this.trace(to, t));
    }
    context.globalAlpha = 1;
  }

  drawTop() {
    const { store, study } = this;
    const context = highlighted(this.chart, store, (...args) => this.paint(...args));
    strokeMarked(context, study.best, store, 3, (t) => this.trace(context, t));
  }

  update() {
    if (!this.store.filters.has("axes")) this.clearBrushes();
    this.drawTop();
  }

  clearBrushes() {
    this.ranges.clear();
    for (const axis of this.axes)
      if (d3.brushSelection(axis.brushNode.node())) axis.brushNode.call(axis.brush.move, null);
  }

  onBrush(i, event) {
    if (!event.sourceEvent) return; // moved by this program
    if (event.selection) this.ranges.set(i, event.selection);
    else this.ranges.delete(i);
    const ranges = [...this.ranges].map(([axis, range]) => [this.axes[axis].y, range]);
    this.store.setFilter("axes", ranges.length === 0 ? null : (t) => ranges.every(([y, range]) => y[t] >= range[0] && y[t] <= range[1]));
  }
}
