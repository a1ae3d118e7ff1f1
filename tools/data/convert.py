# SPDX-License-Identifier: Apache-2.0
"""Writes a small dataset in the format of ranktune's `mlp`: groups `train` and `val`, each with `x` and `y`."""

import h5py
import numpy as np


def split(count, val_share, seed):
    """Indices of a deterministic split: (train, val), each ascending."""
    order = np.random.Generator(np.random.Philox(seed)).permutation(count)
    val = round(count * val_share)
    return np.sort(order[val:]), np.sort(order[:val])


def write(path, x, y, val_share, seed, attributes):
    """Writes `x` and `y`, split, with `attributes` (provenance, licence) on the root. The bytes of the file depend
    only on the arguments and the HDF5 library."""
    train, val = split(len(x), val_share, seed)
    with h5py.File(path, "w", libver=("earliest", "v108")) as file:
        for name, value in attributes.items():
            file.attrs[name] = value
        file.attrs["split"] = f"{len(train)} train, {len(val)} val: NumPy's Philox permutation, seed {seed}"
        for name, rows in (("train", train), ("val", val)):
            group = file.create_group(name, track_order=False)
            for field, values in (("x", x), ("y", y)):
                group.create_dataset(field, data=values[rows], track_times=False)
            group["x"].attrs["long_name"] = attributes["x"]
            group["y"].attrs["long_name"] = attributes["y"]
    print(f"{path}: x {x.shape[1:]} {x.dtype}, y {y.dtype}, {len(train)} train, {len(val)} val")
