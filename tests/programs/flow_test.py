#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs as trials as their users see them, from the command line: flow_test.py PROGRAM SOURCE_ROOT [TEST...]

Programs of the standard library, and numpy_ddp.py: the PyTorch tutorial's flow without PyTorch.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
SOURCES = pathlib.Path(sys.argv[2]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT = 150

STUDY = """[study]
name = "s"
metric = "{metric}"
mode = "max"
num_trials = {trials}
max_iterations = {ceiling}
seed = 1
[trainable]
command = '''{command}'''
{more}
[resources]
ranks = {ranks}
[space]
{space}
"""


def environment():
    unwanted = ("SLURM_", "OMPI_", "PMIX_", "PMI_", "RANKTUNE_", "PYTHON")
    env = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {**env, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ranktune-flow-")
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)

    def ranktune(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, *arguments], cwd=self.folder, env=environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def study(self, command, *overrides, metric="score", trials=6, ceiling=9, ranks=1, more="", workers=2, code=0,
              space='x = "uniform(0, 1)"'):
        """Runs a study; returns what it printed."""
        (self.folder / "s.toml").write_text(STUDY.format(metric=metric, trials=trials, ceiling=ceiling, command=command,
                                                         ranks=ranks, more=more, space=space))
        return self.ranktune("run", "s.toml", "--local", str(workers), *overrides, code=code)

    def python(self, script):
        (self.folder / "script.py").write_text(textwrap.dedent(script))
        return f"{sys.executable} -u script.py {{args}}"

    def export(self, name="s"):
        """{trial: row}, each with its reports as [{iteration, attempt, metrics...}]."""
        import csv
        import io

        trials = {row["id"]: {**row, "reports": []}
                  for row in json.loads(self.ranktune("export", name, "--format", "json"))["trials"]}
        table = self.ranktune("export", name, "--format", "csv", "--table", "reports")
        for row in csv.DictReader(io.StringIO(table)):
            trials[int(row["trial"])]["reports"].append(
                {key: float(value) for key, value in row.items() if key not in ("verdict",) and value})
        for trial in trials.values():
            self.assertEqual([report["iteration"] for report in trial["reports"]],
                             list(range(1, len(trial["reports"]) + 1)), "each iteration is trained once")
        return trials


class TrainingData(Case):
    def test_a_trial_that_dies_within_an_epoch_goes_on_with_the_next_samples(self):
        """70 samples, 20 in an iteration: 7 iterations are two epochs. An iteration that is trained again has the same samples."""
        import numpy as np

        np.save(self.folder / "x.npy", np.arange(70))
        command = self.python("""
            import os, ranktune, time
            here = ranktune.context()
            def save(folder):
                open(folder + "/state", "w").close()
            for i in range(here.iteration, here.iterations):
                while i == 4 and here.rank == 0 and not os.path.exists(f"met-{here.trial}-3-1"):
                    time.sleep(0.01)  # without it rank 0 may be done before the other one dies
                met = []
                for batch in ranktune.dataset("x.npy", batch=7, per_iteration=20):
                    met += batch.tolist()
                    if i == 3 and here.rank == 1 and not os.path.exists(f"died-{here.trial}"):
                        open(f"died-{here.trial}", "w").close()
                        os._exit(1)
                with open(f"met-{here.trial}-{i}-{here.rank}", "w") as file:
                    file.write(" ".join(map(str, met)))
                ranktune.report(score=1.0, checkpoint=save)
        """)
        self.study(command, "failure.max_failures=3", trials=2, ceiling=7, ranks=2, workers=2)
        self.assertIn(",data_wait,", self.ranktune("export", "s", "--format", "csv"))
        for trial in json.loads(self.ranktune("export", "s", "--format", "json"))["trials"]:
            number = trial["id"]
            self.assertEqual(trial["state"], "finished")
            self.assertGreaterEqual(len(trial["attempts"]), 2)
            met = " ".join(path.read_text() for path in self.folder.glob(f"met-{number}-*")).split()
            self.assertEqual(sorted(map(int, met)), sorted(2 * list(range(70))))

    def test_files_have_names_in_the_study_file(self):
        import numpy as np

        (self.folder / "d").mkdir()
        np.arange(12, dtype="uint16").tofile(self.folder / "d" / "tokens.bin")
        command = self.python("""
            import os, ranktune, sys
            assert sys.argv[1] == ranktune.data("text") and os.path.isabs(sys.argv[1]), sys.argv
            (batch,) = ranktune.dataset("text", batch=3, shuffle="none")
            assert batch.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], batch
            ranktune.report(score=1.0)
        """).replace("{args}", "{data.text}")
        text = '[data]\ntext = { path = "d/tokens.bin", dtype = "uint16", tokens = 4 }'
        self.study(command, trials=2, ceiling=1, more=text)
        self.assertRegex((self.folder / "s" / "resolved.toml").read_text(), r'(?m)^"data\.text" = "24 bytes, XXH64 [0-9a-f]{16}"$')

        # The file may move, but not change.
        (self.folder / "d").rename(self.folder / "e")
        out = self.ranktune("run", "s.toml", "--local", "2", "study.num_trials=3", code=2)
        self.assertRegex(out, r"(?m)^ +\d+:8 +data\.text: there is no file ")
        self.ranktune("run", "s.toml", "--local", "2", "study.num_trials=3", 'data.text.path="e/tokens.bin"')
        self.assertEqual(len(self.export()), 3)
        np.ones(12, dtype="uint16").tofile(self.folder / "e" / "tokens.bin")
        out = self.ranktune("run", "s.toml", "--local", "2", "study.num_trials=4", 'data.text.path="e/tokens.bin"', code=2)
        self.assertIn("the file of data.text holds something else", out)
        self.ranktune("replay", "s", "--verify")

    def test_trials_read_a_copy_on_their_node(self):
        (self.folder / "x.csv").write_text("x1,x2\n1.5,2\n3.5,4\n")
        (self.folder / "node").mkdir()
        command = self.python("""
            import ranktune
            (batch,) = ranktune.dataset("x", batch=2)
            assert batch.tolist() == [[1.5, 2.0], [3.5, 4.0]], batch
            (batch,) = ranktune.dataset("again", batch=4, per_iteration=4)
            assert batch.tolist() == 2 * [[1.5, 2.0], [3.5, 4.0]], batch
            print("read from", ranktune.data("x"))
            ranktune.report(score=1.0)
        """).replace("{args}", "--lr={x}")
        place = f"{self.folder}/node"
        staged = f'[data]\nx = {{ path = "x.csv", decode = true, shuffle = "none" }}\nagain = [{{ source = "x" }}]\nstage = true\ndirectory = "{place}"'
        self.study(command, trials=3, ceiling=1, more=staged)
        self.assertRegex(self.ranktune("logs", "s"), rf"read from {place}/ranktune-\d+/[0-9a-f]{{16}}-18/x\.safetensors")
        status = json.loads((self.folder / "s" / "status").read_text())
        self.assertEqual(status["data"], {"nodes": 1, "bytes": 18, "copied": 18, "read": 18})
        self.assertEqual(list((self.folder / "node").glob("*/*")), [])

        out = self.ranktune("run", "s.toml", "--local", "2", "study.num_trials=4", "--dry-run")
        self.assertIn(f"each node copies 18 B of data to {place}, or reads the original if that has no room; without room for the rows of data.x it ends", " ".join(out.replace("# ", "").split()))
        out = self.ranktune("run", "s.toml", "--local", "2", "study.num_trials=4", "data.directory=node", code=2)
        self.assertIn('data.directory: needs an absolute path, as in "/local/scratch", not "node"', out)
        out = self.ranktune("run", "s.toml", "--local", "2", "study.num_trials=4", "data.directory=/proc/none", code=1)
        self.assertRegex(" ".join(out.split()), r"data\.x \(18 B\) cannot be copied to \S+: data\.directory \(/proc/none\): .*decoded rows need a copy")

    def test_options_that_do_not_fit_a_file_are_mistakes_of_the_study_file(self):
        (self.folder / "x.raw").write_bytes(bytes(10))
        out = self.study("true", code=2, more='[data]\nx = { path = "x.raw", dtype = "float32", shape = [3] }')
        self.assertRegex(out, r"(?s)data\.x: data file '\S*x\.raw'.*check dtype and shape")

    def test_what_is_copied_packed_or_not_at_all_is_said_before_the_start(self):
        import h5py  # as numpy_ddp.py, which others start

        with h5py.File(self.folder / "x.h5", "w") as file:
            file.create_dataset("x", data=[0.0] * 1000, chunks=(100,), compression="gzip")
            virtual = h5py.VirtualLayout((1000,), "f8")
            virtual[:] = h5py.VirtualSource(file["x"])
        with h5py.File(self.folder / "v.h5", "w") as file:
            file.create_virtual_dataset("x", virtual)
        staged = f'[data]\nx = {{ path = "x.h5", decode = true }}\nv = "v.h5"\nstage = true\ndirectory = "{self.folder}"'
        out = " ".join(self.study("true", "--dry-run", more=staged).replace("# ", "").split())
        size = re.escape(f"{(self.folder / 'x.h5').stat().st_size / 1000:.1f} kB")
        self.assertRegex(out, f"each node copies {size} of data to \\S+, with 8.0 kB of decoded rows, or reads the original if that has no room "
                              "data.v is read where it is: data set 'x' is virtual: its rows are in other files")

    def test_a_table_with_texts_is_a_mistake_before_anything_is_copied(self):
        (self.folder / "x.csv").write_text("x,y\n1,red\n")
        out = self.study("true", code=2, more='[data]\nx = { path = "x.csv", decode = true }\nstage = true')
        self.assertRegex(" ".join(out.split()), r"data\.x: data file '\S*x\.csv': line 2, column 'y': 'red' is no number")

    def test_a_function_finds_the_files_of_the_study(self):
        (self.folder / "x.txt").write_text("4")
        (self.folder / "train.py").write_text("import ranktune\n\ndef train(config):\n    return float(open(ranktune.data('x')).read())\n")
        (self.folder / "s.toml").write_text(STUDY.format(
            metric="score", trials=1, ceiling=1, command="", ranks=1, more='[data]\nx = "x.txt"', space='x = "uniform(0, 1)"'
        ).replace("command = ''''''", f'python = "train.py:train"\ninterpreter = "{sys.executable}"'))
        self.ranktune("run", "s.toml", "--local", "1")
        self.assertEqual(self.export()[0]["reports"][0]["score"], 4.0)


class DataParallel(Case):
    """Two processes per trial that find each other as under torchrun."""

    SPACE = 'lr = "loguniform(1e-3, 1.0)"\nbatch_size = [32, 64, 128]'

    def run_digits(self, *overrides, workers=4):
        command = (f"{sys.executable} -u {HERE}/numpy_ddp.py --data={SOURCES}/jobs/digits/digits.h5 "
                   "--epochs={iterations} {args}")
        return self.study(command, *overrides, metric="val_accuracy", trials=9, ranks=2, space=self.SPACE, workers=workers)

    def test_promoted_trials_go_on_from_their_own_checkpoints(self):
        # Deterministic: otherwise it depends on who comes first whether a trial pauses before it is promoted.
        self.run_digits('scheduler.type="asha"', "study.deterministic=true", "study.max_concurrent=2", "searcher.type=random")
        trials = self.export()
        self.assertEqual(len(trials), 9)
        again = [trial for trial in trials.values() if trial["reports"][-1]["attempt"] > 1]
        self.assertTrue(again)
        for trial in trials.values():
            self.assertIn(trial["state"], ("paused", "finished", "stopped"))
            for before, after in zip(trial["reports"], trial["reports"][1:]):
                same = before["attempt"] == after["attempt"]
                self.assertEqual(after["started_at"], before["started_at"] if same else before["iteration"])
        self.assertGreater(max(trial["best"]["value"] for trial in trials.values()), 0.9)
        self.assertIn(9, {len(trial["reports"]) for trial in trials.values()})

    def test_the_stopping_form_starts_every_trial_once(self):
        self.run_digits('scheduler.type="asha"', "scheduler.variant=stop")
        trials = self.export()
        self.assertEqual({report["attempt"] for trial in trials.values() for report in trial["reports"]}, {1})
        self.assertEqual({report["started_at"] for trial in trials.values() for report in trial["reports"]}, {0})
        self.assertGreater(max(trial["best"]["value"] for trial in trials.values()), 0.9)


class Examples(Case):
    def test_the_template_runs_as_it_is_written(self):
        self.ranktune("init", "mine", "--template", "program")
        (self.folder / "ranktune.py").unlink()  # a study needs no copy of it
        self.ranktune("run", "mine.toml", "--local", "2", "study.num_trials=9")
        trials = self.export("mine")
        self.assertEqual(len(trials), 9)
        self.assertTrue(any(trial["reports"][-1]["attempt"] > 1 for trial in trials.values()))

    def test_the_shell_function_of_the_guide(self):
        page = (SOURCES / "docs/guides/programs.md").read_text()
        script = page.split("```bash\n", 1)[1].split("```", 1)[0]
        (self.folder / "train.sh").write_text(script)
        simulate = self.folder / "simulate"
        simulate.write_text('#!/bin/sh\necho "${1#--step=}.5"\n')
        simulate.chmod(0o755)
        self.study("bash -eu train.sh {args}", 'scheduler.type="asha"', "scheduler.variant=stop", metric="loss",
                   more="checkpoints = false")
        trials = self.export()
        self.assertEqual(len(trials), 6)
        self.assertTrue(any(len(trial["reports"]) == 9 for trial in trials.values()))

    def test_restarted_from_the_beginning_without_checkpoints(self):
        command = self.python("""
            import ranktune
            assert ranktune.checkpoint() is None and ranktune.context().iteration == 0
            for i in range(1, ranktune.context().iterations + 1):
                ranktune.report(score=ranktune.config().x + i)
        """)
        self.study(command, 'scheduler.type="asha"', "scheduler.restart_paused=true", more="checkpoints = false")
        rows = json.loads(self.ranktune("export", "s", "--format", "json"))["trials"]
        self.assertEqual({row["state"] for row in rows} - {"paused", "finished", "stopped"}, set())
        self.assertGreater(max(len(row["attempts"]) for row in rows), 1)


def blocks(page, heading, kind):
    """The code blocks of one kind under a heading of the guide to programs."""
    text = (SOURCES / "docs/guides" / page).read_text().split(f"\n{heading}\n", 1)[1]
    text = re.split(r"^#{2,3} ", re.sub(r"^```.*?^```$", lambda block: block[0].replace("\n#", "\n\0#"), text, flags=re.M | re.S),
                    maxsplit=1, flags=re.M)[0].replace("\0", "")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.M | re.S)


