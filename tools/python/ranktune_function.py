# SPDX-License-Identifier: Apache-2.0
"""Calls the function of a study's `[trainable] python = "train.py:train"`. ranktune starts it, never by hand:

    python3 ranktune_function.py /path/train.py:train           serves: forks a process for each attempt
    python3 ranktune_function.py /path/train.py:train --kept    serves: attempts in this process, one after the other
    python3 ranktune_function.py /path/train.py:train --fresh   one attempt, in this process
    python3 ranktune_function.py /path/predict.py:predict --predict   all batches of `ranktune predict` ([predict] python)

Serving, it imports the file once. An attempt begins with all imports done: in a forked process, which may raise, exit, leak
or crash as any program may; or in this one, where GPUs, caches and compiled code of the attempts before are at hand. Each
request on the control descriptor is a line of JSON, with the standard output, standard error and control descriptor of the
attempt beside it; the answer has the number of its process: a forked one, whose parent is the worker (a subreaper), or this
one, which says later how the attempt has ended. The protocol: docs/reference/program-protocol.md of ranktune.

Standard library only, Python 3.9 or newer.
"""

import argparse
import atexit
import contextlib
import ctypes
import functools
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
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Set, Tuple

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


def load(target: str, table: str = "trainable") -> Callable[..., Any]:
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
        sys.exit(f"ranktune: '{path}' has no function '{name}' ([{table}] python)")
    return function


def parameter_of(function: Callable[..., Any]) -> Optional[str]:
    return next(iter(inspect.signature(function).parameters), None)


def begin_attempt() -> None:
    """This process, which had imported ranktune before, or is forked from one that had, is that of an attempt."""
    ranktune.between_attempts(False)
    ranktune._forked, ranktune._reports, ranktune._config, ranktune._told = False, 0, None, None
    ranktune._limited, ranktune._home = False, os.getcwd()
    ranktune._unread.clear()
    ranktune._forget()
    ranktune._strangers = set(threading.enumerate()) - {threading.current_thread()}
    data: Any = sys.modules.get("ranktune_data")
    if data is not None:
        data._begin_iteration()
    ranktune._join_study()


def end_attempt() -> None:
    """The attempt of this process is over, and another one may follow. Leaves the control descriptor open."""
    if ranktune._link is not None:
        ranktune._link.socket.detach()
    ranktune._forget()
    ranktune.between_attempts(True)


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


def predict(target: str) -> None:
    """Has a class, or a function with a function `load` beside it, predict for all batches. The model is loaded once. Both
    give y, or {"y": ..., "classes": ...}, as batch.write() takes them."""
    answer = predicting(target)
    torch: Any = sys.modules.get("torch")
    for batch in ranktune.predict():
        with torch.no_grad() if torch is not None else contextlib.nullcontext():
            said = answer(batch)
        parts = said if isinstance(said, Mapping) else {"y": said}
        if said is None or "y" not in parts or not set(parts) <= {"y", "classes"}:
            given = f"a dict of {', '.join(map(str, parts))}" if isinstance(said, Mapping) else "None"
            raise TypeError(f"{os.path.basename(target)} returned {given} for the samples from {batch.first} on, "
                            "not y or {'y': ..., 'classes': ...}")
        batch.write(**parts)


def predicting(target: str) -> Callable[[Any], Any]:
    """What is called with each batch: an object of the class, or the function with the model that `load` made."""
    path, name = target.rsplit(":", 1)
    found = load(target, "predict")
    if inspect.isclass(found):
        return made_of_checkpoint(found)
    loads = getattr(sys.modules[os.path.splitext(os.path.basename(path))[0]], "load", None)
    if not callable(loads):
        sys.exit(f"ranktune: '{path}' has no function load(checkpoint, config) that makes the model for {name}(model, batch); "
                 "write one, or a class ([predict] python)")
    return functools.partial(found, made_of_checkpoint(loads))


def made_of_checkpoint(make: Callable[..., Any]) -> Any:
    """Calls it with those of its parameters that are called `checkpoint` and `config`; or else by position."""
    known = {"checkpoint": ranktune.checkpoint, "config": ranktune.config}
    parameters = inspect.signature(make).parameters.values()
    named = {each.name: known[each.name]() for each in parameters if each.name in known}
    needed = [each for each in parameters if each.default is each.empty and each.kind <= each.POSITIONAL_OR_KEYWORD]
    return make(**named) if named else make(*(get() for get in list(known.values())[:len(needed)]))


