// Builds the page: one study, or several side by side with one of them in detail.

function selectionBar(parent, store) {
  const text = element("span", { role: "status" });
  const bar = element("div", { id: "selection", hidden: true }, text, element("button", { type: "button", id: "clear", click: () => store.clear() }, "Clear selection"));
  store.listen((changed) => {
    if (!changed.has("selection")) return;
    bar.hidden = store.selected === null;
    const best = store.selected === null ? undefined : store.study.rank.find((t) => store.selected[t] === 1 && !isNaN(store.study.trials.best[t]));
    text.textContent = `${store.selectedCount.toLocaleString("en")} of ${countText(store.study.trials.count, "trial")} selected` +
      (best === undefined ? "" : `; the best of them is #${best} with ${metricText(store.study.trials.best[best])}`);
  });
  parent.append(bar);
}

function contents(parent, root) {
  const links = [...root.querySelectorAll("h2")].map((heading) => element("a", { href: `#${heading.id}` }, heading.textContent));
  parent.replaceChildren(element("nav", { "aria-label": "Contents" }, ...links));
}

let currentStore = null; // of the study in detail

function showStudy(root, study, page, isAlone) {
  const store = currentStore = new Store(study);
  root.replaceChildren();
  Panel.all.length = 0;
  headline(root, study, page.made, isAlone);
  if (!study.ended) nowPart(root, study);
  const links = element("div", {});
  root.append(links);
  bestResult(root, study);
  const place = root.querySelector("#best-so-far");
  if (isAlone && place) bestSoFar(place, [study], store, place.firstChild);
  if (study.trials.count > 0) {
    frontPart(root, store);
    const hasValues = study.curves.value.some((value) => !isNaN(value));
    if (hasValues && study.trials.iterations.some((count) => count > 1)) new CurvesChart(root, store);
    else if (hasValues) valuesPart(root, store);
    if (study.parameters.length > 0) new ParallelChart(root, store);
    importancePart(root, store);
    rungsPart(root, store);
    lineagePart(root, store);
    timelinePart(root, store);
    new TrialTable(root, store);
  }
  aboutPart(root, study);
  selectionBar(root, store);
  contents(links, root);
}

// Which of several studies was better: their best values on the same axes, if they have the same metric.
function compareStudies(root, page, onChoice) {
  const studies = page.studies;
  const alike = studies.filter((study) => study.metric === studies[0].metric && study.mode === studies[0].mode);
  root.append(element("h1", {}, `${studies.length} studies side by side`));
  const rows = studies.map((study) => [study.directory, study.scheduler, study.searcher, study.trials.count.toLocaleString("en"), study.metric,
    study.best === null ? "-" : metricText(study.trials.best[study.best]), study.training.iterations.toLocaleString("en"), numberText(study.cost.core_hours), study.simulated ? "simulated" : ""]);
  root.append(table(["study", "scheduler", "search", "#trials", "metric", "#best", "#iterations", "#core-hours", ""], rows, "Studies"));
  if (alike.length < studies.length)
    root.append(element("p", { class: "warning" }, `Drawn are the ${alike.length} with the metric ${studies[0].metric} (${studies[0].mode}): others cannot be compared with them.`));
  bestSoFar(root, alike, new Store(studies[0]));
  root.append(element("div", { class: "controls" }, element("label", {}, "In detail"),
    selectBox("Study in detail", studies.map((study, i) => [i, study.directory]), (i) => onChoice(Number(i)))));
}

function buildPage() {
  const page = decodePage(document.getElementById("data").textContent);
  const main = document.getElementById("page");
  // Built beside what is shown, out of sight, and drawn before it takes that place: no moment is blank.
  const next = element("div", { class: "staged" });
  next.style.width = `${main.clientWidth}px`;
  main.append(next);
  const comparison = element("div", {});
  const root = element("div", {});
  next.append(comparison, root);
  const several = page.studies.length > 1;
  showStudy(root, page.studies[0], page, !several);
  if (several) {
    const panels = Panel.all.length;
    compareStudies(comparison, page, (i) => {
      const kept = Panel.all.slice(panels); // those of the comparison
      showStudy(root, page.studies[i], page, false);
      Panel.all.push(...kept);
    });
  }
  Panel.drawNear(next, main.getBoundingClientRect().top);
  main.replaceChildren(comparison, root);
}

function showPage() {
  const places = livePlaces();
  if (places) steering = new SteerPanel(places);
  buildPage();
  // Paper is white, whatever the screen is.
  const forPaper = (printing) => {
    document.documentElement.classList.toggle("printing", printing);
    Panel.drawAll();
  };
  window.addEventListener("beforeprint", () => forPaper(true));
  window.addEventListener("afterprint", () => forPaper(false));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Panel.all.forEach((panel) => panel.redraw()));
  performance.mark("ready");
  document.documentElement.dataset.ready = "yes"; // tests wait for it
  if (places) followStudy(places, () => currentStore, buildPage);
}

showPage();
