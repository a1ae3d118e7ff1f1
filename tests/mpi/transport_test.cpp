// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "comm/kept.hpp"
#include "comm/mpi/error.hpp"
#include "comm/transport/mpi_transport.hpp"
#include "mpi_world.hpp"
#include "support/catch.hpp"
#include "transport_contract.hpp"

namespace transport_test {

using namespace ranktune;
using namespace ranktune::comm;

TEST_CASE("the transport over MPI keeps the contract", "[comm][mpi]") {
    const auto transport = make_mpi_transport(test::world());
    CHECK(transport->rank().value() == static_cast<std::uint32_t>(test::world().rank()));
    CHECK(transport->size() == static_cast<std::uint32_t>(test::world().size()));
    const auto complaints = test::transport_contract(*transport, [] { std::this_thread::yield(); });
    CHECK(complaints == std::vector<std::string>{});
}

TEST_CASE("a transport that ends with nothing under way leaves nothing behind", "[comm][mpi]") {
    for (int i = 0; i < 5; ++i) {
        const auto transport = make_mpi_transport(test::world());
        test::transport_contract(*transport, [] { std::this_thread::yield(); });
    }
    CHECK(kept_to_exit() == 0);
}

TEST_CASE("the library says its name and version", "[comm][mpi]") {
    const auto version = mpi::library_version();
    if (mpi::library() == mpi::Library::open_mpi) CHECK(version.rfind("Open MPI ", 0) == 0);
    if (mpi::library() == mpi::Library::mpich) CHECK(version.find("MPI") != std::string::npos);
    CHECK(version.find('\n') == std::string::npos);
    CHECK(version.find_first_of("0123456789") != std::string::npos);
}

TEST_CASE("codes of MPI are error codes with the library's text", "[comm][mpi]") {
    CHECK_NOTHROW(mpi::check(0, "MPI_Test"));
    try {
        mpi::check(1, "MPI_Send"); // some error in every implementation
        FAIL("not reached");
    } catch (const mpi::MpiError& error) {
        CHECK(error.code().category() == mpi::category());
        CHECK(error.code().value() == 1);
        CHECK(std::string(error.what()).rfind("MPI_Send: ", 0) == 0);
    }
}

TEST_CASE("what Open MPI says of troubles comes from the rank itself", "[comm][mpi]") {
    using Say = int (*)(const char* file, const char* topic, bool header, ...);
    auto* const say = static_cast<Say*>(dlsym(RTLD_DEFAULT, "opal_show_help"));
    if (say == nullptr) return; // another MPI
    std::FILE* const file = std::tmpfile();
    const int standard_error = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    (*say)("help-mpi-btl-tcp.txt", "client connect fail", true, "node", 1, "message", "error", 107);
    dup2(standard_error, STDERR_FILENO);
    close(standard_error);
    std::rewind(file);
    std::string text(4096, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file));
    std::fclose(file);
    CHECK(text.find("failed to TCP connect") != std::string::npos);
}

} // namespace transport_test
