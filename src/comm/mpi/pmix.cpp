// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/pmix.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>

namespace ranktune::comm::mpi {
namespace {

/// The port of the server; 0: none. "pmix-server.7;tcp4://127.0.0.1:41234"
int server_port() {
    for (const char* name :
         {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI21", "PMIX_SERVER_URI2"}) {
        const char* uri = std::getenv(name);
        if (uri == nullptr) continue;
        const std::string_view text(uri);
        const auto colon = text.rfind(':');
        if (colon != std::string_view::npos) return std::atoi(uri + colon + 1);
    }
    return 0;
}

/// The port at the other end of a TCP socket; 0: it is none.
int port_of_peer(int descriptor) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return 0;
    if (peer.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(peer).sin_port);
    if (peer.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(peer).sin6_port);
    return 0;
}

} // namespace

int connection_to_pmix() {
    const int port = std::getenv("SLURM_STEP_ID") == nullptr ? 0 : server_port();
    if (port == 0) return -1;
    DIR* all = opendir("/proc/self/fd");
    if (all == nullptr) return -1;
    int found = -1;
    for (const dirent* entry = readdir(all); entry != nullptr && found < 0; entry = readdir(all)) {
        const int descriptor = std::atoi(entry->d_name);
        if (descriptor > STDERR_FILENO && port_of_peer(descriptor) == port)
            found = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    }
    closedir(all);
    return found;
}

void leave_pmix() noexcept {
    // The library that Open MPI itself has loaded, if any.
    void* const library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr || std::getenv("SLURM_STEP_ID") == nullptr) return;
    const auto initialized = reinterpret_cast<int (*)()>(dlsym(library, "PMIx_Initialized"));
    const auto finalize = reinterpret_cast<int (*)(const void*, std::size_t)>(dlsym(library, "PMIx_Finalize"));
    if (initialized == nullptr || finalize == nullptr) return;
    try {
        const auto done = std::make_shared<std::atomic<bool>>(false);
        std::thread([initialized, finalize, done] { // it may wait for a server that is gone
            for (int times = 0; times < 8 && initialized() != 0; ++times) static_cast<void>(finalize(nullptr, 0));
            done->store(true);
        })
            .detach();
        using namespace std::chrono_literals;
        for (auto waited = 0ms; waited < 2s && !done->load(); waited += 1ms) std::this_thread::sleep_for(1ms);
    } catch (...) { // no thread: the server finds out by itself
    }
}

} // namespace ranktune::comm::mpi
