// SPDX-License-Identifier: Apache-2.0
#pragma once
// ThreadTime: whether a thread that fills a batch computed, or was blocked until bytes came.

#include "ranktune/data/loader.hpp"
#include "storage/hdf5/thread.hpp"

namespace ranktune::data {

/// Of the calling thread, in seconds since any moment: differences count.
struct ThreadTime {
    double passed = 0.0;
    double blocked = 0.0; ///< neither on a core nor waiting for one
    friend ThreadTime operator-(ThreadTime a, ThreadTime b) { return {a.passed - b.passed, a.blocked - b.blocked}; }
};
/// Takes about 2 us. Without /proc, waiting for a core counts as blocked.
[[nodiscard]] ThreadTime thread_time();

/// Seconds for which the calling thread was blocked, but not by the disk.
struct Elsewhere {
    double decoded = 0.0; ///< another thread decoded for it
    double other = 0.0;   ///< it waited for HDF5's thread to be free, or for a block of another thread's batch
    friend Elsewhere operator-(Elsewhere a, Elsewhere b) { return {a.decoded - b.decoded, a.other - b.other}; }
};
/// Of the calling thread, since it began.
[[nodiscard]] Elsewhere& elsewhere();

/// What reading took a thread, from both.
[[nodiscard]] LoadTime reading_time(ThreadTime thread, Elsewhere elsewhere);

/// storage::hdf5_call for the calling thread's batch. The library may decode on its thread.
template <class F>
auto read_by_hdf5(const F& body) {
    const ThreadTime begin = thread_time();
    ThreadTime there;
    auto result = storage::hdf5_call([&] {
        const ThreadTime begin_there = thread_time();
        auto read = body();
        there = thread_time() - begin_there;
        return read;
    });
    elsewhere().decoded += there.passed - there.blocked;
    elsewhere().other += (thread_time() - begin).passed - there.passed;
    return result;
}

} // namespace ranktune::data
