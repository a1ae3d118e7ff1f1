#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/python/ranktune.py as training programs use it, against a worker played by the test: ranktune_test.py [TEST...]

Each test runs a small program whose control descriptor is one end of a socket pair, reads what the program says, and
answers. Nothing of ranktune itself is needed.
"""
import ast
import json
import math
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

SOURCES = pathlib.Path(__file__).resolve().parents[2]
MODULE = SOURCES / "tools/python/ranktune.py"
TIMEOUT = 30
CONTINUE = {"decision": "continue"}
PAUSE = {"decision": "pause"}
STOP = {"decision": "stop"}


def environment(**changes):
    unwanted = ("RANKTUNE_", "PYTHON")
    env = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        env.pop(name, None)
    return {**env, "PYTHONPATH": str(MODULE.parent), "PYTHONDONTWRITEBYTECODE": "1", **changes}


class Trial:
    """A program with the worker's end of its control descriptor."""

    def __init__(self, test, program, rank=0, in_file=False, command=None, **changes):
        ours, theirs = socket.socketpair()
        ours.settimeout(TIMEOUT)
        self.socket = ours
        self.received = b""
        text = textwrap.dedent(program)
        if command is not None:
            pass
        elif in_file:  # where multiprocessing starts the program again
            path = test.folder / "program.py"
            path.write_text(text)
            command = [sys.executable, "-W", "error", str(path)]
        else:
            command = [sys.executable, "-W", "error", "-c", text]
        env = environment(RANKTUNE_FD=str(theirs.fileno()), RANKTUNE_TRIAL="7", RANK=str(rank), **changes)
        self.process = subprocess.Popen(command, env=env, pass_fds=[theirs.fileno()], cwd=test.folder, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        theirs.close()
        test.addCleanup(self.end)
        self.test = test

    def said(self):
        """The program's next message; None when it has closed its end."""
        while b"\n" not in self.received:
            part = self.socket.recv(65536)
            if not part:
                self.test.assertEqual(self.received, b"", "half a message")
                return None
            self.received += part
        line, _, self.received = self.received.partition(b"\n")
        return json.loads(line)

    def says(self, **expected):
        message = self.said()
        self.test.assertEqual(message, expected)
        return self

    def answer(self, *messages):
        self.socket.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        return self

    def ends(self, code=0):
        """Waits for the program; returns (standard output, standard error)."""
        out, err = self.process.communicate(timeout=TIMEOUT)
        self.test.assertEqual(self.process.returncode, code, err)
        return out, err

    def end(self):
        self.socket.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        for pipe in (self.process.stdout, self.process.stderr):
            pipe.close()


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ranktune-python-")
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name).resolve()

    def alone(self, program, code=0, **changes):
        """Runs a program outside of a study."""
        done = subprocess.run([sys.executable, "-W", "error", "-c", "import ranktune\n" + textwrap.dedent(program)],
                              env=environment(**changes), cwd=self.folder, capture_output=True, text=True,
                              timeout=TIMEOUT)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def config_file(self, **values):
        path = self.folder / "config.json"
        path.write_text(json.dumps(values))
        return str(path)


