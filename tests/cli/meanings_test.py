#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Words, numbers and names that other tools read differently: meanings_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import csv
import io
import json
import os
import resource
import subprocess
import sys
import unittest

from cli_test import SOURCES, Case

STUDY = """[study]
name = "s"
metric = "loss"
mode = "min"
num_trials = {trials}
max_iterations = 1
[trainable]
command = "{python} train.py {arguments}"
{keys}
[searcher]
type = "{searcher}"
[failure]
tolerate = 1
in_a_row = 100
[space]
{space}
"""
SEEN = """import json, os, ranktune, sys
def seen(what):
    with open("seen.jsonl", "a") as file:
        file.write(json.dumps([ranktune.context().trial, what]) + "\\n")
"""


def python_with(*modules):
    """An interpreter that can import them all; raises SkipTest when there is none."""
    for python in (os.environ.get("RANKTUNE_HYDRA_PYTHON"), sys.executable, "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", "import " + ", ".join(modules)], capture_output=True).returncode == 0:
            return python
    raise unittest.SkipTest(f"no Python here has {' and '.join(modules)}")


class Meanings(Case):
    def study(self, program, space='x = "uniform(0, 1)"', trials=1, arguments="", keys="", searcher="random", python=sys.executable):
        (self.cwd / "train.py").write_text(SEEN + program)
        self.write("s.toml", STUDY.format(trials=trials, arguments=arguments, keys=keys, searcher=searcher, python=python, space=space))

    def run_study(self, *arguments, **options):
        return self.ranktune("run", "s.toml", "--local", "2", *arguments, **options)

    def seen(self):
        """What each trial noted, by trial."""
        return [what for _, what in sorted(json.loads(line) for line in (self.cwd / "seen.jsonl").read_text().splitlines())]


class Space(Meanings):
    PROGRAM = "seen(dict(ranktune.config())); ranktune.report(loss=1)\n"

    def test_a_study_that_tunes_nothing_says_so_wherever_it_is_looked_at(self):
        self.study(self.PROGRAM, "lr = 0.1\nlayers = [3]", trials=2)
        note = "nothing is tuned: lr, ... of [space] are constants, so all 2 trials have the same configuration"
        for words in (["validate", "s.toml"], ["run", "s.toml", "--dry-run"], ["run", "s.toml", "--local", "2"]):
            said = " ".join(self.ranktune(*words)[0].replace("# ", " ").split())
            self.assertIn(note, said)
        self.study(self.PROGRAM, "lr = [0.1, 0.2]", trials=2)
        self.assertNotIn("nothing is tuned", self.ranktune("validate", "s.toml")[0])

    def test_a_table_of_constants_is_remarked_on_wherever_it_is_looked_at(self):
        self.study(self.PROGRAM, "lr = [0.1, 0.2]\n[space.x]\nleast = 0\nmost = 1\nkind = 'q'", trials=2)
        note = "space.x is a table of constants (least, most, kind): nothing in it is tuned. A range is a line of its own, x = "
        for words in (["validate", "s.toml"], ["run", "s.toml", "--dry-run"], ["run", "s.toml", "--local", "2"]):
            self.assertIn(note, " ".join(self.ranktune(*words)[0].replace("# ", " ").split()))
        for space in ("lr = [0.1, 0.2]\n[space.x]\nleast = 0\nkind = 'q'", "[space.x]\nleast = 0\nmost = 1\n[space.x.y]\nz = [1, 2]"):
            self.study(self.PROGRAM, space, trials=2)
            self.assertNotIn("table of constants", self.ranktune("validate", "s.toml")[0])

    def test_a_range_of_another_tool_starts_nothing(self):
        self.study(self.PROGRAM, "lr = [0.1, 0.2]", trials=2)
        said = self.ranktune("run", "s.toml", "space.lr=0.1,0.2", code=2)[1]
        self.assertIn("write lr = [0.1, 0.2], to draw between bounds lr = \"uniform(0.1, 0.2)\"", " ".join(said.split()))
        for line in ("lr = { min = 1e-5, max = 1e-1 }", 'lr = { distribution = "log_uniform_values", min = 1e-5, max = 1e-1 }'):
            self.study(self.PROGRAM, line, trials=2)
            said = self.ranktune("run", "s.toml", "--local", "2", code=2)[1]
            self.assertIn("uniform(1e-05, 0.1)", said)
            self.assertFalse((self.cwd / "s").exists())

    def test_steps_from_the_lower_bound_are_those_of_optuna_and_multiples_are_told_apart(self):
        self.study(self.PROGRAM, 'n = "steprandint(1, 10, 3)"', trials=4, searcher="grid")
        self.assertNotIn("note", self.ranktune("validate", "s.toml")[0])
        self.run_study()
        self.assertEqual([each["n"] for each in self.seen()], [1, 4, 7, 10])
        self.study(self.PROGRAM, 'n = "qrandint(1, 10, 3)"', trials=3, searcher="grid")
        said = " ".join(self.ranktune("validate", "s.toml")[0].split())
        self.assertIn('n = "qrandint(1, 10, 3)" has multiples, from 3 to 9; "steprandint(1, 10, 3)" counts from its lower bound', said)
        guide = (SOURCES / "docs/guides/migrating-from-optuna.md").read_text()
        self.assertIn("`steprandint(a, b, q)`", guide)
        self.assertNotIn("`qrandint(a, b, q)`", guide)

    def test_a_study_whose_lists_had_no_order_keeps_it_so(self):
        self.run_tiny("-q", "space.lr=choice([0.001, 0.01, 0.1], ordered=false)")
        out, _ = self.run_tiny("space.lr=[0.001, 0.01, 0.1]", "study.num_trials=8")
        self.assertNotRegex(out, r"changed +space")
        self.assertIn('lr = "choice([0.001, 0.01, 0.1], ordered=false)"', (self.cwd / "tiny" / "resolved.toml").read_text())
        self.ranktune("replay", "tiny", "--verify")
        _, err = self.run_tiny("space.lr=[0.001, 0.01, 0.2]", code=2)
        self.assertIn("space.lr", err)

    def test_two_values_that_make_the_same_argument_are_noted(self):
        space = 'layers = [["a,b"], ["a", "b"]]'
        self.study(self.PROGRAM, space, trials=2, arguments="{args}")
        self.assertIn("make the same argument", " ".join(self.ranktune("validate", "s.toml")[0].split()))
        for arguments in ("{args_hydra}", "{args:py}", "{config}", ""):
            self.study(self.PROGRAM, space, trials=2, arguments=arguments)
            self.assertNotIn("make the same", " ".join(self.ranktune("validate", "s.toml")[0].split()))


