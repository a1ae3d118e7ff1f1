// SPDX-License-Identifier: Apache-2.0
#pragma once
// A head machine with a recording journal, outbox and observer.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/wire/recorder.hpp"
#include "head/head_machine.hpp"
#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"

namespace ranktune::testing {

using study::AttemptOutcome;
using study::StudyOutcome;

inline const Rank one{1};
inline const Rank two{2};

/// Two trials of one iteration, with `ranks` ranks each.
inline study::StudySpec small_study(std::uint32_t ranks) {
    study::StudySpec spec;
    spec.name = "small";
    spec.objective = {"score", study::Mode::max};
    spec.num_trials = 2;
    spec.resources.ranks = ranks;
    spec.space = space::SearchSpace({{"lr", space::FloatRange{0.1, 1.0, false, 0.0}, {}}});
    spec.searcher = searchers::chosen("random");
    spec.scheduler = schedulers::chosen("fifo");
    spec.failure.tolerate = 1.0;
    return spec;
}

struct Sink final : study::RecordSink {
    void append(const std::vector<study::Record>& batch) override {
        if (on_append) on_append();
        ++appends;
        records.insert(records.end(), batch.begin(), batch.end());
    }
    template <class T>
    [[nodiscard]] std::size_t count() const {
        return static_cast<std::size_t>(std::count_if(
            records.begin(), records.end(), [](const study::Record& r) { return std::holds_alternative<T>(r); }));
    }
    std::function<void()> on_append;
    std::size_t appends = 0;
    std::vector<study::Record> records;
};

struct Duties final : head::HeadDuties {
    void prepare(std::uint64_t, searchers::Searcher::Preparation) override {}
    std::optional<study::Prepared> prepared() override { return std::nullopt; }
    void delete_checkpoint(const study::DeleteCheckpoint& checkpoint) override {
        if (on_delete) on_delete();
        deleted.push_back(checkpoint.path);
    }
    void set_aside(const std::string& checkpoint, const std::string& why) noexcept override {
        aside.push_back(checkpoint + ": " + why);
    }
    std::vector<std::string> aside;
    std::optional<LastWords> last_words(base::Rank rank) override {
        return words && words->note.failure.rank == rank.value() ? words : std::nullopt;
    }
    std::optional<LastWords> words; ///< of the rank that its note names
    process::Killing end_rank(base::Rank rank, bool at_once) override {
        if (killing != process::Killing::nobody) asked.emplace_back(rank, at_once);
        return at_once && killing == process::Killing::waits ? process::Killing::done : killing;
    }
    process::Killing killing = process::Killing::nobody;
    std::vector<std::pair<base::Rank, bool>> asked;
    std::function<void()> on_delete;
    void publish(const study::EndStudy& end) override { results.push_back(end); }
    bool published() override { return ready; }
    std::optional<Instead> instead() override { return other; }
    std::vector<std::string> deleted;
    std::vector<study::EndStudy> results;
    bool ready = true;
    std::optional<Instead> other;
};

struct Views final : head::Observer {
    void on_records(const tuner::Tuner&, const std::vector<study::Record>& batch, const head::HeadFigures&) override {
        records += batch.size();
    }
    void on_tick(const tuner::Tuner&, const head::HeadFigures&) override { ++ticks; }
    std::size_t records = 0;
    std::size_t ticks = 0;
};

struct Log final : base::LogSink {
    void write(base::LogLevel, std::string_view event, const std::vector<base::LogField>& fields) override {
        lines.emplace_back(event);
        for (const auto& [key, value] : fields) lines.back() += " " + key + "=" + value;
    }
    std::vector<std::string> lines;
};

/// A head with `workers` workers: incarnation 1, heartbeat every second, time-out 60 s, Hello within 120 s.
class HeadFixture {
  public:
    explicit HeadFixture(std::uint32_t workers, const study::StudySpec& spec = small_study(1),
                         base::Duration deadline_timeout = 0s,
                         std::function<study::Asker(study::Asker)> signal_meaning = {},
                         std::vector<study::RankInfo> places = {})
        : tuner(spec) {
        tuner::Output created;
        tuner.create("uuid", "[study]\n", "0.1.0", created);
        head::HeadOptions options;
        options.incarnation = Incarnation(1);
        options.workers = workers;
        options.version = "0.1.0";
        options.study = "[study]\n";
        options.study_directory = "/study";
        options.check_invariants = true;
        options.deadline_timeout = deadline_timeout;
        options.signal_meaning = std::move(signal_meaning);
        options.places = std::move(places);
        machine = std::make_unique<head::HeadMachine>(options, tuner, sink, out, duties, views, log, at(0s));
    }

    template <class T>
    void from(Rank sender, const T& message, base::Duration now) {
        machine->on_message(sender, bytes_of(message), at(now));
    }
    void tick(base::Duration now) {
        machine->on_tick(at(now));
        out.drop<comm::Alive>();
    }
    /// In each second one worker sends a heartbeat, and the others are silent.
    void only(Rank speaks, base::Duration first, base::Duration last) {
        for (base::Duration second = first; second <= last; second += 1s) {
            from(speaks, comm::Heartbeat{}, second);
            tick(second);
        }
    }
    /// All workers say Hello at 0 s; drops the head's answers up to the first commands.
    void join(std::uint32_t workers) {
        for (std::uint32_t r = 1; r <= workers; ++r)
            from(Rank(r), comm::Hello{comm::protocol_version, "0.1.0", "node", 1}, 0s);
        for (std::uint32_t r = 1; r <= workers; ++r) out.take<comm::Welcome>(Rank(r));
        tick(0s);
    }
    /// The leader reports the only iteration of its trial, then its end.
    void report(Rank leader, const study::StartTrial& start, base::Duration now) {
        from(leader, report_of(start), now);
    }
    static study::ReportArrived report_of(const study::StartTrial& start) {
        return {start.trial, start.attempt, start.incarnation, 1, 0.5, {{"score", 1.0}}};
    }
    static comm::GroupOver over_of(const study::StartTrial& start, AttemptOutcome outcome) {
        return {{start.trial, start.attempt, start.incarnation, outcome, ""}, 0.0, 0.5};
    }
    void expect_leave(std::uint32_t workers, StudyOutcome outcome, bool clean) {
        for (std::uint32_t r = 1; r <= workers; ++r) {
            const auto leave = out.take<comm::Leave>(Rank(r));
            CHECK(leave.outcome == outcome);
            CHECK(leave.clean == clean);
        }
    }

    tuner::Tuner tuner;
    Sink sink;
    Recorder out;
    Duties duties;
    Views views;
    Log log;
    std::unique_ptr<head::HeadMachine> machine;
};

} // namespace ranktune::testing
