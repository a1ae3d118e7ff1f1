#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The weights that `ranktune checkpoint` writes, used by a program that knows nothing of ranktune:
checkpoint_test.py PROGRAM SOURCE_ROOT"""
import json
import os
import pathlib
import stat
import struct
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

PROGRAM = os.path.abspath(sys.argv[1])
DIGITS = pathlib.Path(sys.argv[2]) / "jobs/digits"


def ranktune(cwd, *arguments, code=0):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "OMPI_", "PMIX_", "PMI_"))}
    done = subprocess.run([PROGRAM, *arguments], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=100)
    assert done.returncode == code, (arguments, done.stdout, done.stderr)
    return done.stdout + done.stderr


def read_safetensors(path):
    raw = path.read_bytes()
    size, = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    metadata = header.pop("__metadata__")
    types = {"F32": np.float32, "U64": np.uint64}
    data = raw[8 + size :]
    tensors = {name: np.frombuffer(data[slice(*entry["data_offsets"])], types[entry["dtype"]]).reshape(entry["shape"])
               for name, entry in header.items()}
    assert max(entry["data_offsets"][1] for entry in header.values()) == len(data)
    return metadata, tensors


def accuracy(tensors):
    """Of the network on the val part of the digits, as torch.nn.functional.linear and relu would compute it."""
    with h5py.File(DIGITS / "digits.h5") as file:
        x, y = file["val/x"][:].astype(np.float32), file["val/y"][:]
    x = (x - tensors["input.shift"]) * tensors["input.factor"]
    layers = 1 + max(int(name.split(".")[1]) for name in tensors if name.startswith("layers."))
    for layer in range(layers):
        x = x @ tensors[f"layers.{layer}.weight"].T + tensors[f"layers.{layer}.bias"]
        x = np.maximum(x, 0) if layer + 1 < layers else x
    return float((x.argmax(axis=1) == y).mean())


def where_it_goes(cwd, study, whole):
    """A directory is refused, what is no regular file is written through, and a link stays a link."""
    (cwd / "folder").mkdir()
    said = ranktune(cwd, "checkpoint", study, "best", "-o", "folder", code=2)
    assert "'folder' is a directory; name a file in it: -o folder/FILE (exit 2)" in said and said.count("\n") == 1, said
    assert not list((cwd / "folder").iterdir()) and "is a directory" in ranktune(cwd, "checkpoint", study, "best", "-o", "folder/", code=2)

    (cwd / "folder" / "old").write_text("old")
    for link, target in (("link", "folder/old"), ("folder/second", "../link"), ("dangling", "folder/new")):
        (cwd / link).symlink_to(target)
    for link, target in (("link", "old"), ("folder/second", "old"), ("dangling", "new")):
        ranktune(cwd, "checkpoint", study, "best", "--all", "-o", link)
        assert (cwd / link).is_symlink() and (cwd / "folder" / target).read_bytes() == whole, link
        (cwd / "folder" / target).write_text("old")
    assert sorted(p.name for p in (cwd / "folder").iterdir()) == ["new", "old", "second"]

    os.mkfifo(cwd / "pipe")
    with subprocess.Popen("exec cat pipe > taken", shell=True, cwd=cwd) as reader:
        ranktune(cwd, "checkpoint", study, "best", "--all", "-o", "pipe")
        assert reader.wait(100) == 0
    assert (cwd / "taken").read_bytes() == whole and stat.S_ISFIFO((cwd / "pipe").stat().st_mode)
    piped = subprocess.run([PROGRAM, "checkpoint", study, "best", "--all", "-o", "/dev/stdout"], cwd=cwd, capture_output=True,
                           timeout=100)
    assert piped.returncode == 0 and piped.stdout == whole and b"trial #" in piped.stderr, piped.stderr
    try:
        os.mknod(cwd / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.mknod(cwd / "full", stat.S_IFCHR | 0o666, os.makedev(1, 7))
        (cwd / "to-null").symlink_to("null")
    except PermissionError:
        return  # root alone makes devices
    for device in ("null", "to-null"):
        ranktune(cwd, "checkpoint", study, "best", "-o", device)
    assert "writing 'full' failed" in ranktune(cwd, "checkpoint", study, "best", "-o", "full", code=1)
    assert all(stat.S_ISCHR((cwd / device).stat().st_mode) for device in ("null", "full")) and (cwd / "to-null").is_symlink()


def main():
    with tempfile.TemporaryDirectory(prefix="ranktune-checkpoint-") as name:
        cwd = pathlib.Path(name)
        ranktune(cwd, "run", DIGITS / "digits.toml", "--local", "2", "-o", "d", "study.num_trials=3", "space.lr=0.1",
                 "study.max_iterations=3")
        best = json.loads(ranktune(cwd, "best", "d", "--format", "json"))["best"]
        said = ranktune(cwd, "checkpoint", "d", "best", "--all", "-o", "all.safetensors")
        assert f"trial #{best['trial']} at iteration" in said, said
        metadata, tensors = read_safetensors(cwd / "all.safetensors")
        assert metadata["trial"] == str(best["trial"]) and metadata["study"] == "digits", metadata
        if metadata["iteration"] == str(best["iteration"]):  # otherwise the checkpoint is of a later, worse iteration
            assert abs(accuracy(tensors) - best["value"]) < 1.5 / 359, (accuracy(tensors), best)
        assert accuracy(tensors) > 0.5, accuracy(tensors)
        where_it_goes(cwd, "d", (cwd / "all.safetensors").read_bytes())

        ranktune(cwd, "checkpoint", "d", str(best["trial"]))
        weights_file, = cwd.glob("digits-*.safetensors")
        _, weights = read_safetensors(weights_file)
        assert set(weights) == {n for n in tensors if n.startswith("layers.")}, set(weights)
        for tensor in weights:
            assert np.array_equal(weights[tensor], tensors[tensor]), tensor

        others = [t for t in range(3) if t != best["trial"]]
        assert "only the best trial keeps one" in ranktune(cwd, "checkpoint", "d", str(others[0]), code=2)
        assert "its trials are #0 to #2" in ranktune(cwd, "checkpoint", "d", "9", code=2)
        assert "or best" in ranktune(cwd, "checkpoint", "d", "worst", code=2)

        ranktune(cwd, "run", DIGITS / "digits.toml", "--local", "2", "-o", "two", "study.num_trials=1",
                 "study.max_iterations=4", "checkpoint.interval=1", "checkpoint.keep=2")
        trial, = json.loads(ranktune(cwd, "export", "two", "--format", "json"))["trials"]
        best, other = [c["path"] for c in trial["checkpoints"]]
        taken = best
        for _ in range(2):  # whichever is the best one
            good = ranktune(cwd, "checkpoint", "two", "0", "-o", "good.safetensors")
            path = cwd / "two" / taken
            whole = path.read_bytes()
            path.chmod(0o644)
            path.write_bytes(whole[: len(whole) // 2])
            said = ranktune(cwd, "checkpoint", "two", "0", "-o", "again.safetensors")
            path.write_bytes(whole)
            fell_back = "cannot be used" in said
            assert fell_back == (said.splitlines()[-1].split(":")[0] != good.split(":")[0]), (good, said)
            if fell_back:
                break
            taken = other
        assert fell_back, said
        assert not list(cwd.glob("*.tmp*"))
    print("2 studies, weights verified")


main()
