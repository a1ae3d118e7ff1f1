# SPDX-License-Identifier: Apache-2.0
"""Writes a small dataset in the format of ranktune's `mlp`: groups `train` and `val`, each with `x` and `y`, and
`test`, which `mlp` does not read."""

import h5py
import numpy as np


def split(count, val_share, test_share, seed):
    """Indices of a deterministic split, each ascending: train, val, and test where its share is not 0."""
    order = np.random.Generator(np.random.Philox(seed)).permutation(count)
    val = round(count * val_share)
    end = val + round(count * test_share)
    parts = {"train": np.sort(order[end:]), "val": np.sort(order[:val])}
    return parts | ({"test": np.sort(order[val:end])} if end > val else {})


def write(path, x, y, val_share, seed, attributes, test_share=0.0):
    """Writes `x` and `y`, split, with `attributes` (provenance, licence) on the root. The bytes of the file depend
    only on the arguments and the HDF5 library."""
    parts = split(len(x), val_share, test_share, seed)
    counts = ", ".join(f"{len(rows)} {name}" for name, rows in parts.items())
    with h5py.File(path, "w", libver=("earliest", "v108")) as file:
        for name, value in attributes.items():
            file.attrs[name] = value
        file.attrs["split"] = f"{counts}: NumPy's Philox permutation, seed {seed}"
        for name, rows in parts.items():
            group = file.create_group(name, track_order=False)
            for field, values in (("x", x), ("y", y)):
                group.create_dataset(field, data=values[rows], track_times=False)
            group["x"].attrs["long_name"] = attributes["x"]
            group["y"].attrs["long_name"] = attributes["y"]
    print(f"{path}: x {x.shape[1:]} {x.dtype}, y {y.dtype}, {counts}")
