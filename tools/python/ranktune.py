# SPDX-License-Identifier: Apache-2.0
"""ranktune, seen from a training program written in Python.

    import ranktune

    config = ranktune.config(lr=0.01, batch_size=64)        # the trial's configuration; alone: these defaults
    if ranktune.checkpoint():                               # path to go on from; None: start afresh
        load(ranktune.checkpoint())
    for epoch in range(ranktune.context().iteration, 27):
        ...
        ranktune.report(val_accuracy=accuracy, checkpoint=save)

Every process of a trial calls report() once per iteration. Rank 0 gives the metrics; the others may call report() without
arguments. It returns True to go on; when the trial is paused or stopped, it ends the process on every rank at the same
iteration. Without ranktune (by hand, by torchrun) the same program trains as before, and report() prints a line.

ranktune.dataset: training data that resumes where the trial stands; ranktune.tasks: the rows of `ranktune map --kept`; ranktune.predict: the batches of `ranktune predict`. They are in
ranktune_data.py, _files.py, _order.py, _torch.py and _tasks.py beside this file.
ranktune.Study, ranktune.run and ranktune.write_study, for scripts and notebooks, are in the package ranktune_studies; `pip
install` of the folder of this file has both.

This file needs the standard library only, Python 3.9 or newer. The protocol: docs/reference/program-protocol.md of ranktune (in an
installation: share/doc/ranktune/docs/reference/program-protocol.md).
"""

import contextlib
import difflib
import errno
import importlib
import json
import os
import select
import shutil
import socket
import stat
import sys
import threading
from types import TracebackType
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple, Union

__all__ = ["Config", "Context", "Exploit", "TrialEnded", "checkpoint", "config", "context", "report"]

Checkpoint = Union[str, "os.PathLike[str]", Callable[[str], Any], Any]  # the last: a future

_LONGEST = 1 << 20  # bytes of a message
_TURN = 0.02  # seconds between two looks at futures, while a report waits
_MARK = "RANKTUNE_SOCKET"  # inode of the control socket, to recognise another file with the same number


class TrialEnded(SystemExit):
    """Raised by report() when the trial is paused or stopped: the process ends with exit code 0 and no traceback."""

    def __init__(self, decision: str) -> None:
        super().__init__(0)
        self.decision = decision  # "pause" or "stop"


class Config(dict):  # type: ignore[type-arg]
    """A configuration: a dict whose entries are also attributes. Read an entry with the name of a dict method
    ("values") as config["values"].

    >>> tuned = Config(lr=0.1, values=3)
    >>> tuned.lr, tuned["values"]
    (0.1, 3)
    """

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        if name.startswith("__"):
            raise AttributeError(name)
        near = difflib.get_close_matches(name, [str(key) for key in self], 1)
        raise AttributeError(
            f"the configuration has no '{name}'" + (f"; did you mean '{near[0]}'?" if near else f"; it has {_list(self)}")
            + ("" if _in_study() else f" (no study: only the defaults are there, as in ranktune.config({name}=...))"))

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class Exploit:
    """Returned by report(..., exploits=True) when the trial takes over the state of another one: load `checkpoint`, use the
    values of `config`, and train on. True like the answer to go on. From then on config() and checkpoint() return the same.
    The next report() of rank 0 fails if the program has read only one of the two, or neither."""

    def __init__(self, config: Config, checkpoint: str) -> None:
        self._config = config
        self._checkpoint = checkpoint

    @property
    def config(self) -> Config:
        """The configuration from now on, without the defaults of earlier calls of ranktune.config()."""
        _unread.discard("config")
        return self._config

    @property
    def checkpoint(self) -> str:
        """Path of the checkpoint (file or folder) of the other trial."""
        _unread.discard("checkpoint")
        return self._checkpoint

    def __repr__(self) -> str:
        return f"Exploit(config={self._config!r}, checkpoint={self._checkpoint!r})"


