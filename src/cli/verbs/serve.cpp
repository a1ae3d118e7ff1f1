// SPDX-License-Identifier: Apache-2.0
// serve: live pages of studies on 127.0.0.1, and what their controls do.

#include <cstdint>
#include <iostream>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/checks/missing_records.hpp"
#include "cli/study_input.hpp"
#include "cli/study_summary.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/view_verbs.hpp"
#include "process/environment.hpp"
#include "process/program/json_input.hpp"
#include "ranktune/base/error.hpp"
#include "report/screens/text.hpp"
#include "report/serve/site.hpp"
#include "report/view/load.hpp"

namespace ranktune::cli {

namespace {

/// The studies of all folders. A folder that is gone or cannot be read now adds none.
std::vector<std::string> studies_of(const std::vector<std::string>& given) {
    std::vector<std::string> all;
    for (const std::string& folder : given) {
        try {
            const auto found = studies_in(folder);
            all.insert(all.end(), found.begin(), found.end());
        } catch (const base::Error&) { // the site keeps the studies that it knows
        }
    }
    drop_repeated(all);
    return all;
}

[[noreturn]] void no_request() {
    throw base::FormatError(R"(a request is an object of JSON with "verb" (pause, resume, cancel, add or stop), and )"
                            R"("trial", a number, or for add "settings", as in ["lr=0.01"])");
}

/// What a control of a page asks for, as its verb does it.
std::string steered_by_page(const std::string& directory, const std::string& text) {
    const nlohmann::ordered_json json = process::read_json(text);
    if (!json.is_object()) no_request();
    SteerArguments arguments;
    arguments.directory = absolute_directory(directory);
    std::string verb;
    for (const auto& [key, value] : json.items()) {
        if (key == "verb" && value.is_string()) {
            verb = value.get<std::string>();
        } else if (key == "trial" && value.is_number_unsigned() && value.get<std::uint64_t>() < UINT32_MAX) {
            arguments.trial = std::to_string(value.get<std::uint64_t>());
        } else if (key == "settings" && value.is_array()) {
            for (const auto& setting : value) {
                if (!setting.is_string()) no_request();
                arguments.settings.push_back(setting.get<std::string>());
            }
        } else {
            no_request();
        }
    }
    if (verb == "stop" && arguments.trial.empty() && arguments.settings.empty()) {
        static std::mutex one_at_a_time; // all write the same file
        const std::lock_guard lock(one_at_a_time);
        return ask_to_stop(arguments.directory);
    }
    using study::SteerVerb;
    for (const SteerVerb each : {SteerVerb::pause, SteerVerb::resume, SteerVerb::cancel, SteerVerb::add}) {
        if (verb != study::name(each)) continue;
        const bool adds = each == SteerVerb::add;
        if (adds != arguments.trial.empty() || adds == arguments.settings.empty()) break;
        arguments.verb = each;
        return ask_of_head(arguments);
    }
    no_request();
}

report::Standing standing_for_page(const tuner::State& state, const std::string& directory, bool read_only) {
    const Standing standing = standing_of(state, directory);
    return {standing.text, !state.ended && !standing.interrupted,
            read_only ? "this server is read only (--read-only)" : why_not_steered(absolute_directory(directory))};
}

} // namespace

int serve_pages(const ServeArguments& arguments) {
    auto& files = storage::posix_file_system();
    report::SiteOptions options;
    std::vector<std::string> all;
    for (const std::string& given : arguments.directories) {
        const auto found = studies_in(given);
        if (found.empty()) throw base::UsageError("serve: there is no study in '" + given + "'");
        all.insert(all.end(), found.begin(), found.end());
    }
    drop_repeated(all);
    const std::size_t count = all.size();
    options.directories = [given = arguments.directories] { return studies_of(given); };
    options.token = report::random_token();
    options.standing = [read_only = arguments.read_only](const tuner::State& state, const std::string& directory) {
        return standing_for_page(state, directory, read_only);
    };
    options.log = log_of;
    if (!arguments.read_only) options.steer = steered_by_page;
    options.missing = [](const std::string& directory) {
        return [missing = MissingRecords(directory)](const storage::JournalSummary& found) {
            return missing.words(found);
        };
    };
    const std::string token = options.token;
    report::Site site(files, std::move(options));
    report::serve_http(site, arguments.port, [&](std::uint16_t port) {
        const report::Style style = detect_terminal().style;
        std::cout << report::prose("page", report::unbroken(fmt::format("http://127.0.0.1:{}/{}/", port, token)), style)
                  << report::prose(
                         "from afar",
                         report::unbroken(fmt::format("ssh -L {0}:127.0.0.1:{0} {1}", port, process::host_name())) +
                             ", then the same address",
                         style)
                  << report::prose("serves",
                                   (count == 1 ? "1 study" : fmt::format("{} studies", count)) +
                                       (arguments.read_only ? ", read only, to whoever has the address"
                                                            : "; whoever has the address can steer (not with "
                                                              "--read-only)") +
                                       "; Ctrl-C ends it",
                                   style)
                  << std::flush;
    });
    return 0;
}

} // namespace ranktune::cli
