// SPDX-License-Identifier: Apache-2.0
// Streams of the stand-in: threads with queues, each operation late by chance.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include "capture.hpp"
#include "failures.hpp"
#include "machine.hpp"

namespace stand_in {

struct Stream {
    Stream(int on, unsigned number) : device(on), delays(number), thread([this] { run(); }) {}
    void run();

    const int device;
    mutable std::mutex mutex;
    mutable std::condition_variable changed;
    std::deque<Operation> operations; ///< the first one is running
    bool ending = false;
    Delays delays;
    std::thread thread; // last: uses all of the above
};

static std::atomic<unsigned long long> progress_made{0};

void Stream::run() {
    std::unique_lock lock(mutex);
    for (;;) {
        changed.wait(lock, [this] { return ending || !operations.empty(); });
        if (operations.empty()) return;
        const Operation operation = operations.front();
        lock.unlock();
        const unsigned late = delays.next() + extra_time(operation.name);
        if (late > 0) std::this_thread::sleep_for(std::chrono::microseconds(late));
        if (!has_failed(device)) {
            try {
                operation.work();
            } catch (const Fault& fault) {
                fail_device(device, operation.name + ": " + fault.what());
            }
        }
        lock.lock();
        operations.pop_front();
        ++progress_made;
        changed.notify_all();
    }
}

Stream* make_stream(int device) {
    static std::atomic<unsigned> number{0};
    return new Stream(device, number++);
}

void destroy(Stream* stream) {
    {
        const std::lock_guard lock(stream->mutex);
        stream->ending = true;
    }
    stream->changed.notify_all();
    stream->thread.join();
    delete stream;
}

void enqueue(Stream* stream, const std::string& name, std::function<void()> work, std::function<void()> issue) {
    if (is_captured(stream)) return capture(stream, {name, std::move(work), std::move(issue)});
    if (issue) issue();
    {
        const std::lock_guard lock(stream->mutex);
        stream->operations.push_back({name, std::move(work), {}});
        ++progress_made;
    }
    stream->changed.notify_all();
}

int device_of(const Stream* stream) { return stream->device; }

unsigned long long progress() { return progress_made; }

bool is_idle(const Stream* stream) {
    const std::lock_guard lock(stream->mutex);
    return stream->operations.empty();
}

void drain(const Stream* stream) {
    std::unique_lock lock(stream->mutex);
    stream->changed.wait(lock, [&] { return stream->operations.empty(); });
}

std::string setting(const char* name, const char* otherwise) {
    const char* const value = std::getenv((std::string("RANKTUNE_STAND_IN_") + name).c_str());
    return value != nullptr ? value : otherwise;
}

unsigned extra_time(const std::string& name) {
    const std::string all = "," + setting("TAKES", "");
    const std::size_t found = all.find("," + name + ":");
    return found == std::string::npos ? 0 : static_cast<unsigned>(std::stoul(all.substr(found + name.size() + 2)));
}

Delays::Delays(unsigned number)
    : state_(std::stoull(setting("SEED", "1")) * 0x9E3779B97F4A7C15ULL + number * 0xD1B54A32D192ED03ULL + 1),
      most_(static_cast<unsigned>(std::stoul(setting("DELAY", "400")))) {}

unsigned Delays::chance() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<unsigned>(state_ >> 33U);
}

/// Of eight operations four are not late, three a little.
unsigned Delays::next() {
    const unsigned random = chance();
    if (random % 8 < 4) return 0;
    const unsigned most = random % 8 < 7 ? most_ / 8 : most_;
    return most == 0 ? 0 : random / 8 % most;
}

} // namespace stand_in