class Context:
    """Facts about the trial of this process. Outside of a study: rank and size from the environment; study, trial and
    the like are None."""

    study: Optional[str]  # name
    study_dir: Optional[str]
    trial: Optional[int]  # number, from 0
    attempt: int  # number of the attempt of this trial, from 1
    iteration: int  # iterations completed so far, by all attempts
    iterations: Optional[int]  # the study's ceiling
    rank: int  # of this process within the trial
    world_size: int
    local_rank: int  # on this node, among the ranks of the trial
    checkpoint_dir: Optional[str]  # writable folder of this program, the same for all ranks
    seed: int  # of the study; each repetition of a configuration has its own
    metric: Optional[str]  # what the study optimises
    mode: Optional[str]  # "min" or "max"

    def __init__(self) -> None:
        self.study = os.environ.get("RANKTUNE_STUDY")
        self.study_dir = os.environ.get("RANKTUNE_STUDY_DIR")
        self.trial = _number_of("RANKTUNE_TRIAL", None)
        self.attempt = _number_of("RANKTUNE_ATTEMPT", 1)
        self.iteration = _number_of("RANKTUNE_ITERATION", 0) + _reports
        self.iterations = _number_of("RANKTUNE_ITERATIONS", None)
        self.rank = _number_of("RANK", 0)
        self.world_size = _number_of("WORLD_SIZE", 1)
        self.local_rank = _number_of("LOCAL_RANK", 0)
        self.checkpoint_dir = os.environ.get("RANKTUNE_CHECKPOINT_DIR")
        self.seed = _number_of("RANKTUNE_SEED", 0)
        self.metric = os.environ.get("RANKTUNE_METRIC")
        self.mode = os.environ.get("RANKTUNE_MODE")

    def __repr__(self) -> str:
        return f"Context({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


def config(**defaults: Any) -> Config:
    """The trial's configuration, with `defaults` for parameters that the study does not have (nested tables as dicts).
    Outside of a study: the defaults. May be called by any process, any number of times.

    >>> config(lr=0.1, optimizer={"name": "adam"}).lr
    0.1
    """
    _need_attempt("config")
    _limit_device_memory()
    path = os.environ.get("RANKTUNE_CONFIG")
    values = _config or {}
    _unread.discard("config")
    if _config is None and path is not None and path.startswith("{"):  # of a task or function, which has no file
        values = json.loads(path)
    elif _config is None and path is not None:
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
    return _merged(defaults, values)


def checkpoint() -> Optional[str]:
    """Path of the checkpoint (file or folder) to resume from, saved at context().iteration; None when the trial starts from
    scratch."""
    _need_attempt("checkpoint")
    _unread.discard("checkpoint")
    return os.environ.get("RANKTUNE_CHECKPOINT") or None


def context() -> Context:
    """Trial, attempt, iteration, rank and the like; a new object at each call."""
    _need_attempt("context")
    return Context()


