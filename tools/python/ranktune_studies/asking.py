# SPDX-License-Identifier: Apache-2.0
"""A study that a loop of yours drives: it asks for trials, and tells their results. `ranktune ask` does the work, in a
process of its own: lines of JSON go there and back."""
import json
import math
import operator
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import time
import weakref
from types import TracebackType
from typing import IO, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Type, Union

from .launching import Path, described_study, write_own_file
from .reading import RanktuneError, Study, Trial, ranktune_program

__all__ = ["AskedStudy", "AskedTrial", "create", "open_study"]

Result = Union[float, Sequence[float], Mapping[str, float]]
Answer = Dict[str, Any]
_Request = Tuple[int, Dict[str, Any], Callable[[Answer], None]]

_LONGEST = 1 << 20  # bytes of a request
_MOST_OF_AN_ERROR = 10_000  # characters of it that are recorded
_LOOP = "RANKTUNE_LOOP"  # in the environment of `ranktune ask`: the process that asks


def create(name: str, *, space: Mapping[str, Any], directory: Optional[Path] = None, searcher: Any = None, scheduler: Any = None,
           program: Optional[str] = None, **keys: Any) -> "AskedStudy":
    """A study whose trials a loop of yours runs, new or to be continued. It is written as <name>.toml.

        with create("digits", metric="loss", mode="min", num_trials=50, space={"lr": "loguniform(1e-4, 1)"}) as study:
            while trial := study.ask():
                study.tell(trial, train(trial.config.lr))
            print(study.best)

    space, searcher, scheduler, keys -- as for run() with a function. A scheduler needs max_iterations, and trial.report().
    directory -- of the study; default: ./<name>
    program   -- the program `ranktune`; default: $RANKTUNE_PROGRAM, else the one on the PATH

    Raises RanktuneError with all mistakes in the study, and while another process runs it.
    """
    study = described_study(name, {"builtin": "outside"}, space, searcher, scheduler, keys)
    return AskedStudy(write_own_file(study), name if directory is None else directory, program)


def open_study(directory: Path, *overrides: str, program: Optional[str] = None) -> "AskedStudy":
    """Goes on with a study of create(), by its directory. Trials that were asked for and never told are handed out again.

    overrides -- keys to change: "study.num_trials=120"
    """
    if not os.path.isdir(directory):
        raise RanktuneError(f"there is no directory '{os.fspath(directory)}': create() begins a study")
    return AskedStudy(directory, directory, program, overrides)


class Config(Dict[str, Any]):
    """A configuration: a dict whose entries are also attributes. Nested names are nested configurations.

    >>> Config(net=Config(units=32)).net.units
    32
    >>> Config(lr=0.1).rl
    Traceback (most recent call last):
      ...
    AttributeError: the configuration has no 'rl'; it has lr
    """

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"the configuration has no '{name}'; it has {', '.join(self)}")


class AskedTrial:
    """A trial to run: study.tell() ends it."""

    number: int  # from 0
    config: Config
    attempt: int  # from 1: its starts, also those after which nobody asked for it
    iteration: int  # reported so far
    seed: int

    def __init__(self, study: "AskedStudy", facts: Mapping[str, Any]) -> None:
        self.number, self.attempt = facts["trial"], facts["attempt"]
        self.config = _config(facts["configuration"])
        self.iteration, self.seed = facts["iteration"], facts["seed"]
        self._study = study
        self._stop = ""

    def report(self, value: Result, iteration: Optional[int] = None) -> bool:
        """The result after one more iteration (the first is 1), which may be given as a check. True: stop training and
        tell() the trial."""
        request: Dict[str, Any] = {"report": self.number, "metrics": self._study._metrics(value)}
        if iteration is not None:
            request["iteration"] = operator.index(iteration)
        self._study._request(request, self._reported)
        return self.should_stop()

    def _reported(self, answer: Answer) -> None:
        self.iteration = answer["iteration"]
        self._stop = answer.get("why", "")

    def should_stop(self) -> bool:
        """What the last report() returned."""
        return bool(self._stop)

    @property
    def stop_reason(self) -> str:
        """Why it should stop, in words; "": it should not."""
        return self._stop

    def __repr__(self) -> str:
        return f"AskedTrial(number={self.number}, config={self.config!r})"


