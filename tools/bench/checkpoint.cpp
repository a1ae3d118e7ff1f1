// SPDX-License-Identifier: Apache-2.0
// Writes checkpoints and, for comparison, the same bytes by plain writes, in one process:
//   bench_checkpoint DIR [MiB] [pairs]
// DIR lies on the file system to be measured. Interleaved pairs, both sides buffered or both direct. Then the cost of
// an asynchronous checkpoint of 256 MiB for the training loop, compared with a memcpy of the same bytes; the time until
// it is on disk; and the delays of a loop that appends to a journal meanwhile. Medians and quartiles.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/base/log.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "storage/journal/journal.hpp"
#include "worker/checkpoints/checkpoint_writer.hpp"

namespace {
using namespace ranktune;

constexpr std::size_t mib = 1024 * 1024;
constexpr std::size_t block_bytes = 16 * mib;

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Quartiles {
    double low, median, high;
};
Quartiles quartiles(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto at = [&](std::size_t quarter) { return values[(values.size() - 1) * quarter / 4]; };
    return {at(1), at(2), at(3)};
}

void fill(study::StateSink& sink, std::size_t bytes, const std::vector<float>& source) {
    constexpr std::size_t tensors = 16;
    const std::size_t floats = bytes / sizeof(float) / tensors;
    for (std::size_t i = 0; i < tensors; ++i)
        sink.put<float>("layers." + std::to_string(i) + ".weight", std::span(source).subspan(i * floats, floats),
                        {floats / 1024, 1024});
}

std::vector<float> numbers(std::size_t bytes) {
    std::vector<float> all(bytes / sizeof(float));
    std::uint32_t state = 1;
    for (float& number : all) {
        state = state * 1664525U + 1013904223U;
        number = static_cast<float>(state >> 8U) * 0x1p-24F;
    }
    return all;
}

/// The bytes of the state in blocks of 16 MiB, then fsync.
double plain_write(const std::string& path, const study::MemoryState& state, bool direct) {
    std::filesystem::remove(path);
    const double began = now_s();
    const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | (direct ? O_DIRECT : 0), 0644);
    if (fd < 0) throw base::Error("cannot create " + path);
    for (const auto& tensor : state.stored_tensors()) {
        for (std::size_t at = 0; at < tensor.bytes.size(); at += block_bytes) {
            const std::size_t size = std::min(block_bytes, tensor.bytes.size() - at);
            if (::write(fd, tensor.bytes.data() + at, size) != static_cast<ssize_t>(size))
                throw base::Error("a plain write failed");
        }
    }
    if (::fsync(fd) != 0) throw base::Error("fsync failed");
    ::close(fd);
    return now_s() - began;
}

double save(const std::string& directory, const study::MemoryState& state, bool direct, std::string& path) {
    storage::CheckpointStore store(storage::posix_file_system(), directory, direct);
    const double began = now_s();
    const auto reference = store.save({base::TrialId(0), 1, base::Incarnation(1), base::AttemptId(1)}, state);
    const double took = now_s() - began;
    path = directory + "/" + reference.path;
    return took;
}

void compare(const std::string& directory, const study::MemoryState& state, bool direct, int pairs) {
    std::vector<double> plain;
    std::vector<double> ours;
    std::vector<double> ratio;
    const double size = static_cast<double>(state.bytes()) / static_cast<double>(mib);
    for (int i = 0; i < pairs; ++i) {
        std::string path;
        double a = 0.0;
        double b = 0.0;
        for (const bool first : {i % 2 == 0, i % 2 != 0}) {
            if (first) {
                a = plain_write(directory + "/plain", state, direct);
                std::filesystem::remove(directory + "/plain");
            } else {
                b = save(directory, state, direct, path);
                std::filesystem::remove(path);
            }
            ::sync(); // neither side pays for dirty pages of the other
        }
        plain.push_back(size / a);
        ours.push_back(size / b);
        ratio.push_back(a / b);
    }
    const auto p = quartiles(plain);
    const auto c = quartiles(ours);
    const auto r = quartiles(ratio);
    std::printf(
        "%-9s %d pairs of %.0f MiB: plain %.0f MiB/s (%.0f-%.0f), checkpoint %.0f MiB/s (%.0f-%.0f), "
        "ratio %.2f (%.2f-%.2f)\n",
        direct ? "direct:" : "buffered:", pairs, size, p.median, p.low, p.high, c.median, c.low, c.high, r.median,
        r.low, r.high);
    std::fflush(stdout);
}

