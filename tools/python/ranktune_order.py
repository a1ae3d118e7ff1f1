# SPDX-License-Identifier: Apache-2.0
"""The order of samples: pure functions of (seed, trial, epoch, position), those of ranktune's C++ (ranktune/data/order.hpp,
mixture.hpp). The standard library is enough; NumPy makes them fast."""

import itertools
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

try:
    import numpy as np
except ImportError:
    np = None  # type: ignore[assignment]

__all__ = ["PERIOD", "Extent", "Mixture", "Order", "OrderShape", "Permutation", "order_shape"]

_M64 = (1 << 64) - 1
_REST = _M64  # part of a permutation's key, as is the next one
_MIXTURE = 1 << 63
PERIOD = 1000  # positions, in each of which a mixture has its exact shares


def _philox(counter: Sequence[Any], key: Tuple[int, int]) -> List[Any]:
    """Philox4x32-10 of numbers, or of arrays of uint64 that hold 32 bits."""
    wrap = (lambda x: x) if isinstance(counter[0], int) else np.uint64
    c0, c1, c2, c3 = counter
    k0, k1 = key
    mask, bits = wrap(0xFFFFFFFF), wrap(32)
    for _ in range(10):
        a, b = wrap(0xD2511F53) * c0, wrap(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (b >> bits) ^ c1 ^ wrap(k0), b & mask, (a >> bits) ^ c3 ^ wrap(k1), a & mask
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [c0, c1, c2, c3]


def _fixed(seed: int, trial: int, epoch: int, part: int) -> Tuple[Tuple[int, int], Tuple[int, int, int]]:
    """Of a key: that of Philox, and the last three words of its counter."""
    return (seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF), (part & 0xFFFFFFFF, (part >> 32) ^ trial, epoch & 0xFFFFFFFF)


def _draws(seed: int, trial: int, epoch: int, part: int) -> Iterator[int]:
    """The 64-bit numbers of a key."""
    key, fixed = _fixed(seed, trial, epoch, part)
    for block in itertools.count():
        c0, c1, c2, c3 = _philox((block, *fixed), key)
        yield c0 | c1 << 32
        yield c2 | c3 << 32


def _partners(size: int, *of: int) -> Any:
    """Of Fisher and Yates' shuffle: with which place each changes values, from the last one on; a list, or an array. (Lemire 2019)"""
    if np is not None and size > 32:
        key, fixed = _fixed(*of)
        blocks = np.arange(size // 2, dtype=np.uint64)
        c0, c1, c2, c3 = _philox([blocks, *(np.full_like(blocks, x) for x in fixed)], key)
        bits, limits = np.uint64(32), np.arange(size, 1, -1, dtype=np.uint64)
        low, high = (np.stack(words, 1).ravel()[:size - 1] for words in ((c0, c2), (c1, c3)))
        if not ((low | high << bits) * limits < limits).any():  # a draw that may be refused is too rare to be fast
            return (high * limits + (low * limits >> bits)) >> bits
    places, draws = [], _draws(*of)
    for i in range(size, 1, -1):
        product = next(draws) * i
        while (product & _M64) < i and (product & _M64) < (1 << 64) % i:
            product = next(draws) * i
        places.append(product >> 64)
    return places


def _shuffled(partners: Any) -> Any:
    """The table after all of the shuffle's steps, found at once: step k (the last place first) leaves in place k what lay in place
    of[k], where the step before that had the same partner had put what it found in its own place, and so on."""
    of = np.concatenate([[0], partners[::-1]]).astype(np.uint16)  # sorted by radix
    size, steps = len(of), np.arange(len(of))
    sorted_steps = np.argsort(of, kind="stable")
    goes_on = np.diff(of[sorted_steps]) == 0
    before = steps.copy()  # of each step: the one before with the same partner; itself: none
    before[sorted_steps[:-1][goes_on]] = sorted_steps[1:][goes_on]
    firsts = sorted_steps[np.flatnonzero(np.concatenate([[True], ~goes_on]))]
    source = steps.copy()  # of each step: the one that had put there what lies in its own place; itself: it lay there
    source[of[firsts]] = firsts
    source = np.where(of == steps, before, source)
    while True:
        further = source[source]
        if (further == source).all():
            break
        source = further
    return np.where((of == steps) | (before != steps), source[before], of)


class Permutation:
    """A bijection of 0 .. size-1: a table up to 65,536 values, a Feistel network above.

    >>> [Permutation(10, seed=1)(x) for x in range(6)]
    [2, 1, 5, 0, 7, 3]
    """

    def __init__(self, size: int, seed: int, trial: int = 0, epoch: int = 0, part: int = 0) -> None:
        self.size = size
        self._table: Any = None
        if size > 65536:
            self._bits = (size - 1).bit_length()
            self._keys = list(itertools.islice(_draws(seed, trial, epoch, part), 6))
            return
        partners = _partners(size, seed, trial, epoch, part)
        if not isinstance(partners, list):
            if size > 2048:
                self._table = self._array = _shuffled(partners)
                return
            partners = partners.tolist()
        table = list(range(size))
        for i, j in zip(range(size - 1, 0, -1), partners):
            table[i], table[j] = table[j], table[i]
        self._table = table
        self._array = None if np is None else np.array(table, dtype=np.int64)

    def __call__(self, x: int) -> int:
        if self._table is not None:
            return int(self._table[x])
        while True:
            width = self._bits // 2
            for key in self._keys:
                other = self._bits - width
                low, high = x & ((1 << width) - 1), x >> width
                mixed = low ^ key
                mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & _M64
                mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & _M64
                x = low << other | ((high ^ mixed ^ mixed >> 31) & ((1 << other) - 1))
                width = other
            if x < self.size:
                return x

    def many(self, positions: Any) -> Any:
        """The same for an array of int64."""
        if self._table is not None:
            return self._array[positions]
        u = np.uint64
        x = np.asarray(positions).astype(u)
        result, left = np.empty_like(x), np.arange(x.size)
        while x.size > 8:  # fewer are faster one by one
            width = self._bits // 2
            for key in self._keys:
                other = self._bits - width
                low, high = x & u((1 << width) - 1), x >> u(width)
                mixed = low ^ u(key)
                mixed = (mixed ^ mixed >> u(30)) * u(0xBF58476D1CE4E5B9)
                mixed = (mixed ^ mixed >> u(27)) * u(0x94D049BB133111EB)
                x = low << u(other) | ((high ^ mixed ^ mixed >> u(31)) & u((1 << other) - 1))
                width = other
            good = x < u(self.size)
            result[left[good]] = x[good]
            x, left = x[~good], left[~good]
        for i, value in zip(left.tolist(), x.tolist()):
            result[i] = self(value)
        return result.astype(np.int64)


class OrderShape(NamedTuple):
    """What an order depends on."""

    samples: int
    unit: int = 1  # samples that are read together; 1: no lanes
    lanes: int = 960  # units that are open at once, over all ranks
    shuffled: bool = True


class Extent(NamedTuple):
    """How samples lie in their file."""

    samples: int
    sample_bytes: int
    chunk_samples: int = 1  # 1: a sample can be read by itself


def order_shape(extent: Extent, shuffle: Optional[str] = None, memory: int = 1 << 30) -> OrderShape:
    """None is "full" where samples can be read by themselves or fit into memory, otherwise "lanes".

    >>> order_shape(Extent(10_000_000, 3136, 256))
    OrderShape(samples=10000000, unit=256, lanes=960, shuffled=True)
    """
    sample, chunk = max(extent.sample_bytes, 1), max(extent.chunk_samples, 1)
    alone = chunk == 1 or extent.samples <= memory // sample
    if shuffle in ("full", "none") or (shuffle is None and alone):
        return OrderShape(extent.samples, shuffled=shuffle != "none")
    unit, lanes = chunk * -(-(256 << 10) // (chunk * sample)), 960
    while lanes > 1 and lanes * unit > memory // sample:
        lanes = lanes // 2 if lanes > 240 else max(fewer for fewer in range(1, lanes) if 960 % fewer == 0)
    return OrderShape(extent.samples, unit, lanes)


class Order:
    """The samples of an epoch, each once.

    >>> [Order(OrderShape(1000, 8, 4), seed=1)(p) for p in (0, 1, 2, 3, 992)]
    [869, 499, 400, 226, 888]
    """

    def __init__(self, shape: OrderShape, seed: int, trial: int = 0, epoch: int = 0) -> None:
        self._shape, self._key = shape, (seed, trial, epoch)
        self._whole = shape.samples // shape.unit
        self._turns = 0 if shape.unit == 1 else self._whole // shape.lanes
        self._rest = self._turns * shape.lanes * shape.unit
        self._units = Permutation(self._whole, *self._key) if shape.shuffled and self._whole else None
        self._rows: Dict[int, Tuple[int, Permutation]] = {}  # by lane: place of the open unit, its rows
        self._mixed: Optional[Permutation] = None

    def __call__(self, position: int) -> int:
        unit, lanes = self._shape.unit, self._shape.lanes
        if not self._shape.shuffled:
            return position
        if unit == 1:
            assert self._units is not None
            return self._units(position)
        if position >= self._rest:
            if self._mixed is None:
                self._mixed = Permutation(self._shape.samples - self._rest, *self._key, _REST)
            place, row = divmod(self._rest + self._mixed(position - self._rest), unit)
            return (self._units(place) if self._units is not None and place < self._whole else place) * unit + row
        assert self._units is not None
        lane = position % lanes
        turn, row = divmod((position // lanes + lane * unit // lanes) % (self._turns * unit), unit)
        place = turn * lanes + lane
        return self._units(place) * unit + self._open(place)(row)

    def many(self, positions: Sequence[int]) -> Any:
        """The same for many positions: an array, made at once; without NumPy a list."""
        if np is None:
            return [self(position) for position in positions]
        p = np.arange(positions.start, positions.stop, positions.step) if isinstance(positions, range) else np.asarray(positions, dtype=np.int64)
        if not self._shape.shuffled:
            return p
        if self._shape.unit == 1:
            assert self._units is not None
            return self._units.many(p)
        samples = np.empty_like(p)
        in_lanes = p < self._rest
        if in_lanes.any():
            samples[in_lanes] = self._lanes_many(p[in_lanes])
        if not in_lanes.all():
            samples[~in_lanes] = self._rest_many(p[~in_lanes])
        return samples

    def _lanes_many(self, p: Any) -> Any:
        assert self._units is not None
        unit, lanes = self._shape.unit, self._shape.lanes
        lane = p % lanes
        turn, row = np.divmod((p // lanes + lane * unit // lanes) % (self._turns * unit), unit)
        place = turn * lanes + lane
        samples = self._units.many(place) * unit
        by_place = np.argsort(place, kind="stable")
        borders = np.flatnonzero(np.diff(place[by_place])) + 1
        for chosen in np.split(by_place, borders):  # those of one unit
            samples[chosen] += self._open(int(place[chosen[0]])).many(row[chosen])
        return samples

    def _rest_many(self, p: Any) -> Any:
        if self._mixed is None:
            self._mixed = Permutation(self._shape.samples - self._rest, *self._key, _REST)
        place, row = np.divmod(self._rest + self._mixed.many(p - self._rest), self._shape.unit)
        whole = place < self._whole
        if self._units is not None:
            place[whole] = self._units.many(place[whole])
        return place * self._shape.unit + row

    def _open(self, place: int) -> Permutation:
        """The rows of the unit at `place`, which its lane then has open."""
        lane = place % self._shape.lanes
        if lane not in self._rows or self._rows[lane][0] != place:
            self._rows[lane] = place, Permutation(self._shape.unit, *self._key, 1 + place)
        return self._rows[lane][1]


class Mixture:
    """An endless stream of several sources: tuples (source, epoch, sample). `sources`: (shape, weight, from)."""

    def __init__(self, sources: Sequence[Tuple[OrderShape, float, int]], seed: int, trial: int = 0) -> None:
        self._sources, self._seed, self._trial = list(sources), seed, trial
        starts = [-(-begin // PERIOD) for _, _, begin in self._sources]
        for number, (shape, weight, _) in enumerate(self._sources):
            if shape.samples == 0 or not 0 < weight < float("inf"):
                raise ValueError(f"mix: source {number + 1} needs samples, and a weight above 0")
        if 0 not in starts:
            raise ValueError("mix: no source takes part at the beginning: leave out 'from' for one of them")
        self._stages: List[Tuple[int, List[int], List[int]]] = []  # first period, positions before, shares
        for first in sorted(set(starts)):
            shares = _shares([weight if start <= first else 0.0 for start, (_, weight, _) in zip(starts, self._sources)])
            if any(start <= first and share == 0 for start, share in zip(starts, shares)):
                raise ValueError("mix: a source would get less than 1 of 1,000 samples: raise its weight, or leave it out")
            before = [0] * len(shares)
            if self._stages:
                begin, old, each = self._stages[-1]
                before = [b + (first - begin) * share for b, share in zip(old, each)]
            self._stages.append((first, before, shares))
        self._period = -1
        self._places: List[Tuple[int, int]] = []
        self._orders: Dict[int, Tuple[int, Order]] = {}

    def __call__(self, position: int) -> Tuple[int, int, int]:
        period, place = divmod(position, PERIOD)
        first, before, shares = next(stage for stage in reversed(self._stages) if stage[0] <= period)
        if period != self._period:
            owners = [number for number, share in enumerate(shares) for _ in range(share)]
            met = [0] * len(shares)
            self._places = []
            order = Permutation(PERIOD, self._seed, self._trial, 0, _MIXTURE + period)
            for i in range(PERIOD):
                source = owners[order(i)]
                self._places.append((source, met[source]))
                met[source] += 1
            self._period = period
        source, earlier = self._places[place]
        shape = self._sources[source][0]
        epoch, own = divmod(before[source] + (period - first) * shares[source] + earlier, shape.samples)
        if source not in self._orders or self._orders[source][0] != epoch:
            self._orders[source] = epoch, Order(shape, self._seed, self._trial, epoch)
        return source, epoch, self._orders[source][1](own)


def _shares(weights: Sequence[float]) -> List[int]:
    """Thousandths, by largest remainder; of equal remainders the first."""
    total = 0.0
    for weight in weights:
        total += weight
    exact = [weight * PERIOD / total for weight in weights]
    shares = [int(x) for x in exact]
    for i in sorted(range(len(shares)), key=lambda i: shares[i] - exact[i])[: PERIOD - sum(shares)]:
        shares[i] += 1
    return shares
