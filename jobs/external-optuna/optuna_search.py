# SPDX-License-Identifier: Apache-2.0
"""Optuna as the searcher of a ranktune study: docs/reference/searcher-protocol.md."""
import json
import sys

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

optuna.logging.set_verbosity(optuna.logging.WARNING)
RANGES = {"float": FloatDistribution, "int": IntDistribution}


def on_grid(p, x):  # Optuna has no steps on a logarithmic scale
    return min(max(round(x / p["step"]) * p["step"], p["low"]), p["high"]) if p.get("log") and "step" in p else x


asked, configs = {}, {}  # Optuna's trials by the number of the ask; configurations of other trials by trial
for message in map(json.loads, sys.stdin):
    tell = message.get("tell", {"state": None})
    if "study" in message:
        study = optuna.create_study(directions=[goal["mode"] + "imize" for goal in message["study"]["objectives"]],
                                    sampler=optuna.samplers.TPESampler(seed=message["study"]["seed"], constant_liar=True))
        domains = {p["name"]: p for p in message["study"]["space"] if p["type"] in ("choice", *RANGES)}
        space = {name: CategoricalDistribution(p["values"]) if p["type"] == "choice" else
                 RANGES[p["type"]](p["low"], p["high"], log=p["log"], **({} if p["log"] else {"step": p.get("step")}))
                 for name, p in domains.items()}
    elif "ask" in message:
        asked[message["ask"]] = trial = study.ask(space)
        config = {name: on_grid(domains[name], x) for name, x in trial.params.items()}
        print(json.dumps({"ask": message["ask"], "config": config}), flush=True)
    elif tell["state"] == "running":
        configs[tell["trial"]] = asked.get(tell.get("ask"), {k: v for k, v in tell["config"].items() if k in space})
    elif tell["state"] in ("finished", "stopped", "failed"):
        config = configs.pop(tell["trial"])
        values = tell.get("values", [tell["value"]])
        failed = tell["value"] is None or None in values
        state = optuna.trial.Trial.FAIL if failed else optuna.trial.Trial.COMPLETE
        if isinstance(config, optuna.Trial):
            study.tell(config, None if failed else values, state)
        else:  # from a Sobol point, [[searcher.start]], or an earlier start of the study
            study.add_trial(optuna.create_trial(params=config, distributions={k: space[k] for k in config},
                                                values=None if failed else values, state=state))
