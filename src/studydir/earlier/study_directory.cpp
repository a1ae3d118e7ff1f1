// SPDX-License-Identifier: Apache-2.0
// Earlier results from the journal of a study of ours.
#include <algorithm>
#include <map>
#include <optional>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/parse.hpp"
#include "storage/journal/journal.hpp"
#include "studydir/earlier/found.hpp"

namespace ranktune::studydir {
namespace {

class JournalTrials {
  public:
    JournalTrials(const study::WarmSource& source, const study::StudySpec& spec, const study::Algorithms& algorithms)
        : source_(source), spec_(spec), algorithms_(algorithms) {}

    void see(const study::Record& record) {
        if (const auto* created = std::get_if<study::StudyCreated>(&record)) {
            begin(*created);
        } else if (const auto* metric = std::get_if<study::MetricDefined>(&record)) {
            metrics_.push_back(metric->name);
            if (metric->name == metric_) id_ = metric->id;
        } else if (const auto* trial = std::get_if<study::TrialCreated>(&record)) {
            add(trial->trial, trial->configuration);
        } else if (const auto* exploited = std::get_if<study::Exploited>(&record)) {
            add(exploited->trial, exploited->configuration);
        } else if (const auto* report = std::get_if<study::Reported>(&record)) {
            take(*report);
        } else if (const auto* closed = std::get_if<study::TrialClosed>(&record)) {
            newest(closed->trial).failed = closed->phase == study::TrialPhase::failed;
        }
    }

    Found found() && {
        if (!id_) {
            std::string has = metrics_.empty() ? "nothing" : base::join(metrics_);
            refuse(source_, "its trials never reported '" + metric_ + "'; they reported " + has +
                                ". Name the metric that stands for this study's: { path = ..., metric = \"NAME\" }");
        }
        return std::move(found_);
    }

  private:
    void begin(const study::StudyCreated& created) {
        if (!created.simulation.empty()) refuse(source_, "is a simulated study, of which no trial was ever trained");
        study::StudySpec theirs;
        try {
            theirs = study::parse_resolved_study(created.spec, source_.path + "/resolved.toml", algorithms_);
        } catch (const base::UsageError& error) {
            refuse(source_, error.what());
        }
        metric_ = source_.metric.empty() ? spec_.objective.metric : source_.metric;
        const bool same_metric = theirs.objective.metric == metric_;
        if (same_metric && theirs.objective.mode != spec_.objective.mode)
            refuse(source_, std::string("its study ") +
                                (theirs.objective.mode == study::Mode::max ? "maximises" : "minimises") + " '" +
                                metric_ + "', this one does the opposite; the values cannot mean the same");
        for (const space::Parameter& parameter : theirs.space.parameters()) found_.names.insert(parameter.name);
    }

    /// Another configuration of a trial is another earlier trial: the results so far belong to the one before.
    void add(base::TrialId trial, const space::Configuration& configuration) {
        number_[trial] = found_.trials.size();
        found_.trials.push_back({configuration, {}, false});
    }

    FoundTrial& newest(base::TrialId trial) { return found_.trials.at(number_.at(trial)); }

    void take(const study::Reported& report) {
        const auto value = std::ranges::find_if(
            report.metrics, [&](const study::MetricValue& metric) { return id_ && metric.id == *id_; });
        if (value == report.metrics.end()) return;
        auto& results = newest(report.trial).results;
        // Iterations that were trained again after a loss were reported before.
        if (results.empty() || results.back().iteration < report.iteration)
            results.push_back({report.iteration, value->value});
    }

    const study::WarmSource& source_;
    const study::StudySpec& spec_;
    const study::Algorithms& algorithms_;
    std::string metric_;
    std::optional<study::MetricId> id_;
    std::vector<std::string> metrics_;
    std::map<base::TrialId, std::size_t> number_;
    Found found_;
};

} // namespace

Found read_study_directory(storage::FileSystem& files, const study::WarmSource& source, const study::StudySpec& spec,
                           const study::Algorithms& algorithms) {
    JournalTrials trials(source, spec, algorithms);
    try {
        storage::read_journal(files, source.path, [&](study::Record&& record) { trials.see(record); });
    } catch (const base::FormatError& error) {
        refuse(source, error.what());
    }
    return std::move(trials).found();
}

} // namespace ranktune::studydir
