#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs as people have them, which print, tuned without changing a line of them: printed_test.py PROGRAM [TEST...]"""
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
TIMEOUT = 150

STUDY = """[study]
name = "s"
metric = "loss"
mode = "min"
num_trials = 6
max_iterations = {iterations}
seed = 1
[trainable]
command = "{command}"
{more}
[searcher]
type = "random"
[space]
x = "uniform(0, 2)"
{space}
"""


def environment():
    unwanted = ("SLURM_", "OMPI_", "PMIX_", "PMI_", "RANKTUNE_", "PYTHON")
    env = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {**env, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}


class AsTheyAre(unittest.TestCase):
    """Each computes (x - 1)^2 + 1 / epoch, and prints it in its own way."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ranktune-printed-")
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def tune(self, command, more, iterations=3, space=""):
        """Runs the study; returns its trials. The best value is that of the formula."""
        self.write("s.toml", STUDY.format(command=command, more=more, iterations=iterations, space=space))
        words = [PROGRAM, "run", "s.toml", "--local", "2", "-q"]
        done = subprocess.run(words, cwd=self.folder, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = subprocess.run([PROGRAM, "export", "s", "-f", "json"], cwd=self.folder, env=environment(), capture_output=True,
                              text=True, timeout=TIMEOUT, check=True)
        trials = json.loads(done.stdout)["trials"]
        self.assertEqual(len(trials), 6)
        for trial in trials:
            self.assertEqual(trial["iterations"], iterations)
            self.assertAlmostEqual(trial["best"]["value"], (trial["configuration"]["x"] - 1) ** 2 + 1 / iterations, 4)
        return trials

    def test_bash(self):
        self.write("train.sh", 'while getopts x: name; do x=$OPTARG; done\n'
                               'for ((i = 1; i <= 3; i++)); do\n'
                               '  echo "$(date +%T) epoch=$i loss=$(awk "BEGIN { printf \\"%.8f\\", ($x - 1) ^ 2 + 1 / $i }")"\ndone\n')
        self.tune("bash train.sh -x {x}", "report = 'loss=([-+.0-9a-zA-Z]+)'")

    def test_awk(self):
        self.write("train.awk", 'BEGIN { for (i = 1; i <= 3; i++) printf "%d\\t%.8g\\n", i, (x - 1) ^ 2 + 1 / i }\n')
        self.tune("awk -v x={x} -f train.awk", "report = '^\\d+\\t(\\S+)$'")

    @unittest.skipIf(shutil.which("gfortran") is None, "no gfortran here")
    def test_fortran(self):
        self.write("train.f90", "program train\n  real(8) :: x\n  integer :: i\n  character(32) :: word\n"
                                "  call get_command_argument(1, word)\n  read(word, *) x\n"
                                "  do i = 1, 3\n    write(*, '(a, i3, a, d24.16)') ' iteration', i, ' loss =', (x - 1)**2 + 1d0 / i\n"
                                "  end do\nend program\n")
        subprocess.run(["gfortran", "-o", "train", "train.f90"], cwd=self.folder, check=True, timeout=TIMEOUT)
        self.tune("./train {x}", "report = 'loss = *(\\S+)'")

    @unittest.skipIf(shutil.which("Rscript") is None, "no R here")
    def test_r(self):
        self.write("train.R", 'x <- as.numeric(commandArgs(TRUE)[1])\nfor (i in 1:3) cat("loss:", (x - 1)^2 + 1 / i, "\\n")\n')
        self.tune("Rscript train.R {x}", "report = 'loss: (\\S+)'")

    @unittest.skipIf(shutil.which("octave") is None, "no Octave here")
    def test_octave(self):
        self.write("train.m", 'x = str2double(argv(){1});\nfor i = 1:3\n  printf("loss = %.10g\\n", (x - 1)^2 + 1 / i);\nend\n')
        self.tune("octave -qf train.m {x}", "report = 'loss = (\\S+)'")

    def test_python_with_print(self):
        self.write("train.py", "import sys\nx = float(sys.argv[1])\nfor i in range(1, 4):\n"
                               "    print(f'Epoch {i}/3 - loss: {(x - 1) ** 2 + 1 / i:.8f} - acc: 0.5')\n")
        self.tune("python3 train.py {x}", "report = 'loss: (?P<loss>\\S+) - acc: (?P<acc>\\S+)'")

    def test_python_logging_to_standard_error(self):
        self.write("train.py", "import logging, sys\nlogging.basicConfig(level=logging.INFO)\nx = float(sys.argv[1])\n"
                               "for i in range(1, 4):\n    logging.info('loss %.8f', (x - 1) ** 2 + 1 / i)\n")
        self.tune("python3 train.py {x}", "report = 'INFO:root:loss (\\S+)'")

    def test_like_nanogpt(self):
        """Settings as --name=value that change globals; values of two kinds of lines."""
        self.write("train.py", "import sys\nx = 0.5\nmax_iters = 3\n"
                               "for word in sys.argv[1:]:\n    key, value = word[2:].split('=')\n    globals()[key] = float(value)\n"
                               "for i in range(1, int(max_iters) + 1):\n"
                               "    print(f'iter {i}: loss {2.5 / i:.4f}, time 12.34ms, mfu -100.00%')\n"
                               "    print(f'step {i}: train loss {2.0 / i:.4f}, val loss {(x - 1) ** 2 + 1 / i:.8f}')\n")
        self.tune("python3 train.py --max_iters={iterations} {args}",
                  "report = ['iter \\d+: loss (?P<batch_loss>[-.\\d]+), time', 'train loss (?P<train_loss>[-.\\d]+), val loss (?P<loss>[-.\\d]+)']")

    def test_argparse_with_booleans(self):
        self.write("train.py", "import argparse\np = argparse.ArgumentParser()\np.add_argument('--x', type=float)\n"
                               "p.add_argument('--amp', action='store_true')\na = p.parse_args()\n"
                               "for i in range(1, 4):\n    print('loss', (a.x - 1) ** 2 + 1 / i, 'amp', a.amp)\n")
        trials = self.tune("python3 train.py {args}", "flags = true\nreport = 'loss (\\S+) amp'", space="amp = [true, false]")
        self.assertEqual({trial["configuration"]["amp"] for trial in trials}, {True, False})

    @unittest.skipIf(subprocess.run(["python3", "-c", "import click"], capture_output=True).returncode != 0, "no click here")
    def test_click(self):
        self.write("train.py", "import click\n@click.command()\n@click.option('--x', type=float)\n@click.option('--amp/--no-amp')\n"
                               "def main(x, amp):\n    for i in range(1, 4):\n        click.echo(f'loss: {(x - 1) ** 2 + 1 / i} {amp}')\n"
                               "main()\n")
        self.tune("python3 train.py {args}", "flags = \"both\"\nreport = 'loss: (\\S+) '", space="amp = [true, false]")

    @unittest.skipIf(importlib.util.find_spec("hydra") is None, "no Hydra here")
    def test_hydra(self):
        self.write("config.yaml", "x: 0.5\nopt:\n  name: adam\n")
        self.write("train.py", "import hydra\n@hydra.main(version_base=None, config_path='.', config_name='config')\n"
                               "def main(c):\n    for i in range(1, 4):\n        print('loss', (c.x - 1) ** 2 + 1 / i)\nmain()\n")
        self.tune(f"{sys.executable} train.py {{args_hydra}}", "report = 'loss (\\S+)'", space="[space.opt]\nname = [\"adam\", \"sgd\"]")

    @unittest.skipIf(shutil.which("make") is None, "no make here")
    def test_a_target_of_a_makefile(self):
        self.write("Makefile", "X = 0.5\ntrain:\n\t@for i in 1 2 3; do awk \"BEGIN { print \\\"loss\\\", ($(X) - 1) ^ 2 + 1 / $$i }\"; done\n")
        self.tune("make -s train X={x}", "report = 'loss (\\S+)'")

    @unittest.skipIf(shutil.which("bwrap") is None or os.geteuid() != 0, "no bwrap here, or no root")
    def test_in_a_container(self):
        self.write("train.sh", 'for i in 1 2 3; do awk "BEGIN { print \\"loss\\", ($1 - 1) ^ 2 + 1 / $i }"; done\n')
        self.tune("bwrap --ro-bind / / --dev /dev --proc /proc --unshare-pid sh train.sh {x}", "report = 'loss (\\S+)'")

    def test_a_result_at_the_end(self):
        self.write("solve.sh", 'echo "mesh of 1200 cells"; awk "BEGIN { printf \\"residual after 40 steps: %.8f\\\\n\\", ($1 - 1) ^ 2 + 1 }"; echo bye\n')
        self.tune("sh solve.sh {x}", 'result = "last-number"', iterations=1)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
