# SPDX-License-Identifier: Apache-2.0
"""Writes TOML 1.0. The standard library can only read it, from Python 3.11 on."""
import datetime
import math
import os
import re
from typing import Any, Mapping

__all__ = ["dumps"]

_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def dumps(document: Mapping[str, Any]) -> str:
    r"""The document as TOML: its dicts as tables, its lists of dicts as arrays of tables; what lies deeper is written inline,
    so that the order of keys stays.

    >>> print(dumps({"study": {"name": "a \"b\"", "seed": 1}, "space": {"lr": "uniform(0, 1)", "n": [1, 2]}}), end="")
    [study]
    name = "a \"b\""
    seed = 1
    <BLANKLINE>
    [space]
    lr = "uniform(0, 1)"
    n = [1, 2]
    >>> print(dumps({"searcher": {"type": "tpe", "start": [{"lr": 0.1}, {"lr": 1e-05}]}}), end="")
    [searcher]
    type = "tpe"
    start = [{ lr = 0.1 }, { lr = 1e-05 }]
    >>> dumps({"space": {"größe": True, "a.b": float("inf")}})
    '[space]\n"größe" = true\n"a.b" = inf\n'
    >>> dumps({"study": {"x": None}})
    Traceback (most recent call last):
      ...
    TypeError: study.x is None, which TOML does not have; leave the key out
    """
    plain = {key: value for key, value in document.items() if not _is_table(value)}
    blocks = [_lines(plain, "")] if plain else []
    for key, value in document.items():
        if isinstance(value, Mapping):
            blocks.append(f"[{_key(key)}]\n{_lines(value, key)}")
        elif _is_table(value):
            blocks += [f"[[{_key(key)}]]\n{_lines(each, key)}" for each in value]
    return "\n".join(blocks)


def _lines(table: Mapping[str, Any], where: str) -> str:
    return "".join(f"{_key(key)} = {_value(value, f'{where}.{key}' if where else key)}\n" for key, value in table.items())


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, (list, tuple)) and len(value) > 0 and all(isinstance(element, Mapping) for element in value))


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r} is a {type(key).__name__}; keys are strings")
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _string(key)


def _string(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(c) or (f"\\u{ord(c):04X}" if ord(c) < 0x20 or ord(c) == 0x7F else c) for c in text) + '"'


def _value(value: Any, where: str) -> str:
    if hasattr(value, "item") and not isinstance(value, (str, bytes)) and getattr(value, "ndim", 0) == 0:
        value = value.item()  # a number of NumPy
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, (str, os.PathLike)):
        return _string(os.fspath(value))
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_value(each, f'{where}.{key}')}" for key, each in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(each, f"{where}[{i}]") for i, each in enumerate(value)) + "]"
    if value is None:
        raise TypeError(f"{where} is None, which TOML does not have; leave the key out")
    raise TypeError(f"{where} is a {type(value).__name__}, which TOML does not have; give a number, a string, a list or a dict")
