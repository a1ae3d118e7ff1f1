// SPDX-License-Identifier: Apache-2.0
#include "ranktune/base/text.hpp"

#include <vector>

#include "support/catch.hpp"

namespace text_test {

using namespace ranktune::base;

TEST_CASE("edit_distance counts insertions, deletions, replacements and swaps of neighbours", "[base]") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("", "abc") == 3);
    CHECK(edit_distance("abc", "") == 3);
    CHECK(edit_distance("kitten", "sitting") == 3);
    CHECK(edit_distance("metirc", "metric") == 1);
    CHECK(edit_distance("ca", "abc") == 3); // a swapped pair is not edited again
    CHECK(edit_distance("LR", "lr") == 0);
}

TEST_CASE("nearest offers the closest name, the first of equals, and nothing far away", "[base]") {
    const std::vector<std::string> keys = {"num_trials", "max_iterations", "metric", "mode", "lr"};
    CHECK(nearest("metirc", keys) == "metric");
    CHECK(nearest("max_iteration", keys) == "max_iterations");
    CHECK(nearest("Mode", keys) == "mode");
    CHECK(nearest("colour", keys).empty());
    CHECK(nearest("q", keys).empty());
    CHECK(nearest("", keys).empty());
    CHECK(nearest("bat", {"cat", "hat"}) == "cat");
    CHECK(nearest("bat", {"rat", "cat"}) == "rat");
    // A longer word that starts with the name beats a word two edits away, but not one a single edit away.
    CHECK(nearest("stat", {"stop", "status"}) == "status");
    CHECK(nearest("commit", {"commit_interval", "commit_at"}) == "commit_at");
    CHECK(nearest("stat", {"state", "statistics"}) == "state");
    CHECK(nearest("slot", {"stop", "slots_at_most", "slop"}) == "slop");
    CHECK(nearest("me", {"metric"}).empty());
}

TEST_CASE("suggestion ends a sentence, or is empty", "[base]") {
    const std::vector<std::string> keys = {"metric", "mode"};
    CHECK(suggestion("metrc", keys) == "; did you mean 'metric'?");
    CHECK(suggestion("seed", keys).empty());
}

TEST_CASE("the gist of a message is its first line, that of a traceback its last", "[base]") {
    CHECK(gist("") == "");
    CHECK(gist("\n \n") == "");
    CHECK(gist("disk full") == "disk full");
    CHECK(gist("exit code 1: ValueError: no\nlast lines of its standard error:\nmore") ==
          "exit code 1: ValueError: no");
    const std::string traceback = "Traceback (most recent call last):\n  File \"train.py\", line 3\n    fail()\n";
    CHECK(gist(traceback + "ValueError: no data\n") == "ValueError: no data");
    CHECK(gist("\nrank 1: " + traceback + "ValueError: no data\r\n\n") == "ValueError: no data");
    CHECK(gist("rank 1: Traceback (most recent call last):") == "rank 1: Traceback (most recent call last):");
}

TEST_CASE("join puts the separator between the parts", "[base]") {
    CHECK(join(std::vector<std::string>{}).empty());
    CHECK(join(std::vector<std::string>{"a"}) == "a");
    CHECK(join(std::vector<std::string_view>{"a", "b", "c"}, " | ") == "a | b | c");
}

} // namespace text_test
