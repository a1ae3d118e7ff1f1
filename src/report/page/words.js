// Numbers, times and names as people read them.

// As `metric_text` of the terminal: four decimals, fewer for large numbers, an exponent for small ones.
function metricText(value) {
  if (value === null || value === undefined || isNaN(value)) return "-";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(3);
  return size >= 1000 ? value.toFixed(1) : value.toFixed(4);
}

// Four significant digits, without trailing zeros.
function numberText(value) {
  if (value === null || isNaN(value)) return "-";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size < 1e-3 || size >= 1e6 ? String(Number(value.toPrecision(4)).toExponential()) : String(Number(value.toPrecision(4)));
}

function countText(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

function shareText(share) {
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}

// 0.2 s, 14.2 s, 1m12s, 2h05m, 3d04h
function durationText(seconds) {
  const pad = (number) => String(number).padStart(2, "0");
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const s = Math.round(seconds);
  if (s < 3600) return `${Math.floor(s / 60)}m${pad(s % 60)}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h${pad(Math.floor((s % 3600) / 60))}m`;
  return `${Math.floor(s / 86400)}d${pad(Math.floor((s % 86400) / 3600))}h`;
}

// A duration for an axis: without parts that are zero.
function tickText(seconds) {
  if (seconds === 0) return "0";
  return durationText(seconds).replace(/([hmd])0+[smh]$/, "$1").replace(".0 s", " s");
}

// The value of a hyper-parameter: a number, or the position in a list of texts; "-" where a trial lacks it.
function parameterText(parameter, value) {
  if (isNaN(value)) return "-";
  return parameter.values ? parameter.values[value] : numberText(value);
}

function trialText(study, t) {
  return `#${t}${t === study.best ? " (best)" : ""}`;
}

const GROUP_WORDS = {
  finished: "trained to the end", stopped: "stopped early", paused: "paused", running: "waiting or running", failed: "failed",
};
