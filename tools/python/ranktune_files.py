# SPDX-License-Identifier: Apache-2.0
"""Files with training data, as ranktune.dataset() reads them: samples of NumPy arrays, mapped where the format allows."""

import collections
import json
import os
import tarfile
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ranktune_order import Extent

try:
    import numpy as np
except ImportError:
    np = None  # type: ignore[assignment]

__all__ = ["Source", "Tar", "open_file"]

_TAR = "tar --sort=name --dereference --hard-dereference -cf {} -C {} ."  # a link would be packed without its bytes


class Source:
    """Fields whose samples are rows of arrays, mapped where the format allows."""

    def __init__(self, path: str, fields: Dict[str, Any], chunk: int = 1) -> None:
        counts = {name: len(field) for name, field in fields.items()}
        if len(set(counts.values())) != 1 or 0 in counts.values():
            raise ValueError(f"data file '{path}': its fields need the same number of samples, and have {counts or 'none'}")
        self.fields = fields
        self._rows = {name: _rows_of(field) for name, field in fields.items()}
        row = sum(int(np.prod(field.shape[1:], dtype=np.int64)) * field.dtype.itemsize for field in fields.values())
        self.extent = Extent(next(iter(counts.values())), row, min(chunk, next(iter(counts.values()))))

    def take(self, samples: Any) -> Any:
        at = np.asarray(samples, dtype=np.int64)
        rows = {name: rows_of(at) for name, rows_of in self._rows.items()}
        return rows if len(rows) > 1 else next(iter(rows.values()))


def _rows_of(field: Any) -> Callable[[Any], Any]:
    """`take` is faster than an index, but copies the whole array first where that is not contiguous or not aligned."""
    if isinstance(field, np.ndarray) and not (field.flags.c_contiguous and field.flags.aligned):
        return np.asarray(field).__getitem__
    return lambda at: field.take(at, 0)


