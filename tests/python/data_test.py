#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/python/ranktune_data.py and ranktune_order.py: the order of samples, and this rank's share of them. data_test.py [TEST...]"""
import contextlib
import doctest
import gc
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import tracemalloc
import unittest
import weakref

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/python"))
for name in [name for name in os.environ if name.startswith("RANKTUNE_") or name in ("RANK", "WORLD_SIZE")]:
    del os.environ[name]
import ranktune  # noqa: E402
import ranktune_data  # noqa: E402
import ranktune_files  # noqa: E402
import ranktune_order  # noqa: E402
from ranktune_order import Extent, Mixture, Order, OrderShape, Permutation, order_shape  # noqa: E402

np = ranktune_order.np
try:
    import h5py
except ImportError:
    h5py = None
try:
    import torch
except ImportError:
    torch = None


class Orders(unittest.TestCase):
    """The values are those of tests/data/order_test.cpp."""

    def test_reference_values(self):
        self.assertEqual(doctest.testmod(ranktune_order).failed, 0)
        for size, epoch, values in (
                (10, 0, [2, 1, 5, 0, 7, 3]), (10, 1, [9, 7, 2, 4, 8, 3]),
                (1000003, 0, [22609, 451063, 445299, 370119, 10645, 738366]), (1000003, 1, [57038, 946502, 7710, 823970, 299594, 754048]),
                (10 ** 10, 0, [3769914555, 2680136087, 8606121403, 832508741, 7141924457, 9958304587]),
                (10 ** 10, 1, [9021812909, 4648540013, 2230029754, 9947787011, 5845481848, 274129375])):
            self.assertEqual([Permutation(size, 1, 0, epoch)(x) for x in range(6)], values)
            if np is not None:
                self.assertEqual(Permutation(size, 1, 0, epoch).many(np.arange(min(size, 100)))[:6].tolist(), values)
        order = Order(OrderShape(1000, 8, 4), 1)
        self.assertEqual([order(p) for p in (0, 1, 2, 3, 4, 500, 991, 992, 998, 999)], [869, 499, 400, 226, 866, 994, 230, 888, 890, 893])
        mixture = Mixture([(OrderShape(5000), 0.7, 0), (OrderShape(100000), 0.2, 0), (OrderShape(37), 0.1, 2500)], 1)
        self.assertEqual([mixture(p) for p in (0, 3001, 3006, 19982, 19997, 19999)],
                         [(0, 0, 4620), (1, 0, 58339), (2, 0, 31), (2, 45, 7), (1, 0, 12511), (0, 2, 2015)])

    def test_the_same_with_and_without_numpy(self):
        if np is None:
            self.skipTest("no NumPy here")
        shapes = [OrderShape(*shape) for shape in ((300,), (2049,), (65536,), (70001,), (4097, 100, 4), (1000, 8, 240), (90, 100, 4), (70001, 8, 9000), (20, 1, 960, False))]
        fast = [Order(shape, 3, 1, 7).many(range(0, shape.samples, 3)).tolist() for shape in shapes]
        ranktune_order.np = None
        try:
            slow = [Order(shape, 3, 1, 7).many(range(0, shape.samples, 3)) for shape in shapes]
        finally:
            ranktune_order.np = np
        self.assertEqual(fast, slow)

    def test_every_sample_once(self):
        for samples in (1, 2, 7, 239, 4097):
            for unit in (1, 2, 100):
                for lanes in (1, 4, 240):
                    order = Order(OrderShape(samples, unit, lanes), 3, 1, 7)
                    self.assertEqual(sorted(order.many(range(samples))), list(range(samples)))

    def test_shapes(self):
        self.assertEqual(order_shape(Extent(10 ** 10, 4096)), OrderShape(10 ** 10))
        self.assertEqual(order_shape(Extent(1000, 3136, 256)), OrderShape(1000))
        for chunk, unit, lanes in ((256, 256, 960), (8, 88, 960), (512, 512, 480), (1400, 1400, 240), (1500, 1500, 192), (5000, 5000, 64),
                                   (400_000, 400_000, 1)):
            self.assertEqual(order_shape(Extent(10 ** 7, 3136, chunk)), OrderShape(10 ** 7, unit, lanes))


