// SPDX-License-Identifier: Apache-2.0
// Measured curves and times from the journal of an earlier study.

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "simulate/recordings.hpp"
#include "storage/journal/journal.hpp"

namespace ranktune::simulate {
namespace {

/// The mean of what was measured. Clocks of several processes: what is below zero counts as zero.
class Mean {
  public:
    void add(double seconds) {
        sum_ += std::max(0.0, seconds);
        ++count_;
    }
    [[nodiscard]] std::optional<double> value() const {
        return count_ == 0 ? std::nullopt : std::optional(sum_ / static_cast<double>(count_));
    }

  private:
    double sum_ = 0.0;
    std::uint64_t count_ = 0;
};

/// A trial, as far as the journal has been read.
struct Trial {
    std::map<std::string, std::string> configuration;
    /// By iteration, each with its own seconds. One that was trained again counts as trained the last time.
    std::map<base::Iteration, double> seconds;
    std::map<base::Iteration, double> values;
    double trained = 0.0;   ///< seconds in all attempts, what was lost included
    bool exploited = false; ///< what it reports is no curve of one configuration any more
    // The newest attempt:
    base::AttemptId attempt;
    double started_s = 0.0;
    bool from_donor = false;
    bool is_first = false;     ///< on one of its ranks, in this job
    base::Iteration heard = 0; ///< its newest report; 0: none yet
    double heard_at_s = 0.0;
    std::optional<double> told_s; ///< when it was told to stop or pause
    bool saved = false;           ///< since then
};

class JournalReader {
  public:
    explicit JournalReader(std::string metric) : metric_(std::move(metric)) {}

    void take(const study::Record& record) {
        std::visit(
            [this](const auto& r) {
                if constexpr (requires { this->read(r); }) read(r);
            },
            record);
    }

    [[nodiscard]] Recordings recordings(const std::string& directory) const;

  private:
    static double seconds(base::StudyTime at) { return static_cast<double>(base::to_ns(at)) / 1e9; }
    Trial& trial(base::TrialId id) { return trials_[id.value()]; }

    void read(const study::MetricDefined& r) {
        if (r.name == metric_) id_ = r.id;
        metrics_.push_back(r.name);
    }
    void read(const study::TrialCreated& r) {
        for (const auto& [name, value] : r.configuration.entries()) {
            trial(r.trial).configuration.emplace(name, value.text());
            if (std::ranges::find(parameters_, name) == parameters_.end()) parameters_.push_back(name);
        }
    }
    void read(const study::IncarnationBegan&) { begun_.clear(); }
    void read(const study::TrialStarted& r) {
        Trial& t = trial(r.trial);
        t.attempt = r.attempt;
        t.started_s = seconds(r.at);
        t.from_donor = std::holds_alternative<study::Donor>(r.from);
        t.is_first = false;
        for (const base::Rank rank : r.ranks) t.is_first = begun_.insert(rank).second || t.is_first;
        t.heard = 0;
        t.told_s.reset();
        t.saved = false;
    }
    /// In a deterministic study it arrives with this record, and takes effect with Reported.
    void read(const study::ReportHeld& r) { arrived(trial(r.trial), r.attempt, seconds(r.at), r.iteration, r.seconds); }
    void read(const study::Reported& r) {
        Trial& t = trial(r.trial);
        arrived(t, r.attempt, seconds(r.at), r.iteration, r.seconds);
        if (r.attempt == t.attempt && r.verdict.verb != study::Verb::go_on) t.told_s = seconds(r.at);
        if (t.exploited || !id_) return;
        const auto value = std::ranges::find(r.metrics, *id_, &study::MetricValue::id);
        if (value != r.metrics.end()) t.values[r.iteration] = value->value;
    }
    void read(const study::Exploited& r) { trial(r.trial).exploited = true; }
    void read(const study::CheckpointCommitted& r) {
        Trial& t = trial(r.trial);
        t.saved = t.told_s && r.attempt == t.attempt && r.checkpoint.iteration == t.heard;
    }
    void read(const study::AttemptEnded& r) {
        Trial& t = trial(r.trial);
        using enum study::AttemptOutcome;
        const bool obeyed = r.attempt == t.attempt && (r.outcome == paused || r.outcome == stopped);
        if (obeyed && t.saved) checkpoint_.add(seconds(r.at) - *t.told_s);
        t.told_s.reset();
    }

