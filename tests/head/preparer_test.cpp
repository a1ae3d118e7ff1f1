// SPDX-License-Identifier: Apache-2.0
// The end of a preparer whose suggestion nobody needs any more: of a user's program, and of a calculation.

#include "head/background/preparer.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "head/external/question.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

namespace ranktune::head {
namespace {

using namespace std::chrono_literals;

const Preparer::Say silent = [](std::string_view) {};

} // namespace

TEST_CASE("a program that has not answered is ended, and gone before its preparer", "[head]") {
    const ranktune::testing::TemporaryDirectory folder;
    const std::string note = folder.path() + "/pid";
    const std::string waits = GENERATE("sleep 1000", R"(printf '{"ask": 0'; sleep 1000)", "exec sleep 1000");
    const head::testing::Study study(head::testing::conditional_space(),
                                     "echo $$ > '" + note + "'.new; mv '" + note + "'.new '" + note + "'; " + waits,
                                     std::chrono::hours(1));
    std::optional<Preparer> preparer(
        std::in_place, [] {}, folder.path(), silent);
    preparer->prepare(0, study.question(0));
    while (!storage::posix_file_system().exists(note)) std::this_thread::sleep_for(5ms);
    const int pid = std::atoi(ranktune::testing::read_file(note).c_str());
    REQUIRE(pid > 1);
    REQUIRE(kill(pid, 0) == 0);
    preparer.reset();
    CHECK(kill(pid, 0) == -1);
    CHECK(errno == ESRCH);
}

TEST_CASE("a calculation is not waited for, and keeps what it needs until it ends", "[head]") {
    std::promise<void> gate;
    auto needed = std::make_shared<std::shared_future<void>>(gate.get_future().share());
    const std::weak_ptr<std::shared_future<void>> kept = needed;
    {
        std::promise<void> began;
        Preparer preparer([] {}, "/", silent);
        preparer.prepare(0, [needed = std::move(needed), &began]() -> searchers::Suggestion {
            began.set_value();
            needed->wait();
            return space::Configuration();
        });
        began.get_future().wait();
    }
    CHECK(!kept.expired());
    gate.set_value();
    while (!kept.expired()) std::this_thread::sleep_for(1ms);
}

} // namespace ranktune::head
