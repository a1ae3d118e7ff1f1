// The table of trials: search, sort, page; and what happened to one trial.

// "lr<0.01 state:failed nan": comparisons and words, which all must hold. Returns null for an empty text.
function searchFilter(study, text) {
  const conditions = text.trim().split(/\s+/).filter((word) => word !== "").map((word) => conditionOf(study, word));
  return conditions.length === 0 ? null : (t) => conditions.every((holds) => holds(t));
}

function noteText(trials, t) {
  return [trials.tags.get(t), ...(trials.notes.get(t) || [])].filter((each) => each).join("; ");
}

function conditionOf(study, word) {
  const comparison = /^(.+?)(<=|>=|!=|=|<|>)(.+)$/.exec(word);
  const column = comparison && columnNamed(study, comparison[1]);
  if (column) return compared(column, comparison[2], comparison[3]);
  const wanted = word.toLowerCase();
  const { trials } = study;
  return (t) => `#${t}` === wanted || `${trials.phase[t]} ${trials.why[t]} ${trials.message[t]} ${trials.origin[t]} ${noteText(trials, t)}`.toLowerCase().includes(wanted);
}

// Names of columns, each with one meaning, as in the tables of the terminal: a hyper-parameter that is called like a fact of
// every trial is parameter.NAME, a metric that is called like a hyper-parameter metric.NAME.
const factNames = ["trial", "state", "iterations", "attempts", "seconds", "bracket", "best", "time", "why", "notes"];
const parameterTitle = (parameter) => (factNames.includes(parameter.name) ? `parameter.${parameter.name}` : parameter.name);
const metricTitle = (study) => (factNames.includes(study.metric) || study.parameters.some((parameter) => parameter.name === study.metric) ? `metric.${study.metric}` : study.metric);

// {text(t), number(t)} of a column by its name; null: there is none.
function columnNamed(study, name) {
  const { trials } = study;
  const p = study.parameters.findIndex((parameter) => parameterTitle(parameter) === name);
  if (p >= 0) return { text: (t) => parameterText(study.parameters[p], trials.values[p][t]), number: (t) => (study.parameters[p].values ? Number(study.parameters[p].values[trials.values[p][t]]) : trials.values[p][t]) };
  const columns = { trial: (t) => t, iterations: (t) => trials.iterations[t], attempts: (t) => trials.attempts[t], seconds: (t) => trials.seconds[t], bracket: (t) => trials.bracket[t], [metricTitle(study)]: (t) => trials.best[t], best: (t) => trials.best[t] };
  if (name === "state") return { text: (t) => trials.phase[t], number: () => NaN };
  return Object.hasOwn(columns, name) ? { text: (t) => String(columns[name](t)), number: columns[name] } : null;
}

function compared(column, sign, word) {
  const limit = Number(word);
  if (sign === "=") return (t) => column.text(t) === word || column.number(t) === limit;
  if (sign === "!=") return (t) => column.text(t) !== word && column.number(t) !== limit;
  const holds = { "<": (a) => a < limit, "<=": (a) => a <= limit, ">": (a) => a > limit, ">=": (a) => a >= limit }[sign];
  return (t) => holds(column.number(t));
}

class TrialTable {
  constructor(parent, store) {
    this.store = store;
    this.study = store.study;
    this.page = 0;
    this.columns = this.makeColumns();
    this.sorted = [...this.study.rank];
    this.by = 2;
    this.down = false;
    const part = section(parent, "Trials");
    part.append(this.controls());
    this.detail = element("div", { role: "region", "aria-live": "polite", "aria-label": "One trial" });
    this.body = element("tbody", {});
    this.head = element("tr", {});
    part.append(this.detail, element("div", { class: "scroll", tabindex: "0", "aria-label": "Table of trials" },
      element("table", { class: "wide", id: "trials" }, element("thead", {}, this.head), this.body)), this.pager());
    this.drawHead();
    store.listen((changed) => this.update(changed));
    this.draw();
  }

  makeColumns() {
    const { study } = this;
    const { trials } = study;
    const number = (name, value, text) => ({ name, isNumber: true, value, text: text || ((t) => numberText(value(t))) });
    const columns = [number("trial", (t) => t, (t) => `#${t}`), { name: "state", value: (t) => trials.phase[t], text: (t) => trials.phase[t] },
      number(metricTitle(study), (t) => trials.best[t], (t) => metricText(trials.best[t])), number("iterations", (t) => trials.iterations[t])];
    study.parameters.forEach((parameter, p) => columns.push({ name: parameterTitle(parameter), isNumber: !parameter.values, value: (t) => trials.values[p][t], text: (t) => parameterText(parameter, trials.values[p][t]) }));
    columns.push(number("time", (t) => trials.seconds[t], (t) => durationText(trials.seconds[t])), number("attempts", (t) => trials.attempts[t]),
      { name: "why", value: (t) => trials.why[t], text: (t) => [trials.why[t], trials.message[t].split("\n")[0]].filter((each) => each).join(": ") });
    if (trials.notes.size > 0) columns.push({ name: "notes", value: (t) => noteText(trials, t), text: (t) => noteText(trials, t) });
    return columns;
  }

  controls() {
    const example = this.study.parameters.length > 0 && !this.study.parameters[0].values ? `${parameterTitle(this.study.parameters[0])}<0.1` : "iterations>=3";
    this.search = element("input", { type: "search", id: "search", size: "34", placeholder: `${example} state=failed nan`, input: () => {
      this.page = 0;
      this.store.setFilter("search", searchFilter(this.study, this.search.value));
    } });
    return element("div", { class: "controls" }, element("label", { for: "search" }, "Search"), this.search,
      element("span", { class: "note" }, "words, numbers of trials (#17), and conditions on any column"));
  }

