// How it ran: programs, machines, and what it cost.

function aboutPart(parent, study) {
  const part = section(parent, "How it ran");
  const { training, cost } = study;
  const hasRanks = study.hosts.length > 0; // not where a loop asks for trials
  const rows = [
    ["trainable", study.trainable],
    ["search and scheduler", `${study.searcher}, ${study.scheduler}; seed ${study.seed}`],
    ["ranktune", study.versions.join(", then ")],
    ["workers", hasRanks && `${countText(study.ranks, "rank")} on ${hostsText(study.hosts)}`],
    ["time", `${durationText(study.now)} of study time, ${countText(study.starts.length, "start")}`],
    ["cost", hasRanks && `${numberText(cost.core_hours)} core-hours${cost.gpu_hours > 0 ? `, ${numberText(cost.gpu_hours)} GPU-hours` : ""} of all workers; ${shareText(cost.held || 0)} of their time held by trials, ${shareText(cost.training || 0)} in iterations that counted, ${shareText(cost.starting || 0)} starting`],
    ["training", trainingText(training)],
    ["directory", study.directory], ["study", study.uuid],
  ];
  part.append(table(["", ""], rows.filter((row) => row[1])));
  const known = study.starts.some((start) => start.software);
  if (study.starts.length > 1 || known) part.append(element("h3", {}, "Starts"), startsTable(study.starts, known));
}

function startsTable(starts, known) {
  const titles = ["#start", "at", "#for", "#workers", ...(known ? ["head on", "job", "software", "code"] : [])];
  const rows = starts.map((start, i) => [String(i + 1), start.time, durationText((start.end - start.at) / 100), start.ranks.toLocaleString("en"),
    ...(known ? [start.host || "-", start.job || "-", start.software || "-", start.code || "-"] : [])]);
  return table(titles, rows, "Starts");
}

function hostsText(hosts) {
  const shown = hosts.slice(0, 12).map(([name, ranks, gpus]) => `${name} (${ranks}${gpus ? `, ${countText(gpus, "GPU")}` : ""})`).join(", ");
  return hosts.length > 12 ? `${countText(hosts.length, "host")}: ${shown}, ...` : shown || "no host";
}

function trainingText(training) {
  const text = `${training.iterations.toLocaleString("en")} of ${countText(training.full, "iteration")} that all trials to the end would have taken (${shareText(training.iterations / (training.full || 1))})`;
  const again = training.again > 0 ? `; ${training.again.toLocaleString("en")} were trained again after losses` : "";
  if (!training.full_seconds || training.iterations >= training.full) return text + again;
  return `${text}: ${durationText(training.seconds)} of an estimated ${durationText(training.full_seconds)}; early stopping saved about ${durationText(Math.max(0, training.full_seconds - training.seconds))}${again}`;
}
