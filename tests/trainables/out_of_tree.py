#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the build into a temporary prefix, copies jobs/custom-trainable and jobs/custom-scheduler out of the tree, builds
them there against the installed library with nothing but pkg-config, and runs a small study with each.

usage: out_of_tree.py BUILD_DIR SOURCE_DIR PREFIX
"""

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile


def run(command, **kwargs):
    print("+", *command, flush=True)
    return subprocess.run([str(part) for part in command], check=True, **kwargs)


def links(page):
    """The files that a page links to."""
    text = re.sub(r"^( *)```.*?^\1```$|`[^`\n]*`", "", page.read_text(), flags=re.M | re.S)
    return {link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link and link[0] != "#"}


def check_documents(installed, source):
    """Every page is installed, its links lead to something that is installed, and so is every page that the installation
    names."""
    documents = installed / "share/doc/ranktune"
    for page in (source / "docs").rglob("*.md"):
        assert (documents / page.relative_to(source)).is_file(), f"{page} is not installed"
    broken = [(str(page), link) for page in [*documents.rglob("*.md"), *(installed / "share/ranktune/slurm").glob("*.md")]
              for link in links(page) if not (page.parent / link).exists()]
    assert not broken, broken
    named = 0
    for file in (installed / "share/ranktune").rglob("*"):
        if file.is_file() and file.suffix in (".sbatch", ".py"):
            for page in re.findall(r"\b(?:share/doc/ranktune/)?docs/[\w/-]+\.md", file.read_text()):
                named += 1
                assert (documents / page.removeprefix("share/doc/ranktune/")).is_file(), f"{file} names {page}"
            if file.suffix == ".sbatch" or file.name == "ranktune.py":
                assert "share/doc/ranktune/docs/" in file.read_text(), f"{file} names no page that is installed"
    assert named >= 3, named


def check_headers(installed, source):
    """The installed headers are those of the list; tests/architecture/installed.py checks the rest."""
    listed = set(re.findall(r"'(ranktune/[^']+)'", (source / "include/meson.build").read_text()))
    found = {str(path.relative_to(installed / "include")) for path in (installed / "include").rglob("*") if path.is_file()}
    if not any(name.startswith("ranktune/libtorch/") for name in found):  # built without LibTorch
        optional = (source / "include/meson.build").read_text().partition("torch_headers = [")[2].partition("]")[0]
        listed -= set(re.findall(r"'(ranktune/[^']+)'", optional))
    assert found == listed, found ^ listed


def check_messages(installed, root):
    """Pages that the installed program names are those of the installation."""
    program = installed / "bin/ranktune"
    libraries = str(next(installed.rglob("libranktune.so")).parent)
    environment = dict(os.environ, NO_COLOR="1", LD_LIBRARY_PATH=libraries)
    pages = installed.resolve() / "share/doc/ranktune/docs"
    folder = root / "messages"
    folder.mkdir()
    for template in ("digits", "program"):
        run([program, "init", f"my-{template}", "--template", template], cwd=folder, env=environment)
        named = re.findall(r"\S+\.md", (folder / f"my-{template}.toml").read_text())
        assert named, template
        for page in named:
            assert pathlib.Path(page).is_file() and pages in pathlib.Path(page).parents, page
    (folder / "silent.toml").write_text('[study]\nname = "silent"\nmetric = "score"\nmode = "max"\nnum_trials = 1\n'
                                        'max_iterations = 1\n[trainable]\ncommand = "true"\n')
    done = subprocess.run([program, "run", "--local", "1", "silent.toml"], cwd=folder, env=environment, timeout=100,
                          capture_output=True, text=True)
    assert done.returncode == 4, done.stdout + done.stderr
    text = run([program, "export", "silent", "--format", "json"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    message = json.loads(text.stdout)["trials"][0]["message"]
    (page,) = re.findall(r"/\S+\.md", message)
    assert page == str(pages / "guides/programs.md") and os.path.isfile(page), message


def check_blas(job, environment, libraries):
    """A program linked to the installed library trains with the BLAS module beside that library, and reports what to do without it."""
    module = libraries / "libranktune-blas.so.0"
    program = os.path.join(job, "curve_fit")
    run([program, "init", "digits"], cwd=job, env=environment)
    train = [program, "run", "--local", "1", "digits.toml", "study.num_trials=1", "study.max_iterations=1", "resources.ranks=1"]
    loaded = run([program, "doctor"], cwd=job, env=dict(environment, LD_DEBUG="libs"), stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE, text=True).stderr
    assert f"calling init: {module}" in loaded, loaded
    run(train, cwd=job, env=environment, timeout=100)
    hidden = module.rename(module.with_suffix(".hidden"))
    checked = subprocess.run([program, "doctor"], cwd=job, env=environment, capture_output=True, text=True, timeout=100)
    assert module.name in checked.stdout and "install" in checked.stdout, checked.stdout + checked.stderr
    failed = subprocess.run([*train, "--fresh"], cwd=job, env=environment, capture_output=True, text=True, timeout=100)
    said = failed.stdout + failed.stderr + "".join(log.read_text() for log in (job / "digits" / "logs").iterdir() if log.is_file())
    assert failed.returncode != 0 and module.name in said and "cannot load the BLAS" in said, f"{failed.returncode}: {said}"
    run([program, "status", "digits"], cwd=job, env=environment)
    hidden.rename(module)


def build_job(job, targets, package, installed, environment):
    for target in targets:
        run(["make", target, f"PKG_CONFIG_PATH={package.parent}", f"PKG_CONFIG=pkg-config --define-variable=prefix={installed}"],
            cwd=job, env=environment)


def check_torch(root, source, package, installed, environment):
    """The job with a LibTorch model, built with its Makefile, trains in the plain ranktune."""
    if not package.with_name("ranktune-torch.pc").exists():
        print("no ranktune-torch: built without LibTorch")
        return
    job = root / "jobs/torch-resnet"
    for name in ("torch-resnet", "digits"):
        shutil.copytree(source / "jobs" / name, root / "jobs" / name)
    build_job(job, ("resnet.so", "CXXFLAGS=-O0"), package, installed, environment)
    environment = dict(environment, LD_LIBRARY_PATH=str(package.parent.parent))
    run([installed / "bin/ranktune", "run", "--local", "2", "resnet.toml", "study.num_trials=1", "study.max_iterations=1",
         "trainable.width=4", "failure.tolerate=1.0"], cwd=job, env=environment, timeout=200)


def check_tutorial(root, source, package, installed, environment):
    """docs/tutorials/cpp.md, from an empty folder to the report."""
    sys.path.insert(0, str(source / "tests/tutorials"))
    import follow
    page = (source / "docs/tutorials/cpp.md").read_text()
    job = root / "tutorial"
    job.mkdir()
    follow.write_files(page, job)
    follow.shell("".join(text for kind, _, text in follow.blocks(page) if kind == "sh"), job,
                 dict(environment, PKG_CONFIG_PATH=str(package.parent), PKG_CONFIG=f"pkg-config --define-variable=prefix={installed}",
                      LD_LIBRARY_PATH=str(package.parent.parent)))
    best = json.loads((output(["build/line", "best", "line", "--json"], cwd=job, env=environment)))["best"]
    assert best["value"] < 0.01 and (job / "line-report.html").exists(), best


def output(command, **kwargs):
    return run(command, stdout=subprocess.PIPE, text=True, **kwargs).stdout


def check_scheduler(job, installed, environment):
    """A program with its own scheduler is ranktune with one more scheduler; the plain ranktune reports that it is missing."""
    program = job / "mean_stopping"
    here = {"cwd": job, "env": environment}
    assert '[scheduler] type = "mean_stopping"' in output([program, "algorithms"], **here)
    run([program, "init", "mine", "--scheduler", "mean_stopping"], **here)
    assert "# min_finished = 3" in (job / "mine.toml").read_text()
    assert "mean_stopping" in output([program, "run", "--dry-run", "mean_stopping.toml"], **here)
    wrong = subprocess.run([program, "validate", "mean_stopping.toml", "scheduler.warmup=0"], capture_output=True, text=True, **here)
    assert wrong.returncode == 2 and "scheduler.warmup: needs an integer >= 1, not 0" in wrong.stdout + wrong.stderr, wrong
    said = output([program, "run", "--local", "2", "mean_stopping.toml"], timeout=100, **here)
    assert "next      mean_stopping best mean-stopping" in said, said
    trials = json.loads(output([program, "export", "mean-stopping", "--format", "json"], **here))["trials"]
    stopped = sum(trial["state"] == "stopped" for trial in trials)
    assert len(trials) == 40 and 0 < stopped < 40, f"{stopped} of {len(trials)} trials are stopped"
    assert "is worse than its scheduler's limit" in json.dumps(trials), trials
    run([program, "replay", "mean-stopping", "--verify"], **here)
    run([program, "run", "--local", "2", "mean-stopping", "study.num_trials=44"], timeout=100, **here)
    libraries = str(next(installed.rglob("libranktune.so")).parent)
    for verb in ("status", "run"):
        plain = subprocess.run([installed / "bin/ranktune", verb, "mean-stopping"], cwd=job, capture_output=True, text=True,
                               env=dict(environment, LD_LIBRARY_PATH=libraries))
        said = " ".join((plain.stdout + plain.stderr).split())
        assert plain.returncode == 2 and 'scheduler.type = "mean_stopping", which this program does not have' in said, plain


def check_predictions(job, environment):
    """The class predicts, too: the fitted curve, at places from a .npy file."""
    x = [i / 1500 for i in range(1500)]
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({len(x)},), }}".ljust(117).encode() + b"\n"
    (job / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(x)}d", *x))
    run(["./curve_fit", "predict", "curve-fit", "best", "--input", "x.npy", "-o", "y.h5", "--local", "2"], cwd=job, env=environment,
        timeout=100)
    y = struct.unpack(f"<{len(x)}d", (job / "y.h5").read_bytes()[-8 * len(x):])  # the only data set, at the end of the file
    run(["./curve_fit", "checkpoint", "curve-fit", "best", "-o", "w.safetensors"], cwd=job, env=environment)
    w = struct.unpack("<3d", (job / "w.safetensors").read_bytes()[-24:])
    furthest = max(abs(b - (w[0] + w[1] * a + w[2] * a * a)) for a, b in zip(x, y))
    assert furthest < 1e-12, f"a prediction is off by {furthest}"


def main():
    build, source, prefix = sys.argv[1:]
    for tool in ("meson", "make", "pkg-config"):
        if shutil.which(tool) is None:
            print(f"skipped: no {tool}")
            return 77
    with tempfile.TemporaryDirectory(prefix="ranktune-out-of-tree-") as directory:
        root = pathlib.Path(directory)
        run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", root / "install"])
        installed = root / "install" / pathlib.Path(prefix).relative_to("/")
        for script in ("cpu.sbatch", "gpu.sbatch"):  # for those who have the installation and no clone
            assert os.access(installed / "share/ranktune/slurm" / script, os.X_OK), script
        check_documents(installed, pathlib.Path(source))
        check_messages(installed, root)
        job = root / "job"
        shutil.copytree(pathlib.Path(source) / "jobs/custom-trainable", job)
        package = next(installed.rglob("ranktune.pc"))
        environment = dict(os.environ, NO_COLOR="1")
        environment.pop("LD_LIBRARY_PATH", None)  # Meson's, of the build tree
        build_job(job, ("curve_fit", "check"), package, installed, environment)
        check_headers(installed, pathlib.Path(source))
        run(["./curve_fit", "validate", "curve_fit.toml"], cwd=job, env=environment)
        run(["./curve_fit", "run", "--local", "2", "curve_fit.toml", "study.num_trials=6"], cwd=job, env=environment,
            timeout=100)
        text = run(["./curve_fit", "export", "curve-fit", "--format", "json"], cwd=job, env=environment,
                   stdout=subprocess.PIPE, text=True).stdout
        trials = json.loads(text)["trials"]
        assert len(trials) == 6, f"{len(trials)} trials instead of 6"
        check_predictions(job, environment)
        check_blas(job, environment, package.parent.parent)
        check_torch(root, pathlib.Path(source), package, installed, environment)
        check_tutorial(root, pathlib.Path(source), package, installed, environment)
        job = root / "scheduler"
        shutil.copytree(pathlib.Path(source) / "jobs/custom-scheduler", job)
        build_job(job, ("mean_stopping", "check"), package, installed, environment)
        check_scheduler(job, installed, environment)
    return 0


if __name__ == "__main__":
    sys.exit(main())
