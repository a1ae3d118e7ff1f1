// SPDX-License-Identifier: Apache-2.0
#include "launch/restarts.hpp"

#include "support/catch.hpp"

namespace same_study_test {

using namespace ranktune::launch;

namespace {

constexpr DirectoryReading nothing{};
const DirectoryReading empty{true, false, false, false, ""};
const DirectoryReading logs_only{true, true, false, false, ""};
const DirectoryReading status_only{true, true, true, false, ""};
const DirectoryReading damaged{true, true, true, true, ""};

DirectoryReading study(const std::string& uuid) { return {true, true, true, true, uuid}; }

bool replaced(const DirectoryReading& before, const DirectoryReading& now, bool anew = false) {
    SameStudy same;
    same.begin(before, anew);
    return same.is_replaced(now);
}

} // namespace

TEST_CASE("A directory with the same study in it is the same directory", "[launch]") {
    CHECK_FALSE(replaced(study("a"), study("a")));
    CHECK_FALSE(replaced(nothing, study("a"))); // the study has begun
    CHECK_FALSE(replaced(empty, study("a")));
    CHECK_FALSE(replaced(study("a"), damaged)); // the next start reports it
    CHECK_FALSE(replaced(damaged, study("a")));
    CHECK_FALSE(replaced(study("a"), nothing)); // lost, not replaced
}

TEST_CASE("A directory without the journal that was in it is another directory", "[launch]") {
    for (const auto& now : {empty, logs_only, status_only}) CHECK(replaced(study("a"), now));
    CHECK(replaced(study("a"), empty, true));
    // For a study that began in the step: its head wrote `status` into the new directory, or nothing any more.
    CHECK(replaced(nothing, status_only));
    CHECK(replaced(nothing, empty));
    CHECK(replaced(empty, status_only));
    // A head that ended before it had a journal.
    CHECK_FALSE(replaced(nothing, logs_only));
    CHECK_FALSE(replaced(empty, empty));
}

TEST_CASE("A directory with another study in it is another directory, unless the step may begin one", "[launch]") {
    CHECK(replaced(study("a"), study("b")));
    CHECK_FALSE(replaced(study("a"), study("b"), true));
    SameStudy same;
    same.begin(study("a"), true); // --fresh
    CHECK_FALSE(same.is_replaced(study("b")));
    same.begin(study("b"), false);
    CHECK(same.is_replaced(study("a")));
}

TEST_CASE("Readings of one step count in the next", "[launch]") {
    SameStudy same;
    same.begin(nothing, false);
    CHECK_FALSE(same.is_lost(nothing));
    CHECK_FALSE(same.is_replaced(study("a")));
    CHECK(same.is_replaced(empty)); // between two steps
    CHECK(same.is_lost(nothing));
    same.begin(study("a"), false);
    CHECK(same.is_replaced(empty));
}

} // namespace same_study_test
