// SPDX-License-Identifier: Apache-2.0
#include "process/descendants.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "process/guard.hpp"

namespace ranktune::process {
namespace {

constexpr std::chrono::seconds patience{5};

/// The children of this process. The lock also prevents that a program being started is taken for an orphan.
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

/// Union of the lists of all threads; orphans are in one of them. Nothing: the kernel has no such lists.
std::optional<std::set<pid_t>> children_of(const std::string& process) {
    std::set<pid_t> found;
    std::error_code error;
    bool any = false;
    for (std::filesystem::directory_iterator task("/proc/" + process + "/task", error), end; !error && task != end;
         task.increment(error)) {
        std::ifstream list(task->path() / "children");
        any = any || list;
        for (pid_t pid = 0; list >> pid;) found.insert(pid);
    }
    return any ? std::optional(std::move(found)) : std::nullopt;
}

/// The state letter in a file `stat` of /proc; 'X': the process or thread is gone.
char state_in(const std::filesystem::path& stat) {
    std::ifstream file(stat);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto name_end = text.rfind(") "); // the name may contain anything
    return name_end != std::string::npos && name_end + 2 < text.size() ? text[name_end + 2] : 'X';
}

char state_of(pid_t process) { return state_in("/proc/" + std::to_string(process) + "/stat"); }

/// Neither gone nor a zombie.
bool is_alive(pid_t process) {
    const char state = state_of(process);
    return state != 'Z' && state != 'X';
}

/// Under the lock.
void end_orphans(const Family& all) {
    const auto until = std::chrono::steady_clock::now() + patience;
    // Children of killed processes become ours: repeat until there are none.
    for (auto nap = std::chrono::microseconds(50); std::chrono::steady_clock::now() < until;
         nap = std::min(nap * 2, std::chrono::microseconds(5000))) {
        bool any = false;
        for (const pid_t pid : children_of("self").value_or(std::set<pid_t>())) {
            if (all.elders.count(pid) != 0 || all.programs.count(pid) != 0) continue;
            any = true;
            ::kill(pid, SIGKILL);
            static_cast<void>(waitpid(pid, nullptr, WNOHANG));
        }
        if (!any) return;
        std::this_thread::sleep_for(nap);
    }
}

} // namespace

std::set<pid_t> children_of_this_process() { return children_of("self").value_or(std::set<pid_t>()); }

bool is_stopped(pid_t process) {
    const char state = state_of(process);
    return state == 'T' || state == 't';
}

bool is_runnable(pid_t process) {
    std::error_code error; // it may end meanwhile
    for (std::filesystem::directory_iterator task("/proc/" + std::to_string(process) + "/task", error), end;
         !error && task != end; task.increment(error))
        if (state_in(task->path() / "stat") == 'R') return true;
    return false;
}

std::optional<std::size_t> living_children(pid_t parent) {
    const auto children = children_of(std::to_string(parent));
    if (!children) return std::nullopt;
    return static_cast<std::size_t>(std::count_if(children->begin(), children->end(), is_alive));
}

pid_t start_as_child(const std::function<pid_t()>& spawn) {
    Family& all = family();
    const std::lock_guard lock(all.mutex);
    if (!all.adopts) {
        Guard::instance().prepare(); // started now, so that it counts as an elder
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
    end_orphans(all);
}

void end_orphans() {
    Family& all = family();
    const std::lock_guard lock(all.mutex);
    end_orphans(all);
}

} // namespace ranktune::process
