// The controls of a page of `ranktune serve`: what runs now, and what a user may ask of it. They stand above the report, which is built
// again and again, and change in place: what somebody types or is about to confirm stays.

let steering = null; // of a live page

// A question in the place of the buttons that led to it. No is what the keyboard is at.
function confirmation(question, yes, onAnswer) {
  const no = element("button", { type: "button", click: () => onAnswer(false) }, "No");
  const node = element("span", { class: "controls", role: "group", "aria-label": question, keydown: (event) => { if (event.key === "Escape") onAnswer(false); } },
    element("span", { class: "question" }, question), element("button", { type: "button", class: "ends", click: () => onAnswer(true) }, yes), no);
  return { node, begin: () => no.focus() };
}

// Shows `make()`, again when `stateOf()` changes; one of the buttons may put a question in their place.
class Buttons {
  constructor(stateOf, make) {
    this.stateOf = stateOf;
    this.make = make;
    this.node = element("span", { class: "buttons" });
    this.asks = false;
    this.update();
  }

  update() {
    const state = this.stateOf();
    if (this.asks || state === this.shown) return;
    this.shown = state;
    this.node.replaceChildren(...this.make());
  }

  confirm(question, yes, action) {
    const back = document.activeElement ? document.activeElement.textContent : "";
    this.asks = true;
    const { node, begin } = confirmation(question, yes, (agreed) => {
      this.asks = false;
      this.shown = undefined;
      this.update();
      const button = [...this.node.children].find((each) => each.textContent === back);
      if (button) button.focus();
      if (agreed) action();
    });
    this.node.replaceChildren(node);
    begin();
  }
}

function agoText(seconds) {
  return seconds < 60 ? `${Math.round(seconds)} s ago` : `${durationText(seconds)} ago`;
}

// One trial that holds ranks, or waits to go on.
class LiveRow {
  constructor(panel, trial) {
    this.panel = panel;
    this.trial = trial;
    this.held = false;
    this.name = element("span", { class: "name" });
    this.configuration = element("span", { class: "mono configuration" });
    this.fill = element("div", {});
    this.bar = element("div", { class: "progress", role: "progressbar", "aria-label": `Iterations of trial ${trial}`, "aria-valuemin": "0" }, this.fill);
    this.where = element("span", { class: "note" });
    this.last = element("span", { class: "last" });
    this.age = element("span", { class: "note age" });
    this.buttons = panel.trialButtons(trial, () => this.held);
    this.node = element("li", { "data-trial": String(trial) }, this.name, this.configuration, element("span", { class: "way" }, this.bar, this.where),
      element("span", { class: "report" }, this.last, " ", this.age), this.buttons.node);
  }

  show(data, live) {
    this.held = data.held;
    this.data = data;
    this.name.replaceChildren(element("b", {}, `#${data.trial}`), ` ${data.state}`);
    this.configuration.textContent = data.configuration;
    this.fill.style.width = `${100 * Math.min(1, data.iteration / live.most)}%`;
    this.bar.setAttribute("aria-valuenow", String(data.iteration));
    this.bar.setAttribute("aria-valuemax", String(live.most));
    const next = data.target > data.iteration && data.target < live.most ? `, compared at ${data.target.toLocaleString("en")}` : "";
    this.where.textContent = `iteration ${data.iteration.toLocaleString("en")} of ${live.most.toLocaleString("en")}${next}`;
    this.last.textContent = data.last === null ? "" : `${live.metric} ${metricText(data.last)}`;
    this.buttons.update();
  }

  tick(since) {
    const { age, silent } = this.data;
    this.age.textContent = age === null ? "" : `${silent ? "started" : "reported"} ${agoText(age + since)}`;
  }
}

