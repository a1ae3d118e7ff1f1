#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""submit, doctor and support, with fake Slurm programs that record their arguments: submit_test.py PROGRAM"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])

STUDY = """
[study]
name = "long"
metric = "score"
mode = "max"
num_trials = 8
max_iterations = 9
[trainable]
{trainable}
[resources]
{resources}
[space]
lr = "loguniform(1e-4, 1.0)"
{space}
"""
CURVE = 'builtin = "curve"\nseconds = 0.0'

# Numbers jobs 101, 102, ... and records its arguments.
SBATCH = """#!/bin/sh
echo "$@" >> {log}
case "$*" in *refuse*) echo "sbatch: error: Invalid qos specification" >&2; exit 1 ;; esac
expr 100 + $(wc -l < {log})
"""


class Place:
    """A directory with a study, fake programs, and no site file but its own."""

    def __init__(self, trainable=CURVE, resources="ranks = 2", space=""):
        self.folder = tempfile.TemporaryDirectory(prefix="ranktune-submit-")
        self.path = pathlib.Path(self.folder.name)
        (self.path / "study.toml").write_text(STUDY.format(trainable=trainable, resources=resources, space=space))
        self.log = self.path / "sbatch.log"
        self.log.write_text("")
        self.fake("sbatch", SBATCH.format(log=self.log))
        self.fake("squeue", "#!/bin/sh\ncat " + str(self.path / "queue"))
        self.fake("sinfo", "#!/bin/sh\necho 'mine|64|gpu:a100:4(S:0-1)'; echo 'site*|12|gpu:4'")
        (self.path / "queue").write_text("")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_", "OMPI_", "PMIX_"))}
        self.environment.update(PATH=f"{self.path}/bin:{self.environment['PATH']}", HOME=str(self.path / "home"),
                                RANKTUNE_SITE=str(self.path / "site.toml"))
        self.environment.pop("XDG_CONFIG_HOME", None)
        self.site("")

    def fake(self, name, text):
        (self.path / "bin").mkdir(exist_ok=True)
        (self.path / "bin" / name).write_text(text)
        (self.path / "bin" / name).chmod(0o755)

    def site(self, text):
        (self.path / "site.toml").write_text(text)

    def run(self, *words, code=0):
        done = subprocess.run([PROGRAM, *map(str, words)], cwd=self.path, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=100)
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done

    def submit(self, *words, code=0):
        return self.run("submit", "study.toml", *words, code=code)

    def asked(self):
        return self.log.read_text().splitlines()


def has(text, *lines):
    for line in lines:
        assert line in text, f"{line!r} is not in\n{text}"


