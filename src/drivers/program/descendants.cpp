// SPDX-License-Identifier: Apache-2.0
#include "drivers/program/descendants.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "drivers/program/guard.hpp"

namespace ranktune::drivers {
namespace {

constexpr std::chrono::seconds patience{5};

/// Of this process; the lock also keeps a program that is just being started from being taken for an orphan.
struct Family {
    std::mutex mutex;
    bool adopts = false;
    std::set<pid_t> elders;   ///< children from before the first program
    std::set<pid_t> programs; ///< alive
};

Family& family() {
    static Family instance;
    return instance;
}

} // namespace

// Each thread lists those that it started, orphans are with one of
// them.
std::set<pid_t> children_of_this_process() {
    std::set<pid_t> found;
    std::error_code error;
    for (std::filesystem::directory_iterator task("/proc/self/task", error), end; !error && task != end;
         task.increment(error)) {
        std::ifstream list(task->path() / "children");
        for (pid_t pid = 0; list >> pid;) found.insert(pid);
    }
    return found;
}

pid_t start_as_child(const std::function<pid_t()>& spawn) {
    Family& all = family();
    const std::lock_guard lock(all.mutex);
    if (!all.adopts) {
        Guard::instance().prepare(); // an elder, too
        all.elders = children_of_this_process();
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        all.adopts = true;
    }
    const pid_t pid = spawn();
    all.programs.insert(pid);
    Guard::instance().begin(pid);
    return pid;
}

void end_descendants_of(pid_t program) {
    Family& all = family();
    const std::lock_guard lock(all.mutex);
    all.programs.erase(program);
    Guard::instance().end(program);
    const auto until = std::chrono::steady_clock::now() + patience;
    // The children of what is killed come next: again until there is nobody.
    for (auto nap = std::chrono::microseconds(50); std::chrono::steady_clock::now() < until;
         nap = std::min(nap * 2, std::chrono::microseconds(5000))) {
        bool any = false;
        for (const pid_t pid : children_of_this_process()) {
            if (all.elders.count(pid) != 0 || all.programs.count(pid) != 0) continue;
            any = true;
            ::kill(pid, SIGKILL);
            static_cast<void>(waitpid(pid, nullptr, WNOHANG));
        }
        if (!any) return;
        std::this_thread::sleep_for(nap);
    }
}

} // namespace ranktune::drivers
