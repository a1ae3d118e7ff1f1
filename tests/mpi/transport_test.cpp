// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "comm/graveyard.hpp"
#include "comm/mpi/error.hpp"
#include "comm/transport/mpi_transport.hpp"
#include "mpi_world.hpp"
#include "sim/transport/session.hpp"
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

TEST_CASE("a session over MPI keeps the contract", "[comm][mpi]") {
    sim::Session session(make_mpi_transport(test::world()));
    const auto complaints = test::transport_contract(session, [] { std::this_thread::yield(); });
    CHECK(complaints == std::vector<std::string>{});
    CHECK(session.duplicates() == 0);
}

TEST_CASE("a transport that ends with nothing under way leaves nothing behind", "[comm][mpi]") {
    for (int i = 0; i < 5; ++i) {
        const auto transport = make_mpi_transport(test::world());
        test::transport_contract(*transport, [] { std::this_thread::yield(); });
    }
    CHECK(buried() == 0);
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

} // namespace transport_test