def printed():
    """--print: the whole script, layout and cost, what came from the site file; nothing is submitted or written."""
    place = Place(resources="gpus = 2")
    place.site('[slurm]\ngpus = "--gres=gpu:a100:{gpus}"\naccount = "proj"\npartition = "site"\nlead_time = "3m"\n'
               'options = ["--constraint=x"]\nmodules = ["openmpi", "ranktune"]\n[environment]\nMODE = "a b"\n')
    done = place.submit("--nodes", "2", "--gpus-per-node", "4", "--time", "4:00:00", "--chain", "3", "-p", "mine", "--print",
                        "study.seed=7", "--", "--qos=high", "--mail-type", "END", "--comment=a b")
    site = place.path / "site.toml"
    has(done.stdout, "#SBATCH --nodes=2\n", f"# from {site}:2:\n#SBATCH --gres=gpu:a100:4\n", "#SBATCH --time=04:00:00\n",
        "#SBATCH --ntasks-per-node=4\n", f"# from {site}:5:\n#SBATCH --signal=B:USR1@180\n",
        f"# from {site}:3:\n#SBATCH --account=proj\n", "#SBATCH --partition=mine\n", f"# from {site}:6:\n#SBATCH --constraint=x\n",
        "#SBATCH --qos=high --mail-type END '--comment=a b'\n", f"# from {site}:7:\nmodule load openmpi\n",
        f"# from {site}:7:\nmodule load ranktune\n", f"# from {site}:9:\nexport MODE='a b'\n",
        f"set -- {place.path}/study.toml study.seed=7 -o {place.path}/long\n")
    assert "--partition=site" not in done.stdout
    has(done.stderr, "9 tasks on 2 nodes: the head and 4 workers on the first node, 4 workers on every other",
        "4 at a time, of 2 ranks", "8 GPUs x 04:00:00 = 32 GPU-hours for each of 3 jobs, 96 in all")
    has(done.stdout, "#SBATCH --cpus-per-task=16\n")
    has(done.stderr, "cores     16 for each worker\n")
    few = place.submit("--gpus-per-node", "4", "--time", "4:00:00", "--print")
    has(few.stdout, "#SBATCH --cpus-per-task=3\n")
    has(few.stderr, "cores     3 for each worker: with fewer than 4, its GPU often waits for data; --cpus-per-worker N")
    has(place.submit("--gpus-per-node", "2", "--time", "4:00:00", "--cpus-per-worker", "5", "--print").stdout, "--cpus-per-task=5\n")
    place.fake("sinfo", "#!/bin/sh\nexit 1")
    has(place.submit("--gpus-per-node", "4", "--time", "4:00:00", "--print").stdout, "#SBATCH --cpus-per-task=1\n")
    checked = subprocess.run(["bash", "-n"], input=done.stdout, text=True, capture_output=True)
    assert checked.returncode == 0, checked.stderr
    assert place.asked() == [] and not (place.path / "long").exists()


def shared_gpus():
    """gpus = 0.25: four workers for each GPU, which all see the GPUs of their node."""
    place = Place(resources="gpus = 0.25")
    done = place.submit("--nodes", "2", "--gpus-per-node", "4", "--time", "4:00:00", "--print")
    has(done.stdout, "# Nodes, GPUs per node, and 4 workers per GPU, which share it.", "#SBATCH --gpus-per-node=4\n",
        "#SBATCH --ntasks-per-node=16\n", "--cpu-bind=none --gpu-bind=none)\n")
    has(done.stderr, "33 tasks on 2 nodes: the head and 16 workers on the first node", "32 at a time, of 1 rank",
        "8 GPUs x 04:00:00 = 32 GPU-hours")
    has(place.submit("--gpus-per-node", "4", "--workers-per-node", "4", "--time", "4:00:00", "--print", code=2).stderr,
        "there are 4 workers for each GPU: leave --workers-per-node out")
    assert "--gpu-bind" not in Place(resources="gpus = 1").submit("--gpus-per-node", "4", "--time", "4:00:00", "--print").stdout


def gpus_of_some_trials():
    """gpus = "{gpus}", which may be 0: more workers than GPUs."""
    place = Place(resources='ranks = 3\ngpus = "{gpus}"', space='gpus = [0, 1, 2]')
    done = place.submit("--nodes", "2", "--gpus-per-node", "4", "--time", "4:00:00", "--print")
    has(done.stdout, "# Nodes, GPUs per node, and workers: 4 have a GPU, and the others train trials without one.",
        "#SBATCH --gpus-per-node=4\n", "#SBATCH --ntasks-per-node=7\n")
    has(done.stderr, "15 tasks on 2 nodes", "4 with GPUs and 2 without at a time", "8 GPUs x 04:00:00 = 32 GPU-hours")
    done = place.submit("--gpus-per-node", "4", "--workers-per-node", "12", "--time", "4:00:00", "--print")
    has(done.stdout, "#SBATCH --ntasks-per-node=12\n")
    has(done.stderr, "2 with GPUs and 2 without at a time")


