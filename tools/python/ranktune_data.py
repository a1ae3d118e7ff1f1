# SPDX-License-Identifier: Apache-2.0
"""Training data in an order that follows from seed, trial and iteration: ranktune.dataset().

    for batch in ranktune.dataset("train.h5", batch=256, per_iteration=100_000):
        ...                                                 # this rank's share: arrays of NumPy
    loader = ranktune.dataset("train.h5", batch=256).loader(num_workers=4)     # a DataLoader of PyTorch: tensors

Nothing is saved: a trial that is started again, on any number of ranks, goes on with the samples that come next. Python 3.9
or newer, and NumPy; h5py for HDF5.
"""

import collections
import concurrent.futures
import json
import math
import os
import sys
import tarfile
import threading
import time
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import ranktune
from ranktune_order import Extent, Mixture, Order, order_shape

try:
    import numpy as np
except ImportError:
    np = None  # type: ignore[assignment]

__all__ = ["Dataset", "data", "dataset"]

_WINDOW = 16384  # positions
_TAR = "tar --sort=name --dereference --hard-dereference -cf {} -C {} ."  # a link would be packed without its bytes


# ---- files -------------------------------------------------------------------------------------------------------------


class _Source:
    """Fields whose samples are rows of arrays, mapped where the format allows."""

    def __init__(self, path: str, fields: Dict[str, Any], chunk: int = 1) -> None:
        counts = {name: len(field) for name, field in fields.items()}
        if len(set(counts.values())) != 1 or 0 in counts.values():
            raise ValueError(f"data file '{path}': its fields need the same number of samples, and have {counts or 'none'}")
        self.fields = fields
        row = sum(int(np.prod(field.shape[1:], dtype=np.int64)) * field.dtype.itemsize for field in fields.values())
        self.extent = Extent(next(iter(counts.values())), row, min(chunk, next(iter(counts.values()))))

    def take(self, samples: List[int]) -> Any:
        at = np.asarray(samples, dtype=np.int64)
        rows = {name: field.take(at, 0) for name, field in self.fields.items()}
        return rows if len(rows) > 1 else next(iter(rows.values()))


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


class _Tar:
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


def _open_hdf5(path: str, group: str, memory: int) -> _Source:
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
    return _Source(path, fields, chunk)


def _open_safetensors(path: str) -> _Source:
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
    return _Source(path, fields, chunk)


_PANDAS = "python3 -c 'import {} as m, h5py; d = m.{}(\"IN\"); f = h5py.File(\"OUT.h5\", \"w\"); [f.create_dataset(c, data=d[c]) for c in d]'"
_RECORDS = "unpack the records into a folder, then: " + _TAR.format("OUT.tar", "FOLDER")
# As in src/data/source.cpp: how a file becomes one that is read.
_CONVERSIONS = {
    ".parquet": _PANDAS.format("pandas", "read_parquet"), ".arrow": _PANDAS.format("pandas", "read_feather"),
    ".feather": _PANDAS.format("pandas", "read_feather"), ".npz": _PANDAS.format("numpy", "load"),
    ".csv": _PANDAS.format("pandas", "read_csv") + "; a file of [data] is decoded on the way: { path = \"IN\", decode = true } with stage = true",
    ".tfrecord": _RECORDS, ".mdb": _RECORDS, ".tgz": "gunzip -c IN > OUT.tar", ".gz": "gunzip IN"}


