#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What centres install with: the CMake package and the module file of an installation in a temporary prefix, and the recipes for
Spack and Apptainer as far as they can be tried without these.

usage: packaging_test.py BUILD_DIR SOURCE_DIR PREFIX
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

BUILD, SOURCE, PREFIX = sys.argv[1:4]
RECIPES = pathlib.Path(SOURCE) / "tools/packaging"
LMOD = pathlib.Path("/usr/share/lmod/lmod/init/bash")


def run(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="ranktune-packaging-")
        root = pathlib.Path(cls.folder.name)
        run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", root / "install"])
        cls.root, cls.installed = root, root / "install" / pathlib.Path(PREFIX).relative_to("/")
        cls.environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_manual_pages_and_completions_are_where_man_and_shells_look(self):
        for name in ("man/man1/ranktune.1", "man/man1/ranktune-run.1", "man/man5/ranktune-study.5", "bash-completion/completions/ranktune",
                     "zsh/site-functions/_ranktune", "fish/vendor_completions.d/ranktune.fish"):
            with self.subTest(name=name):
                self.assertIn("ranktune", (self.installed / "share" / name).read_text())

    @unittest.skipUnless(shutil.which("cmake"), "no cmake")
    def test_a_job_builds_with_cmake_and_passes_its_test(self):
        job = self.root / "job"
        shutil.copytree(pathlib.Path(SOURCE) / "jobs/custom-trainable", job)
        run(["cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={self.installed}"], cwd=job, env=self.environment)
        run(["cmake", "--build", "build"], cwd=job, env=self.environment)
        run(["ctest", "--test-dir", "build", "--output-on-failure"], cwd=job, env=self.environment)
        self.assertIn("no mistakes", run(["build/curve_fit", "validate", "curve_fit.toml"], cwd=job, env=self.environment))

    @unittest.skipUnless(shutil.which("cmake"), "no cmake")
    def test_the_cmake_package_fits_its_own_interface_only(self):
        version = re.search(r'PACKAGE_VERSION "(\d+)\.(\d+)\.(\d+)"',
                            next(self.installed.rglob("ranktuneConfigVersion.cmake")).read_text())
        major, minor, patch = map(int, version.groups())
        for wanted, fits in ((f"{major}.{minor}", True), (f"{major}.{minor}.{patch}", True), (f"{major}.{minor}.{patch + 1}", False),
                             (f"{major}.{minor + 1}", False), (f"{major + 1}.0", False)):
            project = self.root / f"wants-{wanted}"
            project.mkdir()
            (project / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES CXX)\n"
                                                    f"find_package(ranktune {wanted} REQUIRED)\n")
            done = subprocess.run(["cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={self.installed}"], cwd=project,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode == 0, fits, wanted + done.stderr)

    @unittest.skipUnless(LMOD.exists(), "no lmod")
    def test_the_module_file_gives_the_program_its_documents_and_its_packages(self):
        (module,) = (self.installed / "share/ranktune/modulefiles/ranktune").iterdir()
        moved = self.root / "modules/ranktune" / module.name  # the prefix is absolute, and this installation lies elsewhere
        moved.parent.mkdir(parents=True)
        moved.write_text(module.read_text().replace(f'set prefix "{PREFIX}"', f'set prefix "{self.installed}"'))
        script = (f"source {LMOD}; module use {moved.parent.parent}; module load ranktune; command -v ranktune; "
                  "pkg-config --variable=libdir ranktune; python3 -c 'import ranktune; print(ranktune.__file__)'; module unload ranktune; "
                  "command -v ranktune || echo gone")
        lines = run(["bash", "-c", script], env={**self.environment, "PATH": "/usr/bin:/bin"}).splitlines()
        self.assertEqual(lines[0], str(self.installed / "bin/ranktune"))
        self.assertTrue(lines[1].startswith(PREFIX), lines[1])  # as the package was configured
        self.assertTrue(lines[2].startswith(str(self.installed / "share/ranktune/python")), lines[2])
        self.assertEqual(lines[3], "gone")


