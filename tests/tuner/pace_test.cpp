// SPDX-License-Identifier: Apache-2.0
// How long things take, and what there is still time for, worked by hand. Times in seconds.

#include <limits>

#include "tuner/values.hpp"
#include "tuner/values/pace.hpp"

namespace ranktune::tuner {
namespace {

using testing::at_second;
using testing::in_phase;

/// Of a trial that was started at this time and has trained up to `iteration` before.
Trial started(double at, Iteration iteration = 0) {
    Trial t = in_phase(TrialPhase::running);
    t.attempt.since = at_second(at);
    t.attempt.iteration = iteration;
    return t;
}

/// As the core learns from a report.
void report(Pace& pace, Trial& t, double at, Iteration iteration, double seconds, bool first = false) {
    pace.learn_from_report(t, at_second(at), iteration, seconds, t.seconds, first);
    t.attempt.iteration = iteration;
    t.iteration = iteration;
    t.seconds = seconds;
    t.reported = true;
}

/// Knows: 2 s from the start of an attempt to its training, 3 s an iteration.
Pace taught() {
    Pace pace;
    Trial t = started(0);
    report(pace, t, 5, 1, 3, true); // told to start at 0, 3 s of training at 5
    return pace;
}

Trial with_checkpoints(Trial t, const std::vector<Iteration>& iterations) {
    for (const Iteration iteration : iterations) t.checkpoints.push_back({iteration, "c", 1, 1, {}, {}});
    return t;
}

} // namespace

TEST_CASE("Before any measurement, a checkpoint takes 10 s and everything else no time", "[tuner]") {
    const Pace pace;
    CHECK(pace.iteration() == 0.0);
    CHECK(pace.saving() == 10.0);
    CHECK(pace.stretch() == 1);
    CHECK(pace.needed(pace.iteration(), 1) == 0.0); // is found out
    CHECK(pace.needed(4.0, 3) == 4.0 * 3 + 10.0);
}

TEST_CASE("The first report tells how long an attempt takes to begin, and an iteration", "[tuner]") {
    Pace pace;
    Trial t = started(100);
    t.attempt.silent = true;
    report(pace, t, 105, 1, 3, true);
    // 5 s after the start command there were 3 s of training: 2 s went before.
    CHECK(t.pace == 3.0);
    CHECK(pace.iteration() == 3.0);
    CHECK(pace.needed(3.0, 1) == 2.0 + 3.0 + 10.0);
    CHECK_FALSE(t.attempt.silent);
    CHECK(t.attempt.since == at_second(105));
}

TEST_CASE("Slower measurements count at once, faster ones gradually", "[tuner]") {
    Pace pace = taught();
    Trial t = started(10);
    report(pace, t, 16, 2, 10); // 10 s for 2 iterations; the time between reports says nothing
    CHECK(t.pace == 5.0);
    CHECK(pace.iteration() == 5.0);
    report(pace, t, 17, 3, 11); // 1 s: a quarter of the way for the trial, a sixteenth for all
    CHECK(t.pace == 5.0 - 4.0 / 4);
    CHECK(pace.iteration() == 5.0 - 4.0 / 16);
    // An attempt that began in 1 s instead of 2: a quarter of the way.
    Trial other = started(20);
    report(pace, other, 24.75, 1, 3.75);
    CHECK(pace.needed(1.0, 1) == (2.0 - 1.0 / 4) + 1.0 + 10.0);
    // And one that took 6 s counts at once.
    Trial slow = started(30);
    report(pace, slow, 40, 1, 4);
    CHECK(pace.needed(1.0, 1) == 6.0 + 1.0 + 10.0);
}

TEST_CASE("A report of a repeated iteration, or without training time, measures nothing", "[tuner]") {
    Pace pace = taught();
    Trial t = started(10, 4);
    t.seconds = 8.0;
    report(pace, t, 32, 4, 28); // at 4 already
    CHECK(t.pace == 0.0);
    CHECK(pace.iteration() == 3.0);
    t.seconds = 28.0;
    report(pace, t, 33, 5, 28); // no training time
    report(pace, t, 34, 6, 27); // less than none
    CHECK(t.pace == 0.0);
    CHECK(pace.iteration() == 3.0);
    for (const double seconds : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        Trial odd = started(40);
        report(pace, odd, 50, 1, seconds);
        CHECK(odd.pace == 0.0);
        CHECK(pace.iteration() == 3.0);
        CHECK(pace.needed(1.0, 1) == 2.0 + 1.0 + 10.0);
    }
}

TEST_CASE("The first measurement of a study replaces the assumption", "[tuner]") {
    Pace pace;
    Trial lost = started(0);
    pace.learn_from_loss(lost, at_second(40), true);
    CHECK(lost.pace == 50.0); // 40 s and a quarter more
    CHECK(pace.iteration() == 50.0);
    Trial t = started(50);
    report(pace, t, 52, 1, 2, true);
    CHECK(pace.iteration() == 2.0);
}

TEST_CASE("A first iteration that did not end is assumed to take a quarter more time than it had", "[tuner]") {
    Pace pace = taught();
    Trial t = started(0);
    pace.learn_from_loss(t, at_second(22), false); // 2 s to begin, 20 s of training
    CHECK(t.pace == 25.0);
    CHECK(pace.iteration() == 3.0); // others have reported: this one hung, or was killed
    t.attempt.since = at_second(30);
    pace.learn_from_loss(t, at_second(36), false); // 4 s of training say nothing new
    CHECK(t.pace == 25.0);

    Trial heard = started(0);
    heard.reported = true;
    pace.learn_from_loss(heard, at_second(99), false);
    CHECK(heard.pace == 0.0);
    Trial waits = in_phase(TrialPhase::waiting);
    pace.learn_from_loss(waits, at_second(99), true);
    CHECK(waits.pace == 0.0);
    CHECK(pace.iteration() == 3.0);
}

TEST_CASE("Saving takes from the last report of an attempt to its checkpoint", "[tuner]") {
    Pace pace = taught();
    const auto save = [&pace](Trial t, double report, double checkpoint, bool silent = false) {
        t.attempt.since = at_second(report);
        t.attempt.silent = silent;
        pace.learn_from_checkpoint(t, at_second(checkpoint), 1, winds_down(t));
        return pace.saving();
    };
    const Trial paused = testing::winding_down(TrialPhase::paused);
    CHECK(save(in_phase(TrialPhase::running), 5, 9) == 10.0); // written beside the training
    CHECK(save(paused, 5, 9, true) == 10.0);                  // without a report before
    CHECK(save(paused, 5, 9) == 4.0);
    CHECK(save(paused, 15, 17) == 3.5);                                      // faster: a quarter of the way
    CHECK(save(testing::winding_down(TrialPhase::finished), 20, 26) == 6.0); // slower
    CHECK(pace.needed(3.0, 1) == 2.0 + 3.0 + 6.0);
}

TEST_CASE("The distance of checkpoints is learned from pauses without one, and from checkpoints", "[tuner]") {
    Pace pace;
    Trial program = with_checkpoints(started(0, 7), {3});
    pace.learn_from_pause(program, true, 20);
    CHECK(program.unsaved == 4); // 4 ... 7
    CHECK(pace.stretch() == 5);  // more than 4
    pace.learn_from_pause(program, true, 3);
    CHECK(pace.stretch() == 5); // never less
    Trial other = started(0, 9);
    pace.learn_from_pause(other, true, 6);
    CHECK(other.unsaved == 9);
    CHECK(pace.stretch() == 6); // not more than a trial is trained for

    pace.learn_from_checkpoint(program, at_second(1), 7, false); // 4 iterations behind the one before
    CHECK(program.unsaved == 0);
    CHECK(pace.stretch() == 4);
    program = with_checkpoints(program, {7});
    pace.learn_from_checkpoint(program, at_second(2), 9, false);
    CHECK(pace.stretch() == 2);
    pace.learn_from_checkpoint(program, at_second(3), 7, false); // the same checkpoint again measures nothing
    CHECK(pace.stretch() == 2);

    Trial saved = with_checkpoints(started(0, 7), {7});
    pace.learn_from_pause(saved, true, 20); // nothing was lost
    CHECK(saved.unsaved == 0);
    CHECK(pace.stretch() == 2);
}

TEST_CASE("A trainable in this process that has no checkpoint at a pause has none at all", "[tuner]") {
    Pace pace;
    Trial t = started(0, 2);
    pace.learn_from_pause(t, false, 9);
    CHECK(t.unsaved == 2);
    CHECK(pace.stretch() == 9);
}

TEST_CASE("The stretch of an attempt ends at what its trial is trained for", "[tuner]") {
    Pace pace;
    const Trial fresh = started(0);
    CHECK(pace.stretch_of(fresh, 3, 9, true) == 1);
    CHECK(pace.stretch_of(fresh, 3, 9, false) == 3); // cannot save: all the way
    const Trial saved = with_checkpoints(fresh, {2});
    CHECK(pace.stretch_of(saved, 3, 9, false) == 1);
    CHECK(pace.stretch_of(saved, 2, 9, false) == 7); // to its rung it has got: on to the end
    Trial unsaved = saved;
    unsaved.unsaved = 3; // 4 iterations, or more
    CHECK(pace.stretch_of(unsaved, 9, 9, true) == 4);
    CHECK(pace.stretch_of(unsaved, 5, 9, true) == 3);
    pace.set_stretch(6);
    CHECK(pace.stretch_of(unsaved, 9, 9, true) == 6);
    CHECK(pace.stretch_of(fresh, 9, 9, true) == 6);
    CHECK(pace.stretch_of(fresh, 5, 9, true) == 5);
}

TEST_CASE("The last start leaves time to begin, to train and to save", "[tuner]") {
    Pace unknown;
    CHECK_FALSE(unknown.last_start());
    unknown.set_deadline(at_second(100));
    CHECK_FALSE(unknown.last_start()); // nobody knows how long an iteration takes
    CHECK(unknown.left(at_second(40)) == 60.0);

    Pace pace = taught();
    CHECK_FALSE(pace.last_start()); // no deadline
    pace.set_deadline(at_second(100));
    CHECK(pace.deadline() == at_second(100));
    CHECK(pace.last_start() == at_second(100 - (2 + 3 + 10)));
    pace.set_stretch(4);
    CHECK(pace.last_start() == at_second(100 - (2 + 3 * 4 + 10)));
    pace.set_deadline({});
    CHECK_FALSE(pace.last_start());
}

TEST_CASE("There is time for another trial up to its last start, and always without a deadline", "[tuner]") {
    Pace pace = taught(); // 15 s
    CHECK(pace.is_time_for_another(at_second(1e6)));
    CHECK(pace.is_time_for(1e9, at_second(1e6)));
    pace.set_deadline(at_second(100));
    CHECK(pace.is_time_for_another(at_second(85)));
    CHECK_FALSE(pace.is_time_for_another(at_second(85.001)));
    CHECK(pace.is_time_for(5.0, at_second(95)));
    CHECK_FALSE(pace.is_time_for(5.001, at_second(95)));
    Pace unknown;
    unknown.set_deadline(at_second(100));
    CHECK(unknown.is_time_for_another(at_second(100))); // is found out
    CHECK_FALSE(unknown.is_time_for_another(at_second(100.001)));
}

TEST_CASE("Trials are told early enough for the slowest iteration and a checkpoint", "[tuner]") {
    Pace pace = taught();
    CHECK_FALSE(pace.time_to_tell(4.0));
    pace.set_deadline(at_second(100));
    CHECK(pace.time_to_tell(4.0) == at_second(100 - (4 + 10)));
    CHECK(pace.time_to_tell(0.0) == at_second(90)); // no trial runs, or the time is unknown
    Trial t = testing::winding_down(TrialPhase::paused);
    t.attempt.silent = false;
    t.attempt.since = at_second(10);
    pace.learn_from_checkpoint(t, at_second(11.5), 1, true);
    CHECK(pace.time_to_tell(4.0) == at_second(100 - (4 + 1.5)));
}

TEST_CASE("The invariants of Pace notice a snapshot that does not fit together", "[tuner]") {
    const auto stored = [](double iteration, double starting, double saving, Iteration stretch) {
        const auto bytes = testing::written(std::optional<StudyTime>{}, iteration, starting, saving, stretch);
        Pace pace;
        testing::read_back(bytes, pace);
        return testing::broken(pace);
    };
    CHECK(testing::broken(Pace()).empty());
    CHECK(testing::broken(taught()).empty());
    CHECK(stored(3.0, 2.0, 0.0, 1).empty());
    CHECK(stored(-1.0, 2.0, 0.0, 1) == "the time of an iteration is no duration");
    CHECK(stored(std::numeric_limits<double>::infinity(), 2.0, 0.0, 1) == "the time of an iteration is no duration");
    CHECK(stored(3.0, std::numeric_limits<double>::quiet_NaN(), 0.0, 1) ==
          "the time until an attempt trains is no duration");
    CHECK(stored(3.0, 2.0, -0.5, 1) == "the time of a checkpoint is no duration");
    CHECK(stored(3.0, 2.0, 1.0, 0) == "work is saved before an iteration is trained");
}

TEST_CASE("A restored Pace gives the same answers", "[tuner]") {
    Pace pace = taught();
    Trial t = testing::winding_down(TrialPhase::paused);
    t.attempt.silent = false;
    pace.learn_from_checkpoint(t, at_second(1.25), 1, true);
    pace.set_deadline(at_second(200));
    pace.set_stretch(3);
    const auto bytes_of = [](const Pace& one) { return testing::written(one); };
    Pace again;
    testing::read_back(bytes_of(pace), again);
    CHECK(bytes_of(again) == bytes_of(pace));
    CHECK(again.deadline() == at_second(200));
    CHECK(again.iteration() == 3.0);
    CHECK(again.saving() == 1.25);
    CHECK(again.stretch() == 3);
    CHECK(again.last_start() == at_second(200 - (2 + 3 * 3 + 1.25)));
    CHECK(again.last_start() == pace.last_start());
    CHECK(again.time_to_tell(7.0) == pace.time_to_tell(7.0));
}

} // namespace ranktune::tuner
