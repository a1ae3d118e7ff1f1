#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the source tree against docs/developer/architecture.md: includes, what the core may not use, who reads the mode,
sizes, licence lines.

Usage: check.py SOURCE_ROOT [nm-checked static libraries ...]
Prints one line per violation and exits 1 if there is any.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
CORE = ["base", "space", "study", "models", "searchers", "schedulers", "tuner"]
THIRD_PARTY = {
    "toml++": r"toml\+\+/", "Eigen": r"Eigen/", "hdf5": r"(hdf5|H5\w+)\.h$", "mpi": r"mpi\.h$", "hwloc": r"hwloc", "cblas": r"cblas",
    "fmt": r"fmt/", "nlohmann": r"nlohmann/", "CLI11": r"CLI/", "boost": r"boost/", "nlopt": r"nlopt", "pcre2": r"pcre2\.h", "zlib": r"zlib\.h$",
    "cuda": r"^(cuda\w*|nccl|cublas\w*|nvml)\.h$", "torch": r"^(torch|ATen|c10)/",
}
# The one library whose headers public headers may include: in this room alone, which users include only for their models.
PUBLIC_THIRD_PARTY = {"libtorch": {"torch"}}
CUDA_MODULE = "src/device/cuda/"
# Clocks, environment, files, threads and global state have no place in the core: see laws 6 and 8.
FORBIDDEN_IN_CORE = [
    (r"\b(steady|system|high_resolution)_clock\b", "a clock"), (r"\bclock_gettime\b|\bgettimeofday\b|\btime\(nullptr\)", "a clock"),
    (r"\bgetenv\b|\bsetenv\b", "the environment"), (r"\bstd::(thread|jthread|mutex|condition_variable|atomic)\b", "threads"),
    (r"\bstd::(ifstream|ofstream|fstream)\b|\bfopen\(", "files"), (r"\bstd::(rand|srand|random_device|mt19937)\b", "a generator that is not keyed"),
    (r"^\s*(static|inline|thread_local)\s+(?!constexpr|const\b|inline constexpr|inline const)[\w:<>,\s\*&]+\s+\w+\s*(=[^=(]*|\{[^()]*\})?;",
     "mutable static state"),
    (r"\bstd::cout\b|\bstd::cerr\b|\bprintf\(", "output"),
]
# These count references as std::shared_ptr does, but in the memory of what they count: no thread waits for another.
REFERENCE_COUNT = "std::atomic<std::uint32_t> users = 1;"
COUNTERS_OF_REFERENCES = {"include/ranktune/space/configuration.hpp", "src/space/value.cpp"}
FORBIDDEN_SYMBOLS = re.compile(r"\b(clock_gettime|gettimeofday|getenv|setenv|open|fopen|pthread_create|socket|fork|rand|srand|MPI_\w+|H5\w+)$")
BLAS_CALL = re.compile(r"\bcblas_\w+\s*\(")
BLAS_MODULE = "src/trainables/blas_module.cpp"
# Only the admission depends on whether a study is asynchronous or deterministic; everything else in the core asks it, and
# schedulers ask saved_before_verdict. Who may read the mode, or name a strategy: by file; in the core also by
# class or function.
MODE = re.compile(r"\bdeterministic\b|\bBy(Turn|Arrival)\b")
EVERYWHERE = None
READERS_OF_MODE = {
    "include/ranktune/study/spec.hpp": EVERYWHERE,       # has it
    "src/study/algorithm.cpp": {"check_options"},        # refuses what an algorithm describes as not deterministic
    "src/schedulers/saved_before_verdict.cpp": {"saved_before_verdict"},  # what the mode means for schedulers
    "src/worker/trial/own_end.cpp": {"OwnEnd"},  # reports that wait for their turn may need the state
    "src/simulate/cluster/deterministic.cpp": EVERYWHERE,             # makes deterministic studies
    "src/testing/scheduler_world.cpp": {"spec_of"},      # the contract has studies of both kinds
    "src/report/replay/repeat.cpp": {"repeated", "extended"},  # trials that are known need no order
    "src/cli/verbs/plan.cpp": {"first_trials"},          # a dry run prepares no suggestions
    "src/schedulers/rehearsal.cpp": {"rehearse"},        # virtual time, one event after the other
    "src/study/change.cpp": EVERYWHERE,                  # which keys may change
    "src/study/parse/parse_algorithm.cpp": EVERYWHERE,
    "src/study/parse/parse_scheduler.cpp": EVERYWHERE,   # which schedulers do not go with it
    "src/study/parse/parse_resources.cpp": {"parse_some_gpus"},
    "src/study/parse/parse_stop.cpp": EVERYWHERE,              # refuses keys that contradict it
    "src/study/parse/parse_study_table.cpp": EVERYWHERE,
    "src/study/parse/keys.cpp": EVERYWHERE,              # its key
    "src/tuner/admission/by_arrival.cpp": {"ByArrival"},
    "src/tuner/admission/by_arrival.hpp": {"ByArrival"},
    "src/tuner/admission/by_barrier.cpp": {"ByBarrier"},
    "src/tuner/admission/by_barrier.hpp": {"ByBarrier"},
    "src/tuner/admission/by_turn.cpp": {"ByTurn"},
    "src/tuner/admission/by_turn.hpp": {"ByTurn"},
    "src/tuner/admission/admission.cpp": {"groups_at_once"},
    "src/tuner/tuner.cpp": {"make_admission"},
}
# Classes that hide their members behind a pointer, so that headers of MPI stay in comm. Public headers may.
HIDES_MEMBERS = {"src/comm/exchange/block_exchange.hpp", "src/comm/groups/group_factory.hpp"}
# The whole line: what reads licences takes everything on it for their names. (A table of others has their licence, too.)
LICENCE_LINE = re.compile(r"(//|#) SPDX-License-Identifier: Apache-2\.0")
MAX_LINES = 600
# Programs copy it, and import it without installation: it stays one file.
ONE_FILE = {"tools/python/ranktune.py": 770}
MAX_FILES = 30           # of source in one folder of src; subfolders count on their own
MAX_PRIVATE_FUNCTIONS = 40  # of a class; overloads count each, nested classes on their own
MAX_FUNCTION_LINES = 60  # between first line and closing brace, in code formatted by clang-format