class Arguments(Case):
    """Booleans, lists and nested names as arguments: what the guide to programs says."""

    REPORT = """
import os, ranktune
trial = ranktune.config()
found = vars(args)
assert found.pop("epochs") == 9, found
assert found["amp"] is trial["amp"] and found["hidden"] == trial["hidden"] and found["lr"] == trial["lr"], (found, trial)
assert found["layers"] == trial["layers"], (found, trial)
assert found["momentum"] == trial.get("sgd", {}).get("momentum", 0.9), (found, trial)
ranktune.report(score=1.0)
"""

    def recipe(self):
        """(the [trainable] and [space] of the guide, its parser)"""
        (toml,), (script,) = blocks("programs.md", "## Arguments", "toml"), blocks("programs.md", "## Arguments", "python")
        return toml, script

    def run_recipe(self, toml, script):
        head = '[study]\nname = "s"\nmetric = "score"\nmode = "max"\nnum_trials = 8\nmax_iterations = 9\nseed = 1\n'
        (self.folder / "s.toml").write_text(head + toml.replace("python3", sys.executable))
        (self.folder / "train.py").write_text(script + self.REPORT)
        shown = self.ranktune("run", "s.toml", "--dry-run")
        out = self.ranktune("run", "s.toml", "--local", "2")
        self.assertIn("8 trials, 8 ok", out)
        configurations = [trial["configuration"] for trial in self.export().values()]
        self.assertEqual({configuration["amp"] for configuration in configurations}, {True, False})
        return shown

    def test_the_recipe_of_the_guide_fits_its_script(self):
        shown = self.run_recipe(*self.recipe())
        self.assertRegex(shown, r"runs .* --epochs=9 --lr=\S+ (--amp )?'--hidden=\[")
        self.assertNotIn("--amp=", shown)

    def test_a_boolean_optional_action_gets_both_flags(self):
        toml, script = self.recipe()
        shown = self.run_recipe(toml.replace("flags = true ", 'flags = "both" '),
                                script.replace('action="store_true"', "action=argparse.BooleanOptionalAction, default=None"))
        self.assertRegex(shown, r"--epochs=9 --lr=\S+ --(no-)?amp ")

    def test_a_script_with_flags_is_mended_in_the_study_that_it_failed(self):
        """What argparse says about --amp=true, and the way on that the guide names."""
        toml, script = self.recipe()
        with self.assertRaisesRegex(AssertionError, r"ignored explicit\s+argument '(true|false)'"):
            self.run_recipe(toml.replace("flags = true", "#"), script)
        (self.folder / "s.toml").write_text((self.folder / "s.toml").read_text().replace("# ", "flags = true # ", 1))
        out = self.ranktune("run", "s.toml", "--local", "2", "--restart-errored")
        self.assertIn("8 trials, 8 ok", out)
        self.assertIn("verified: ", self.ranktune("replay", "s", "--verify"))


