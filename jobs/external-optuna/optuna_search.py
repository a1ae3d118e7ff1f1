# SPDX-License-Identifier: Apache-2.0
"""Optuna as the searcher of a ranktune study: docs/reference/searcher-protocol.md."""
import json
import sys

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

optuna.logging.set_verbosity(optuna.logging.WARNING)
RANGES = {"float": FloatDistribution, "int": IntDistribution}
asked, configs = {}, {}  # Optuna's trials by the number of the ask; configurations of other trials by trial
for message in map(json.loads, sys.stdin):
    if "study" in message:
        study = optuna.create_study(direction=message["study"]["mode"] + "imize",
                                    sampler=optuna.samplers.TPESampler(seed=message["study"]["seed"], constant_liar=True))
        space = {p["name"]: CategoricalDistribution(p["values"]) if p["type"] == "choice" else
                 RANGES[p["type"]](p["low"], p["high"], log=p["log"], step=None if p["log"] else p.get("step"))
                 for p in message["study"]["space"] if p["type"] in ("choice", *RANGES)}
    elif "ask" in message:
        asked[message["ask"]] = trial = study.ask(space)
        print(json.dumps({"ask": message["ask"], "config": trial.params}), flush=True)
    elif message["tell"]["state"] == "running":
        tell = message["tell"]
        configs[tell["trial"]] = asked.get(tell.get("ask"), {k: v for k, v in tell["config"].items() if k in space})
    elif message["tell"]["state"] in ("finished", "stopped", "failed"):
        tell, config = message["tell"], configs.pop(message["tell"]["trial"])
        state = optuna.trial.TrialState.FAIL if tell["value"] is None else optuna.trial.TrialState.COMPLETE
        if isinstance(config, optuna.Trial):
            study.tell(config, tell["value"], state)
        else:  # from a Sobol point, [[searcher.start]], or an earlier start of the study
            study.add_trial(optuna.create_trial(params=config, distributions={k: space[k] for k in config},
                                                value=tell["value"], state=state))
