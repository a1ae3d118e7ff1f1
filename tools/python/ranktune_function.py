# SPDX-License-Identifier: Apache-2.0
"""Calls the function of a study's `[trainable] python = "train.py:train"`. ranktune starts it, never by hand:

    python3 ranktune_function.py /path/train.py:train           serves: forks a process for each attempt
    python3 ranktune_function.py /path/train.py:train --fresh   one attempt, in this process

Serving, it imports the file once, and then forks: an attempt begins with all imports done, in a process of its own, which
may raise, exit, leak or crash as any program may. Each request on the control descriptor is a line of JSON, with the
standard output, standard error and control descriptor of the new process beside it; the answer has the number of that
process, whose parent is the worker (a subreaper). The protocol: docs/reference/program-protocol.md of ranktune.

Standard library only, Python 3.9 or newer.
"""

import atexit
import ctypes
import gc
import importlib
import importlib.util
import inspect
import json
import os
import random
import signal
import socket
import sys
import threading
import traceback
from typing import Any, Callable, Dict, List, Mapping, Optional

_CONTROL = int(os.environ.pop("RANKTUNE_FD", "3"))  # `import ranktune` must not take it for that of an attempt
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_libc = ctypes.CDLL(None)

import ranktune  # noqa: E402  after the variable is gone


class Trial:
    """What a function `train(trial)` is given; everything of ranktune.context() is an attribute, too."""

    def __init__(self) -> None:
        self.config = ranktune.config()

    report = staticmethod(ranktune.report)

    @property
    def checkpoint(self) -> Any:
        """Path of the checkpoint (file or folder) to go on from; None: start afresh."""
        return ranktune.checkpoint()

    @property
    def number(self) -> Any:
        """From 0."""
        return ranktune.context().trial

    def __getattr__(self, name: str) -> Any:
        return getattr(ranktune.context(), name)


_OF_AN_ATTEMPT = ("ATTEMPT", "CHECKPOINT", "CHECKPOINT_DIR", "CONFIG", "ITERATION", "SEED", "TRIAL")


def load_for_all(target: str) -> Callable[..., Any]:
    """The same, for all attempts: while the file is imported there is none, which ranktune.config() and the like say."""
    for name in _OF_AN_ATTEMPT:
        os.environ.pop("RANKTUNE_" + name, None)
    ranktune.between_attempts(True)
    function = load(target)
    ranktune.between_attempts(False)
    return function


def load(target: str) -> Callable[..., Any]:
    """The function `train` of "/path/train.py:train"."""
    path, _, name = target.rpartition(":")
    folder, module_name = os.path.dirname(path), os.path.splitext(os.path.basename(path))[0]
    sys.path.insert(0, folder)
    sys.argv = [path]
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        sys.exit(f"ranktune: '{path}' has no function '{name}' ([trainable] python)")
    return function


def parameter_of(function: Callable[..., Any]) -> Optional[str]:
    return next(iter(inspect.signature(function).parameters), None)


def call(function: Callable[..., Any], parameter: Optional[str]) -> None:
    """Calls it with the configuration, or with the trial if it names its parameter so. What it returns is a report, if
    it has made none: a number, or a dict of metrics."""
    given = [] if parameter is None else [Trial() if parameter == "trial" else ranktune.config()]
    result = function(*given)
    if inspect.iscoroutine(result):
        result = importlib.import_module("asyncio").run(result)
    if result is None or ranktune.has_reported():
        return
    ranktune.report(result if isinstance(result, Mapping) else {ranktune.context().metric: result}, exit=False)


def run(function: Callable[..., Any], parameter: Optional[str]) -> int:
    """Calls it as the main program of a process would be; returns the exit code."""
    try:
        call(function, parameter)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        return 1
    return 0


def end(code: int) -> None:
    """What the interpreter does at its end, but for what only frees memory."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        code = code or 1
    os._exit(code)


def changes_of(request: Mapping[str, Any]) -> Dict[bytes, Optional[bytes]]:
    """What is different in the environment of an attempt; None: it has no such variable."""
    wanted = {_bytes(name): _bytes(value) for name, value in request["environment"].items()}
    changes: Dict[bytes, Optional[bytes]] = {name: None for name in os.environb if name not in wanted}
    changes.update((name, value) for name, value in wanted.items() if os.environb.get(name) != value)
    return changes


def become(changes: Mapping[bytes, Optional[bytes]], directory: bytes, descriptors: List[int], parent: int) -> None:
    """This process becomes that of an attempt."""
    while os.getppid() == parent:  # until then the signal would come from its end
        os.sched_yield()
    _libc.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    for number, descriptor in zip((1, 2, _CONTROL), descriptors):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    for name, value in changes.items():
        if value is None:
            del os.environb[name]
        else:
            os.environb[name] = value
    os.chdir(directory)
    ranktune.begin_attempt()


def _bytes(text: str) -> bytes:
    """A code point for each byte: the environment may hold any."""
    return text.encode("latin-1")


def fork(function: Callable[..., Any], parameter: Optional[str], request: Mapping[str, Any],
         descriptors: List[int]) -> int:
    """Starts the process of an attempt and returns its number. A process between ends at once, so that the worker, which
    adopts orphans, is the parent."""
    changes, directory = changes_of(request), _bytes(request["directory"])
    reading, writing = os.pipe()
    between_lives, kept_open = os.pipe()
    random_state = random.getstate()  # which a fork changes: an attempt begins with what the import left
    between = os.fork()
    if between == 0:
        parent = os.getpid()
        try:
            if os.fork() != 0:
                os._exit(0)
            random.setstate(random_state)
        except OSError:
            os._exit(1)
        os.close(kept_open)
        os.read(between_lives, 1)  # until it is about to end
        os.close(between_lives)
        os.setpgid(0, 0)
        os.write(writing, b"%d" % os.getpid())
        os.close(writing)
        os.close(reading)
        code = 1
        try:
            become(changes, directory, descriptors, parent)
            code = run(function, parameter)
        except BaseException:
            traceback.print_exc()
        end(code)
    for descriptor in (writing, kept_open, between_lives):
        os.close(descriptor)
    os.waitpid(between, 0)
    number = os.read(reading, 32)
    os.close(reading)
    return int(number or 0)


def serve(function: Callable[..., Any]) -> None:
    link = socket.socket(fileno=_CONTROL)
    link.setblocking(True)
    link.set_inheritable(False)
    sys.stdout.flush()
    parameter = parameter_of(function)
    gc.freeze()  # what is there now: a collection in a fork would copy its pages
    link.sendall(b'{"ready": true}\n')
    received, descriptors = b"", []
    while True:
        part, more, _, _ = socket.recv_fds(link, 1 << 16, 3)
        if not part:
            return
        received += part
        descriptors += more
        if not received.endswith(b"\n"):
            continue
        answer: Dict[str, Any] = {"pid": 0}
        try:
            answer["pid"] = fork(function, parameter, json.loads(received), descriptors)
            if answer["pid"] == 0:
                answer["error"] = "there is no process to be had (memory, or ulimit -u)"
        except OSError as error:
            answer["error"] = str(error)
        for descriptor in descriptors:
            os.close(descriptor)
        received, descriptors = b"", []
        link.sendall(json.dumps(answer).encode() + b"\n")


def main() -> None:
    target, *options = sys.argv[1:]
    if "--fresh" in options:
        os.environ["RANKTUNE_FD"] = str(_CONTROL)
        ranktune.begin_attempt()
        function = load(target)
        end(run(function, parameter_of(function)))
    serve(load_for_all(target))


if __name__ == "__main__":
    main()