class SteerPanel {
  constructor(places) {
    this.places = places;
    this.rows = new Map();
    this.live = { closed: "", runs: false };
    this.since = 0;
    this.state = element("span", { class: "note" });
    this.note = element("p", { class: "warning", hidden: true });
    this.study = new Buttons(() => `${this.mayAsk()} ${this.live.runs}`, () => this.studyButtons());
    this.detail = null; // buttons of the trial that is picked in the report
    this.form = element("form", { id: "add-trial", hidden: true, autocomplete: "off", submit: (event) => { event.preventDefault(); this.add(); } });
    this.list = element("ul", { id: "live-trials" });
    this.more = element("p", { class: "note" });
    this.words = element("pre", { role: "status" });
    this.said = element("div", { id: "said", hidden: true }, this.words, this.button("Close", () => { this.said.hidden = true; }));
    this.log = new TrialLog(places.log);
    const title = element("h2", { id: "steer-title", tabindex: "-1" }, "Running now");
    this.title = title;
    this.node = element("section", { id: "steer", "aria-labelledby": "steer-title" }, element("div", { class: "controls" }, title, this.state, this.study.node),
      this.note, this.form, this.list, this.more, this.said, this.log.node);
    setInterval(() => this.tick(), 1000);
    setInterval(() => { if (!document.hidden) this.refresh(); }, 5000); // a head that dies writes nothing
  }

  mayAsk() {
    return this.live.closed === "" && Boolean(this.places.steer);
  }

  // ---- what is shown

  async refresh() {
    if (this.busy) return void (this.again = true);
    this.busy = true;
    try {
      const response = await fetch(this.places.live);
      if (response.ok) this.show(await response.json());
    } catch (error) { // the bar above says that the server is gone
    }
    this.busy = false;
    if (!this.again) return;
    this.again = false;
    this.refresh();
  }

  show(live) {
    this.live = live;
    this.since = performance.now();
    const counts = [[live.on_ranks, "on ranks"], [live.held, "paused by a user"], [live.waiting, "waiting for ranks"]];
    const count = counts.filter(([number], i) => i === 0 || number > 0).map(([number, words], i) => (i === 0 ? `${countText(number, "trial")} ${words}` : `${number.toLocaleString("en")} ${words}`)).join(", ");
    this.state.textContent = `${count} · ${live.standing}`;
    const notes = [live.closed && `No controls: ${live.closed}.`, live.stopping, !live.closed && !live.runs && "Nothing runs now: requests take effect when the study goes on."];
    this.note.textContent = notes.filter((each) => each).join(" ");
    this.note.hidden = this.note.textContent === "";
    if (!this.mayAsk()) this.form.hidden = true;
    this.showRows(live);
    this.study.update();
    if (this.detail) this.detail.update();
    const more = live.on_ranks + live.held + live.waiting - live.trials.length;
    this.more.textContent = more > 0 ? `and ${more.toLocaleString("en")} more: click a trial in the table for its controls` : "";
    this.tick();
  }

  showRows(live) {
    const rows = live.trials.map((data) => {
      const row = this.rows.get(data.trial) || new LiveRow(this, data.trial);
      row.show(data, live);
      return row;
    });
    for (const [trial, row] of this.rows) {
      if (rows.includes(row)) continue;
      if (row.node.contains(document.activeElement)) this.title.focus();
      row.node.remove();
      this.rows.delete(trial);
    }
    const focused = document.activeElement;
    rows.forEach((row, i) => {
      this.rows.set(row.trial, row);
      if (this.list.children[i] !== row.node) this.list.insertBefore(row.node, this.list.children[i] || null);
    });
    if (focused !== document.activeElement && this.list.contains(focused)) focused.focus({ preventScroll: true }); // a row that moves loses it
  }

  tick() {
    const since = (performance.now() - this.since) / 1000;
    for (const row of this.rows.values()) row.tick(since);
  }

  // ---- what is asked

  button(text, action, more = {}) {
    return element("button", Object.assign({ type: "button", click: action }, more), text);
  }

  // `isHeld()`: a user has paused it. `isOver`: it has ended, and leaves its log.
  trialButtons(trial, isHeld, isOver = false) {
    const named = (verb) => ({ "aria-label": `${verb} trial ${trial}` });
    const buttons = new Buttons(() => `${this.mayAsk()} ${isHeld()}`, () => {
      const log = this.button("Log", () => this.log.open(trial), { "aria-label": `Log of trial ${trial}` });
      if (isOver || !this.mayAsk()) return [log];
      const turn = isHeld() ? "resume" : "pause";
      const words = isHeld() ? "Resume" : "Pause";
      return [this.button(words, () => this.ask({ verb: turn, trial }), named(words)),
        this.button("Cancel", () => buttons.confirm(`Cancel trial ${trial}? It ends for good.`, "Yes, end it", () => this.ask({ verb: "cancel", trial })), named("Cancel")), log];
    });
    return buttons;
  }

