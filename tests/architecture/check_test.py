#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The architecture checker must find each kind of violation."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

checker = pathlib.Path(sys.argv[1]).resolve()
root = checker.parents[2]
licence = "// SPDX-License-Identifier: Apache-2.0\n"
cases = {
    "src/base/bad.cpp": (licence + '#include "tuner/tuner.hpp"\n', "base may not include tuner"),
    "src/tuner/clock.cpp": (licence + "auto t = std::chrono::steady_clock::now();\n", "may not use a clock"),
    "src/study/env.cpp": (licence + 'auto* h = std::getenv("HOME");\n', "may not use the environment"),
    "src/schedulers/state.cpp": (licence + "static int counter = 0;\n", "mutable static state"),
    "src/space/h5.cpp": (licence + "#include <hdf5.h>\n", "space may not use hdf5"),
    "include/ranktune/study/private.hpp": (licence + '#pragma once\n#include "storage/journal/journal.hpp"\n', "a public header includes a private one"),
    "include/ranktune/tuner/public.hpp": (licence + "#pragma once\n", "is not public, but has a public header"),
    "src/trainables/product.cpp": (licence + "cblas_sgemm(101);\n", "the BLAS is linked to src/trainables/blas_module.cpp alone"),
    "src/tuner/fill.cpp": (licence + "bool f() { return spec_.deterministic; }\n", "reads whether a study is deterministic"),
    "src/tuner/apply.cpp": (licence + "void Tuner::receive() {\n    if (spec_.deterministic) return;\n}\n", "reads whether a study is deterministic"),
    "src/tuner/step.cpp": (licence + "void f(ByTurn& turns);\n", "reads whether a study is deterministic"),
    "src/report/screens/screens.cpp": (licence + "auto text = spec.deterministic ? 1 : 2;\n", "reads whether a study is deterministic"),
    "src/study/change.cpp": (licence + "// deterministic\n", "is one of READERS_OF_MODE, but does not read"),
    "src/schedulers/new.cpp": (licence + "bool make_new() { return spec.deterministic; }\n", "reads whether a study is deterministic"),
    "src/head/hides.hpp": (licence + "#pragma once\nclass Head {\n    struct Impl;\n    std::unique_ptr<Impl> impl_;\n};\n", "hides its members behind 'Impl'"),
    "src/comm/groups/group_factory.hpp": (licence + "#pragma once\nint kept_;\n", "is one of HIDES_MEMBERS, but hides nothing"),
    "src/device/module.cpp": (licence + "#include <cuda_runtime_api.h>\n", "only the module, src/device/cuda/, includes headers of CUDA"),
    "src/ddp/streams.cpp": (licence + '#include "device/cuda/streams.hpp"\n', "only the module, src/device/cuda/, includes headers of CUDA"),
    "include/ranktune/trainables/torch.hpp": (licence + "#pragma once\n#include <torch/types.h>\n", "a public header includes torch"),
    "src/trainables/torch.cpp": (licence + "#include <c10/util/Half.h>\n", "trainables may not use torch"),
    "src/base/nolicence.cpp": ("int x;\n", "the licence line is missing"),
    "src/base/glued.cpp": (licence.strip() + " What the file is.\nint x;\n", "the licence line is missing, or has more in it"),
    "src/base/long.cpp": (licence + "\n" * 700, "more than 600 lines"),
    "src/base/endless.cpp": (licence + "void f() {\n" + "    g();\n" * 61 + "}\n", "a function of more than 60 lines: 62"),
    "src/base/wrapped.cpp": (licence + "void Long::f(int a,\n             int b) const {\n" + "    g();\n" * 60 + "}\n", "a function of more than 60 lines: 62"),
    "src/base/built.cpp": (licence + "Long::Long(int a,\n           int b)\n    : a_(a),\n      b_(b) {\n" + "    g();\n" * 60 + "}\n", "a function of more than 60 lines: 64"),
    "tools/bench/endless.cpp": (licence + "Result run(int trials) {\n" + "    g();\n" * 61 + "}\n", "a function of more than 60 lines: 62"),
    "src/attic/old.cpp": (licence, "room attic is in the table of rooms or in src, not in both"),
    "src/base/unfinished.cpp": (licence + "// TO" + "DO later\n", "unfinished"),
    "src/base/once.hpp": (licence + "int x;\n", "#pragma once is missing"),
}
cases["src/base/endless.hpp"] = (
    licence + "#pragma once\nclass Endless : public Base {\n  public:\n    void say();\n\n  private:\n    struct Part {\n        void g();\n    };\n"
    "    template <class T>\n    void on(const T& what);\n    [[nodiscard]] std::function<int(int)> made(\n        int a) const {\n        return g();\n    }\n"
    + "".join(f"    void f{i}(int a = g());\n" for i in range(39)) + "    std::function<void(int)> member_;\n    int other_ = g();\n};\n",
    "class Endless has 41 private member functions")
more_files = {"src/base/crowd/last.cpp": [f"src/base/crowd/n{i}.cpp" for i in range(30)]}  # of a case
cases["src/base/crowd/last.cpp"] = (licence, "more than 30 files of source in one folder: 31")
failures = 0
for name, (text, complaint) in cases.items():
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        (tree / "docs/developer").mkdir(parents=True)
        shutil.copy(root / "docs/developer/architecture.md", tree / "docs/developer")
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
        for other in more_files.get(name, []):
            (tree / other).write_text(licence)
        result = subprocess.run([sys.executable, checker, tree], capture_output=True, text=True)
        if result.returncode != 1 or complaint not in result.stdout:
            failures += 1
            print(f"{name}: expected '{complaint}', got:\n{result.stdout}{result.stderr}")
sys.exit(1 if failures else 0)
