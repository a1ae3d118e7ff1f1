# SPDX-License-Identifier: Apache-2.0
"""Describe, run and read studies from Python: for scripts and notebooks. Training programs import ranktune, which has
these names, too.

    import ranktune

    study = ranktune.run({
        "study": {"name": "digits", "metric": "val_accuracy", "mode": "max", "num_trials": 60, "max_iterations": 27},
        "trainable": {"command": "python3 train.py {args}"},
        "space": {"lr": "loguniform(1e-4, 1.0)", "batch_size": [32, 64]},
        "scheduler": {"type": "asha"},
    })
    print(study.best)
    study.table()                       # a pandas.DataFrame where pandas is installed

A function is tuned without a study file:

    study = ranktune.run(train, metric="loss", mode="min", num_trials=50, space={"lr": "loguniform(1e-4, 1.0)"})

A loop of yours asks for trials and tells their results: see create().
"""
from .asking import AskedStudy, AskedTrial, create, open_study
from .launching import function_study, run, write_study
from .reading import RanktuneError, Study, Trial
from .toml import dumps

__all__ = ["AskedStudy", "AskedTrial", "RanktuneError", "Study", "Trial", "create", "dumps", "function_study", "open_study", "run", "write_study"]