  // For a trial of the report, running or not.
  pickedButtons(trial, isOver) {
    this.detail = this.trialButtons(trial, () => this.rows.has(trial) && this.rows.get(trial).held, isOver);
    return this.detail.node;
  }

  studyButtons() {
    if (!this.mayAsk()) return [];
    const add = this.button("Add a trial", () => this.openForm());
    const stop = this.button("Stop the study", () => this.study.confirm("Stop the study? Running trials save at their next report; it can go on later.", "Yes, stop it", () => this.ask({ verb: "stop" })));
    return this.live.runs ? [add, stop] : [add];
  }

  say(words, tone) {
    this.words.textContent = words;
    this.said.className = tone;
    this.said.hidden = false;
  }

  // Whether it was accepted.
  async ask(request) {
    const what = [request.verb, request.trial === undefined ? "" : `trial #${request.trial}`].join(" ").trim();
    this.say(`${what}: asked, waits for the head ...`, "");
    let accepted = false;
    try {
      const headers = { "Content-Type": "application/json", "X-Ranktune-Steer": this.places.secret };
      const response = await fetch(this.places.steer, { method: "POST", headers, body: JSON.stringify(request) });
      accepted = response.ok;
      this.say((await response.text()).trim(), accepted ? "" : "refused");
    } catch (error) {
      this.say(`${what}: no answer (${error.message}). Whether it took effect: ranktune status`, "refused");
    }
    this.refresh();
    return accepted;
  }

  openForm() {
    const fields = currentStore.study.parameters.map((parameter, p) => element("label", {}, element("span", {}, parameter.name),
      element("input", { name: parameter.name, id: `add-${p}`, placeholder: parameter.domain, autocapitalize: "off", spellcheck: "false" })));
    this.form.replaceChildren(element("p", { class: "note" }, "One more trial. What is left empty is suggested by the search."), element("div", { class: "fields" }, ...fields),
      element("div", { class: "controls" }, element("button", { type: "submit" }, "Add it"), this.button("Close", () => this.closeForm())));
    this.form.hidden = false;
    const first = this.form.querySelector("input");
    if (first) first.focus();
  }

  closeForm() {
    this.form.hidden = true;
    this.title.focus();
  }

  async add() {
    const settings = [...this.form.querySelectorAll("input")].filter((input) => input.value.trim() !== "").map((input) => `${input.name}=${input.value.trim()}`);
    if (settings.length === 0) this.say("add: give at least one value", "refused");
    else if (await this.ask({ verb: "add", settings })) this.closeForm();
  }
}

// The last part of what a trial did and said, read again while it is open.
class TrialLog {
  constructor(place) {
    this.place = place;
    this.trial = NO_TRIAL;
    this.title = element("h3", {});
    this.text = element("pre", { tabindex: "0", role: "log", "aria-live": "off" });
    this.node = element("div", { id: "trial-log", hidden: true }, this.title, this.text);
    setInterval(() => { if (!document.hidden) this.read(); }, 2000);
  }

  open(trial) {
    this.trial = trial;
    this.title.replaceChildren(`Log of trial ${trial} `, element("button", { type: "button", click: () => this.close() }, "Close"));
    this.text.setAttribute("aria-label", `Log of trial ${trial}`);
    this.text.textContent = "";
    this.node.hidden = false;
    this.node.scrollIntoView({ block: "nearest" });
    this.text.focus({ preventScroll: true });
    this.read();
  }

  close() {
    this.trial = NO_TRIAL;
    this.node.hidden = true;
  }

  async read() {
    const { trial } = this;
    if (trial === NO_TRIAL || this.reads === trial) return;
    this.reads = trial;
    let words;
    try {
      const response = await fetch(`${this.place}/${trial}`);
      words = (response.status === 503 && this.text.textContent) || await response.text(); // busy: what is shown stays
    } catch (error) {
      words = `not read: ${error.message}`;
    }
    this.reads = NO_TRIAL;
    if (trial !== this.trial || words === this.text.textContent) return;
    const atEnd = this.text.scrollTop + this.text.clientHeight >= this.text.scrollHeight - 4;
    this.text.textContent = words;
    if (atEnd) this.text.scrollTop = this.text.scrollHeight;
  }
}