class File(Case):
    def test_is_one_file_of_the_standard_library_for_python_3_9(self):
        tree = ast.parse(MODULE.read_text(), feature_version=(3, 9))
        imported = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported |= {name.name.split(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module.split(".")[0])
        self.assertTrue(imported)
        known = getattr(sys, "stdlib_module_names", None)  # Python 3.10
        if known is not None:
            self.assertEqual(imported - set(known), set())

    def test_imports_without_warnings_and_without_site_packages(self):
        subprocess.run([sys.executable, "-S", "-W", "error", "-c", "import ranktune"], env=environment(), check=True,
                       timeout=TIMEOUT)  # nothing is compiled before: environment() forbids it to leave byte code

    def test_every_public_name_is_explained(self):
        tree = ast.parse(MODULE.read_text())
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                self.assertTrue(ast.get_docstring(node), node.name)


class OutsideOfAStudy(Case):
    def test_report_prints_and_goes_on(self):
        out = self.alone("""
            for value in (0.5, 0.97123456789):
                assert ranktune.report({"val/loss": 2}, val_accuracy=value, checkpoint=lambda folder: 1 / 0) is True
            assert ranktune.context().iteration == 2
        """)
        self.assertEqual(out, "iteration 1: val/loss=2 val_accuracy=0.5\n"
                              "iteration 2: val/loss=2 val_accuracy=0.971235\n")

    def test_only_rank_0_prints(self):
        self.assertEqual(self.alone("ranktune.report(loss=1.0)", RANK="1", WORLD_SIZE="2"), "")

    def test_config_gives_the_defaults(self):
        self.alone("""
            import copy, json, pickle
            config = ranktune.config(lr=0.1, sgd={"momentum": 0.9})
            assert config.lr == 0.1 and config["sgd"].momentum == 0.9
            assert json.loads(json.dumps(config)) == {"lr": 0.1, "sgd": {"momentum": 0.9}}
            assert copy.deepcopy(config) == pickle.loads(pickle.dumps(config)) == config
        """)
        err = self.alone("ranktune.config(lr=0.1).batch_size", code=1)
        self.assertIn("the configuration has no 'batch_size'; it has lr (no study: only the defaults are there, as in "
                      "ranktune.config(batch_size=...))", err)

    def test_there_is_no_checkpoint_and_a_context_of_its_own(self):
        self.alone("""
            assert ranktune.checkpoint() is None
            context = ranktune.context()
            assert (context.trial, context.study, context.iterations, context.checkpoint_dir) == (None,) * 4
            assert (context.rank, context.world_size, context.local_rank) == (1, 2, 1)
            assert (context.iteration, context.seed, context.attempt) == (0, 0, 1)
        """, RANK="1", WORLD_SIZE="2", LOCAL_RANK="1")


class InAStudy(Case):
    def test_config_context_and_checkpoint(self):
        path = self.config_file(lr=3.2e-05, hidden=[64, 32], sgd={"momentum": 0.5}, values=3)
        trial = Trial(self, """
            import ranktune
            config = ranktune.config(lr=1, epochs=9, sgd={"momentum": 0.9, "nesterov": True})
            assert config == {"lr": 3.2e-05, "epochs": 9, "sgd": {"momentum": 0.5, "nesterov": True},
                              "hidden": [64, 32], "values": 3}, config
            assert config.lr == 3.2e-05 and config.sgd.nesterov and config["values"] == 3
            assert ranktune.checkpoint() == "/ck/9"
            print(ranktune.context())
            try:
                config.hiden
            except AttributeError as e:
                print(e)
        """, rank=1, RANKTUNE_CONFIG=path, RANKTUNE_CHECKPOINT="/ck/9", RANKTUNE_ITERATION="9", RANKTUNE_SEED="5",
                      RANKTUNE_ITERATIONS="27", RANKTUNE_ATTEMPT="2", RANKTUNE_STUDY="digits", WORLD_SIZE="2",
                      RANKTUNE_STUDY_DIR="/s", LOCAL_RANK="0", RANKTUNE_CHECKPOINT_DIR="/ck/new",
                      RANKTUNE_METRIC="acc", RANKTUNE_MODE="max")
        out, _ = trial.ends()
        self.assertEqual(out, "Context(study='digits', study_dir='/s', trial=7, attempt=2, iteration=9, iterations=27, "
                              "rank=1, world_size=2, local_rank=0, checkpoint_dir='/ck/new', seed=5, metric='acc', "
                              "mode='max')\nthe configuration has no 'hiden'; did you mean 'hidden'?\n")

    def test_a_report_goes_on_when_told_so(self):
        trial = Trial(self, """
            import ranktune
            print(ranktune.report(loss=0.5), ranktune.report({"val/acc": 1, "exit": True}), ranktune.context().iteration)
        """, RANKTUNE_ITERATION="3")
        trial.says(report={"loss": 0.5}).answer({**CONTINUE, "iteration": 4, "later": [1]})
        trial.says(report={"val/acc": 1, "exit": True}).answer(CONTINUE)
        self.assertEqual(trial.ends()[0], "True True 5\n")
        self.assertIsNone(trial.said())

    def test_numbers_of_every_kind(self):
        trial = Trial(self, """
            import ranktune, decimal, fractions
            class Tensor:
                def __init__(self, value): self.value = value
                def item(self): return self.value
            class Small(int): pass
            ranktune.report(a=Tensor(0.25), b=Tensor(3), c=decimal.Decimal("0.5"), d=fractions.Fraction(1, 4), e=Small(2),
                            f=float("nan"), g=float("inf"), h=1 << 80, i=Tensor(True), j=-(1 << 62))
            try:
                import numpy
                ranktune.report(a=numpy.float32(0.5), b=numpy.int64(2), c=numpy.array([1.5]), d=numpy.bool_(True),
                                e=numpy.float64(0.125), f=numpy.array(7, dtype="uint8"))
            except ImportError:
                ranktune.report(a=0.5, b=2, c=1.5, d=True, e=0.125, f=7)
        """)
        values = trial.said()["report"]
        trial.answer(CONTINUE)
        self.assertTrue(math.isnan(values.pop("f")))
        self.assertEqual(values, {"a": 0.25, "b": 3, "c": 0.5, "d": 0.25, "e": 2, "g": math.inf, "h": float(1 << 80),
                                  "i": True, "j": -(1 << 62)})
        trial.says(report={"a": 0.5, "b": 2, "c": 1.5, "d": True, "e": 0.125, "f": 7}).answer(CONTINUE)
        trial.ends()

    def test_what_is_no_number_is_named(self):
        for value in ("'high'", "None", "[1.0]", "1j", "Several()"):
            trial = Trial(self, f"""
                import ranktune
                class Several:
                    def item(self): raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")
                    def __repr__(self): return "tensor([1, 2])"
                ranktune.report(loss={value})
            """, RANKTUNE_METRIC="loss")
            shown = "tensor([1, 2])" if value == "Several()" else value
            message = f"metric 'loss' is {shown}, not a number or a tensor with one element"
            trial.says(failed="error", log=f"at iteration 1: TypeError: {message} (<string>:6)")
            self.assertIn(message, trial.ends(1)[1])
            self.assertIsNone(trial.said())

    def test_texts_go_along_with_the_metrics(self):
        trial = Trial(self, """
            import ranktune
            ranktune.report(loss=0.5, note="warm-up is over")
        """, RANKTUNE_METRIC="loss")
        trial.says(report={"loss": 0.5, "note": "warm-up is over"})
        trial.answer({"decision": "stop"})
        trial.ends(0)

    def test_a_value_without_a_name_is_answered_with_the_call_that_was_meant(self):
        for value, metric, call in (("0.5", "val_loss", "report(val_loss=0.5)"), ("0", "loss", "report(loss=0)"),
                                    ("[0.5]", "loss", "report(loss=...)"), ("0.25", "val/acc", "report({'val/acc': 0.25})")):
            for rank in (0, 1):
                trial = Trial(self, f"import ranktune\nranktune.report({value})", rank=rank, RANKTUNE_METRIC=metric)
                self.assertIn(f"TypeError: ranktune.report() takes a metric with its name, {call}, and was given {value} alone",
                              trial.ends(1)[1])
        self.assertIn("its name, report(loss=0.5), and was given 0.5 alone", self.alone("ranktune.report(0.5)", code=1))

    def test_other_ranks_report_without_metrics(self):
        trial = Trial(self, """
            import ranktune
            ranktune.report(loss="of rank 0", checkpoint="/nowhere")
        """, rank=1)
        trial.says(report={}).answer(CONTINUE)
        trial.ends()

    def test_pause_and_stop_end_the_process_without_a_traceback(self):
        for verdict in (PAUSE, STOP):
            trial = Trial(self, """
                import ranktune, atexit
                atexit.register(print, "tidied")
                try:
                    ranktune.report(loss=1.0)
                except Exception:
                    print("caught")
                print("went on")
            """)
            trial.says(report={"loss": 1.0}).answer(verdict)
            self.assertEqual(trial.ends(), ("tidied\n", ""))

    def test_with_exit_false_the_answer_is_false_from_then_on(self):
        trial = Trial(self, """
            import ranktune
            print(ranktune.report(loss=1.0, exit=False), ranktune.report(loss=2.0, exit=False))
        """)
        trial.says(report={"loss": 1.0}).answer(STOP)
        self.assertEqual(trial.ends()[0], "False False\n")
        self.assertIsNone(trial.said())

    def test_two_hundred_reports(self):
        trial = Trial(self, """
            import ranktune
            for i in range(200): ranktune.report(loss=i)
        """)
        for i in range(200):
            trial.says(report={"loss": i}).answer(CONTINUE)
        trial.ends()


class Hardships(Case):
    def test_answers_come_in_pieces_and_several_at_once(self):
        trial = Trial(self, """
            import ranktune
            print([ranktune.report(loss=i, exit=False) for i in range(3)])
        """)
        trial.says(report={"loss": 0})
        for byte in json.dumps(CONTINUE).encode() + b"\n":
            trial.socket.sendall(bytes([byte]))
        trial.says(report={"loss": 1}).answer({"note": "of a later version"}, CONTINUE, {"note": 2})
        trial.says(report={"loss": 2}).answer(PAUSE)
        self.assertEqual(trial.ends()[0], "[True, True, False]\n")

    def test_signals_while_waiting_do_no_harm(self):
        trial = Trial(self, """
            import os, ranktune, signal
            signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"signal\\n"))
            print(ranktune.report(loss=1.0))
        """)
        trial.says(report={"loss": 1.0})
        for _ in range(3):
            trial.process.send_signal(signal.SIGUSR1)
            self.assertEqual(trial.process.stdout.readline(), "signal\n")
        trial.answer(CONTINUE)
        self.assertEqual(trial.ends()[0], "True\n")

    def test_an_answer_missed_by_an_exception_is_not_taken_for_the_next_one(self):
        trial = Trial(self, """
            import ranktune, signal
            class Alarm(Exception): pass
            def ring(*_): raise Alarm
            signal.signal(signal.SIGUSR1, ring)
            try:
                ranktune.report(loss=1.0, exit=False)
            except Alarm:
                print("alarm", flush=True)
            print(ranktune.report(loss=2.0, exit=False))
        """)
        trial.says(report={"loss": 1.0})
        trial.process.send_signal(signal.SIGUSR1)
        self.assertEqual(trial.process.stdout.readline(), "alarm\n")
        trial.answer(CONTINUE)
        trial.says(report={"loss": 2.0}).answer(STOP)
        self.assertEqual(trial.ends()[0], "False\n")

    def test_a_report_from_a_signal_handler_in_a_report_is_refused(self):
        trial = Trial(self, """
            import ranktune, signal
            signal.signal(signal.SIGUSR1, lambda *_: ranktune.report(loss=2.0))
            ranktune.report(loss=1.0)
        """)
        trial.says(report={"loss": 1.0})
        trial.process.send_signal(signal.SIGUSR1)
        self.assertIn("ranktune.report() was called within ranktune.report()", trial.ends(1)[1])

    def test_term_ends_a_program_that_waits(self):
        trial = Trial(self, "import ranktune\nranktune.report(loss=1.0)")
        trial.says(report={"loss": 1.0})
        trial.process.terminate()
        trial.ends(-signal.SIGTERM)

    def test_a_worker_that_is_gone_ends_the_program(self):
        trial = Trial(self, "import ranktune\nranktune.report(loss=1.0)\nprint('went on')")
        trial.says(report={"loss": 1.0})
        trial.socket.shutdown(socket.SHUT_RDWR)
        out, err = trial.ends()
        self.assertEqual(out, "")
        self.assertIn("ranktune: the study is gone", err)

    def test_what_is_no_answer_is_refused(self):
        for line, message in ((b"hello\n", "gave b'hello', which is no message of ranktune"),
                              (b'{"decision": "clone"}\n', "does not know the decision 'clone': it is older than")):
            trial = Trial(self, "import ranktune\nranktune.report(loss=1.0)")
            trial.says(report={"loss": 1.0})
            trial.socket.sendall(line)
            self.assertIn(message, trial.ends(1)[1])

    def test_a_report_that_is_too_long_is_refused(self):
        trial = Trial(self, "import ranktune\nranktune.report({f'metric{i}': i for i in range(100000)})")
        self.assertIn("bytes is too long: at most 1048576", trial.ends(1)[1])
        self.assertEqual(trial.said()["failed"], "error")

    def test_a_thread_can_only_report_with_exit_false(self):
        trial = Trial(self, """
            import ranktune, threading
            def work():
                try:
                    ranktune.report(loss=1.0)
                except RuntimeError as e:
                    print(e)
                print(ranktune.report(loss=1.0, exit=False))
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        """)
        trial.says(report={"loss": 1.0}).answer(PAUSE)
        out, _ = trial.ends()
        self.assertIn("outside of the main thread", out)
        self.assertTrue(out.endswith("\nFalse\n"), out)


class OtherProcesses(Case):
    def test_a_forked_child_neither_reports_nor_keeps_the_connection(self):
        for before in ("", "ranktune.report(loss=0.0)"):
            trial = Trial(self, f"""
                import os, ranktune, sys, time
                {before}
                ready, tell = os.pipe()
                if os.fork() == 0:
                    assert ranktune.config(lr=1).lr == 1  # as a DataLoader worker might
                    try:
                        ranktune.report(loss=1.0)
                    except RuntimeError as e:
                        print(e, flush=True)
                    os.write(tell, b"x")
                    time.sleep({TIMEOUT})  # outlives its parent; killed by the test
                    os._exit(0)
                os.read(ready, 1)
                ranktune.report(loss=2.0)
            """)
            if before:
                trial.says(report={"loss": 0.0}).answer(CONTINUE)
            trial.says(report={"loss": 2.0}).answer(PAUSE)
            self.assertIsNone(trial.said())  # closed, although the child lives on
            self.assertEqual(trial.process.wait(TIMEOUT), 0)
            line = trial.process.stdout.readline()
            self.assertIn("which was forked from the one that ranktune started", line)
            number = int(line.split("in process ")[1].split(",")[0])
            os.kill(number, signal.SIGKILL)

    def test_workers_of_multiprocessing_confuse_nobody(self):
        for method in ("fork", "spawn", "forkserver"):
            trial = Trial(self, f"""
                import multiprocessing, ranktune, sys
                def load(i):
                    try:
                        ranktune.report(loss=float(i))
                    except RuntimeError as e:
                        return str(e)
                if __name__ == "__main__":
                    ranktune.report(loss=0.0)
                    with multiprocessing.get_context({method!r}).Pool(2) as pool:
                        for text in set(pool.map(load, range(4))):
                            assert "Only the process that ranktune starts for each rank can report" in text, text
                        ranktune.report(loss=1.0)
                    ranktune.report(loss=2.0)
            """, in_file=True)
            for i in range(3):
                trial.says(report={"loss": float(i)}).answer(CONTINUE)
            trial.ends()

    def test_another_socket_under_the_same_number_is_not_taken_for_ours(self):
        trial = Trial(self, """
            import os, ranktune, socket, subprocess, sys
            number = int(os.environ["RANKTUNE_FD"])
            child = '''
            import os, socket
            left, right = socket.socketpair()
            os.dup2(right.fileno(), NUMBER)
            import ranktune
            try:
                ranktune.report(loss=1.0)
            except RuntimeError as e:
                print(e)
            '''.replace("NUMBER", str(number)).replace("            ", "")
            subprocess.run([sys.executable, "-c", child], check=True)
        """)
        self.assertIn("does not have the control descriptor", trial.ends()[0])
        self.assertIsNone(trial.said())

    def test_a_wrapper_may_hand_the_descriptor_on(self):
        trial = Trial(self, """
            import os, ranktune, subprocess, sys
            ranktune.config()
            sys.exit(subprocess.run([sys.executable, "-c", "import ranktune; ranktune.report(loss=1.0); print('went on')"],
                                    pass_fds=[int(os.environ["RANKTUNE_FD"])]).returncode)
        """)
        trial.says(report={"loss": 1.0}).answer(CONTINUE)
        self.assertEqual(trial.ends()[0], "went on\n")

    def test_what_the_program_starts_later_does_not_inherit_the_descriptor(self):
        trial = Trial(self, """
            import os, ranktune
            ranktune.report(loss=1.0)
            os.system("test -e /proc/self/fd/$RANKTUNE_FD && echo inherited || echo closed")
        """)
        trial.says(report={"loss": 1.0}).answer(CONTINUE)
        self.assertEqual(trial.ends()[0], "closed\n")


class Guide(Case):
    def test_the_shell_function_of_the_guide_reports_and_stops(self):
        page = (SOURCES / "docs/guides/programs.md").read_text()
        script = page.split("```bash\n", 1)[1].split("```", 1)[0]
        simulate = self.folder / "simulate"
        simulate.write_text('#!/bin/sh\necho "${1#--step=}.5"\n')
        simulate.chmod(0o755)
        for answers in ([CONTINUE, CONTINUE, CONTINUE], [CONTINUE, PAUSE], [STOP]):
            trial = Trial(self, "", command=["bash", "-euc", script, "train.sh", "--lr=0.1"], RANKTUNE_ITERATIONS="3")
            for i, answer in enumerate(answers, 1):
                trial.says(report={"loss": i + 0.5}).answer({**answer, "iteration": i})
            trial.ends()
            self.assertIsNone(trial.said())


if __name__ == "__main__":
    unittest.main()
