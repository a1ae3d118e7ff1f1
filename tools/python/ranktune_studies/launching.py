# SPDX-License-Identifier: Apache-2.0
"""Describes a study as a dict, and runs it."""
import inspect
import os
import pathlib
import sys
import textwrap
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

from .reading import RanktuneError, Study, ranktune_output
from .toml import dumps

__all__ = ["function_study", "run", "write_study"]

Path = Union[str, "os.PathLike[str]"]
_MARK = "# Written by ranktune in Python, which may replace it."
_MARKS = (_MARK, "# Written by ranktune.run()")  # the second: of earlier versions


def write_study(study: Mapping[str, Any], path: Optional[Path] = None) -> pathlib.Path:
    """Writes a study file, as TOML. study -- its tables as dicts, as docs/reference/study-file.md of ranktune describes
    them; path -- default: <study.name>.toml. An existing file is replaced. Returns the path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_study({"study": {"name": "digits", "metric": "loss"}}, f"{folder}/digits.toml")
    ...     print(path.name, path.read_text().splitlines()[:2])
    digits.toml ['[study]', 'name = "digits"']
    """
    if path is None:
        path = f"{_name(study)}.toml"
    return _replace(pathlib.Path(path), dumps(_without_none(study)))


def _without_none(study: Mapping[str, Any]) -> Mapping[str, Any]:
    """Lists of [space] with None as calls, for TOML has no None.

    >>> _without_none({"space": {"clip": [None, 1.0, "a"], "n": {"domain": [None, 1], "condition": "clip != None"}}})
    {'space': {'clip': 'choice([None, 1.0, "a"])', 'n': {'domain': 'choice([None, 1])', 'condition': 'clip != None'}}}
    >>> _without_none({"space": {"opt": [{"name": "a", "clip": [None, 1]}], "no": None}})
    {'space': {'opt': [{'name': 'a', 'clip': 'choice([None, 1])'}], 'no': 'grid([None])'}}
    """
    def spelled(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: spelled(each) for key, each in value.items()}
        if value is None:
            return "grid([None])"
        if isinstance(value, (list, tuple)) and any(isinstance(each, Mapping) for each in value):
            return [spelled(each) for each in value]
        if isinstance(value, (list, tuple)) and any(each is None for each in value):
            return f"choice([{', '.join('None' if each is None else dumps({'x': each})[4:-1] for each in value)}])"
        return value

    return {key: spelled(table) if key == "space" else table for key, table in study.items()}


def _replace(file: pathlib.Path, text: str) -> pathlib.Path:
    temporary = file.with_name(file.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, file)
    return file


def run(study: Union[Mapping[str, Any], Path, Callable[..., Any]], *overrides: str, directory: Optional[Path] = None,
        workers: Optional[int] = None, program: Optional[str] = None, show: bool = True, **keys: Any) -> Study:
    """Runs a study on this machine, or goes on with it, and returns it.

        def train(config):
            return (config.x - 1) ** 2

        run(train, metric="loss", mode="min", num_trials=50, space={"x": "uniform(-3, 3)"})

    study     -- a function to tune, with `keys`: see function_study(); or a dict, which is written as <study.name>.toml
                 first; or a study file, or the directory of a study
    overrides -- keys to change: "study.num_trials=120"
    directory -- of the study; default: ./<study.name>
    workers   -- ranks that train; default: as many as fit
    program   -- the program `ranktune`; default: $RANKTUNE_PROGRAM, else the one on the PATH
    show      -- whether its screens go to standard output

    Raises RanktuneError when the study ends with another exit code than 0: with mistakes in it, all of them together.
    """
    if callable(study):
        study = function_study(study, **keys)
        place = _name(study)
        study = write_own_file(study)
    elif keys:
        raise TypeError(f"run() got {', '.join(keys)}, which are for a function; a study says them itself")
    elif isinstance(study, Mapping):
        place = _name(study)
        study = write_study(study)
    else:
        place = os.fspath(study)  # ranktune takes a study file where it takes a directory
    words: List[str] = ["run", os.fspath(study), *overrides]
    if directory is not None:
        place = os.fspath(directory)
        words += ["-o", place]
    if workers is not None:
        words += ["--local", str(workers)]
    if not show:
        words.append("--quiet")
    ranktune_output(words, program, show)
    return Study(place, program=program)