    void arrived(Trial& t, base::AttemptId attempt, double at_s, base::Iteration iteration, double seconds);

    std::string metric_;
    std::optional<base::MetricId> id_;
    std::vector<std::string> metrics_;
    std::vector<std::string> parameters_;
    std::map<std::uint32_t, Trial> trials_;
    std::set<base::Rank> begun_; ///< those that have had a trial in this job
    Mean start_;
    Mean first_start_;
    Mean exploit_;
    Mean checkpoint_;
    Mean report_;
};

/// From the start of an attempt to its first report: a start and an iteration. Between two reports: an iteration, and
/// whatever else takes time.
void JournalReader::arrived(Trial& t, base::AttemptId attempt, double at_s, base::Iteration iteration, double seconds) {
    if (attempt != t.attempt || iteration <= t.heard) return;
    const double one = seconds - t.trained;
    if (t.heard != 0)
        report_.add(at_s - t.heard_at_s - one);
    else
        (t.is_first ? first_start_ : t.from_donor ? exploit_ : start_).add(at_s - t.started_s - one);
    if (!t.exploited) t.seconds[iteration] = one;
    t.trained = seconds;
    t.heard = iteration;
    t.heard_at_s = at_s;
}

Recordings JournalReader::recordings(const std::string& directory) const {
    Recordings out;
    out.origin = "the study in " + directory;
    out.metric = metric_;
    out.parameters = parameters_;
    out.has_seconds = true;
    out.times = {start_.value() ? start_.value() : first_start_.value(), first_start_.value(), exploit_.value(),
                 checkpoint_.value(), report_.value()};
    for (const auto& [id, trial] : trials_) {
        if (trial.values.empty()) continue;
        Recording& curve = out.curves.emplace_back();
        for (const std::string& name : parameters_) {
            const auto value = trial.configuration.find(name);
            curve.configuration.push_back(value == trial.configuration.end() ? std::nullopt
                                                                             : std::optional(value->second));
        }
        double sum = 0.0;
        auto value = trial.values.begin();
        for (const auto& [iteration, seconds] : trial.seconds) {
            sum += seconds;
            if (value == trial.values.end() || value->first != iteration) continue; // it lacked the metric
            curve.points.push_back({iteration, value->second, sum});
            ++value;
        }
    }
    if (!out.curves.empty()) return out;
    if (id_ || metrics_.empty()) throw base::UsageError(out.origin + " has no reports of '" + metric_ + "'");
    throw base::UsageError(out.origin + " has no metric '" + metric_ + "'; it has " + base::join(metrics_));
}

} // namespace

Recordings read_study(storage::FileSystem& files, const std::string& directory, const std::string& metric) {
    if (!storage::has_journal(files, directory))
        throw base::UsageError("'" + directory + "' holds no study (no journal in it) to take learning curves from");
    JournalReader reader(metric);
    constexpr auto all = std::numeric_limits<std::uint64_t>::max();
    const auto journal =
        storage::read_history(files, directory, all, [&](study::Record&& record, auto) { reader.take(record); });
    Recordings recordings = reader.recordings(directory);
    recordings.identity = journal.uuid + " " + std::to_string(journal.records);
    return recordings;
}

TimeModel times_of(const TimeModel& model, const Recordings& recordings) {
    TimeModel times = model;
    const auto measured = [&](const char* key, double& value, const std::optional<double>& seconds) {
        if (seconds && !model.gives(key)) value = *seconds;
    };
    measured("start", times.start, recordings.times.start);
    if (recordings.times.first_start && !model.gives("start") && !model.gives("first_start"))
        times.first_start = recordings.times.first_start;
    // Before the first exploit: as a start.
    measured("exploit", times.exploit, recordings.times.exploit ? recordings.times.exploit : recordings.times.start);
    measured("checkpoint", times.checkpoint, recordings.times.checkpoint);
    measured("report", times.report, recordings.times.report);
    if (!recordings.has_seconds) return times;
    for (const char* key : {"iteration", "spread", "jitter"})
        if (model.gives(key))
            throw base::UsageError("time." + std::string(key) + " of the model has no effect: " + recordings.origin +
                                   " has the seconds of its iterations");
    measured("stragglers", times.stragglers, 0.0);
    return times;
}

} // namespace ranktune::simulate