WANDB = """
import json

class Run:
    def __init__(self, name, id):
        self.name, self.id = name, id
    def log(self, metrics, step):
        print(json.dumps([self.id, step, metrics]), file=open("logged", "a"))

def init(*, project, name, id, config, resume, mode):
    assert resume == "allow" and 0 < config["x"] < 1 and mode in ("online", "disabled")
    return Run(name, id)
"""


class Trackers(Case):
    def test_a_trial_is_one_run_of_weights_and_biases(self):
        """The lines of the guide with a stand-in for wandb: runs go on after pauses."""
        (lines,) = [block for block in blocks("programs.md", "## Frameworks", "python") if "wandb.init" in block]
        self.assertIn("    ...\n", lines)
        (self.folder / "wandb.py").write_text(WANDB)
        (self.folder / "script.py").write_text("import ranktune, wandb\n" + lines.replace("    ...\n", """
    accuracy, path = 0.5 - here.trial / 100 + epoch / 1000, f"{ranktune.context().checkpoint_dir}/state"
    open(path, "w").write(str(epoch))
"""))
        self.study(f"{sys.executable} -u script.py {{args}}", 'scheduler.type="asha"', metric="val_accuracy")
        trials = self.export()
        self.assertTrue(any(trial["reports"][-1]["attempt"] > 1 for trial in trials.values()))
        logged = sorted(map(json.loads, (self.folder / "logged").read_text().splitlines()), key=lambda line: line[:2])
        self.assertEqual([line[:2] for line in logged], sorted([f"s-{number}", step + 1] for number, trial in trials.items()
                                                               for step in range(len(trial["reports"]))))


