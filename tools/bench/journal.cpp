// SPDX-License-Identifier: Apache-2.0
// The journal compared with a plain C append of the same bytes in the same batches:
//   bench_journal DIR [reports] [pairs]
// DIR lies on the file system to be measured. Prints medians of interleaved pairs: append without sync, append with a
// sync after every batch, bytes per report, cost of a sync by kind of space, latency of `append` while the journal's
// thread syncs, and reading back.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/study/codec.hpp"
#include "storage/journal/journal.hpp"

namespace {
using namespace ranktune;

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double cpu_s() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0.0 : values[values.size() / 2];
}

study::Record report(std::uint64_t i, std::size_t metrics) {
    study::Reported r;
    r.trial = base::TrialId(static_cast<std::uint32_t>(i % 10000));
    r.attempt = base::AttemptId(1);
    r.at = base::from_ns(static_cast<std::int64_t>(i) * 1'000'003);
    r.iteration = i / 10000 + 1;
    r.seconds = static_cast<double>(i) * 0.37;
    for (std::size_t m = 0; m < metrics; ++m) {
        r.metrics.push_back({base::MetricId(static_cast<std::uint16_t>(m)), 1.0 / (1.0 + static_cast<double>(i + m))});
    }
    r.verdict = {study::Verb::pause, study::Reason::rung, 3.0, 12.0};
    return r;
}

std::vector<std::vector<study::Record>> batches(std::uint64_t reports, std::uint64_t size, std::size_t metrics = 1) {
    std::vector<std::vector<study::Record>> all;
    for (std::uint64_t i = 0; i < reports; i += size) {
        all.emplace_back();
        for (std::uint64_t j = i; j < std::min(reports, i + size); ++j) all.back().push_back(report(j, metrics));
    }
    return all;
}

struct Measured {
    double seconds = 0.0;
    std::uint64_t bytes = 0;
};

/// Appends `count` batches to the journal, cycling through those given; `sync`: after each batch.
Measured with_journal(const std::string& directory, const std::vector<std::vector<study::Record>>& all,
                      std::uint64_t count, bool sync) {
    std::filesystem::remove_all(directory);
    base::NullLog log;
    storage::JournalOptions options;
    options.directory = directory;
    options.uuid = "bench";
    storage::Journal journal(storage::posix_file_system(), options, log);
    const double began = now_s();
    for (std::uint64_t i = 0; i < count; ++i) {
        journal.append(all[i % all.size()]);
        if (sync) journal.sync();
    }
    const double took = now_s() - began;
    return {took, journal.statistics().bytes};
}

/// Writes the same bytes, already encoded, by write(2).
Measured with_write(const std::string& directory, const std::vector<study::Bytes>& all, std::uint64_t count,
                    bool sync) {
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
    const int fd = ::open((directory + "/plain").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0644);
    if (fd < 0) throw base::Error("cannot create a file in " + directory);
    Measured result;
    const double began = now_s();
    for (std::uint64_t i = 0; i < count; ++i) {
        const study::Bytes& bytes = all[i % all.size()];
        if (::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
            (sync && ::fdatasync(fd) != 0)) {
            throw base::Error("a plain write failed");
        }
        result.bytes += bytes.size();
    }
    result.seconds = now_s() - began;
    ::close(fd);
    return result;
}

/// A head appends records that the core has just created, so both sides take their batches from a ring of 2000 reports
/// (or one batch, if larger) that stays in the CPU's cache. `from_memory`: all reports are distinct, so that the
/// journal reads 150 bytes of memory for each and the plain append the 36 that it writes.
void compare(const std::string& directory, std::uint64_t reports, std::uint64_t batch, bool sync, int pairs,
             bool from_memory = false) {
    constexpr std::uint64_t in_cache = 2000;
    const std::uint64_t count = reports / batch;
    reports = count * batch;
    const auto records = batches(from_memory ? reports : std::max(batch, in_cache / batch * batch), batch);
    std::vector<study::Bytes> encoded;
    for (const auto& list : records) {
        encoded.emplace_back(24); // a frame's head
        for (const auto& record : list) study::encode(record, encoded.back());
        encoded.back().resize((encoded.back().size() + 7) / 8 * 8);
    }
    std::vector<double> journal;
    std::vector<double> plain;
    std::vector<double> ratio;
    std::uint64_t bytes = 0;
    for (int i = 0; i < pairs; ++i) {
        const Measured a = with_journal(directory, records, count, sync);
        const Measured b = with_write(directory, encoded, count, sync);
        if (a.bytes != b.bytes) throw base::Error("the two sides wrote different bytes");
        bytes = a.bytes;
        journal.push_back(static_cast<double>(reports) / a.seconds);
        plain.push_back(static_cast<double>(reports) / b.seconds);
        ratio.push_back(b.seconds / a.seconds);
    }
    std::printf(
        "%8llu reports, %5llu a batch, %-9s journal %10.0f /s   write(2) %10.0f /s   ratio %.2f   %.1f bytes each%s\n",
        static_cast<unsigned long long>(reports), static_cast<unsigned long long>(batch),
        sync ? "synced:" : "unsynced:", median(journal), median(plain), median(ratio),
        static_cast<double>(bytes) / static_cast<double>(reports), from_memory ? ", from memory" : "");
    std::fflush(stdout);
}

