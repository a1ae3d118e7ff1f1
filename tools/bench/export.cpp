// SPDX-License-Identifier: Apache-2.0
// Peak memory and CPU time of `ranktune export`, as JSON and both kinds of CSV: the journal of `trials` trials (default
// 300,000) of three reports each is written once, then exported by the program whose path is given:
//   bench_export PROGRAM [TRIALS]

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "large_study.hpp"
#include "ranktune/base/error.hpp"

namespace {

using namespace ranktune;

/// Runs `PROGRAM export DIRECTORY ...`, and discards its output.
void measure(const char* program, const std::string& directory, const char* format, const char* table) {
    const pid_t child = fork();
    if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        execl(program, program, "export", directory.c_str(), "--format", format, table == nullptr ? nullptr : "--table",
              table, nullptr);
        _exit(127);
    }
    int status = 0;
    rusage usage{};
    if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0) throw base::Error("the export failed");
    const double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    std::printf("%s %s: %.0f MB, %.2f s of CPU\n", format, table == nullptr ? "trials" : table,
                static_cast<double>(usage.ru_maxrss) * 1024e-6, cpu);
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const auto trials = static_cast<std::uint32_t>(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 300'000);
    std::string directory = std::filesystem::temp_directory_path() / "ranktune-bench-export-XXXXXX";
    if (mkdtemp(directory.data()) == nullptr) return 1;
    bench::write_study(directory, bench::spec_of(trials, 3));
    measure(argv[1], directory, "json", nullptr); // trials and reports
    measure(argv[1], directory, "csv", "trials");
    measure(argv[1], directory, "csv", "reports");
    std::filesystem::remove_all(directory);
    return 0;
}
