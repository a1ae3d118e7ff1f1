// SPDX-License-Identifier: Apache-2.0
// serve: live pages of studies on 127.0.0.1.

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/checks/missing_records.hpp"
#include "cli/study_summary.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/view_verbs.hpp"
#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "report/screens/text.hpp"
#include "report/view/load.hpp"
#include "serve/site.hpp"

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

} // namespace

int serve_pages(const ServeArguments& arguments) {
    auto& files = storage::posix_file_system();
    serve::SiteOptions options;
    std::vector<std::string> all;
    for (const std::string& given : arguments.directories) {
        const auto found = studies_in(given);
        if (found.empty()) throw base::UsageError("serve: there is no study in '" + given + "'");
        all.insert(all.end(), found.begin(), found.end());
    }
    drop_repeated(all);
    const std::size_t count = all.size();
    options.directories = [given = arguments.directories] { return studies_of(given); };
    options.token = serve::random_token();
    options.standing = [](const tuner::State& state, const std::string& directory) {
        return standing_of(state, directory).text;
    };
    options.missing = [](const std::string& directory) {
        return [missing = MissingRecords(directory)](const storage::JournalSummary& found) {
            return missing.words(found);
        };
    };
    const std::string token = options.token;
    serve::Site site(files, std::move(options));
    serve::serve_http(site, arguments.port, [&](std::uint16_t port) {
        const report::Style style = detect_terminal().style;
        std::cout << report::prose("page", report::unbroken(fmt::format("http://127.0.0.1:{}/{}/", port, token)), style)
                  << report::prose(
                         "from afar",
                         report::unbroken(fmt::format("ssh -L {0}:127.0.0.1:{0} {1}", port, process::host_name())) +
                             ", then the same address",
                         style)
                  << report::prose("serves",
                                   (count == 1 ? "1 study" : fmt::format("{} studies", count)) +
                                       ", read only, to whoever has the address; Ctrl-C ends it",
                                   style)
                  << std::flush;
    });
    return 0;
}

} // namespace ranktune::cli