def report(metrics: Optional[Mapping[str, Any]] = None, /, *, checkpoint: Optional[Checkpoint] = None, path: Any = None,
           exit: bool = True, exploits: bool = False, **more: Any) -> Union[bool, Exploit]:
    """Reports the metrics of one iteration and waits for the decision. Every rank of the trial calls it equally often,
    and gets the same answer. Only the metrics and the checkpoint path of rank 0 are used; other ranks may call report()
    without arguments.

    metrics, more -- numbers, or one-element tensors and arrays; NaN and infinity are allowed. Texts become notes of the
                     trial: report(loss=0.1, note="warm-up is over").
    checkpoint    -- state of this iteration, to resume from: either the path of a file or folder that is complete when
                     report() is called (rank 0's counts), or a function f(folder) that saves below `folder`. The
                     function is called only when the state is needed, and then on every rank: only rank 0 should write,
                     unless each rank writes its own file. It may return the path of what it saved. The program may go
                     on after it: what it saved must then lie below `folder`, and not change any more.
                     Or, on every rank, the future of what is still being saved to `path` (anything with result() and
                     done(), as from torch.distributed.checkpoint.async_save): a path of its own for each report. The
                     state counts when all ranks are done; a pause waits for that.
    exit          -- when the trial is paused or stopped: True raises TrialEnded, a SystemExit, on every rank; False
                     makes report() return False.
    exploits      -- population-based training: True, on every rank, if the program can take over the state of another
                     trial without being started again. report() may then return an Exploit.

    Returns True to go on; an Exploit, which is true as well, to go on from another state. Outside of a study rank 0 prints
    the metrics, nothing is saved, and the answer is True.
    """
    global _reports
    _need_attempt("report")
    _limit_device_memory()
    rank = _number_of("RANK", 0)
    if metrics is not None and not hasattr(metrics, "keys"):
        raise TypeError(_nameless(metrics))
    future = _future_of(checkpoint)
    values = {**(metrics or {}), **more}
    if path is not None and future is None:
        values["path"] = path  # a metric of that name
    for hook in _hooks:
        values = {**hook(), **values}
    if not _in_study():
        _reports += 1
        if rank == 0:
            text = " ".join(f"{name}={_shown(_number(name, value))}" for name, value in values.items())
            print(f"iteration {_reports}: {text}", flush=True)
        return True
    if exit and threading.current_thread() is not threading.main_thread():
        raise RuntimeError("ranktune.report() was called outside of the main thread, where it cannot end the process; "
                           "use report(..., exit=False) and end the training when it returns False")
    if _unread and rank == 0:
        raise RuntimeError("the last ranktune.report() returned an Exploit, and the program did not read its "
                           f"{' and its '.join(sorted(_unread))}: the trial goes on with the state and the configuration "
                           "of another one. Load the checkpoint and use the configuration, or leave out exploits=True")
    message: Dict[str, Any] = {"report": {name: _number(name, value) for name, value in values.items()} if rank == 0 else {}}
    if future is not None:
        if path is None:
            raise TypeError("report(checkpoint=future) needs path=..., where the future saves")
        if rank == 0:
            message["checkpoint"] = _checkpoint_path(path, there=False)
    elif callable(checkpoint):
        message["can_save"] = message["can_go_on"] = True
    elif checkpoint is not None and rank == 0:
        message["checkpoint"] = _checkpoint_path(checkpoint)
    if exploits:
        message["exploits"] = True
    answer = _the_link().decide(message, checkpoint if callable(checkpoint) and future is None else None, future)
    decision = str(answer["decision"])
    if decision == "exploit":
        return _exploit(answer)
    _reports += 1
    if decision == "continue":
        return True
    if exit:
        raise TrialEnded(decision)
    return False


def __getattr__(name: str) -> Any:
    """These names come from other files, which most trials do not need."""
    file = {"data": "ranktune_data", "dataset": "ranktune_data"}.get(name, "ranktune_tasks" if name in ("tasks", "result", "predict") else None)
    if file is not None:
        return globals().setdefault(name, getattr(importlib.import_module(file), name))  # once: it may be asked for each row
    if name not in ("Study", "Trial", "RanktuneError", "create", "open_study", "run", "write_study"):
        raise AttributeError(f"module 'ranktune' has no attribute '{name}'")
    try:
        studies = importlib.import_module("ranktune_studies")
    except ImportError:
        raise AttributeError(f"ranktune.{name} is in the package ranktune_studies, which is not installed here: pip install "
                             "PREFIX/share/ranktune/python, or tools/python of ranktune's sources") from None
    return getattr(studies, name)


# ---- implementation ----------------------------------------------------------------------------------------------------

