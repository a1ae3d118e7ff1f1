# SPDX-License-Identifier: Apache-2.0
"""Reads a study through `ranktune export --format json`, the stable format: also while the study runs."""
import json
import math
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple, Union

__all__ = ["RanktuneError", "Study", "Trial"]


class RanktuneError(RuntimeError):
    """The program `ranktune` could not be run, or reported an error: its message."""


@dataclass(frozen=True)
class Trial:
    """One trial. Values of the study's metric may be NaN or infinite."""

    id: int
    configuration: Dict[str, Any]
    state: str  # waiting, running, ending, paused, finished, stopped, failed
    reason: str  # why it ended or paused, in words
    message: str  # of its newest failure
    iterations: int
    seconds: float  # of training
    attempts: int
    best: Optional[float]  # None: no report yet, or none but NaN
    best_iteration: Optional[int]
    last: Optional[float]
    values: Tuple[float, ...] = ()  # of several objectives, at best_iteration; (): no result
    checkpoints: List[str] = field(default_factory=list, repr=False)  # paths in the study's directory
    origin: Dict[str, Any] = field(default_factory=dict, repr=False)  # where its configuration came from: kind, ...


class Study:
    """A study as its journal tells it now; refresh() reads again.

    directory -- of the study (or the study file, as for every verb of ranktune)
    program   -- the program `ranktune`; default: $RANKTUNE_PROGRAM, else the one on the PATH
    """

    directory: str
    name: str
    metric: str  # what it optimises; the first of several
    mode: str  # "min" or "max"
    objectives: List[Tuple[str, str]]  # [(metric, mode)], all of them
    ended: bool
    exit_code: Optional[int]
    trials: List[Trial]

    def __init__(self, directory: Union[str, "os.PathLike[str]"], *, program: Optional[str] = None) -> None:
        self.directory = os.fspath(directory)
        self._program = program
        self.refresh()

    def refresh(self) -> "Study":
        """Reads the study again. Raises RanktuneError with the message of ranktune."""
        whole = json.loads(ranktune_output(["export", self.directory, "--format", "json"], self._program))
        about = whole["study"]
        self.name, self.metric, self.mode = about["name"], about["metric"], about["mode"]
        self.ended, self.exit_code = about["ended"], about["exit_code"]
        self.objectives = [(each["metric"], each["mode"]) for each in about.get("objectives", [about])]
        self._best: Optional[int] = about["best_trial"]
        self._front: List[int] = about.get("front", [])
        self.trials = [_trial(trial) for trial in whole["trials"]]
        self.reports: List[Dict[str, Any]] = whole["reports"]
        for report in self.reports:
            report["metrics"] = {name: _number(value) for name, value in report["metrics"].items()}
        return self

    @property
    def best(self) -> Optional[Trial]:
        """The trial with the best value; None: no trial has a finite value."""
        return None if self._best is None else self.trials[self._best]

    @property
    def front(self) -> List[Trial]:
        """The Pareto front of a study with several objectives, from the best to the worst in the first one; otherwise []."""
        return [self.trials[trial] for trial in self._front]

    def curves(self, metric: Optional[str] = None) -> Dict[int, List[Tuple[int, float]]]:
        """Learning curves: by trial, [(iteration, value)], ascending. metric -- default: the one that the study optimises.
        Where an iteration was trained again, after a loss, the newest value counts."""
        wanted = self.metric if metric is None else metric
        curves: Dict[int, Dict[int, float]] = {}
        for report in self.reports:
            if wanted in report["metrics"]:
                curves.setdefault(report["trial"], {})[report["iteration"]] = report["metrics"][wanted]
        return {trial: sorted(points.items()) for trial, points in sorted(curves.items())}

    def rows(self) -> List[Dict[str, Any]]:
        """One dict per trial: its facts, its hyper-parameters (a name that clashes with a fact as "parameter.NAME"), and the
        newest value of every other metric (as "metric.NAME" where that clashes, also in trials that lack the other one)."""
        newest: Dict[int, Dict[str, float]] = {}
        for report in self.reports:
            newest.setdefault(report["trial"], {}).update(report["metrics"])
        tuned = {name for trial in self.trials for name in trial.configuration}
        rows = []
        for trial in self.trials:
            row: Dict[str, Any] = {"trial": trial.id, "state": trial.state, "iterations": trial.iterations,
                                   "best": trial.best, "best_iteration": trial.best_iteration, "last": trial.last,
                                   "seconds": trial.seconds, "attempts": trial.attempts, "message": trial.message}
            for kind, values in (("parameter", trial.configuration), ("metric", newest.get(trial.id, {}))):
                for name, value in values.items():
                    if kind == "parameter" or name != self.metric:
                        clashes = name in row or (kind == "metric" and name in tuned)
                        row[f"{kind}.{name}" if clashes else name] = value
            rows.append(row)
        return rows

    def table(self) -> Any:
        """The rows as a pandas.DataFrame with the index `trial`, or rows() where pandas is not installed."""
        try:
            import pandas  # type: ignore[import-untyped]  # only here: most programs do without
        except ImportError:
            return self.rows()
        return pandas.DataFrame(self.rows()).set_index("trial") if self.trials else pandas.DataFrame()

    def __repr__(self) -> str:
        best = self.best
        value = "" if best is None or best.best is None else f", best {best.best:g} of #{best.id}"
        return f"Study({self.directory!r}: {len(self.trials)} trials{value})"


def ranktune_program(program: Optional[str] = None) -> str:
    """The program `ranktune`. Raises RanktuneError when there is none."""
    command = program or os.environ.get("RANKTUNE_PROGRAM") or shutil.which("ranktune")
    if command is None:
        raise RanktuneError("there is no program 'ranktune' on the PATH; load its module, set RANKTUNE_PROGRAM, or give program=")
    return command


def ranktune_output(words: List[str], program: Optional[str] = None, show: bool = False) -> str:
    """Runs `ranktune WORDS`; returns what it prints, or with `show` prints it and returns "". Raises RanktuneError.

    >>> ranktune_output(["ls"], program="/nonexistent/ranktune")
    Traceback (most recent call last):
    ...
    ranktune_studies.reading.RanktuneError: cannot run '/nonexistent/ranktune': No such file or directory
    """
    command = ranktune_program(program)
    try:
        done = subprocess.run([command, *words], stdin=subprocess.DEVNULL, stdout=None if show else subprocess.PIPE,
                              stderr=subprocess.PIPE)
    except OSError as error:
        raise RanktuneError(f"cannot run '{command}': {error.strerror}") from None
    message = done.stderr.decode(errors="replace").strip()
    if done.returncode != 0:
        raise RanktuneError(message or f"ranktune {words[0]} ended with exit code {done.returncode}")
    return "" if show else done.stdout.decode(errors="replace")


def _number(value: Any) -> Any:
    """Numbers that JSON does not have are strings in it."""
    return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}.get(value, value) if isinstance(value, str) else value


def _trial(trial: Dict[str, Any]) -> Trial:
    best, last = trial["best"] or {}, trial["last"] or {}
    return Trial(trial["id"], trial["configuration"], trial["state"], trial["reason"], trial["message"], trial["iterations"],
                 trial["seconds"], len(trial["attempts"]), _number(best.get("value")), best.get("iteration"),
                 _number(last.get("value")), tuple(best.get("values", ())), [checkpoint["path"] for checkpoint in trial["checkpoints"]],
                 {name: _number(value) if name in ("expected", "gain") else value for name, value in trial.get("origin", {}).items()})
