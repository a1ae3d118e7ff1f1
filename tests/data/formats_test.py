#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that NumPy, h5py and tar wrote, as data::Source reads them: formats_test.py READ_ROWS [TEST...]"""
import io
import json
import os
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest

try:
    import h5py
    import numpy as np
except ImportError:
    print("skipped: this Python has no h5py and NumPy (Debian: python3-h5py)")
    sys.exit(77)

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/python"))
import ranktune_files  # noqa: E402

PROGRAM = sys.argv[1]


def tar_with(path, kind, name):
    """An archive of two members, the second one of this kind."""
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        for number, (of_kind, of_name) in enumerate(((tarfile.REGTYPE, "images/00000.jpg"), (kind, name))):
            member = tarfile.TarInfo(of_name)
            member.type, member.size = of_kind, 4 * (of_kind not in (tarfile.LNKTYPE, tarfile.SYMTYPE))
            member.linkname = "images/00000.jpg" if number == 1 else ""
            archive.addfile(member, io.BytesIO(b"0123"))
    return path


class Formats(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ranktune-formats-")
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)

    def run_it(self, path, field, **options):
        return subprocess.run([PROGRAM, str(path), field, *(f"{name}={value}" for name, value in options.items())], capture_output=True)

    def reads(self, path, field, array, chunk=1, **options):
        done = self.run_it(path, field, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.decode(), f"{array.dtype.name}, samples: {len(array)}, chunk: {chunk}\n")
        self.assertEqual(done.stdout, array[::-1].tobytes())

    def refuses(self, path, field, *words, **options):
        done = self.run_it(path, field, **options)
        self.assertEqual(done.returncode, 1, done.stderr)
        for word in (str(path), *words):
            self.assertIn(word, done.stderr.decode())

    def array(self, shape=(100, 3, 7), dtype="float32"):
        return (np.random.default_rng(1).random(shape) * 100).astype(dtype)

    def test_numpy(self):
        path = self.folder / "x.npy"
        for dtype in ("int8", "uint16", "int64", "float16", "float32", "float64"):
            np.save(path, self.array(dtype=dtype))
            self.reads(path, "x", self.array(dtype=dtype))
        np.save(path, np.arange(5))
        self.reads(path, "x", np.arange(5))
        np.save(path, np.asfortranarray(self.array((4, 5))))
        self.refuses(path, "x", "numpy.ascontiguousarray")
        np.save(path, np.array(["a", "b"]))
        self.refuses(path, "x", "descr")
        np.save(path, self.array())
        path.write_bytes(path.read_bytes()[:-1])
        self.refuses(path, "x", "cut off")

    def test_raw_numbers_and_tokens(self):
        path = self.folder / "x.raw"
        self.array().tofile(path)
        self.reads(path, "x", self.array(), dtype="float32", shape="3,7")
        self.refuses(path, "x", "no multiple", dtype="float32", shape="11")
        self.refuses(path, "x", "not one of int8", dtype="float31", shape="3,7")
        self.refuses(path, "x", "the format is unknown")
        path = self.folder / "x.bin"
        tokens = np.arange(1003, dtype="uint16")
        tokens.tofile(path)
        self.reads(path, "tokens", tokens[:1000].reshape(10, 100), dtype="uint16", tokens=100)
        self.refuses(path, "tokens", "x.idx")

    def test_megatrons_index(self):
        path = self.folder / "x.bin"
        tokens = np.arange(1000, dtype="int32")
        tokens.tofile(path)
        sizes, pointers = [300, 500, 200], [0, 1200, 3200]
        index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, 3, 4) + struct.pack("<3i", *sizes) + struct.pack("<3Q", *pointers) + struct.pack("<4Q", 0, 1, 2, 3)
        (self.folder / "x.idx").write_bytes(index)
        self.reads(path, "tokens", tokens.reshape(10, 100), tokens=100)
        self.assertEqual(self.run_it(path, "tokens").stdout, tokens.tobytes())
        (self.folder / "x.idx").write_bytes(index[:40])
        done = self.run_it(path, "tokens")
        self.assertIn("x.idx': is cut off", done.stderr.decode())

    def test_safetensors(self):
        path = self.folder / "x.safetensors"
        x, y = self.array(), np.arange(100)
        header = json.dumps({"x": {"dtype": "F32", "shape": [100, 3, 7], "data_offsets": [0, x.nbytes]},
                             "y": {"dtype": "I64", "shape": [100], "data_offsets": [x.nbytes, x.nbytes + y.nbytes]}}).encode()
        path.write_bytes(struct.pack("<Q", len(header)) + header + x.tobytes() + y.tobytes())
        self.reads(path, "x", x)
        self.reads(path, "y", y)
        self.refuses(path, "z", "it has x, y")
        path.write_bytes(path.read_bytes()[:-1])
        self.refuses(path, "y", "tensor 'y'", "cut off")

    def test_hdf5_that_is_contiguous(self):
        path = self.folder / "x.h5"
        with h5py.File(path, "w") as file:
            for dtype in ("int8", "uint8", "float16", "float64"):
                file[dtype] = self.array(dtype=dtype)
            file["big"] = self.array(dtype=">f4")
            file["train/x"] = self.array()
            file.create_dataset("never", (100, 2), "int32", fillvalue=7)
        for dtype in ("int8", "uint8", "float16", "float64"):
            self.reads(path, dtype, self.array(dtype=dtype), chunk=100)
        self.reads(path, "big", self.array(), chunk=100)
        self.reads(path, "never", np.full((100, 2), 7, "int32"), chunk=100)
        self.reads(path, "x", self.array(), group="train")
        self.refuses(path, "x", "has no group 'test'", group="test")

    def test_hdf5_in_chunks(self):
        path = self.folder / "x.h5"
        for number, options in enumerate((dict(), dict(compression="gzip"), dict(compression="gzip", shuffle=True, fletcher32=True), dict(fletcher32=True),
                                          dict(shuffle=True), dict(scaleoffset=0), dict(scaleoffset=0, shuffle=True))):
            x = self.array((103, 10, 7), "int16" if "scaleoffset" in options else "float32")
            for chunks in ((16, 10, 7), (16, 3, 2), (200, 4, 7), (1, 10, 1)):
                with h5py.File(path, "w") as file:
                    file.create_dataset("x", data=x, chunks=tuple(min(c, n) for c, n in zip(chunks, x.shape)), **options)
                with self.subTest(options=options, chunks=chunks):
                    self.reads(path, "x", x, chunk=min(chunks[0], 103), memory=1 if number % 2 == 0 else 1 << 30)
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=np.zeros((100, 10)), compression="lzf")  # a filter of h5py alone
        self.refuses(path, "x", "has a filter that this HDF5 lacks", "h5repack")
        with h5py.File(path, "w") as file:  # a chunk of zeros that was never written, and one that skipped its filter
            part = file.create_dataset("x", (64, 5), "int16", chunks=(16, 5), compression="gzip", fillvalue=-3)
            part[16:32] = np.arange(80).reshape(16, 5)
            part.id.write_direct_chunk((32, 0), np.arange(80, dtype="int16").tobytes(), filter_mask=1)
            expected = part[:]
        self.reads(path, "x", expected, chunk=16)

    def test_hdf5_that_is_damaged(self):
        path = self.folder / "x.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=self.array(), chunks=(10, 3, 7), fletcher32=True)
            where = file["x"].id.get_chunk_info(3).byte_offset if hasattr(file["x"].id, "get_chunk_info") else None
        if where is not None:
            damaged = bytearray(path.read_bytes())
            damaged[where + 11] ^= 1
            path.write_bytes(damaged)
            self.refuses(path, "x", "field 'x', samples 30 to 39", "fletcher32")
        path.write_bytes(path.read_bytes()[:100])
        self.refuses(path, "x", "cannot be opened as HDF5")
        # The index of chunks: a B-tree, or with the format of 1.10 an array of a fixed or growing length, or one of the second version.
        for version, sign, most in (("earliest", b"TREE\1", (100, 3, 7)), ("latest", b"FADB", (100, 3, 7)), ("latest", b"EAIB", (None, 3, 7)),
                                    ("latest", b"BTHD", (None, None, 7))):
            with h5py.File(path, "w", libver=version) as file:
                file.create_dataset("x", data=self.array(), chunks=(10, 3, 7), maxshape=most)
            intact = path.read_bytes()
            with self.subTest(index=sign):
                self.assertEqual(intact.count(sign), 1)
                path.write_bytes(intact.replace(sign, b"????" + sign[4:]))
                self.refuses(path, "x", "field 'x', samples 0 to 9", "index of chunks")
        with h5py.File(path, "w") as file:
            file["x"], file["y"], file["z"] = np.zeros(5), np.zeros(5), h5py.SoftLink("/nowhere")
        self.refuses(path, "x", "'z' cannot be opened")
        with h5py.File(path, "w") as file:  # nothing was ever written
            space, options = h5py.h5s.create_simple((100, 3)), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            options.set_chunk((10, 3))
            h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_INT32, space, options)
        self.reads(path, "x", np.zeros((100, 3), "int32"), chunk=10)
        with h5py.File(path, "w") as file:
            file["x"], file["y"] = np.zeros((5, 2)), np.zeros(6)
        self.refuses(path, "x", "'y' has 6 samples, and 'x' has 5")
        with h5py.File(path, "w") as file:
            file["train/x"] = np.zeros(5)
        self.refuses(path, "x", "set `group` to one of its groups: train")

    def test_tar(self):
        path = self.folder / "x.tar"
        for kind in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            with tarfile.open(path, "w", format=kind) as archive:
                for i in range(5):
                    for name, content in (("jpg", bytes([i]) * (i * 300)), ("cls", str(i).encode())):
                        folder = "images/" + ("d" * 130 + "/") * (kind != tarfile.USTAR_FORMAT)
                        member = tarfile.TarInfo(f"./{folder}{i:05}.{name}")
                        member.size = len(content)
                        archive.addfile(member, io.BytesIO(content))
            self.assertEqual(self.run_it(path, "cls").stdout, b"01234")
            self.assertEqual(self.run_it(path, "jpg").stdout, b"".join(bytes([i]) * (i * 300) for i in range(5)))
        self.refuses(path, "png", "it has jpg, cls")
        path.write_bytes(path.read_bytes()[:2000])
        self.refuses(path, "cls", "cut off")

    def test_members_of_a_tar_that_are_no_files(self):
        path = self.folder / "x.tar"
        for kind, words in ((tarfile.LNKTYPE, "is a link"), (tarfile.SYMTYPE, "is a link"), (tarfile.GNUTYPE_SPARSE, "is sparse"), (b"M", "'M'")):
            for name in ("images/00001.png", "images/" + "d" * 130 + "/00001.png"):
                self.refuses(tar_with(path, kind, name), "jpg", f"member '{name}'", words, "tar --sort=name --dereference --hard-dereference -cf")
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "of all"}) as archive:
            for kind, name in ((tarfile.DIRTYPE, "images"), (tarfile.FIFOTYPE, "images/pipe.jpg"), (tarfile.CONTTYPE, "images/a.jpg")):
                member = tarfile.TarInfo(name)
                member.type, member.size = kind, 3 * (kind == tarfile.CONTTYPE)
                archive.addfile(member, io.BytesIO(b"abc"))
        self.assertEqual(self.run_it(path, "jpg").stdout, b"abc")
        with open(self.folder / "a.jpg", "wb") as file:
            file.truncate(1 << 20)
            file.seek(1 << 19)
            file.write(b"x")
        for form in ("gnu", "pax"):  # as GNU tar packs a file with holes
            subprocess.run(["tar", "-S", f"--format={form}", "-cf", path, "-C", self.folder, "a.jpg"], check=True)
            self.refuses(path, "jpg", "member 'a.jpg' is sparse")
        (self.folder / "images").mkdir()
        (self.folder / "images/0.jpg").write_bytes(b"zero")
        os.symlink("0.jpg", self.folder / "images/1.jpg")
        os.link(self.folder / "images/0.jpg", self.folder / "images/2.jpg")
        subprocess.run(f"tar --sort=name --dereference --hard-dereference -cf {path} -C {self.folder / 'images'} .", shell=True, check=True)
        self.assertEqual(self.run_it(path, "jpg").stdout, b"zerozerozero")

    def test_decoded_rows(self):
        path = self.folder / "x.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=self.array(), chunks=(10, 3, 7), compression="gzip")
        self.reads(path, "x", self.array(), chunk=10, decode=self.folder / "rows.safetensors")
        table = self.folder / "t.csv"
        table.write_text("id,x1,x2,x3,label,y\n7,1,2.5,3,0,\n8,4,5,6,1,1e3\n")
        for field, expected in (("id", np.array([7, 8])), ("x", np.array([[1, 2.5, 3], [4, 5, 6]])), ("label", np.array([0, 1])), ("y", np.array([np.nan, 1000]))):
            self.reads(table, field, expected, decode=self.folder / f"{field}.safetensors")
        table.write_text("a,b\n1,2\n3,red\n")
        self.refuses(table, "a", "line 3, column 'b': 'red' is no number", decode=self.folder / "no.safetensors")
        table.write_text("a,b\n1\n")
        self.refuses(table, "a", "line 2: the row has 1 cell, and the first line names 2", decode=self.folder / "no.safetensors")

    def test_formats_that_are_not_read(self):
        for name in ("x.parquet", "x.arrow", "x.tfrecord", "data.mdb", "x.csv", "x.npz", "x.tar.gz"):
            path = self.folder / name
            path.write_bytes(b"")
            self.refuses(path, "x", "convert it: ")
            with self.assertRaises(ValueError) as caught:  # the same words in Python
                ranktune_files.open_file(str(path))
            self.refuses(path, "x", str(caught.exception))
        self.refuses(self.folder, "x", f"is a folder; make one file of it: tar --sort=name --dereference --hard-dereference -cf OUT.tar -C {self.folder} .")
        self.refuses(self.folder / "none.npy", "x", os.strerror(2))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
