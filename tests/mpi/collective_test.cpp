// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <thread>

#include "collective_contract.hpp"
#include "comm/kept.hpp"
#include "ddp/collective/mpi_collective.hpp"
#include "mpi_world.hpp"
#include "support/catch.hpp"

namespace collective_test {

using namespace ranktune;
using test::Roster;

namespace {

const std::atomic<bool> never{false};

/// Forms this rank's group, any number of times.
struct Former {
    explicit Former(std::size_t keep = 8) : factory(test::world(), keep) {}
    std::unique_ptr<ddp::Collective> operator()(const std::atomic<bool>& abort = never) {
        return ddp::form_mpi_collective(factory, roster, ++ticket, abort);
    }
    comm::GroupFactory factory;
    Roster roster = test::roster_of(test::world().rank(), test::world().size());
    std::uint64_t ticket = 0;
};

} // namespace

TEST_CASE("the collective over MPI keeps the contract", "[ddp][mpi]") {
    Former form;
    CHECK(test::collective_contract(*form()) == std::vector<std::string>{});
    CHECK(test::mixed_step_contract(*form()) == std::vector<std::string>{});
}

TEST_CASE("wherever one rank fails, all leave at the same operation and the communicator stays usable", "[ddp][mpi]") {
    Former form;
    CHECK(test::failure_contract([&] { return form(); }) == std::vector<std::string>{});
    CHECK(form.factory.counts().lost == 0);
    CHECK(form.factory.counts().made <= 1);
    CHECK(comm::kept_to_exit() == 0);
}

TEST_CASE("2,000 trials of which a tenth fail on one rank lose no communicator", "[ddp][mpi]") {
    for (const std::size_t keep : {std::size_t{0}, std::size_t{8}}) {
        Former form(keep);
        const auto before = comm::mpi::Communicator::live();
        // Creating a communicator blocks, which is slow when more ranks than cores wait without yielding, and a
        // sanitizer walks the stack for every allocation inside MPI.
#ifdef __SANITIZE_ADDRESS__
        const std::uint32_t trials = 200;
#else
        const std::uint32_t trials = keep > 0 || test::world().size() <= 2 ? 2000 : 300;
#endif
        for (std::uint32_t trial = 0; trial < trials; ++trial) {
            CHECK(test::short_trial(*form(), trial) == "");
        }
        CHECK(form.factory.counts().lost == 0);
        CHECK(comm::mpi::Communicator::live() == before + form.factory.counts().kept);
        CHECK(comm::kept_to_exit() == 0);
    }
}

TEST_CASE("sums are the same bits on all ranks and every time", "[ddp][mpi]") {
    Former form;
    CHECK(test::reproducibility_contract([&] { return form(); }) == std::vector<std::string>{});
}

TEST_CASE("ranks whose partner never comes are freed by their abort flag, and the group is given up", "[ddp][mpi]") {
    Former form;
    if (form.roster.size() > 1) {
        for (const bool in_step : {false, true}) {
            std::atomic<bool> abort{false};
            const auto collective = form(abort);
            const bool absent = collective->rank() == collective->size() - 1;
            if (!absent) {
                std::thread service([&] {
                    std::this_thread::sleep_for(std::chrono::milliseconds(20));
                    abort = true;
                });
                static std::vector<float> bucket(1000); // outlives the abandoned operation
                const auto operation = [&] {
                    if (!in_step) return collective->barrier();
                    collective->begin_step(collective->announce({base::DType::float32, {bucket.size()}}),
                                           test::no_reducer);
                    const auto pending = collective->start_sum(bucket);
                    while (!pending->test()) std::this_thread::yield();
                };
                CHECK_THROWS_AS(operation(), ddp::Aborted);
                service.join();
                CHECK_THROWS_AS(collective->barrier(), ddp::Aborted);
                CHECK_NOTHROW(collective->fail());
            }
        }
        // The next formation replaces the abandoned communicator.
        const auto collective = form();
        CHECK_NOTHROW(collective->barrier());
        CHECK(form.factory.counts().lost >= 1);
    }
}

TEST_CASE("ranks that wait too long for one of them lose the group, and the next one works", "[ddp][mpi]") {
    Former form;
    CHECK(test::patience_contract([&] { return form(); }) == std::vector<std::string>{});
    CHECK_NOTHROW(form()->barrier());
}

TEST_CASE("ranks that call different operations all get an error", "[ddp][mpi]") {
    Former form;
    CHECK(test::mismatch_contract([&] { return form(); }) == std::vector<std::string>{});
}

} // namespace collective_test