void asynchronous(const std::string& directory, int rounds) {
    constexpr std::size_t bytes = 256 * mib;
    const std::vector<float> source = numbers(bytes);
    std::vector<float> copy(source.size());
    storage::CheckpointStore store(storage::posix_file_system(), directory);
    worker::CheckpointWriter writer(
        [&](const storage::CheckpointKey& key, const auto& state) { return store.save(key, *state); });
    std::vector<double> stall;
    std::vector<double> plain;
    std::vector<double> ratio;
    std::vector<double> latency;
    for (int i = 0; i <= rounds; ++i) {
        const double before_copy = now_s();
        std::memcpy(copy.data(), source.data(), bytes);
        const double copied = now_s() - before_copy;
        const double began = now_s();
        fill(*writer.fresh_state(), bytes, source);
        writer.start({base::TrialId(1), static_cast<base::Iteration>(i), base::Incarnation(1), base::AttemptId(1)});
        const double stalled = now_s() - began;
        const auto result = writer.wait();
        if (!result || !result->error.empty()) throw base::Error("a checkpoint could not be written");
        std::filesystem::remove(directory + "/" + result->checkpoint.path);
        if (i == 0) continue; // the first round allocates memory
        plain.push_back(copied * 1e3);
        stall.push_back(stalled * 1e3);
        ratio.push_back(stalled / copied);
        latency.push_back(result->seconds * 1e3);
    }
    const auto s = quartiles(stall);
    const auto r = quartiles(ratio);
    const auto l = quartiles(latency);
    std::printf(
        "asynchronous, 256 MiB, %d rounds: the loop stalls %.1f ms (%.1f-%.1f), memcpy %.1f ms, ratio %.2f "
        "(%.2f-%.2f); on disk after %.0f ms (%.0f-%.0f)\n",
        rounds, s.median, s.low, s.high, quartiles(plain).median, r.median, r.low, r.high, l.median, l.low, l.high);
    std::fflush(stdout);
}

/// Appends to a journal, like the head's loop, while checkpoints are written.
void head_beside(const std::string& directory, const study::MemoryState& state, int rounds) {
    base::NullLog log;
    storage::JournalOptions options;
    options.directory = directory + "/study";
    options.uuid = "bench";
    storage::Journal journal(storage::posix_file_system(), options, log);
    std::atomic<bool> done{false};
    std::thread writer([&] {
        std::string path;
        for (int i = 0; i < rounds; ++i) {
            static_cast<void>(save(directory, state, true, path));
            std::filesystem::remove(path);
        }
        done = true;
    });
    study::Reported report;
    report.attempt = base::AttemptId(1);
    report.metrics = {{base::MetricId(0), 0.5}};
    std::vector<double> took;
    while (!done) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const double began = now_s();
        ++report.iteration;
        journal.append({study::Record(report)});
        took.push_back((now_s() - began) * 1e3);
    }
    writer.join();
    std::sort(took.begin(), took.end());
    std::printf("journal appends beside it: %zu, median %.3f ms, p99 %.3f ms, p99.9 %.3f ms, longest %.2f ms\n",
                took.size(), took[took.size() / 2], took[took.size() * 99 / 100], took[took.size() * 999 / 1000],
                took.back());
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: bench_checkpoint DIR [MiB] [pairs]\n");
        return 2;
    }
    try {
        const std::string directory = std::string(argv[1]) + "/bench-checkpoint";
        const std::size_t bytes = (argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1024) * mib;
        const int pairs = argc > 3 ? std::atoi(argv[3]) : 10;
        std::filesystem::remove_all(directory); // left by an interrupted run
        std::filesystem::create_directories(directory);
        {
            study::MemoryState state;
            fill(state, bytes, numbers(bytes));
            compare(directory, state, false, pairs);
            compare(directory, state, true, pairs);
            head_beside(directory, state, 3);
        }
        asynchronous(directory, pairs);
        std::filesystem::remove_all(directory);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_checkpoint: %s\n", error.what());
        return 1;
    }
    return 0;
}