@unittest.skipIf(np is None, "no NumPy here (Debian: python3-numpy)")
class Datasets(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ranktune-data-")
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)
        self.addCleanup(self.environment)
        ranktune._reports = 0
        ranktune_data._used.clear()

    def environment(self, **values):
        for name in ("RANK", "WORLD_SIZE", "RANKTUNE_ITERATION", "RANKTUNE_SEED", "RANKTUNE_DATA", "RANKTUNE_TRIAL"):
            os.environ.pop(name, None)
        os.environ.update(values)

    def numbers(self, count, name="x.npy"):
        """A file whose sample i is (i, 2 i)."""
        path = str(self.folder / name)
        np.save(path, np.stack([np.arange(count), 2 * np.arange(count)], 1))
        return path

    def test_a_trial_that_resumes_on_other_ranks_gets_each_sample_once(self):
        path = self.numbers(700)
        met = []
        for iteration, ranks in enumerate((4, 3, 2, 5, 1, 4, 6)):  # a new start each time: 2 epochs
            for rank in range(ranks):
                self.environment(RANK=str(rank), WORLD_SIZE=str(ranks), RANKTUNE_ITERATION=str(iteration), RANKTUNE_SEED="5")
                for batch in ranktune.dataset(path, batch=96, per_iteration=200):
                    self.assertLessEqual(abs(len(batch) - 96 / ranks if len(batch) * ranks > 90 else 0), 1)
                    met += batch[:, 0].tolist()
        self.assertEqual(sorted(met), sorted(2 * list(range(700))))
        self.assertNotEqual(met[:700], sorted(met[:700]))

    def test_the_first_batch_of_a_start_orders_no_more_than_itself(self):
        data = ranktune.dataset(self.numbers(70_000), batch=64)
        order = Order(OrderShape(70_000), data._seed)
        for number, ordered in ((300, range(19_200, 19_264)), (301, range(16_384, 32_768)), (302, range(16_384, 32_768))):
            begin = number * 64
            self.assertEqual(data._mapped(0, number)[0][:, 0].tolist(), [order(position) for position in range(begin, begin + 64)])
            self.assertEqual(data._window[0], ordered)

    def test_batches_are_as_many_on_all_ranks(self):
        path = self.numbers(65)
        counts = []
        for rank in range(4):
            self.environment(RANK=str(rank), WORLD_SIZE="4")
            counts.append([len(batch) for batch in ranktune.dataset(path, batch=64, shuffle="none")])
        self.assertEqual(counts, [[16]] * 4)  # one sample for four ranks is left out
        self.environment()
        self.assertEqual([len(batch) for batch in ranktune.dataset(path, batch=30)], [30, 30, 5])
        self.assertEqual([len(batch) for batch in ranktune.dataset(path, batch=30, drop_last=True)], [30, 30])
        self.assertEqual(next(iter(ranktune.dataset(path, batch=2, shuffle="none"))).tolist(), [[0, 0], [1, 2]])

    def test_fewer_samples_than_ranks_are_no_batch(self):
        path = self.numbers(65)
        for rank in range(4):
            self.environment(RANK=str(rank), WORLD_SIZE="4")
            data = ranktune.dataset(path, batch=64, per_iteration=3, map=lambda sample, random: sample)
            self.assertEqual((len(data), list(data)), (0, []))

    def test_names_of_the_study(self):
        (self.folder / "t.bin").write_bytes(np.arange(1003, dtype="uint16").tobytes())
        self.environment(RANKTUNE_DATA=json.dumps({"text": {"path": str(self.folder / "t.bin"), "dtype": "uint16", "tokens": 100, "shuffle": "none"}}))
        self.assertEqual(next(iter(ranktune.dataset("text", batch=1)))[0].tolist(), list(range(100)))
        with self.assertRaisesRegex(FileNotFoundError, r"\[data\] has text"):
            ranktune.dataset("train", batch=1)
        self.environment(RANKTUNE_DATA=json.dumps({"text": {"path": "x", "tokns": 100}}))
        with self.assertRaisesRegex(ValueError, "'text' has the unknown option 'tokns'"):
            ranktune.dataset("text", batch=1)

    def test_mixtures(self):
        mix = [{"source": self.numbers(100, "a.npy"), "weight": 0.25}, {"source": self.numbers(1000, "b.npy"), "weight": 0.75, "from": 1000}]
        rows = np.concatenate(list(ranktune.dataset(mix, batch=500, per_iteration=2000)))
        self.assertEqual(sorted(rows[:1000, 0].tolist()), sorted(10 * list(range(100))))  # only the first one, yet
        self.assertGreater(int((rows[1000:, 0] >= 100).sum()), 600)  # nine of ten of 750
        np.save(self.folder / "w.npy", np.zeros((10, 3), dtype="uint8"))
        with self.assertRaisesRegex(ValueError, "the same fields, types and shapes: '.*a.npy' has .*w.npy"):
            ranktune.dataset([mix[0], {"source": str(self.folder / "w.npy")}], batch=5, per_iteration=5)
        self.environment(RANK="1", WORLD_SIZE="4")
        with self.assertRaisesRegex(ValueError, "batch=2 has no sample for each of 4 ranks"):
            ranktune.dataset(mix, batch=2, per_iteration=10)
        self.environment()
        with self.assertRaisesRegex(ValueError, "per_iteration"):
            ranktune.dataset(mix, batch=500)
        self.environment(RANKTUNE_DATA=json.dumps({"a": {"path": mix[0]["source"]}, "both": {"mix": [{**mix[0], "source": "a"}, mix[1]]}}))
        self.assertEqual(np.concatenate(list(ranktune.dataset("both", batch=500, per_iteration=2000))).tolist(), rows.tolist())
        with self.assertRaisesRegex(KeyError, "'both' of .* is a mixture of a, .*dataset"):
            ranktune.data("both")
        for wrong, words in (({"source": "a", "wait": 1}, "not source, wait"), ({"source": "both"}, "not another mixture")):
            with self.assertRaisesRegex(ValueError, words):
                ranktune.dataset([wrong], batch=5, per_iteration=5)

    def test_sources_of_a_mixture_keep_their_orders(self):
        for name, first, count in (("web", 0, 100), ("code", 1000, 1000)):
            np.arange(first, first + count, dtype="int64").tofile(self.folder / name)
        entry = {name: {"path": str(self.folder / name), "dtype": "int64", "shape": [1]} for name in ("web", "code")}
        entry["web"]["shuffle"] = "none"
        entry["all"] = {"mix": [{"source": "web", "weight": 3.0}, {"source": "code", "weight": 1.0, "from": 0}]}
        self.environment(RANKTUNE_DATA=json.dumps(entry), RANKTUNE_SEED="1")
        rows = next(iter(ranktune.dataset("all", batch=1000, per_iteration=1000)))[:, 0]
        self.assertEqual(rows[30:40].tolist(), [1630, 25, 26, 27, 1464, 28, 29, 1739, 1466, 1545])  # tests/trainables/data_test.cpp

    def test_damaged_files_are_named(self):
        (self.folder / "x.npy").write_bytes((self.folder / self.numbers(50)).read_bytes()[:-9])
        (self.folder / "x.safetensors").write_bytes((20).to_bytes(8, "little") + b'{"x": {"dtype": 1}}  ')
        (self.folder / "x.tar").write_bytes(b"x" * 2000)
        (self.folder / "x.bin").write_bytes(b"x")
        (self.folder / "x.h5").write_bytes(b"x" * 2000)
        for name, options in (("x.npy", {}), ("x.safetensors", {}), ("x.tar", {}), ("x.bin", {"dtype": "uint16", "tokens": 9}),
                              *([("x.h5", {})] if h5py is not None else [])):
            self.environment(RANKTUNE_DATA=json.dumps({"train": {"path": str(self.folder / name), **options}}))
            for asked, called in ((str(self.folder / name), ""), ("train", "data.train: ")):
                with self.assertRaisesRegex(ValueError, f"^{called}data file '[^']*{name}'") as caught:
                    ranktune.dataset(asked, batch=1, **options)
                self.assertEqual(str(caught.exception).count(name), 1)
                self.assertTrue(caught.exception.__context__ is None)

    def test_formats(self):
        x = np.random.default_rng(1).random((103, 4, 5)).astype("float32")
        x.tofile(self.folder / "x.raw")
        self.same(x, "x.raw", dtype="float32", shape=(4, 5))
        header = json.dumps({"x": {"dtype": "F32", "shape": list(x.shape), "data_offsets": [0, x.nbytes]}}).encode()
        (self.folder / "x.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + x.tobytes())
        self.same(x, "x.safetensors")
        (self.folder / "x.bin").write_bytes(b"12")
        with self.assertRaisesRegex(ValueError, "the format is unknown"):
            ranktune.dataset(str(self.folder / "x.bin"), batch=1)
        with self.assertRaisesRegex(ValueError, f"'{self.folder}': is a folder; make one file of it: tar --sort=name .* -cf OUT.tar -C {self.folder} ."):
            ranktune.dataset(str(self.folder), batch=1)
        with tarfile.open(self.folder / "x.tar", "w") as archive:
            for i in range(5):
                for field, content in (("jpg", b"j" * i), ("cls", b"%d" % i)):
                    member = tarfile.TarInfo(f"images/{i:03}.{field}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
        (batch,) = ranktune.dataset(str(self.folder / "x.tar"), batch=5, shuffle="none")
        self.assertEqual(batch[3], {"jpg": b"jjj", "cls": b"3"})
        whole = (self.folder / "x.tar").read_bytes()
        for content in (whole[:1536] + b"?" + whole[1537:], whole[:1536]):  # after the second member
            (self.folder / "y.tar").write_bytes(content)
            with self.assertRaisesRegex(ValueError, "y.tar': member at byte .* is cut off, or damaged"):
                ranktune.dataset(str(self.folder / "y.tar"), batch=1)
        for kind, words in ((tarfile.LNKTYPE, "is a link"), (tarfile.SYMTYPE, "is a link"), (tarfile.GNUTYPE_SPARSE, "is sparse"), (b"M", "is sparse.*'M'")):
            with tarfile.open(self.folder / "y.tar", "w") as archive:
                for of_kind, name in ((tarfile.DIRTYPE, "images"), (tarfile.CONTTYPE, "images/0.jpg"), (kind, "images/1.jpg")):
                    member = tarfile.TarInfo(name)
                    member.type, member.linkname = of_kind, "images/0.jpg"
                    archive.addfile(member)
            with self.assertRaisesRegex(ValueError, f"member 'images/1.jpg' {words}.*tar --sort=name --dereference --hard-dereference -cf"):
                ranktune.dataset(str(self.folder / "y.tar"), batch=1)

    def test_an_option_that_a_format_does_not_read_is_refused(self):
        options = {"dtype": "uint8", "shape": (2,), "tokens": 2, "group": "g"}
        for name, of_format, read in (("x.npy", ".npy", ()), ("x.safetensors", ".safetensors", ()), ("x.tar", ".tar", ()), ("x.h5", "HDF5", ("group",)),
                                      ("x.bin", "tokens", ("dtype", "tokens", "shape"))):
            (self.folder / name).write_bytes(b"")
            for option in set(options) - set(read):
                with self.assertRaises(ValueError) as caught:
                    ranktune.dataset(str(self.folder / name), batch=1, **{option: options[option]})
                self.assertEqual(str(caught.exception), f"data file '{self.folder / name}': `{option}` says nothing about {of_format}; remove it")
        with self.assertRaisesRegex(ValueError, "`tokens` says nothing about raw numbers, which have a `shape`; remove it"):
            ranktune.dataset(str(self.folder / "x.bin"), batch=1, dtype="uint8", shape=(2,), tokens=2)
        (self.folder / "x.bin").write_bytes(b"12345678")
        (self.folder / "x.idx").write_bytes(b"MMIDIDX\0\0" + (1).to_bytes(8, "little") + b"\x08" + bytes(16))
        with self.assertRaisesRegex(ValueError, "dtype is 'uint8', and '.*x.idx' says uint16; remove `dtype`"):
            ranktune.dataset(str(self.folder / "x.bin"), batch=1, dtype="uint8", tokens=2)
        self.same(np.frombuffer(b"12345678", "uint16").reshape(2, 2), "x.bin", dtype="uint16", tokens=2)

    def same(self, expected, name, **options):
        rows = list(ranktune.dataset(str(self.folder / name), batch=10, shuffle="none", **options))
        self.assertEqual(np.concatenate(rows).tolist(), expected.tolist())

    @unittest.skipIf(h5py is None, "no h5py here (Debian: python3-h5py)")
    def test_rows_of_arrays_that_are_not_contiguous_or_not_aligned_are_read_alone(self):
        rows = np.arange(60_000.0).reshape(20_000, 3)
        np.save(self.folder / "f.npy", np.asfortranarray(rows))
        raw = np.zeros(rows.nbytes + 1, np.uint8)
        unaligned = raw[1:].view(np.float64).reshape(rows.shape)
        unaligned[:] = rows
        self.assertFalse(unaligned.flags.aligned)
        source = ranktune_files.open_file(str(self.folder / "f.npy"))
        self.assertFalse(source.fields["x"].flags.c_contiguous)
        for read in (source, ranktune_files.Source("u", {"x": unaligned})):
            tracemalloc.start()
            batch = read.take([7, 0, 19_999])
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            self.assertEqual(batch.tolist(), rows[[7, 0, 19_999]].tolist())
            self.assertLess(most, rows.nbytes // 10)

    def test_hdf5(self):
        x = np.random.default_rng(1).random((103, 4, 5)).astype("float32")
        for name, options in (("a.h5", {}), ("b.h5", {"chunks": (8, 4, 5), "compression": "gzip"}), ("x.h5", {"dtype": ">f4"})):
            with h5py.File(self.folder / name, "w") as file:
                file.create_dataset("x", data=x, **options)
                file["train/x"], file["train/y"] = x, np.arange(103)
            self.same(x, name)
            self.same(x, name, shuffle_memory="1KiB")
        batch = next(iter(ranktune.dataset(str(self.folder / "x.h5"), batch=103, group="train")))
        self.assertEqual(batch["x"].tolist(), x[batch["y"]].tolist())
        lanes = ranktune.dataset(str(self.folder / "x.h5"), batch=103, group="train", shuffle="lanes")
        self.assertEqual(sorted(next(iter(lanes))["y"].tolist()), list(range(103)))
        with h5py.File(self.folder / "y.h5", "w") as file:
            file["x"], file["z"] = x, h5py.SoftLink("/nowhere")
        with self.assertRaisesRegex(ValueError, "'z' cannot be opened"):
            ranktune.dataset(str(self.folder / "y.h5"), batch=1)

    @unittest.skipIf(h5py is None, "no h5py here (Debian: python3-h5py)")
    def test_orders_that_mix_little_or_read_more_say_so_once(self):
        with h5py.File(self.folder / "x.h5", "w") as file:
            file.create_dataset("x", data=np.zeros((100, 2 ** 17)), chunks=(10, 2 ** 17))  # 1 MiB a row
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            ranktune.dataset(str(self.folder / "x.h5"), batch=10, shuffle="lanes", shuffle_memory="110MiB")  # mixes all 10
            self.environment(RANK="0", WORLD_SIZE="4")
            for memory in ("50MiB", "50MiB", "1GiB"):
                ranktune.dataset(str(self.folder / "x.h5"), batch=10, shuffle_memory=memory)
            self.environment(RANK="1", WORLD_SIZE="4")
            ranktune.dataset(str(self.folder / "x.h5"), batch=10, shuffle_memory="20MiB")
        lines = told.getvalue().splitlines()
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[0], r'x.h5\': batches mix 5 of 10 chunks, .*\(52,428,800 bytes\); shuffle_memory = "100MiB" mixes 10')
        self.assertRegex(lines[1], "x.h5': each chunk is read on 4 ranks, as 4 ranks do not divide the 5 chunks that are mixed; 1 or 5 do")

    def test_reports_say_how_long_they_waited_and_whether_samples_were_left_out(self):
        path = self.numbers(100)
        program = ("import ranktune\ndata = ranktune.dataset({path!r}, batch=10)\nfor i in range(3):\n"
                   "    for n, batch in enumerate(data):\n        if n == {last}: break\n    ranktune.report(loss=1.0)\n")
        for last, words in ((99, ""), (4, "this iteration took 50 samples, and per_iteration is 100")):
            done = subprocess.run([sys.executable, "-W", "error", "-c", program.format(path=path, last=last)], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": str(pathlib.Path(ranktune.__file__).parent), "PYTHONDONTWRITEBYTECODE": "1"})
            self.assertEqual(done.returncode, 0, done.stderr)
            for name in ("data_wait", "data_wait/disk", "data_wait/decode"):
                self.assertEqual(done.stdout.count(f" {name}="), 3)
            self.assertEqual(done.stderr.count("\n"), 1 if words else 0)
            self.assertIn(words, done.stderr)

    def test_a_wait_is_divided_as_the_time_of_who_made_the_batch(self):
        data = ranktune.dataset(self.numbers(100), batch=50)
        data._came(0, 2.0, {"disk": 1.0, "decode": 3.0})
        data._came(1, 5.0, {"disk": 2.0, "map": 1.0})  # two seconds of it are of a start, or a transport
        for expected in ({"data_wait": 7.0, "data_wait/disk": 2.5, "data_wait/decode": 1.5, "data_wait/map": 1.0},
                         {"data_wait": 0.0, "data_wait/disk": 0.0, "data_wait/decode": 0.0, "data_wait/map": 0.0}):
            self.assertEqual(data._reported()[0], expected)
            data._came(0, 0.0, {})

    def test_a_thread_that_sleeps_or_computes_is_told_apart(self):
        begin = ranktune_data._thread_time()
        while ranktune_data._spent(begin, "decode")["disk"] < 0.01:
            time.sleep(0.01)
        begin = ranktune_data._thread_time()
        sum(range(300_000))
        self.assertGreater(ranktune_data._spent(begin, "map")["map"], 0)

    def test_a_loop_may_make_a_dataset_for_each_epoch(self):
        made = []
        for epoch in range(3):
            data = ranktune.dataset(self.numbers(100), batch=10)
            for number, _ in enumerate(data):
                if number == 4:
                    break
            made.append(weakref.ref(data))
            said, told = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
                ranktune.report(loss=1.0)
            self.assertIn("data_wait=", said.getvalue())
            self.assertEqual("took 50 samples" in told.getvalue(), epoch == 0)
        del data
        gc.collect()
        self.assertEqual([data() for data in made], [None] * 3)

    def test_a_dataset_that_is_kept_has_the_seed_of_the_trial(self):
        path = self.numbers(100)
        self.environment(RANKTUNE_TRIAL="0", RANKTUNE_SEED="1")
        kept = ranktune.dataset(path, batch=100)
        first = next(iter(kept)).tolist()
        self.environment(RANKTUNE_TRIAL="1", RANKTUNE_SEED="2")
        self.assertNotEqual(next(iter(kept)).tolist(), first)
        self.assertEqual(next(iter(kept)).tolist(), next(iter(ranktune.dataset(path, batch=100))).tolist())

    def test_draws_of_a_map_depend_on_seed_epoch_and_sample_alone(self):
        path = self.numbers(70)

        def change(sample, random):
            return {"number": sample[0], "drawn": random.random(3)}

        def met(iterations, ranks, batch, seed="5"):
            found = []
            for iteration in iterations:
                for rank in range(ranks):
                    self.environment(RANK=str(rank), WORLD_SIZE=str(ranks), RANKTUNE_ITERATION=str(iteration), RANKTUNE_SEED=seed)
                    for made in ranktune.dataset(path, batch=batch, per_iteration=70, map=change):
                        found += [(iteration, int(number), *drawn) for number, drawn in zip(made["number"], made["drawn"].tolist())]
            return sorted(found)

        alone = met((0, 1), 1, 16)
        self.assertEqual(met((0, 1), 2, 14), alone)
        self.assertEqual(met((1,), 1, 5), [each for each in alone if each[0] == 1])  # a start at the second epoch
        self.assertEqual(len({draw for each in alone for draw in each[2:]}), 2 * 70 * 3)
        self.assertFalse({each[2:] for each in met((0,), 1, 16, "6")} & {each[2:] for each in alone})

    def test_a_map_sees_samples_of_each_format(self):
        with tarfile.open(self.folder / "t.tar", "w") as file:
            for name in ("a.txt", "b.txt"):
                info = tarfile.TarInfo(name)
                info.size = 3
                file.addfile(info, io.BytesIO(f"{ord(name[0])} ".encode().ljust(3)))
        for batch in ranktune.dataset(str(self.folder / "t.tar"), batch=2, shuffle="none", map=lambda sample, _: int(sample["txt"])):
            self.assertEqual(batch.tolist(), [97, 98])
        mix = [{"source": self.numbers(40), "weight": 1}, {"source": self.numbers(30, "y.npy"), "weight": 3}]
        drawn = [batch.tolist() for batch in ranktune.dataset(mix, batch=8, per_iteration=16, map=lambda sample, random: random.random())]
        self.assertEqual(len({number for batch in drawn for number in batch}), 16)
        names = next(iter(ranktune.dataset(self.numbers(4), batch=2, shuffle="none", map=lambda sample, _: str(sample[1]))))
        self.assertEqual(names, ["0", "2"])
        for wrong, words in ((lambda sample, random: sample[:1 + sample[0] % 2], "different shapes, (1,) and (2,)"), (lambda sample, random: None, "returned nothing")):
            with self.assertRaises(ValueError) as raised:
                next(iter(ranktune.dataset(self.numbers(4), batch=4, map=wrong)))
            self.assertIn(words, str(raised.exception))

    def test_what_a_map_takes_is_told_apart(self):
        data = ranktune.dataset(self.numbers(4), batch=4, map=lambda sample, random: sum(range(200_000)))
        list(data)
        waited = data._reported()[0]
        self.assertEqual(list(waited), ["data_wait", "data_wait/disk", "data_wait/decode", "data_wait/map"])
        self.assertGreater(waited["data_wait/map"], waited["data_wait/decode"])

    def test_errors_reach_the_loop(self):
        data = ranktune.dataset(self.numbers(10), batch=5)
        data._sources = None
        with self.assertRaises(TypeError):
            list(data)
        for wrong in (dict(batch=0), dict(batch=1, shuffle="some"), dict(batch=1, shuffle_memory="1GB")):
            with self.assertRaises(ValueError):
                ranktune.dataset(self.numbers(10), **wrong)

    def test_a_loop_that_is_left_ends_its_thread(self):
        path = self.numbers(1000)
        for _ in ranktune.dataset(path, batch=5):
            break
        self.assertEqual([thread.name for thread in threading.enumerate() if thread.name == "ranktune-data"], [])
        script = f"import ranktune\nkept = iter(ranktune.dataset({path!r}, batch=5))\nprint(next(kept).shape)"
        done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": os.path.dirname(ranktune.__file__)},
                              capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual((done.stdout, done.stderr), ("(5, 2)\n", ""))

    @unittest.skipIf(torch is None, "no PyTorch here (Debian: python3-torch)")
    def test_any_number_of_workers_gives_the_same_batches(self):
        from torch.utils.data import DataLoader

        path = self.numbers(100)
        for iteration in (0, 3):
            self.environment(RANKTUNE_ITERATION=str(iteration))
            data = ranktune.dataset(path, batch=16, per_iteration=90)
            expected = [batch.tolist() for batch in data]
            for workers, method in ((0, None), (1, "fork"), (2, "fork"), (2, "spawn")):
                loader = DataLoader(data.torch(), batch_size=None, num_workers=workers, multiprocessing_context=method)
                self.assertEqual([batch.tolist() for batch in loader], expected, (workers, method))
        kept = DataLoader(data.torch(), batch_size=None, num_workers=2, persistent_workers=True)
        first = [batch.tolist() for batch in kept]
        self.assertEqual(first, expected)
        with contextlib.redirect_stdout(io.StringIO()):
            ranktune.report(loss=1.0)
        self.assertEqual([batch.tolist() for batch in kept], [batch.tolist() for batch in data])

    @unittest.skipIf(torch is None, "no PyTorch here (Debian: python3-torch)")
    def test_a_loader_counts_what_its_workers_make(self):
        path = self.numbers(100)
        data = ranktune.dataset(path, batch=16, per_iteration=90)
        expected = [batch.tolist() for batch in data]
        data._reported()
        for options in (dict(), dict(num_workers=2), dict(num_workers=1, multiprocessing_context="spawn")):
            loader = data.loader(**options)
            self.assertEqual(len(loader), len(expected))
            self.assertEqual([batch.tolist() for batch in loader], expected, options)
            self.assertEqual(data.consumed, 90)
            waited, wrong = data._reported()
            self.assertEqual((list(waited), wrong), (["data_wait", "data_wait/disk", "data_wait/decode"], ""))
            self.assertLessEqual(waited["data_wait/disk"] + waited["data_wait/decode"], waited["data_wait"] * 1.000001)
            self.assertGreater(waited["data_wait/decode"], 0)
        drawn = ranktune.dataset(path, batch=16, map=lambda sample, random: random.random())
        self.assertEqual([batch.tolist() for batch in drawn.loader(num_workers=2)], [batch.tolist() for batch in drawn])
        mapped = data.loader(num_workers=1, collate_fn=torch.sum)
        self.assertEqual([int(batch) for batch in mapped], [sum(map(sum, batch)) for batch in expected])
        self.assertGreater(data._reported()[0]["data_wait/map"], 0)

    @unittest.skipIf(torch is None, "no PyTorch here (Debian: python3-torch)")
    def test_workers_that_are_kept_follow_the_trial(self):
        path = self.numbers(100)
        data = ranktune.dataset(path, batch=10, per_iteration=50)
        loaders = [data.loader(num_workers=2, persistent_workers=True),
                   data.loader(num_workers=1, persistent_workers=True, multiprocessing_context="spawn")]
        large = str((1 << 64) - 3)
        for values in ({}, {}, dict(RANKTUNE_TRIAL="1"), dict(RANKTUNE_ITERATION="3"), dict(RANKTUNE_SEED=large), dict(RANK="1", WORLD_SIZE="2")):
            self.environment(**values)
            expected = [batch.tolist() for batch in ranktune.dataset(path, batch=10, per_iteration=50)]
            for loader in loaders:
                self.assertEqual([batch.tolist() for batch in loader], expected, values)
        next(iter(loaders[0]))  # a loop that is left
        self.environment(RANKTUNE_ITERATION="1")
        self.assertEqual([batch.tolist() for batch in loaders[0]], [batch.tolist() for batch in ranktune.dataset(path, batch=10, per_iteration=50)])

    @unittest.skipIf(torch is None, "no PyTorch here (Debian: python3-torch)")
    def test_reports_count_workers_that_are_kept(self):
        data = ranktune.dataset(self.numbers(100), batch=10)
        loader = data.loader(num_workers=2, persistent_workers=True)
        met = []
        for _ in range(2):
            told, said = io.StringIO(), io.StringIO()
            with contextlib.redirect_stderr(told), contextlib.redirect_stdout(said):
                met += [number for batch in loader for number in batch[:, 0].tolist()]
                ranktune.report(loss=1.0)
            self.assertIn(" data_wait=", said.getvalue())
            self.assertEqual(told.getvalue(), "")
        self.assertEqual([sorted(met[:100]), sorted(met[100:])], [list(range(100))] * 2)
        self.assertNotEqual(met[:100], met[100:])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[1:])