def _open_numbers(path: str, dtype: Optional[str], shape: Optional[Sequence[int]], tokens: int) -> _Source:
    index = os.path.splitext(path)[0] + ".idx"
    if tokens and os.path.exists(index):
        with open(index, "rb") as file:
            head = file.read(34)
        if head[:9] != b"MMIDIDX\0\0" or not 1 <= head[17] <= 8:
            raise ValueError(f"data file '{index}' is no index of Megatron (MMIDIDX, version 1)")
        dtype = ("u1", "i1", "<i2", "<i4", "<i8", "<f8", "<f4", "<u2")[head[17] - 1]
    if dtype is None or not (shape or tokens):
        raise ValueError(f"data file '{path}': the format is unknown; .npy, .safetensors, .h5, .hdf5 and .tar are read; raw numbers need "
                         "dtype=\"float32\" and shape=(...), tokens dtype=\"uint16\" (or Megatron's .idx) and tokens=N")
    row = tuple(shape or (tokens,))
    size, row_bytes = os.path.getsize(path), int(np.prod(row)) * np.dtype(dtype).itemsize
    if size < row_bytes or (shape and size % row_bytes != 0):
        raise ValueError(f"data file '{path}' has {size} bytes, no multiple of a sample's {row_bytes}: check dtype and shape")
    return _Source(path, {"tokens" if tokens else "x": np.asarray(np.memmap(path, dtype, "r", 0, (size // row_bytes, *row)))})


def _open(path: str, name: str = "", **options: Any) -> Any:
    """`name`: of the file in [data], where the path may be that of a copy."""
    try:
        return _open_file(path, **options)
    except (ValueError, KeyError, IndexError, TypeError, OSError, tarfile.TarError) as error:
        text = str(error)
        if path not in text:
            text = f"data file '{path}' is damaged, or something else than its name says: {text}"
        elif isinstance(error, OSError):
            raise
    raise ValueError(f"data.{name}: {text}" if name else text)


def _open_file(path: str, dtype: Optional[str] = None, shape: Optional[Sequence[int]] = None, tokens: int = 0, group: str = "",
               memory: int = 1 << 30) -> Any:
    ending = os.path.splitext(path)[1]
    if os.path.isdir(path):
        raise ValueError(f"data file '{path}': is a folder; make one file of it: {_TAR.format('OUT.tar', path)}")
    if ending in _CONVERSIONS:
        raise ValueError(f"data file '{path}': {ending} is not read directly; convert it: {_CONVERSIONS[ending]}")
    if ending == ".tar":
        return _Tar(path)
    if np is None:
        raise RuntimeError(f"ranktune.dataset('{path}') needs NumPy, which this Python does not have (Debian: python3-numpy)")
    if ending == ".npy":
        return _Source(path, {"x": np.asarray(np.load(path, mmap_mode="r"))})
    if ending == ".safetensors":
        return _open_safetensors(path)
    if ending in (".h5", ".hdf5", ".hdf"):
        return _open_hdf5(path, group, memory)
    return _open_numbers(path, dtype, shape, tokens)


# ---- batches -----------------------------------------------------------------------------------------------------------


def _bytes(value: Any) -> int:
    """1 << 30, or "1GiB"."""
    units = {"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
    if isinstance(value, str) and value[-3:] in units and value[:-3].strip().isdecimal():
        return int(value[:-3]) << units[value[-3:]]
    if isinstance(value, int) and value > 0:
        return value
    raise ValueError(f"shuffle_memory is {value!r}, not a number of bytes or a text like \"512MiB\"")


_OPTIONS = ("dtype", "shape", "tokens", "group", "shuffle", "shuffle_memory", "drop_last", "mix")


def _named() -> Dict[str, Any]:
    """The study's [data]: path and options by name."""
    return dict(json.loads(os.environ.get("RANKTUNE_DATA") or "{}"))


def data(name: str) -> str:
    """Path of the file or folder that [data] of the study calls `name`.

    >>> os.environ["RANKTUNE_DATA"] = '{"train": {"path": "/data/train.h5"}}'
    >>> data("train")
    '/data/train.h5'
    """
    named = _named()
    if name in named and "mix" in named[name]:
        raise KeyError(f"ranktune.data(): '{name}' of [data] is a mixture of {', '.join(part['source'] for part in named[name]['mix'])}, "
                       "which ranktune.dataset() reads")
    if name in named:
        return str(named[name]["path"])
    there = f"it has {', '.join(named)}" if named else f"the table is empty: add {name} = \"PATH\""
    raise KeyError(f"ranktune.data(): [data] of the study file has no file '{name}'; {there}")


def _entry(data: Any) -> Dict[str, Any]:
    """Path and options of what [data] of the study names, or of a path."""
    if not isinstance(data, (str, os.PathLike)):
        return {"mix": list(data)}
    text = os.fspath(data)
    named = _named()
    if text in named:
        unknown = set(named[text]) - {"path", *_OPTIONS}
        if unknown:
            raise ValueError(f"RANKTUNE_DATA: '{text}' has the unknown option '{sorted(unknown)[0]}'; known are path, {', '.join(_OPTIONS)}")
        return {"name": text, **named[text]}
    if not os.path.exists(text):
        names = f"; the study's [data] has {', '.join(named)}" if named else ""
        raise FileNotFoundError(f"ranktune.dataset(): there is no file '{os.path.abspath(text)}'{names}")
    return {"path": text}


def _thread_time(clock: int = time.CLOCK_THREAD_CPUTIME_ID, thread: Optional[int] = None) -> Tuple[float, float]:
    """What passed, and for how much of it a thread (None: this one) was neither on a core nor waiting for one."""
    queued = 0
    try:
        with open(f"/proc/self/task/{thread or threading.get_native_id()}/schedstat", "rb") as file:
            queued = int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        pass  # waiting for a core then counts as blocked
    passed = time.monotonic()
    return passed, passed - time.clock_gettime(clock) - 1e-9 * queued


def _spent(begin: Tuple[float, float], computing: str, *thread: int) -> Dict[str, float]:
    """Seconds since `begin`: blocked, mostly until bytes came from the disk, or `computing`."""
    passed, blocked = (now - then for now, then in zip(_thread_time(*thread), begin))
    disk = min(max(blocked, 0.0), passed)
    return {"disk": disk, computing: passed - disk}


class Dataset:
    """This rank's share of an iteration's batches, at each iteration over it. See dataset()."""

    def __init__(self, name: str, files: List[Dict[str, Any]], mix: Optional[List[Tuple[float, int]]], batch: int, per_iteration: Optional[int],
                 orders: List[Tuple[Optional[str], int]], drop_last: bool, ahead: int) -> None:
        context = ranktune.context()
        self.name, self.batch, self.drop_last, self.ahead = name, batch, drop_last, ahead
        self.rank, self.ranks = context.rank, context.world_size
        self._seed, self._trial = context.seed, context.trial or 0
        self._files, self._orders = files, orders
        self._sources = [_open(**file) for file in files]
        self._shapes = [order_shape(source.extent, *order) for source, order in zip(self._sources, orders)]
        if mix is not None and per_iteration is None:
            raise ValueError("ranktune.dataset(): a mixture has no end: say per_iteration=N")
        if mix is not None:
            _check_fields(self._sources, [file["path"] for file in files])
        self.per_iteration = per_iteration if per_iteration is not None else self._shapes[0].samples
        if batch < 1 or self.per_iteration < 1 or ahead < 1:
            raise ValueError("ranktune.dataset(): batch, per_iteration and ahead have to be at least 1")
        if (mix is not None and batch < self.ranks) or (drop_last and batch > self.per_iteration):
            raise ValueError(f"ranktune.dataset(): batch={batch} has no sample for each of {self.ranks} ranks, or more than an iteration's "
                             f"{self.per_iteration}, and drop_last leaves out what is shorter")
        self._mix = mix
        self._lock = threading.Lock()
        self._begin_order()
        self.data_wait = 0.0  # seconds in next(), since the last report
        self._waited_for = {"disk": 0.0, "decode": 0.0}  # of these, as far as it is known; of a DataLoader also "map"
        self.consumed = 0  # samples over all ranks, since the last report

    def __len__(self) -> int:
        """Batches of an iteration: the same on all ranks."""
        whole, rest = divmod(self.per_iteration, self.batch)
        return whole + (0 if self.drop_last or rest < self.ranks else 1)

    def _advice(self) -> List[str]:
        """What makes this order mix less, or read more, than it could."""
        said = []
        for shape, (_, memory), file, source in zip(self._shapes, self._orders, self._files, self._sources):
            if not shape.shuffled or shape.unit == 1:
                continue
            path, row = file["path"], max(source.extent.sample_bytes, 1)
            if shape.lanes < min(240, -(-shape.samples // shape.unit)):
                wanted = -(-min(240 * shape.unit, shape.samples) * row // (1 << 20))
                said.append(f"'{path}': batches mix {shape.lanes} of {-(-shape.samples // shape.unit):,} chunks, as no more of them fit into shuffle_memory "
                            f"({memory:,} bytes); shuffle_memory = \"{wanted}MiB\" mixes {min(240, -(-shape.samples // shape.unit))}, and takes no "
                            "memory where [data] has decode = true")
            reads = self.ranks // math.gcd(self.ranks, shape.lanes)
            if reads > 1:
                fewer = next(n for n in range(self.ranks - 1, 0, -1) if shape.lanes % n == 0)
                more = next((n for n in range(self.ranks + 1, shape.lanes + 1) if shape.lanes % n == 0), self.ranks + shape.lanes)
                said.append(f"'{path}': each chunk is read on {reads} ranks, as {self.ranks} ranks do not divide the {shape.lanes} chunks that are mixed; "
                            f"{' or '.join(str(n) for n in (fewer, more) if n <= shape.lanes)} do")
        return said

    def _begin_order(self) -> None:
        self._mixture = None if self._mix is None else Mixture(
            [(shape, *part) for shape, part in zip(self._shapes, self._mix)], self._seed, self._trial)
        self._order: Tuple[int, Optional[Order]] = (-1, None)
        self._window: Tuple[range, List[int]] = (range(0), [])

    def _join_trial(self) -> None:
        """One that a function keeps for the next trial (kept = true) gets the share and the order of that."""
        context = ranktune.context()
        now = context.rank, context.world_size, context.seed, context.trial or 0
        if now != (self.rank, self.ranks, self._seed, self._trial):
            self.rank, self.ranks, self._seed, self._trial = now
            self._begin_order()

    def __iter__(self) -> Iterator[Any]:
        self._join_trial()
        begin = ranktune.context().iteration * self.per_iteration
        with concurrent.futures.ThreadPoolExecutor(1, "ranktune-data") as threads:
            reader = threads.submit(lambda: (time.pthread_getcpuclockid(threading.get_ident()), threading.get_native_id())).result()
            ahead = collections.deque(threads.submit(self._make, begin, number) for number in range(min(self.ahead, len(self))))
            try:
                for number in range(len(self)):
                    future, took = ahead.popleft(), {}  # type: ignore[var-annotated]
                    if not future.done():  # while this thread waits, the other one does not wait for Python's lock
                        start = _thread_time(*reader)
                        concurrent.futures.wait([future])
                        took = _spent(start, "decode", *reader)
                    batch = future.result()
                    self._came(number, sum(took.values()), took)
                    if number + self.ahead < len(self):
                        ahead.append(threads.submit(self._make, begin, number + self.ahead))
                    yield batch
            finally:
                for future in ahead:
                    future.cancel()

    def loader(self, num_workers: int = 0, collate_fn: Any = None, **options: Any) -> Any:
        """A DataLoader of PyTorch whose workers make the batches, as tensors: worker w of k makes w, w + k, ..., so that their number
        changes nothing.

        collate_fn -- what is returned for a batch, by the workers; data_wait/map is what the loop waited for it
        options    -- more of DataLoader: pin_memory, persistent_workers, prefetch_factor, ..."""
        import ranktune_torch

        return ranktune_torch.Loader(self, num_workers, collate_fn, **options)

    def torch(self) -> Any:
        """For a DataLoader of your own, with batch_size=None: an IterableDataset. What comes from workers is not counted: neither
        data_wait nor the samples of an iteration."""
        import ranktune_torch

        self._join_trial()
        return ranktune_torch.Tensors(self)

    def _came(self, number: int, waited: float, took: Dict[str, float]) -> None:
        """Batch `number`, after that many seconds; `took`: of whoever made it. A start or a transport took the rest."""
        self.data_wait += waited
        share = min(waited / max(sum(took.values()), 1e-9), 1.0)
        for cause, seconds in took.items():
            self._waited_for[cause] = self._waited_for.get(cause, 0.0) + share * seconds
        self.consumed += self._end(number) - number * self.batch
        if self not in _used:
            _used.append(self)

    def _end(self, number: int) -> int:
        return min((number + 1) * self.batch, self.per_iteration)

    def _make(self, begin: int, number: int) -> Any:
        """Batch `number` of the iteration that begins at position `begin`."""
        first, end = begin + number * self.batch, begin + self._end(number)
        positions = range(first + (self.rank - first) % self.ranks, end, self.ranks)
        if self._mixture is None:
            return self._sources[0].take(self._samples(positions))
        with self._lock:
            places = [self._mixture(position) for position in positions]
        chosen = [[i for i, place in enumerate(places) if place[0] == number] for number in range(len(self._sources))]
        parts = [(at, self._sources[number].take([places[i][2] for i in at])) for number, at in enumerate(chosen) if at]
        if isinstance(parts[0][1], dict):
            return {name: _joined([(at, part[name]) for at, part in parts], len(places)) for name in parts[0][1]}
        return _joined(parts, len(places))

    def _samples(self, positions: range) -> List[int]:
        """In an order without mixtures. Windows of it are made at once, which NumPy does in less time."""
        samples: List[int] = []
        with self._lock:
            while len(samples) < len(positions):
                position = positions[len(samples)]
                if position not in self._window[0]:
                    begin = position // _WINDOW * _WINDOW
                    window = range(begin + (self.rank - begin) % self.ranks, begin + _WINDOW, self.ranks)
                    if not self._window[0]:  # the first batch waits for no more than its own
                        window = positions
                    self._window = window, self._ordered(window)
                first = self._window[0].index(position)
                samples += self._window[1][first : first + len(positions) - len(samples)]
        return samples

    def _ordered(self, positions: range) -> List[int]:
        samples: List[int] = []
        count = self._shapes[0].samples
        while len(samples) < len(positions):
            rest = positions[len(samples):]
            epoch = rest[0] // count
            if self._order[0] != epoch:
                self._order = epoch, Order(self._shapes[0], self._seed, self._trial, epoch)
            assert self._order[1] is not None
            own = range(rest.start, min(rest.stop, (epoch + 1) * count), self.ranks)
            samples += self._order[1].many(range(own.start - epoch * count, own.stop - epoch * count, self.ranks))
        return samples

    def __getstate__(self) -> Dict[str, Any]:
        return {**vars(self), "_lock": None, "_sources": None}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        """In another process, which maps the files anew."""
        vars(self).update(state, _lock=threading.Lock(), _sources=[_open(**file) for file in state["_files"]])

    def _reported(self) -> Tuple[Dict[str, float], str]:
        """What the iteration that ends waited for data, and what is wrong with its number of samples."""
        expected = len(self) * self.batch if self.drop_last else self._end(len(self) - 1)
        wrong = ""
        if self.consumed != expected and self.name not in _told:
            _told.add(self.name)
            wrong = (f"ranktune.dataset({self.name!r}): this iteration took {self.consumed:,} samples, and per_iteration is "
                     f"{self.per_iteration:,}: samples are left out or repeated; say per_iteration={self.consumed}")
        waited = {"data_wait": self.data_wait, **{f"data_wait/{cause}": seconds for cause, seconds in self._waited_for.items()}}
        self.data_wait, self._waited_for, self.consumed = 0.0, dict.fromkeys(self._waited_for, 0.0), 0
        return waited, wrong


def _check_fields(sources: List[Any], paths: List[str]) -> None:
    """Of a mixture: all have the same, of the same types and shapes."""
    kinds = [None if isinstance(source, _Tar) else {name: (field.dtype.name, field.shape[1:]) for name, field in source.fields.items()}
             for source in sources]
    for kind, path in zip(kinds, paths):
        if kind != kinds[0]:
            raise ValueError(f"ranktune.dataset(): the sources of a mixture need the same fields, types and shapes: '{paths[0]}' has {kinds[0] or 'members of a tar'}, "
                             f"'{path}' {kind or 'members of a tar'}")


def _joined(parts: List[Tuple[List[int], Any]], count: int) -> Any:
    """One batch of parts of several sources, each with its places."""
    if isinstance(parts[0][1], list):
        batch = [None] * count
        for at, part in parts:
            for i, sample in zip(at, part):
                batch[i] = sample
        return batch
    whole = np.empty((count, *parts[0][1].shape[1:]), parts[0][1].dtype)
    for at, part in parts:
        whole[at] = part
    return whole


_told: Set[str] = set()  # what was said once: advice, and datasets whose samples are left out or repeated
_used: List[Dataset] = []  # since the last report; no longer, so that a loop may make one for each of its epochs


def _begin_iteration() -> List[Tuple[Dict[str, float], str]]:
    """What each dataset that was used since the last report says of that iteration."""
    results = [data._reported() for data in _used]
    _used.clear()
    return results


def _on_report() -> Dict[str, float]:
    """Called by ranktune.report(): data_wait and for what, if a dataset was iterated."""
    results = _begin_iteration()
    for _, wrong in results:
        if wrong and ranktune.context().rank == 0:
            print(wrong, file=sys.stderr, flush=True)
    total: Dict[str, float] = {}
    for waited, _ in results:
        for name, seconds in waited.items():
            total[name] = total.get(name, 0.0) + seconds
    return total


def dataset(data: Any, *, batch: int, per_iteration: Optional[int] = None, shuffle: Optional[str] = None, shuffle_memory: Any = None,
            drop_last: Optional[bool] = None, ahead: int = 2, dtype: Optional[str] = None, shape: Optional[Sequence[int]] = None,
            tokens: Optional[int] = None, group: Optional[str] = None) -> Dataset:
    """Batches of this rank's share, from where the trial stands: sample iteration * per_iteration on.

    data           -- a name of the study's [data], a path, or a mixture: a list of {"source": name or path, "weight": 0.3,
                      "from": position}. Files: .npy, .safetensors, .h5, .tar, tokens and raw numbers
    batch          -- samples of a global batch, over all ranks: positions r, r + R, ... of it are those of rank r of R
    per_iteration  -- samples between two reports (all samples of the file). Ranks get equally many batches
    shuffle        -- "full", "lanes" (chunks in random order, many of them open at once) or "none"; None: by the file
    shuffle_memory -- bytes, or "1GiB": of the lanes open on all ranks, and of the decoded chunks that each rank keeps
    drop_last      -- leave out a last batch with fewer samples
    ahead          -- batches that a thread prepares
    dtype, shape   -- of a sample of raw numbers
    tokens         -- of a sample of a token file (.bin), with dtype or Megatron's .idx
    group          -- of an HDF5 file: its data sets are the fields

    A batch is an array, a dict of arrays if the file has several fields, and a list of dicts of bytes for a .tar.
    """
    given = dict(shuffle=shuffle, shuffle_memory=shuffle_memory, drop_last=drop_last, dtype=dtype, shape=shape, tokens=tokens, group=group)
    given = {name: value for name, value in given.items() if value is not None}
    entry = {**_entry(data), **given}
    mix = entry.get("mix")
    for part in mix or []:
        if "source" not in part or set(part) - {"source", "weight", "from"}:
            raise ValueError(f"ranktune.dataset(): a part of a mixture has source, weight and from, not {', '.join(part)}")
    parts = [entry] if mix is None else [{**_entry(part["source"]), **given} for part in mix]
    if any("path" not in part for part in parts):
        raise ValueError("ranktune.dataset(): the source of a mixture is a file, not another mixture")
    for part in parts:
        if part.get("shuffle") not in (None, "full", "lanes", "none"):
            raise ValueError(f"ranktune.dataset(): shuffle is {part['shuffle']!r}, not \"full\", \"lanes\" or \"none\"")
    orders = [(part.get("shuffle"), _bytes(part.get("shuffle_memory", 1 << 30))) for part in parts]
    files = [{"memory": memory, **{option: part[option] for option in ("path", "name", "dtype", "shape", "tokens", "group") if option in part}}
             for part, (_, memory) in zip(parts, orders)]
    weights = None if mix is None else [(float(part.get("weight", 1.0)), int(part.get("from", 0))) for part in mix]
    name = os.fspath(data) if isinstance(data, (str, os.PathLike)) else "mixture"
    made = Dataset(name, files, weights, batch, per_iteration, orders, bool(entry.get("drop_last", False)), ahead)
    for text in made._advice() if made.rank == 0 else []:
        if text not in _told:
            _told.add(text)
            print(f"ranktune.dataset(): {text}", file=sys.stderr, flush=True)
    return made


ranktune._hooks.append(_on_report)
