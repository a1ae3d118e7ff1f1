#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""h5py opens every file of a study while a writer runs, and after it was killed. Usage: h5py_test.py STUDY_WRITER"""

import glob
import os
import signal
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy
except ImportError:
    print("h5py is not installed: skipped")
    sys.exit(77)


def open_all(home):
    """Opens and reads every file that has its final name; returns how many."""
    count = 0
    for path in sorted(glob.glob(home + "/journal/*.h5")):
        try:
            file = h5py.File(path, "r")
        except FileNotFoundError:  # published ahead, not used, removed at the end
            continue
        with file:
            records = file["records"]
            assert bytes(records[:8]) == b"RTJOURNL", path
            assert file.attrs["format"] == "ranktune journal segment"
            assert records.attrs["units"] == "bytes"
            records[:]
        count += 1
    for path in glob.glob(home + "/checkpoints/*/*.h5"):
        with h5py.File(path, "r") as file:
            weight = file["tensors/layers.0.weight"]
            assert weight.shape == (300, 100) and weight[299, 99] == 29999.0, path
            assert weight.attrs["name"] == "layers.0.weight"
            half, brain = file["tensors/every.float16"], file["tensors/every.bfloat16"]
            bits = numpy.arange(65536, dtype=numpy.uint16).reshape(256, 256)
            assert half.dtype == numpy.float16, half.dtype
            numpy.testing.assert_array_equal(half[:], bits.view(numpy.float16))
            assert brain.dtype == numpy.float32, brain.dtype  # HDF5 converts: NumPy has no such type
            numpy.testing.assert_array_equal(brain[:], (bits.astype(numpy.uint32) << 16).view(numpy.float32))
        count += 1
    if os.path.exists(home + "/metrics.h5"):
        with h5py.File(home + "/metrics.h5", "r") as file:
            reports = file["reports"]
            trial, loss = reports["trial"][:], reports["loss"][:]
            assert len(trial) == len(loss) and all(trial == range(len(trial)))
            assert loss[0] == 1.0 and reports["loss"].attrs["role"] == "metric"
            assert reports["verdict"].asstr()[0] == "go_on"
        count += 1
    return count


def main():
    writer = sys.argv[1]
    opened = 0
    with tempfile.TemporaryDirectory() as home:
        for start, kill_after in ((1, 3), (2, 6), (3, None)):
            batches = "400" if kill_after is None else "1000000"
            process = subprocess.Popen([writer, home, str(start), batches])
            rounds = 0
            while process.poll() is None:
                opened += open_all(home)
                rounds += 1
                if rounds == kill_after:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
            expected = 0 if kill_after is None else -signal.SIGKILL
            assert process.returncode == expected, f"the writer ended with {process.returncode}"
            opened += open_all(home)
        print(f"{opened} files opened, none failed")
        assert opened > 10


main()