problems = []


def complain(path, line, text):
    where = path.relative_to(ROOT) if path.is_absolute() else path
    problems.append(f"{where}:{line}: {text}")


def read_table():
    rooms = {}
    for line in (ROOT / "docs/developer/architecture.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 5 and cells[0].isdigit():
            name = cells[1].split()[0]
            rooms[name] = {
                "public": "*public*" in cells[1],
                "may": set(cells[3].split()) - {"-"} | {name},
                "third": set(cells[4].split()) - {"-"},
            }
    return rooms


def check_order(rooms):
    seen = set()
    for name, room in rooms.items():
        for other in room["may"] - {name}:
            if other not in seen:
                complain(ROOT / "docs/developer/architecture.md", 0, f"room {name} may include {other}, which is not above it")
        seen.add(name)


def room_of(path):
    parts = path.relative_to(ROOT).parts
    return parts[2] if parts[0] == "include" else parts[1]


def check_includes(path, text, rooms):
    public_header = path.relative_to(ROOT).parts[0] == "include"
    if public_header and len(path.relative_to(ROOT).parts) < 4:
        return  # umbrella headers
    name = room_of(path)
    if name not in rooms:
        complain(path, 1, f"room {name} is not in the table of docs/developer/architecture.md")
        return
    room = rooms[name]
    if public_header and not room["public"]:
        complain(path, 1, f"room {name} is not public, but has a public header")
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        target = match.group(2)
        if match.group(1) == '"':
            parts = target.split("/")
            other = parts[1] if parts[0] == "ranktune" and len(parts) > 2 else parts[0]
            if other in rooms and other not in room["may"]:
                complain(path, number, f"{name} may not include {other}")
            if public_header and parts[0] != "ranktune":
                complain(path, number, "a public header includes a private one")
        for library, pattern in THIRD_PARTY.items():
            if re.search(pattern, target) and match.group(1) == "<":
                if public_header and library not in PUBLIC_THIRD_PARTY.get(name, set()):
                    complain(path, number, f"a public header includes {library}")
                elif library not in room["third"]:
                    complain(path, number, f"{name} may not use {library}")


def check_core(path, text):
    if room_of(path) not in CORE:
        return
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0]
        if code.strip() == REFERENCE_COUNT and path.relative_to(ROOT).as_posix() in COUNTERS_OF_REFERENCES:
            continue
        for pattern, what in FORBIDDEN_IN_CORE:
            if re.search(pattern, code):
                complain(path, number, f"the core may not use {what}: {code.strip()}")