_reports = 0  # made by this process in this attempt
_config: Optional[Mapping[str, Any]] = None  # since an exploit; before it, in the file
_unread: Set[str] = set()  # of the last Exploit: "config", "checkpoint"
_link: Optional["_Link"] = None
_hooks: List[Callable[[], Mapping[str, float]]] = []  # of ranktune_data: metrics of each report
_between = False  # see between_attempts()
_strangers: Set[threading.Thread] = set()  # from before this attempt (kept = true)
_forked = False
_limited = False  # the memory of a shared GPU
_told: Optional[BaseException] = None  # ranktune knows that this exception ends the process
try:
    _home = os.getcwd()  # where the program was started
except OSError:  # somebody removed it
    _home = os.sep
_making_link = threading.Lock()


class _Link:
    """The connection over the control descriptor: lines of JSON in both directions, exactly one answer per report."""

    def __init__(self, descriptor: int) -> None:
        self.socket = socket.socket(fileno=descriptor)
        self.socket.setblocking(True)
        self.socket.set_inheritable(False)
        self.received = b""
        self.outgoing = b""  # the message that is being sent,
        self.sent: List[int] = []  # and how many bytes of it each call of send() took
        self.owed = 0  # answers not read yet: more than one when a signal handler's exception left a report early
        self.note = b""  # the message about futures that is being sent, and how much of it was
        self.note_sent: List[int] = []
        self.pending: Dict[int, Any] = {}  # futures of checkpoints, by number
        self.pended = 0
        self.ended: Optional[str] = None
        self.busy = False
        self.lock = threading.RLock()

    def decide(self, message: Mapping[str, Any], save: Optional[Callable[[str], Any]], future: Any) -> Mapping[str, Any]:
        with self.lock:
            if self.busy:
                raise RuntimeError("ranktune.report() was called within ranktune.report(): by a signal handler?")
            if self.ended is not None:
                return {"decision": self.ended}
            self.busy = True
            try:
                return self._decide(message, save, future)
            except ConnectionError:
                return self._gone()
            finally:
                self.busy = False

    def _decide(self, message: Mapping[str, Any], save: Optional[Callable[[str], Any]],
                future: Any) -> Mapping[str, Any]:
        global _reports
        if future is not None:
            self.pended += 1
            message = {**message, "pending": self.pended}
        line = _line(message)
        if self.owed > 0 and not self.sent:
            self.owed -= 1  # an exception interrupted a report before its first byte: drop it
        elif self.outgoing:
            self._flush()
        self._tell_done()
        answer = self._owed_answer()  # to the interrupted report: unless it is to go on, nothing else is reported
        if answer["decision"] == "continue":
            if future is not None:
                self.pending[self.pended] = future
            self.outgoing, self.sent, self.owed = line, [], self.owed + 1
            self._flush()
            answer = self._owed_answer()
        goes_on = answer["decision"] in ("continue", "exploit")
        folder = answer.get("save_to")
        if folder is not None and save is not None:
            try:
                saved = _saved(save, folder)
            except BaseException as error:  # sys.exit() among them
                _tell_failure(error, "saving")
                alone = _number_of("WORLD_SIZE", 1) == 1  # several ranks may be out of step now
                if goes_on and alone and isinstance(error, (Exception, SystemExit)):
                    return answer  # it trains on, without this checkpoint
                _reports += goes_on
                raise
            self.tell({"checkpoint": saved})
        if not goes_on:
            self.ended = str(answer["decision"])
        return answer

    def _owed_answer(self) -> Mapping[str, Any]:
        """Reads the answers that are owed, up to one that is not to go on."""
        answer: Mapping[str, Any] = {"decision": "continue"}
        while self.owed > 0 and answer["decision"] == "continue":
            answer = self._answer()
            self.owed -= 1
        return answer

    def tell(self, message: Mapping[str, Any]) -> None:
        """Sends a message that has no answer, after what is left of an interrupted one."""
        if self.outgoing:
            self._flush()
        self.outgoing, self.sent = _line(message), []
        self._flush()

    def _tell_done(self) -> None:
        """Tells which futures are done. Called between two other messages."""
        self._push(self.note, self.note_sent)
        for number in [number for number, future in self.pending.items() if future.done()]:
            message: Dict[str, Any] = {"checkpoint_done": number}
            try:
                self.pending[number].result()
            except BaseException as error:
                message["error"] = _story(error)[:2000]
            self.note, self.note_sent = _line(message), []
            del self.pending[number]
            self._push(self.note, self.note_sent)

    def _flush(self) -> None:
        """Sends the rest of the message."""
        self._push(self.outgoing, self.sent)

    def _push(self, line: bytes, sent: List[int]) -> None:
        """Sends the rest of a line. A signal handler may raise at any point: extend(map()) sends and records the number
        of bytes in one step, since handlers run only between steps of the interpreter."""
        while sum(sent) < len(line):
            sent.extend(map(self.socket.send, (line[sum(sent):],)))

    def _answer(self) -> Mapping[str, Any]:
        """The next answer to a report; ignores other messages of a newer ranktune."""
        while True:
            while b"\n" not in self.received:
                while self.pending and not select.select([self.socket], [], [], _TURN)[0]:
                    self._tell_done()  # the answer may be waiting for it
                part = self.socket.recv(1 << 16)
                if not part:
                    raise ConnectionResetError
                self.received += part
            line, _, self.received = self.received.partition(b"\n")
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if not isinstance(message, dict):
                raise RuntimeError(f"the control descriptor gave {line[:80]!r}, which is no message of ranktune; does "
                                   "something else in this program read or write it?")
            if message.get("decision") in ("continue", "pause", "stop", "exploit"):
                return message
            if "decision" in message:
                raise RuntimeError(f"this ranktune.py does not know the decision '{message['decision']}': it is older "
                                   "than the ranktune that runs the study; delete the copy that was imported: "
                                   + __file__)

    def _gone(self) -> Mapping[str, Any]:
        print("ranktune: the study is gone (its end of the control descriptor was closed); ending this process",
              file=sys.stderr, flush=True)
        self.ended = "stop"
        return {"decision": self.ended}