def run(function: Callable[..., Any], parameter: Optional[str]) -> int:
    """Calls it as the main program of a process would be; returns the exit code."""
    try:
        call(function, parameter)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return int(error.code or 0) & 0xFF  # as the system does
        print(error.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        return 1
    return 0


def end(code: int) -> None:
    os._exit(finish() or code)


def finish() -> int:
    """What an interpreter does at its end, but for what only frees memory; 1: that has failed."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        flush(sys.stdout, sys.stderr)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def flush(*streams: Any) -> None:
    """Those that are there, as the interpreter does at its end."""
    for stream in streams:
        if stream is not None and not getattr(stream, "closed", False):
            stream.flush()


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
    enter(changes, directory, descriptors)


def attach(descriptors: List[int]) -> None:
    """As standard output, standard error and control descriptor."""
    for number, descriptor in zip((1, 2, _CONTROL), descriptors):
        os.dup2(descriptor, number)


def enter(changes: Mapping[bytes, Optional[bytes]], directory: bytes, descriptors: List[int]) -> None:
    attach(descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    for name, value in changes.items():
        if value is None:
            del os.environb[name]
        else:
            os.environb[name] = value
    os.chdir(directory)
    begin_attempt()


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


def requests(link: socket.socket) -> Iterator[Tuple[Mapping[str, Any], List[int]]]:
    received, descriptors = b"", []
    while True:
        part, more, _, _ = socket.recv_fds(link, 1 << 16, 3)
        if not part:
            return
        received += part
        descriptors += more
        if not received.endswith(b"\n"):
            continue
        if len(descriptors) == 3:
            yield json.loads(received), descriptors
        else:  # the others were closed
            for descriptor in descriptors:
                os.close(descriptor)
            send(link, {"pid": 0, "error": "it has no descriptor left (ulimit -n): too many files were left open"})
        received, descriptors = b"", []


def serve(function: Callable[..., Any], link: socket.socket) -> None:
    parameter = parameter_of(function)
    for request, descriptors in requests(link):
        answer: Dict[str, Any] = {"pid": 0}
        try:
            answer["pid"] = fork(function, parameter, request, descriptors)
            if answer["pid"] == 0:
                answer["error"] = "there is no process to be had (memory, or ulimit -u)"
        except OSError as error:
            answer["error"] = str(error)
        for descriptor in descriptors:
            os.close(descriptor)
        send(link, answer)


def send(link: socket.socket, message: Mapping[str, Any]) -> None:
    link.sendall(json.dumps(message).encode() + b"\n")


class Kept:
    """This interpreter between two attempts, which it goes back to after each."""

    def __init__(self, function: Callable[..., Any], restart_after: int, restart_growth: int) -> None:
        self.function, self.parameter = function, parameter_of(function)
        self.restart_after, self.restart_growth = restart_after, restart_growth
        self.attempts, self.memory = 0, 0  # done; after the first one
        # The last one holds the number of the control descriptor.
        self.own = [os.dup(1), os.dup(2), os.open(os.devnull, os.O_RDWR)]
        attach(self.own)
        self.streams = [sys.stdout, sys.stderr]
        self.handlers = [(number, signal.getsignal(number)) for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}]
        self.processes, self.threads = processes_of_this_one(), set(threading.enumerate())
        self.random = random_states()

    def serve(self, link: socket.socket) -> None:
        for request, descriptors in requests(link):
            changes = changes_of(request)
            send(link, {"pid": os.getpid()})
            for restore, state in self.random:
                restore(state)
            enter(changes, _bytes(request["directory"]), descriptors)
            code = run(self.function, self.parameter)
            why = "" if code != 0 else self.leave()
            if why:
                print(f"ranktune: {why}: the next trial gets a new interpreter", file=sys.stderr)
            flush(sys.stdout, sys.stderr, *self.streams)
            ends = code != 0 or why != ""
            if ends:  # before the worker hears of it: what is printed now belongs to this attempt
                finish()
            end_attempt()
            send(link, {"returned": code, "ends": ends})
            if ends:
                os._exit(code)
            attach(self.own)
            for i, stream in enumerate(self.streams):
                if getattr(stream, "closed", False):  # by the function
                    self.streams[i] = open(i + 1, "w", closefd=False)
            sys.stdout, sys.stderr = self.streams

    def leave(self) -> str:
        """Returns why this interpreter cannot do another attempt; empty: it can."""
        gc.collect()  # what is unreachable may hold threads, and memory of a GPU
        threads = [thread for thread in threading.enumerate() if thread not in self.threads and not thread.daemon]
        if any(thread in waiting_threads() for thread in threads):
            return "the function has left an executor behind (shutdown() ends its threads)"  # as finish() does, which waits for its work
        for thread in threads:
            thread.join()
        distributed: Any = sys.modules.get("torch.distributed")
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            distributed.destroy_process_group()
        for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for number, handler in self.handlers:
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)
        self.attempts += 1
        memory = resident_bytes()
        self.memory = self.memory or memory
        left = processes_of_this_one() - self.processes
        if left:
            return f"the function has left processes behind ({', '.join(map(str, sorted(left)))})"
        if self.restart_growth and memory - self.memory > self.restart_growth:
            return f"this interpreter has grown by {(memory - self.memory) / 1e6:.0f} MB since its first trial"
        if self.restart_after and self.attempts >= self.restart_after:
            return f"this interpreter has done its {self.attempts} trials (restart_after)"
        return ""


def random_states() -> List[Tuple[Callable[[Any], None], Any]]:
    """What the import has left: an attempt begins with it, whichever ones came before."""
    states: List[Tuple[Callable[[Any], None], Any]] = [(random.setstate, random.getstate())]
    for module, restore, state in (("numpy.random", "set_state", "get_state"), ("torch", "set_rng_state", "get_rng_state")):
        has: Any = sys.modules.get(module)
        if hasattr(has, restore):
            states.append((getattr(has, restore), getattr(has, state)()))
    return states + [(reseed_gpus, None)]


def reseed_gpus(_: None) -> None:
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "cuda") and torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(torch.initial_seed())


def waiting_threads() -> Any:
    """Those of executors, which wait for work until somebody ends them."""
    return getattr(sys.modules.get("concurrent.futures.thread"), "_threads_queues", {})


def processes_of_this_one() -> Set[int]:
    """Its children that live."""
    found: Set[int] = set()
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/children") as children:
                found.update(map(int, children.read().split()))
        except OSError:  # it has ended
            pass
    helpers = {getattr(getattr(sys.modules.get("multiprocessing." + module), "_" + module, None), name, None)  # they end with this one
               for module, name in (("resource_tracker", "_pid"), ("forkserver", "_forkserver_pid"))}
    return {child for child in found - helpers if not has_ended(child)}


def has_ended(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    arguments = argparse.ArgumentParser(allow_abbrev=False)
    arguments.add_argument("target")
    arguments.add_argument("--fresh", action="store_true")
    arguments.add_argument("--kept", action="store_true")
    arguments.add_argument("--predict", action="store_true")
    arguments.add_argument("--restart-after", type=int, default=0)
    arguments.add_argument("--restart-growth", type=int, default=0)
    given = arguments.parse_args()
    if given.fresh or given.predict:
        os.environ["RANKTUNE_FD"] = str(_CONTROL)
        begin_attempt()
        function = functools.partial(predict, given.target) if given.predict else load(given.target)
        end(run(function, None if given.predict else parameter_of(function)))
    function = load_for_all(given.target)
    # A forked process has its own descriptor of that number; here it is that of the present attempt.
    link = socket.socket(fileno=os.dup(_CONTROL) if given.kept else _CONTROL)
    link.setblocking(True)
    link.set_inheritable(False)
    sys.stdout.flush()
    kept = Kept(function, given.restart_after, given.restart_growth) if given.kept else None
    gc.freeze()  # what is there now: a collection in a fork would copy its pages
    send(link, {"ready": True})
    if kept:
        kept.serve(link)
    else:
        serve(function, link)


if __name__ == "__main__":
    main()
