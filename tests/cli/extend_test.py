#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Longer training for some trials, notes and tags, and spaces with rules, None and growth: extend_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import json
import unittest

from cli_test import Case, sys

STUDY = """[study]
name = "s"
metric = "loss"
mode = "min"
num_trials = {trials}
max_iterations = {iterations}
[trainable]
{trainable}
[scheduler]
type = "fifo"
{more}
[space]
{space}
"""
# Its state is a count of iterations; it says where it began.
TRAIN = """import json, pathlib, ranktune
config, here = ranktune.config(), ranktune.context()
count = int((pathlib.Path(ranktune.checkpoint()) / "count").read_text()) if ranktune.checkpoint() else 0
open("began.jsonl", "a").write(json.dumps([here.trial, here.iteration, count]) + "\\n")
for i in range(here.iteration, here.iterations):
    count += 1
    def save(folder):
        (pathlib.Path(folder) / "count").write_text(str(count))
    ranktune.report(loss=config["x"] / count, checkpoint=save, **({"note": "warm", "phase": "late"} if i == 2 else {}))
"""


class Extending(Case):
    def study(self, trials=3, iterations=4, trainable='command = "python3 train.py"', more="[checkpoint]\ninterval = 1\n",
              space='x = "uniform(1, 2)"'):
        self.write("s.toml", STUDY.format(trials=trials, iterations=iterations, trainable=trainable, more=more, space=space))
        self.write("train.py", TRAIN)

    def exported(self, directory):
        return json.loads(self.ranktune("export", directory, "--format", "json")[0])

    def began(self):
        lines = map(json.loads, (self.cwd / "began.jsonl").read_text().splitlines())
        return [tuple(line) for line in lines]

    def test_the_best_trials_of_programs_go_on_from_their_checkpoints(self):
        self.study()
        self.ranktune("run", "s.toml", "--local", "2")
        old = self.exported("s")
        order = sorted(old["trials"], key=lambda trial: trial["best"]["value"])
        (self.cwd / "began.jsonl").unlink()
        out, _ = self.ranktune("extend", "s", "best", "2", "--max-iterations", "9")
        for new, trial in enumerate(order[:2]):
            if trial["checkpoints"]:
                iteration = max(each["iteration"] for each in trial["checkpoints"])
                self.assertIn(f"trial #{trial['id']} goes on as #{new} from iteration {iteration} to 9\n", out)
            else:
                self.assertIn(f"trial #{trial['id']} begins again as #{new}, for no checkpoint of it was kept", out)
        self.assertIn("made s-extended. To train: ranktune run s-extended", out)
        self.ranktune("replay", "s-extended", "--verify")
        self.assertIn("goes on from iteration", self.ranktune("explain", "s-extended", "0")[0])

        self.ranktune("run", "s-extended", "--local", "2")
        new = self.exported("s-extended")
        self.assertEqual([trial["iterations"] for trial in new["trials"]], [9, 9])
        self.assertEqual([trial["configuration"] for trial in new["trials"]], [trial["configuration"] for trial in order[:2]])
        kept = max(each["iteration"] for each in order[0]["checkpoints"])
        self.assertIn((0, kept, kept), self.began())
        # Their curves are whole.
        self.assertEqual(sorted(each["iteration"] for each in new["reports"] if each["trial"] == 0), list(range(1, 10)))
        self.ranktune("replay", "s-extended", "--verify")
        # The old study knows, and is as it was.
        self.assertIn("is trained up to iteration 9 as trial #0 of", " ".join(self.ranktune("explain", "s", str(order[0]["id"]))[0].split()))
        self.assertEqual(self.exported("s")["reports"], old["reports"])
        self.ranktune("replay", "s", "--verify")

    def test_built_in_trials_go_on_too_and_asha_is_no_hindrance(self):
        self.study(trials=6, iterations=9, trainable='name = "curve"',
                   more='[searcher]\ntype = "random"\n[checkpoint]\ninterval = 1\n', space='lr = "loguniform(1e-4, 1)"')
        study = self.cwd / "s.toml"
        study.write_text(study.read_text().replace('metric = "loss"\nmode = "min"', 'metric = "score"\nmode = "max"')
                         .replace('type = "fifo"', 'type = "asha"'))
        self.ranktune("run", "s.toml", "--local", "2")
        self.ranktune("extend", "s", "best", "--max-iterations", "12", "-o", "longer")
        self.ranktune("run", "longer", "--local", "1")
        self.assertEqual([trial["iterations"] for trial in self.exported("longer")["trials"]], [12])
        self.ranktune("replay", "longer", "--verify")

    def test_extensions_of_schedules_none_and_few_at_once(self):
        self.study(trials=3, iterations=4, more='schedule = { lr = [[2, 0.01]] }\n[checkpoint]\ninterval = 1\n',
                   space='x = "uniform(1, 2)"\nlr = 0.1\nclip = "choice([None, 1, 2])"')
        study = self.cwd / "s.toml"
        study.write_text(study.read_text().replace("num_trials = 3", "num_trials = 3\nmax_concurrent = 1")
                         .replace('type = "fifo"', 'type = "schedule"'))
        self.ranktune("run", "s.toml", "--local", "2")
        self.assertIn("s is finished", self.ranktune("run", "s.toml", "--local", "2")[0])  # its scheduled values are no values of [space]
        (self.cwd / "s-extended.unfinished" / "checkpoints").mkdir(parents=True)  # of one that was killed
        self.ranktune("extend", "s", "best", "3", "--max-iterations", "6")
        self.assertFalse((self.cwd / "s-extended.unfinished").exists())
        self.ranktune("replay", "s-extended", "--verify")
        self.ranktune("run", "s-extended", "--local", "2")
        trials = self.exported("s-extended")["trials"]
        self.assertEqual([trial["iterations"] for trial in trials], [6, 6, 6])
        self.assertEqual([trial["configuration"]["lr"] for trial in trials], [0.01] * 3)
        self.assertEqual(sorted(json.dumps(trial["configuration"]) for trial in trials),
                         sorted(json.dumps(trial["configuration"]) for trial in self.exported("s")["trials"]))

    def test_what_extend_refuses(self):
        self.study()
        self.ranktune("run", "s.toml", "--local", "2")
        for words, message in ((["0", "--max-iterations", "4"], "trial #0 has trained 4 iterations already: give --max-iterations more"),
                               (["0", "0", "--max-iterations", "9"], "trial #0 is given twice"),
                               (["7", "--max-iterations", "9"], "'s' has no trial #7; its trials are #0 to #2"),
                               (["best", "4", "--max-iterations", "9"], "best 4: 3 of the study have a result"),
                               (["0", "best", "--max-iterations", "9"], "give numbers of trials, or best, or best and how many"),
                               (["0", "--max-iterations", "9", "-o", "s"], "holds a study already; choose another directory with -o")):
            self.assertIn(message, " ".join(self.ranktune("extend", "s", *words, code=2)[1].split()))
        _, err = self.ranktune("run", "s.toml", "study.max_iterations=20", code=2)
        self.assertIn("Longer training for the best three trials: ranktune extend", err)

    def test_notes_and_tags_of_people_and_of_trials(self):
        self.study()
        self.ranktune("run", "s.toml", "--local", "2")
        out, _ = self.ranktune("note", "s", "1", "looks odd", "--tag", "odd", "--tag", "keep/1")
        self.assertIn("trial #1: keep/1, odd\n", out)
        self.assertRegex(out, r"trial #1  \S+Z  trial  warm\ntrial #1  \S+Z  trial  phase: late\ntrial #1  \S+Z  \S+@\S+  looks odd\n|"
                              r"trial #1  \S+Z  \S+@\S+  looks odd\n(.*\n)*trial #1  \S+Z  trial  warm\ntrial #1  \S+Z  trial  phase: late\n")
        self.ranktune("note", "s", "2", "--tag", "odd")
        self.ranktune("note", "s", "2", "--untag", "odd")
        self.assertNotIn("odd", self.ranktune("note", "s", "2")[0])
        table, _ = self.ranktune("status", "s", "--columns", "trial,tags,note", "--filter", "'odd' in tags")
        self.assertIn("keep/1, odd", table)
        self.assertEqual([line.split()[0] for line in table.splitlines() if "#" in line and "odd" in line], ["#1"] if "*  #1" not in table else ["*"])
        explained, _ = self.ranktune("explain", "s", "1")
        self.assertIn("tags      keep/1, odd\n", explained)
        self.assertIn("the trial: warm", explained)
        as_json = json.loads(self.ranktune("explain", "s", "1", "--json")[0])
        self.assertEqual((as_json["schema"], as_json["study"], as_json["trial"]), (1, "s", 1))
        self.assertIn({"what": "tags", "text": "keep/1, odd"}, as_json["lines"])
        of_study = json.loads(self.ranktune("explain", "s", "--json")[0])
        self.assertIsNone(of_study["trial"])
        self.assertEqual([line["what"] for line in of_study["lines"]][:2], ["study", "now"])
        self.assertGreater(sum(of_study["rank_seconds"].values()), 0)
        trial = self.exported("s")["trials"][1]
        self.assertEqual(trial["tags"], ["keep/1", "odd"])
        self.assertEqual(sorted(note["note"] for note in trial["notes"]), ["looks odd", "phase: late", "warm"])
        _, err = self.ranktune("note", "s", "1", "--tag", "a b", code=2)
        self.assertIn("the tag 'a b' has more than letters, digits", err)
        # A line that was cut off spoils no other.
        with open(self.cwd / "s" / "notes", "a") as notes:
            notes.write("2026-11-29T00:00:00Z\tada")
        self.assertIn("and more", self.ranktune("note", "s", "1", "and more")[0])

    def test_a_space_with_rules_and_none(self):
        self.study(trials=12, iterations=1, more="", space='x = "uniform(1, y)"\ny = "uniform(1, 2)"\nclip = "choice([None, 3])"\n'
                   'kind = [{ name = "a", size = [1, 2] }, { name = "b" }]\nrequire = "x * y <= 3"\n'
                   '[[space.forbid]]\nclip = 3\n"kind.name" = "b"',
                   trainable='command = "python3 show.py --clip {clip} {args}"')
        self.write("show.py", "import json, sys, ranktune\nconfig = ranktune.config()\n"
                   'open("seen.jsonl", "a").write(json.dumps([dict(config), sys.argv[1:]]) + "\\n")\nranktune.report(loss=1.0)\n')
        self.ranktune("run", "s.toml", "--local", "2")
        seen = [json.loads(line) for line in (self.cwd / "seen.jsonl").read_text().splitlines()]
        self.assertEqual(len(seen), 12)
        for config, words in seen:
            self.assertLess(config["x"], config["y"])
            self.assertLessEqual(config["x"] * config["y"], 3)
            self.assertFalse(config["clip"] == 3 and config["kind"]["name"] == "b")
            self.assertEqual("size" in config["kind"], config["kind"]["name"] == "a")
            self.assertEqual("--clip" in words, config["clip"] is not None)
            self.assertEqual([word for word in words if word.startswith("--clip=")], ["--clip=3"] if config["clip"] else [])
        self.assertEqual({config["clip"] for config, _ in seen}, {None, 3})
        self.ranktune("replay", "s", "--verify")

    def test_a_grid_that_grows_runs_only_what_is_new(self):
        trainable = 'command = "python3 show.py"'
        self.write("show.py", "import json, ranktune\nopen('seen.jsonl', 'a').write(json.dumps(dict(ranktune.config())) + '\\n')\n"
                   "ranktune.report(loss=1.0)\n")
        grid = '[searcher]\ntype = "grid"\n'
        self.study(trials=4, iterations=1, trainable=trainable, more=grid, space="a = [1, 2]\nb = [1, 2]")
        self.ranktune("run", "s.toml", "--local", "2")
        self.study(trials=9, iterations=1, trainable=trainable, more=grid, space="a = [0, 1, 2]\nb = [1, 2, 3]")
        self.ranktune("run", "s.toml", "--local", "2")
        seen = [tuple(json.loads(line).values()) for line in (self.cwd / "seen.jsonl").read_text().splitlines()]
        self.assertEqual(sorted(seen), [(a, b) for a in (0, 1, 2) for b in (1, 2, 3)])
        self.ranktune("replay", "s", "--verify")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
