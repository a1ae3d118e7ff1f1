// SPDX-License-Identifier: Apache-2.0
#include "report/export/take_checkpoint.hpp"

#include <set>

#include "ranktune/base/error.hpp"
#include "support/catch.hpp"

namespace take_checkpoint_test {

using namespace ranktune;
using report::take_checkpoint;

namespace {

study::CheckpointRef at(base::Iteration iteration) { return {iteration, std::to_string(iteration), 1, 1}; }

/// A trial whose checkpoints change between reads of the journal.
struct Trial {
    std::vector<std::vector<study::CheckpointRef>> journal = {}; ///< the listed checkpoints, by number of the read
    std::set<std::string> unreadable = {};
    std::size_t looks = 0;
    std::vector<std::string> told = {};

    base::Iteration take() {
        return take_checkpoint([&] { return journal.at(std::min(looks++, journal.size() - 1)); },
                               [&](const study::CheckpointRef& one) {
                                   if (unreadable.contains(one.path))
                                       throw base::IoError("cannot open", one.path,
                                                           std::make_error_code(std::errc::no_such_file_or_directory));
                                   return study::MemoryState();
                               },
                               [&](const std::string& sentence) { told.push_back(sentence); })
            .first.iteration;
    }
};

} // namespace

TEST_CASE("a checkpoint that is replaced while it is being read is no trouble", "[report]") {
    Trial trial{{{at(4), at(3)}, {at(6), at(5)}}, {"3", "4"}};
    CHECK(trial.take() == 6);
    CHECK(trial.told.empty());
}

TEST_CASE("a checkpoint that is listed and cannot be read is passed over, and that is said", "[report]") {
    Trial trial{{{at(4), at(3)}}, {"4"}};
    CHECK(trial.take() == 3);
    REQUIRE(trial.told.size() == 1);
    CHECK(trial.told.front() ==
          "the checkpoint of iteration 4 cannot be used: cannot open '4': No such file or directory; taking that of "
          "iteration 3");
    Trial none{{{at(4), at(3)}}, {"3", "4"}};
    CHECK_THROWS_AS(none.take(), base::IoError);
}

TEST_CASE("checkpoints that are replaced faster than they can be read end in advice", "[report]") {
    Trial trial;
    for (base::Iteration i = 1; i < 100; ++i) {
        trial.journal.push_back({at(i)});
        trial.unreadable.insert(std::to_string(i));
    }
    CHECK_THROWS_AS(trial.take(), base::UsageError);
}

} // namespace take_checkpoint_test