class AskedStudy:
    """A study that is open for ask() and tell(): any thread of this process may call them. Close it, or use it in a `with`:
    another process can then go on with it. What tell() and report() have returned from survives the death of every
    process. A call that was interrupted (Ctrl-C) may be made again: it counts once."""

    directory: str
    name: str
    objectives: List[Tuple[str, str]]  # [(metric, mode)]
    max_iterations: int
    reason: str  # why the last ask() had no trial, in words; "": it had one

    def __init__(self, file: Path, directory: Path, program: Optional[str], overrides: Sequence[str] = ()) -> None:
        self._program = ranktune_program(program)
        self._lock = threading.RLock()
        self._requests = 0
        self._pending: Optional[_Request] = None  # not answered yet; a request that was interrupted stays here
        self._next: Optional[AskedTrial] = None  # that ask() returns
        self._pid = os.getpid()
        self.reason = ""
        words = [self._program, "ask", os.fspath(file), *overrides, "-o", os.fspath(directory)]
        tries = 300
        while (facts := self._begin(words, tries > 0)) is None:
            tries -= 1
            time.sleep(0.1)
        self.directory, self.name, self.max_iterations = facts["directory"], facts["name"], facts["max_iterations"]
        self.objectives = [(each["metric"], each["mode"]) for each in facts["objectives"]]

    def _begin(self, words: List[str], may_wait: bool) -> Optional[Answer]:
        """What the program says of the study; None, if the caller may wait: an earlier one, whose loop is dead, still ends."""
        self._closed = False
        self._errors = tempfile.TemporaryFile()  # a pipe would have to be emptied
        try:  # in a session of its own: Ctrl-C is for the loop. (An interrupt leaves the rest of a line in the buffer.)
            self._child = subprocess.Popen(words, bufsize=_LONGEST, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                           stderr=self._errors, start_new_session=True,
                                           env={**os.environ, _LOOP: str(self._pid)})
        except OSError as error:
            raise RanktuneError(f"cannot run '{self._program}': {error.strerror}") from None
        self._end = weakref.finalize(self, _end, self._child, self._errors, self._pid)
        try:
            facts: Answer = self._receive()["ready"]
            return facts
        except RanktuneError as error:
            self.close()
            holder = re.search(r"is being run already: host (\S+), pid (\d+)", str(error))
            loop = _loop_of(holder[2]) if holder is not None and holder[1] == os.uname().nodename else None
            if loop == 0 and may_wait:
                return None
            if not loop:
                raise
            where = "this process" if loop == self._pid else f"process {loop}"
            raise RanktuneError(f"{error}. It is open in {where}: close() that study, or go on with it there") from None
        except BaseException:
            self.close()
            raise

    def ask(self) -> Optional[AskedTrial]:
        """The next trial. Several may be out at once, 256 at most. None: there is none to hand out, as the study is over or was
        stopped (`ended`), or all trials that are left are out; `reason` says so."""
        with self._lock:
            if self._next is None:  # else an interrupted ask() has got it
                self._request({"ask": True}, self._asked)
            trial, self._next = self._next, None
            return trial

    def _asked(self, answer: Answer) -> None:
        self.reason = answer.get("why", "")
        self._next = None if answer["trial"] is None else AskedTrial(self, answer)

    def tell(self, trial: Union[AskedTrial, int], value: Optional[Result] = None, *, failed: bool = False,
             error: Union[str, BaseException, None] = None) -> None:
        """Ends a trial (or the one with this number). It is recorded when this returns.

        value  -- its result: a number; with several objectives one for each; or a dict, which may have other metrics, too.
                  After trial.report() it may be left out, or be the last one again
        failed, error -- it has no result; `error` says why. It is handed out again while failure.max_failures allows
        """
        number = trial.number if isinstance(trial, AskedTrial) else trial
        if failed or error is not None:
            if value is not None:
                raise RanktuneError(f"trial {number}: give a value or an error, not both")
            message = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else error or "it failed"
            self._request({"fail": number, "message": message[:_MOST_OF_AN_ERROR]})
        else:
            self._request({"tell": number, "metrics": None if value is None else self._metrics(value)})

    @property
    def best(self) -> Optional[Trial]:
        """The trial with the best result so far, as Study.best."""
        return self.results().best

    @property
    def trials(self) -> List[Trial]:
        """All trials, as Study.trials."""
        return self.results().trials

    @property
    def ended(self) -> bool:
        """The study is over."""
        return self.results().ended

    def results(self) -> Study:
        """The study as its journal tells it now."""
        return Study(self.directory, program=self._program)

    def close(self) -> None:
        """Trials that are out go back to the study: the next ask() after open_study() hands them out again."""
        if os.getpid() != self._pid:
            return  # a fork: the study is its parent's
        with self._lock:
            self._closed = True
            _end(self._child, self._errors, self._pid)  # again after an interrupt
            self._end.detach()

    def __enter__(self) -> "AskedStudy":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"AskedStudy({self.directory!r})"

    def _metrics(self, value: Result) -> Dict[str, float]:
        """The result by metric, as numbers of Python."""
        names = [metric for metric, _ in self.objectives]
        if isinstance(value, Mapping):
            metrics = dict(value)
        elif len(names) == 1:
            metrics = {names[0]: value}  # type: ignore[dict-item]  # float() says what is wrong
        elif isinstance(value, Sequence) and not isinstance(value, str) and len(value) == len(names):
            metrics = dict(zip(names, value))
        else:
            raise RanktuneError(f"a result of this study has {len(names)} values: {', '.join(names)}")
        for name, each in metrics.items():
            try:
                metrics[name] = float(each)
            except (TypeError, ValueError):
                raise RanktuneError(f"{name} is {each!r}, which is no number") from None
            if not math.isfinite(metrics[name]):
                raise RanktuneError(f'{name} is {metrics[name]}, which is no result: tell a trial that failed with error="..."')
        return metrics

    def _request(self, request: Dict[str, Any], take: Callable[[Answer], None] = lambda answer: None) -> None:
        """take -- what to do with the answer: now, or before the next request if this call is interrupted."""
        if os.getpid() != self._pid:
            raise RanktuneError("the study was opened by another process: ask and tell there")
        with self._lock:
            if self._closed:
                raise RanktuneError(f'the study is closed: go on with open_study("{self.directory}")')
            interrupted = self._pending
            if interrupted is not None:
                answer = self._exchange(*interrupted)
            if interrupted is None or interrupted[1] != request:
                self._requests += 1
                answer = self._exchange(self._requests, request, take)
        if "error" in answer:
            raise RanktuneError(answer["error"])

    def _exchange(self, number: int, request: Dict[str, Any], take: Callable[[Answer], None]) -> Answer:
        """Sends a request, and reads the answer. A request that is sent again, with its number, gets the same answer."""
        line = json.dumps({"id": number, **request}, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace") + b"\n"
        if len(line) > _LONGEST:
            raise RanktuneError(f"this takes {len(line)} bytes, of at most {_LONGEST}: leave out some metrics")
        self._pending = (number, request, take)
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(line)
            self._child.stdin.flush()
        except BrokenPipeError:
            pass  # the answer says why
        answer = self._receive()
        while answer["id"] not in (number, None):  # None: the request could not be read
            answer = self._receive()
        if "error" not in answer:
            take(answer)
        self._pending = None
        return answer

    def _receive(self) -> Answer:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if line.endswith(b"\n"):
            answer: Answer = json.loads(line)
            return answer
        code = self._child.wait()
        self._errors.seek(0)
        message = self._errors.read().decode(errors="replace").strip()
        where = getattr(self, "directory", None)
        advice = "" if where is None else f'; what was told is recorded: go on with open_study("{where}")'
        ended = f"ranktune ask ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"
        if where is not None:  # before, the message says why; after, it may be an older note
            message = f"{ended}: {message}" if message else ended
        raise RanktuneError((message or ended) + advice)


def _end(child: "subprocess.Popen[bytes]", errors: IO[bytes], pid: int) -> None:
    """Ends the child, and waits for it. May be called again."""
    if os.getpid() != pid:
        return  # a fork
    assert child.stdin is not None and child.stdout is not None
    try:
        if not child.stdin.closed:  # a fork of this process may keep the pipe open
            child.stdin.write(b'{"close": true}\n')
            child.stdin.close()
    except BrokenPipeError:
        pass
    child.stdout.close()
    child.wait()
    errors.close()


def _loop_of(child: str) -> Optional[int]:
    """The process that asks this `ranktune ask`; 0: it has ended, and so will the child; None: unknown."""
    try:
        words = pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        parent = pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    except OSError:
        return None
    loops = [word for word in words if word.startswith(f"{_LOOP}=".encode())]
    if words[0] and not loops:  # not begun here
        return None
    return int(parent) if f"{_LOOP}={parent}".encode() in loops else 0


def _config(values: Mapping[str, Any]) -> Config:
    return Config({name: _config(value) if isinstance(value, dict) else value for name, value in values.items()})
