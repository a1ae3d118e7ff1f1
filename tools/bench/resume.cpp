// SPDX-License-Identifier: Apache-2.0
// Cost of resuming a large study: a journal of `reports` reports (default 1,000,000) over 10,000 trials is written
// once, then opened as by a resuming head, from the newest snapshot and from record 0. CPU seconds of the process,
// median of five. With the path of `ranktune` as second argument, also the time of `ranktune status`:
//   bench_resume [REPORTS [PROGRAM]]

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "large_study.hpp"
#include "ranktune/base/error.hpp"
#include "support.hpp"

namespace {

using namespace ranktune;

constexpr std::uint32_t trials = 10'000;

template <class Run>
double median_of_five(Run run) {
    std::vector<double> seconds;
    for (int i = 0; i < 5; ++i) {
        const double begin = bench::cpu_seconds();
        run();
        seconds.push_back(bench::cpu_seconds() - begin);
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds[2];
}

/// `PROGRAM status DIRECTORY`: wall and CPU time of the whole process, medians of five.
void time_status(const std::string& program, const std::string& directory) {
    std::vector<double> wall;
    std::vector<double> cpu;
    const auto of_children = [] {
        rusage usage{};
        ::getrusage(RUSAGE_CHILDREN, &usage);
        return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    };
    const std::string line = "'" + program + "' status '" + directory + "' > /dev/null";
    for (int i = 0; i < 5; ++i) {
        const double before = of_children();
        const auto began = std::chrono::steady_clock::now();
        if (std::system(line.c_str()) != 0) throw base::Error(line + " failed");
        wall.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
        cpu.push_back(of_children() - before);
    }
    std::sort(wall.begin(), wall.end());
    std::sort(cpu.begin(), cpu.end());
    std::printf("status of it: %.3f s, %.3f s of CPU\n", wall[2], cpu[2]);
}

} // namespace

int main(int argc, char** argv) {
    const std::uint64_t reports = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
    std::string directory = std::filesystem::temp_directory_path() / "ranktune-bench-resume-XXXXXX";
    if (mkdtemp(directory.data()) == nullptr) return 1;
    auto& files = storage::posix_file_system();
    const auto spec = bench::spec_of(trials, reports / trials);
    bench::write_study(directory, spec);
    const auto tail = storage::read_journal_tail(files, directory, storage::Check::everything);
    std::uint64_t behind = 0;
    study::Decoder in(tail.records);
    while (!in.empty()) {
        static_cast<void>(in.bytes());
        ++behind;
    }
    const double snapshot =
        median_of_five([&] { static_cast<void>(studydir::open_study(files, directory, spec, {})); });
    const double record_0 = median_of_five([&] {
        tuner::Tuner tuner(spec);
        storage::read_journal(files, directory, [&](study::Record&& record) { tuner.apply(record); });
    });
    std::printf(
        "%llu records, %llu of them behind the newest snapshot: %.3f s of CPU from the snapshot, %.3f s from "
        "record 0\n",
        static_cast<unsigned long long>(tail.summary.records), static_cast<unsigned long long>(behind), snapshot,
        record_0);
    if (argc > 2) time_status(argv[2], directory);
    std::filesystem::remove_all(directory);
    return 0;
}
