# SPDX-License-Identifier: Apache-2.0
"""Describes a study as a dict, and runs it."""
import os
import pathlib
from typing import Any, List, Mapping, Optional, Union

from .reading import RanktuneError, Study, ranktune_output
from .toml import dumps

__all__ = ["run", "write_study"]

Path = Union[str, "os.PathLike[str]"]


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
    file = pathlib.Path(path)
    text = dumps(study)  # before anything is written: it may refuse
    temporary = file.with_name(file.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, file)
    return file


def run(study: Union[Mapping[str, Any], Path], *overrides: str, directory: Optional[Path] = None,
        workers: Optional[int] = None, program: Optional[str] = None, show: bool = True) -> Study:
    """Runs a study on this machine, or goes on with it, and returns it.

    study     -- a dict, which is written as <study.name>.toml first; or a study file, or the directory of a study
    overrides -- keys to change: "study.num_trials=120"
    directory -- of the study; default: ./<study.name>
    workers   -- ranks that train; default: as many as fit
    program   -- the program `ranktune`; default: $RANKTUNE_PROGRAM, else the one on the PATH
    show      -- whether its screens go to standard output

    Raises RanktuneError when the study ends with another exit code than 0: with mistakes in it, all of them together.
    """
    if isinstance(study, Mapping):
        place = os.fspath(directory) if directory is not None else _name(study)
        study = write_study(study)
    elif directory is not None:
        place = os.fspath(directory)
    else:
        place = os.fspath(study)  # ranktune takes a study file where it takes a directory
    words: List[str] = ["run", os.fspath(study), *overrides]
    if directory is not None:
        words += ["-o", place]
    if workers is not None:
        words += ["--local", str(workers)]
    if not show:
        words.append("--quiet")
    ranktune_output(words, program, show)
    return Study(place, program=program)


def _name(study: Mapping[str, Any]) -> str:
    try:
        name = study["study"]["name"]
    except (KeyError, TypeError):
        raise RanktuneError('the study has no name: {"study": {"name": "digits", ...}}') from None
    return str(name)