class Ranks(Case):
    def test_rank_0_knows_the_metric_and_the_others_do_not(self):
        """The lines of the guide, through pauses; and nobody takes the other ranks for silent ones."""
        (lines,) = [block for block in blocks("programs.md", "### Rank 0 knows the metric, the others do not", "python")]
        (self.folder / "script.py").write_text(textwrap.dedent("""
            import os, ranktune
            here = ranktune.context()
            model, path = None, here.checkpoint_dir + "/state"
            def evaluate(model):
                assert here.rank == 0
                open(path, "w").write(str(here.iteration))
                return 0.5 - here.trial / 100  # the first one is promoted
            for _ in range(here.iteration, here.iterations):
                here = ranktune.context()
        """) + textwrap.indent(lines, "    "))
        self.study(f"{sys.executable} -u script.py {{args}}", 'scheduler.type="asha"', metric="val_accuracy", ranks=2, workers=2)
        trials = self.export()
        self.assertTrue(any(trial["reports"][-1]["attempt"] > 1 for trial in trials.values()))
        self.assertTrue(any(len(trial["reports"]) == 9 for trial in trials.values()))
        log = "".join(path.read_text() for path in (self.folder / "s/logs").glob("*.log"))
        self.assertNotIn("alone", log)
        self.assertNotIn("waiting for", log)

    def test_what_other_ranks_report_is_not_used(self):
        command = self.python("""
            import json, os, socket
            link = socket.socket(fileno=int(os.environ["RANKTUNE_FD"])).makefile("rw")
            mine = {"score": 1.0} if os.environ["RANK"] == "0" else {"score": 99.0, "other": 5}
            link.write(json.dumps({"report": mine, "checkpoint": "/nowhere" if os.environ["RANK"] == "1" else None}) + "\\n")
            link.flush()
            link.readline()
        """)
        self.study(command, ranks=2, trials=2, ceiling=1)
        self.assertEqual({trial["best"]["value"] for trial in self.export().values()}, {1.0})


