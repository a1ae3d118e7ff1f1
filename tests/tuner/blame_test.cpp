// SPDX-License-Identifier: Apache-2.0
// The cause of failures: trials, hosts, or the surroundings of the study.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/rules/causes.hpp"
#include "tuner/values.hpp"
#include "tuner/values/blame.hpp"

namespace ranktune::tuner::blame_test {
namespace {

using testing::at_second;
using testing::broken;
using testing::in_phase;
using testing::ranks;
using testing::workers_on;
using Ids = std::set<TrialId>;
using List = std::vector<TrialId>;

List ids(const std::vector<std::uint32_t>& numbers) {
    List all;
    for (const std::uint32_t number : numbers) all.emplace_back(number);
    return all;
}

/// Trials on ranks 1 and 2 of host a, 3 of b, 4 of c.
struct Scene {
    Scene() : Scene(workers_on({"a", "a", "b", "c"})) {}
    explicit Scene(const std::vector<RankInfo>& workers) {
        placement.begin(workers);
        blame.begin(placement.hosts().size(), placement.devices().size());
    }
    Trial& add(TrialPhase phase, const std::vector<std::uint32_t>& on = {1}) {
        Trial t = in_phase(phase);
        t.attempt.ranks = ranks(on);
        trials.add(std::move(t));
        return trials.at(TrialId{static_cast<std::uint32_t>(trials.size() - 1)});
    }
    void add_all(int count, TrialPhase phase) {
        for (int i = 0; i < count; ++i) add(phase);
    }
    /// An attempt of the trial ends on these ranks.
    void ended(std::uint32_t trial, const std::vector<std::uint32_t>& on, AttemptOutcome outcome,
               const std::string& message = {}, std::optional<std::uint32_t> failing = {}) {
        Trial& t = trials.at(TrialId{trial});
        t.attempt.ranks = ranks(on);
        blame.attempt_ended(TrialId{trial}, t, outcome, {message, failing}, placement);
    }
    void failed(std::uint32_t trial, std::uint32_t on, const std::string& message) {
        ended(trial, {on}, AttemptOutcome::failed, message);
    }
    /// A trial reports progress on this rank.
    void well(std::uint32_t trial, std::uint32_t on, Iteration iteration = 1) {
        Trial& t = trials.at(TrialId{trial});
        t.attempt.ranks = ranks({on});
        blame.got_on(TrialId{trial}, t, iteration, placement);
    }
    void heard(std::uint32_t trial, bool by_number = false) {
        Trial& t = trials.at(TrialId{trial});
        if (!t.unheard) return;
        blame.heard(t, trials, [&](TrialId other) {
            return by_number ? other < TrialId{trial} : trials[other].attempt.since <= t.attempt.since;
        });
    }
    void close(std::uint32_t trial, TrialPhase phase, bool any_report = true,
               study::Reason reason = study::Reason::lost) {
        const TrialId id{trial};
        blame.closed(id, trials[id], phase, reason, any_report);
        trials.set_phase(id, phase);
    }
    void die() { blame.job_died(trials); }
    [[nodiscard]] std::size_t against(std::uint32_t host) const { return blame.hosts()[host].failed.size(); }
    [[nodiscard]] std::size_t against_device(std::uint32_t device) const {
        return blame.devices()[device].failed.size();
    }

