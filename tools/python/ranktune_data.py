# SPDX-License-Identifier: Apache-2.0
"""Training data in an order that follows from seed, trial and iteration: ranktune.dataset().

    for batch in ranktune.dataset("train.h5", batch=256, per_iteration=100_000):
        ...                                                 # this rank's share: arrays of NumPy
    loader = ranktune.dataset("train.h5", batch=256).loader(num_workers=4)     # a DataLoader of PyTorch: tensors

Nothing is saved: a trial that is started again, on any number of ranks, goes on with the samples that come next. Python 3.9
or newer, and NumPy; h5py for HDF5.
"""

import atexit
import contextlib
import itertools
import json
import math
import os
import queue
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import ranktune
from ranktune_files import Tar, open_file
from ranktune_order import Mixture, Order, order_shape

try:
    import numpy as np
except ImportError:
    np = None  # type: ignore[assignment]

__all__ = ["Dataset", "data", "dataset"]

_WINDOW = 16384  # positions


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


def _ahead(make: Callable[[int], Any], count: int, ahead: int) -> Iterator[Tuple[Any, Dict[str, float]]]:
    """make(0), ..., make(count - 1), by a thread that is up to `ahead` results in front, each with the seconds that the caller
    waited. (The futures of an executor cost 15 us more each.) The caller waits for the first in any case, and makes it without a
    thread."""
    if count == 0:
        return
    wanted: "queue.SimpleQueue[Optional[int]]" = queue.SimpleQueue()
    made: "queue.SimpleQueue[Tuple[Any, Optional[BaseException]]]" = queue.SimpleQueue()
    closed = False

    def work() -> None:
        for number in iter(wanted.get, None):
            if closed:
                return
            try:
                made.put((make(number), None))
            except BaseException as error:
                made.put((None, error))

    def close() -> None:
        nonlocal closed
        closed = True
        wanted.put(None)
        thread.join()

    thread = threading.Thread(target=work, name="ranktune-data", daemon=True)
    thread.start()
    atexit.register(close)  # of an iterator that is left open: the thread may not outlive NumPy
    try:
        start = _thread_time()
        result = make(0)
        took = _spent(start, "decode")
        for number in range(1, min(ahead + 1, count)):
            wanted.put(number)
        yield result, took
        assert thread.ident is not None and thread.native_id is not None
        reader = time.pthread_getcpuclockid(thread.ident), thread.native_id
        for number in range(1, count):
            took = {}
            try:
                result, error = made.get_nowait()
            except queue.Empty:  # while this thread waits, the other one does not wait for Python's lock
                start = _thread_time(*reader)
                result, error = made.get()
                took = _spent(start, "decode", *reader)
            if error is not None:
                raise error
            if number + ahead < count:
                wanted.put(number + ahead)
            yield result, took
    finally:
        close()
        atexit.unregister(close)


