#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searchers that are programs, as a user starts them: external_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import json
import os
import shutil
import subprocess
import unittest

from cli_test import SOURCES, Case, sys

STUDY = """[study]
name = "ext"
metric = "loss"
mode = "min"
num_trials = {trials}
max_iterations = 2
seed = 1
{study}
[trainable]
{trainable}
[space]
lr = "loguniform(1e-3, 1.0)"
{space}
[searcher]
type = "external"
command = "{command}"
{searcher}
"""
CURVE = 'builtin = "curve"'
# Trials that begin to train when the program has made a suggestion, or failed: once, or as often as the second argument
# says.
TRIAL = 'command = "sh trial.sh {lr}"'
WAIT = """until [ -s ready ] || [ "$(grep -s no-suggestion ext/logs/start-1.log | wc -l)" -ge "${2:-1}" ]; do sleep 0.05; done
"""
REPORTS = """for i in 1 2; do
    echo "{\\"report\\": {\\"loss\\": $1}}" >&"$RANKTUNE_FD"
    read -r answer <&"$RANKTUNE_FD"
done
"""
# Two at a time, of 20: trial n ends when the suggestion for trial n + 2 is there. Not for ever: after a stopgap there is one
# suggestion less.
WAITING = """for turn in $(seq 100); do
    answers=$(grep -s -c ask ready)
    [ "${answers:-0}" -gt "$RANKTUNE_TRIAL" ] || [ "${answers:-0}" -ge 18 ] && break
    sleep 0.05
done
sleep 0.1
"""
# A value of each kind of domain. `m` has a value in every answer, and exists in some trials only.
MIXED = """n = "lograndint(1, 1000)"
q = "qloguniform(0.001, 10.0, 0.001)"
w = "qlograndint(8, 512, 8)"
u = "quniform(0.0, 1.0, 0.1)"
k = "randint(1, 9)"
opt = ["sgd", "adam"]
m = { domain = "uniform(0.0, 1.0)", condition = "opt == 'sgd'" }
"""
# Warns before it fails, as Python programs do.
BAD = """import sys, warnings
warnings.warn("an experimental feature")
sys.stdin.readline()
raise ValueError("no such sampler")
"""
# Writes down every line that it reads; suggests 0.001, 0.002, ...
GOOD = """import json, os, sys
log = open("lines-" + str(os.getpid()), "w")
for line in sys.stdin:
    log.write(line)
    log.flush()
    message = json.loads(line)
    if "ask" in message:
        print(json.dumps({"ask": message["ask"], "config": {"lr": 0.001 * (message["ask"] + 1)}}), flush=True)
        open("ready", "w").write("yes")
"""