def _exploit(answer: Mapping[str, Any]) -> Exploit:
    """Everything that says which attempt this is changes, also for the processes that this one starts."""
    global _reports, _config
    _reports, _config = 0, answer["config"]
    changed = {"ITERATION": answer["iteration"], "ATTEMPT": answer["attempt"], "CHECKPOINT": answer["checkpoint"]}
    if os.environ.get("RANKTUNE_CONFIG", "").startswith("{"):  # else in the file
        changed["CONFIG"] = json.dumps(answer["config"])
    for variable, value in changed.items():
        os.environ["RANKTUNE_" + variable] = str(value)
    _unread.update(("config", "checkpoint"))
    return Exploit(_merged({}, answer["config"]), answer["checkpoint"])


def _in_study() -> bool:
    return "RANKTUNE_FD" in os.environ


def _control_socket() -> Optional[int]:
    """The control descriptor, if it is open in this process and no other file has its number."""
    try:
        descriptor = int(os.environ["RANKTUNE_FD"])
        status = os.fstat(descriptor)
    except (KeyError, ValueError, OSError, OverflowError):
        return None
    if not stat.S_ISSOCK(status.st_mode) or os.environ.get(_MARK, str(status.st_ino)) != str(status.st_ino):
        return None
    return descriptor


def _the_link() -> _Link:
    global _link
    if threading.current_thread() in _strangers:
        raise RuntimeError("ranktune.report() was called in a thread that an earlier trial, or the import, has started: start it in each trial")
    with _making_link:
        if _link is None:
            descriptor = None if _forked else _control_socket()
            if descriptor is None:
                raise RuntimeError(
                    f"ranktune.report() was called in process {os.getpid()}, which "
                    + ("was forked from the one that ranktune started" if _forked
                       else f"does not have the control descriptor {os.environ['RANKTUNE_FD']} (RANKTUNE_FD)")
                    + ". Only the process that ranktune starts for each rank can report. To train in several processes, "
                    "let ranktune start them ([resources] ranks = N) instead of torchrun or torch.multiprocessing; a "
                    "program that starts the training by subprocess hands the descriptor on with "
                    "pass_fds=[int(os.environ['RANKTUNE_FD'])].")
            _link = _Link(descriptor)
        return _link