class Dataset:
    """This rank's share of an iteration's batches, at each iteration over it. See dataset()."""

    def __init__(self, name: str, files: List[Dict[str, Any]], mix: Optional[List[Tuple[float, int]]], batch: int, per_iteration: Optional[int],
                 orders: List[Tuple[Optional[str], int]], drop_last: bool, ahead: int, map: Optional[Callable[[Any, Any], Any]]) -> None:
        context = ranktune.context()
        self.name, self.batch, self.drop_last, self.ahead = name, batch, drop_last, ahead
        self.rank, self.ranks = context.rank, context.world_size
        self._seed, self._trial = context.seed, context.trial or 0
        self._files, self._orders = files, orders
        self._sources = [open_file(**file) for file in files]
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
        self._mix, self._map = mix, map
        self._lock = threading.Lock()
        self._begin_order()
        self.data_wait = 0.0  # seconds in next(), since the last report
        self._waited_for = dict.fromkeys(("disk", "decode", "map") if map else ("disk", "decode"), 0.0)  # parts of data_wait
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
        self._window: Tuple[range, Any] = (range(0), [])

    def _join_trial(self) -> None:
        """One that a function keeps for the next trial (kept = true) gets the share and the order of that."""
        context = ranktune.context()
        self._join(context.rank, context.world_size, context.seed, context.trial or 0)

    def _join(self, *now: int) -> None:
        if now != (self.rank, self.ranks, self._seed, self._trial):
            self.rank, self.ranks, self._seed, self._trial = now
            self._begin_order()

    def __iter__(self) -> Iterator[Any]:
        self._join_trial()
        begin = ranktune.context().iteration * self.per_iteration
        with contextlib.closing(_ahead(lambda number: self._mapped(begin, number), len(self), self.ahead)) as batches:
            for number, ((batch, share), took) in enumerate(batches):
                self._came(number, sum(took.values()), took, share)
                yield batch

    def loader(self, num_workers: int = 0, collate_fn: Any = None, **options: Any) -> Any:
        """A DataLoader of PyTorch whose workers make the batches, as tensors: worker w of k makes w, w + k, ..., so that their number
        changes nothing.

        collate_fn -- what is returned for a batch, by the workers; data_wait/map is what the loop waited for it
        options    -- more of DataLoader: pin_memory, persistent_workers, prefetch_factor, ..."""
        import ranktune_torch

        return ranktune_torch.Loader(self, num_workers, collate_fn, **options)

    def torch(self) -> Any:
        """For a DataLoader of your own, with batch_size=None: an IterableDataset. What comes from workers is not counted: neither
        data_wait nor the samples of an iteration. With persistent_workers=True, loop over it once between two reports."""
        import ranktune_torch

        self._join_trial()
        return ranktune_torch.Tensors(self)

    def _came(self, number: int, waited: float, took: Dict[str, float], mapped: float = 0.0) -> None:
        """Counts batch `number`, which the loop waited for. `took`: seconds that its maker needed, by cause; `mapped`: the share of
        `map` in the time that the maker computed. What `took` does not explain is the start of a worker, or transport."""
        self.data_wait += waited
        if mapped > 0.0:
            took = {**took, "decode": (1 - mapped) * took.get("decode", 0.0), "map": took.get("map", 0.0) + mapped * took.get("decode", 0.0)}
        share = min(waited / max(sum(took.values()), 1e-9), 1.0)
        for cause, seconds in took.items():
            self._waited_for[cause] = self._waited_for.get(cause, 0.0) + share * seconds
        self.consumed += self._end(number) - number * self.batch
        if self not in _used:
            _used.append(self)

    def _end(self, number: int) -> int:
        return min((number + 1) * self.batch, self.per_iteration)

    def _mapped(self, begin: int, number: int) -> Tuple[Any, float]:
        """Batch `number` of the iteration that begins at position `begin`; the share of `map` in the time that it took on a core."""
        start = time.thread_time()
        first, end = begin + number * self.batch, begin + self._end(number)
        positions = range(first + (self.rank - first) % self.ranks, end, self.ranks)
        chosen = self._chosen(positions)
        batch = self._take(chosen)
        if self._map is None:
            return batch, 0.0
        read = time.thread_time()
        if self._mixture is None:
            count = self._shapes[0].samples
            keys = [(int(sample), position // count, 0) for sample, position in zip(chosen, positions)]
        else:
            keys = [(sample, epoch, source) for source, epoch, sample in chosen]
        batch = _stacked([self._map(_sample(batch, i), _generator(self._seed, key)) for i, key in enumerate(keys)])
        mapped = time.thread_time()
        return batch, (mapped - read) / max(mapped - start, 1e-9)

    def _chosen(self, positions: range) -> Any:
        """Samples; of a mixture: source, epoch and sample of each."""
        if self._mixture is None:
            return self._samples(positions)
        with self._lock:
            return [self._mixture(position) for position in positions]

    def _take(self, chosen: Any) -> Any:
        """A batch as it is in the files."""
        if self._mixture is None:
            return self._sources[0].take(chosen)
        of_source = [[i for i, place in enumerate(chosen) if place[0] == number] for number in range(len(self._sources))]
        parts = [(at, self._sources[number].take([chosen[i][2] for i in at])) for number, at in enumerate(of_source) if at]
        if isinstance(parts[0][1], dict):
            return {name: _joined([(at, part[name]) for at, part in parts], len(chosen)) for name in parts[0][1]}
        return _joined(parts, len(chosen))

    def _samples(self, positions: range) -> Any:
        """In an order without mixtures. Windows of it are made at once, which NumPy does in less time."""
        parts = []
        with self._lock:
            while positions:
                if positions[0] not in self._window[0]:
                    begin = positions[0] // _WINDOW * _WINDOW
                    window = range(begin + (self.rank - begin) % self.ranks, begin + _WINDOW, self.ranks)
                    if not self._window[0]:  # the first batch waits for no more than its own
                        window = positions
                    self._window = window, self._ordered(window)
                first = self._window[0].index(positions[0])
                parts.append(self._window[1][first : first + len(positions)])
                positions = positions[len(parts[-1]):]
        return _chained(parts)

    def _ordered(self, positions: range) -> Any:
        parts = []
        count = self._shapes[0].samples
        while positions:
            epoch = positions[0] // count
            if self._order[0] != epoch:
                self._order = epoch, Order(self._shapes[0], self._seed, self._trial, epoch)
            assert self._order[1] is not None
            own = range(positions.start, min(positions.stop, (epoch + 1) * count), self.ranks)
            parts.append(self._order[1].many(range(own.start - epoch * count, own.stop - epoch * count, self.ranks)))
            positions = positions[len(own):]
        return _chained(parts)

    def __getstate__(self) -> Dict[str, Any]:
        return {**vars(self), "_lock": None, "_sources": None}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        """In another process, which maps the files anew."""
        vars(self).update(state, _lock=threading.Lock(), _sources=[open_file(**file) for file in state["_files"]])

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
    kinds = [None if isinstance(source, Tar) else {name: (field.dtype.name, field.shape[1:]) for name, field in source.fields.items()}
             for source in sources]
    for kind, path in zip(kinds, paths):
        if kind != kinds[0]:
            raise ValueError(f"ranktune.dataset(): the sources of a mixture need the same fields, types and shapes: '{paths[0]}' has {kinds[0] or 'members of a tar'}, "
                             f"'{path}' {kind or 'members of a tar'}")


def _chained(parts: List[Any]) -> Any:
    """Sample numbers: an array, or without NumPy a list."""
    return parts[0] if len(parts) == 1 else list(itertools.chain(*parts)) if np is None else np.concatenate([np.empty(0, np.int64), *parts])


def _generator(seed: int, key: Tuple[int, int, int]) -> Any:
    """Of a sample: number, epoch, source. Philox (Salmon et al. 2011), whose first counter counts the draws."""
    words = np.array([0, *key, seed % (1 << 64), 0x6D6170], np.uint64)
    return np.random.Generator(np.random.Philox(counter=words[:4], key=words[4:]))


def _sample(batch: Any, i: int) -> Any:
    return {name: rows[i] for name, rows in batch.items()} if isinstance(batch, dict) else batch[i]


def _stacked(samples: List[Any]) -> Any:
    """A batch of what `map` has returned."""
    first = samples[0]
    if first is None:
        raise ValueError("ranktune.dataset(): map returned nothing; it has to return the sample, also one that it changed in place")
    if isinstance(first, dict):
        return {name: _stacked([sample[name] for sample in samples]) for name in first}
    if isinstance(first, (bytes, str, list, tuple)):
        return samples
    rows = [np.asarray(sample) for sample in samples]
    shapes = {row.shape for row in rows}
    if len(shapes) > 1:
        raise ValueError(f"ranktune.dataset(): map returned samples of different shapes, {' and '.join(str(shape) for shape in sorted(shapes)[:2])}; "
                         "a batch needs one: crop or pad them")
    return np.stack(rows)


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
            tokens: Optional[int] = None, group: Optional[str] = None, map: Optional[Callable[[Any, Any], Any]] = None) -> Dataset:
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
    map            -- map(sample, random) returns what is trained on: a decoded or changed sample. Draws of `random`, a Generator of
                      NumPy, depend on seed, epoch and sample alone: they are the same on any number of ranks and workers, and
                      after a resume

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
    made = Dataset(name, files, weights, batch, per_iteration, orders, bool(entry.get("drop_last", False)), ahead, map)
    for text in made._advice() if made.rank == 0 else []:
        if text not in _told:
            _told.add(text)
            print(f"ranktune.dataset(): {text}", file=sys.stderr, flush=True)
    return made


ranktune._hooks.append(_on_report)
