// The groups in time: which ranks trained which trial, failures, restarts, and how busy the workers were.

function timelinePart(parent, store) {
  const { study } = store;
  if (study.attempts.trial.length === 0) return;
  const shown = study.attempts.trial.length;
  const thin = shown < study.attempts.all ? ` The ${shown.toLocaleString("en")} longest of ${study.attempts.all.toLocaleString("en")} attempts are drawn.` : "";
  const part = section(parent, "Groups in time", "Each row is a worker rank, each bar a trial on it; gaps are waits. A cross is a failure or a loss, a dashed line a restart." + thin);
  new TimelineChart(part, store);
  if (study.incidents.length > 0) {
    const rows = study.incidents.slice(0, 200).map((incident) => [durationText(incident.at / 100), incident.text]);
    part.append(element("h3", {}, "What happened to the study"), table(["#at", "event"], rows));
  }
}

const TROUBLE = new Set(["failed", "lost", "unreadable", "unsaved", "disturbed", "unreachable", "unstarted", "stateless", "permanent", "interrupted"]);

class TimelineChart {
  constructor(part, store) {
    this.store = store;
    this.study = store.study;
    this.ranks = d3.max(this.study.attempts.ranks, (ranges) => ranges[ranges.length - 2] + ranges[ranges.length - 1] - 1) || 1;
    this.strip = 54; // for how busy the workers were
    const height = 26 + this.strip + Math.max(40, Math.min(420, this.ranks * 16)) + 38;
    part.append(element("div", { class: "legend" }, ...GROUPS.filter((group) => this.study.trials.group.includes(group)).flatMap((group) => [element("span", { class: `swatch ${group}` }), GROUP_WORDS[group]])));
    const holder = element("div", {});
    part.append(holder);
    this.chart = new Chart(holder, { height, margin: { top: 26, right: 14, bottom: 38, left: 50 },
      label: `Use of ${countText(this.ranks, "rank")} over ${durationText(this.study.now)}: ${shareText(this.study.cost.held || 0)} held by trials` });
    this.panel = new Panel(this.chart.box, store, () => this.draw(), () => this.drawTop());
    followMouse(this.chart, store, (x, y) => this.under(x, y));
  }

  draw() {
    if (!this.chart.fit()) return;
    const { left, right, top, bottom } = this.chart.inner;
    this.x = d3.scaleLinear([0, this.study.now || 1], [left, right]);
    this.first = top + this.strip;
    this.row = (bottom - this.first) / this.ranks;
    this.chart.timeAxis(this.x);
    this.chart.titles("study time", "workers held by trials; below, by rank");
    this.drawBusy();
    const step = Math.ceil(this.ranks / 20);
    for (let rank = 1; rank <= this.ranks; rank += step)
      this.chart.svg.append("text").attr("x", left - 6).attr("y", this.yOf(rank) + this.row / 2 + 4).attr("text-anchor", "end").text(rank);
    for (const start of this.study.starts.slice(1)) {
      const x = this.x(start.at / 100);
      this.chart.svg.append("line").attr("class", "cut").attr("x1", x).attr("x2", x).attr("y1", top).attr("y2", bottom).append("title").text(`restart ${start.time}`);
    }
    this.paint(cleared(this.chart.base), () => true);
    this.drawTop();
  }

  yOf(rank) {
    return this.first + (rank - 1) * this.row;
  }

  drawBusy() {
    const { left, right, top } = this.chart.inner;
    const { busy } = this.study;
    const x = d3.scaleLinear([0, busy.length], [left, right]);
    const y = d3.scaleLinear([0, 1], [top + this.strip - 10, top]);
    const area = d3.area().x((_, i) => x(i + 0.5)).y0(y(0)).y1((share) => y(share)).curve(d3.curveStep);
    this.chart.svg.append("path").attr("class", "bar").attr("d", area(busy));
    for (const share of [0, 1])
      this.chart.svg.append("text").attr("x", left - 6).attr("y", y(share) + 4).attr("text-anchor", "end").text(share ? "all" : "0");
  }

  eachBar(isShown, visit) {
    const { attempts } = this.study;
    for (let i = 0; i < attempts.trial.length; ++i) {
      if (!isShown(attempts.trial[i])) continue;
      const x = this.x(attempts.begin[i]);
      const width = Math.max(0.6, this.x(attempts.begin[i] + attempts.length[i]) - x);
      const ranges = attempts.ranks[i];
      for (let k = 0; k < ranges.length; k += 2) visit(i, x, this.yOf(ranges[k]), width, this.row * ranges[k + 1]);
    }
  }

  paint(context, isShown) {
    const { attempts, trials } = this.study;
    const tones = Object.fromEntries(GROUPS.map((group) => [group, colour(group)]));
    const gap = this.row > 4 ? 1 : 0;
    context.globalAlpha = 0.85;
    this.eachBar(isShown, (i, x, y, width, height) => {
      context.fillStyle = tones[trials.group[attempts.trial[i]]];
      context.fillRect(x, y + gap / 2, Math.max(0.6, width - (width > 3 ? 0.8 : 0)), Math.max(0.5, height - gap));
    });
    context.globalAlpha = 1;
    context.strokeStyle = colour("ink");
    context.lineWidth = 1.4;
    this.eachBar(isShown, (i, x, y, width, height) => {
      if (TROUBLE.has(attempts.outcome[i])) cross(context, x + width, y + height / 2, 3.5);
    });
  }

  drawTop() {
    const { store } = this;
    const context = highlighted(this.chart, store, (...args) => this.paint(...args));
    context.strokeStyle = colour("ink");
    context.lineWidth = 2;
    this.eachBar((t) => t === store.picked || t === store.hover, (i, x, y, width, height) => context.strokeRect(x, y, width, Math.max(1, height)));
  }

  under(x, y) {
    let found = -1;
    this.eachBar((t) => this.store.isSelected(t), (i, left, top, width, height) => {
      if (x >= left - 1 && x <= left + width + 1 && y >= top && y <= top + height) found = i;
    });
    return found < 0 ? null : { trial: this.study.attempts.trial[found], text: attemptText(this.study, found) };
  }
}

function cross(context, x, y, size) {
  context.beginPath();
  context.moveTo(x - size, y - size);
  context.lineTo(x + size, y + size);
  context.moveTo(x + size, y - size);
  context.lineTo(x - size, y + size);
  context.stroke();
}

function ranksText(ranges) {
  const parts = [];
  for (let k = 0; k < ranges.length; k += 2)
    parts.push(ranges[k + 1] === 1 ? `${ranges[k]}` : `${ranges[k]}-${ranges[k] + ranges[k + 1] - 1}`);
  return parts.join(",");
}

function attemptText(study, i) {
  const { attempts } = study;
  const whose = attempts.whose[i] === attempts.trial[i] ? "" : ` of #${attempts.whose[i]}`;
  const begin = attempts.from[i] > 0 ? `from iteration ${attempts.from[i]}${whose}` : "from scratch";
  const message = attempts.message[i] ? `: ${attempts.message[i].split("\n")[0]}` : "";
  return `${trialText(study, attempts.trial[i])}, attempt ${attempts.number[i]} ${begin}, ranks ${ranksText(attempts.ranks[i])}, ${durationText(attempts.begin[i])} to ${durationText(attempts.begin[i] + attempts.length[i])}, ${attempts.outcome[i]}${message}`;
}