def _after_fork() -> None:
    """Runs in a forked child (such as a DataLoader worker), which must neither report nor keep the connection open."""
    global _forked, _making_link
    descriptor = None if _forked else _control_socket()
    _forked = True
    _making_link = threading.Lock()
    if _link is not None:
        _link.socket.close()
    elif descriptor is not None:
        os.close(descriptor)
    _forget()


def _limit_device_memory() -> None:
    """Trials share the GPU: PyTorch may take this trial's share of its memory. Called whenever the program may have
    imported PyTorch since."""
    global _limited
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    share = os.environ.get("RANKTUNE_GPU_SHARE") if not _limited and hasattr(cuda, "_lazy_call") else None
    if not share:
        return
    _limited = True

    def limit() -> None:
        total = cuda.get_device_properties(cuda.current_device()).total_memory
        part = float(share) * total
        beside = min(512 << 20, 0.25 * part)  # what CUDA and its libraries take
        cuda.set_per_process_memory_fraction((part - beside) / total)

    # PyTorch calls it when it first uses the GPU, which the program may choose after this.
    cuda._lazy_call(limit)


def _is_device_memory(error: BaseException) -> bool:
    """Whether the memory of a GPU is full: PyTorch's OutOfMemoryError, and what older PyTorch, CuPy, JAX and TensorFlow
    raise."""
    if any(kind.__name__ in ("OutOfMemoryError", "ResourceExhaustedError") for kind in type(error).__mro__):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and ("CUDA out of memory" in text or "HIP out of memory" in text
                                                or "CUBLAS_STATUS_ALLOC_FAILED" in text or "RESOURCE_EXHAUSTED" in text)


def _tell_failure(error: Optional[BaseException], kind: str) -> None:
    """Tells ranktune what ends this process, and where: once for each exception and those that it causes."""
    global _told
    if error is None or _forked or not _in_study() or (_told is not None and _told in _chain(error)):
        return
    _told = error
    try:
        if _is_device_memory(error):
            kind, text = "device-memory", (str(error).strip() or type(error).__name__).splitlines()[0]
        else:
            when = "while saving at" if kind == "saving" else "at"
            kind = "storage" if _is_storage(error, kind) else kind
            text = ("" if "RANKTUNE_KEPT" in os.environ else f"{when} iteration {context().iteration + 1}: ") + _story(error)
        link = _the_link()
        with link.lock:
            if link.ended is None:
                link.tell({"failed": kind, "log": text[:2000]})
    except Exception:  # the error itself matters more
        pass


def _story(error: BaseException) -> str:
    """"ValueError: no data (train.py:41), after OSError: [Errno 28] No space left on device"."""
    first, *others = _chain(error, hidden=False)
    return _account(first) + _place(first.__traceback__) + "".join(f", after {_account(one)}" for one in others)


def _account(error: BaseException) -> str:
    """"ValueError: no data"; with the last line that a child process of subprocess.run said, if that was captured."""
    words = str(error).strip().splitlines()[:1]
    said = getattr(error, "stderr", None)
    if isinstance(said, (bytes, str)):
        words += os.fsdecode(said).strip().splitlines()[-1:]
    return ": ".join([type(error).__name__, *words])


