// SPDX-License-Identifier: Apache-2.0
// compare: several studies side by side.

#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/checks/missing_records.hpp"
#include "cli/study_summary.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/view_verbs.hpp"
#include "ranktune/base/error.hpp"
#include "report/explain/next_steps.hpp"
#include "report/screens/comparison.hpp"
#include "report/view/history.hpp"
#include "report/view/load.hpp"

namespace ranktune::cli {

int compare(const CompareArguments& arguments) {
    if (arguments.directories.size() < 2)
        throw base::UsageError("compare needs two studies or more; for one: ranktune status " +
                               arguments.directories.front());
    std::vector<report::ComparedStudy> studies;
    bool incomplete = false;
    for (const std::string& directory : arguments.directories) {
        const MissingRecords missing(directory);
        report::History history;
        const auto study = report::load_study(storage::posix_file_system(), directory, &history);
        incomplete = missing.tell(study.journal) || incomplete;
        studies.push_back({directory, report::study_view(study, history)});
    }
    report::require_same_objective(studies);
    if (arguments.format == Format::json) {
        print(report::comparison_json(studies));
        return incomplete ? 1 : 0;
    }
    const report::Style style = detect_terminal().style;
    std::cout << report::comparison_text(studies, style);
    std::vector<std::string> words{"report"};
    words.insert(words.end(), arguments.directories.begin(), arguments.directories.end());
    std::cout << "\n" << report::labelled("page", report::command_text(words));
    return incomplete ? 1 : 0;
}

} // namespace ranktune::cli
