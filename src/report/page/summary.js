// The first screen: what the study is, its best result, and how the best value grew.

function headline(parent, study, made, isAlone) {
  const { trials } = study;
  const count = (group) => trials.group.filter((each) => each === group).length;
  const parts = GROUPS.filter((group) => count(group) > 0).map((group) => `${count(group)} ${GROUP_WORDS[group]}`);
  parent.append(isAlone ? element("h1", {}, study.name) : element("h2", {}, study.directory));
  parent.append(element("p", {}, `${countText(trials.count, "trial")} of ${study.num_trials.toLocaleString("en")}: ${parts.join(", ")}. ` +
    `${study.searcher} search, scheduler ${study.scheduler}, up to ${countText(study.max_iterations, "iteration")}; ${study.state}.`));
  if (study.simulated) parent.append(element("p", { class: "warning" }, study.simulated));
  if (study.end) parent.append(element("p", { class: "warning" }, study.end));
  for (const each of study.failures || []) parent.append(element("p", { class: "warning" }, `Failed: ${each}`));
  if (!study.ended) parent.append(element("p", { class: "warning" }, `Not ended: as of ${study.as_of || "the newest record"}, ${durationText(study.now)} of study time.`));
  parent.append(element("p", { class: "note" }, `Made ${made} by ranktune report.`));
}

// Of a study that has not ended: how far it is, how long it takes yet, and what runs now.
function nowPart(parent, study) {
  const { progress, trials } = study;
  const done = Math.min(1, progress.done / Math.max(1, progress.expected));
  const bar = element("div", {});
  bar.style.width = `${100 * done}%`;
  const left = progress.left === null ? "" : `, about ${durationText(progress.left)} left`;
  const all = trials.phase.map((phase, t) => [phase, t]).filter(([phase]) => phase === "running").map(([, t]) => t);
  const most = 12;
  const names = all.slice(0, most).map((t) => `#${t} (${trials.iterations[t] === 0 ? "starting" : `iteration ${trials.iterations[t].toLocaleString("en")}`})`).join(", ");
  parent.append(element("div", { id: "now" },
    element("div", { class: "progress", role: "img", "aria-label": `${shareText(done)} done` }, bar),
    element("p", {}, `${progress.done.toLocaleString("en")} of about ${countText(progress.expected, "iteration")} (${shareText(done)})${left}`),
    steering ? null : element("p", {}, all.length === 0 ? "No trial runs now." : `On ranks now: ${names}${all.length > most ? ` and ${all.length - most} more` : ""}.`)));
}

function copyBox(study) {
  const box = element("pre", { tabindex: "0", "aria-label": "Configuration to copy" });
  const said = element("span", { role: "status", class: "note" });
  let text = "";
  const show = (kind) => {
    text = study.copies[kind];
    box.textContent = text;
    said.textContent = "";
  };
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      said.textContent = "copied";
    } catch (error) { // refused by the browser for a file: the text is selected instead
      getSelection().selectAllChildren(box);
      said.textContent = "selected: press Ctrl-C";
    }
  };
  show("json");
  return element("div", {},
    element("div", { class: "controls" }, choice("Format", [["json", "JSON"], ["toml", "TOML (study file)"], ["command", "Command line"]], "json", show),
      element("button", { type: "button", class: "copy", click: copy }, "Copy"), said), box);
}

// Where the trial stood at each rung: "1 of 81 at iteration 1, 2 of 27 at iteration 3"; empty: at none.
function placesText(study, t) {
  return study.rungs.filter((rung) => rung.trial.includes(t)).map((rung) =>
    `${(rung.trial.indexOf(t) + 1).toLocaleString("en")} of ${rung.trial.length.toLocaleString("en")} at iteration ${rung.iteration.toLocaleString("en")}`).join(", ");
}

const FAIR_WORDS = "The best of many is judged fairly only on data that chose nothing.";

function bestTrials(parent, study) {
  const { trials } = study;
  const next = study.rank.filter((t) => !isNaN(trials.best[t])).slice(0, 5);
  parent.append(element("h3", {}, "The best trials"), table(["trial", "#" + study.metric, "#iterations", "state"],
    next.map((t) => [`#${t}`, metricText(trials.best[t]), String(trials.iterations[t]), GROUP_WORDS[trials.group[t]]])));
  parent.append(element("p", { class: "note" }, `One run of each: near values may be luck. ${FAIR_WORDS}`));
}

// With repeats: a row for each configuration.
function bestConfigurations(parent, study) {
  const rows = study.configurations.slice(0, 5).map(([first, runs, mean, deviation]) =>
    [`#${first} to #${first + study.repeats - 1}`, metricText(mean), deviation === null ? "-" : metricText(deviation), String(runs)]);
  parent.append(element("h3", {}, "The best configurations"), table(["trials", `#mean ${study.metric}`, "#deviation", "#runs"], rows));
  parent.append(element("p", { class: "note" }, `Up to ${study.repeats} runs of each: means that differ by less than the deviation may be luck. ${FAIR_WORDS}`));
}

