# SPDX-License-Identifier: Apache-2.0
"""Programs that are kept: one process for many rows of `ranktune map --kept`, or for many batches of `ranktune predict`.

    for row in ranktune.tasks():
        ranktune.result(y=f(row.x))

    for batch in ranktune.predict():                # arrays of NumPy
        batch.write(model(batch["x"]))

The messages: docs/reference/program-protocol.md#kept-programs."""
import importlib
import json
import mmap
import os
import socket
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

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
    if os.environ.get("RANKTUNE_KEPT") != "1":
        raise RuntimeError("ranktune.tasks() was called in a program that is started for each row: start it by "
                           "ranktune map --kept (kept = true in [trainable]), or use ranktune.config()")
    if _open is not None:
        raise RuntimeError(f"ranktune.tasks(): row {_open} was left by `break`, or by an exception that was caught outside of the loop: "
                           "catch it within, or let the program end")
    link = ranktune._the_link()
    try:
        link.tell({"ready": True})
        told: Mapping[str, Any] = {}
        while True:
            row = _next_row(link)
            if row is None:
                return
            ranktune._config = row["config"]
            for variable, name in (("TRIAL", "task"), ("ATTEMPT", "attempt"), ("SEED", "seed")):
                if told.get(name) != row[name]:
                    os.environ["RANKTUNE_" + variable] = str(row[name])
            told = row
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


class Batch:
    """Samples that a model predicts for. batch["x"]: an array of NumPy, [rows, ...], which is theirs until write().
    Each row of predictions may depend on its own sample only.

    fields -- the names of the arrays
    first  -- number of the first sample in the file
    rows   -- samples: the last batches of a file have fewer"""

    def __init__(self, link: "ranktune._Link", message: Mapping[str, Any], memory: "_Memory") -> None:
        self.fields: Tuple[str, ...] = tuple(column["name"] for column in message["columns"])
        self.first: int = message["first"]
        self.rows: int = message["rows"]
        self._link, self._message, self._memory = link, message, memory
        self._written = False

    def __getitem__(self, name: str) -> Any:
        for column in self._message["columns"]:
            if column["name"] == name:
                return self._memory.array(column, self.rows, self._message["y"])
        raise KeyError(f"the samples have no '{name}'; they have {', '.join(self.fields)}")

    def write(self, y: Any, classes: Any = None) -> None:
        """The predictions, once for each batch.

        y       -- float32 or float64, [rows, ...]: an array or a tensor, on any device; half precision becomes float32
        classes -- of a classifier, whose y is [rows, classes]: integers, [rows]. None: it is none"""
        if ranktune._forked:
            raise RuntimeError("batch.write() was called in a process that was forked from the one with the batch: return the predictions to it")
        if self._written:
            raise RuntimeError(f"batch.write(): the predictions from sample {self.first} on are written already")
        predictions = _array("y", y)
        if predictions.dtype.name == "float16":
            predictions = predictions.astype("float32")
        predictions = predictions.astype(predictions.dtype.newbyteorder("="), copy=False)
        if predictions.dtype.name not in ("float32", "float64"):
            raise TypeError(f"batch.write(): y is {predictions.dtype.name}, not float32 or float64; labels are classes=")
        parts = [("y", predictions)]
        if classes is not None:
            labels = _array("classes", classes)
            if labels.dtype.kind not in "iu":
                raise TypeError(f"batch.write(): classes are {labels.dtype.name}, not integers, as of y.argmax(1)")
            if labels.shape != (self.rows,) or labels.min() < -(1 << 31) or labels.max() >= 1 << 31:
                raise ValueError(f"batch.write(): classes need the shape [{self.rows}] and fit int32; they have {list(labels.shape)}")
            parts.append(("classes", labels.astype("int32")))
        place = self._message["y"]
        for name, part in parts:
            if part.shape[:1] != (self.rows,):
                raise ValueError(f"batch.write(): {name} has the shape {list(part.shape)}, and the batch {self.rows} rows")
            place = self._memory.write(part, place)
        self._written = True
        self._link.tell({"predicted": self._message["batch"], "dtype": predictions.dtype.name, "shape": list(predictions.shape),
                         "class": classes is not None})


def predict() -> Iterator[Batch]:
    """Yields the batches that `ranktune predict` has for this model, until none is left. ranktune.checkpoint() is that of the
    trial, ranktune.config() its configuration, ranktune.context().trial its number. An exception fails a range of samples, and
    ends the process; the next range gets a new one."""
    if not ranktune._in_study() or os.environ.get("RANKTUNE_KEPT") != "predict":
        raise RuntimeError("ranktune.predict() was called in a program that nobody asks: start it by ranktune predict STUDY best "
                           "--input x.npy -o y.h5 --command \"python3 predict.py\"")
    link = ranktune._the_link()
    memories: List[_Memory] = []
    ranktune._limit_device_memory()
    try:
        link.tell({"ready": True})
        while True:
            message = _next_message(link, memories)
            if message is None or "batch" not in message:
                return
            batch = Batch(link, message, memories[message["memory"]])
            yield batch
            if not batch._written:
                raise RuntimeError(f"the loop over ranktune.predict() went on without batch.write() for the samples from {batch.first} on")
    except ConnectionError:
        return  # the worker is gone


class _Memory:
    """Shared with the worker: a batch, and behind it what is predicted for it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.mapped: Optional[mmap.mmap] = None

    def array(self, column: Mapping[str, Any], rows: int, size: int) -> Any:
        """`size`: bytes of the samples, always the same."""
        numpy = importlib.import_module("numpy")
        if column["dtype"] == "bfloat16":
            raise TypeError(f"'{column['name']}' is bfloat16, which NumPy does not have: convert the file to float32")
        if self.mapped is None:
            self.mapped = mmap.mmap(self.descriptor, size)
        shape = (rows, *column["shape"])
        return numpy.ndarray(shape, column["dtype"], self.mapped, column["offset"])

    def write(self, array: Any, place: int) -> int:
        """Returns where it ends."""
        rest = memoryview(array.reshape(-1).view("uint8"))
        while rest:
            size = os.pwrite(self.descriptor, rest, place)
            rest, place = rest[size:], place + size
        return place


def _array(name: str, values: Any) -> Any:
    numpy = importlib.import_module("numpy")
    if hasattr(values, "detach"):  # a tensor of PyTorch
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":
            values = values.float()
    array = numpy.ascontiguousarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"batch.write(): {name} is {ranktune._short(values)}, not an array of numbers")
    return array


def _next_message(link: "ranktune._Link", memories: "Optional[List[_Memory]]" = None) -> Optional[Mapping[str, Any]]:
    """Waits for it. None: the worker is gone. Memories come with the first batch; rows bring none."""
    while b"\n" not in link.received:
        if memories is None:
            part = link.socket.recv(1 << 16)
        else:
            part, descriptors, _, _ = socket.recv_fds(link.socket, 1 << 16, 8)
            memories += [_Memory(descriptor) for descriptor in descriptors]
        if not part:
            return None
        link.received += part
    line, _, link.received = link.received.partition(b"\n")
    message: Mapping[str, Any] = json.loads(line.decode("utf-8", "surrogatepass"))
    return message


def _next_row(link: "ranktune._Link") -> Optional[Mapping[str, Any]]:
    """Waits for it. None: there is none, and the program is to end."""
    message = _next_message(link)
    return message if message is not None and "task" in message else None
