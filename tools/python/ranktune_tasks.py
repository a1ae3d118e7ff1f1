# SPDX-License-Identifier: Apache-2.0
"""ranktune.tasks() and ranktune.result(): one process for many rows of `ranktune map --kept`.

    import ranktune

    for row in ranktune.tasks():
        ranktune.result(y=f(row.x))

The messages: docs/reference/program-protocol.md#kept-programs."""
import json
import os
from typing import Any, Dict, Iterator, Mapping, Optional

import ranktune

_values: Optional[Dict[str, Any]] = None  # of the row that the program is working on; None: it is not working on one
_open: Optional[int] = None  # the row that the worker waits for


def tasks(**defaults: Any) -> Iterator[ranktune.Config]:
    """Yields one row after the other, until none is left: columns of a table as texts, values of a grid as they are, with
    `defaults` for what the row does not have. A row is done when the loop asks for the next one. An exception that leaves the
    loop fails the row, and ends the process; the next row gets a new one. ranktune.context().trial is the row's number.

    Outside of a study: one row, the defaults."""
    global _values, _open
    if not ranktune._in_study():
        _values = {}
        yield ranktune._merged(defaults, {})
        print("row:", " ".join(f"{name}={ranktune._shown(value)}" for name, value in _values.items()), flush=True)
        _values = None
        return
    if "RANKTUNE_KEPT" not in os.environ:
        raise RuntimeError("ranktune.tasks() was called in a program that is started for each row: start it by "
                           "ranktune map --kept (kept = true in [trainable]), or use ranktune.config()")
    if _open is not None:
        raise RuntimeError(f"ranktune.tasks(): row {_open} was left by `break`, or by an exception that was caught outside of the loop: "
                           "catch it within, or let the program end")
    link = ranktune._the_link()
    try:
        link.tell({"ready": True})
        while True:
            row = _next_row(link)
            if row is None:
                return
            ranktune._config = row["config"]
            for variable, name in (("TRIAL", "task"), ("ATTEMPT", "attempt"), ("SEED", "seed")):
                os.environ["RANKTUNE_" + variable] = str(row[name])
            _values, _open = {}, row["task"]
            ranktune._limit_device_memory()
            yield ranktune._merged(defaults, row["config"])
            link.tell({"result": _values, "task": row["task"], "attempt": row["attempt"]})
            _values = _open = None
    except ConnectionError:
        return  # the worker is gone
    finally:
        _values = None


def result(values: Optional[Mapping[str, Any]] = None, /, **more: Any) -> None:
    """Values of the present row, for the table of results: numbers, or one-element tensors and arrays; texts become notes.
    May be called several times; values of the same name replace each other."""
    if ranktune._forked:
        raise RuntimeError("ranktune.result() was called in a process that was forked from the one with the row: return values to it")
    if _values is None:
        raise RuntimeError("ranktune.result() gives the values of a row: call it within `for row in ranktune.tasks():`")
    if values is not None and not hasattr(values, "keys"):
        raise TypeError(f"ranktune.result() takes values with their names, as in result(y=0.5), not {ranktune._short(values)} alone")
    for name, value in {**(values or {}), **more}.items():
        _values[name] = ranktune._number(name, value)


def _next_row(link: "ranktune._Link") -> Optional[Mapping[str, Any]]:
    """Waits for it. None: there is none, and the program is to end."""
    while b"\n" not in link.received:
        part = link.socket.recv(1 << 16)
        if not part:
            return None
        link.received += part
    line, _, link.received = link.received.partition(b"\n")
    message = json.loads(line)
    return message if "task" in message else None
