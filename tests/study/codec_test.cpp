// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/schema.hpp"

#include <bit>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "support/catch.hpp"

namespace codec_test {

using namespace ranktune;
using namespace ranktune::study;

namespace {

constexpr auto max64 = std::numeric_limits<std::uint64_t>::max();
constexpr auto max32 = std::numeric_limits<std::uint32_t>::max();
constexpr auto max16 = std::numeric_limits<std::uint16_t>::max();
const StudyTime last_time = base::from_ns(std::numeric_limits<std::int64_t>::max());
const StudyTime first_time = base::from_ns(std::numeric_limits<std::int64_t>::min());
constexpr double inf = std::numeric_limits<double>::infinity();
const std::string odd_text = std::string("nul\0 and \xC3\xA9 and \xFF", 16);

space::Configuration one_value() {
    space::Configuration configuration;
    configuration.set("x", 0.5);
    return configuration;
}

space::Configuration every_kind_of_value() {
    space::Configuration configuration;
    configuration.set("yes", true);
    configuration.set("no", false);
    configuration.set("low", std::numeric_limits<std::int64_t>::min());
    configuration.set("high", std::numeric_limits<std::int64_t>::max());
    configuration.set("tiny", std::numeric_limits<double>::denorm_min());
    configuration.set("minus", -inf);
    configuration.set("", odd_text);
    configuration.set("nested.list", space::Value::List{1, 2.5, "x", space::Value::List{true, space::Value::List{}}});
    return configuration;
}

CheckpointRef checkpoint() { return {max64, "checkpoints/17/27-1.1.h5", max64, max64}; }

CheckpointRef sharded() {
    CheckpointRef result = checkpoint();
    result.value = -0.25;
    result.shards = {1, max64};
    result.generation = max32;
    return result;
}

/// Studies, starts and reports.
std::vector<Record> records_of_beginnings() {
    return {
        StudyCreated{},
        StudyCreated{odd_text, std::string(100000, 's'), max64, "0.1.0"},
        StudyCreated{"u", "s", 1, "0.1.0", odd_text},
        IncarnationBegan{},
        IncarnationBegan{Incarnation(max32),
                         last_time,
                         "2026-11-20T02:14:07Z",
                         {{Rank(1), "nid0041", 0}, {Rank(max32), odd_text, max32, max32, "s0.s1", odd_text}}},
        MetricDefined{},
        MetricDefined{MetricId(max16), odd_text},
        TrialCreated{},
        TrialCreated{
            TrialId(max32), first_time, max32, max32, max64, {last_origin, max64, max32}, every_kind_of_value()},
        TrialStarted{},
        TrialStarted{TrialId(max32), AttemptId(max32), last_time, {Rank(0), Rank(7), Rank(max32)}, checkpoint()},
        TrialStarted{TrialId(3),
                     AttemptId(1),
                     last_time,
                     {Rank(max32), Rank(0)},
                     Donor{TrialId(max32), {max64, odd_text, max64, max64, 0.5, {max64}, max32}},
                     max32,
                     {{odd_text, max32}, {}}},
        Reported{},
        Reported{TrialId(max32),
                 AttemptId(max32),
                 last_time,
                 max64,
                 inf,
                 {{MetricId(max16), -inf},
                  {MetricId(0), std::numeric_limits<double>::denorm_min()},
                  {MetricId(max16), -0.0}},
                 {Verb::stop, Reason::parameters_differ, -1.5e300, 0.1}},
    };
}

/// Checkpoints, ends of attempts, trials and studies.
std::vector<Record> records_of_ends() {
    return {
        CheckpointCommitted{},
        CheckpointCommitted{TrialId(max32), AttemptId(max32), first_time, checkpoint()},
        CheckpointCommitted{TrialId(max32), AttemptId(max32), first_time, sharded()},
        TrialStarted{TrialId(max32), AttemptId(max32), last_time, {Rank(7)}, sharded()},
        CheckpointReleased{},
        CheckpointReleased{TrialId(max32), odd_text, true},
        AttemptEnded{},
        AttemptEnded{TrialId(max32), AttemptId(max32), last_time, AttemptOutcome::lost, true, {odd_text, max32}},
        AttemptEnded{TrialId(1), AttemptId(1), last_time, AttemptOutcome::failed, false, {odd_text}},
        TrialPromoted{},
        TrialPromoted{TrialId(max32), last_time, max64, max64, Reason::finish_top},
        TrialClosed{},
        TrialClosed{TrialId(max32), last_time, TrialPhase::failed, Reason::exception, -inf, 1e-300, {odd_text, 0}},
        RankLost{},
        RankLost{Rank(max32), last_time, odd_text},
        DrainBegan{},
        DrainBegan{last_time, Reason::missing_metric, odd_text, study::last_asker},
        StudyEnded{},
        StudyEnded{last_time, StudyOutcome::resumable, Reason::no_trial_succeeded, odd_text},
        Snapshot{},
        Snapshot{max64, std::string(300, '\0'), odd_text},
    };
}

/// Changes, verdicts on places, takeovers, suggestions and requests.
std::vector<Record> records_of_requests() {
    return {
        StudyChanged{},
        StudyChanged{last_time, odd_text, max64, odd_text},
        TrialReopened{},
        TrialReopened{TrialId(max32), last_time, true},
        DeadlineSet{},
        DeadlineSet{last_time, last_time},
        ReportHeld{},
        ReportHeld{TrialId(max32), AttemptId(max32), last_time, 1, 0.5, {{MetricId(0), 0.25}, {MetricId(7), -1.0}}},
        JobDied{},
        JobDied{last_time,
                {{{TrialId(max32), AttemptId(max32), {odd_text, max32}}, true},
                 {{TrialId(0), AttemptId(1), {"", 0}}, false}}},
        HostRetired{},
        HostRetired{odd_text, last_time, {TrialId(0), TrialId(max32)}},
        HostRetired{"n1", last_time, {TrialId(0)}, odd_text},
        YieldAsked{},
        YieldAsked{TrialId(max32), last_time},
        Exploited{},
        Exploited{TrialId(max32), last_time, max64, {TrialId(0), sharded()}, max32, every_kind_of_value()},
        ExploitUndone{},
        ExploitUndone{TrialId(max32), last_time, max32},
        ExploitUndone{TrialId(1), last_time, 2, last_state_loss},
        TicketOpened{},
        TicketOpened{max64, last_time, max64},
        TicketPrepared{},
        TicketPrepared{max64, last_time, every_kind_of_value(), odd_text},
        TicketPrepared{1, last_time, one_value(), {}, {"gp", 7, -0.5, std::nullopt, odd_text}},
        TicketPrepared{1, last_time, one_value(), {}, {"tpe", 0, std::nullopt, 1e300, {}}},
        Steered{},
        Steered{last_time, odd_text, odd_text, {}, {}},
        Steered{last_time,
                odd_text,
                odd_text,
                {~std::uint64_t{0},
                 SteerVerb::add,
                 TrialId{7},
                 {space::Configuration{}, space::Configuration({{"lr", space::Value(0.5)}})},
                 {odd_text, ""}},
                odd_text},
        WarmStarted{},
        WarmStarted{{{odd_text, 1, max64, odd_text}},
                    {{every_kind_of_value(), {{1, -0.0}, {max64, 1e300}}, true}, {{}, {}, false}}},
        SideStarted{},
        SideStarted{{SideTask::Kind::after_trial, TrialId{7}}, AttemptId{max32}, last_time, Rank{max32}, sharded()},
        SideReported{},
        SideReported{{SideTask::Kind::after, {}}, AttemptId{2}, first_time, {{odd_text, -inf}, {"", 0.5}}},
        SideEnded{},
        SideEnded{{SideTask::Kind::after_trial, TrialId{max32}},
                  AttemptId{3},
                  last_time,
                  AttemptOutcome::permanent,
                  true,
                  {odd_text, max32}},
    };
}

/// At least two of each kind: the emptiest and the largest that its fields allow.
std::vector<Record> examples() {
    std::vector<Record> records = records_of_beginnings();
    for (auto* more : {records_of_ends, records_of_requests})
        for (Record& record : more()) records.push_back(std::move(record));
    return records;
}

Reported small_report(std::size_t metrics) {
    Reported report{TrialId(9999), AttemptId(2), base::from_ns(86'400'000'000'000), 27, 812.25, {}, {}};
    for (std::size_t i = 0; i < metrics; ++i)
        report.metrics.push_back({MetricId(static_cast<std::uint16_t>(i)), 0.1 * static_cast<double>(i)});
    report.verdict = {Verb::go_on, Reason::below_median, 0.7125, 0.6914};
    return report;
}

std::size_t encoded_size(const Record& record) {
    Bytes bytes;
    encode(record, bytes);
    return bytes.size();
}

/// Reads `value` back after writing it; also checks that all bytes were used.
template <class T>
T round_trip(const T& value) {
    Bytes bytes;
    Encoder out(bytes);
    put(out, value);
    Decoder in(bytes);
    T back = decoded<T>(in);
    CHECK(in.empty());
    return back;
}

} // namespace

TEST_CASE("every record comes back as it was, one after the other from one buffer", "[study]") {
    Bytes bytes;
    for (const Record& record : examples()) encode(record, bytes);
    Decoder in(bytes);
    for (const Record& record : examples()) CHECK((decode_record(in) == record));
    CHECK(in.empty());
}

TEST_CASE("a record is its length, its kind and its fields, however long it is", "[study]") {
    constexpr std::uint8_t kind = 7; // CheckpointReleased
    for (const std::size_t length :
         {0U, 1U, 122U, 123U, 124U, 125U, 511U, 512U, 16377U, 16378U, 16379U, 16380U, 70000U}) {
        const std::string path(length, 'p');
        Bytes fields;
        Encoder by_hand(fields);
        by_hand.u8(kind);
        by_hand.varint(300);
        by_hand.string(path);
        by_hand.boolean(false);
        by_hand.varint(2);
        Bytes expected(3);
        Encoder(expected).bytes(fields);
        Bytes written(3);
        encode(Record{CheckpointReleased{TrialId(300), path, false, 2}}, written);
        CHECK((written == expected));
    }
}

TEST_CASE("a report is its fields, however many metrics it has", "[study]") {
    constexpr std::uint8_t kind = 5;
    for (std::size_t metrics = 0; metrics < 40; ++metrics) {
        Reported report = small_report(metrics);
        report.verdict = {Verb::stop, Reason::not_in_top, 0.25, 9.0};
        Bytes fields;
        Encoder by_hand(fields);
        by_hand.u8(kind);
        by_hand.varint(report.trial.value());
        by_hand.varint(report.attempt.value());
        by_hand.u64(static_cast<std::uint64_t>(base::to_ns(report.at)));
        by_hand.varint(report.iteration);
        by_hand.f64(report.seconds);
        put(by_hand, report.verdict);
        by_hand.varint(metrics);
        std::int64_t next = 0;
        for (const MetricValue& metric : report.metrics) {
            by_hand.svarint(metric.id.value() - next);
            by_hand.f64(metric.value);
            next = metric.id.value() + 1;
        }
        Bytes expected;
        Encoder(expected).bytes(fields);
        Bytes written;
        encode(Record{report}, written);
        CHECK((written == expected));
    }
}

TEST_CASE("records encoded together are the bytes of each, one after the other", "[study]") {
    std::vector<Record> records = examples();
    for (std::size_t metrics = 0; metrics < 20; ++metrics) {
        for (int i = 0; i < 40; ++i) records.push_back(small_report(metrics));
        records.push_back(MetricDefined{MetricId(1), "next"});
    }
    for (const std::size_t begin : {std::size_t{0}, std::size_t{1}, records.size() / 2, records.size()}) {
        const auto some = std::span<const Record>(records).subspan(begin);
        Bytes each(24);
        for (const Record& record : some) encode(record, each);
        Bytes together(24);
        encode(some, together);
        CHECK((together == each));
    }
}

TEST_CASE("the examples cover every kind of record", "[study]") {
    std::vector<bool> seen(std::variant_size_v<Record>, false);
    for (const Record& record : examples()) seen[record.index()] = true;
    CHECK((seen == std::vector<bool>(std::variant_size_v<Record>, true)));
}

TEST_CASE("a record that is cut anywhere is refused", "[study]") {
    for (const Record& record : examples()) {
        Bytes bytes;
        encode(record, bytes);
        const std::size_t step = bytes.size() > 1000 ? 997 : 1; // the long one at fewer places
        for (std::size_t size = 0; size < bytes.size(); size += step) {
            Decoder in{std::span(bytes).first(size)};
            CHECK_THROWS_AS(decode_record(in), base::FormatError);
        }
    }
}

TEST_CASE("a record whose frame is too short for its fields is refused", "[study]") {
    for (const Record& record : examples()) {
        Bytes bytes;
        encode(record, bytes);
        if (bytes.size() > 128) continue; // one byte of length
        for (std::size_t size = 0; size + 1 < bytes.size(); ++size) {
            Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size) + 1);
            cut[0] = static_cast<std::byte>(size);
            Decoder in(cut);
            CHECK_THROWS_AS(decode_record(in), base::FormatError);
        }
    }
}