void sizes() {
    study::Bytes one;
    study::Bytes two;
    study::encode(report(500000, 1), one);
    study::encode(report(500000, 2), two);
    std::printf("record of one metric with its verdict: %zu bytes; each further metric: %zu; head of a frame: 24\n",
                one.size(), two.size() - one.size());
}

/// Latency of `append` on the caller's thread during commits.
void latency(const std::string& directory) {
    std::filesystem::remove_all(directory);
    base::NullLog log;
    storage::JournalOptions options;
    options.directory = directory;
    options.uuid = "bench";
    options.commit_interval = std::chrono::milliseconds(10);
    storage::Journal journal(storage::posix_file_system(), options, log);
    std::vector<double> took;
    const double end = now_s() + 5.0;
    for (std::uint64_t i = 0; now_s() < end; ++i) {
        const auto batch = batches(20, 20).front();
        const double began = now_s();
        journal.append(batch);
        took.push_back((now_s() - began) * 1e6);
        ::usleep(200);
    }
    std::sort(took.begin(), took.end());
    const auto at = [&](double share) {
        return took[static_cast<std::size_t>(share * static_cast<double>(took.size() - 1))];
    };
    const auto statistics = journal.statistics();
    std::printf(
        "append of 20 reports beside commits: median %.0f us, p99 %.0f us, max %.0f us; %llu commits, p99 %.1f ms\n",
        at(0.5), at(0.99), at(1.0), static_cast<unsigned long long>(statistics.syncs), statistics.commit_p99_ms);
}

/// Cost of a sync after each append of 4 KiB, by kind of preallocation: median and p99 in ms, interleaved.
void extents(const std::string& directory) {
    constexpr off_t size = 64 * 1024 * 1024;
    constexpr int appends = 200;
    const char* const names[] = {"sparse", "reserved", "zero-filled"};
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
    int files[3];
    for (int kind = 0; kind < 3; ++kind) {
        files[kind] = ::open((directory + "/" + names[kind]).c_str(), O_CREAT | O_RDWR, 0644);
        if (files[kind] < 0 || ::ftruncate(files[kind], size) != 0) throw base::Error("cannot create a file");
        if (kind == 1 && ::fallocate(files[kind], FALLOC_FL_KEEP_SIZE, 0, size) != 0) std::printf("cannot reserve\n");
        const std::vector<char> zeros(1 << 20);
        for (off_t at = 0; kind == 2 && at < size; at += static_cast<off_t>(zeros.size())) {
            if (::pwrite(files[kind], zeros.data(), zeros.size(), at) < 0) throw base::Error("cannot fill a file");
        }
        ::fsync(files[kind]);
    }
    std::vector<double> took[3];
    const std::vector<char> block(4096, 'x');
    for (int i = 0; i < appends; ++i) {
        for (int kind = 0; kind < 3; ++kind) {
            if (::pwrite(files[kind], block.data(), block.size(), 4096L * i) < 0) throw base::Error("cannot write");
            const double began = now_s();
            ::fdatasync(files[kind]);
            took[kind].push_back((now_s() - began) * 1e3);
        }
    }
    for (int kind = 0; kind < 3; ++kind) {
        std::sort(took[kind].begin(), took[kind].end());
        std::printf("sync of 4 KiB in %-11s space: median %.2f ms, p99 %.2f ms\n", names[kind], took[kind][appends / 2],
                    took[kind][appends * 99 / 100]);
        ::close(files[kind]);
    }
}

void reading(const std::string& directory, std::uint64_t reports) {
    static_cast<void>(with_journal(directory, batches(reports, 50), reports / 50, false));
    const double wall = now_s();
    const double cpu = cpu_s();
    std::uint64_t records = 0;
    std::uint64_t sum = 0;
    storage::read_journal(storage::posix_file_system(), directory, [&](study::Record&& record) {
        ++records;
        if (const auto* r = std::get_if<study::Reported>(&record)) sum += r->iteration;
    });
    std::printf("read back: %llu records in %.3f s of CPU (%.3f s), check %llu\n",
                static_cast<unsigned long long>(records), cpu_s() - cpu, now_s() - wall,
                static_cast<unsigned long long>(sum));
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: bench_journal DIR [reports] [pairs]\n");
        return 2;
    }
    try {
        const std::string directory = std::string(argv[1]) + "/bench-journal";
        const std::uint64_t reports = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1'000'000;
        const int pairs = argc > 3 ? std::atoi(argv[3]) : 5;
        sizes();
        for (const std::uint64_t batch : {std::uint64_t{1}, std::uint64_t{10}, std::uint64_t{100}}) {
            compare(directory, reports / (batch == 1 ? 4 : 1), batch, false, pairs);
        }
        compare(directory, reports, 100, false, pairs, true);
        for (const std::uint64_t batch : {std::uint64_t{10}, std::uint64_t{100}, std::uint64_t{1000}}) {
            compare(directory, batch * 200, batch, true, pairs);
        }
        extents(directory);
        latency(directory);
        reading(directory, reports);
        std::filesystem::remove_all(directory);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_journal: %s\n", error.what());
        return 1;
    }
    return 0;
}
