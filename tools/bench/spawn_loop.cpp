// SPDX-License-Identifier: Apache-2.0
// Cost of starting a program alone: posix_spawn, one report, one answer, wait, in several loops at a time. The baseline
// of programs.py.
//
//   bench_spawn_loop COUNT LOOPS PROGRAM [ARGUMENT...]      prints the total wall time in seconds

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>

extern char** environ;

namespace {

bool run_once(char** arguments) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pair[1], 3);
    pid_t child = 0;
    const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pair[1]);
    bool good = failed == 0;
    char buffer[4096];
    if (good && read(pair[0], buffer, sizeof buffer) > 0) {
        constexpr char answer[] = "{\"decision\": \"stop\", \"iteration\": 1}\n";
        good = write(pair[0], answer, sizeof answer - 1) > 0;
    }
    int status = 0;
    if (failed == 0) good = waitpid(child, &status, 0) == child && status == 0 && good;
    close(pair[0]);
    return good;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: bench_spawn_loop COUNT LOOPS PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    const int count = std::atoi(argv[1]);
    const int loops = std::atoi(argv[2]);
    setenv("RANKTUNE_FD", "3", 1);
    const auto begin = std::chrono::steady_clock::now();
    for (int loop = 0; loop < loops; ++loop) {
        if (fork() == 0) {
            for (int i = loop; i < count; i += loops) {
                if (!run_once(argv + 3)) _exit(1);
            }
            _exit(0);
        }
    }
    int status = 0;
    bool good = true;
    while (wait(&status) > 0) good = good && status == 0;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("%.6f\n", took.count());
    return good ? 0 : 1;
}