def gpus_of_a_script():
    """The template says which way of asking for GPUs leaves no room for the head, keeps another one from mpirun, and warns of
    few cores."""
    place = Place()
    script = pathlib.Path(__file__).resolve().parents[2] / "slurm" / "gpu.sbatch"
    place.fake("ranktune", "#!/bin/sh\necho \"gpus=$SLURM_GPUS gres=$SLURM_GRES\" \"$@\"\n")

    def run(**variables):
        environment = dict(place.environment, SLURM_NTASKS_PER_NODE="4", SLURM_JOB_NODELIST="n1", SLURM_JOB_ID="7",
                           **variables)
        done = subprocess.run(["bash", script, "study.toml"], cwd=place.path, env=environment, text=True,
                              capture_output=True, timeout=100)
        return done.returncode, done.stdout + done.stderr

    for asked in ("1", "a100:1"):
        code, text = run(SLURM_GPUS_PER_TASK=asked)
        assert code == 2, text
        has(text, "gpu.sbatch: ask for GPUs by node, not by task (--gpus-per-task): #SBATCH --gpus-per-node=4\n")
    code, text = run(SLURM_GPUS="8", SLURM_GPUS_ON_NODE="4", LAUNCHER="mpirun")
    assert code == 0, text
    has(text, "gpus= gres=gpu:4 supervise -- mpirun ")
    assert "warning" not in text
    for cores, few in (("15", True), ("16", False), ("128(x2)", False)):
        text = run(SLURM_CPUS_ON_NODE=cores)[1]
        assert (f"gpu.sbatch: warning: 4 workers share {cores} cores of this node; with fewer than 4 each" in text) == few, text


