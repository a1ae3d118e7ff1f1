// SPDX-License-Identifier: Apache-2.0
#include "ranktune/results.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "report/view/study_view.hpp"
#include "storage/file_system.hpp"

namespace ranktune {

struct Study::Content {
    std::string name;
    std::string metric;
    study::Mode mode = study::Mode::max;
    bool ended = false;
    std::vector<std::string> metrics;
    std::vector<Trial> trials;
    std::optional<base::TrialId> best;
    std::vector<base::TrialId> front;
    std::vector<std::vector<std::vector<Point>>> curves; ///< by metric, then trial

    void add(const study::Reported& report);
};

void Study::Content::add(const study::Reported& report) {
    const double seconds = base::to_seconds(report.at);
    for (const auto& [id, value] : report.metrics) {
        auto& curve = curves[id.value()][report.trial.value()];
        while (!curve.empty() && curve.back().iteration >= report.iteration) curve.pop_back();
        curve.push_back({report.iteration, value, seconds});
    }
}

Study Study::open(const std::string& directory) {
    auto& files = storage::posix_file_system();
    report::History history;
    const report::LoadedStudy loaded = report::load_study(files, directory, &history);
    report::StudyView view = report::study_view(loaded, history);
    auto content = std::make_unique<Content>();
    content->name = std::move(view.name);
    content->metric = std::move(view.metric);
    content->mode = view.mode;
    content->ended = view.ended;
    content->metrics = loaded.tuner->state().metrics;
    content->best = view.best;
    content->front = std::move(view.front);
    for (report::TrialView& trial : view.trials) {
        const base::TrialId id(static_cast<base::TrialId::rep>(content->trials.size()));
        content->trials.push_back({id, trial.phase, std::move(trial.configuration), trial.iterations, trial.best,
                                   trial.best_iteration, trial.seconds, std::move(trial.why), std::move(trial.message),
                                   std::move(trial.others)});
    }
    content->curves.assign(content->metrics.size(), std::vector<std::vector<Point>>(content->trials.size()));
    // A study that runs has grown: as many records as the trials are of.
    report::read_reports(files, directory, loaded.journal.records,
                         [&](const study::Reported& reported) { content->add(reported); });
    return Study(std::move(content));
}

Study::Study(std::unique_ptr<const Content> content) : content_(std::move(content)) {}
Study::Study(Study&&) noexcept = default;
Study& Study::operator=(Study&&) noexcept = default;
Study::~Study() = default;

const std::string& Study::name() const { return content_->name; }
const std::string& Study::metric() const { return content_->metric; }
study::Mode Study::mode() const { return content_->mode; }
bool Study::ended() const { return content_->ended; }
std::span<const std::string> Study::metrics() const { return content_->metrics; }
std::span<const Study::Trial> Study::trials() const { return content_->trials; }

std::span<const base::TrialId> Study::front() const { return content_->front; }

const Study::Trial* Study::best() const {
    return content_->best ? &content_->trials[content_->best->value()] : nullptr;
}

std::span<const Study::Point> Study::curve(base::TrialId trial, const std::string& metric) const {
    const auto& names = content_->metrics;
    if (trial.value() >= content_->trials.size())
        throw base::UsageError("there is no trial #" + std::to_string(trial.value()) + ": the study " + content_->name +
                               " has " + base::counted(content_->trials.size(), "trial"));
    const auto at = std::ranges::find(names, metric);
    if (at != names.end()) return content_->curves[static_cast<std::size_t>(at - names.begin())][trial.value()];
    if (metric == content_->metric) return {}; // nobody has reported yet
    throw base::UsageError("no trial has reported a metric '" + metric + "'; there are: " + base::join(names));
}

} // namespace ranktune
