// SPDX-License-Identifier: Apache-2.0
// report: studies as one HTML file. explain: one trial, or the study, in words.

#include <filesystem>
#include <iostream>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/checks/missing_records.hpp"
#include "cli/study_summary.hpp"
#include "cli/terminal/output_file.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/verbs.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/base/utf8.hpp"
#include "report/explain/explain.hpp"
#include "report/page/page.hpp"
#include "report/screens/text.hpp"
#include "report/view/best_by_model.hpp"
#include "report/view/study_view.hpp"
#include "report/view/wall_time.hpp"
#include "storage/file_system.hpp"

namespace ranktune::cli {
namespace {

/// Whether newest records are missing is told on standard error.
report::PageStudy page_study(const std::string& directory, bool& incomplete) {
    const MissingRecords missing(directory);
    report::History history;
    const auto study = report::load_study(storage::posix_file_system(), directory, &history);
    std::string standing = standing_of(study.tuner->state(), directory).text;
    if (missing.tell(study.journal)) {
        incomplete = true;
        standing += "; " + missing.words(study.journal);
    }
    report::StudyView view = report::study_view(study, std::move(history));
    view.by_mean = report::text_of(report::best_by_model(*study.tuner), *study.tuner);
    return {std::move(view), directory, std::move(standing),
            report::surroundings_of(storage::posix_file_system(), directory)};
}

/// The sentences by their labels; of a study also the time of its ranks, which the screen shows as a table between
/// blank lines.
std::string as_json(const std::string& screen, const report::StudyView& view, std::optional<study::TrialId> trial) {
    nlohmann::ordered_json json{{"schema", 1},
                                {"study", base::as_utf8(view.name)},
                                {"trial", trial ? nlohmann::ordered_json(trial->value()) : nullptr},
                                {"lines", nlohmann::ordered_json::array()}};
    std::istringstream lines(screen);
    int part = 0;
    for (std::string line; std::getline(lines, line);) {
        if (line.empty()) ++part;
        if (line.empty() || part == 1) continue;
        const std::size_t label = std::min(report::label_width, line.size());
        json["lines"].push_back({{"what", base::trimmed(std::string_view(line).substr(0, label))},
                                 {"text", base::as_utf8(line.substr(label))}});
    }
    if (!trial)
        for (std::size_t i = 0; i < view.cost.spent_s.size(); ++i)
            json["rank_seconds"][std::string(report::spent_words(static_cast<report::Spent>(i)))] =
                view.cost.spent_s[i];
    return json.dump(2) + "\n";
}

} // namespace

int explain_trial(const std::string& directory, const std::string& word, bool records, Format format) {
    if (records && word.empty())
        throw base::UsageError("--records is for one trial: give its number, or best, behind '" + directory + "'");
    const MissingRecords missing(directory);
    report::History history;
    const auto study = report::load_study(storage::posix_file_system(), directory, &history);
    const auto& state = study.tuner->state();
    missing.tell(study.journal);
    const bool is_run = !state.ended && !standing_of(state, directory).interrupted;
    const bool json = format == Format::json;
    const report::Style style = json ? report::Style{.width = std::size_t{1} << 30U} : detect_terminal().style;
    if (word.empty()) {
        const report::StudyView view = report::study_view(study, std::move(history));
        const std::string screen = report::study_explanation(view, directory, is_run, style);
        std::cout << (json ? as_json(screen, view, {}) : screen);
        return 0;
    }
    const auto trial = report::trial_named(state, word, directory);
    report::StudyView view = report::study_view(study, std::move(history));
    const study::Origin& origin = state.trial(trial).origin;
    const bool repeats = origin.kind == study::Origin::Kind::repeat;
    const study::TrialId first = repeats ? study::TrialId(static_cast<std::uint32_t>(origin.index)) : trial;
    if (state.trial(first).origin.kind == study::Origin::Kind::searcher)
        view.origins.tell(first, report::basis_of(storage::posix_file_system(), directory, first));
    const std::string screen = report::explanation(view, trial, directory, is_run, style, records);
    std::cout << (json ? as_json(screen, view, trial) : screen);
    return 0;
}

int report_page(const ReportArguments& arguments) {
    std::vector<report::PageStudy> studies;
    bool incomplete = false;
    for (const std::string& directory : arguments.directories) studies.push_back(page_study(directory, incomplete));
    const std::string named = studies.size() == 1 ? studies.front().view.name + "-report.html" : "report.html";
    const OutputFile output(arguments.output.empty() ? named : arguments.output);
    write_whole(output, [&](std::ostream& out) {
        report::write_page(studies, report::wall_time_text(report::seconds_now()), out);
    });
    std::error_code error;
    const auto bytes = output.through ? 0 : std::filesystem::file_size(output.path, error);
    if (!output.through && !error)
        std::cout << report::prose(
            "report",
            fmt::format("{}  {}; open it in a browser", report::unbroken(output.path), base::bytes_text(bytes)),
            detect_terminal().style);
    return incomplete ? 1 : 0;
}

} // namespace ranktune::cli