APPTAINER = """#!/bin/sh
# Stands in for apptainer: a root of its own with a system (that of this machine, read-only) and what is bound; process ids,
# IPC and /tmp of its own. As apptainer does it, the folder in which it runs is bound, variables are passed on but for PATH.
[ "$1" = exec ] && shift
options="--unshare-pid --unshare-ipc --proc /proc --dev /dev --tmpfs /tmp --ro-bind /usr /usr --ro-bind /etc /etc"
for folder in bin sbin lib lib64; do [ -e /$folder ] && options="$options --symlink usr/$folder /$folder"; done
while :; do
    case $1 in
    --nv) shift ;;
    --bind) options="$options --bind $2 $2"; shift 2 ;;
    *) break ;;
    esac
done
[ -f "$1" ] || { echo "no image $1" >&2; exit 255; }
shift
PATH=/usr/bin:/bin exec bwrap $options --bind "$PWD" "$PWD" --chdir "$PWD" -- "$@"
"""


class Containers(Case):
    """The recipe of the guide with a stand-in for apptainer."""

    def setUp(self):
        super().setUp()
        probe = ["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "--unshare-ipc", "true"]
        if shutil.which("bwrap") is None:
            self.skipTest("no bwrap (Debian: bubblewrap)")
        done = subprocess.run(probe, capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"bwrap may not make namespaces here: {done.stderr.strip()}")
        # /tmp is the container's own: what is bound lies elsewhere.
        directory = tempfile.TemporaryDirectory(prefix="ranktune-container-", dir="/var/tmp")
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)
        self.stand_in = self.folder / "apptainer"
        self.stand_in.write_text(APPTAINER)
        self.stand_in.chmod(0o755)

    def recipe(self):
        (toml,) = blocks("programs.md", "## Containers", "toml")
        command = toml.split('command = "', 1)[1].split('"', 1)[0]
        self.assertIn("apptainer exec --nv --bind /scratch/ann train.sif python3 train.py", command)
        return command.replace("apptainer ", f"{self.stand_in} ")

    def test_a_program_in_a_container_reports_and_goes_on_from_its_checkpoint(self):
        data = self.folder / "scratch"
        work = self.folder / "work"
        data.mkdir()
        work.mkdir()
        (data / "data").write_text("42")
        (work / "train.sif").touch()
        (work / "train.py").write_text(textwrap.dedent(f"""
            import os, ranktune
            assert os.environ["WORLD_SIZE"] == "2" and "RANK" in os.environ
            assert not os.path.exists("{SOURCES}/README.md") and not os.path.exists("{self.stand_in}"), "not in a container"
            assert os.getpid() < 10, "not in a container"
            assert open("{data}/data").read() == "42"
            assert ranktune.__file__.endswith("/s/python/ranktune.py"), ranktune.__file__
            here = ranktune.context()
            before = ranktune.checkpoint()
            count = int(open(before).read()) if before else 0
            assert count == here.iteration, (count, here)
            for i in range(here.iteration, here.iterations):
                path = here.checkpoint_dir + "/state"
                if here.rank == 0:
                    open(path, "w").write(str(i + 1))
                ranktune.report(score=-here.trial, checkpoint=path)  # the first one is promoted
        """))
        self.folder = work
        self.study(self.recipe().replace("/scratch/ann", str(data)), 'scheduler.type="asha"', ranks=2)
        trials = self.export()
        self.assertEqual({trial["state"] for trial in trials.values()} - {"paused", "finished", "stopped"}, set())
        self.assertTrue(any(trial["reports"][-1]["attempt"] > 1 for trial in trials.values()))

    def test_a_container_that_hangs_is_stopped_and_leaves_no_process(self):
        mark = f"ranktune-hangs-{os.getpid()}"
        (self.folder / "train.sif").touch()
        (self.folder / "train.py").write_text(textwrap.dedent(f"""
            import os, ranktune, signal, subprocess, sys, time
            if len(sys.argv) > 1 and sys.argv[1] == "{mark}":
                time.sleep(1000)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            subprocess.Popen([sys.executable, __file__, "{mark}"], start_new_session=True)
            ranktune.report(score=1.0, exit=False)
            time.sleep(1000)
        """))
        self.study(self.recipe().replace("--bind /scratch/ann ", ""), 'run.abort_grace="1s"', ceiling=1, trials=1)
        self.assertEqual(len(self.export()[0]["reports"]), 1)
        left = [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if mark.encode() in read_bytes(path)]
        self.assertEqual(left, [])


