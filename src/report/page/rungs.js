// Rungs: who was compared, where the cut-off was, who went on.

function rungsPart(parent, store) {
  const { study } = store;
  if (study.rungs.length === 0) return;
  const part = section(parent, "Rungs", "At a rung trials are compared after the same training. The cut-off is the worst value that went on; an asynchronous scheduler decides as results arrive, so worse ones may have gone on early, and better ones may still wait.");
  part.append(element("div", { class: study.rungs.length > 24 ? "tall" : null }, rungTable(study)));
  part.append(element("div", { class: "legend" }, element("span", { class: "swatch finished" }), "went on, or reached the top", element("span", { class: "swatch stopped" }), "did not go on", element("span", {}, "dashed: the cut-off")));
  const holder = element("div", {});
  part.append(holder);
  new RungChart(holder, store);
}

function rungFacts(rung) {
  const on = rung.value.filter((value, i) => rung.on[i] && value !== null);
  const out = rung.value.filter((value, i) => !rung.on[i] && value !== null);
  return { on: rung.on.filter((each) => each).length, best: rung.value[0], cut: on[on.length - 1], left: out[0] };
}

// There is nothing above the ceiling to go on to.
function isTop(study, rung) {
  return rung.iteration >= study.max_iterations;
}

function rungTable(study) {
  const rows = study.rungs.map((rung) => {
    const facts = rungFacts(rung);
    const top = isTop(study, rung);
    return [String(rung.bracket), rung.iteration.toLocaleString("en"), rung.trial.length.toLocaleString("en"), top ? "top" : facts.on.toLocaleString("en"),
            metricText(facts.best), facts.on && !top ? metricText(facts.cut) : "-", top ? "-" : metricText(facts.left)];
  });
  return table(["#bracket", "#iteration", "#compared", "#went on", "#best", "#cut-off", "#best that did not"], rows, "Rungs");
}

// Many brackets are drawn as one: a rung for each iteration.
function drawnRungs(study) {
  const most = 24;
  if (study.rungs.length <= most) return study.rungs;
  const merged = new Map();
  for (const rung of study.rungs) {
    const all = merged.get(rung.iteration) || { bracket: "all", iteration: rung.iteration, trial: [], value: [], on: [] };
    for (const column of ["trial", "value", "on"]) all[column] = all[column].concat(rung[column]);
    merged.set(rung.iteration, all);
  }
  return [...merged.values()].sort((a, b) => a.iteration - b.iteration);
}

class RungChart {
  constructor(parent, store) {
    this.store = store;
    this.study = store.study;
    this.rungs = drawnRungs(this.study);
    this.withBrackets = new Set(this.rungs.map((rung) => rung.bracket)).size > 1;
    const height = 60 + 34 * this.rungs.length;
    this.chart = new Chart(parent, { height, margin: { top: 26, right: 14, bottom: 36, left: this.withBrackets ? 92 : 70 },
      label: `Values at the ${countText(this.rungs.length, "rung")}` });
    this.panel = new Panel(this.chart.box, store, () => this.draw(), () => this.paint());
  }

  draw() {
    if (!this.chart.fit()) return;
    const { left, right, top } = this.chart.inner;
    const values = this.rungs.flatMap((rung) => rung.value.map((value) => (value === null ? NaN : value)));
    this.x = d3.scaleLinear(robustRange(values), [left, right]).nice().clamp(true);
    this.chart.axis("bottom", this.x);
    this.chart.titles(this.study.metric, this.withBrackets ? "bracket, iteration" : "iteration");
    this.rungs.forEach((rung, i) => {
      const y = top + 18 + 34 * i;
      const name = this.withBrackets ? `${rung.bracket}, ${rung.iteration}` : String(rung.iteration);
      this.chart.svg.append("text").attr("x", left - 8).attr("y", y + 4).attr("text-anchor", "end").text(name);
      const facts = rungFacts(rung);
      if (rung.bracket === "all" || facts.on === 0 || facts.on === rung.trial.length) return; // no one cut-off
      const x = this.x(facts.cut);
      this.chart.svg.append("line").attr("class", "cut").attr("x1", x).attr("x2", x).attr("y1", y - 14).attr("y2", y + 14);
    });
    this.paint();
  }

  paint() {
    const { store } = this;
    const context = cleared(this.chart.base);
    const [on, out, ink] = [colour("finished"), colour("stopped"), colour("ink")];
    const many = this.study.trials.count > 2000;
    this.rungs.forEach((rung, i) => {
      const y = this.chart.inner.top + 18 + 34 * i;
      const top = isTop(this.study, rung);
      for (let k = rung.trial.length - 1; k >= 0; --k) {
        const t = rung.trial[k];
        if (rung.value[k] === null || !store.isSelected(t)) continue;
        const special = t === store.picked || t === store.hover;
        context.fillStyle = special ? ink : rung.on[k] || top ? on : out;
        // Above the middle: went on; below it: did not.
        const shift = (rung.on[k] || top ? -1 : 1) * (2 + ((t * 0.618034) % 1) * 10);
        const size = special ? 6 : many ? 1.6 : 3;
        context.fillRect(this.x(rung.value[k]) - size / 2, y + shift - size / 2, size, size);
      }
    });
  }
}
