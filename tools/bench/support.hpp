// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by several benchmarks: clocks, and a journal without a disk.

#include <ctime>
#include <vector>

#include "ranktune/study/codec.hpp"
#include "ranktune/study/record.hpp"

namespace ranktune::bench {

/// CPU time of the process, or with CLOCK_THREAD_CPUTIME_ID of the calling thread.
inline double cpu_seconds(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Encodes records, counts the bytes, and discards them.
struct EncodingSink final : study::RecordSink {
    void append(const std::vector<study::Record>& records) override {
        buffer.clear();
        for (const study::Record& record : records) study::encode(record, buffer);
        bytes += buffer.size();
    }
    study::Bytes buffer;
    std::uint64_t bytes = 0;
};

} // namespace ranktune::bench
