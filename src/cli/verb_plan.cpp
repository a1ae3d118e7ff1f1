// SPDX-License-Identifier: Apache-2.0
// validate and run --dry-run: what a study means, without MPI.

#include <algorithm>
#include <iostream>

#include <fmt/format.h>

#include "cli/launch_self.hpp"
#include "cli/study_input.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "cli/version.hpp"
#include "ranktune/study/parse.hpp"
#include "report/plan.hpp"
#include "report/screens.hpp"
#include "searchers/searcher.hpp"

namespace ranktune::cli {
namespace {

void print_layout(const study::StudySpec& spec, std::uint32_t workers) {
    const std::uint32_t most = spec.max_ranks_per_trial();
    std::cout << fmt::format("layout    {} ranks: rank 0 is the head, which trains nothing; {} workers\n", workers + 1,
                             workers);
    if (!spec.resources.ranks_parameter.empty()) {
        std::cout << fmt::format("          groups of as many ranks as {} says, {} at most\n",
                                 spec.resources.ranks_parameter, most);
        return;
    }
    const std::uint32_t groups = workers / most;
    constexpr std::uint32_t shown = 8;
    for (std::uint32_t group = 0; group < std::min(groups, shown); ++group) {
        const std::uint32_t first = group * most + 1;
        std::cout << (most == 1
                          ? fmt::format("          group {}: rank {}\n", group + 1, first)
                          : fmt::format("          group {}: ranks {} to {}\n", group + 1, first, first + most - 1));
    }
    if (groups > shown) std::cout << fmt::format("          and {} more\n", groups - shown);
    if (workers % most != 0)
        std::cout << fmt::format("          {} workers are left over: a multiple of {} wastes none\n", workers % most,
                                 most);
}

} // namespace

int validate(const std::string& study, const std::vector<std::string>& overrides) {
    const StudyInput input = read_study(study, overrides);
    report::StartInfo info;
    const auto style = detect_terminal().style;
    const std::string screen = report::start_screen(input.spec, info, style);
    std::cout << study << ": no mistakes\n" << screen.substr(screen.find('\n') + 1);
    return 0;
}

int dry_run(const RunArguments& arguments) {
    const StudyInput input = read_study(arguments.study, arguments.overrides);
    const auto style = detect_terminal().style;
    std::cout << "# The study with every default, as `resolved.toml` will have it.\n"
              << study::resolved_toml(input.spec) << "\n";
    const auto searcher = searchers::make_searcher(input.spec);
    for (std::uint32_t i = 0; i < std::min(3U, input.spec.num_trials); ++i) {
        const auto configuration = searcher->suggest(base::TrialId{i});
        if (configuration)
            std::cout << report::pad_right(fmt::format("trial #{}", i), 10) << configuration->text() << "\n";
    }
    const std::uint32_t workers =
        arguments.local.value_or(default_workers(input.spec.max_ranks_per_trial(), input.spec.resources.cpus_per_rank));
    print_layout(input.spec, workers);
    report::StartInfo info;
    const std::string screen = report::start_screen(input.spec, info, style);
    std::cout << screen.substr(screen.find('\n') + 1) << "nothing was started (--dry-run)\n";
    return 0;
}

} // namespace ranktune::cli