def _is_storage(error: BaseException, kind: str) -> bool:
    """Whether a file cannot be written, for a cause outside of the program. (Where libraries hide the OSError, ranktune
    knows it by their words.) EIO and ESTALE may also come from reading: they count while the state is saved."""
    codes = [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, *([errno.EIO, errno.ESTALE] if kind == "saving" else [])]
    return any(getattr(one, "errno", None) in codes for one in _chain(error))


def _chain(error: BaseException, hidden: bool = True) -> List[BaseException]:
    """The exception, those that it was raised from or during, and those in a group. `hidden`: also what `from None` hides."""
    found: List[BaseException] = []
    waiting: List[Optional[BaseException]] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and one not in found:
            found.append(one)
            context = one.__context__ if hidden or not one.__suppress_context__ else None
            waiting += [one.__cause__, context, *getattr(one, "exceptions", ())]
    return found


def _place(trace: Optional[TracebackType]) -> str:
    """" (train.py:41)": the innermost line of the user's own files that an exception came through."""
    places: List[Tuple[str, int]] = []
    frame = trace and trace.tb_frame.f_back
    while frame is not None:  # the callers of the function that has caught it
        places.insert(0, (frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    while trace is not None:
        places.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    for file, line in reversed(places):
        path = os.path.join(_home, file)
        is_library = path.startswith((os.path.dirname(os.__file__) + os.sep, __file__[:-3])) or "-packages" + os.sep in path
        if is_library or file.startswith("<frozen"):
            continue
        near = os.path.relpath(path, _home)
        return f" ({path if near.startswith(os.pardir) else near}:{line})"
    return ""


def _excepthook(kind: Any, error: Any, trace: Any) -> None:
    _tell_failure(error, "error")
    _next_hook(kind, error, trace)


def _forget() -> None:
    global _link
    _link = None


def _merged(defaults: Mapping[str, Any], values: Mapping[str, Any]) -> Config:
    merged = Config()
    for name in [*defaults, *(name for name in values if name not in defaults)]:
        value = values.get(name, defaults.get(name))
        if hasattr(value, "keys"):
            default = defaults.get(name)
            value = _merged(default if hasattr(default, "keys") else {}, value)
        merged[name] = value
    return merged


def _number(name: str, value: Any) -> Union[bool, int, float, str]:
    """`value` as a JSON number, boolean or text."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"the name of a metric is a string, not {name!r}")
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 63 else float(value)
    if isinstance(value, float):
        return float(value)
    try:
        if hasattr(value, "item"):  # tensors and arrays of one element, NumPy's scalars
            value = value.item()
            if isinstance(value, (bool, int, float)):
                return _number(name, value)
        if isinstance(value, str) and name != os.environ.get("RANKTUNE_METRIC"):
            return value
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"metric '{name}' is {_short(value)}, not a number or a tensor with one element") from None


def _nameless(value: Any) -> str:
    shown = _shown(value) if isinstance(value, (int, float)) else "..."
    name = os.environ.get("RANKTUNE_METRIC") or "loss"
    call = f"report({name}={shown})" if name.isidentifier() else f"report({{{name!r}: {shown}}})"
    return f"ranktune.report() takes a metric with its name, {call}, and was given {_short(value)} alone"


_encode = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would make one for each line


def _line(message: Mapping[str, Any]) -> bytes:
    line = _encode(message).encode("utf-8", "backslashreplace") + b"\n"
    if len(line) > _LONGEST:
        raise ValueError(f"a report of {len(line)} bytes is too long: at most {_LONGEST}; report fewer metrics")
    return line


def _future_of(checkpoint: Any) -> Any:
    """The future, if it is one; PyTorch's AsyncSaveResponse holds one."""
    future = getattr(checkpoint, "upload_completion", checkpoint)
    return future if hasattr(future, "result") and hasattr(future, "done") else None


def _checkpoint_path(path: Any, there: bool = True) -> str:
    """The absolute path of a checkpoint, which is `there` or will be. Refuses folders that hold more than a checkpoint."""
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise TypeError("report(checkpoint=...) takes a path or a function that saves, not " + _short(path)) from None
    absolute = os.path.abspath(text)
    if text and there and not os.path.exists(absolute):
        raise FileNotFoundError(f"the checkpoint '{absolute}' does not exist; save it before report(), or give report() "
                                "a function that saves")
    own = os.environ.get("RANKTUNE_CHECKPOINT_DIR")
    if own and text and _is_within(absolute, own):
        return absolute  # the usual case, without a look at every folder above
    whole, works = os.path.realpath(absolute), os.path.realpath(_home)
    study = os.path.realpath(os.environ.get("RANKTUNE_STUDY_DIR") or works)
    more = [("the folder that the program works in", works)] if study == works or not _is_within(works, study) else []
    more += [("the study directory", study)] if study != works else []
    for what, folder in more:
        if not text or _is_within(folder, whole):
            raise ValueError(f"the checkpoint '{text}' is no file or folder of its own: it is or contains {what} ('{folder}'). "
                             "Save below ranktune.context().checkpoint_dir, and give report() that path")
    return absolute


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))


