#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs in Python in which models predict: predict_test.py [TEST...]"""
import json
import os
import socket
import sys
import unittest

try:
    import numpy as np
except ImportError:
    print("skipped: needs NumPy")
    sys.exit(77)

from ranktune_test import STOP, Case, Trial

ASKED = {"RANKTUNE_KEPT": "predict", "RANKTUNE_ITERATIONS": "1"}
COLUMNS = [{"name": "x", "dtype": "float32", "shape": [3], "offset": 0}, {"name": "id", "dtype": "uint8", "shape": [], "offset": 64}]
Y = 128  # where predictions begin
MOST = 4  # rows of a batch


class Asked(Trial):
    """The worker's two memories, beside its end of the connection."""

    def __init__(self, test, program, **more):
        super().__init__(test, program, **{**ASKED, **more})
        self.memories = [os.memfd_create(f"memory-{i}") for i in range(2)]
        for memory in self.memories:
            test.addCleanup(os.close, memory)
            os.ftruncate(memory, Y)
        self.number = 0
        self.says(ready=True)

    def ask(self, x):
        memory = self.memories[self.number % 2]
        os.pwrite(memory, np.asarray(x, np.float32).tobytes(), 0)
        os.pwrite(memory, bytes(range(self.number, self.number + len(x))), 64)
        message = {"batch": self.number, "memory": self.number % 2, "first": 100 + self.number, "rows": len(x), "columns": COLUMNS, "y": Y}
        socket.send_fds(self.socket, [json.dumps(message).encode() + b"\n"], self.memories if self.number == 0 else [])
        self.number += 1
        return self

    def predicted(self, batch, dtype, shape):
        self.says(predicted=batch, dtype=dtype, shape=list(shape), **{"class": False})
        count = int(np.prod(shape))
        return np.frombuffer(os.pread(self.memories[batch % 2], count * np.dtype(dtype).itemsize, Y), dtype).reshape(shape)


class Predicting(Case):
    def test_batches_come_one_by_one_and_predictions_go_back(self):
        asked = Asked(self, """
            import ranktune
            for batch in ranktune.predict():
                print(batch.fields, batch.first, batch.rows, batch["x"].shape, batch["x"].flags.writeable, batch["id"].tolist())
                batch.write(batch["x"] * 2)
            print("end", ranktune.context().trial)
        """)
        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        asked.ask(x).ask(x[:2] + 1)  # the second one waits in the other memory
        np.testing.assert_array_equal(asked.predicted(0, "float32", (4, 3)), x * 2)
        np.testing.assert_array_equal(asked.predicted(1, "float32", (2, 3)), x[:2] * 2 + 2)
        asked.ask(x + 5)
        np.testing.assert_array_equal(asked.predicted(2, "float32", (4, 3)), x * 2 + 10)
        asked.answer(STOP)
        self.assertEqual(asked.ends()[0].splitlines(), ["('x', 'id') 100 4 (4, 3) True [0, 1, 2, 3]", "('x', 'id') 101 2 (2, 3) True [1, 2]",
                                                        "('x', 'id') 102 4 (4, 3) True [2, 3, 4, 5]", "end 7"])

    def test_classes_lie_behind_the_numbers(self):
        asked = Asked(self, """
            import numpy, ranktune
            for batch in ranktune.predict():
                batch.write(batch["x"].astype("float64"), classes=batch["x"].argmax(1))
        """)
        asked.ask([[1, 2, 3], [3, 2, 1]]).says(predicted=0, dtype="float64", shape=[2, 3], **{"class": True})
        self.assertEqual(np.frombuffer(os.pread(asked.memories[0], 48, Y), "float64").tolist(), [1, 2, 3, 3, 2, 1])
        self.assertEqual(np.frombuffer(os.pread(asked.memories[0], 8, Y + 48), "int32").tolist(), [2, 0])
        asked.socket.close()  # the worker has died
        asked.ends()

    def test_what_is_no_prediction_is_refused_in_the_users_line(self):
        for line, error in (("batch.write(batch['x'][:1])", "y has the shape [1, 3], and the batch 2 rows"),
                            ("batch.write(batch['id'])", "y is uint8, not float32 or float64; labels are classes="),
                            ("batch.write(batch['x'], classes=batch['x'][:, 0])", "classes are float32, not integers"),
                            ("batch.write(batch['x'], classes=batch['id'][:1])", "classes need the shape [2] and fit int32; they have [1]"),
                            ("batch.write(batch['x'], classes=batch['id'][:, None] + [0, 0, 0])", "classes need the shape [2] and fit int32; they have [2, 3]"),
                            ("batch.write(batch['x'], classes=batch['id'].astype('int64') + 2 ** 32)", "classes need the shape [2] and fit int32"),
                            ("batch.write('abc')", "not an array of numbers"),
                            ("batch['y']", "the samples have no 'y'; they have x, id"),
                            ("batch.write(batch['x']); batch.write(batch['x'])", "from sample 100 on are written already"),
                            ("pass", "went on without batch.write() for the samples from 100 on")):
            with self.subTest(line):
                asked = Asked(self, f"import ranktune\nfor batch in ranktune.predict():\n    {line}\n")
                asked.ask([[1, 2, 3], [3, 2, 1]])
                message = asked.said()
                while "predicted" in message:
                    message = asked.said()
                self.assertEqual(message["failed"], "error")
                self.assertIn(error, message["log"])
                asked.ends(code=1)

    def test_tensors_of_pytorch_and_half_precision(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("needs PyTorch")
        asked = Asked(self, """
            import ranktune, torch
            for batch, kind in zip(ranktune.predict(), (torch.float32, torch.bfloat16, torch.float16)):
                batch.write((torch.from_numpy(batch["x"]) * torch.ones(3, requires_grad=True)).to(kind))
        """)
        for number in range(3):
            asked.ask([[1, 2, 3]])
            self.assertEqual(asked.predicted(number, "float32", (1, 3)).tolist(), [[1, 2, 3]])

    def test_a_program_that_nobody_asks_says_how_it_is_started(self):
        self.assertIn("start it by ranktune predict", self.alone("for batch in ranktune.predict(): pass", code=1))
        trial = Trial(self, "import ranktune\nfor batch in ranktune.predict(): pass", RANKTUNE_KEPT="1")
        self.assertIn("start it by ranktune predict", trial.said()["log"])
        trial.ends(code=1)


if __name__ == "__main__":
    unittest.main()