def check_blas(path, text):
    if path.relative_to(ROOT).as_posix() == BLAS_MODULE:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if BLAS_CALL.search(line.split("//")[0]):
            complain(path, number, f"the BLAS is linked to {BLAS_MODULE} alone, which is opened when a trial computes")


def check_cuda(path, text):
    """Only the module may know CUDA; nothing else is linked to it."""
    if path.relative_to(ROOT).as_posix().startswith(CUDA_MODULE):
        return
    for number, line in enumerate(text.splitlines(), 1):
        target = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if target and (re.search(THIRD_PARTY["cuda"], target.group(1)) or target.group(1).startswith("device/cuda/")):
            complain(path, number, f"only the module, {CUDA_MODULE}, includes headers of CUDA and its own")


def check_mode(path, text):
    name = path.relative_to(ROOT).as_posix()
    allowed = READERS_OF_MODE.get(name, set())
    owners, reads = set(), False  # the words of the first line of the class or function, up to its parameters
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"[A-Za-z\[]", line):
            owners = set(re.findall(r"\w+", line.split("(")[0]))
        code = re.sub(r'"(?:\\.|[^"\\])*"', '""', line.split("//")[0])
        if not MODE.search(code):
            continue
        reads = True
        if allowed is not EVERYWHERE and not owners & allowed:
            complain(path, number, f"reads whether a study is deterministic; only READERS_OF_MODE may, others ask the Admission: {code.strip()}")
    if name in READERS_OF_MODE and not reads:
        complain(path, 1, "is one of READERS_OF_MODE, but does not read whether a study is deterministic")


def check_hidden_members(path, text):
    name = path.relative_to(ROOT).as_posix()
    if path.suffix != ".hpp" or not name.startswith("src/"):
        return
    hides = re.search(r"\b(?:unique|shared)_ptr<(?:const )?(\w*(?:Impl|Pimpl))>", text)
    if hides and name not in HIDES_MEMBERS:
        line = text[:hides.start()].count("\n") + 1
        complain(path, line, f"hides its members behind '{hides.group(1)}': only public headers do, and HIDES_MEMBERS, to keep a library out")
    if not hides and name in HIDES_MEMBERS:
        complain(path, 1, "is one of HIDES_MEMBERS, but hides nothing")


def check_file(path, text):
    lines = text.splitlines()
    if not any(LICENCE_LINE.fullmatch(line) for line in lines[:3]):
        complain(path, 1, "the licence line is missing, or has more in it")
    most = ONE_FILE.get(str(path.relative_to(ROOT)), MAX_LINES)
    if len(lines) > most:
        complain(path, len(lines), f"more than {most} lines")
    for number, line in enumerate(lines, 1):
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line) and path.name != "check.py":
            complain(path, number, "unfinished: " + line.strip())
    if path.suffix in (".hpp", ".cuh") and not any(line.strip() == "#pragma once" for line in lines[:4]):
        complain(path, 1, "#pragma once is missing")


NOT_A_FUNCTION = re.compile(r"\s*(namespace|class|struct|enum|union|extern|if|for|while|switch|do|else|try)\b")


def depths(lines):
    """How many parentheses are open before each line, and at the end. A line that begins in the first column resets the count: raw
    strings may have unbalanced parentheses."""
    depth = [0]
    for line in lines:
        if re.match(r"[\w}]", line):
            depth[-1] = 0
        code = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', "", line).split("//")[0]
        depth.append(max(depth[-1] + code.count("(") - code.count(")"), 0))
    return depth


def check_functions(path, text):
    """A function begins with its signature, which may take several lines, at the indentation of its closing brace."""
    lines = text.splitlines()
    depth = depths(lines)
    for indent in ("", "    ", "        "):
        first = begin = None  # the first line of a statement; the line of the function's opening brace
        for number, line in enumerate(lines):
            if begin is not None:
                if line.startswith(indent + "}"):
                    if line == indent + "}" and number - first > MAX_FUNCTION_LINES:
                        complain(path, first + 1, f"a function of more than {MAX_FUNCTION_LINES} lines: {number - first}")
                    first = begin = None
                continue
            if depth[number] == 0 and re.match(indent + r"[\w~\[]", line):
                first = None if NOT_A_FUNCTION.match(line) else number
            elif not line.startswith(indent + " ") and depth[number] == 0:
                first = None
            if first is not None and line.endswith("{") and depth[number + 1] == 0:
                is_value = not re.search(r"[)\]]", "".join(lines[first : number + 1]))  # as in a list: Point{
                first, begin = (None, None) if is_value else (first, number)
            elif line.endswith((";", "{", "}")) and depth[number + 1] == 0:
                first = None


