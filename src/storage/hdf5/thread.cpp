// SPDX-License-Identifier: Apache-2.0
#include "storage/hdf5/thread.hpp"

#include <hdf5.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace ranktune::storage {
namespace {

struct Job {
    const std::function<void()>* task = nullptr;
    std::exception_ptr error;
    bool done = false;
};

class Worker {
  public:
    Worker() : thread_([this] { main(); }) {}
    ~Worker() {
        {
            const std::lock_guard lock(mutex_);
            quit_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    void run(const std::function<void()>& task) {
        if (std::this_thread::get_id() == thread_.get_id()) {
            task();
            return;
        }
        Job job{&task, nullptr, false};
        std::unique_lock lock(mutex_);
        jobs_.push_back(&job);
        changed_.notify_all();
        changed_.wait(lock, [&] { return job.done; });
        if (job.error) std::rethrow_exception(job.error);
    }

  private:
    void main() {
        // By default the library closes itself in the thread that calls exit(). A thread-safe build keeps state per
        // thread and then fails ("infinite loop closing library"), so it is closed here instead.
        H5dont_atexit();
        serve();
        H5close();
    }

    void serve() {
        std::unique_lock lock(mutex_);
        while (true) {
            changed_.wait(lock, [this] { return quit_ || !jobs_.empty(); });
            if (jobs_.empty()) return;
            Job* job = jobs_.front();
            jobs_.pop_front();
            lock.unlock();
            std::exception_ptr error;
            try {
                (*job->task)();
            } catch (...) {
                error = std::current_exception();
            }
            lock.lock();
            job->error = std::move(error);
            job->done = true;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job*> jobs_;
    bool quit_ = false;
    std::thread thread_; // last member: starts when all others are constructed
};

} // namespace

void on_hdf5_thread(const std::function<void()>& task) {
    static Worker worker;
    worker.run(task);
}

std::string hdf5_version() {
    return hdf5_call([] {
        unsigned major = 0;
        unsigned minor = 0;
        unsigned release = 0;
        H5get_libversion(&major, &minor, &release);
        return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
    });
}

} // namespace ranktune::storage