  pager() {
    this.where = element("span", { "aria-live": "polite" });
    const turn = (by) => element("button", { type: "button", click: () => { this.page += by; this.draw(); } }, by < 0 ? "Previous" : "Next");
    [this.back, this.on] = [turn(-1), turn(1)];
    return element("div", { class: "controls pager" }, this.back, this.on, this.where);
  }

  drawHead() {
    this.head.replaceChildren(...this.columns.map((column, i) => {
      const order = i !== this.by ? "none" : this.down ? "descending" : "ascending";
      const mark = i !== this.by ? "" : this.down ? " ▾" : " ▴";
      return element("th", { scope: "col", class: column.isNumber ? "number" : "", "aria-sort": i === 2 && i === this.by ? "other" : order },
        element("button", { type: "button", click: () => this.sort(i) }, column.name + mark));
    }));
  }

  // The metric sorts best first; everything else ascending. A second click turns the order around.
  sort(i) {
    this.down = i === this.by ? !this.down : false;
    this.by = i;
    const { value } = this.columns[i];
    if (i === 2) this.sorted = [...this.study.rank];
    else this.sorted = [...this.study.rank].sort((a, b) => compareValues(value(a), value(b)) || a - b);
    if (this.down) this.sorted.reverse();
    this.page = 0;
    this.drawHead();
    this.draw();
  }

  draw() {
    const most = 25;
    const rows = this.sorted.filter((t) => this.store.isSelected(t));
    const pages = Math.max(1, Math.ceil(rows.length / most));
    this.page = Math.min(Math.max(0, this.page), pages - 1);
    const shown = rows.slice(this.page * most, (this.page + 1) * most);
    this.body.replaceChildren(...shown.map((t) => this.row(t)));
    this.back.disabled = this.page === 0;
    this.on.disabled = this.page + 1 === pages;
    this.where.textContent = rows.length === 0 ? "no trial" : `${this.page * most + 1} to ${this.page * most + shown.length} of ${rows.length.toLocaleString("en")}`;
  }

  row(t) {
    const pick = () => this.store.pick(t);
    const cells = this.columns.map((column) => element("td", { class: column.isNumber ? "number" : "text", "data-title": column.name }, column.text(t)));
    return element("tr", { tabindex: "0", class: [t === this.study.best ? "best" : "", t === this.store.picked ? "picked" : ""].join(" ").trim() || null,
      click: pick, mouseenter: () => this.store.setHover(t), keydown: (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          pick();
        }
      } }, ...cells);
  }

  update(changed) {
    if (changed.has("cleared")) this.search.value = "";
    if (changed.has("selection")) this.draw();
    if (!changed.has("picked")) return;
    for (const row of this.body.children) row.classList.toggle("picked", row.firstChild.textContent === `#${this.store.picked}`);
    this.showTrial();
  }

  showTrial() {
    const t = this.store.picked;
    this.detail.replaceChildren();
    if (t === NO_TRIAL) return;
    const life = trialLife(this.study, t, () => this.store.pick(NO_TRIAL));
    if (steering) life.splice(1, 0, steering.pickedButtons(t, ["finished", "stopped", "failed"].includes(this.study.trials.group[t])));
    this.detail.append(...life);
  }
}

// Missing numbers last, whichever way.
function compareValues(a, b) {
  if (typeof a === "string") return a < b ? -1 : a > b ? 1 : 0;
  if (isNaN(a) || isNaN(b)) return Number(isNaN(a)) - Number(isNaN(b));
  return a - b;
}

function trialLife(study, t, close) {
  const { trials, attempts, decisions } = study;
  const events = [];
  for (let i = 0; i < attempts.trial.length; ++i)
    if (attempts.trial[i] === t) events.push([attempts.begin[i], attemptText(study, i).replace(/^[^,]*, /, "")]);
  for (let i = 0; i < decisions.trial.length; ++i)
    if (decisions.trial[i] === t) events.push([decisions.at[i], `iteration ${decisions.iteration[i]}: ${decisions.why[i]}`]);
  events.sort((a, b) => a[0] - b[0]);
  const most = 100;
  const rows = events.slice(0, most).map(([at, text]) => [durationText(at), text]);
  if (events.length > most) rows.push(["", `and ${events.length - most} more: ranktune logs ${study.directory} ${t}`]);
  const nodes = [element("h3", {}, `Trial ${trialText(study, t)} `, element("button", { type: "button", click: close }, "Close")),
    element("p", {}, `${study.metric} ${metricText(trials.best[t])} at iteration ${trials.bestIteration[t]}; ${GROUP_WORDS[trials.group[t]]}${trials.why[t] ? `: ${trials.why[t]}` : ""}`)];
  if (trials.message[t]) nodes.push(element("pre", {}, trials.message[t]));
  if (trials.tags.get(t)) nodes.push(element("p", {}, `Tags: ${trials.tags.get(t)}`));
  for (const note of trials.notes.get(t) || []) nodes.push(element("p", {}, note));
  nodes.push(element("p", { class: "mono" }, study.parameters.map((parameter, p) => `${parameter.name}=${parameterText(parameter, trials.values[p][t])}`).join("  ")), table(["#at", "event"], rows));
  return nodes;
}