CLASS = re.compile(r"^( *)(class|struct)\s+(?:alignas\([^)]*\)\s*)?(\w+)[^;(){}]*{$", re.M)
NOT_A_MEMBER_FUNCTION = re.compile(r"(class|struct|enum|union|using|typedef|friend|static_assert)\b")


def is_function(declaration):
    """Whether a declaration of a class, up to its first semicolon or brace, is that of a function."""
    text = re.sub(r"\[\[.*?\]\]|\boperator\W+?(?=\()", " f", declaration)
    while text != (text := re.sub(r"<[^<>]*>", "", text)):  # types of template parameters have parentheses, too
        pass
    text = re.sub(r"^\s*template\s*(requires\b.*)?", "", text)
    return not NOT_A_MEMBER_FUNCTION.match(text.strip()) and re.search(r"\w\s*\(", re.split(r"[={;]", text)[0]) is not None


def check_classes(path, text):
    """A member begins at the indentation of its class and four more; deeper lines belong to it."""
    for found in CLASS.finditer(text):
        indent = found[1]
        private, functions, member = found[2] == "class", 0, None
        for line in text[found.end() + 1:].splitlines():
            code = line.split("//")[0]
            if code.startswith(indent + "}"):
                break
            if label := re.match(indent + r"  (public|protected|private):", code):
                private, member = label[1] == "private", None
                continue
            if re.match(indent + r"    [\w~\[]", code):
                member = ""
            if member is None or not code.startswith(indent + "    "):
                continue
            member += " " + code.strip()
            if re.search(r"[;{]", member):
                functions += private and is_function(member)
                member = None
        if functions > MAX_PRIVATE_FUNCTIONS:
            complain(path, text[:found.start()].count("\n") + 1, f"class {found[3]} has {functions} private member functions, more than "
                     f"{MAX_PRIVATE_FUNCTIONS}: some of them, with the state that they use, are a class of its own")


def check_folders(sources):
    folders = {}
    for path in sources:
        if path.relative_to(ROOT).parts[0] == "src":
            folders[path.parent] = folders.get(path.parent, 0) + 1
    for folder, files in folders.items():
        if files > MAX_FILES:
            complain(folder, 0, f"more than {MAX_FILES} files of source in one folder: {files}; group them by theme in subfolders")


def check_symbols(library):
    names = subprocess.run(["nm", "-u", "--no-demangle", library], capture_output=True, text=True, check=True).stdout
    for line in names.splitlines():
        name = line.split()[-1] if line.split() else ""
        if FORBIDDEN_SYMBOLS.match(name.split("@")[0]):
            problems.append(f"{pathlib.Path(library).name}: the core refers to {name}")


def main():
    rooms = read_table()
    folders = {p.name for p in (ROOT / "src").glob("*") if p.is_dir()}
    for name in sorted(folders ^ set(rooms)):
        complain(ROOT / "docs/developer/architecture.md", 0, f"room {name} is in the table of rooms or in src, not in both")
    check_order(rooms)
    sources = [p for top in ("include", "src") for p in sorted((ROOT / top).rglob("*")) if p.suffix in (".hpp", ".cpp", ".cu", ".cuh")]
    for path in sources:
        text = path.read_text()
        check_includes(path, text, rooms)
        check_core(path, text)
        check_blas(path, text)
        check_cuda(path, text)
        check_mode(path, text)
        check_hidden_members(path, text)
        check_classes(path, text)
    check_folders(sources)
    for top in ("include", "src", "tests", "tools", "jobs", "docs"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".hpp", ".cpp", ".cu", ".cuh", ".py") and "/build" not in str(path):
                text = path.read_text()
                check_file(path, text)
                if path.suffix != ".py":
                    check_functions(path, text)
    for library in sys.argv[2:]:
        check_symbols(library)
    for problem in problems:
        print(problem)
    print(f"{len(sources)} sources, {len(rooms)} rooms, {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
