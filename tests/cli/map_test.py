#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A command for each row of a table, a grid or an array: map_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import collections
import csv
import json
import os
import shutil
import socket
import subprocess
import unittest

from cli_test import PROGRAM, Case, environment, sys
from kills import Kills

TABLE = 'x,name\n1,"a, b"\n0.10,"say ""hi"" $HOME"\n3,"two\nlines ünï"\n'


class Mapping(Kills, Case):
    def map(self, *arguments, **options):
        return self.ranktune("map", "--local", "2", *arguments, **options)

    def results(self, name="map"):
        with open(self.cwd / name / "results.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def said(self):
        """What the tasks wrote: a line of JSON each."""
        return [json.loads(line) for line in (self.cwd / "said").read_text().splitlines()]

    def test_columns_reach_the_command_as_they_are_written(self):
        (self.cwd / "table.csv").write_text(TABLE)
        (self.cwd / "say.py").write_text('import json, sys\nopen("said", "a").write(json.dumps(sys.argv[1:]) + "\\n")\n')
        out, _ = self.map("-i", "table.csv", "--", sys.executable, "say.py", "--x={x}", "--name={name}", "{trial}", '{"a": {"b": 1}}',
                          "${HOME}", "{{x}}")
        rest = ['{"a": {"b": 1}}', "${HOME}", "{x}"]
        self.assertEqual(sorted(self.said()), sorted([["--x=1", "--name=a, b", "0", *rest], ["--x=0.10", '--name=say "hi" $HOME', "1", *rest],
                                                      ["--x=3", "--name=two\nlines ünï", "2", *rest]]))
        rows = self.results()
        self.assertEqual([(row["task"], row["state"], row["x"], row["name"]) for row in rows],
                         [("0", "finished", "1", "a, b"), ("1", "finished", "0.10", 'say "hi" $HOME'), ("2", "finished", "3", "two\nlines ünï")])
        self.assertIn("map/results.csv", out)

    def test_the_number_of_a_row_is_a_placeholder_unless_a_column_is_called_so(self):
        (self.cwd / "table.csv").write_text("x\na\nb\n")
        self.map("-i", "table.csv", "trainable.env.ROW={row}", "--", "echo {row} $ROW {args} > out_{row}.txt")
        for row, cell in enumerate("ab"):
            self.assertEqual((self.cwd / f"out_{row}.txt").read_text(), f"{row} {row} --x={cell}\n")
        (self.cwd / "table.csv").write_text("row\na\nb\n")
        self.map("-i", "table.csv", "-o", "own", "--", "echo {args} > own_{row}.txt")
        self.assertEqual((self.cwd / "own_b.txt").read_text(), "--row=b\n")

    def test_values_between_quotes_of_a_shell_command_are_texts(self):
        cells = ["it's", 'say "hi"', "$(touch bad)", "`touch bad`", "'; touch bad; '", "a\\b"]
        with open(self.cwd / "table.csv", "w", newline="") as file:
            csv.writer(file).writerows([["c"]] + [[cell] for cell in cells])
        self.map("-i", "table.csv", "--", "printf '%s\\n' \"{c}\" '{c}' {c} > out_{row}")
        for row, cell in enumerate(cells):
            self.assertEqual((self.cwd / f"out_{row}").read_text().splitlines(), [cell] * 3)
        self.assertFalse((self.cwd / "bad").exists())
        self.assertIn("a value cannot be quoted where {c} stands", self.map("-i", "table.csv", "-o", "b", "--", "echo `cat {c}`", code=2)[1])

    def test_a_dry_run_shows_whole_commands(self):
        (self.cwd / "table.csv").write_text('x\n1\n"a b"\n')
        shown = self.map("-i", "table.csv", "--dry-run", "--", "echo", "--x={x}", "{row}", "{trial}")[0]
        self.assertIn("runs echo --x=1 0 0\n", shown)
        self.assertIn("runs echo '--x=a b' 1 1\n", shown)

    def test_a_shell_values_of_a_line_of_json_failures_and_a_second_try(self):
        (self.cwd / "table.csv").write_text(TABLE)
        command = "test -e mended -o {x} != 3 && echo ok && printf '{\"y\": %s, \"word\": \"w\"}\\n' {x}"
        out, _ = self.map("-i", "table.csv", "-o", "tasks", "--", command, code=3)
        self.assertEqual([(row["state"], row["exit_code"], row["attempts"], row["y"], row["word"]) for row in self.results("tasks")],
                         [("finished", "0", "1", "1.0", "w"), ("finished", "0", "1", "0.1", "w"), ("failed", "1", "1", "", "")])
        self.assertEqual({row["host"] for row in self.results("tasks")}, {socket.gethostname()})
        self.assertTrue(all(float(row["seconds"]) > 0 for row in self.results("tasks")))
        self.assertIn("exit code 1", self.results("tasks")[2]["message"])
        # Nothing is compared, so no view names a best task.
        self.assertRegex(out, r"(?m)^tasks +2 done, 1 failed; \S+ per (second|hour)$")
        self.assertIn("ranktune status tasks --filter 'state == failed'", out)
        best, _ = self.ranktune("best", "tasks")
        self.assertRegex(best, r"(?m)^tasks +2 done, 1 failed; nothing is compared")
        status, _ = self.ranktune("status", "tasks")
        self.assertRegex(status, r"\]  3/3 tasks")
        self.assertRegex(status, r"(?m)^running 0 \S finished 2 \S failed 1 \S \S+ per (second|hour)$")
        for text in (out, status):
            self.assertNotRegex(text, r"(?m)best +(#|0)|ranktune best")
        self.assertNotRegex(self.ranktune("status", "tasks", "--all")[0], r"(?m)^\s*[*★]")
        self.assertNotIn("#0", self.ranktune("ls")[0])
        self.assertIsNone(json.loads(self.ranktune("best", "tasks", "--json")[0])["best"])
        self.assertIsNone(self.exported("tasks")["study"]["best_trial"])
        (self.cwd / "mended").write_text("")
        self.map("-i", "table.csv", "-o", "tasks", "--restart-errored", "--", command)
        self.assertEqual([row["y"] for row in self.results("tasks")], ["1.0", "0.1", "3.0"])

    def test_values_of_a_long_line_and_a_table_that_was_edited(self):
        (self.cwd / "table.csv").write_text("x\n1\n2\n")
        (self.cwd / "say.py").write_text("import json\nprint('begin')\nprint(json.dumps({f'value_{i}': i for i in range(5000)}))\n")
        self.map("-i", "table.csv", "--", sys.executable, "say.py", "{x}")
        for row in self.results():
            self.assertEqual((row["value_0"], row["value_4999"]), ("0.0", "4999.0"))
        (self.cwd / "table.csv").write_text("x\n2\n1\n")
        table, said = self.ranktune("export", "map", "--format", "csv")
        self.assertIn("without the columns of the table: ", said)
        self.assertIn("table.csv' has changed since the study began", said)
        self.assertNotIn("x", table.splitlines()[0].split(","))

    def test_what_a_task_calls_exit_code_is_not_its_exit_code(self):
        said = '{"exit_code": 7, "note": "a: b", "label": "x: y", "sometimes": '
        self.map("--grid", "n=[0,1]", "--", "sh", "-c", f"echo '{said}'$0'}}'", "{n}")
        names = "task state exit_code host seconds attempts message n metric.exit_code sometimes label note".split()
        with open(self.cwd / "map" / "results.csv", newline="") as file:
            self.assertEqual(next(csv.reader(file)), names)
        for row in self.results():
            self.assertEqual([row[name] for name in names[7:]], [row["task"], "7.0", f"{row['task']}.0", "x: y", "a: b"])
        (self.cwd / "work.py").write_text("import ranktune\nfor row in ranktune.tasks():\n    ranktune.result(exit_code=9)\n")
        self.map("--grid", "n=[1]", "-o", "kept", "--kept", "--", sys.executable, "work.py")
        self.assertEqual((self.results("kept")[0]["exit_code"], self.results("kept")[0]["metric.exit_code"]), ("0", "9.0"))

    def test_the_exit_code_of_a_program_that_says_why_it_failed(self):
        (self.cwd / "work.py").write_text("import sys, ranktune\nraise ValueError('exit code 7 was expected')\n")
        self.map("--grid", "n=[1]", "--", sys.executable, "work.py", code=4)
        self.assertEqual(self.results()[0]["exit_code"], "1")
        self.assertIn("exit code 7 was expected", self.results()[0]["message"])
        self.map("--grid", "n=[1]", "-o", "late", "--timeout", "1s", "--", "echo exit code 7; exec sleep 60", code=4)
        self.assertEqual(self.results("late")[0]["exit_code"], "")
        (self.cwd / "work.py").write_text("import os, ranktune\nfor row in ranktune.tasks():\n    os._exit(6)\n")
        self.map("--grid", "n=[1]", "-o", "kept", "--kept", "--", sys.executable, "work.py", code=4)
        self.assertEqual(self.results("kept")[0]["exit_code"], "6")

    def test_texts_have_the_names_that_tasks_give_them(self):
        values = {"a: b": "c: d", "e:": "f", "g\\": ": h", "i": "j: k", "note": "no colon"}
        (self.cwd / "say.py").write_text(f"import json\nprint(json.dumps({values!r}))\n")
        self.map("--grid", "n=[1]", "--", sys.executable, "say.py", "{n}")
        row = self.results()[0]
        self.assertEqual({name: row.get(name) for name in values}, values)

    def test_cells_reach_the_results_byte_for_byte(self):
        table = b'x,y\r\n a ,\xff\xfe\r\n'
        (self.cwd / "table.csv").write_bytes(table)
        self.map("-i", "table.csv", "--", "printf '[%s]' {x} > out")
        self.assertEqual((self.cwd / "out").read_text(), "[ a ]")
        self.assertTrue((self.cwd / "map" / "results.csv").read_bytes().endswith(b", a ,\xff\xfe\r\n"))

    def test_a_task_is_retried(self):
        (self.cwd / "flaky.sh").write_text('echo x >> tries; test "$(wc -l < tries)" -ge 3\n')
        self.map("--grid", "n=[1]", "--retries", "1", "-o", "few", "--", "sh", "flaky.sh", code=4)
        (self.cwd / "tries").unlink()
        self.map("--grid", "n=[1]", "--retries", "2", "-o", "more", "--", "sh", "flaky.sh")
        self.assertEqual(self.results("more")[0]["attempts"], "3")

    def test_a_job_array_is_one_line_to_change(self):
        names = ["TASK_ID", "TASK_MIN", "TASK_MAX", "TASK_STEP", "TASK_COUNT", "JOB_ID"]
        (self.cwd / "job.sh").write_text("#SBATCH --array=1-9:4\nprintf '[%s, %s, %s, %s, %s, %s]\\n' " +
                                         " ".join(f"$SLURM_ARRAY_{name}" for name in names) + " >> said\n")
        self.map("--array", "1-9:4%1", "--", "bash", "job.sh")
        said = self.said()
        self.assertEqual([each[:5] for each in said], [[1, 1, 9, 4, 3], [5, 1, 9, 4, 3], [9, 1, 9, 4, 3]])  # one at a time: in order
        self.assertEqual(len({each[5] for each in said}), 1)
        (self.cwd / "said").unlink()
        self.map("--array", "0,7,3-4", "-o", "parts", "--", "bash", "job.sh")
        self.assertEqual(sorted(each[:4] for each in self.said()), [[task, 0, 7, 1] for task in (0, 3, 4, 7)])
        self.map("--array", "0,7,3-4", "-o", "parts", "--fresh", "--", "bash", "job.sh")
        self.assertEqual(sorted(collections.Counter(each[5] for each in self.said()).values()), [4, 4])

    def test_lines_of_a_job_script_that_ask_for_more_than_a_task_has_are_named(self):
        lines = ["#!/bin/bash", "#SBATCH --time=1:00", "#SBATCH -n 2", "#SBATCH --cpus-per-task=8", "#SBATCH --gres=gpu:a100:2", "true",
                 "#SBATCH --ntasks=9"]
        (self.cwd / "job.sh").write_text("\n".join(lines) + "\n")
        (self.cwd / "job.sh").chmod(0o755)
        for command in (["bash", "job.sh"], ["./job.sh"]):
            shown = " ".join(self.map("--array", "1-3", "--dry-run", "--", *command)[0].replace("\n#", " ").split())
            self.assertIn("a task has less than these lines ask for: job.sh:3 (#SBATCH -n 2), job.sh:4 (#SBATCH --cpus-per-task=8), job.sh:5 (#SBATCH --gres=gpu:a100:2)"
                          "; in a command they are comments: set resources.ranks=2, resources.cpus_per_rank=8, resources.gpus=2", shown)
        (self.cwd / "short.sh").write_text("#!/bin/bash\n#SBATCH -J x -n 1 -c 8 # -n 4\ntrue\n")
        shown = " ".join(self.map("--array", "1-3", "--dry-run", "--", "bash", "short.sh")[0].replace("\n#", " ").split())
        self.assertIn("short.sh:2 (#SBATCH -J x -n 1 -c 8 # -n 4); in a command they are comments: set resources.cpus_per_rank=8", shown)
        enough = ["resources.ranks=2", "resources.cpus_per_rank=8"]
        (self.cwd / "job.sh").write_text("\n".join(lines[:4]) + "\ntrue\n")
        self.assertNotIn("a task has less", self.map("--array", "1-3", *enough, "--dry-run", "--", "bash", "job.sh")[0])

    def test_all_ranks_of_a_launcher_begin_with_the_same_line(self):
        launcher = shutil.which("mpirun.openmpi")
        if launcher is None:
            self.skipTest("no mpirun of Open MPI")
        root = ["--allow-run-as-root"] if os.getuid() == 0 else []
        for number in range(3):
            subprocess.run([launcher, *root, "--oversubscribe", "--bind-to", "none", "-n", "6", PROGRAM, "map", "--array", "0-9",
                            "-o", f"m{number}", "--progress", "none", "--", "true"], cwd=self.cwd, env=environment(), check=True,
                           capture_output=True, stdin=subprocess.DEVNULL)
            self.assertEqual(len(self.results(f"m{number}")), 10)
            self.assertEqual([path.name for path in self.cwd.glob(f"m{number}.*")], [f"m{number}.toml"])

    def test_a_grid_and_the_configuration_in_python(self):
        (self.cwd / "run.py").write_text("import json, ranktune\nconfig = ranktune.config()\n"
                                         'print(json.dumps({"sum": config.lr + config.seed}))\n')
        self.map("--grid", "lr=[0.5,0.25]", "seed=range(2)", "--", sys.executable, "run.py")
        self.assertEqual([(row["lr"], row["seed"], row["sum"]) for row in self.results()],
                         [("0.5", "0", "0.5"), ("0.5", "1", "1.5"), ("0.25", "0", "0.25"), ("0.25", "1", "1.25")])

    def test_after_kill_9_the_same_line_goes_on(self):
        rows = 300
        (self.cwd / "table.csv").write_text("x\n" + "".join(f"{row}\n" for row in range(rows)))
        line = ["-i", "table.csv", "--", "sh", "-c", 'echo "$0" >> said', "{x}"]
        for done in (40, 150):
            process = subprocess.Popen([PROGRAM, "map", "--local", "2", *line], cwd=self.cwd, env=environment(), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            said = self.cwd / "said"
            self.wait_until(lambda: process.poll() is not None or (said.exists() and len(said.read_text().splitlines()) >= done),
                            f"{done} tasks")
            self.kill_all()
            process.wait()
        self.map(*line)
        results = self.results()
        self.assertEqual([row["x"] for row in results], [str(row) for row in range(rows)])
        self.assertEqual({row["state"] for row in results}, {"finished"})
        times = collections.Counter(self.said())
        self.assertEqual(set(times), set(range(rows)))
        # Again ran only what had no record when ranks were killed: of each kill, a task of each rank, and those whose records
        # were on their way.
        again = sum(times.values()) - rows
        self.assertLessEqual(again, 30, times)

    def test_other_rows_are_another_study(self):
        (self.cwd / "table.csv").write_text("x\n1\n2\n")
        self.map("-i", "table.csv", "--", "echo", "{x}")
        (self.cwd / "table.csv").write_text("x\n1\n2\n3\n")
        self.assertIn("'map.toml' exists and says something else in line 15, `row = \"randint(0, 2)\"`, which would be `row = \"randint(0, 3)\"`",
                      self.map("-i", "table.csv", "--", "echo", "{x}", code=2)[1])
        (self.cwd / "table.csv").write_text("x\n1\n3\n")
        self.assertIn("table", self.map("-i", "table.csv", "--", "echo", "{x}", code=2)[1])
        self.map("-i", "table.csv", "--fresh", "--", "echo", "-{x}")
        self.assertEqual([row["x"] for row in self.results()], ["1", "3"])

    def test_a_map_that_has_begun_gets_another_command_and_other_limits(self):
        (self.cwd / "table.csv").write_text("x\n1\n2\n")
        self.map("-i", "table.csv", "--", "test", "{x}", "=", "1", code=3)
        file = self.cwd / "map.toml"
        file.write_text(file.read_text().replace("max_failures = 0\n", "max_failures = 5\n") + "\n[slurm]\npartition = \"long\"\n")
        said = self.map("-i", "table.csv", "--retries", "1", "--timeout", "90s", "--restart-errored", "--", "test", "{x}", "=", "2")[1]
        self.assertEqual([row["state"] for row in self.results()], ["finished", "finished"])
        self.assertIn('iteration_timeout = "90s"', file.read_text())
        self.assertIn('map.toml is written anew, and no longer says `command = "test \'{x}\' = 1"`, `max_failures = 5`, `[slurm]`, '
                      '`partition = "long"`; settings belong', said)

    def test_tasks_work_where_the_command_was_given_and_all_of_it_may_move(self):
        here = self.cwd / "here"
        (here / "out").mkdir(parents=True)
        (here / "table.csv").write_text("x\na\nb\n")
        there = self.cwd / "there"

        def rows(folder, *more, code=0):
            self.cwd = folder
            line = "test {x} = a -o -e mended && pwd > {x}.txt && echo $SLURM_ARRAY_JOB_ID"
            self.map("-i", "table.csv", "-o", "out/w", *more, "--", line, code=code)
            self.map("--array", "1-2", "-o", "out/v.toml", *more, "--", "echo $SLURM_ARRAY_JOB_ID >> job; test -e mended", code=4 if code else 0)
            return [row["x"] for row in self.results("out/w")]

        self.assertEqual(rows(here, code=3), ["a", "b"])
        here.rename(there)
        (there / "mended").write_text("")
        self.assertEqual(rows(there, "--restart-errored"), ["a", "b"])
        self.assertEqual((there / "a.txt").read_text(), f"{here}\n")
        self.assertEqual((there / "b.txt").read_text(), f"{there}\n")
        self.assertEqual(len(set((there / "job").read_text().split())), 1)
        self.assertEqual((there / "job").read_text().count("\n"), 4)
        there.rename(here)
        self.assertEqual(rows(here), ["a", "b"])  # it has ended before
        self.assertFalse((here / "out" / "v.toml.toml").exists())

    def test_a_study_behind_a_link_finds_its_table(self):
        (self.cwd / "far" / "away").mkdir(parents=True)
        (self.cwd / "link").symlink_to("far/away")
        (self.cwd / "table.csv").write_text("x\na\n")
        self.map("-i", "table.csv", "-o", "link/w", "--", "echo {x} > out")
        self.assertEqual((self.cwd / "out").read_text(), "a\n")

    def test_names_of_columns_may_have_any_characters(self):
        (self.cwd / "table.csv").write_text("café,2theta,dose [mg]\n1,2,3\n")
        self.map("-i", "table.csv", "-o", "words", "--", "sh", "-c", 'echo "$@" > out', "x", "{café}", "-{2theta}-", "{dose [mg]}", "{no such}")
        self.assertEqual((self.cwd / "out").read_text(), "1 -2- 3 {no such}\n")
        self.map("-i", "table.csv", "-o", "shell", "--", "echo {café}-{2theta} '{dose [mg]}' > out")
        self.assertEqual((self.cwd / "out").read_text(), "1-2 3\n")

    def test_only_some_exit_codes_are_tried_again(self):
        (self.cwd / "fail.sh").write_text('echo x >> tries$1; test "$1" != 137 || kill -9 $$; exit $1\n')
        self.map("--grid", "code=[1,75,137]", "--retries", "2", "--retry-on", "75,137", "failure.in_a_row=9", "--", "sh", "fail.sh", "{code}",
                 code=4)
        self.assertEqual([(row["code"], row["exit_code"], row["attempts"]) for row in self.results()],
                         [("1", "1", "1"), ("75", "75", "3"), ("137", "137", "3")])
        self.assertIn("--retry-on requires --retries", self.map("--grid", "x=[1]", "--retry-on", "75", "--", "echo", code=2)[1])

    def test_one_python_goes_through_many_rows(self):
        rows = 40
        (self.cwd / "table.csv").write_text("x,name\n" + "".join(f'{row},"ü{row}"\n' for row in range(rows)))
        (self.cwd / "work.py").write_text("""
import os, ranktune
open(f"started.{os.getpid()}", "w")
for row in ranktune.tasks(scale=2.0):
    x = int(row.x)
    print(f"row {x} of {row.name}")
    if x == 7:
        raise ValueError("seven")
    if x == 9:
        os.kill(os.getpid(), 9)
    assert ranktune.context().trial == x and ranktune.config().x == row.x
    ranktune.result(y=x * row.scale, word=row.name)
    ranktune.result({"z": x > 3})
""")
        self.map("-i", "table.csv", "--kept", "--", sys.executable, "work.py", code=3)
        results = self.results()
        self.assertEqual([row["x"] for row in results if row["state"] == "failed"], ["7", "9"])
        self.assertIn("ValueError: seven (work.py:8)", results[7]["message"])
        self.assertIn("killed by signal 9", results[9]["message"])
        for row in results:
            x = int(row["x"])
            if x not in (7, 9):
                self.assertEqual((row["y"], row["z"], row["name"], row["word"]), (f"{2.0 * x}", "1.0" if x > 3 else "0.0", f"ü{x}", f"ü{x}"))
        self.assertIn("row 5 of ü5", self.ranktune("logs", "map", "5")[0])
        self.assertNotIn("row 6 of", self.ranktune("logs", "map", "5")[0])
        self.assertLessEqual(len(list(self.cwd.glob("started.*"))), 2 + 2)  # of each rank, and after each death

    def test_a_kept_program_is_started_anew_after_so_many_rows(self):
        (self.cwd / "work.py").write_text('import os, ranktune\nfor row in ranktune.tasks():\n    ranktune.result(pid=os.getpid())\n')
        self.map("--grid", "x=range(20)", "--kept", "--restart-after", "3", "--", sys.executable, "work.py")
        rows = collections.Counter(row["pid"] for row in self.results())
        self.assertLessEqual(max(rows.values()), 3)

    def test_a_kept_program_that_does_something_else_fails_its_row_only(self):
        lines = {"forgets": "for row in ranktune.tasks(): break", "reports": "ranktune.report(loss=1)",
                 "asks": "ranktune.config()"}
        says = {"forgets": "before its row was done", "reports": "ranktune.result()", "asks": "before its row was done"}
        for name, line in lines.items():
            (self.cwd / "work.py").write_text("import ranktune\n" + line + "\n")
            self.map("--grid", "x=[1,2]", "-o", name, "--kept", "--", sys.executable, "work.py", code=4)
            for row in self.results(name):
                self.assertIn(says[name], row["message"])
        (self.cwd / "work.py").write_text("import ranktune\nfor row in ranktune.tasks(): pass\n")
        self.map("--grid", "x=[1]", "-o", "each", "--", sys.executable, "work.py", code=4)
        self.assertIn("ranktune map --kept", self.results("each")[0]["message"])

    def test_mistakes_are_named(self):
        (self.cwd / "table.csv").write_text("x\n1\n2,3\n")

        def message(*arguments):
            return self.map(*arguments, code=2)[1]

        self.assertIn("table.csv:3: the row has 2 cells, and the first line names 1", message("-i", "table.csv", "--", "echo", "{x}"))
        self.assertIn("write them into a file first", message("-i", "-", "--", "echo"))
        self.assertIn("map: which command?", message("--grid", "x=[1]"))
        self.assertIn("what to go through?", message("--", "echo"))
        self.assertIn("unknown placeholder {y}; known: args", message("--grid", "x=[1]", "--", "echo", "{y}"))
        self.assertIn("needs a name and its values", message("--grid", "[1]", "--", "echo"))
        self.assertIn("range takes one or two whole numbers", message("--grid", "x=range(a)", "--", "echo"))
        self.assertIn("""--grid m=[a, 1]: texts need quotes: 'm=["a",1]'""", message("--grid", "m=[a, 1]", "--", "echo"))
        self.assertIn("""texts need quotes: 'm=["001","002"]'""", message("--grid", "m=[001,002]", "--", "echo"))
        self.assertIn("""texts need quotes: 'm=[".5","1.",2]'""", message("--grid", "m=[.5, 1., 2]", "--", "echo"))
        self.assertIn("""texts need quotes: 'm=["a,b","c"]'""", message("--grid", "m=[\"a,b\", c]", "--", "echo"))
        self.assertIn("--grid a..b=[1]: needs a name and its values", message("--grid", "a..b=[1]", "--", "echo"))
        self.assertIn("m comes twice", message("--grid", "m=[1]", "m=[2]", "--", "echo"))
        self.assertIn("mistake in this command, nothing was started (exit 2)\n  -  --grid m: a choice needs", message("--grid", "m=[]", "--", "echo"))
        self.assertIn('--timeout: "1" is not a duration', message("--grid", "m=[1]", "--timeout", "1", "--", "echo"))
        (self.cwd / "columns.csv").write_text("trial\n1\n")
        self.assertIn("give the column another name", message("-i", "columns.csv", "--", "echo", "{trial}"))
        for array, why in {"5-1": "the range 5-1 is empty", "1-x": "'x' is no number", "1,1": "a number comes twice", "1-3:0": "a step of 0",
                           "1-3%0": "no task may run", "0-9000000": "more than 1,000,000"}.items():
            self.assertIn(why, message("--array", array, "--", "echo"))
        self.assertIn("its command has no {x}", message("--grid", "x=[1]", "--kept", "--", "echo", "{x}"))
        self.assertIn("--kept", message("--array", "1-3", "--kept", "--", "echo"))
        self.assertIn("--restart-after requires --kept", message("--grid", "x=[1]", "--restart-after", "3", "--", "echo"))
        self.assertFalse((self.cwd / "map").exists())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