def write_own_file(study: Mapping[str, Any]) -> pathlib.Path:
    """Writes <study.name>.toml, unless that is a file of the user's."""
    file = pathlib.Path(f"{_name(study)}.toml")
    _refuse_others(file)
    return _replace(file, f"{_MARK}\n{dumps(_without_none(study))}")


def function_study(function: Callable[..., Any], *, space: Mapping[str, Any], name: Optional[str] = None,
                   scheduler: Any = None, searcher: Any = None, **keys: Any) -> Dict[str, Any]:
    """The study of a function, as a dict: `function(config)` or `function(trial)` is called for each trial.

    space     -- hyper-parameters: {"lr": "loguniform(1e-5, 0.1)", "units": [32, 64]}
    name      -- default: the function's
    scheduler, searcher -- "asha", or a dict with options: {"type": "asha", "eta": 4}
    keys      -- keys of [study] (metric, mode, num_trials, max_iterations, seed, ...; max_iterations is 1 by default),
                 and whole tables as dicts (resources, stop, failure, checkpoint, trainable, ...)

    A function of a notebook is written to <name>_function.py: it imports what it uses.
    """
    if os.environ.get("RANKTUNE_STUDY"):
        raise RanktuneError('run() was called while a trial imported its file: put it below `if __name__ == "__main__":`')
    name = name or function.__name__
    trainable = {"python": _place_of(function, name), "interpreter": sys.executable}
    return described_study(name, trainable, space, searcher, scheduler, keys)


def described_study(name: str, trainable: Mapping[str, Any], space: Mapping[str, Any], searcher: Any, scheduler: Any,
                    keys: Mapping[str, Any]) -> Dict[str, Any]:
    """A study file as a dict, from the arguments of function_study()."""
    tables = {key: value for key, value in keys.items() if isinstance(value, Mapping)}
    study = {key: value for key, value in keys.items() if key not in tables}
    for key, value in (("searcher", searcher), ("scheduler", scheduler)):
        if value is not None:
            tables[key] = value if isinstance(value, Mapping) else {"type": value}
    trainable = {**trainable, **tables.pop("trainable", {})}
    return {"study": {"name": name, "max_iterations": 1, **study}, "trainable": trainable, "space": dict(space), **tables}


def _place_of(function: Callable[..., Any], name: str) -> str:
    """"/path/train.py:train"; a function that lies in no file, or within another function, gets a file."""
    if not inspect.isfunction(function):
        raise RanktuneError(f"{function!r} is no plain function (def ...): define one that calls it")
    file = getattr(sys.modules.get(function.__module__), "__file__", None) or ""  # not that of a decorator
    if "." not in function.__qualname__ and file.endswith(".py") and os.path.exists(file):
        return f"{os.path.abspath(file)}:{function.__name__}"
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except OSError:
        raise RanktuneError(f"the source of {function!r} is not known: write it to a file, and give "
                            'trainable={"python": "FILE:FUNCTION"}') from None
    if not source.startswith("def "):
        raise RanktuneError(f"{function!r} is no plain function (def ...): define one that calls it")
    path = pathlib.Path(f"{name}_function.py").absolute()
    _refuse_others(path)
    _replace(path, f"{_MARK}\n{source}")
    return f"{path}:{function.__name__}"


def _refuse_others(path: pathlib.Path) -> None:
    """Files of the user stay."""
    if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(_MARKS):
        raise RanktuneError(f"'{path}' exists, and is not of ranktune: give the study another name")


def _name(study: Mapping[str, Any]) -> str:
    try:
        name = study["study"]["name"]
    except (KeyError, TypeError):
        raise RanktuneError('the study has no name: {"study": {"name": "digits", ...}}') from None
    return str(name)
