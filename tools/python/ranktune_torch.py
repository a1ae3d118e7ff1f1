# SPDX-License-Identifier: Apache-2.0
"""ranktune.dataset() for PyTorch: Dataset.torch() and Dataset.loader()."""

import threading
import time
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import ranktune
from ranktune_data import Dataset, _spent, _thread_time

_WIDER = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}  # that every PyTorch has


def _tensors(batch: Any) -> Any:
    if isinstance(batch, dict):
        return {name: _tensors(rows) for name, rows in batch.items()}
    if isinstance(batch, list):
        return batch
    if batch.dtype.kind == "u":  # asking for a name takes 2 us
        batch = batch.astype(_WIDER.get(batch.dtype.name, batch.dtype), copy=False)
    return torch.from_numpy(batch)


class Tensors(IterableDataset):  # type: ignore[misc, type-arg]
    """Batches. `now` is memory that a Loader shares with its workers: rank, ranks, seed, trial and iteration of the pass that
    begins. Workers that are kept know them from nowhere else. With `now`, workers also return the seconds that each batch took."""

    def __init__(self, data: Dataset, now: Optional[torch.Tensor] = None, iteration: Optional[int] = None) -> None:
        self._data, self._now = data, now
        self._iteration = iteration  # of the process that made it, if this is another one that was not forked
        self._passes = 0  # in a worker that is kept

    def __reduce__(self) -> Any:
        return Tensors, (self._data, self._now, ranktune.context().iteration)

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[Any]:
        info, data = get_worker_info(), self._data
        if info is None:
            yield from map(_tensors, data)
            return
        data._lock = threading.Lock()  # a thread of the parent may have held the other one
        iteration = (ranktune.context().iteration if self._iteration is None else self._iteration) + self._passes
        self._passes += 1
        if self._now is not None:
            rank, ranks, seed, trial, iteration = self._now.tolist()
            data._join(rank, ranks, seed % (1 << 64), trial)
        for number in range(info.id, len(data), info.num_workers):
            begin = _thread_time()
            batch, mapped = data._mapped(iteration * data.per_iteration, number)
            batch = _tensors(batch)
            yield batch if self._now is None else (_spent(begin, "decode"), mapped, batch)


class _Measured:
    """Calls a user's function of a batch in a worker, and adds the seconds that it took."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, made: Tuple[Dict[str, float], float, Any]) -> Tuple[Dict[str, float], float, Any]:
        took, mapped, batch = made
        begin = _thread_time()
        batch = self._function(batch)
        more = _spent(begin, "map")
        return {**took, "map": more["map"], "disk": took["disk"] + more["disk"]}, mapped, batch


class Loader(DataLoader):  # type: ignore[misc, type-arg]
    """Counts what comes from its workers, and how long it was waited for."""

    def __init__(self, data: Dataset, num_workers: int, collate_fn: Optional[Callable[[Any], Any]], **options: Any) -> None:
        if collate_fn and num_workers > 0:
            collate_fn = _Measured(collate_fn)
        now = torch.zeros(5, dtype=torch.int64).share_memory_() if num_workers > 0 else None
        super().__init__(Tensors(data, now), batch_size=None, num_workers=num_workers, collate_fn=collate_fn, **options)

    def __iter__(self) -> Iterator[Any]:
        data = self.dataset._data
        data._join_trial()
        if self.num_workers == 0:  # the dataset counts by itself
            yield from super().__iter__()
            return
        seed = data._seed - (1 << 64) if data._seed >> 63 else data._seed
        self.dataset._now[:] = torch.tensor([data.rank, data.ranks, seed, data._trial, ranktune.context().iteration])
        start = time.monotonic()
        for number, (took, mapped, batch) in enumerate(super().__iter__()):
            data._came(number, time.monotonic() - start, took, mapped)
            yield batch
            start = time.monotonic()