def _saved(save: Callable[[str], Any], folder: str) -> str:
    """Calls the function. It may return the path of what it saved; anything else that it returns means the folder."""
    os.makedirs(folder, exist_ok=True)
    returned = save(folder)
    _part_hard_links(folder)
    if _number_of("RANK", 0) != 0:
        return folder  # what counts is the path of rank 0, who may still be writing
    saved = folder
    if isinstance(returned, (str, os.PathLike)) and os.fspath(returned):
        inside = os.path.normpath(os.path.join(folder, os.fsdecode(returned)))
        paths = (inside if _is_within(inside, folder) else "", os.path.abspath(os.fsdecode(returned)))
        saved = next(filter(os.path.exists, paths), folder)
    if os.path.isdir(saved) and not os.listdir(saved):
        also = "" if returned is None or saved != folder else f"; it returned {_short(returned)}"
        raise RuntimeError(f"the function given to report(checkpoint=...) saved nothing in '{saved}'{also}")
    return folder if saved == folder else _checkpoint_path(saved)


def _part_hard_links(folder: str) -> None:
    """Makes copies of files that have another name, by which the program may change them when it goes on."""
    for path in [os.path.join(top, name) for top, _, names in os.walk(folder) for name in names]:
        with contextlib.suppress(FileNotFoundError):  # of another rank, which is saving
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                copy = f"{path}.{_number_of('RANK', 0)}~"
                shutil.copy2(path, copy)
                os.replace(copy, path)


def _number_of(variable: str, default: Any) -> Any:
    text = os.environ.get(variable, "")
    try:
        return int(text) if text else default
    except ValueError:
        raise RuntimeError(f"the environment variable {variable} is '{text}', not a whole number") from None


def _shown(value: Union[bool, int, float]) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _list(names: Any) -> str:
    return ", ".join(str(name) for name in names) or "nothing"


_next_hook = sys.excepthook


def has_reported() -> bool:
    """Whether this process has made a report in this attempt. For ranktune_function.py."""
    return _reports > 0 or (_link is not None and _link.ended is not None)


def between_attempts(are: bool) -> None:
    """While a file is imported for all attempts, none of them has begun. For ranktune_function.py."""
    global _between
    _between = are


def _need_attempt(what: str) -> None:
    if _between:
        raise RuntimeError(f"ranktune.{what}() was called while the file was imported, once for all trials: call it within the "
                           "function, or say fresh = true in [trainable]")


def _join_study() -> None:
    # The mark tells child processes whether their descriptor with this number is the control descriptor.
    descriptor = _control_socket()
    if descriptor is not None:
        os.environ[_MARK] = str(os.fstat(descriptor).st_ino)
    _limit_device_memory()
    if _in_study():
        sys.excepthook = _excepthook


_join_study()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
