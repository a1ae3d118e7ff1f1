// SPDX-License-Identifier: Apache-2.0
// Mistakes in the options of HyperBand, topk and of ASHA's brackets.
#include <string>
#include <utility>
#include <vector>

#include "study_files.hpp"
#include "support/catch.hpp"

namespace brackets_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;

TEST_CASE("mistakes in the options of hyperband and topk", "[study]") {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"type = \"hyperband\"\neta = 2.5\n",
         "14:7 scheduler.eta: needs an integer from 2 to 1000000, not a float (2.5)"},
        {"type = \"hyperband\"\neta = 1\n", "14:7 scheduler.eta: needs an integer from 2 to 1000000, not 1"},
        {"type = \"hyperband\"\ntable = \"round\"\n",
         "14:9 scheduler.table: unknown value \"round\"; accepted: \"formula\" or \"floor\""},
        {"type = \"hyperband\"\nfirst_rung = 28\n",
         "14:14 scheduler.first_rung: 28 is above the ceiling study.max_iterations (27)"},
        {"type = \"hyperband\"\nbrackets = 2\n", "14:1 scheduler.brackets: is a key of type \"asha\" only"},
        {"type = \"asha\"\nvariant = \"stop\"\nrule = \"ray\"\nallotment = \"budget\"\n",
         "16:13 scheduler.allotment: \"budget\" needs whole rungs; with rule \"ray\" only \"ray\" is possible"},
        {"type = \"asha\"\nvariant = \"stop\"\ndelayed = true\n",
         "15:1 scheduler.delayed: is a key of variant \"promote\" only"},
        {"type = \"topk\"\nk = 0\n", "14:5 scheduler.k: needs an integer >= 1, not 0"},
        {"type = \"topk\"\nfirst = 27\n",
         "14:9 scheduler.first: 27 is not below the ceiling study.max_iterations (27): every trial would be trained to "
         "the end"},
        {"type = \"asha\"\nk = 2\n", "14:1 scheduler.k: is a key of type \"topk\" only"},
    };
    for (const auto& [lines, expected] : cases) {
        Parts parts;
        parts.rest = "[scheduler]\n" + lines;
        INFO(parts.text());
        CHECK(mistake(parts.text()) == expected);
    }
}

TEST_CASE("hyperband and topk need checkpoints", "[study]") {
    Parts parts = free_parts();
    parts.trainable = "name = \"sleeper\"\n";
    const auto with = [&](const std::string& lines) {
        parts.rest = "[scheduler]\n" + lines;
        return mistake(parts.text());
    };
    CHECK(
        with("type = \"hyperband\"\n") ==
        "11:1 scheduler.restart_paused: false pauses trials, and the trainable 'sleeper' cannot save checkpoints; use "
        "restart_paused = true to train promoted trials from the beginning, or \"asha\" with variant \"stop\"");
    CHECK(with("type = \"hyperband\"\nrestart_paused = true\n") == "");
    CHECK(
        with("type = \"topk\"\nrestart_paused = false\n") ==
        "13:18 scheduler.restart_paused: false pauses trials, and the trainable 'sleeper' cannot save checkpoints; use "
        "restart_paused = true to train the best trials from the beginning, or \"fifo\"");
}

} // namespace brackets_test