class _Blocks:
    """A data set of HDF5 that is packed: blocks of rows are read by h5py, and the last ones are kept."""

    def __init__(self, path: str, name: str, field: Any, memory: int) -> None:
        self.shape, self.dtype = field.shape, field.dtype.newbyteorder("=")
        row = int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize
        self.block = min(field.chunks[0] if field.chunks else max((256 << 10) // max(row, 1), 1), max(self.shape[0], 1))
        self._path, self._name = path, name
        self._kept = max(memory // max(row * self.block, 1), 1)
        self._file: Any = None
        self._process = 0
        self._blocks: "collections.OrderedDict[int, Any]" = collections.OrderedDict()

    def __len__(self) -> int:
        return int(self.shape[0])

    def take(self, samples: Any, _axis: int) -> Any:
        out = np.empty((len(samples), *self.shape[1:]), self.dtype)
        numbers = samples // self.block
        for number in np.unique(numbers).tolist():
            chosen = numbers == number
            out[chosen] = self._rows(number)[samples[chosen] - number * self.block]
        return out

    def _rows(self, number: int) -> Any:
        if number in self._blocks:
            self._blocks.move_to_end(number)
            return self._blocks[number]
        if self._process != os.getpid():  # the worker of a DataLoader cannot use the file of its parent
            self._file, self._process = _h5py().File(self._path, "r"), os.getpid()
        begin = number * self.block
        try:
            rows = self._file[self._name][begin : begin + self.block]
        except OSError as error:
            raise ValueError(f"data file '{self._path}': field '{self._name}', samples {begin} to "
                             f"{min(begin + self.block, len(self)) - 1}: {error}") from None
        self._blocks[number] = rows
        while len(self._blocks) > self._kept:
            self._blocks.popitem(last=False)
        return rows


class Tar:
    """Members grouped by name, as in WebDataset: a sample is a dict from field to bytes."""

    def __init__(self, path: str) -> None:
        self._path, self._samples = path, []  # type: Tuple[str, List[Dict[str, Tuple[int, int]]]]
        last = None
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                if member.isdir() or member.isdev() or member.type in (b"D", b"V", b"A"):
                    continue  # holds no sample
                if member.issparse() or not member.isfile():
                    what = "a link: its bytes are not in it" if member.islnk() or member.issym() else \
                        f"sparse, or of a type that is not read ({member.type.decode('latin-1')!r})"
                    raise ValueError(f"data file '{path}': member '{member.name}' is {what}; make the archive anew: {_TAR.format('OUT.tar', 'FOLDER')}")
                folder, _, name = member.name.rpartition("/")
                base, point, field = name.partition(".")
                if not base or not point:
                    continue
                if (folder, base) != last:
                    self._samples.append({})
                last = folder, base
                self._samples[-1][field] = member.offset_data, member.size
            archive.fileobj.seek(archive.offset)  # type: ignore[union-attr]  # where the module stopped: also at what it does not understand
            if archive.fileobj.read(512) != bytes(512):  # type: ignore[union-attr]
                raise ValueError(f"data file '{path}': member at byte {archive.offset}: the archive is cut off, or damaged")
        if not self._samples:
            raise ValueError(f"data file '{path}' holds no files of the form NAME.FIELD")
        self.extent = Extent(len(self._samples), os.path.getsize(path) // len(self._samples))

    def take(self, samples: List[int]) -> Any:
        with open(self._path, "rb") as file:
            return [{field: os.pread(file.fileno(), size, offset) for field, (offset, size) in self._samples[sample].items()} for sample in samples]


def _h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise RuntimeError("ranktune.dataset() reads HDF5 by h5py, which this Python does not have (Debian: python3-h5py)") from None
    return h5py


def _open_hdf5(path: str, group: str, memory: int) -> Source:
    fields: Dict[str, Any] = {}
    chunk = 1
    h5py = _h5py()
    with h5py.File(path, "r") as file:
        if group and group not in file:
            raise ValueError(f"data file '{path}' has no group '{group}'")
        where = file[group] if group else file
        for name, field in where.items():
            if field is None:
                raise ValueError(f"data file '{path}': '{name}' cannot be opened: it is damaged, or a link that leads nowhere")
            if not isinstance(field, h5py.Dataset):
                continue
            offset = field.id.get_offset() if field.chunks is None and field.external is None else None
            if not field.shape or field.dtype.kind not in "biuf":
                raise ValueError(f"data file '{path}': field '{name}' holds no numbers, or no samples")
            if offset is not None and field.dtype.isnative:
                fields[name] = np.asarray(np.memmap(path, field.dtype, "r", offset, field.shape))
            else:
                fields[name] = _Blocks(path, field.name, field, memory)
                chunk = max(chunk, fields[name].block)
        if not fields:
            raise ValueError(f"data file '{path}' has no data sets in '{group or '/'}'; set group to one of {', '.join(where)}")
    return Source(path, fields, chunk)


def _open_safetensors(path: str) -> Source:
    types = {"BOOL": "?", "U8": "u1", "I8": "i1", "I16": "<i2", "U16": "<u2", "I32": "<i4", "U32": "<u4", "I64": "<i8", "U64": "<u8",
             "F16": "<f2", "F32": "<f4", "F64": "<f8"}
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > os.path.getsize(path):
            raise ValueError(f"data file '{path}' has no header of safetensors, or is cut off")
        header = json.loads(file.read(length))
    chunk = int(header.pop("__metadata__", {}).get("ranktune.chunk_samples", 1))
    fields = {}
    for name, entry in header.items():
        if entry["dtype"] not in types:
            raise ValueError(f"data file '{path}': tensor '{name}' has the type {entry['dtype']}, which NumPy does not know")
        fields[name] = np.asarray(np.memmap(path, types[entry["dtype"]], "r", 8 + length + entry["data_offsets"][0], tuple(entry["shape"])))
    return Source(path, fields, chunk)


_PANDAS = "python3 -c 'import {} as m, h5py; d = m.{}(\"IN\"); f = h5py.File(\"OUT.h5\", \"w\"); [f.create_dataset(c, data=d[c]) for c in d]'"
_RECORDS = "unpack the records into a folder, then: " + _TAR.format("OUT.tar", "FOLDER")
# As in src/data/source.cpp: how a file becomes one that is read.
_CONVERSIONS = {
    ".parquet": _PANDAS.format("pandas", "read_parquet"), ".arrow": _PANDAS.format("pandas", "read_feather"),
    ".feather": _PANDAS.format("pandas", "read_feather"), ".npz": _PANDAS.format("numpy", "load"),
    ".csv": _PANDAS.format("pandas", "read_csv") + "; a file of [data] is decoded on the way: { path = \"IN\", decode = true } with stage = true",
    ".tfrecord": _RECORDS, ".mdb": _RECORDS, ".tgz": "gunzip -c IN > OUT.tar", ".gz": "gunzip IN"}

# What is said in messages, and the options that are read.
_OF_FORMAT = {**{ending: ("HDF5", ("group",)) for ending in (".h5", ".hdf5", ".hdf")},
              **{ending: (ending, ()) for ending in (".npy", ".safetensors", ".tar")}}


def _open_numbers(path: str, dtype: Any, shape: Optional[Sequence[int]], tokens: int) -> Source:
    index = os.path.splitext(path)[0] + ".idx"
    if tokens and os.path.exists(index):
        with open(index, "rb") as file:
            head = file.read(34)
        if head[:9] != b"MMIDIDX\0\0" or not 1 <= head[17] <= 8:
            raise ValueError(f"data file '{index}' is no index of Megatron (MMIDIDX, version 1)")
        written = np.dtype(("u1", "i1", "<i2", "<i4", "<i8", "<f8", "<f4", "<u2")[head[17] - 1])
        if dtype is not None and np.dtype(dtype) != written:
            raise ValueError(f"data file '{path}': dtype is '{dtype}', and '{index}' says {written}; remove `dtype`")
        dtype = written
    if dtype is None or not (shape or tokens):
        raise ValueError(f"data file '{path}': the format is unknown; .npy, .safetensors, .h5, .hdf5 and .tar are read; raw numbers need "
                         "dtype=\"float32\" and shape=(...), tokens dtype=\"uint16\" (or Megatron's .idx) and tokens=N")
    row = tuple(shape or (tokens,))
    size, row_bytes = os.path.getsize(path), int(np.prod(row)) * np.dtype(dtype).itemsize
    if size < row_bytes or (shape and size % row_bytes != 0):
        raise ValueError(f"data file '{path}' has {size} bytes, no multiple of a sample's {row_bytes}: check dtype and shape")
    return Source(path, {"tokens" if tokens else "x": np.asarray(np.memmap(path, dtype, "r", 0, (size // row_bytes, *row)))})


def open_file(path: str, name: str = "", **options: Any) -> Any:
    """`name`: of the file in [data], where the path may be that of a copy."""
    try:
        return _open_any(path, **options)
    except (ValueError, KeyError, IndexError, TypeError, OSError, tarfile.TarError) as error:
        text = str(error)
        if path not in text:
            text = f"data file '{path}' is damaged, or something else than its name says: {text}"
        elif isinstance(error, OSError):
            raise
    raise ValueError(f"data.{name}: {text}" if name else text)


def _open_any(path: str, dtype: Optional[str] = None, shape: Optional[Sequence[int]] = None, tokens: int = 0, group: str = "",
               memory: int = 1 << 30) -> Any:
    ending = os.path.splitext(path)[1]
    if os.path.isdir(path):
        raise ValueError(f"data file '{path}': is a folder; make one file of it: {_TAR.format('OUT.tar', path)}")
    if ending in _CONVERSIONS:
        raise ValueError(f"data file '{path}': {ending} is not read directly; convert it: {_CONVERSIONS[ending]}")
    of_format, read = _OF_FORMAT.get(ending) or (("raw numbers, which have a `shape`", ("dtype", "shape")) if shape else ("tokens", ("dtype", "tokens")))
    for option, value in (("dtype", dtype), ("shape", shape), ("tokens", tokens), ("group", group)):
        if value and option not in read:
            raise ValueError(f"data file '{path}': `{option}` says nothing about {of_format}; remove it")
    if ending == ".tar":
        return Tar(path)
    if np is None:
        raise RuntimeError(f"ranktune.dataset('{path}') needs NumPy, which this Python does not have (Debian: python3-numpy)")
    if ending == ".npy":
        return Source(path, {"x": np.asarray(np.load(path, mmap_mode="r"))})
    if ending == ".safetensors":
        return _open_safetensors(path)
    if ending in (".h5", ".hdf5", ".hdf"):
        return _open_hdf5(path, group, memory)
    return _open_numbers(path, dtype, shape, tokens)