TEST_CASE("fields that a newer minor version added are skipped", "[study]") {
    for (const Record& record : examples()) {
        Bytes bytes;
        encode(record, bytes);
        if (bytes.size() > 100) continue;
        bytes[0] = static_cast<std::byte>(static_cast<unsigned>(bytes[0]) + 3);
        bytes.insert(bytes.end(), {std::byte{1}, std::byte{0xFF}, std::byte{7}});
        encode(Record{MetricDefined{MetricId(1), "next"}}, bytes);
        Decoder in(bytes);
        CHECK((decode_record(in) == record));
        CHECK((decode_record(in) == Record{MetricDefined{MetricId(1), "next"}}));
    }
}

TEST_CASE("unknown kinds and unknown deciding values are refused, unknown reasons are kept", "[study]") {
    const auto read = [](std::vector<unsigned> values) {
        Bytes bytes;
        for (const unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
        Decoder in(bytes);
        return decode_record(in);
    };
    CHECK_THROWS_AS(read({1, 15}), base::FormatError);
    CHECK_THROWS_AS(read({1, 255}), base::FormatError);
    CHECK_THROWS_AS(read({0}), base::FormatError); // a frame without a kind

    Bytes bytes;
    encode(Record{AttemptEnded{}}, bytes);
    bytes[12] = std::byte{static_cast<std::uint8_t>(last_attempt_outcome) +
                          1}; // behind length, kind, trial, attempt and eight bytes of time
    Decoder outcome(bytes);
    CHECK_THROWS_AS(decode_record(outcome), base::FormatError);

    bytes.clear();
    encode(Record{StudyEnded{}}, bytes);
    bytes[10] = std::byte{74};
    Decoder ended(bytes);
    CHECK_THROWS_AS(decode_record(ended), base::FormatError);

    bytes.clear();
    encode(Record{DrainBegan{}}, bytes);
    bytes[10] = std::byte{200};
    Decoder drain(bytes);
    CHECK(std::get<DrainBegan>(decode_record(drain)).reason == static_cast<Reason>(200));
    bytes.back() = std::byte{static_cast<std::uint8_t>(last_asker) + 1};
    Decoder asker(bytes);
    CHECK_THROWS_AS(decode_record(asker), base::FormatError);

    // `discard` is for messages: a journal never holds it.
    Bytes verdict{std::byte{3}, std::byte{0}};
    Decoder verb(verdict);
    CHECK(decoded<Verdict>(verb).verb == Verb::discard);
    Reported discarded;
    discarded.verdict.verb = Verb::discard;
    Bytes record;
    encode(Record{discarded}, record);
    Decoder in(record);
    CHECK_THROWS_AS(decode_record(in), base::FormatError);
    verdict[0] = std::byte{0x0C}; // the form of `a` after compact_double
    Decoder form(verdict);
    CHECK_THROWS_AS(decoded<Verdict>(form), base::FormatError);
}

TEST_CASE("identifiers beyond their type are refused", "[study]") {
    Bytes bytes;
    Encoder out(bytes);
    out.u8(7);
    out.u8(2); // MetricDefined
    out.varint(std::uint64_t{max16} + 1);
    out.string("ab");
    Decoder in(bytes);
    CHECK_THROWS_AS(decode_record(in), base::FormatError);
}

TEST_CASE("NaN keeps its bits in metrics and verdicts", "[study]") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    Reported report = small_report(1);
    report.metrics[0].value = nan;
    report.verdict.a = nan;
    Bytes bytes;
    encode(Record{report}, bytes);
    Decoder in(bytes);
    Bytes again;
    encode(decode_record(in), again);
    CHECK((bytes == again));
}