class Recipes(unittest.TestCase):
    def test_the_spack_recipe_wants_what_the_documents_say(self):
        """The recipe is executed with stand-ins for Spack's directives."""
        wanted = {}
        package = types.ModuleType("spack.package")
        package.MesonPackage = object
        package.depends_on = lambda spec, **_: wanted.update([(spec.partition("@")[0], spec.partition("@")[2].rstrip(":"))])
        for directive in ("version", "variant", "license", "conflicts"):
            setattr(package, directive, lambda *_, **__: None)
        package.__all__ = ["MesonPackage", "depends_on", "version", "variant", "license", "conflicts"]
        saved = dict(sys.modules)
        sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": package})
        try:
            exec(compile((RECIPES / "package.py").read_text(), "package.py", "exec"), {})
        finally:
            for name in set(sys.modules) - set(saved):
                del sys.modules[name]
        page = (pathlib.Path(SOURCE) / "docs/reference/dependencies.md").read_text()
        rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in page.splitlines() if line.startswith("| ")]
        names = {"MPI": "mpi", "HDF5 C library": "hdf5", "hwloc": "hwloc", "Boost": "boost", "Eigen": "eigen", "NLopt": "nlopt", "PCRE2": "pcre2",
                 "toml++": "tomlplusplus", "CLI11": "cli11", "fmt": "fmt", "nlohmann-json": "nlohmann-json", "Python": "python",
                 "NCCL": "nccl", "CUDA toolkit (nvcc, cudart, cuBLAS)": "cuda"}
        listed = {names[name]: minimum for name, minimum in rows if name in names}
        self.assertEqual(set(listed), set(names.values()))
        for name, minimum in listed.items():
            self.assertEqual(wanted.get(name), minimum, name)

    def test_the_apptainer_definition_is_whole_and_its_scripts_are_shell(self):
        sections = dict(re.findall(r"^%(\w+)\n(.*?)(?=^%|\Z)", (RECIPES / "ranktune.def").read_text(), re.M | re.S))
        self.assertEqual(set(sections), {"files", "post", "test", "runscript"})
        for name in ("post", "test", "runscript"):
            run(["bash", "-n", "-c", sections[name]])
        tools = re.findall(r"tools/[\w-]+", sections["post"])
        self.assertTrue(tools)
        for tool in tools:
            self.assertTrue(os.access(pathlib.Path(SOURCE) / tool, os.X_OK), tool)


class Release(unittest.TestCase):
    def test_what_a_release_promises_holds_now_and_each_mistake_is_named(self):
        def check(folder):
            done = subprocess.run(["tools/release", "--check"], cwd=folder, capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

        code, said = check(SOURCE)
        self.assertEqual(code, 0, said)
        version = re.search(r"Version (\d+\.\d+\.\d+)", said)[1]
        files = ("meson.build", "CITATION.cff", "README.md", "README.zh.md", "CHANGELOG.md", "tools/common.sh", "tools/release",
                 "tools/python/pyproject.toml")
        for name, before, after, words in (
                ("meson.build", f"'{version}'", "'9.9.9'", "has '9.9.9': make them equal"),
                ("CITATION.cff", version, "9.9.9", "CITATION.cff has version '9.9.9'"),
                ("tools/python/pyproject.toml", version, "9.9.9", "pyproject.toml has version '9.9.9'"),
                ("README.zh.md", version, "9.9.9", "README.zh.md has version '9.9.9'"),
                ("CHANGELOG.md", version, "9.9.9", "its first section is")):
            with self.subTest(file=name), tempfile.TemporaryDirectory() as folder:
                for file in files:
                    (pathlib.Path(folder) / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(pathlib.Path(SOURCE) / file, pathlib.Path(folder) / file)
                wrong = pathlib.Path(folder) / name
                wrong.write_text(wrong.read_text().replace(before, after, 1))
                code, said = check(folder)
                self.assertEqual(code, 1, said)
                self.assertIn(words, said)

    @unittest.skipUnless(pathlib.Path("/usr/include/eigen3").is_dir() and pathlib.Path("/usr/include/toml++").is_dir(), "headers lie elsewhere")
    def test_libraries_of_headers_are_found_on_cpath_and_a_missing_one_is_named(self):
        hidden = re.compile("tomlplusplus|fmt|nlohmann_json|CLI11|eigen3")
        folders = run(["pkg-config", "--variable", "pc_path", "pkg-config"]).strip().split(":")
        with tempfile.TemporaryDirectory() as folder:
            known = pathlib.Path(folder) / "pkgconfig"
            known.mkdir()
            for path in (path for place in folders for path in pathlib.Path(place).glob("*.pc")):
                if not hidden.match(path.stem) and not (known / path.name).exists():
                    (known / path.name).symlink_to(path)
            no_cmake = pathlib.Path(folder) / "no-cmake.ini"
            no_cmake.write_text("[binaries]\ncmake = '/nonexistent'\n")

            def setup(cpath):
                done = subprocess.run(["meson", "setup", pathlib.Path(folder) / f"build{len(cpath)}", SOURCE, "--native-file", no_cmake,
                                       "-Dtests=disabled", "-Dcuda=disabled", "-Dtorch=disabled"],
                                      env={**os.environ, "PKG_CONFIG_LIBDIR": str(known), "CPATH": cpath}, capture_output=True, text=True)
                return done.returncode, done.stdout + done.stderr

            code, said = setup("")
            self.assertEqual(code, 1, said)
            self.assertIn("eigen3 3.3 or newer was found neither by pkg-config nor as the header <Eigen/Core>: install it (Debian: libeigen3-dev)", said)
            code, said = setup("/usr/include/eigen3")
            self.assertEqual(code, 0, said)
            for header in ("toml++/toml.h", "fmt/format.h", "nlohmann/json.hpp", "CLI/CLI.hpp", "Eigen/Core"):
                self.assertIn(f'Checking if "<{header}>" compiles: YES', said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