    Trials trials;
    Placement placement;
    Blame blame;
};

/// Ranks 1 and 2 share GPU 0 of host a, 3 has GPU 1, 4 no GPU; 5 has GPU 2, the only one of host b.
std::vector<RankInfo> with_gpus() {
    return testing::workers_with({{"a", "g0"}, {"a", "g0"}, {"a", "g1"}, {"a", ""}, {"b", "g0"}});
}

} // namespace

// ---- GPUs

TEST_CASE("A GPU where three different trials fail, while trials run well on another, is bad, and its host is not",
          "[tuner]") {
    Scene s(with_gpus());
    s.add_all(5, TrialPhase::running);
    s.failed(0, 1, "bad memory");
    s.failed(1, 2, "bad memory");
    s.failed(1, 2, "bad memory"); // the same trial again does not count
    s.failed(2, 1, "bad memory");
    CHECK(s.against_device(0) == 3);
    CHECK_FALSE(s.blame.is_bad_device(0, s.placement)); // nothing runs well elsewhere
    s.well(3, 3);
    CHECK(s.blame.is_bad_device(0, s.placement));
    CHECK_FALSE(s.blame.is_bad_device(1, s.placement));
    s.well(4, 5); // on the other host: all failures here are those of one GPU
    CHECK_FALSE(s.blame.is_bad(0, s.placement));
    CHECK(Blame::failed_on(s.blame.devices()[0]) == ids({0, 1, 2}));
    s.blame.retired_device(s.placement.retire_device("a", "g0"), s.placement);
    CHECK_FALSE(s.blame.is_bad_device(0, s.placement)); // it is dealt with
    CHECK(s.against_device(0) == 0);
    CHECK(s.against(0) == 0); // the host is not blamed for it later
}

TEST_CASE("Failures on several GPUs of a host, with a message of that host alone, are the fault of the host",
          "[tuner]") {
    Scene s(with_gpus());
    s.add_all(4, TrialPhase::running);
    s.well(3, 5);
    s.failed(0, 1, "no disk");
    s.failed(1, 1, "no disk");
    CHECK(s.against_device(0) == 2);
    s.failed(2, 3, "no disk"); // from now on no GPU's fault
    CHECK(s.against_device(0) == 0);
    CHECK(s.against_device(1) == 0);
    CHECK(s.against(0) == 3);
    CHECK(s.blame.is_bad(0, s.placement));
    s.failed(3, 1, "no disk");
    CHECK(s.against_device(0) == 0);
}

TEST_CASE("The only GPU of a host is not told from the host", "[tuner]") {
    Scene s(with_gpus());
    s.add_all(4, TrialPhase::running);
    s.well(3, 3);
    for (const std::uint32_t trial : {0U, 1U, 2U}) s.failed(trial, 5, "bad memory");
    CHECK(s.against_device(2) == 3);
    CHECK_FALSE(s.blame.is_bad_device(2, s.placement));
    CHECK(s.blame.is_bad(1, s.placement));
    (void)s.placement.lose({Rank{4}, {}, "gone"}); // on host a every rank that is left has a GPU, two GPUs
    for (const std::uint32_t trial : {0U, 1U, 2U}) s.failed(trial, 1, "bad cable");
    CHECK(s.blame.is_bad_device(0, s.placement));
    (void)s.placement.lose({Rank{3}, {}, "gone"});
    CHECK_FALSE(s.blame.is_bad_device(0, s.placement));
}

TEST_CASE("Of a trial on several GPUs, the GPU of the rank that failed is blamed", "[tuner]") {
    Scene s(with_gpus());
    s.add_all(2, TrialPhase::running);
    s.ended(0, {1, 3, 5}, AttemptOutcome::failed, "bad memory", 1); // position in the group
    CHECK(s.against_device(1) == 1);
    CHECK(s.against_device(0) == 0);
    s.ended(1, {1, 3}, AttemptOutcome::failed, "no rank said this");
    CHECK(s.against_device(0) + s.against_device(2) == 0);
    CHECK(s.against_device(1) == 1);
    s.ended(1, {1, 2}, AttemptOutcome::failed, "both on one GPU");
    CHECK(s.against_device(0) == 1);
    s.ended(1, {4}, AttemptOutcome::failed, "no GPU at all");
    CHECK(s.against(0) == 1); // one trial, however often; the first one ran on two hosts
}

TEST_CASE("A trial that comes to its end clears its GPU, not the others of its host", "[tuner]") {
    Scene s(with_gpus());
    s.add_all(3, TrialPhase::running);
    s.failed(0, 1, "bad memory");
    s.failed(1, 3, "bad cable");
    s.ended(2, {3}, AttemptOutcome::finished);
    CHECK(s.against_device(0) == 1);
    CHECK(s.against_device(1) == 0);
    CHECK(s.against(0) == 0); // the host works
}

TEST_CASE("Three attempts that could not be set up on a GPU are its fault in any case", "[tuner]") {
    Scene s(with_gpus());
    s.add(TrialPhase::running);
    for (int i = 0; i < 3; ++i) {
        CHECK_FALSE(s.blame.is_bad_device(0, s.placement));
        s.ended(0, {1}, AttemptOutcome::unstarted, "no context");
    }
    CHECK(s.blame.is_bad_device(0, s.placement));
    CHECK(Blame::alone_says(s.blame.devices()[0], TrialId{0}));
}

// ---- hosts

TEST_CASE("A host where three different trials fail, while trials run well elsewhere, is bad", "[tuner]") {
    Scene s;
    s.add_all(4, TrialPhase::running);
    s.well(3, 3); // on b
    s.failed(0, 1, "no GPU");
    s.failed(1, 2, "no GPU");
    s.failed(0, 1, "no GPU"); // the same trial again does not count
    CHECK(s.against(0) == 2);
    CHECK_FALSE(s.blame.is_bad(0, s.placement));
    s.failed(2, 1, "no GPU");
    CHECK(Blame::failed_on(s.blame.hosts()[0]) == ids({0, 1, 2}));
    CHECK(s.blame.is_bad(0, s.placement));
    CHECK_FALSE(s.blame.is_bad(1, s.placement));
}

TEST_CASE("If no trial runs well elsewhere, three failures are not the fault of their host", "[tuner]") {
    Scene s;
    s.add_all(4, TrialPhase::running);
    s.well(3, 2); // on the same host
    for (const std::uint32_t trial : {0U, 1U, 2U}) s.failed(trial, 1, "no GPU");
    CHECK_FALSE(s.blame.is_bad(0, s.placement));
    s.well(3, 3);
    CHECK(s.blame.is_bad(0, s.placement));
    (void)s.placement.lose({Rank{3}, {}, "gone"}); // but its rank is gone since
    CHECK_FALSE(s.blame.is_bad(0, s.placement));
    s.well(3, 4);
    (void)s.placement.retire("c"); // or out of service
    CHECK_FALSE(s.blame.is_bad(0, s.placement));
}

TEST_CASE("Three attempts that could not be set up are the fault of their host in any case", "[tuner]") {
    Scene s;
    s.add_all(2, TrialPhase::running);
    for (int i = 0; i < 3; ++i) {
        CHECK_FALSE(s.blame.is_bad(0, s.placement));
        s.ended(0, {1}, AttemptOutcome::unstarted, "no room");
    }
    CHECK(s.against(0) == 3);
    CHECK(Blame::failed_on(s.blame.hosts()[0]) == ids({0})); // once
    CHECK(s.blame.is_bad(0, s.placement));
    (void)s.placement.retire("a");
    CHECK_FALSE(s.blame.is_bad(0, s.placement)); // it is dealt with
    s.blame.retired(0);
    CHECK(s.against(0) == 0);
}

TEST_CASE("alone_says is true only for a host on which the trial could not be set up, with a message of its own",
          "[tuner]") {
    Scene s;
    s.add_all(2, TrialPhase::running);
    s.failed(0, 1, "no GPU");
    CHECK_FALSE(Blame::alone_says(s.blame.hosts()[0], TrialId{0})); // it failed, but had been set up
    s.ended(0, {1}, AttemptOutcome::unstarted, "no room");
    CHECK(Blame::alone_says(s.blame.hosts()[0], TrialId{0}));
    CHECK_FALSE(Blame::alone_says(s.blame.hosts()[0], TrialId{1}));
    CHECK_FALSE(Blame::alone_says(s.blame.hosts()[1], TrialId{0}));
    s.ended(1, {3}, AttemptOutcome::unstarted, "no room");
    CHECK_FALSE(Blame::alone_says(s.blame.hosts()[0], TrialId{0}));
    CHECK_FALSE(Blame::alone_says(s.blame.hosts()[1], TrialId{1}));
}

TEST_CASE("A message from two hosts is the fault of neither", "[tuner]") {
    Scene s;
    s.add_all(6, TrialPhase::running);
    s.failed(0, 1, "loss is NaN at 7");
    s.failed(1, 1, "loss is NaN at 9"); // the same message: digits are ignored
    s.failed(2, 2, "disk full");
    CHECK(s.against(0) == 3);
    s.failed(3, 3, "loss is NaN at 3");
    CHECK(Blame::failed_on(s.blame.hosts()[0]) == ids({2}));
    CHECK(s.against(1) == 0);
    s.failed(4, 1, "loss is NaN at 1"); // from then on they count nowhere
    s.failed(4, 4, "loss is NaN at 1");
    CHECK(Blame::failed_on(s.blame.hosts()[0]) == ids({2}));
    CHECK(s.against(2) == 0);
    s.failed(5, 1, "disk full");
    CHECK(Blame::failed_on(s.blame.hosts()[0]) == ids({2, 5}));
}

TEST_CASE("A failure of a trial on several hosts counts against none of them", "[tuner]") {
    Scene s;
    s.add(TrialPhase::running);
    s.ended(0, {2, 3}, AttemptOutcome::failed, "no GPU");
    CHECK(s.against(0) == 0);
    CHECK(s.against(1) == 0);
    s.ended(0, {1, 2}, AttemptOutcome::failed, "no GPU");
    CHECK(s.against(0) == 1);
}

TEST_CASE("A trial that comes to its end clears all its hosts", "[tuner]") {
    for (const AttemptOutcome outcome : {AttemptOutcome::paused, AttemptOutcome::stopped, AttemptOutcome::finished}) {
        Scene s;
        s.add_all(2, TrialPhase::running);
        s.failed(0, 1, "no GPU");
        s.failed(0, 3, "no disk");
        s.failed(0, 4, "no network");
        s.ended(1, {2, 3}, outcome);
        CHECK(s.against(0) == 0);
        CHECK(s.against(1) == 0);
        CHECK(s.against(2) == 1);
    }
    for (const AttemptOutcome outcome :
         {AttemptOutcome::lost, AttemptOutcome::unreadable, AttemptOutcome::unsaved, AttemptOutcome::stateless}) {
        Scene s;
        s.add_all(2, TrialPhase::running);
        s.failed(0, 1, "no GPU");
        s.ended(1, {2}, outcome, "whatever");
        CHECK(Blame::failed_on(s.blame.hosts()[0]) == ids({0}));
    }
}

TEST_CASE("At most max_failure_words messages are remembered; further ones do not count", "[tuner]") {
    Scene s;
    s.add(TrialPhase::running);
    const auto words = [](std::size_t i) {
        return std::string{static_cast<char>('a' + i / 26), static_cast<char>('a' + i % 26)};
    };
    for (std::size_t i = 0; i < max_failure_words; ++i) s.ended(0, {1}, AttemptOutcome::unstarted, words(i));
    CHECK(s.against(0) == max_failure_words);
    s.ended(0, {1}, AttemptOutcome::unstarted, words(max_failure_words));
    CHECK(s.against(0) == max_failure_words);
    s.ended(0, {1}, AttemptOutcome::unstarted, words(0)); // known before
    CHECK(s.against(0) == max_failure_words + 1);
}

TEST_CASE("An incarnation begins without failures of hosts", "[tuner]") {
    Scene s;
    s.add_all(2, TrialPhase::running);
    s.failed(0, 1, "no GPU");
    s.failed(1, 3, "no GPU"); // the message of two hosts
    s.well(1, 3);
    s.blame.begin(3, 0);
    CHECK(s.against(0) == 0);
    CHECK_FALSE(s.blame.hosts()[1].well);
    s.failed(0, 1, "no GPU"); // the message is new again
    CHECK(s.against(0) == 1);
}

// ---- failures in a row

TEST_CASE("Trials that fail before a report form a row until a trial that was started later reports", "[tuner]") {
    Scene s;
    for (const double start : {1.0, 2.0, 4.0, 3.0, 5.0}) s.add(TrialPhase::running).attempt.since = at_second(start);
    s.trials.at(TrialId{4}).unheard = false; // heard before it failed
    for (const std::uint32_t trial : {0U, 1U, 2U, 4U}) s.close(trial, TrialPhase::failed);
    CHECK(s.blame.in_a_row() == ids({0, 1, 2}));
    s.heard(3); // started after 0 and 1, before 2
    CHECK_FALSE(s.trials[3].unheard);
    CHECK(s.blame.in_a_row() == ids({2}));
    s.trials.at(TrialId{3}).attempt.since = at_second(9);
    s.heard(3); // its later reports change nothing
    CHECK(s.blame.in_a_row() == ids({2}));
    s.blame.forget_row();
    CHECK(s.blame.in_a_row().empty());
}

TEST_CASE("In logical time, trials are started in the order of their numbers", "[tuner]") {
    Scene s;
    for (const double start : {1.0, 9.0, 3.0, 2.0}) s.add(TrialPhase::running).attempt.since = at_second(start);
    for (const std::uint32_t trial : {0U, 1U, 3U}) s.close(trial, TrialPhase::failed);
    s.heard(2, true);
    CHECK(s.blame.in_a_row() == ids({3}));
}

TEST_CASE("Only failed trials count as failures, and as early failures only before any report", "[tuner]") {
    Scene s;
    s.add_all(5, TrialPhase::running);
    s.close(0, TrialPhase::failed, false);
    CHECK(s.blame.early_failures() == 1);
    s.close(1, TrialPhase::failed, true); // others have reported
    CHECK(s.blame.early_failures() == 1);
    s.trials.at(TrialId{2}).reported = true;
    s.close(2, TrialPhase::failed, false);
    CHECK(s.blame.early_failures() == 1);
    s.close(3, TrialPhase::stopped, false);
    CHECK(s.blame.early_failures() == 1);
    CHECK(s.blame.in_a_row() == ids({0, 1, 2}));
    s.trials.at(TrialId{4}).reported = true; // in an earlier attempt
    s.heard(4);
    CHECK(s.blame.early_failures() == 1);
    s.trials.at(TrialId{4}).reported = false;
    Blame::begin_silence(s.trials.at(TrialId{4})); // reopened
    s.heard(4);
    CHECK(s.blame.early_failures() == 0);
    s.close(4, TrialPhase::failed, false);
    s.blame.forget_row();
    CHECK(s.blame.early_failures() == 0);
}

TEST_CASE("A trial that begins again counts as unheard", "[tuner]") {
    Trial t = in_phase(TrialPhase::waiting);
    t.unheard = false;
    Blame::begin_silence(t);
    CHECK(t.unheard);
}

TEST_CASE("The message about a row quotes the most frequent message", "[tuner]") {
    Scene s;
    s.add_all(3, TrialPhase::running);
    const auto say = [&](std::uint32_t trial, const std::string& message) {
        s.trials.at(TrialId{trial}).failure = {message, trial}; // each on another rank
    };
    say(0, "no module named torch");
    say(1, "exit code 2: no such file 17");
    say(2, "exit code 2: no such file 18");
    for (const std::uint32_t trial : {0U, 1U, 2U}) s.close(trial, TrialPhase::failed);
    const std::string most = s.blame.row_message(s.trials, 12);
    CHECK(
        most.starts_with("3 trials in a row failed before their first report. 2 of them said: exit code 2: no such "
                         "file 17. "));
    CHECK(most.find("(now 12)") != std::string::npos);
    say(0, "exit code 2: no such file 3");
    CHECK(s.blame.row_message(s.trials, 12).find("They said: exit code 2: no such file 3. ") != std::string::npos);
}

// ---- one trial's failures

TEST_CASE("A failure is the same if iteration and message are the same", "[tuner]") {
    Scene s;
    Trial t = in_phase(TrialPhase::running);
    CHECK_FALSE(Blame::is_the_same(t, 0, ""));
    s.blame.note_failure(t, 3, "loss is NaN");
    CHECK(t.failures == 1);
    CHECK(Blame::is_the_same(t, 3, "loss is NaN"));
    CHECK_FALSE(Blame::is_the_same(t, 4, "loss is NaN"));
    CHECK_FALSE(Blame::is_the_same(t, 3, "loss is NaN at 2"));
    s.blame.note_failure(t, 4, "another");
    CHECK(t.failures == 2);
    CHECK_FALSE(Blame::is_the_same(t, 3, "loss is NaN"));
    CHECK(Blame::is_the_same(t, 4, "another"));
    Blame::forgive(t);
    CHECK(t.failures == 0);
    CHECK_FALSE(Blame::is_the_same(t, 4, "another"));
}

// ---- deaths of the job

TEST_CASE("A trial that ran at two deaths of the job is a suspect", "[tuner]") {
    Scene s;
    s.add(TrialPhase::running).attempt.iteration = 4;
    s.trials.add(testing::winding_down(TrialPhase::paused));
    s.add(TrialPhase::waiting);
    s.add(TrialPhase::paused);
    s.die();
    CHECK(s.blame.suspects().empty());
    CHECK(s.trials[0].deaths == 1);
    CHECK(s.trials[0].died_at == 4);
    CHECK(s.trials[2].deaths == 0);
    s.trials.at(TrialId{0}).attempt.iteration = 3; // started again from a checkpoint
    s.trials.end_attempt(TrialId{1});
    s.die();
    CHECK(s.blame.suspects() == Ids{TrialId{0}});
    CHECK(s.trials[0].died_at == 4);
    CHECK(s.trials[1].deaths == 1);
    CHECK(s.blame.deaths_alone() == 0);
    CHECK(broken(s.blame, s.trials).empty());
}

TEST_CASE("A death while a suspect is tried counts against the suspect only", "[tuner]") {
    Scene s;
    s.add_all(2, TrialPhase::running);
    s.die();
    s.trials.set_phase(TrialId{1}, TrialPhase::waiting);
    s.trials.end_attempt(TrialId{1});
    s.die();
    REQUIRE(s.blame.suspects() == Ids{TrialId{0}});
    s.trials.begin_attempt({TrialId{1}, AttemptId{2}, {}, ranks({2}), {}}, 0); // beside it
    s.die();
    CHECK(s.trials[0].deaths == 3);
    CHECK(s.trials[0].deaths_alone == 1);
    CHECK(s.trials[1].deaths == 1);
    CHECK(s.blame.deaths_alone() == 1);
    s.trials.set_phase(TrialId{0}, TrialPhase::waiting); // not being tried: the cause is unknown
    s.trials.end_attempt(TrialId{0});
    s.die();
    CHECK(s.trials[0].deaths == 3);
    CHECK(s.trials[1].deaths == 2);
    CHECK(s.blame.suspects() == Ids{TrialId{0}, TrialId{1}});
    CHECK(s.blame.deaths_alone() == 1);
}

TEST_CASE("A suspect is cleared by getting past the place where it died, and not before", "[tuner]") {
    Scene s;
    s.add(TrialPhase::running).attempt.iteration = 4;
    s.die();
    s.die();
    s.well(0, 3, 4);
    CHECK(s.blame.suspects() == Ids{TrialId{0}});
    CHECK(s.blame.hosts()[1].well);
    s.well(0, 3, 5);
    CHECK(s.blame.suspects().empty());
    CHECK(s.trials[0].deaths == 0);
    CHECK(s.trials[0].died_at == 0);
}

TEST_CASE("A trial that saves its state, or throws, is no suspect; other ends do not clear it", "[tuner]") {
    for (std::uint8_t code = 0; code <= static_cast<std::uint8_t>(last_attempt_outcome); ++code) {
        const auto outcome = static_cast<AttemptOutcome>(code);
        const bool clears = outcome == AttemptOutcome::paused || outcome == AttemptOutcome::failed ||
                            outcome == AttemptOutcome::disturbed || outcome == AttemptOutcome::oversized ||
                            outcome == AttemptOutcome::resized || outcome == AttemptOutcome::permanent;
        INFO(name(outcome));
        Scene s;
        s.add(TrialPhase::running);
        s.die();
        s.die();
        s.ended(0, {1}, outcome, "whatever");
        CHECK(s.blame.suspects().empty() == clears);
        CHECK((s.trials[0].deaths == 0) == clears);
    }
}

TEST_CASE("A suspect that is over is no suspect any more, and a reopened one begins anew", "[tuner]") {
    Scene s;
    Trial& t = s.add(TrialPhase::running);
    s.die();
    s.die();
    s.die();
    s.blame.note_failure(t, 2, "it broke");
    t.losses = 2;
    t.unheard = false;
    s.close(0, TrialPhase::failed);
    CHECK(s.blame.suspects().empty());
    CHECK(broken(s.blame, s.trials).empty());
    s.add(TrialPhase::running);
    s.close(1, TrialPhase::failed, false);
    REQUIRE(s.blame.in_a_row().size() == 1);
    s.blame.reopened(TrialId{0}, s.trials.at(TrialId{0}));
    s.trials.set_phase(TrialId{0}, TrialPhase::waiting);
    CHECK(s.trials[0].failures == 0);
    CHECK(s.trials[0].losses == 0);
    CHECK(s.trials[0].deaths == 0);
    CHECK(s.trials[0].deaths_alone == 0);
    CHECK(s.trials[0].unheard);
    CHECK(s.blame.in_a_row().empty());
    CHECK(s.blame.early_failures() == 0);
    CHECK(broken(s.blame, s.trials).empty());
}

TEST_CASE("A suspect that a user cancels is no suspect any more, and has failed through nobody", "[tuner]") {
    Scene s;
    s.add(TrialPhase::running);
    s.die();
    s.die();
    REQUIRE(s.blame.suspects().size() == 1);
    s.close(0, TrialPhase::failed, false, study::Reason::cancelled);
    CHECK(s.blame.suspects().empty());
    CHECK(s.blame.in_a_row().empty());
    CHECK(s.blame.early_failures() == 0);
    CHECK(broken(s.blame, s.trials).empty());
}

// ---- snapshot and invariants

TEST_CASE("Blame comes back from its snapshot, and its suspects from the trials", "[tuner]") {
    Scene s;
    s.add_all(4, TrialPhase::running);
    s.die();
    s.trials.set_phase(TrialId{2}, TrialPhase::waiting);
    s.die();
    s.die();
    s.failed(3, 1, "no GPU"); // clears it
    s.failed(2, 3, "no disk");
    s.well(2, 4);
    s.close(3, TrialPhase::failed, false);
    s.close(1, TrialPhase::failed);
    const auto bytes_of = [](const Blame& one) { return testing::written(one); };
    Blame again;
    testing::read_back(bytes_of(s.blame), again);
    CHECK_FALSE(broken(again, s.trials).empty()); // the suspects are not derived yet
    again.restored(s.trials);
    CHECK(broken(again, s.trials).empty());
    CHECK(bytes_of(again) == bytes_of(s.blame));
    CHECK(again.suspects() == Ids{TrialId{0}});
    CHECK(again.in_a_row() == ids({3, 1}));
    CHECK(again.early_failures() == 1);
    CHECK(again.deaths_alone() == 1);
    CHECK(Blame::failed_on(again.hosts()[0]) == ids({3}));
    CHECK(again.hosts()[2].well);
    // The messages are restored, too.
    s.trials.at(TrialId{0}).attempt.ranks = ranks({3});
    again.attempt_ended(TrialId{0}, s.trials.at(TrialId{0}), AttemptOutcome::failed, {"no GPU"}, s.placement);
    CHECK(Blame::failed_on(again.hosts()[0]).empty());
}

TEST_CASE("Invariants detect suspects that changed without a call of Blame", "[tuner]") {
    Scene s;
    s.add(TrialPhase::running);
    CHECK(broken(s.blame, s.trials).empty());
    s.trials.at(TrialId{0}).deaths = deaths_to_suspect;
    CHECK(broken(s.blame, s.trials) == "the list of suspects is off");
}

} // namespace ranktune::tuner::blame_test
