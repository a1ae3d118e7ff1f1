// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "comm/wire/recorder.hpp"

namespace protocol_test {

using namespace ranktune;
using namespace ranktune::comm;
using namespace ranktune::testing;

namespace {

const AttemptKey key{TrialId(300), AttemptId(2), Incarnation(7)};

template <class T>
T through_the_wire(const T& message) {
    Message decoded;
    decode_message(bytes_of(message), decoded);
    REQUIRE(std::holds_alternative<T>(decoded));
    return std::get<T>(decoded);
}

template <class T>
void check_round_trip(const T& message) {
    CHECK(through_the_wire(message) == message);
}

study::StartTrial start() {
    space::Configuration configuration;
    configuration.set("lr", 0.1);
    configuration.set("hidden", space::Value::List{64, 32});
    return {key.trial,
            key.attempt,
            key.incarnation,
            {Rank(1), Rank(300)},
            configuration,
            study::Donor{TrialId{8}, {3, "checkpoints/8/3-7.1.h5", 1000, 99}},
            {Rank(4), Rank(301)},
            2,
            3,
            12.5,
            9,
            std::chrono::hours(36),
            -0.75};
}

} // namespace

TEST_CASE("Every message survives encoding and decoding", "[wire]") {
    check_round_trip(Hello{protocol_version, "0.1.0", "node17", 4});
    check_round_trip(Hello{protocol_version, "0.1.0", "node17", 1, "GPU-5ca1ab1e", 3, "00ff-2"});
    check_round_trip(Heartbeat{key, 1234567});
    check_round_trip(StopAsked{study::Asker::sigterm});
    check_round_trip(CheckpointMissed{{base::TrialId{3}, base::AttemptId{2}, base::Incarnation{1}}, "no space"});
    check_round_trip(ReportsTaken{{base::TrialId{3}, base::AttemptId{2}, base::Incarnation{1}}, 192});
    check_round_trip(PlaceNamed{key, "node3", "/scratch/ckpt.json"});
    check_round_trip(PlaceContested{key});
    check_round_trip(RankEnded{Rank(300)});
    check_round_trip(EndRank{Rank(300)});
    check_round_trip(EndRank{Rank(300), true});
    check_round_trip(RankWaits{Rank(300)});
    check_round_trip(Staging{1ULL << 40U, 5, 3, true, "no room"});
    check_round_trip(Stage{});
    check_round_trip(Bye{"out of memory"});
    check_round_trip(Bye{"hung", {base::TrialId{3}, base::AttemptId{2}, base::Incarnation{1}}});
    check_round_trip(Bye{"no sign of life of the head for 60 s", {}, true});
    check_round_trip(Welcome{Incarnation(7), "[study]\n", "/data/study", 1s, 60s, 30s, 5s});
    check_round_trip(start());
    check_round_trip(study::Decide{key.trial, key.attempt, key.incarnation, 3,
                                   study::Verdict{study::Verb::pause, study::Reason::rung, 3.0, 9.0}, 0});
    check_round_trip(study::Interrupt{key.trial, key.attempt, key.incarnation,
                                      study::Verdict{study::Verb::stop, study::Reason::study_time, 3.0, 0.0}});
    check_round_trip(study::Abandon{key.trial, key.attempt, key.incarnation, {Rank(300)}});
    check_round_trip(Alive{});
    check_round_trip(Leave{study::StudyOutcome::resumable, false, "no ranks are left"});
    check_round_trip(Ready{key});
    check_round_trip(Go{key});
    check_round_trip(MemberOver{key, study::AttemptOutcome::failed, {"loss is NaN", 1}});
    check_round_trip(MemberOver{key, study::AttemptOutcome::lost, {"a partner left"}});
}

TEST_CASE("Events survive encoding and decoding", "[wire]") {
    const double inf = std::numeric_limits<double>::infinity();
    const study::ReportArrived report{key.trial, key.attempt, key.incarnation, 27, 1.5, {{"loss", -inf}, {"", 0.0}}};
    const auto report_back = through_the_wire(report);
    CHECK(key_of(report_back) == key);
    CHECK(report_back.iteration == 27);
    CHECK(report_back.seconds == 1.5);
    CHECK(report_back.metrics == report.metrics);

    const study::CheckpointSaved saved{key.trial, key.attempt, key.incarnation, {3, "checkpoints/1", 5, 6}};
    CHECK(through_the_wire(saved).checkpoint == saved.checkpoint);

    const GroupOver over{
        {key.trial, key.attempt, key.incarnation, study::AttemptOutcome::lost, {"gone", 300}}, 0.5, 2.5};
    const auto over_back = through_the_wire(over);
    CHECK(key_of(over_back.over) == key);
    CHECK(over_back.over.outcome == study::AttemptOutcome::lost);
    CHECK(over_back.over.failure == over.over.failure);
    CHECK(over_back.starting_s == 0.5);
    CHECK(over_back.training_s == 2.5);
}

TEST_CASE("A message decoded over another of its kind keeps nothing of it", "[wire]") {
    Message message;
    decode_message(
        bytes_of(study::ReportArrived{key.trial, key.attempt, key.incarnation, 1, 1.0, {{"a", 1.0}, {"b", 2.0}}}),
        message);
    decode_message(bytes_of(study::ReportArrived{key.trial, key.attempt, key.incarnation, 2, 2.0, {{"c", 3.0}}}),
                   message);
    const auto& report = std::get<study::ReportArrived>(message);
    CHECK(report.iteration == 2);
    CHECK(report.metrics == std::vector<study::NamedMetric>{{"c", 3.0}});
}

TEST_CASE("A truncated, lengthened or unknown message is refused", "[wire]") {
    Message message;
    const study::Bytes whole = bytes_of(start());
    for (std::size_t size = 0; size < whole.size(); ++size)
        CHECK_THROWS_AS(decode_message(std::span(whole).first(size), message), base::FormatError);
    study::Bytes longer = whole;
    longer.push_back(std::byte{0});
    CHECK_THROWS_AS(decode_message(longer, message), base::FormatError);
    const study::Bytes unknown{std::byte{200}};
    CHECK_THROWS_AS(decode_message(unknown, message), base::FormatError);
}

TEST_CASE("A greeting that has grown in a later version can still be read", "[wire]") {
    study::Bytes later = bytes_of(Hello{protocol_version + 1, "9.9.9", "node", 0});
    later.push_back(std::byte{42});
    Message message;
    decode_message(later, message);
    CHECK(std::get<Hello>(message).protocol == protocol_version + 1);
    CHECK(std::get<Hello>(message).version == "9.9.9");
    study::Bytes earlier = bytes_of(Hello{protocol_version - 1, "0.0.9", "node", 0});
    earlier.resize(earlier.size() - 3); // without what came later
    decode_message(bytes_of(Hello{protocol_version, "0.1.0", "node", 1, "GPU-1", 1, "f"}), message);
    decode_message(earlier, message);
    CHECK(std::get<Hello>(message) == Hello{protocol_version - 1, "0.0.9", "node", 0});
}

TEST_CASE("A report of one short metric takes at most 33 bytes on the wire", "[wire]") {
    const study::ReportArrived report{TrialId(9999), AttemptId(1), Incarnation(1), 100, 12.0, {{"accuracy", 0.5}}};
    CHECK(bytes_of(report).size() <= 33);
}

} // namespace protocol_test