class External(Case):
    def study(self, command="python3 search.py", trials=8, trainable=TRIAL, study="", searcher="", space="", wait=WAIT):
        self.write("trial.sh", wait + REPORTS)
        self.write("ext.toml", STUDY.format(command=command, trials=trials, trainable=trainable, study=study, searcher=searcher,
                                            space=space))

    def log(self, directory="ext"):
        return "".join(path.read_text() for path in (self.cwd / directory / "logs").glob("start-*.log"))

    def lines(self):
        """What each process of the program was told, in the order of the processes."""
        paths = sorted(self.cwd.glob("lines-*"), key=lambda path: path.stat().st_mtime)
        return [[json.loads(line) for line in path.read_text().splitlines()] for path in paths]

    def test_a_program_suggests_and_is_told_everything_once(self):
        self.write("search.py", GOOD)
        self.study()
        out, _ = self.ranktune("run", "ext.toml", "--local", "2", "-v")
        self.assertIn("8 trials, 8 ok", out)
        (lines,) = self.lines()
        self.assertEqual(lines[0]["study"]["space"], [{"name": "lr", "type": "float", "low": 0.001, "high": 1.0, "log": True}])
        tells = [json.dumps(line["tell"]) for line in lines if "tell" in line]
        self.assertEqual(len(tells), len(set(tells)))
        suggested = {0.001 * (line["ask"] + 1) for line in lines if "ask" in line}
        trials = self.exported("ext")["trials"]
        ours = [trial for trial in trials if trial["configuration"]["lr"] in suggested]
        self.assertGreaterEqual(len(ours), 1)
        if len(ours) < 8:  # the first trials did not wait for the start of the program
            self.assertIn(f"{len(ours)} suggestions by external, ", out)
        self.ranktune("replay", "ext", "--verify")

    def test_a_program_of_a_later_start_is_told_everything_again(self):
        self.write("search.py", GOOD)
        self.study(trials=4)
        self.ranktune("run", "ext.toml", "--local", "2", "-v")
        (self.cwd / "ready").unlink()
        self.ranktune("run", "ext.toml", "--local", "2", "-v", "study.num_trials=8")
        first, second = self.lines()
        running = [line["tell"]["trial"] for line in second if line.get("tell", {}).get("state") == "running"]
        self.assertEqual(running, list(range(len(running))))
        self.assertGreaterEqual(len(running), 4)
        self.assertEqual(first[0]["study"]["space"], second[0]["study"]["space"])

    def test_a_program_that_always_fails_is_named_and_given_up(self):
        self.study(command="echo no such module >&2; exit 3", trainable=TRIAL.replace("{lr}", "{lr} 3"))
        out, _ = self.ranktune("run", "ext.toml", "--local", "2", "-v")
        self.assertIn("8 trials, 8 ok", out)
        self.assertIn("0 suggestions by external, 8 stopgaps", out)
        log = self.log()
        self.assertEqual(log.count("no-suggestion"), 3, log)
        self.assertIn("ended (exit code 3) instead of answering; it said: no such module", log)

    def test_a_program_that_has_not_answered_is_ended_with_the_study(self):
        hangs = "import os, sys, time\nopen('pid', 'w').write(str(os.getpid()))\nfor line in sys.stdin:\n    {}\n"
        for ask in ("if '\"ask\"' in line: time.sleep(3000)", "print('{', end='', flush=True)"):
            self.write("search.py", hangs.format(ask))
            self.study(trainable=CURVE, searcher='timeout = "1h"')
            out, errors = self.ranktune("run", "ext.toml", "--local", "2", "--fresh")
            self.assertIn("8 trials, 8 ok", out)
            self.assertNotIn("Signal", out + errors)
            if (self.cwd / "pid").exists():  # the study may be over before Python has started
                pid = int((self.cwd / "pid").read_text())
                self.assertRaises(ProcessLookupError, os.kill, pid, 0)
                (self.cwd / "pid").unlink()

    def test_screens_say_that_the_program_failed_and_why(self):
        self.write("search.py", BAD)
        self.study(trainable=TRIAL.replace("{lr}", "{lr} 3"), trials=16)
        out, _ = self.ranktune("run", "ext.toml", "--local", "2", "-v")
        self.assertRegex(out, r"0 suggestions by external, 16 stopgaps: \d+ because it failed")
        why = ("failed 3 times in a row, at last: the program 'python3 search.py' ended (exit code 1) instead of answering; it "
               "said: ValueError: no such sampler")
        self.assertIn(f"searcher {why}. See `no-suggestion` in ext/logs/start-1.log; mend the program", " ".join(out.split()))
        self.assertIn("no-suggestion", (self.cwd / "ext" / "logs" / "start-1.log").read_text())
        self.assertIn(f"searcher {why}", " ".join(self.ranktune("status", "ext")[0].split()))
        explained = self.ranktune("explain", "ext", "15")[0]
        self.assertIn(f"a stopgap of external: the searcher {why}", " ".join(explained.split()))
        origin = self.exported("ext")["trials"][15]["origin"]
        self.assertEqual((origin["kind"], origin["failures"]), ("stopgap", 3))
        self.ranktune("replay", "ext", "--verify")

    def test_a_study_stops_with_its_searcher_if_the_file_says_so_and_goes_on_when_it_is_mended(self):
        self.study(command="echo hello", trials=40, searcher='on_failure = "stop"')
        out, _ = self.ranktune("run", "ext.toml", "--local", "2", "-v", code=75)
        self.assertIn("wrote 'hello', where", " ".join(out.split()))
        self.write("search.py", GOOD)
        self.study(trials=40, searcher='on_failure = "stop"')
        out, _ = self.ranktune("run", "ext.toml", "--local", "2", "-v")
        self.assertIn("40 trials, 40 ok", out)

    def test_a_program_that_hangs_is_ended(self):
        self.study(command="cat > /dev/null", searcher='timeout = "100ms"')
        self.assertIn("8 trials, 8 ok", self.ranktune("run", "ext.toml", "--local", "2", "-v")[0])
        self.assertIn("gave no answer within 100ms (searcher.timeout)", self.log())

    def test_what_a_program_writes_to_its_standard_error_has_a_limit(self):
        self.write("search.py", """import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "ask" in message:
        for i in range(75):
            print(f"ask {message['ask']} line {i} " + "e" * 100000, file=sys.stderr, flush=True)
        print("last words", message["ask"], file=sys.stderr, flush=True)
        print(json.dumps({"ask": message["ask"], "config": {"lr": 0.01 if message["ask"] < 5 else "much", "note": 1}}), flush=True)
        open("ready", "w").write("yes")
""")
        self.study(trials=16)
        self.assertIn("16 trials, 16 ok", self.ranktune("run", "ext.toml", "--local", "2")[0])
        log = self.log()
        self.assertNotIn("which is no hyper-parameter", log)
        self.assertLess(len(log), 10 << 20)
        self.assertIn("ask 0 line 74 ", log)
        self.assertIn("... the program has printed 8388608 bytes", log)
        self.assertIn("last words 0", log)
        self.assertRegex(log, r"\.\.\. \d+ lines of \d+ bytes were left out here")

    def test_mistakes_in_the_study_file(self):
        self.study(command="", searcher='timeout = "soon"')
        error = self.ranktune("run", "ext.toml", "--dry-run", code=2)[1]
        self.assertIn("searcher.command", error)
        self.assertIn("searcher.timeout", error)
        self.study(study="deterministic = true\nmax_concurrent = 2")
        error = self.ranktune("run", "ext.toml", "--dry-run", code=2)[1]
        self.assertIn('"external" does not go with study.deterministic', " ".join(error.split()))
        self.study()
        self.assertIn("a simulation runs no programs", self.ranktune("simulate", "ext.toml", "--groups", "2", code=2)[1])

    def test_optuna(self):
        python = "/usr/bin/python3"
        if subprocess.run([python, "-c", "import optuna"], capture_output=True).returncode != 0:
            self.skipTest("no Optuna: apt-get install python3-optuna")
        shutil.copy(SOURCES / "jobs" / "external-optuna" / "optuna_search.py", self.cwd)
        self.study(command=f"{python} optuna_search.py | tee ready", searcher='on_failure = "stop"', trials=20, space=MIXED, wait=WAITING)
        out, _ = self.ranktune("run", "ext.toml", "--local", "2", "-v")
        self.assertIn("20 trials, 20 ok", out)
        self.assertNotIn("no-suggestion", self.log())
        suggested = {answer["ask"]: answer["config"] for answer in map(json.loads, (self.cwd / "ready").read_text().splitlines())}
        ours = [trial for trial in self.exported("ext")["trials"] if trial["origin"]["kind"] == "ticket"]
        self.assertGreaterEqual(len(ours), 14)
        for trial in ours:
            answer = suggested[trial["origin"]["index"]]
            for name, value in trial["configuration"].items():
                if isinstance(value, str):
                    self.assertEqual(value, answer[name])
                else:
                    self.assertAlmostEqual(value, answer[name])
        self.assertEqual({"m" in trial["configuration"] for trial in ours}, {True, False})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