class Words(Meanings):
    STRINGS = ["a b", "it's", 'say "hi"', "$HOME", "${HOME}", "a;b|c&d", "", "-x", "--flag", "ä 中文", "{lr}", "a\nb", "back\\slash",
               "end\\", "\\'", "*", "~", "a=b", "%d", "a,b", "true", "NULL", "None", "1e-5", "007", "inf", "plain", "[1, 2]", "a:b",
               "${oc.env:HOME}", "\\${x}", "choice(a,b)", "#", "2026-11-27"]

    def space(self):
        return "s = " + json.dumps(self.STRINGS, ensure_ascii=False)

    def test_strings_arrive_as_they_are_in_arguments_and_configuration(self):
        self.study('seen([sys.argv[1:], ranktune.config().s]); ranktune.report(loss=1)\n', self.space(), len(self.STRINGS), "{args}",
                   searcher="grid")
        self.run_study()
        self.assertEqual(self.seen(), [[["--s=" + text], text] for text in self.STRINGS])

    def test_hydra_reads_every_string_as_it_is(self):
        python = python_with("hydra")
        (self.cwd / "conf").mkdir()
        (self.cwd / "conf" / "config.yaml").write_text("s: x\nn: [1]\n")
        program = """import hydra
@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    seen([cfg.s, list(cfg.n), ranktune.config().s])
    ranktune.report(loss=1)
main()
"""
        for arguments in ("{args_hydra}", "{args_plain}"):
            (self.cwd / "seen.jsonl").unlink(missing_ok=True)
            self.study(program, self.space() + '\nn = { value = ["a,b", true, 1.5, "1.5"] }', len(self.STRINGS), arguments,
                       searcher="grid", python=python)
            self.run_study("--fresh")
            self.assertEqual(self.seen(), [[text, ["a,b", True, 1.5, "1.5"], text] for text in self.STRINGS])

    def test_values_as_python_prints_them(self):
        self.study("seen(sys.argv[1:]); ranktune.report(loss=1)\n", 'amp = true\ndrop = "None"\nnet = { value = [64, "a"] }', 1,
                   "{args:py} {amp:py} {net:py}")
        self.run_study()
        self.assertEqual(self.seen(), [["--amp=True", "--drop=None", "--net=[64, 'a']", "True", "[64, 'a']"]])

    def test_the_name_of_a_study_may_be_a_number_or_a_date_of_the_shell(self):
        self.study("ranktune.report(loss=1)\n")
        for name in ("123456", "2026-11-27", "1e5", "007"):
            self.assertIn(f'name = "{name}"', self.ranktune("run", "s.toml", "--dry-run", f"study.name={name}")[0])
        self.run_study("study.name=123456")
        self.assertTrue((self.cwd / "123456" / "journal").exists())


