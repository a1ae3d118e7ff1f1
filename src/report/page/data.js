// The data of the page: columns into typed arrays, differences into values. See src/report/page/page_data.hpp.

const NO_TRIAL = -1;
const GROUPS = ["finished", "stopped", "paused", "running", "failed"];

function sums(differences) {
  const values = new Float64Array(differences.length);
  let last = 0;
  for (let i = 0; i < differences.length; ++i) values[i] = last += differences[i];
  return values;
}

// null stands for a value that is not a finite number.
function numbers(column) {
  return Float64Array.from(column, (value) => (value === null ? NaN : value));
}

// Hundredths of a second into seconds.
function seconds(column) {
  return Float64Array.from(column, (value) => value / 100);
}

// Phases as people count them: a trial that waits or ends is on its way like one that trains.
function groupOf(phase) {
  return GROUPS.includes(phase) ? phase : "running";
}

function decodeCurves(raw, count) {
  const begin = new Uint32Array(count + 1);
  for (let t = 0; t < count; ++t) begin[t + 1] = begin[t] + raw.count[t];
  const iteration = new Float64Array(raw.iteration.length);
  const at = new Float64Array(raw.at.length);
  for (let t = 0; t < count; ++t) {
    iteration.set(sums(raw.iteration.slice(begin[t], begin[t + 1])), begin[t]);
    at.set(seconds(sums(raw.at.slice(begin[t], begin[t + 1]))), begin[t]);
  }
  return { begin, iteration, at, value: numbers(raw.value), reports: raw.reports, thinned: raw.thinned };
}

function decodeTrials(raw, texts, phases) {
  const phase = raw.phase.map((number) => phases[number]);
  return {
    count: phase.length,
    phase,
    group: phase.map(groupOf),
    why: raw.why.map((number) => texts[number]),
    message: raw.message.map((number) => texts[number]),
    origin: raw.origin.map((number) => texts[number]),
    iterations: raw.iterations, best: numbers(raw.best), bestIteration: raw.best_iteration, last: numbers(raw.last),
    seconds: numbers(raw.seconds), attempts: raw.attempts, ranks: raw.ranks, bracket: raw.bracket,
    created: seconds(sums(raw.created)),
    values: raw.values.map(numbers),
    others: (raw.others || []).map(numbers),
  };
}

// Trials in the order of their best values; those without one come last. Of equal ones the study's best is first.
function byRank(trials, sign, best) {
  const order = Array.from({ length: trials.count }, (_, t) => t);
  const score = Float64Array.from(trials.best, (value) => (isNaN(value) ? -Infinity : sign * value));
  return order.sort((a, b) => {
    if (score[a] !== score[b]) return score[b] > score[a] ? 1 : -1;
    return (b === best) - (a === best) || a - b;
  });
}

function decodeStudy(raw, phases) {
  const study = Object.assign({}, raw);
  study.sign = raw.mode === "max" ? 1 : -1;
  study.now = raw.now / 100;
  study.trials = decodeTrials(raw.trials, raw.texts, phases);
  study.curves = decodeCurves(raw.curves, study.trials.count);
  study.steps = { at: seconds(sums(raw.best_steps.at)), iterations: sums(raw.best_steps.iterations),
                  value: numbers(raw.best_steps.value), trial: raw.best_steps.trial };
  study.decisions = { all: raw.decisions.all, trial: raw.decisions.trial, iteration: raw.decisions.iteration,
                      at: seconds(sums(raw.decisions.at)), why: raw.decisions.why.map((number) => raw.texts[number]) };
  study.attempts = { all: raw.attempts.all, trial: raw.attempts.trial, number: raw.attempts.number,
                     from: raw.attempts.from, whose: raw.attempts.whose, ranks: raw.attempts.ranks, begin: seconds(sums(raw.attempts.begin)),
                     length: seconds(raw.attempts.length), outcome: raw.attempts.outcome.map((n) => raw.texts[n]),
                     message: raw.attempts.message.map((n) => raw.texts[n]) };
  study.generations = Object.assign({}, raw.generations, { values: raw.generations.values.map(numbers) });
  study.trials.tags = new Map((raw.notes || []).map(([t, tags]) => [t, tags]));
  study.trials.notes = new Map((raw.notes || []).map(([t, , notes]) => [t, notes]));
  study.rank = byRank(study.trials, study.sign, study.best);
  return study;
}

function decodePage(json) {
  const raw = JSON.parse(json);
  return { made: raw.made, studies: raw.studies.map((study) => decodeStudy(study, raw.phases)) };
}