TEST_CASE("the numbers of a verdict come back bit for bit in every form", "[study]") {
    for (const double value : {0.0, -0.0, 1.0, 2.0, 0.5, -1.0, 562949953421311.0, 562949953421312.0, 1e300, inf, -inf,
                               std::numeric_limits<double>::denorm_min(), 3.0000000000000004}) {
        const Verdict verdict{Verb::pause, Reason::rung, value, -value};
        const Verdict back = round_trip(verdict);
        CHECK(std::bit_cast<std::uint64_t>(back.a) == std::bit_cast<std::uint64_t>(value));
        CHECK(std::bit_cast<std::uint64_t>(back.b) == std::bit_cast<std::uint64_t>(-value));
        CHECK(back.verb == Verb::pause);
        CHECK(back.reason == Reason::rung);
    }
}

TEST_CASE("a report of one metric takes at most 64 bytes, and each further metric at most 9", "[study]") {
    const std::size_t one = encoded_size(small_report(1));
    CHECK(one <= 64);
    // A frame of 128 bytes and more has a second byte of length.
    for (std::size_t n = 2; n <= 200; ++n) CHECK(encoded_size(small_report(n)) <= one + 9 * (n - 1) + 2);
    CHECK(encoded_size(small_report(8)) <= one + 9 * 7);

    Reported longest = small_report(1);
    longest.trial = TrialId(max32);
    longest.attempt = AttemptId((1U << 21U) - 1);
    longest.at = last_time;
    longest.iteration = (Iteration{1} << 49U) - 1;
    longest.seconds = -1e300;
    longest.verdict = {Verb::stop, Reason::below_median, 0.1, -0.1};
    CHECK(encoded_size(longest) <= 64);
}