def read_bytes(path):
    """Of a process that may be gone."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


class Mistakes(Case):
    def test_a_program_that_never_reports_is_told_how(self):
        out = self.study("true", code=4)
        self.assertIn("ended without a single report", out)
        # The page that it names is there, whatever the width of the screen does to its path.
        reason = json.loads(self.ranktune("export", "s", "--format", "json"))["trials"][0]["message"]
        page = re.search(r"; (/\S+/guides/programs\.md) shows how$", reason)
        self.assertIsNotNone(page, reason)
        self.assertTrue(os.path.isfile(page[1]), reason)

    def test_a_report_without_the_metric_ends_the_study_and_names_what_it_has(self):
        command = self.python("""
            import ranktune
            ranktune.report(scores=1.0, loss=2.0)
        """)
        out = self.study(command, code=2)
        self.assertRegex(out, r"lacks the study's metric 'score'; it has\s+scores, loss\. Did you mean")

    def test_the_message_of_a_failure_has_the_last_words_of_the_program(self):
        command = self.python("""
            import ranktune
            ranktune.report(score=1.0)
            import datasets_that_nobody_has
        """)
        out = self.study(command, code=4)
        self.assertIn("No module named 'datasets_that_nobody_has'", out)

    def test_a_program_whose_rank_0_alone_reports_is_stopped_at_its_rung(self):
        command = self.python("""
            import os, ranktune, time
            if os.environ["RANK"] == "0":
                for i in range(100):
                    ranktune.report(score=i)
            else:
                time.sleep(1000)
        """)
        self.study(command, ranks=2, ceiling=3, trials=1)
        self.assertEqual(len(self.export()[0]["reports"]), 3)

    def test_a_program_that_ignores_decisions_is_stopped(self):
        command = self.python("""
            import json, os, time
            while True:
                os.write(int(os.environ["RANKTUNE_FD"]), b'{"report": {"score": 1}}\\n')
                time.sleep(0.01)
        """)
        self.study(command, 'run.abort_grace="1s"', ceiling=3, trials=2)
        self.assertEqual({len(trial["reports"]) for trial in self.export().values()}, {3})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