def hosts():
    """The list of hosts of a job, without any program of Slurm: the head's node first."""
    place = Place()
    place.environment.update(SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n[08-09],login", SLURM_NTASKS_PER_NODE="2")
    assert place.run("hosts").stdout.split() == ["n08", "n08", "n08", "n09", "n09", "login", "login"]
    for name, value, words in (("SLURM_NTASKS_PER_NODE", "", "--ntasks-per-node=4, and not --ntasks"),
                               ("SLURM_JOB_NODELIST", "n[1-", "SLURM_JOB_NODELIST='n[1-' is no list of hosts"),
                               ("SLURM_JOB_ID", "", "there is no Slurm job here")):
        place.environment[name] = value
        refused = place.run("hosts", code=2)
        assert refused.stdout == "" and words in refused.stderr and refused.stderr.count("\n") == 1, refused
        place.environment.update(SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n1", SLURM_NTASKS_PER_NODE="2")
    # The templates say the same, and start nothing.
    script = pathlib.Path(__file__).resolve().parents[2] / "slurm" / "cpu.sbatch"
    del place.environment["SLURM_NTASKS_PER_NODE"]
    place.environment["PATH"] = f"{os.path.dirname(PROGRAM)}:{place.environment['PATH']}"
    done = subprocess.run(["bash", script, "study.toml"], cwd=place.path, env=place.environment, text=True,
                          capture_output=True, timeout=100)
    assert done.returncode == 2 and "--ntasks-per-node=4" in done.stderr, done
    assert not (place.path / "long").exists()


def chain():
    """Each job begins when the one before has ended; the same line again follows those that still wait."""
    place = Place()
    words = ("--time", "90m", "--workers-per-node", "4", "--chain", "3")
    done = place.submit(*words)
    script = place.path / "long" / "submit" / "job.sbatch"
    assert place.asked() == [f"--parsable --chdir={place.path} {script}",
                             f"--parsable --chdir={place.path} --dependency=afterany:101 {script}",
                             f"--parsable --chdir={place.path} --dependency=afterany:102 {script}"], place.asked()
    has(done.stdout, "job       101 submitted, then 102, 103 one after the other", "log       long-101.log",
        "next      ranktune status", "\n          scancel 101 102 103  # takes it back\n")
    jobs = place.path / "long" / "submit" / "jobs"
    assert jobs.read_text().split() == ["101", "102", "103"]
    (place.path / "queue").write_text("7\n102\n103\n")
    done = place.submit(*words[:4])
    has(done.stdout, "job       104 submitted, to begin when job 103 of this study has ended")
    assert "--dependency=afterany:103" in place.asked()[-1] and jobs.read_text().split() == ["102", "103", "104"]


def again():
    """The directory alone: a job like that of the last submission, with the study file as it is now."""
    place = Place()
    place.submit("--time", "90m", "--workers-per-node", "4", "--nodes", "2")
    script = place.path / "long" / "submit" / "job.sbatch"
    edited = script.read_text().replace("#SBATCH --requeue\n", "#SBATCH --requeue\n#SBATCH --comment=mine\n")
    script.write_text(edited)
    place.run("run", "study.toml", "--local", "4", "-q")
    has(place.run("submit", "long").stdout, "is finished, so nothing was submitted")
    (place.path / "queue").write_text("101\n")
    done = place.run("submit", "long", "study.num_trials=30")
    has(done.stdout, "job       102 submitted, to begin when job 101 of this study has ended", "log       long-102.log")
    line = f"set -- {place.path}/study.toml -o {place.path}/long\n"
    assert line in edited and script.read_text() == edited.replace(line, f"set -- {place.path}/long study.num_trials=30\n")
    assert len(place.asked()) == 2
    for words in (("study.toml",), ("long", "--nodes", "3"), ("nowhere",)):
        has(place.run("submit", *words, code=2).stderr, "--time is required")
    script.write_text("#!/bin/sh\n")
    has(place.run("submit", "long", "study.num_trials=30", code=2).stderr, "has no line `set -- ...`")
    has(place.run("submit", "long", "study.num_trials=30", "--time", "1h", "--print").stdout, "#SBATCH --time=01:00:00\n")


def again_before_the_first_start():
    """No job has begun the study: the directory alone submits what was submitted."""
    place = Place()
    place.submit("--time", "90m", "--workers-per-node", "4", "study.seed=7")
    script = place.path / "long" / "submit" / "job.sbatch"
    (place.path / "queue").write_text("101\n")
    has(place.run("submit", "long").stdout, "job       102 submitted, to begin when job 101 of this study has ended")
    assert f"\nset -- {place.path}/study.toml study.seed=7 -o {place.path}/long\n" in script.read_text()
    (place.path / "queue").write_text("")
    has(place.run("status", "long", code=2).stderr, "was submitted, but no job of it has started, and none is in Slurm's queue; again:",
        f"ranktune submit long")
    has(place.run("submit", "long", "study.num_trials=3").stdout, "job       103 submitted\n")
    assert f"\nset -- {place.path}/study.toml study.seed=7 -o {place.path}/long study.num_trials=3\n" in script.read_text()
    has(place.run("submit", "long", "study.num_trials=many", code=2).stderr, "study.num_trials")
    (place.path / "study.toml").unlink()
    has(place.run("submit", "long", code=2).stderr, "study.toml")


def a_queue_that_does_not_answer():
    """It is no empty queue: a job beside a living one would be the end of both, and the chain would lose its followers."""
    place = Place()
    words = ("--time", "90m", "--workers-per-node", "4")
    place.submit(*words, "--chain", "3")
    jobs = place.path / "long" / "submit" / "jobs"
    script = (place.path / "long" / "submit" / "job.sbatch").read_text()
    calls = place.path / "calls"
    error = "slurm_load_jobs error: Unable to contact slurm controller"
    place.fake("squeue", f'#!/bin/sh\necho x >> {calls}\necho "{error}" >&2\nexit 1')
    done = place.submit(*words, "--nodes", "2", code=2)
    has(done.stderr, error, "so nothing was submitted (exit 2)\n", "submitted  101, 102, 103\n", f"rm {jobs}\n")
    assert jobs.read_text().split() == ["101", "102", "103"] and len(place.asked()) == 3
    assert calls.read_text().split() == ["x"] * 3 and (jobs.parent / "job.sbatch").read_text() == script
    # One that answers a moment later is waited for.
    place.fake("squeue", f"#!/bin/sh\n[ -e {place.path}/once ] && echo 103 && exit 0\ntouch {place.path}/once; exit 1")
    has(place.submit(*words).stdout, "job       104 submitted, to begin when job 103 of this study has ended")
    # A list that cannot be read is no empty list.
    known = jobs.read_text()
    jobs.unlink()
    jobs.mkdir()
    has(place.submit(*words, code=1).stderr, "submit/jobs")
    jobs.rmdir()
    jobs.write_text(known)
    # A study without jobs needs no queue.
    place.fake("squeue", "#!/bin/sh\nexit 1")
    has(place.submit(*words, "-o", "other").stdout, "job       105 submitted\n")


def a_chain_that_is_refused_halfway():
    """What sbatch took is named, and how to end it; it stands in submit/jobs."""
    place = Place()
    words = ("--time", "90m", "--workers-per-node", "4", "--chain", "4")
    place.fake("sbatch", SBATCH.format(log=place.log).replace("*refuse*", "*afterany:102*"))
    done = place.submit(*words, code=2)
    has(done.stderr, "sbatch refused the job: sbatch: error: Invalid qos specification (exit 2)\n", "submit/job.sbatch\n",
        "submitted  2 of 4 jobs: 101, 102\n", "scancel 101 102\n")
    assert (place.path / "long" / "submit" / "jobs").read_text().split() == ["101", "102"]
    # Nothing was taken: there is nothing to name.
    place.fake("sbatch", "#!/bin/sh\nexit 1")
    error = place.submit(*words, "-o", "other", code=2).stderr
    has(error, "sbatch refused the job: it ended with 1 and no message (exit 2)")
    assert "scancel" not in error and not (place.path / "other" / "submit" / "jobs").exists()
    # Nobody knows.
    place.fake("sbatch", "#!/bin/sh\nkill -9 $$")
    has(place.submit(*words, "-o", "other", code=2).stderr, "it was killed; check with squeue whether it took the job")
    # Nor is there a number that could be.
    place.fake("sbatch", "#!/bin/sh\nexit 0")
    has(place.submit(*words, "-o", "other", code=2).stderr, "sbatch gave no job number: ")


def followers():
    """A job that another one would only repeat cancels those behind it: the study is over, or wrong."""
    place = Place()
    place.submit("--time", "90m", "--chain", "4")  # 101 to 104
    (place.path / "queue").write_text("103\n104\n")  # 102 was cancelled by hand
    text = (place.path / "long" / "submit" / "job.sbatch").read_text().replace(os.path.realpath(PROGRAM), "the-program")
    (place.path / "job").write_text(text)
    place.fake("the-program", '#!/bin/sh\n[ "$1" = hosts ] && echo n1 && exit\nexit $CODE\n')
    cancelled = place.path / "cancelled"

    def end(code, scancel=0):
        cancelled.write_text("")
        place.fake("scancel", f'#!/bin/sh\necho "$@" >> {cancelled}\nexit {scancel}\n')
        environment = dict(place.environment, SLURM_JOB_ID="101", SLURM_JOB_NUM_NODES="1", CODE=str(code))
        done = subprocess.run(["bash", place.path / "job"], cwd=place.path, env=environment, text=True, capture_output=True,
                              timeout=100)
        return done.returncode, cancelled.read_text(), done.stderr

    for code in (0, 2, 3, 4):
        assert end(code) == (code, "--state=PENDING 103 104\n", ""), end(code)
    has(end(3, scancel=1)[2], "the jobs that follow could not be cancelled; type: scancel 103 104\n")
    # supervise gave up: on other nodes, hours later, it may well go on
    assert end(1) == (1, "", ""), end(1)
    assert end(75) == (0, "", "") and end(137) == (137, "", ""), (end(75), end(137))
    (place.path / "queue").write_text("")
    assert end(3) == (3, "", ""), end(3)
    # A person's stop ends the chain, but not what is submitted after it.
    (place.path / "queue").write_text("102\n103\n104\n")
    place.fake("squeue", f"""#!/bin/sh
for word; do case $word in --jobs=*) echo "${{word#--jobs=}}" | tr , '\\n' | grep -xf {place.path}/queue; exit 0;; esac; done
sed 's/.*/& & PENDING/' {place.path}/queue""")
    outcome = place.path / "long" / "outcome"
    outcome.write_text("exit=75\nreason=ranktune stop\n")
    assert end(75) == (75, "--state=PENDING 102 103 104\n", ""), end(75)
    jobs = place.path / "long" / "submit" / "jobs"
    jobs.write_text("101\n102\n103\nstop\n104\n")
    assert end(75) == (0, "--state=PENDING 102 103\n", ""), end(75)
    assert end(0) == (0, "--state=PENDING 102 103 104\n", ""), end(0)
    outcome.unlink()
    (place.path / "queue").write_text("101\n104\n")
    place.submit("--time", "90m")
    assert jobs.read_text().split() == ["101", "stop", "104", "105"], jobs.read_text()
    (place.path / "queue").write_text("104\n")
    place.submit("--time", "90m")
    assert jobs.read_text().split() == ["104", "106"], jobs.read_text()


def options_that_submit_sets_itself():
    """After `--` they would contradict the layout and the cost that are shown."""
    place = Place()
    words = ("--time", "1h", "--print")
    for option, own in ((("--nodes=7",), "--nodes N"), (("-N", "7"), "--nodes N"), (("-N7",), "--nodes N"),
                        (("--qos=x", "--time", "9:00"), "--time TIME"), (("-t9:00",), "--time TIME"),
                        (("--ntasks=3",), "--workers-per-node N"), (("-n3",), "--workers-per-node N"),
                        (("--ntasks-per-node=3",), "--workers-per-node N"), (("--cpus-per-task=2",), "--cpus-per-worker N"),
                        (("--gpus=8",), "--gpus-per-node N"), (("--gpus-per-task=1",), "--gpus-per-node N"),
                        (("--gres=gpu:4",), "--gpus-per-node N"), (("--array=0-9",), "--chain K"),
                        (("--dependency=afterok:1",), "--chain K"), (("--chdir=/tmp",), "directory"), (("--output=x.log",), "study.name=NAME")):
        done = place.submit(*words, "--", *option, code=2)
        has(done.stderr, "after `--` contradicts what submit writes itself", own)
        assert done.stdout == "" and done.stderr.count("\n") == 1, done
    has(place.submit(*words, "--", "--gres=nvme:1", "--nodelist=n7", "--time-min=10", "--comment=x -N").stdout,
        "#SBATCH --gres=nvme:1 --nodelist=n7 --time-min=10 '--comment=x -N'\n")
    for value in ("x y", "x\n#SBATCH --nodes=9", "x'", "x#y"):
        has(place.submit(*words, "-p", value, code=2).stderr, "--partition needs one word", "'x")
        has(place.submit(*words, "-A", value, code=2).stderr, "--account needs one word")
    has(place.submit(*words, "--", "--comment=a\nrm -r", code=2).stderr, "'--comment=a...' after `--` has several lines")
    place.site('[slurm]\npartition = "a b"\n')
    has(place.submit(*words, code=2).stderr, f"--partition ({place.path}/site.toml:2) needs one word", "'a b'")


def refusals():
    place = Place(resources="gpus = 2")
    has(place.submit("--time", "1h", code=2).stderr, "say how many a node has, --gpus-per-node 4")
    has(place.submit("--time", "4:00", "--gpus-per-node", "4", code=2).stderr, "4:00")
    has(place.submit("--time", "2m", "--gpus-per-node", "4", code=2).stderr, "--time 2m is too short: 4m is the least")
    has(place.submit("--time", "1h", "--gpus-per-node", "1", code=2).stderr, "1 mistake in ",
        "resources.gpus: a trial may ask for 2 ranks, but the job has 1 worker; let it ask for fewer, or take more --nodes or --gpus-per-node")
    has(place.submit("--gpus-per-node", "4", code=2).stderr, "--time")
    place.fake("sbatch", SBATCH.format(log=place.log).replace("*refuse*", "*"))
    has(place.submit("--time", "1h", "--gpus-per-node", "4", code=2).stderr, "Invalid qos specification",
        "submit/job.sbatch")
    (place.path / "bin" / "sbatch").unlink()
    place.environment["PATH"] = str(place.path / "bin")
    has(place.submit("--time", "1h", "--gpus-per-node", "4", code=2).stderr, "sbatch refused the job: cannot start 'sbatch': no such program in PATH")


def site_mistakes():
    """Every mistake of a site file, with file, line and key; the user's own file wins over the centre's."""
    place = Place()
    place.site('[slurm]\nlauncher = "aprun"\npartitions = "x"\ngpus = "4"\noptions = ["qos"]\nlead_time = "0s"\n'
               '[environment]\n"A-B" = "x"\n[module]\n')
    error = place.submit("--time", "1h", "--print", code=2).stderr
    has(error, f"mistakes in {place.path}/site.toml",
        '2:12  slurm.launcher: needs "srun" or "mpirun", not "aprun"', "3:1", "did you mean 'partition'?",
        "4:8", "slurm.gpus", "5:", "slurm.options", "6:13", "slurm.lead_time", "8:1", "environment.A-B", "9:", "module")
    place.site('[slurm]\nmpi = "pmix_v4"\naccount = "centre"\n')
    own = place.path / "home" / ".config" / "ranktune"
    own.mkdir(parents=True)
    (own / "site.toml").write_text('[slurm]\naccount = "mine"\n')
    text = place.submit("--time", "1h", "--print").stdout
    has(text, "--account=mine\n", f"# from {own}/site.toml:2:", "mpi_type=${MPI_TYPE:-pmix_v4}")
    assert "--account=centre" not in text
    (own / "site.toml").write_text('[slurm]\npartition = ""\naccount = """a\nb"""\n[environment]\nEMPTY = ""\nN = 1\n')
    has(place.submit("--time", "1h", "--print", code=2).stderr, "slurm.partition is empty; leave the key out",
        "slurm.account: needs a string of one line; this one has several", "environment.N: needs a string of one line, not an integer")
    place.site('[environment]\nEMPTY = ""\n')
    (place.path / "home" / ".config" / "ranktune" / "site.toml").unlink()
    has(place.submit("--time", "1h", "--print").stdout, "export EMPTY=''\n")
    place.environment["RANKTUNE_SITE"] = "/no/such/site.toml"
    has(place.submit("--time", "1h", "--print", code=2).stderr, "cannot read the site file '/no/such/site.toml'")


def doctor():
    place = Place()
    done = subprocess.run([PROGRAM, "doctor", "--format", "json"], cwd=place.path, env=place.environment, capture_output=True,
                          text=True, timeout=100)
    report = json.loads(done.stdout)
    assert report["schema"] == 1 and done.returncode == (1 if report["wrong"] else 0), done
    checks = {check["name"]: check for check in report["checks"]}
    for name in ("ranktune", "mpi", "mpirun", "slurm", "pmix", "hdf5", "blas", "binding", "file system", "space", "data copies",
                 "open files", "/dev/shm", "core files", "locked memory", "TMPDIR"):
        assert checks[name]["text"], name
        assert checks[name]["state"] == "good" or checks[name]["mend"], checks[name]
    assert re.search(r"[kMGT]?B (free in|of memory for copies in) ", checks["data copies"]["text"]), checks["data copies"]
    assert re.search(r"sync [0-9.]+ ms", checks["file system"]["text"]), checks["file system"]
    assert not list(place.path.glob(".ranktune-doctor*"))
    text = subprocess.run([PROGRAM, "doctor", "/no/such/place"], cwd=place.path, env=dict(place.environment, TMPDIR="/" + "t" * 80),
                          capture_output=True, text=True, timeout=100)
    assert text.returncode == 1 and "! TMPDIR" in text.stdout and "mend: PMIx keeps sockets" in text.stdout, text
    assert len(text.stdout.splitlines()) <= 40, text.stdout


def support():
    """An archive of at most 5 MB without checkpoints, and without what is called a secret."""
    secret = "hunter2-5f3a"
    place = Place(trainable=f'command = "python3 train.py"\nenv = {{ WANDB_API_KEY = "{secret}", MODE = "fast" }}',
                  resources="ranks = 1")
    study = place.path / "long"
    forms = (f"curl -H 'Authorization: Bearer {secret}' there", f"Authorization: Basic {secret}", f"got bearer {secret}, ok",
             f"train.py --api-key {secret} --epochs 3", f"train.py --token={secret}", f'["--api-key", "{secret}", "--lr", "1"]',
             f"wandb_key: '{secret}'", f'{{"password": "{secret}"}}')
    (study / "logs").mkdir(parents=True)
    (study / "checkpoints" / "0").mkdir(parents=True)
    (study / "checkpoints" / "0" / "1-1.1.h5").write_bytes(os.urandom(100_000))
    (study / "study.toml").write_text((place.path / "study.toml").read_text())
    for i in range(40):
        lines = [f"line {line} of log {i} token={secret} {os.urandom(40).hex()}\n" for line in range(5000)]
        (study / "logs" / f"start-{i}.log").write_text("".join(lines))
    (study / "logs" / "start-99.log").write_text("\n".join(forms) + "\n")
    place.run("support", "long")
    archive = place.path / "long-support.tar.gz"
    assert archive.stat().st_size <= 5_000_000, archive.stat().st_size
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        for name in ("study.toml", "journal.txt", "doctor.txt", "doctor.json"):
            assert f"long-support/{name}" in names, names
        assert not any("checkpoints" in name for name in names), names
        logs = [name for name in names if "/logs/" in name]
        assert logs
        for name in names:
            if tar.getmember(name).isfile():
                text = tar.extractfile(name).read().decode()
                assert secret not in text, name
        assert "line 4999 of log" in tar.extractfile(logs[0]).read().decode()
        said = tar.extractfile("long-support/logs/start-99.log").read().decode()
        has(said, "--api-key (removed) --epochs 3", '"--api-key", (removed), "--lr", "1"', "bearer (removed), ok")
        study_file = tar.extractfile("long-support/study.toml").read().decode()
        assert "WANDB_API_KEY = (removed)" in study_file and 'MODE = "fast"' in study_file, study_file
    place.run("support", "nowhere", code=2)


def a_study_that_ended():
    """Nothing is submitted for a finished study; the exit code is the study's, as with `ranktune run`."""
    place = Place(trainable=CURVE + "\nfail_rate = 1.0\nfail_iteration = 1", resources="ranks = 1")
    place.run("run", "study.toml", "-q", "--local", "1", code=4)
    done = place.submit("--time", "90m", code=4)
    has(done.stderr, f"the study in '{place.path / 'long'}' has ended, but not well, so nothing was submitted",
        f"ranktune status {place.path / 'long'}", f"ranktune run study.toml -o {place.path / 'long'} --restart-errored (exit 4)")
    place.run("run", "study.toml", "-q", "--local", "1", "-o", "good", "trainable.fail_rate=0.0")
    done = place.submit("--time", "90m", "-o", "good", "trainable.fail_rate=0.0")
    has(done.stdout, "is finished, so nothing was submitted; more of it: ranktune submit study.toml study.num_trials=N ...")
    assert place.asked() == [], place.asked()


if __name__ == "__main__":
    for case in (printed, shared_gpus, gpus_of_some_trials, gpus_of_a_script, hosts, chain, again, again_before_the_first_start, a_study_that_ended, a_queue_that_does_not_answer,
                 a_chain_that_is_refused_halfway, followers, options_that_submit_sets_itself, refusals, site_mistakes, doctor, support):
        case()
        print("ok", case.__name__)