TEST_CASE("encoding appends and leaves what is there", "[study]") {
    Bytes bytes{std::byte{42}};
    encode(Record{small_report(1)}, bytes);
    encode(Record{StudyCreated{"u", std::string(200, 's'), 1, "v"}}, bytes);
    CHECK(bytes[0] == std::byte{42});
    Decoder in{std::span(bytes).subspan(1)};
    CHECK((decode_record(in) == Record{small_report(1)}));
    CHECK((decode_record(in) == Record{StudyCreated{"u", std::string(200, 's'), 1, "v"}}));
}

TEST_CASE("shared pieces come back as they were", "[study]") {
    const auto configuration = every_kind_of_value();
    CHECK((round_trip(configuration) == configuration));
    const StartFrom donor = Donor{TrialId(4), {9, "checkpoints/4/9-2.1.h5", 1, 2}};
    CHECK((round_trip(donor) == donor));
    const CheckpointRef checkpoint{3, "a/b.h5", 17, max64};
    CHECK((round_trip(checkpoint) == checkpoint));
    const space::Value value = space::Value::List{1, 1.0, "1", true};
    CHECK((round_trip(value) == value));
}

TEST_CASE("lists nested without end are refused before they exhaust the stack", "[study]") {
    Bytes bytes;
    for (int i = 0; i < 1'000'000; ++i) {
        bytes.push_back(std::byte{5}); // a list
        bytes.push_back(std::byte{1}); // of one
    }
    Decoder in(bytes);
    CHECK_THROWS_AS(decoded<space::Value>(in), base::FormatError);
}

TEST_CASE("damaged records are decoded or refused, without crashes", "[study]") {
    base::RngStream rng(5, base::Purpose::fault);
    int refused = 0;
    for (int round = 0; round < 300; ++round) {
        for (const Record& record : examples()) {
            Bytes bytes;
            encode(record, bytes);
            if (bytes.size() > 1000) continue;
            for (int hit = 0; hit < 2; ++hit) bytes[rng.below(bytes.size())] = static_cast<std::byte>(rng.below(256));
            Decoder in(bytes);
            try {
                static_cast<void>(decode_record(in));
            } catch (const base::FormatError&) {
                ++refused;
            }
        }
    }
    CHECK(refused > 1000);
}

} // namespace codec_test
