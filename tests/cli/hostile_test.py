#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile or unlucky output of programs, names and files: hostile_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import os
import stat
import subprocess
import tarfile
import unittest

import h5py

from cli_test import PROGRAM, TIMEOUT, TINY, Case, environment, sys
from programs_test import REPORT, STUDY

class Hostile(Case):
    def program(self, text, study=STUDY.replace("ranks = 2", "ranks = 1")):
        (self.cwd / "train.sh").write_bytes(REPORT.encode() + text)
        (self.cwd / "train.sh").chmod(0o755)
        self.write("programs.toml", study.format(command="./train.sh"))

    def test_a_line_80000_lists_deep_fails_its_trial_and_the_worker_goes_on(self):
        for key in ("report", "log"):
            with self.subTest(key):
                line = b'{"report": {"loss": %s}}' if key == "report" else b'{"log": %s}'
                (self.cwd / "line").write_bytes(line % (b"[" * 80000 + b"]" * 80000) + b"\n")
                self.program(b'[ "$RANKTUNE_TRIAL" = 0 ] && cat line >&"$RANKTUNE_FD"\nreport\n')
                out, _ = self.ranktune("run", "programs.toml", "-o", key, "--local", "1", code=3)
                self.assertIn("1 ok", out)
                self.assertIn("1 failed", out)
                self.assertIn("more than 64 lists and objects lie inside each other", self.ranktune("logs", key, "0")[0])
                self.assertEqual(list((self.cwd / key / "logs").glob("crash-*")), [])

    def test_what_a_program_saved_is_not_readable_to_more_people_in_the_copy(self):
        self.program(b"""umask 022
case $RANKTUNE_TRIAL in
0) to=$RANKTUNE_CHECKPOINT_DIR/state;;
*) mkdir -p "$PWD/own/$RANKTUNE_TRIAL"; chmod 700 "$PWD/own"; to=$PWD/own/$RANKTUNE_TRIAL/state;;
esac
mkdir -p "$to/inner"; chmod 700 "$to/inner"
echo secret > "$to/key"; chmod 600 "$to/key"; echo open > "$to/open"; echo hidden > "$to/inner/hidden"
echo "{\\"report\\": {\\"score\\": 1}, \\"checkpoint\\": \\"$to\\"}" >&"$RANKTUNE_FD"; read -r answer <&"$RANKTUNE_FD"
""", STUDY.replace("ranks = 2", "ranks = 1").replace("max_iterations = 9", "max_iterations = 1"))
        subprocess.run([PROGRAM, "run", "programs.toml", "--local", "1"], cwd=self.cwd, timeout=TIMEOUT, check=True,
                       env=environment(), stdout=subprocess.DEVNULL, umask=0o022)
        modes = {str(path.relative_to(self.cwd / "programs/checkpoints")): stat.S_IMODE(path.stat().st_mode)
                 for path in (self.cwd / "programs/checkpoints").rglob("*") if path.name in ("key", "open", "inner")}
        mode = lambda trial, name: [m for path, m in modes.items() if path.startswith(trial) and path.endswith(name)]
        self.assertTrue(mode("0/", "/key") or mode("1/", "/key"), modes)
        for trial, readable in (("0/", 0o444), ("1/", 0o400)):  # those of trial 1 lie below a folder of 0700
            for name, wanted in (("/key", 0o400), ("/open", readable), ("/inner", 0o700)):
                for found in mode(trial, name):
                    self.assertEqual(oct(found), oct(wanted), (trial, name))

    def test_support_takes_out_passwords_of_urls_and_pem_blocks_and_values_called_pwd(self):
        self.write()
        self.ranktune("run", "tiny.toml", "--local", "1")
        secrets = ["hunter1", "hunter2", "hunter3", "MIIhunter4", "hunter5"]
        (self.cwd / "tiny/logs/more.log").write_text(
            "the end of a key that was cut\nMIIhunter4\n-----END PRIVATE KEY-----\n"
            "pulling https://anna:hunter1@host.example/x?y=z from git+ssh://bob:hunter2@host/y\n"
            "DB_PWD=hunter3 PWD=/home/anna\n"
            "-----BEGIN RSA PRIVATE KEY-----\nMIIhunter4\nmore\n-----END RSA PRIVATE KEY-----\nbehind the block\n"
            'json "-----BEGIN KEY-----\\nhunter5\\n-----END KEY-----" goes on\n')
        text = self.supported("tiny")["logs/more.log"]
        for secret in secrets:
            self.assertNotIn(secret, text)
        for kept in ("https://(removed)@host.example/x?y=z", "git+ssh://(removed)@host/y", "PWD=/home/anna",
                     "DB_PWD=(removed)", "behind the block", "goes on"):
            self.assertIn(kept, text)

    def supported(self, directory):
        """The files of the archive that `support` makes, by name."""
        self.ranktune("support", directory, "-o", "s.tar.gz")
        with tarfile.open(self.cwd / "s.tar.gz") as archive:
            return {m.name.split("/", 1)[1]: archive.extractfile(m).read().decode(errors="replace")
                    for m in archive.getmembers() if m.isfile()}

    def test_support_follows_no_links(self):
        self.write()
        self.ranktune("run", "tiny.toml", "--local", "1")
        (self.cwd / "diary").write_text("dear diary\n")
        (self.cwd / "elsewhere").mkdir()
        (self.cwd / "elsewhere/job.sbatch").write_text("dear diary\n")
        (self.cwd / "tiny/logs/link.log").symlink_to(self.cwd / "diary")
        (self.cwd / "tiny/study.toml").unlink(missing_ok=True)
        (self.cwd / "tiny/study.toml").symlink_to(self.cwd / "diary")
        (self.cwd / "tiny/submit").symlink_to(self.cwd / "elsewhere")
        os.mkfifo(self.cwd / "tiny/logs/pipe.log")
        self.assertNotIn("dear diary", "".join(self.supported("tiny").values()))

    def test_no_link_is_followed_by_what_is_written_into_a_study_directory(self):
        victim = self.cwd / "victim"
        victim.write_text("mine\n")
        for name in ("logs/start-1.log", "python/ranktune.py", "python/ranktune.py.tmp"):
            with self.subTest(name):
                self.program(b"report\n")
                study = self.cwd / "programs" / name
                study.parent.mkdir(parents=True, exist_ok=True)
                study.symlink_to(victim)
                done = subprocess.run([PROGRAM, "run", "programs.toml", "--local", "1"], cwd=self.cwd, timeout=TIMEOUT,
                                      env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True)
                self.assertEqual(victim.read_text(), "mine\n")
                if name.startswith("logs"):
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn("a symbolic link is not followed", done.stdout + done.stderr)
                    self.assertIn("start-1.log", done.stdout + done.stderr)
                subprocess.run(["rm", "-rf", self.cwd / "programs"], check=True)

    def test_a_fifo_or_a_device_is_refused_and_not_waited_for(self):
        os.mkfifo(self.cwd / "pipe.toml")
        for name in ("pipe.toml", "/dev/zero"):
            for verb in ("run", "validate"):
                with self.subTest(f"{verb} {name}"):
                    _, error = self.ranktune(verb, name, code=2)
                    self.assertIn("is a FIFO, a socket or a device, not a file", error)
        self.write()
        self.ranktune("run", "tiny.toml", "--local", "1")
        os.mkfifo(self.cwd / "tiny/logs/pipe.log")
        self.assertIn("trial #0", self.ranktune("logs", "tiny", "0")[0])
        (self.cwd / ".git").mkdir()
        os.mkfifo(self.cwd / ".git/HEAD")
        self.ranktune("run", "tiny.toml", "-o", "beside", "--local", "1")
        for name in ("outcome", "journal/000001.h5"):
            path = self.cwd / "tiny" / name
            path.rename(self.cwd / "kept")
            for make in (lambda: os.mkfifo(path), lambda: path.symlink_to("/dev/zero")):
                make()
                with self.subTest(name):
                    done = subprocess.run([PROGRAM, "status", "tiny"], cwd=self.cwd, timeout=TIMEOUT, env=environment(),
                                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
                    self.assertNotEqual(done.returncode, 0, done.stdout)
                    self.assertIn(f"{name}': a FIFO, a socket or a device lies there, not a file", done.stderr)
                path.unlink()
            (self.cwd / "kept").rename(path)

    def test_names_and_values_that_are_not_utf8_are_escaped_in_metrics_h5_and_csv(self):
        self.program(b"printf 'dying \\377 of \\303\\274\\n' >&2\nexit 3\n")
        self.ranktune("run", "programs.toml", "--local", "1", code=4)
        done = subprocess.run([PROGRAM, "export", "programs", "--format", "csv"], cwd=self.cwd, timeout=TIMEOUT,
                              env=environment(), capture_output=True, check=True)
        self.assertIn("dying \\xff of \u00fc", done.stdout.decode())  # strict
        with h5py.File(self.cwd / "programs/metrics.h5") as file:
            messages = [text for text in file["trials/message"].asstr(errors="strict")[:]]
        self.assertTrue(any("dying \\xff of \u00fc" in text for text in messages), messages)

    def test_no_screen_sends_what_others_wrote_to_a_terminal(self):
        name = "\x1b]0;mine\x07dir\x9b"
        self.program(b"printf 'dying \\033[2J\\033[31m of it\\n' >&2\nexit 3\n")
        (self.cwd / "programs.toml").rename(self.cwd / "nasty\x1b[2J.toml")
        everything = ""
        for arguments in (["validate", "nasty\x1b[2J.toml"], ["run", "nasty\x1b[2J.toml", "--dry-run"],
                          ["run", "nasty\x1b[2J.toml", "--local", "1", "-o", name],
                          ["run", "nasty\x1b[2J.toml", "--local", "1", "-o", name], ["status", name], ["best", name],
                          ["stop", name], ["doctor", name], ["replay", name], ["replay", name, "--verify"],
                          ["support", name, "-o", "\x1b[2Js.tar.gz"], ["checkpoint", name, "0"], ["init", "\x1b[2J"],
                          ["plan", "\x1b[2J"], ["status", "\x1b[2J"], ["\x1b[2J"]):
            done = subprocess.run([PROGRAM, *arguments], cwd=self.cwd, timeout=TIMEOUT, stdin=subprocess.DEVNULL,
                                  env=environment(NO_COLOR="1"), capture_output=True)
            everything += done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
            for byte in ("\x1b", "\x07", "\x9b"):
                self.assertNotIn(byte, everything, arguments)
        self.assertIn("\\x1b[2J", everything)
        self.assertNotIn("\x1b", self.ranktune("logs", name, "0")[0].replace("\x1b[2J\x1b[31m of it", ""))

    def test_no_screen_or_page_obeys_or_hides_characters_that_others_wrote(self):
        turned, hidden = "\\u202E\\u2066", "\\u200B\\uFEFF\\U000E0041"
        text = f"""[study]
name = "study"
metric = "sc{hidden}ore"
mode = "max"
num_trials = 3
max_iterations = 2
[trainable]
command = "./train.sh"
[space]
x = "uniform(0, 1)"
kind = ["a{turned}", "b{hidden}\\u001B[31m"]
"""
        self.write("plain.toml", text)
        self.write("refused.toml", text.replace('"study"', f'"{turned}"').replace("x =", f'"x{turned}{hidden}" ='))
        (self.cwd / "train.sh").write_text("""#!/bin/sh
say() { printf '%s\\n' "$1" >&"$RANKTUNE_FD"; }
for i in 1 2; do
    say '{"log": "a mess\\u202eage\\u200b \\u001b[31m"}'
    say '{"report": {"sc\\u200b\\ufeff\\udb40\\udc41ore": 1, "other\\u202e": 2}}'
    read -r answer <&"$RANKTUNE_FD"
    [ "$RANKTUNE_TRIAL" = 1 ] && { printf 'dying of \\342\\200\\256 it\\n' >&2; exit 3; }
done
exit 0
""")
        (self.cwd / "train.sh").chmod(0o755)
        name = "st\u202eudy"
        unseen = [chr(code) for code in (0x1B, 0x202E, 0x2066, 0x200B, 0xFEFF, 0xE0041)]
        everything = ""
        for arguments in (["validate", "refused.toml"], ["validate", "plain.toml"], ["run", "plain.toml", "--dry-run"], ["run", "plain.toml", "--local", "1", "-o", name],
                          ["run", "plain.toml", "--local", "1", "-o", name], ["ls"], ["status", name], ["status", name, "--all"], ["best", name],
                          ["explain", name], ["explain", name, "1"], ["explain", name, "best", "--records"], ["compare", name, name],
                          ["report", name, "-o", "page.html"], ["report", name, name, "-o", "two.svg"], ["replay", name], ["replay", name, "--verify"],
                          ["replay", name, "--schedule", "0"], ["plan", name], ["doctor", name], ["set", name, f"study.{name}=1"], ["stop", name],
                          ["run", "plain.toml", f"study.{name}=1"], ["run", "plain.toml", f"study.metric={name}", "-o", "other", "--local", "1"]):
            done = subprocess.run([PROGRAM, *arguments], cwd=self.cwd, timeout=TIMEOUT, stdin=subprocess.DEVNULL,
                                  env=environment(NO_COLOR="1"), capture_output=True)
            everything += done.stdout.decode() + done.stderr.decode()
            for character in unseen:
                self.assertNotIn(character, everything, arguments)
        self.assertIn("\\u202e", everything)
        self.assertIn("dying of", everything)
        page = (self.cwd / "page.html").read_text()
        for character in unseen:
            self.assertNotIn(character, page)
        self.assertIn("dying of", page)
        start = (self.cwd / name / "logs/start-1.log").read_text()
        for character in unseen:
            self.assertNotIn(character, start)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