// ", here with latency 8.1": the further objectives of a trial.
function otherObjectives(study, t) {
  return study.objectives.slice(1).map((goal, k) => `${k === 0 ? ", here with " : ", "}${goal.metric} ${metricText(study.trials.others[k][t])}`).join("");
}

function bestResult(parent, study) {
  const { trials, best } = study;
  if (study.compares_nothing) return;
  const part = section(parent, "Best result");
  if (best === null) {
    part.append(element("p", {}, `No trial has reported a finite ${study.metric}${study.limits || ""}.`));
    if (study.nearest) part.append(element("p", { id: "nearest" }, `Nearest to it: ${study.nearest}.`));
    return;
  }
  const columns = element("div", { class: "columns" });
  part.append(columns);
  const left = element("div", {});
  left.append(element("div", { class: "big" }, study.best_mean || metricText(trials.best[best])),
    element("p", {}, `${study.metric} (${study.mode === "max" ? "larger" : "smaller"} is better${study.objectives ? `; the first of ${study.objectives.length} objectives${otherObjectives(study, best)}` : ""})${study.limits || ""}, trial #${best} at iteration ${trials.bestIteration[best]} of ${study.max_iterations}, ${study.other_weights ? study.other_weights + ", " : ""}${GROUP_WORDS[trials.group[best]]}`));
  if (study.by_mean) left.append(element("p", { class: "note", id: "by-mean" }, `Best by mean: ${study.by_mean}.`));
  const places = placesText(study, best);
  if (places) left.append(element("p", { class: "note", id: "places" }, `Its place among the trials compared: ${places}.`));
  const rows = study.parameters.map((parameter, p) => [parameter.name, parameterText(parameter, trials.values[p][best]), parameter.domain]);
  left.append(table(["hyper-parameter", "value", "searched"], rows, "Configuration of the best trial"), copyBox(study));
  columns.append(left);
  const right = element("div", { id: "best-so-far" });
  if (study.repeats > 1) bestConfigurations(right, study);
  else bestTrials(right, study);
  columns.append(right);
}

// Best-so-far of one or several studies on the same axes.
function bestSoFar(parent, studies, store, before = null) {
  const names = studies.map((study, i) => (studies.length > 1 ? study.directory : study.name));
  const tones = ["finished", "stopped", "failed", "paused", "running"];
  let over = "time";
  const chart = new Chart(element("div", {}), { height: 280, margin: { top: 26, right: 14, bottom: 38, left: 58 },
    label: `Best ${studies[0].metric} so far: ${studies.map((study, i) => `${names[i]} ends at ${metricText(study.steps.value[study.steps.value.length - 1])}`).join("; ")}` });
  const controls = element("div", { class: "controls" }, element("label", {}, "over"),
    choice("Horizontal axis", [["time", "time"], ["iterations", "iterations trained"]], over, (value) => { over = value; panel.redraw(); }));
  if (studies.length > 1)
    studies.forEach((study, i) => controls.append(element("span", { class: "legend" }, element("span", { class: `swatch ${tones[i % tones.length]}` }), names[i])));
  const draw = () => drawBestSoFar(chart, studies, over, tones);
  for (const node of [controls, chart.box.parentElement]) parent.insertBefore(node, before);
  const panel = new Panel(chart.box, store, draw);
}

function bestLine(study, over) {
  const along = over === "time" ? study.steps.at : study.steps.iterations;
  const end = over === "time" ? study.now : study.training.iterations + study.training.again;
  const points = Array.from(along, (x, i) => [x, study.steps.value[i]]);
  if (points.length > 0) points.push([Math.max(end, points[points.length - 1][0]), points[points.length - 1][1]]);
  return points;
}

function drawBestSoFar(chart, studies, over, tones) {
  if (!chart.fit()) return;
  const lines = studies.map((study) => bestLine(study, over));
  const all = lines.flat();
  const { left, right, top, bottom } = chart.inner;
  if (all.length === 0) {
    chart.svg.append("text").attr("x", left).attr("y", 60).text("no finite value was reported");
    return;
  }
  const x = d3.scaleLinear([0, d3.max(all, (point) => point[0]) || 1], [left, right]);
  const y = d3.scaleLinear(robustRange(all.map((point) => point[1])), [bottom, top]).nice();
  if (over === "time") chart.timeAxis(x);
  else chart.axis("bottom", x, { whole: true });
  chart.axis("left", y);
  chart.titles(over === "time" ? "study time" : "iterations, all trials", `best ${studies[0].metric}`);
  const line = d3.line().x((point) => x(point[0])).y((point) => y(point[1])).curve(d3.curveStepAfter);
  chart.svg.append("clipPath").attr("id", "best-clip").append("rect").attr("x", left).attr("y", top - 2).attr("width", right - left).attr("height", bottom - top + 4);
  lines.forEach((points, i) => {
    const path = chart.svg.append("path").attr("class", "best").attr("clip-path", "url(#best-clip)").attr("d", line(points));
    path.style("stroke", `var(--${tones[i % tones.length]})`).style("stroke-dasharray", i < tones.length ? null : "6 3");
  });
}
