#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A member of a population whose state remembers which values of lr made it (population_kills.py): member.py stay|start"""
import json
import os
import sys
import time
import zlib

import ranktune


def save(folder):
    if ranktune.context().rank == 0:
        with open(os.path.join(folder, "state.json"), "w") as file:
            json.dump(state, file)


def load(path):
    with open(os.path.join(path, "state.json")) as file:
        return json.load(file)


path = ranktune.checkpoint()
state = load(path) if path else {"chain": 0, "score": 0.0}
lr = ranktune.config().lr
while True:
    time.sleep(0.03)
    state["chain"] = zlib.crc32(repr((state["chain"], lr)).encode())
    state["score"] += lr
    told = ranktune.report(score=state["score"], chain=state["chain"], checkpoint=save, exploits=sys.argv[1] == "stay")
    if isinstance(told, ranktune.Exploit):
        state, lr = load(told.checkpoint), told.config.lr