class Environment(Meanings):
    def test_settings_pass_and_variables_have_the_text_of_the_file(self):
        names = ["HYDRA_FULL_ERROR", "MPI_HOME", "SLURM_CONF", "V", "D", "I", "RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK"]
        self.study(f"seen([os.environ.get(name) for name in {names}]); ranktune.report(loss=1)\n",
                   keys="env = { V = 3.10, D = 2026-11-27, I = inf }")
        self.run_study(HYDRA_FULL_ERROR="1", MPI_HOME="/opt/mpi", SLURM_CONF="/etc/slurm.conf")
        self.assertEqual(self.seen(), [["1", "/opt/mpi", "/etc/slurm.conf", "3.10", "2026-11-27", "inf", "0", "1", None]])

    def test_a_program_may_be_without_the_variables_of_a_launcher(self):
        self.study('seen(sorted(set(os.environ) & {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}));'
                   'ranktune.report(loss=1)\n', keys="launcher_variables = false")
        self.run_study(RANK="3", MASTER_ADDR="n0")
        self.assertEqual(self.seen(), [[]])

    def test_a_study_directory_may_have_any_name(self):
        self.study("seen(ranktune.context().study_dir); ranktune.report(loss=1, checkpoint=lambda f: open(f + '/w', 'w').write('x'))\n",
                   trials=2, keys='env = { MINE = "1" }')
        for name in ("run-2026-11-27T10:30:00", "a b,c;d%j$x", "parent:1/s"):
            out, _ = self.run_study("-o", name, "--set", "hooks.on_study_end=true")
            self.assertIn("2 ok", out)
            self.assertEqual(set(self.seen()), {str((self.cwd / name).resolve())})
            (self.cwd / "seen.jsonl").unlink()
            self.assertIn("best", self.ranktune("best", name)[0])
            self.assertEqual(len(self.exported(name)["trials"]), 2)


class Names(Meanings):
    def test_a_metric_that_is_called_like_a_hyper_parameter_has_one_name_of_its_own(self):
        self.study("c = ranktune.config(); ranktune.report({'loss': 1, 'lr': 100 + c.lr, 'time': 7})\n", 'lr = "uniform(0, 1)"', 4)
        self.run_study()
        titles = self.ranktune("status", "s", COLUMNS="200")[0].split("trial ", 1)[1].splitlines()[0].split()
        self.assertEqual(len(titles), len(set(titles)), titles)
        self.assertIn("lr", titles)

        def chosen(*arguments):
            out = self.ranktune("status", "s", "--columns", "trial,lr,metric.lr,metric.time", *arguments)[0]
            return [line.replace("*", "").split() for line in out.splitlines() if "#" in line and " 7" in line]
        self.assertEqual(len(chosen("--filter", "lr < 50")), 4)
        self.assertEqual(len(chosen("--filter", "metric.lr < 50")), 0)
        rows = chosen("--sort", "lr")
        self.assertEqual([float(row[1]) for row in rows], sorted(float(row[1]) for row in rows))
        self.assertTrue(all(float(row[1]) < 1 < 100 <= float(row[2]) for row in rows), rows)
        table = list(csv.DictReader(io.StringIO(self.ranktune("export", "s", "--format", "csv")[0])))
        self.assertTrue(all(float(row["lr"]) < 1 and float(row["metric.lr"]) >= 100 for row in table))
        script = ("import sys; sys.path.insert(0, sys.argv[1]); import ranktune\n"
                  "for row in ranktune.Study('s', program=sys.argv[2]).rows(): print(row['lr'] < 1, row['metric.lr'] >= 100)\n")
        python = subprocess.run([sys.executable, "-c", script, SOURCES / "tools/python", os.path.abspath(sys.argv[1])], cwd=self.cwd,
                                capture_output=True, text=True)
        self.assertEqual(python.stdout, "True True\n" * 4, python.stderr)

    def test_a_conditional_hyper_parameter_keeps_its_name_where_it_is_absent(self):
        self.study("c = ranktune.config(); ranktune.report(loss=1, m=5)\n",
                   'a = "grid([1, 2])"\nm = { domain = "uniform(0, 1)", condition = "a == 1" }', 2)
        self.run_study()
        script = ("import sys; sys.path.insert(0, sys.argv[1]); import ranktune\n"
                  "print([sorted(set(row) & {'m', 'metric.m'}) for row in ranktune.Study('s', program=sys.argv[2]).rows()])\n")
        python = subprocess.run([sys.executable, "-c", script, SOURCES / "tools/python", os.path.abspath(sys.argv[1])], cwd=self.cwd,
                                capture_output=True, text=True)
        self.assertEqual(python.stdout, "[['m', 'metric.m'], ['metric.m']]\n", python.stderr)

    def test_tens_of_thousands_of_metrics_cost_no_more_than_their_number(self):
        """To compare each name with all others would take 16 times as long for four times as many."""
        def cpu_time_with(count):
            self.study(f"ranktune.report({{'loss': 1, **{{f'm{{i}}': i for i in range({count})}}}})\n")
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.run_study("--fresh")
            self.ranktune("status", "s")
            exported = self.exported("s")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.assertEqual(len(exported["reports"][0]["metrics"]), count + 1)
            return after.ru_utime - before.ru_utime
        self.assertLess(cpu_time_with(50_000), 8 * cpu_time_with(12_500))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
