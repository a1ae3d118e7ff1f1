#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Studies of `mlp` on devices, as a user runs them: study_test.py PROGRAM SOURCE_ROOT MODULE_FOLDER STAND_IN_FOLDER NVML_FOLDER EARLY_CUDA"""
import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM, ROOT, MODULE, STAND_IN, NVML, EARLY_CUDA = (os.path.abspath(path) for path in sys.argv[1:7])
STUDY = """
[study]
name = "d"
metric = "val_accuracy"
mode = "max"
num_trials = 2
max_iterations = 2
seed = 1
[trainable]
builtin = "mlp"
data = "{root}/jobs/digits/digits.h5"
hidden = [64, 32]
dropout = 0.2
device = "{device}"
compression = "{compression}"
[resources]
{resources}
[space]
lr = "loguniform(1e-2, 1e-1)"
"""


class Studies(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.cwd = pathlib.Path(self.folder.name)

    def run_study(self, name, device, ranks, resources=None, stand_in=True, workers=None, compression="none", study=STUDY, **variables):
        """Runs a study; returns the finished process."""
        key = "gpus" if device == "gpu" else "ranks"
        (self.cwd / f"{name}.toml").write_text(study.format(root=ROOT, device=device, compression=compression, resources=resources or f"{key} = {ranks}"))
        return self.ranktune("run", f"{name}.toml", "--local", str(workers or ranks), "-o", name, stand_in=stand_in, **variables)

    def ranktune(self, *arguments, stand_in=True, **variables):
        environment = {key: value for key, value in os.environ.items() if key not in ("CUDA_VISIBLE_DEVICES", "NCCL_HOSTID")}
        environment["LD_LIBRARY_PATH"] = f"{STAND_IN}:{MODULE}" if stand_in else MODULE
        environment.update({"CUDA_VISIBLE_DEVICES": "0,1,2", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"})
        environment.update(variables)
        return subprocess.run([PROGRAM, *arguments], cwd=self.cwd, env=environment, capture_output=True, text=True, timeout=240)

    def reports(self, name):
        text = subprocess.run([PROGRAM, "export", name, "--format", "csv", "--table", "reports"], cwd=self.cwd, capture_output=True,
                              text=True, check=True).stdout
        return {(row["trial"], row["iteration"]): row for row in csv.DictReader(io.StringIO(text))}

    def test_trials_on_one_to_three_devices_have_the_losses_of_the_host(self):
        """Over 69 steps, with the same accuracy."""
        study = STUDY.replace("max_iterations = 2", "max_iterations = 3")
        self.assertEqual(self.run_study("host", "cpu", 1, study=study).returncode, 0)
        expected = self.reports("host")
        self.assertEqual(len(expected), 6)
        for ranks in (1, 2, 3):
            done = self.run_study(f"device{ranks}", "gpu", ranks, study=study)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            found = self.reports(f"device{ranks}")
            self.assertEqual(found.keys(), expected.keys())
            for key, row in found.items():
                for metric in ("train_loss", "val_loss"):
                    self.assertAlmostEqual(float(row[metric]) / float(expected[key][metric]), 1.0, delta=1e-6)
                self.assertEqual(row["val_accuracy"], expected[key]["val_accuracy"])

    def test_a_device_predicts_the_classes_that_the_host_predicts(self):
        self.assertEqual(self.run_study("d", "gpu", 2).returncode, 0)
        on_host = ["--set", "trainable.model0.configuration.device=cpu", "--set", "resources.gpus=0"]
        classes = {}
        for name, changes in (("gpu", []), ("cpu", on_host)):
            done = self.ranktune("predict", "d", "best", "--input", f"{ROOT}/jobs/digits/digits.h5:val/x", "-o", f"{name}.h5", "--local", "1", *changes)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            classes[name] = (self.cwd / f"{name}.h5").read_bytes()[-4 * 359:]  # `class` lies at the end of the file
        self.assertIn("gpus = 1", (self.cwd / "gpu.h5.predict.toml").read_text())
        self.assertEqual(len({classes["gpu"][i:i + 4] for i in range(0, 4 * 359, 4)}), 10)
        self.assertEqual(classes["gpu"], classes["cpu"])

    def test_trials_with_and_without_gpus_train_in_one_study(self):
        study = STUDY.replace("num_trials = 2", "num_trials = 8") + "gpus = [0, 1, 2]\n"
        done = self.run_study("some", "auto", 0, resources='ranks = 1\ngpus = "{gpus}"', workers=3, study=study,
                              CUDA_VISIBLE_DEVICES="0,1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        trials = self.exported("some")["trials"]
        self.assertEqual([trial["state"] for trial in trials], ["finished"] * 8)
        wanted = [trial["configuration"]["gpus"] for trial in trials]
        self.assertEqual(set(wanted), {0, 1, 2})
        for number, gpus in enumerate(wanted):
            text = subprocess.run([PROGRAM, "logs", "some", str(number)], cwd=self.cwd, capture_output=True, text=True, check=True).stdout
            where = re.search(r"attempt 1 started on \S+ \(([^)]*)\)", text)
            self.assertIsNotNone(where, text)
            self.assertIn(where[1], {0: ["w3"], 1: ["w1", "w2"], 2: ["w1-2", "w1,2", "w1-w2"]}[gpus], text)
        done = self.run_study("none", "auto", 0, resources='ranks = 1\ngpus = "{gpus}"', workers=2, study=study,
                              CUDA_VISIBLE_DEVICES="0,1")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("1 worker without a GPU, of which this job has 0", " ".join((done.stdout + done.stderr).split()))

    def test_a_trial_whose_communicator_fails_is_tried_again(self):
        for fault in ("1:4:async", "1:4:fail"):
            done = self.run_study(f"lost{fault[4:]}", "gpu", 2, RANKTUNE_STAND_IN_NCCL=fault)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            text = subprocess.run([PROGRAM, "logs", f"lost{fault[4:]}", "0"], cwd=self.cwd, capture_output=True, text=True, check=True).stdout
            self.assertRegex(text, "attempt 1 lost: rank [01]: .*; tried again")
            self.assertEqual(len(self.reports(f"lost{fault[4:]}")), 4)

    def test_a_sum_that_hangs_costs_an_attempt_and_no_trial(self):
        done = self.run_study("hung", "gpu", 2, resources="gpus = 2\n[failure]\ncollective_timeout = \"2s\"", RANKTUNE_STAND_IN_NCCL="1:4:hang")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        text = subprocess.run([PROGRAM, "logs", "hung", "0"], cwd=self.cwd, capture_output=True, text=True, check=True).stdout
        self.assertRegex(text, "attempt 1 lost: rank [01]: .*; tried again")
        self.assertIn("failure.collective_timeout", self.logs("hung"))
        self.assertEqual(len(self.reports("hung")), 4)
        trials = json.loads(subprocess.run([PROGRAM, "export", "hung", "--format", "json"], cwd=self.cwd, capture_output=True,
                                           text=True, check=True).stdout)["trials"]
        self.assertEqual([trial["state"] for trial in trials], ["finished", "finished"])  # max_failures is 0: none was charged

    def exported(self, name):
        return json.loads(subprocess.run([PROGRAM, "export", name, "--format", "json"], cwd=self.cwd, capture_output=True,
                                         text=True, check=True).stdout)

    def scheduled(self, scheduler, trials, iterations):
        return (STUDY.replace("num_trials = 2", f"num_trials = {trials}").replace("max_iterations = 2", f"max_iterations = {iterations}")
                + f"[searcher]\ntype = \"random\"\n[scheduler]\n{scheduler}\n[checkpoint]\ninterval = 1\n")

    def check_nothing_is_left_on_devices(self, workers):
        counts = (self.cwd / "live").read_text().split()
        self.assertEqual(counts, ["0"] * workers)

    def test_asha_pauses_and_promotes_trials_between_groups_of_devices(self):
        # Deterministic: whether a trial pauses before it is promoted does not depend on who is faster.
        wide = ("loguniform(1e-2, 1e-1)", "loguniform(1e-4, 1e-1)")
        study = (self.scheduled('type = "asha"\neta = 2', trials=6, iterations=4).replace(*wide)
                 .replace("seed = 1\n", "seed = 1\ndeterministic = true\nmax_concurrent = 2\n"))
        done = self.run_study("asha", "gpu", 2, workers=4, study=study, CUDA_VISIBLE_DEVICES="0,1,2,3",
                              RANKTUNE_STAND_IN_LIVE=str(self.cwd / "live"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        attempts = [attempt for trial in self.exported("asha")["trials"] for attempt in trial["attempts"]]
        self.assertTrue(any(attempt["from_iteration"] > 0 for attempt in attempts), attempts)
        self.check_nothing_is_left_on_devices(4)
        # What was paused and resumed has trained what a host trains in one go.
        self.assertEqual(self.run_study("fifo", "cpu", 1, study=self.scheduled('type = "fifo"', trials=6, iterations=4).replace(*wide)).returncode, 0)
        expected = self.reports("fifo")
        found = self.reports("asha")
        self.assertTrue(any(iteration == "4" for _, iteration in found), found.keys())
        for key, row in found.items():
            self.assertAlmostEqual(float(row["val_loss"]) / float(expected[key]["val_loss"]), 1.0, delta=1e-4)

    def test_population_based_training_takes_over_states_between_groups_of_devices(self):
        study = (self.scheduled('type = "pbt"\ninterval = 1\nsynchronous = true\n[scheduler.explore]\nlr = "perturb"', trials=4, iterations=4)
                 .replace("loguniform(1e-2, 1e-1)", "loguniform(1e-4, 1e-1)"))
        done = self.run_study("pbt", "gpu", 2, workers=4, study=study, CUDA_VISIBLE_DEVICES="0,1,2,3",
                              RANKTUNE_STAND_IN_LIVE=str(self.cwd / "live"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        trials = self.exported("pbt")["trials"]
        self.assertEqual([trial["state"] for trial in trials], ["finished"] * 4)
        self.assertTrue(any("from_trial" in attempt for trial in trials for attempt in trial["attempts"]), trials)
        self.check_nothing_is_left_on_devices(4)

    def test_a_group_that_loses_its_leader_ends_with_the_same_bits(self):
        def losses(name):
            return {key: (row["train_loss"], row["val_loss"]) for key, row in self.reports(name).items()}
        study = self.scheduled('type = "fifo"', trials=2, iterations=6)
        self.assertEqual(self.run_study("whole", "gpu", 2, study=study).returncode, 0)
        killer = threading.Thread(target=self.kill_rank, args=("led", 1))
        killer.start()
        first = self.run_study("led", "gpu", 2, study=study, RANKTUNE_STAND_IN_DELAY="2000")
        killer.join()
        self.assertNotEqual(first.returncode, 0, first.stdout + first.stderr)  # mpirun ends the job
        second = self.run_study("led", "gpu", 2, study=study)
        self.assertEqual(second.returncode, 0, second.stdout + second.stderr)
        self.assertEqual(losses("led"), losses("whole"))
        self.assertEqual([trial["state"] for trial in self.exported("led")["trials"]], ["finished", "finished"])

    def kill_rank(self, name, rank):
        """Kills this rank of a study as soon as there is a report."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            done = subprocess.run([PROGRAM, "status", name, "-f", "json"], cwd=self.cwd, capture_output=True, text=True)
            if done.returncode == 0 and json.loads(done.stdout)["reports"] >= 1:
                break
            time.sleep(0.05)
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                variables = (process / "environ").read_bytes().split(b"\0")
                here = os.readlink(process / "cwd") == str(self.cwd)
            except OSError:
                continue
            if here and b"OMPI_COMM_WORLD_RANK=%d" % rank in variables:
                os.kill(int(process.name), signal.SIGKILL)

    def test_a_device_that_does_not_answer_ends_its_rank_and_accuses_no_trial(self):
        for ranks in (1, 2):
            name = f"sick{ranks}"
            first = self.run_study(name, "gpu", ranks, RANKTUNE_STAND_IN_STICKY=f"{ranks - 1}:300")
            self.assertIn("the GPU failed", self.logs(name))
            notes = list((self.cwd / name / "logs").glob("crash-1-*"))
            self.assertEqual(len(notes), 1, first.stdout + first.stderr)
            self.assertRegex(notes[0].read_text(), r"^[01] 1 device the GPU failed: .*cudaErrorIllegalAddress")
            self.assertNotEqual(first.returncode, 0)
            second = self.run_study(name, "gpu", ranks)
            self.assertEqual(second.returncode, 0, second.stdout + second.stderr)
            self.assertIn("device-lost", self.logs(name))
            self.assertRegex(self.logs(name), r"device-lost .*message=.*the GPU failed")
            self.assertEqual(len(self.reports(name)), 4)
            trials = json.loads(subprocess.run([PROGRAM, "export", name, "--format", "json"], cwd=self.cwd, capture_output=True,
                                               text=True, check=True).stdout)["trials"]
            self.assertEqual([trial["state"] for trial in trials], ["finished", "finished"])  # max_failures is 0: none was charged

    def test_a_trial_without_room_on_its_device_fails_at_once_with_advice(self):
        for ranks in (1, 2):
            name = f"large{ranks}"
            done = self.run_study(name, "gpu", ranks, resources=f"gpus = {ranks}\n[failure]\nmax_failures = 5", RANKTUNE_STAND_IN_MEMORY="4196")
            self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
            trials = json.loads(subprocess.run([PROGRAM, "export", name, "--format", "json"], cwd=self.cwd, capture_output=True,
                                               text=True, check=True).stdout)["trials"]
            self.assertEqual([trial["state"] for trial in trials], ["failed", "failed"])
            log = self.logs(name)
            self.assertIn("the trial needs more memory than the device has: the memory of the GPU is full (cudaMalloc of ", log)
            self.assertIn("the trial is not tried again", log)
            self.assertNotIn("attempt 2", log)

    def test_ranks_that_nccl_takes_for_nodes_of_their_own_may_have_one_gpu(self):
        (self.cwd / "one.toml").write_text(STUDY.format(root=ROOT, device="gpu", compression="none", resources="gpus = 2"))
        words = ["mpirun", "-n", "3", "--oversubscribe", "--bind-to", "none"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{STAND_IN}:{MODULE}", "CUDA_VISIBLE_DEVICES": "0",
                       "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
        for name, variable, code in (("apart", "NCCL_HOSTID=node$OMPI_COMM_WORLD_RANK", 0), ("together", "NCCL_HOSTID=node", 2)):
            done = subprocess.run([*words, "sh", "-c", f'{variable} exec "$0" run one.toml -o {name}', PROGRAM], cwd=self.cwd,
                                  env=environment, capture_output=True, text=True, timeout=240)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(len(self.reports("apart")), 4)
        self.assertIn("resources.gpus: not every worker has a GPU of its own", done.stdout + done.stderr)

    def test_trials_share_gpus(self):
        expected = self.reports_of("whole", gpus="1", workers=2)
        found = self.reports_of("shared", gpus="0.5", workers=4, CUDA_VISIBLE_DEVICES="0,1")
        self.assertEqual(found, expected)
        facts = next((self.cwd / "shared" / "logs").glob("*.env.json")).read_text()
        self.assertIn('"gpus": ["", "0", "1", "0", "1"]', facts)
        crowded = self.run_study("crowded", "gpu", 1, resources="gpus = 0.5", workers=5, CUDA_VISIBLE_DEVICES="0,1",
                                 study=STUDY.replace("num_trials = 2", "num_trials = 5"))
        self.assertEqual(crowded.returncode, 2)
        self.assertIn("resources.gpus: not every worker has its share of a GPU", crowded.stderr)
        self.assertIn("start 2 workers for each GPU: --local 4", crowded.stderr)
        # The stand-in's GPU then has 8,000 KiB; a fiftieth does not hold the data of the trial.
        small = self.run_study("small", "gpu", 1, resources="gpus = 0.02", workers=2, CUDA_VISIBLE_DEVICES="0",
                               RANKTUNE_STAND_IN_MEMORY="8000")
        self.assertEqual(small.returncode, 4, small.stdout + small.stderr)
        self.assertIn("the share of the GPU's memory is used up", self.logs("small"))

    def reports_of(self, name, gpus, workers, **variables):
        done = self.run_study(name, "gpu", 1, resources=f"gpus = {gpus}", workers=workers, **variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return {key: row["val_loss"] for key, row in self.reports(name).items()}

    def test_reports_have_memory_load_and_energy_of_the_gpus(self):
        for ranks in (1, 2):
            name = f"metered{ranks}"
            done = self.run_study(name, "gpu", ranks, resources=f"gpus = {ranks}\ngpu_metrics = true",
                                  LD_LIBRARY_PATH=f"{NVML}:{STAND_IN}:{MODULE}")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for row in self.reports(name).values():
                self.assertEqual(float(row["gpu/busy"]), 0.75)
                self.assertEqual(float(row["gpu/joules"]), ranks)
                self.assertLessEqual(float(row["gpu/peak_MB"]), 900)
            table = subprocess.run([PROGRAM, "status", name, "--columns", "trial,gpu/joules"], cwd=self.cwd, capture_output=True,
                                   text=True, check=True).stdout
            self.assertIn("gpu/joules", table)
        self.run_study("unmetered", "gpu", 1, resources="gpus = 1\ngpu_metrics = true")
        self.assertIn("no NVIDIA driver shows the GPUs of the trial", self.logs("unmetered"))
        self.assertNotIn("gpu/busy", next(iter(self.reports("unmetered").values())))

    def test_an_mpi_that_initialises_cuda_does_not_put_all_ranks_on_one_gpu(self):
        early = {"LD_PRELOAD": EARLY_CUDA, "LD_LIBRARY_PATH": f"{NVML}:{STAND_IN}:{MODULE}"}
        done = self.run_study("together", "gpu", 2, **early)  # NCCL refuses two ranks on one GPU
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        # GPU 1 breaks at its first kernel: rank 2 uses that one, and rank 1 another.
        self.run_study("apart", "gpu", 1, workers=2, RANKTUNE_STAND_IN_STICKY="1:1", **early)
        notes = list((self.cwd / "apart" / "logs").glob("crash-*"))
        self.assertEqual([note.name for note in notes], ["crash-1-2"])
        self.assertIn("device the GPU failed", notes[0].read_text())

    def test_a_rank_that_cannot_tell_its_gpu_from_others_computes_on_none(self):
        done = self.run_study("blind", "gpu", 1, workers=2, LD_PRELOAD=EARLY_CUDA)
        self.assertEqual(done.returncode, 75, done.stdout + done.stderr)
        said = " ".join((done.stdout + done.stderr).split())
        self.assertRegex(said, r"this rank was granted the GPU [01], but CUDA shows this process GPU-00\S+, GPU-01\S+, GPU-02\S+ "
                               r"\(CUDA_VISIBLE_DEVICES=[01]\): another library, such as an MPI with CUDA, initialised CUDA before")

    def test_a_bad_gpu_is_taken_out_of_service(self):
        (self.cwd / "train.py").write_text(
            "import os, sys, time, ranktune\n"
            "if os.environ['CUDA_VISIBLE_DEVICES'] == '2':\n"
            "    time.sleep(0.6)  # another GPU has to be well first\n"
            "    sys.exit('bad memory')\n"
            "for epoch in range(4): time.sleep(0.2); ranktune.report(val_accuracy=0.5)\n")
        (self.cwd / "bad.toml").write_text(STUDY.split("[trainable]")[0].replace("num_trials = 2", "num_trials = 24")
                                           + "[trainable]\ncommand = \"python3 train.py\"\n[space]\nlr = \"uniform(0, 1)\"\n")
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "0,1,2", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
                       "LD_LIBRARY_PATH": NVML}
        done = subprocess.run([PROGRAM, "run", "bad.toml", "--local", "3", "-o", "bad"], cwd=self.cwd, env=environment,
                              capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        uuid = "GPU-02010203-0405-0607-0809-0a0b0c0d0e0f"
        self.assertIn(f"{uuid} of ", done.stdout)
        self.assertIn("gpu-out-of-service", self.logs("bad"))
        for verb in ("status", "explain"):
            text = subprocess.run([PROGRAM, verb, "bad"], cwd=self.cwd, capture_output=True, text=True, check=True).stdout
            self.assertIn(uuid, text)
        trials = json.loads(subprocess.run([PROGRAM, "export", "bad", "--format", "json"], cwd=self.cwd, capture_output=True,
                                           text=True, check=True).stdout)["trials"]
        self.assertEqual([trial["state"] for trial in trials], ["finished"] * 24)

    def test_the_communication_of_trials_is_measured_on_devices(self):
        study = STUDY.replace('device = "{device}"', 'device = "{device}"\ncomm_metrics = true\nbatch_size = 480').replace("num_trials = 2", "num_trials = 1")
        done = self.run_study("measured", "gpu", 2, study=study, RANKTUNE_STAND_IN_TAKES="ncclAllReduce:150000")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        reports = self.reports("measured")
        self.assertEqual(len(reports), 2)
        steps, before = 3, 0.0  # of 480 examples, with one bucket each
        for row in reports.values():
            self.assertGreater(float(row["comm/exposed_ms"]), 140)
            # Counted once: with what the step computes, it fits into the time of the iteration.
            self.assertLess(steps * float(row["comm/exposed_ms"]), 1000 * (float(row["seconds"]) - before))
            before = float(row["seconds"])

    def test_compressed_gradients_train_on_devices(self):
        for kind in ("bf16", "topk"):
            self.run_study(f"host-{kind}", "cpu", 2, resources="ranks = 2", compression=kind)
            done = self.run_study(f"device-{kind}", "gpu", 2, compression=kind)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            expected, found = self.reports(f"host-{kind}"), self.reports(f"device-{kind}")
            self.assertEqual(found.keys(), expected.keys())
            for key, row in found.items():
                self.assertAlmostEqual(float(row["val_loss"]) / float(expected[key]["val_loss"]), 1.0, delta=1e-3)

    def test_nccl_may_add_bfloat16_itself_but_not_on_cores(self):
        self.run_study("exact", "gpu", 3, compression="bf16")  # the sum of two is rounded once in any case
        done = self.run_study("rounded", "gpu", 3, compression="bf16_nccl")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        expected, found = self.reports("exact"), self.reports("rounded")
        self.assertEqual(found.keys(), expected.keys())
        for key, row in found.items():
            self.assertAlmostEqual(float(row["val_loss"]) / float(expected[key]["val_loss"]), 1.0, delta=1e-2)
        self.assertNotEqual([row["val_loss"] for row in found.values()], [row["val_loss"] for row in expected.values()])
        done = self.run_study("cores", "cpu", 2, resources="ranks = 2", compression="bf16_nccl")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('"bf16_nccl" is a sum of NCCL, on GPUs: say "bf16" for gradients on cores', self.logs("cores").replace("\\", ""))
        done = self.run_study("left", "auto", 2, resources="ranks = 2", compression="bf16_nccl", CUDA_VISIBLE_DEVICES="")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_size_of_buckets_is_a_key(self):
        study = STUDY.replace('device = "{device}"', 'device = "{device}"\ncomm_metrics = true\nbucket_mb = {size}')
        for size, code in (("0.001", 0), ("25", 0), ("0", 2), ("513", 2)):
            done = self.run_study(f"size{size}", "gpu", 2, study=study.replace("{size}", size))
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            if code:
                self.assertIn("trainable.bucket_mb", done.stderr)
        small, large = self.reports("size0.001"), self.reports("size25")
        self.assertEqual({key: row["comm/MB"] for key, row in small.items()}, {key: row["comm/MB"] for key, row in large.items()})

    def test_sums_that_differ_between_the_ranks_are_found_at_a_checkpoint(self):
        done = self.run_study("wrong", "gpu", 2, resources="gpus = 2\n[checkpoint]\ninterval = 1", RANKTUNE_STAND_IN_NCCL="1:9:wrong")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("the ranks of the trial hold different parameters at iteration 1", self.logs("wrong"))

    def test_lower_precisions_reach_the_accuracy_of_float32(self):
        study = (STUDY.replace("num_trials = 2", "num_trials = 3").replace("max_iterations = 2", "max_iterations = 6")
                 .replace("dropout = 0.2", "dropout = 0.2\nlr = 0.05")
                 .replace('[space]\nlr = "loguniform(1e-2, 1e-1)"', '[searcher]\ntype = "grid"\n[space]\nprecision = ["fp32", "tf32", "bf16"]'))
        done = self.run_study("precision", "gpu", 1, study=study, RANKTUNE_STAND_IN_DELAY="0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        last = [float(row["val_accuracy"]) for (_, iteration), row in self.reports("precision").items() if iteration == "6"]
        losses = {row["train_loss"] for (_, iteration), row in self.reports("precision").items() if iteration == "1"}
        self.assertEqual(len(last), 3)
        self.assertEqual(len(losses), 3)  # they do differ
        self.assertGreater(min(last), 0.9)
        self.assertLess(max(last) - min(last), 0.0101)

    def test_a_precision_that_nothing_here_computes_is_refused(self):
        study = STUDY.replace('device = "{device}"', 'device = "{device}"\nprecision = "bf16"')
        done = self.run_study("cores", "cpu", 1, study=study)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('mlp.precision is "bf16", but cores compute in fp32 alone: set device = "gpu"', done.stdout + done.stderr + self.logs("cores"))
        done = self.run_study("turing", "gpu", 1, study=study, RANKTUNE_STAND_IN_CAPABILITY="7.5")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("compute capability 7.5) has no such products", done.stdout + done.stderr + self.logs("turing"))

    def test_without_a_device_it_says_why(self):
        done = self.run_study("none", "gpu", 1, resources="ranks = 1", CUDA_VISIBLE_DEVICES="")
        self.assertEqual(done.returncode, 75, done.stderr)  # its surroundings are at fault
        words = " ".join((done.stdout + done.stderr).split())
        self.assertRegex(words, r"trial #\d+ could not be set up on \S+: no CUDA device: the driver shows none")
        self.assertIn("No trial counts as failed", words)
        done = self.run_study("driver", "gpu", 1, stand_in=False)
        if done.returncode != 0:  # on a machine without GPUs
            self.assertIn("no CUDA device: ", done.stdout + done.stderr + self.logs("driver"))

    def logs(self, name):
        return "".join(path.read_text() for path in sorted((self.cwd / name / "logs").glob("*.log")))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
